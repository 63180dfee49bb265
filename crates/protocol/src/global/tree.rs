//! The binomial tree of a collective operation, for any number of ranks and any root.
//!
//! Ranks are numbered from the root on. The parent of a number is the number without its lowest set bit.

/// The places of a rank in a tree.
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    ranks: u32,
    root: u32,
    /// The number of this rank, from the root on.
    number: u32,
}

impl Tree {
    /// Returns the place of `rank` among `ranks` in the tree with this root. Both are below `ranks`.
    pub fn new(rank: u32, ranks: u32, root: u32) -> Self {
        debug_assert!(rank < ranks && root < ranks);
        let number = if rank >= root { rank - root } else { rank + (ranks - root) };
        Self { ranks, root, number }
    }

    /// Returns the rank of a number.
    fn rank(&self, number: u32) -> u32 {
        let until_wrap = self.ranks - self.root;
        if number < until_wrap { self.root + number } else { number - until_wrap }
    }

    /// Returns the parent, or `None` for the root.
    pub fn parent(&self) -> Option<u32> {
        (self.number > 0).then(|| self.rank(self.number & (self.number - 1)))
    }

    /// Returns the children, the one with the greatest subtree last.
    pub fn children(&self) -> impl Iterator<Item = u32> {
        let tree = *self;
        // The root has children at all powers of two; another rank has them below its lowest set bit.
        let bits = if tree.number == 0 { u32::BITS } else { tree.number.trailing_zeros() };
        (0..bits)
            .filter_map(move |bit| tree.number.checked_add(1 << bit))
            .take_while(move |child| *child < tree.ranks)
            .map(move |child| tree.rank(child))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn every_rank_but_the_root_has_one_parent_that_knows_it() {
        for ranks in 1..=70 {
            for root in 0..ranks {
                let mut known = Vec::new();
                for rank in 0..ranks {
                    for child in Tree::new(rank, ranks, root).children() {
                        assert_eq!(Tree::new(child, ranks, root).parent(), Some(rank));
                        known.push(child);
                    }
                }
                known.sort_unstable();
                let others: Vec<u32> = (0..ranks).filter(|rank| *rank != root).collect();
                assert_eq!(known, others);
                assert_eq!(Tree::new(root, ranks, root).parent(), None);
            }
        }
    }

    #[test]
    fn no_rank_is_deeper_than_the_logarithm() {
        for ranks in 1..=130u32 {
            for rank in 0..ranks {
                let (mut at, mut depth) = (rank, 0);
                while let Some(parent) = Tree::new(at, ranks, 0).parent() {
                    (at, depth) = (parent, depth + 1);
                }
                assert!(depth <= ranks.next_power_of_two().ilog2());
            }
        }
    }
}
