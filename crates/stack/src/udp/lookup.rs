//! Finds connections by a key.

use std::collections::HashMap;
use std::hash::Hash;

/// The indices of connections by a key. It remembers the last one found, because the next datagram usually belongs
/// to the same connection.
#[derive(Debug)]
pub(crate) struct Lookup<K> {
    indices: HashMap<K, usize>,
    last: Option<(K, usize)>,
}

impl<K> Default for Lookup<K> {
    fn default() -> Self {
        Self { indices: HashMap::new(), last: None }
    }
}

impl<K: Copy + Eq + Hash> Lookup<K> {
    /// Enters a key, or changes its index.
    pub fn insert(&mut self, key: K, index: usize) {
        self.last = None;
        self.indices.insert(key, index);
    }

    /// Removes a key. Returns its index.
    pub fn remove(&mut self, key: K) -> Option<usize> {
        self.last = None;
        self.indices.remove(&key)
    }

    /// Returns the index of a key.
    pub fn get(&self, key: K) -> Option<usize> {
        self.indices.get(&key).copied()
    }

    /// Returns the index of a key that will probably be looked up again.
    #[inline]
    pub fn find(&mut self, key: K) -> Option<usize> {
        if let Some((last, index)) = self.last
            && last == key
        {
            return Some(index);
        }
        let index = self.get(key)?;
        self.last = Some((key, index));
        Some(index)
    }
}
