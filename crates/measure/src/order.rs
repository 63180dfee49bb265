//! The order that a message carries: the messages with which its receiver must answer. It stands in the
//! first bytes of every message, so that two processes need no other agreement.

/// The first byte of every order.
const MAGIC: u8 = 0xd7;
/// The largest number of answers to one message that any method needs: those of the first cycle of `overlap`
/// with the largest batch.
const MOST_ANSWERS: u8 = 2 * Order::LARGEST_BATCH;

/// The answers that the receiver of a message must send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Number of messages, at most two batches ([`Order::LARGEST_BATCH`]).
    pub answers: u8,
    /// Size of each in bytes, at least [`Order::LEN`].
    pub bytes: u32,
}

impl Order {
    /// Size of an order in bytes, and therefore of the smallest message.
    pub const LEN: usize = 8;

    /// The largest batch of messages that orders can ask for twice.
    pub const LARGEST_BATCH: u8 = 64;

    /// The order to send nothing. Answers carry it.
    pub const NOTHING: Self = Self { answers: 0, bytes: Self::LEN as u32 };

    /// Returns the order as the first bytes of a message.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let [a, b, c, d] = self.bytes.to_le_bytes();
        [MAGIC, self.answers, 0, 0, a, b, c, d]
    }

    /// Returns the order at the beginning of `message`. Returns `None` if no order stands there, or if it
    /// needs messages larger than `largest` bytes.
    pub fn parse(message: &[u8], largest: usize) -> Option<Self> {
        let &[MAGIC, answers, 0, 0, a, b, c, d] = message.first_chunk()? else { return None };
        let bytes = u32::from_le_bytes([a, b, c, d]);
        let fits = answers <= MOST_ANSWERS && (Self::LEN..=largest).contains(&(bytes as usize));
        fits.then_some(Self { answers, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_order_comes_back(answers in 0..=MOST_ANSWERS, bytes in 8u32.., rest in any::<Vec<u8>>()) {
            let order = Order { answers, bytes };
            let message = [&order.to_bytes()[..], &rest].concat();
            prop_assert_eq!(Order::parse(&message, usize::MAX), Some(order));
            prop_assert_eq!(Order::parse(&message, bytes as usize - 1), None);
        }

        #[test]
        fn what_parses_is_an_order(message in proptest::collection::vec(any::<u8>(), 0..16), largest in any::<usize>()) {
            if let Some(order) = Order::parse(&message, largest) {
                prop_assert_eq!(&order.to_bytes()[..], &message[..Order::LEN]);
                prop_assert!(order.answers <= MOST_ANSWERS && order.bytes as usize <= largest);
            }
        }
    }
}
