//! Two cache lines between two threads: what a message in shared memory cannot do without.

use super::Parts;
use super::pace::Pace;
use super::partner::{Partner, Server};
use std::hint::black_box;
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
    pace: Pace,
}

/// Returns the lines, and the server of the end that answers. `in_vain` is a poll of the layer that finds nothing, and
/// gives the pace.
pub(super) fn exchange(in_vain: impl FnMut()) -> (Lines, Server) {
    let lines = Arc::new([Line::default(), Line::default()]);
    let pace = Pace::of(in_vain, |pace| {
        black_box(look(&lines[0], 0, pace));
    });
    let (theirs, mut last) = (Arc::clone(&lines), 0);
    let server = move || {
        let [there, back] = &*theirs;
        let seen = look(there, last, pace);
        if let Some(seen) = seen {
            back.0.store(seen, Ordering::Release);
            last = seen;
        }
        Ok(seen.is_some())
    };
    (Lines { lines, sent: 0, pace }, Box::new(server))
}

/// Returns what is in the line, if it is new.
#[inline(always)]
fn look(line: &Line, last: u64, pace: Pace) -> Option<u64> {
    let seen = line.0.load(Ordering::Acquire);
    if seen == last {
        pace.pass();
        return None;
    }
    Some(seen)
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
        let last = asking.sent;
        asking.sent += 1;
        there.0.store(asking.sent, Ordering::Release);
        partner.until(|| Ok(look(back, last, asking.pace).is_some()))
    })
}
