//! Reads any bytes from a control connection, in pieces of any size. The result is the messages that the
//! bytes encode, or an error. The memory is bounded by the number of bytes that arrived.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use netdyno_job::frame::{FrameError, receive, send};
use serde::de::IgnoredAny;
use serde_json::Value;
use std::alloc::{GlobalAlloc, Layout, System};
use std::array::IntoIter;
use std::io::{self, ErrorKind, Read};
use std::iter::Cycle;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The length of the longest message, in bytes.
const LONGEST: usize = 64 << 20;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    pieces: [u8; 4],
    stream: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    let sizes = input.pieces.into_iter().cycle();
    let mut in_pieces = Pieces { rest: input.stream, sizes, was_interrupted: false };
    let (messages, end) = meant(input.stream);
    assert_eq!(received(&mut in_pieces), (messages.clone(), end));
    for message in messages {
        let mut wire = Vec::new();
        send(&mut wire, &message).expect("what came can go");
        receive::<Value>(&mut &wire[..]).expect("and come again");
    }
    let most = most_memory(|| drop(receive::<IgnoredAny>(&mut &input.stream[..])));
    // While a growing buffer is copied it exists twice, and each copy may be half empty.
    assert!(most <= 4 * input.stream.len() + 1024, "{most} bytes of memory");
});

/// The reason for the end of a stream.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Closed,
    Malformed,
}

fn received(stream: &mut impl Read) -> (Vec<Value>, End) {
    let mut messages = Vec::new();
    loop {
        match receive(stream) {
            Ok(message) => messages.push(message),
            Err(FrameError::Closed) => return (messages, End::Closed),
            Err(FrameError::Malformed(_)) => return (messages, End::Malformed),
            Err(error @ (FrameError::Silent | FrameError::Io(_))) => panic!("nothing failed: {error}"),
        }
    }
}

/// Returns the expected result of [`received`]. It parses the bytes in one piece.
fn meant(mut stream: &[u8]) -> (Vec<Value>, End) {
    let mut messages = Vec::new();
    while let Some((len, rest)) = stream.split_first_chunk() {
        let len = u32::from_le_bytes(*len) as usize;
        if len > LONGEST {
            return (messages, End::Malformed);
        }
        let Some((body, behind)) = rest.split_at_checked(len) else { break };
        let Ok(message) = serde_json::from_slice(body) else { return (messages, End::Malformed) };
        messages.push(message);
        stream = behind;
    }
    (messages, End::Closed)
}

/// A connection that returns a few bytes per read, and is interrupted in between.
struct Pieces<'a> {
    rest: &'a [u8],
    sizes: Cycle<IntoIter<u8, 4>>,
    was_interrupted: bool,
}

impl Read for Pieces<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let size = self.sizes.next().map_or(0, usize::from);
        self.was_interrupted = size == 0 && !self.was_interrupted;
        if self.was_interrupted {
            return Err(ErrorKind::Interrupted.into());
        }
        let size = size.max(1).min(out.len());
        self.rest.read(&mut out[..size])
    }
}

/// Returns the peak of the memory that `work` allocates, in bytes.
fn most_memory(work: impl FnOnce()) -> usize {
    let before = HELD.load(Relaxed);
    MOST.store(before, Relaxed);
    work();
    MOST.load(Relaxed) - before
}

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Relaxed) + layout.size();
        MOST.fetch_max(held, Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`. The memory is from `System.alloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}
