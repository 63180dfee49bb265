//! Reassembly of messages that come in pieces on an unreliable VI. Each message is delivered at most
//! once, and complete or not at all.

use crate::frame::vi_message::Head;

/// The decision about a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The piece begins a message. An incomplete message before it is given up.
    Begins,
    /// The piece continues the arriving message.
    Continues,
    /// The piece is a duplicate, or its message can no longer become complete.
    Stale,
}

/// The state of the reassembly.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fragments {
    /// The number of the last message that began.
    last: Option<u32>,
    /// The arriving message, and how many of its bytes have come.
    coming: Option<(Head, u32)>,
}

impl Fragments {
    /// Takes a piece of `len` bytes whose place in the message is `at`.
    pub fn take(&mut self, head: &Head, at: u32, len: u32) -> Piece {
        if let Some((coming, next)) = &mut self.coming
            && coming == head
            && *next == at
            && len > 0
        {
            *next += len;
            return Piece::Continues;
        }
        // Numbers wrap: a number is new if it is ahead of the last by less than half of their range.
        let is_new = self.last.is_none_or(|last| (head.number.wrapping_sub(last) as i32) > 0);
        if !is_new || at != 0 {
            return Piece::Stale;
        }
        self.last = Some(head.number);
        self.coming = Some((*head, len));
        Piece::Begins
    }

    /// Reports whether the arriving message is complete.
    pub fn is_whole(&self) -> bool {
        self.coming.is_some_and(|(head, come)| come == head.len)
    }

    /// Ends the arriving message: no more of its pieces are taken.
    pub fn end(&mut self) {
        self.coming = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::vi_message::Kind;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn head(number: u32, len: u32) -> Head {
        Head { number, len, kind: Kind::Send { immediate: None } }
    }

    proptest! {
        /// A complete message is reported once and in order, and each of its pieces was taken once,
        /// whatever the network does to pieces.
        #[test]
        fn a_message_is_whole_at_most_once(
            first: u32,
            pieces in proptest::collection::vec((0..12_u32, 0..3_u32), 0..200),
        ) {
            let mut fragments = Fragments::default();
            let (mut wholes, mut taken) = (Vec::new(), 0);
            for (nth, piece) in pieces {
                let (number, at) = (first.wrapping_add(nth), 10 * piece);
                match fragments.take(&head(number, 30), at, 10) {
                    Piece::Begins => taken = 1,
                    Piece::Continues => taken += 1,
                    Piece::Stale => continue,
                }
                if fragments.is_whole() {
                    prop_assert_eq!(taken, 3);
                    prop_assert!(wholes.last().is_none_or(|last| nth > *last));
                    wholes.push(nth);
                    fragments.end();
                }
            }
        }
    }

    #[test]
    fn a_message_of_nothing_is_whole_at_once_and_once() {
        let mut fragments = Fragments::default();
        assert_eq!(fragments.take(&head(7, 0), 0, 0), Piece::Begins);
        assert!(fragments.is_whole());
        fragments.end();
        assert_eq!(fragments.take(&head(7, 0), 0, 0), Piece::Stale);
        assert_eq!(fragments.take(&head(6, 0), 0, 0), Piece::Stale);
    }

    #[test]
    fn a_newer_message_takes_the_place_of_one_that_lacks_a_piece() {
        let mut fragments = Fragments::default();
        assert_eq!(fragments.take(&head(1, 20), 0, 10), Piece::Begins);
        assert_eq!(fragments.take(&head(2, 20), 10, 10), Piece::Stale);
        assert_eq!(fragments.take(&head(2, 20), 0, 10), Piece::Begins);
        assert_eq!(fragments.take(&head(1, 20), 10, 10), Piece::Stale);
        assert_eq!(fragments.take(&head(2, 20), 10, 10), Piece::Continues);
        assert!(fragments.is_whole());
    }
}
