//! The messages of global memory, as the four words and the payload of an Active Message.
//!
//! ```text
//! request   w0  operation (8 bits), segment (24), ticket (32)
//!           w1  offset
//!           w2  length of get, put and store; addend; expected value
//!           w3  up to eight bytes of put and store; new value of compare-and-swap; otherwise 0
//!           payload: the bytes of put and store, if they are more than eight
//! reply     w0  status (8), length of the bytes in words (8), zero (16), ticket (32)
//!           w1  old value of an atomic operation; length of the segment if out of bounds; otherwise 0
//!           w1, w2, w3  up to 24 bytes of a get
//!           payload: the bytes of a get, if they are more than 24
//! tree      w0  direction (8), collective (8), combination (8), zero (8), root (32)
//!           w1  sequence number
//!           w2, w3  zero
//!           payload: the value
//! ```

use super::Refusal;
use super::data::{Data, FEW, Few, words_of};

/// The words of an Active Message.
pub type Words = [u64; 4];

/// Number of segments that a rank can name.
pub const SEGMENTS: u32 = 1 << 24;
/// The most bytes of a put or store that travel in words.
const FEW_PUT: usize = 8;
/// The longest value of a tree message, in bytes.
pub const LONGEST_VALUE: usize = 1024;

/// The words or the payload have no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// An operation on the memory of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Returns this many bytes.
    Get(u64),
    /// Writes the bytes.
    Put(Data<'a>),
    /// Writes the bytes, and counts them at the target.
    Store(Data<'a>),
    /// Adds to a word.
    Add(u64),
    /// Adds to a word and returns its old value.
    FetchAdd(u64),
    /// Replaces a word if it has the expected value, and returns its old value.
    CompareSwap {
        /// The expected value.
        expected: u64,
        /// The value that replaces it.
        new: u64,
    },
}

/// A request to a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The number by which the initiator knows the operation.
    pub ticket: u32,
    /// The segment at the target.
    pub segment: u32,
    /// The offset in the segment, in bytes.
    pub offset: u64,
    /// The operation.
    pub operation: Operation<'a>,
}

impl<'a> Request<'a> {
    /// Returns the words and the payload. `segment` is below [`SEGMENTS`].
    #[inline(always)]
    pub fn encode(&self) -> (Words, &[u8]) {
        debug_assert!(self.segment < SEGMENTS);
        let (code, a, b, payload): (u64, u64, u64, &[u8]) = match &self.operation {
            Operation::Get(len) => (1, *len, 0, &[]),
            Operation::Put(data) => of_data(2, data.as_slice()),
            Operation::Store(data) => of_data(3, data.as_slice()),
            Operation::FetchAdd(addend) => (4, *addend, 0, &[]),
            Operation::CompareSwap { expected, new } => (5, *expected, *new, &[]),
            Operation::Add(addend) => (6, *addend, 0, &[]),
        };
        let first = code | u64::from(self.segment) << 8 | u64::from(self.ticket) << 32;
        ([first, self.offset, a, b], payload)
    }

    /// Parses a request.
    ///
    /// # Errors
    /// Returns `Malformed` if the operation is unknown, or if a length or an unused word is wrong.
    #[inline(always)]
    pub fn parse([first, offset, a, b]: Words, payload: &'a [u8]) -> Result<Self, Malformed> {
        let is_empty = payload.is_empty() && b == 0;
        let operation = match first & 0xff {
            1 if is_empty => Operation::Get(a),
            2 => Operation::Put(data(a, b, payload)?),
            3 => Operation::Store(data(a, b, payload)?),
            4 if is_empty => Operation::FetchAdd(a),
            5 if payload.is_empty() => Operation::CompareSwap { expected: a, new: b },
            6 if is_empty => Operation::Add(a),
            _ => return Err(Malformed),
        };
        Ok(Self { ticket: ticket(first), segment: (first >> 8) as u32 & (SEGMENTS - 1), offset, operation })
    }
}

/// Returns the operation, the last two words and the payload of a put or store of these bytes.
#[inline(always)]
fn of_data(code: u64, bytes: &[u8]) -> (u64, u64, u64, &[u8]) {
    let len = bytes.len() as u64;
    match words_of(bytes) {
        Some([word, ..]) if bytes.len() <= FEW_PUT => (code, len, word, &[]),
        _ => (code, len, 0, bytes),
    }
}

/// Returns the bytes of a put or store.
#[inline(always)]
fn data(len: u64, word: u64, payload: &[u8]) -> Result<Data<'_>, Malformed> {
    if len <= FEW_PUT as u64 && payload.is_empty() {
        return Few::of_words([word, 0, 0], len).map(Data::Few).ok_or(Malformed);
    }
    let is_payload = len == payload.len() as u64 && word == 0 && payload.len() > FEW_PUT;
    if is_payload { Ok(Data::Slice(payload)) } else { Err(Malformed) }
}

/// Returns the ticket in the first word of a request or reply.
pub const fn ticket(first: u64) -> u32 {
    (first >> 32) as u32
}

/// The outcome of an operation at its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// The bytes are written.
    Written,
    /// The old value of an atomic operation.
    Old(u64),
    /// The bytes of a get.
    Bytes(Data<'a>),
    /// The target refused and changed nothing.
    Refused(Refusal),
}

/// The reply to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The ticket of the request.
    pub ticket: u32,
    /// The outcome.
    pub outcome: Outcome<'a>,
}

impl<'a> Reply<'a> {
    /// Returns the words and the payload. Words at the end that are zero need not be sent.
    #[inline(always)]
    pub fn encode(&self) -> (Words, &[u8]) {
        let first = |status: u64| status | u64::from(self.ticket) << 32;
        let [status, value]: [u64; 2] = match &self.outcome {
            Outcome::Written => [1, 0],
            Outcome::Old(value) => [2, *value],
            Outcome::Bytes(data) => {
                let bytes = data.as_slice();
                return match words_of(bytes) {
                    Some([a, b, c]) => ([first(8 | (bytes.len() as u64) << 8), a, b, c], &[]),
                    None => ([first(3), 0, 0, 0], bytes),
                };
            }
            Outcome::Refused(Refusal::OutOfBounds { segment_len }) => [4, *segment_len],
            Outcome::Refused(Refusal::NoSuchSegment) => [5, 0],
            Outcome::Refused(Refusal::Misaligned) => [6, 0],
            Outcome::Refused(Refusal::Malformed) => [7, 0],
        };
        ([first(status), value, 0, 0], &[])
    }

    /// Parses a reply.
    ///
    /// # Errors
    /// Returns `Malformed` if the status is unknown, or if an unused field is not zero.
    #[inline(always)]
    pub fn parse([first, value, c, d]: Words, payload: &'a [u8]) -> Result<Self, Malformed> {
        let (status, len, ticket) = (first & 0xff, first >> 8 & 0xff_ffff, ticket(first));
        if status == 8 && payload.is_empty() {
            let few = Few::of_words([value, c, d], len).ok_or(Malformed)?;
            return Ok(Self { ticket, outcome: Outcome::Bytes(Data::Few(few)) });
        }
        if len != 0 || c != 0 || d != 0 {
            return Err(Malformed);
        }
        let outcome = match (status, value, payload) {
            (1, 0, []) => Outcome::Written,
            (2, value, []) => Outcome::Old(value),
            (3, 0, bytes) if bytes.len() > FEW => Outcome::Bytes(Data::Slice(bytes)),
            (4, segment_len, []) => Outcome::Refused(Refusal::OutOfBounds { segment_len }),
            (5, 0, []) => Outcome::Refused(Refusal::NoSuchSegment),
            (6, 0, []) => Outcome::Refused(Refusal::Misaligned),
            (7, 0, []) => Outcome::Refused(Refusal::Malformed),
            _ => return Err(Malformed),
        };
        Ok(Self { ticket, outcome })
    }
}

/// The function that combines the values of a reduction, word by word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Combination {
    /// The sum, modulo 2^64.
    Sum,
    /// The least unsigned value.
    Min,
    /// The greatest unsigned value.
    Max,
    /// The bits that all values have.
    And,
    /// The bits that any value has.
    Or,
    /// The bits that an odd number of values have.
    Xor,
    /// The sum of IEEE 754 binary64 numbers, in the order of the tree, which depends on the ranks alone.
    SumF64,
}

impl Combination {
    const ALL: [Self; 7] = [Self::Sum, Self::Min, Self::Max, Self::And, Self::Or, Self::Xor, Self::SumF64];

    /// Combines two words.
    pub fn of(self, a: u64, b: u64) -> u64 {
        match self {
            Self::Sum => a.wrapping_add(b),
            Self::Min => a.min(b),
            Self::Max => a.max(b),
            Self::And => a & b,
            Self::Or => a | b,
            Self::Xor => a ^ b,
            Self::SumF64 => (f64::from_bits(a) + f64::from_bits(b)).to_bits(),
        }
    }
}

/// A collective operation, which all ranks call alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collective {
    /// No rank returns before all have called.
    Barrier,
    /// Every rank receives the value of the root.
    Broadcast {
        /// The rank that has the value.
        root: u32,
    },
    /// The root receives the combined values of all ranks.
    Reduce {
        /// The rank that receives the result.
        root: u32,
        /// The function.
        combination: Combination,
    },
    /// Every rank receives the combined values of all ranks.
    AllReduce {
        /// The function.
        combination: Combination,
    },
}

/// The direction of a tree message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From a child to its parent.
    Up,
    /// From a parent to its child.
    Down,
}

/// A message of a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeMessage<'a> {
    /// The direction.
    pub direction: Direction,
    /// The operation.
    pub collective: Collective,
    /// The number of the operation among all collective operations of the job.
    pub sequence: u64,
    /// The value, at most [`LONGEST_VALUE`] bytes.
    pub value: &'a [u8],
}

impl<'a> TreeMessage<'a> {
    /// Returns the words and the payload.
    pub fn encode(&self) -> ([u64; 2], &'a [u8]) {
        let direction = match self.direction {
            Direction::Up => 1,
            Direction::Down => 2,
        };
        let (code, combination, root) = match self.collective {
            Collective::Barrier => (1, 0, 0),
            Collective::Broadcast { root } => (2, 0, root),
            Collective::Reduce { root, combination } => (3, combination as u64, root),
            Collective::AllReduce { combination } => (4, combination as u64, 0),
        };
        ([direction | code << 8 | combination << 16 | u64::from(root) << 32, self.sequence], self.value)
    }

    /// Parses a tree message.
    ///
    /// # Errors
    /// Returns `Malformed` if a field is unknown, or if an unused field is not zero.
    pub fn parse([first, sequence, c, d]: Words, value: &'a [u8]) -> Result<Self, Malformed> {
        if c != 0 || d != 0 || first >> 24 & 0xff != 0 || value.len() > LONGEST_VALUE {
            return Err(Malformed);
        }
        let direction = match first & 0xff {
            1 => Direction::Up,
            2 => Direction::Down,
            _ => return Err(Malformed),
        };
        let (number, root) = ((first >> 16 & 0xff) as usize, (first >> 32) as u32);
        let combination = *Combination::ALL.get(number).ok_or(Malformed)?;
        let collective = match first >> 8 & 0xff {
            1 if number == 0 && root == 0 => Collective::Barrier,
            2 if number == 0 => Collective::Broadcast { root },
            3 => Collective::Reduce { root, combination },
            4 if root == 0 => Collective::AllReduce { combination },
            _ => return Err(Malformed),
        };
        Ok(Self { direction, collective, sequence, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn padded([a, b]: [u64; 2]) -> Words {
        [a, b, 0, 0]
    }

    /// Words whose small fields often have a meaning.
    fn words() -> impl Strategy<Value = Words> {
        let first = prop_oneof![
            any::<u64>(),
            (0u64..9, 0u64..30, 0u64..8, any::<u32>())
                .prop_map(|(a, b, c, d)| a | b << 8 | c << 16 | u64::from(d) << 32),
            (0u64..8, any::<u32>()).prop_map(|(a, d)| a | u64::from(d) << 32),
            0u64..0x8_0808
        ];
        let word = || prop_oneof![Just(0u64), 0u64..40, any::<u64>()];
        (first, word(), word(), word()).prop_map(|(a, b, c, d)| [a, b, c, d])
    }

    #[test]
    fn words_are_combined() {
        let of = |a, b| Combination::ALL.map(|combination| combination.of(a, b));
        let [one, two] = [1.5_f64, -4.0].map(f64::to_bits);
        assert_eq!(of(0b1100, 0b1010)[..6], [22, 10, 12, 0b1000, 0b1110, 0b0110]);
        assert_eq!(of(u64::MAX, 1)[..6], [0, 1, u64::MAX, 1, u64::MAX, u64::MAX - 1]);
        assert_eq!(of(one, two)[6], (-2.5_f64).to_bits());
    }

    proptest! {
        #[test]
        fn words_that_parse_encode_to_the_same_words(
            words in words(), payload in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            if let Ok(request) = Request::parse(words, &payload) {
                prop_assert_eq!(request.encode(), (words, &payload[..]));
            }
            if let Ok(reply) = Reply::parse(words, &payload) {
                prop_assert_eq!(reply.encode(), (words, &payload[..]));
            }
            if let Ok(message) = TreeMessage::parse(words, &payload) {
                let (encoded, bytes) = message.encode();
                prop_assert_eq!((padded(encoded), bytes), (words, &payload[..]));
            }
        }

        #[test]
        fn operations_survive(
            code in 0..6, ticket: u32, segment in 0..SEGMENTS, offset: u64, a: u64, b: u64,
            bytes in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let operation = match code {
                0 => Operation::Get(a),
                1 => Operation::Put(bytes[..].into()),
                2 => Operation::Store(bytes[..].into()),
                3 => Operation::FetchAdd(a),
                4 => Operation::Add(a),
                _ => Operation::CompareSwap { expected: a, new: b },
            };
            let request = Request { ticket, segment, offset, operation };
            let (words, payload) = request.encode();
            prop_assert_eq!(Request::parse(words, payload), Ok(request));
            prop_assert_eq!(payload.is_empty(), !matches!(code, 1 | 2) || bytes.len() <= 8);
        }

        #[test]
        fn outcomes_survive(
            code in 0..7, ticket: u32, value: u64, bytes in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let outcome = match code {
                0 => Outcome::Written,
                1 => Outcome::Old(value),
                2 => Outcome::Bytes(bytes[..].into()),
                3 => Outcome::Refused(Refusal::OutOfBounds { segment_len: value }),
                4 => Outcome::Refused(Refusal::NoSuchSegment),
                5 => Outcome::Refused(Refusal::Misaligned),
                _ => Outcome::Refused(Refusal::Malformed),
            };
            let reply = Reply { ticket, outcome };
            let (words, payload) = reply.encode();
            prop_assert_eq!(Reply::parse(words, payload), Ok(reply));
            prop_assert_eq!(payload.is_empty(), code != 2 || bytes.len() <= 24);
        }
    }

    #[test]
    fn collectives_survive() {
        for combination in Combination::ALL {
            for collective in [
                Collective::Barrier,
                Collective::Broadcast { root: 7 },
                Collective::Reduce { root: u32::MAX, combination },
                Collective::AllReduce { combination },
            ] {
                for direction in [Direction::Up, Direction::Down] {
                    let message = TreeMessage { direction, collective, sequence: u64::MAX, value: &[1, 2] };
                    let (words, value) = message.encode();
                    assert_eq!(TreeMessage::parse(padded(words), value), Ok(message));
                }
            }
        }
    }
}
