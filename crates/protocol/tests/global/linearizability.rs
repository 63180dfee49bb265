//! The oracle of rule 4: decides whether the operations on one word are linearizable (Herlihy and Wing 1990), by the
//! search of Wing and Gong (1993).

use std::collections::HashSet;

/// An operation on a word, with its result.
#[derive(Clone, Copy, Debug)]
pub enum Access {
    Read { seen: u64 },
    Write { value: u64 },
    Add { addend: u64 },
    FetchAdd { addend: u64, old: u64 },
    CompareSwap { expected: u64, new: u64, old: u64 },
}

impl Access {
    /// Returns the value after the operation, or `None` if its result does not fit the value before.
    fn apply(self, before: u64) -> Option<u64> {
        match self {
            Self::Read { seen } => (seen == before).then_some(before),
            Self::Write { value } => Some(value),
            Self::Add { addend } => Some(before.wrapping_add(addend)),
            Self::FetchAdd { addend, old } => (old == before).then(|| before.wrapping_add(addend)),
            Self::CompareSwap { expected, new, old } => {
                (old == before).then_some(if before == expected { new } else { before })
            }
        }
    }
}

/// An operation between its begin and its end, as numbers of events.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub begin: u64,
    pub end: u64,
    pub access: Access,
}

/// The calls that have a place in the order: all before `first`, and those of the next 64 that `beyond` has a bit for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State {
    first: usize,
    beyond: u64,
    value: u64,
}

impl State {
    fn has(self, nth: usize) -> bool {
        self.beyond >> (nth - self.first) & 1 == 1
    }

    fn with(mut self, nth: usize, value: u64) -> Self {
        assert!(nth - self.first < 64, "too many operations on a word at once");
        self.beyond |= 1 << (nth - self.first);
        let placed = self.beyond.trailing_ones();
        self.first += placed as usize;
        self.beyond = self.beyond.checked_shr(placed).unwrap_or(0);
        Self { value, ..self }
    }
}

/// Reports whether one order of the calls on a word, which is zero at first, explains all results. In the order a call
/// that ended before another one began comes before it.
pub fn is_linearizable(calls: &[Call]) -> bool {
    let mut calls = calls.to_vec();
    calls.sort_unstable_by_key(|call| call.begin);
    let mut seen = HashSet::new();
    let mut open = vec![State { first: 0, beyond: 0, value: 0 }];
    while let Some(state) = open.pop() {
        if state.first == calls.len() {
            return true;
        }
        let mut first_end = u64::MAX;
        for (nth, call) in calls.iter().enumerate().skip(state.first) {
            // This call and all behind it began after the end of a call that has no place yet.
            if call.begin > first_end {
                break;
            }
            assert!(nth - state.first < 64, "too many operations on a word at once");
            if state.has(nth) {
                continue;
            }
            first_end = first_end.min(call.end);
            let next = call.access.apply(state.value).map(|value| state.with(nth, value));
            open.extend(next.filter(|next| seen.insert(*next)));
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::Access::*;
    use super::*;

    fn call(begin: u64, end: u64, access: Access) -> Call {
        Call { begin, end, access }
    }

    #[test]
    fn calls_in_sequence_have_one_order() {
        let calls = |seen, old| {
            [
                call(0, 1, Write { value: 5 }),
                call(2, 3, FetchAdd { addend: 2, old }),
                call(4, 5, CompareSwap { expected: 7, new: 9, old: 7 }),
                call(6, 7, Read { seen }),
            ]
        };
        assert!(is_linearizable(&calls(9, 5)));
        assert!(!is_linearizable(&calls(7, 5)));
        assert!(!is_linearizable(&calls(9, 0)));
    }

    #[test]
    fn calls_at_once_have_any_order_that_all_results_fit() {
        let write = call(0, 9, Write { value: 5 });
        let add = |old| call(0, 9, FetchAdd { addend: 1, old });
        let read = |begin, end, seen| call(begin, end, Read { seen });
        assert!(is_linearizable(&[write, add(0), read(10, 11, 5)]));
        assert!(is_linearizable(&[write, add(5), read(10, 11, 6)]));
        // The write would have come between the parts of the addition.
        assert!(!is_linearizable(&[write, add(0), read(10, 11, 1)]));
        // A second read may not go back.
        assert!(is_linearizable(&[write, read(1, 2, 0), read(3, 4, 5)]));
        assert!(!is_linearizable(&[write, read(1, 2, 5), read(3, 4, 0)]));
    }

    #[test]
    fn each_addition_counts_once() {
        let adds = [call(0, 9, Add { addend: 3 }), call(0, 9, Add { addend: 4 })];
        for (seen, is_right) in [(7, true), (3, false), (10, false), (11, false)] {
            let read = call(10, 11, Read { seen });
            assert_eq!(is_linearizable(&[adds[0], adds[1], read]), is_right, "{seen}");
        }
    }
}
