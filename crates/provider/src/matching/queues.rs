//! First-in, first-out queues of slots, one for each key.
//!
//! A queue is a list that is linked through an array by slot. So a slot leaves its queue from any place in
//! constant time, and a queue takes no memory of its own but its two ends.

use rustc_hash::FxHashMap;
use std::hash::Hash;

/// The end of a list.
const NONE: usize = usize::MAX;

#[derive(Clone, Copy, Debug)]
struct Ends {
    first: usize,
    last: usize,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    previous: usize,
    next: usize,
}

/// Queues of slots by key. A slot is in one queue at most.
#[derive(Debug)]
pub struct Queues<K> {
    ends: FxHashMap<K, Ends>,
    links: Vec<Link>,
    len: usize,
}

impl<K> Default for Queues<K> {
    fn default() -> Self {
        Self { ends: FxHashMap::default(), links: Vec::new(), len: 0 }
    }
}

impl<K: Eq + Hash + Copy> Queues<K> {
    /// Returns whether all queues are empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the first slot of a queue.
    pub fn first(&self, key: K) -> Option<usize> {
        self.ends.get(&key).map(|ends| ends.first)
    }

    /// Returns the slot behind another in its queue.
    pub fn next(&self, slot: usize) -> Option<usize> {
        Some(self.links[slot].next).filter(|next| *next != NONE)
    }

    /// Appends a slot to a queue.
    pub fn push(&mut self, key: K, slot: usize) {
        if slot >= self.links.len() {
            self.links.resize(slot + 1, Link { previous: NONE, next: NONE });
        }
        let ends = self.ends.entry(key).or_insert(Ends { first: slot, last: NONE });
        self.links[slot] = Link { previous: ends.last, next: NONE };
        if ends.last != NONE {
            self.links[ends.last].next = slot;
        }
        ends.last = slot;
        self.len += 1;
    }

    /// Removes a slot from its queue.
    pub fn remove(&mut self, key: K, slot: usize) {
        let Link { previous, next } = self.links[slot];
        if previous != NONE {
            self.links[previous].next = next;
        }
        if next != NONE {
            self.links[next].previous = previous;
        }
        if previous == NONE && next == NONE {
            self.ends.remove(&key);
        } else if (previous == NONE || next == NONE)
            && let Some(ends) = self.ends.get_mut(&key)
        {
            if previous == NONE {
                ends.first = next;
            } else {
                ends.last = previous;
            }
        }
        self.len -= 1;
    }
}
