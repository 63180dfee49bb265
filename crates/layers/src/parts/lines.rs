//! Two cache lines between two threads: what a message in shared memory cannot do without.

use super::Parts;
use super::partner::{Partner, Server};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A cache line together with its neighbour, which processors fetch with it.
#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicU64);

/// Two lines that go back and forth.
pub(super) struct Lines {
    lines: Arc<[Line; 2]>,
    sent: u64,
}

/// Returns the lines, and the server of the end that answers.
pub(super) fn exchange() -> (Lines, Server) {
    let lines = Arc::new([Line::default(), Line::default()]);
    let (theirs, mut last) = (Arc::clone(&lines), 0);
    let server = move || {
        let [there, back] = &*theirs;
        let seen = there.0.load(Ordering::Acquire);
        let is_there = seen != last;
        if is_there {
            back.0.store(seen, Ordering::Release);
            last = seen;
        }
        Ok(is_there)
    };
    (Lines { lines, sent: 0 }, Box::new(server))
}

/// Adds round trips of lines with the server of this index. Returns the index of the probe.
pub(super) fn round_trips(
    parts: &mut Parts,
    partner: &Rc<Partner>,
    server: usize,
    mut asking: Lines,
) -> usize {
    parts.round_trips("2 lines", partner, server, move |partner| {
        let [there, back] = &*asking.lines;
        asking.sent += 1;
        there.0.store(asking.sent, Ordering::Release);
        partner.until(|| Ok(back.0.load(Ordering::Acquire) == asking.sent))
    })
}
