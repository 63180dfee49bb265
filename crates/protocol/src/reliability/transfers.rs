//! Bulk transfers: what goes out next of ours and of what the peer asked for, and where that
//! belongs which comes.
//!
//! A connection delivers in order, so a transfer is a row of messages in which nothing is
//! missing: the first of a store says where it belongs, and the request is handled when the
//! last byte is placed. Bytes are taken from where they are when the network has room for them,
//! and not before; what must not wait for them (replies, acknowledgements) does not.

use crate::dial::timing::Departed;
use crate::frame::datagram::{Kind, LONGEST_PIECE, STAMP_LEN, longest_beginning};
use crate::frame::slot::MAX_WORDS;
use crate::frame::transfer::Range;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Where the bytes of transfers come from and go to: what a program lends to its connections.
pub trait Memories {
    /// Puts `len` bytes of our store of that number behind `out`, from `at` on. False where they
    /// are not at hand now.
    fn source(&mut self, number: u32, at: u64, len: usize, out: &mut Vec<u8>) -> bool;

    /// Whether the memory of that key is registered.
    fn has(&mut self, key: &[u8]) -> bool;

    /// Puts `len` bytes of our memory behind `out`, from `at` on within `range`. False where the
    /// range is not, or no longer, within registered memory.
    fn read(&mut self, range: &Range, at: u64, len: usize, out: &mut Vec<u8>) -> bool;

    /// Places bytes of a peer's store in our memory, from `at` on within `range`. False, and
    /// nothing is written, where the range is not, or no longer, within registered memory.
    fn write(&mut self, range: &Range, at: u64, bytes: &[u8]) -> bool;

    /// Places bytes that our get of that number asked for, from `at` on.
    fn fetched(&mut self, number: u32, at: u64, bytes: &[u8]);
}

/// What came of a message that belongs to a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Nothing to be handled, yet.
    Nothing,
    /// All bytes of a peer's store are in place: the request is to be handled now.
    Stored(Stored),
    /// All bytes of our get of that number are in place.
    Fetched(u32),
    /// That store of ours was refused: its memory is not registered there, or not so long.
    StoreRefused(Stored),
    /// Our get of that range was refused.
    GetRefused(Range),
}

/// A request with bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Where they are.
    pub range: Range,
    /// Index into the handler table.
    pub handler: u8,
    /// Its words; 0 beyond those that were sent.
    pub words: [u64; MAX_WORDS],
    /// How many were sent.
    pub word_count: u8,
    /// Where dials are turned: when it departed.
    pub departed: Option<Departed>,
}

impl Stored {
    /// The words that were sent.
    pub fn words_sent(&self) -> &[u64] {
        &self.words[..usize::from(self.word_count).min(MAX_WORDS)]
    }
}

/// The peer sent what belongs to no transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stray;

/// A store of ours on its way into the order.
#[derive(Debug)]
pub struct Store {
    pub request: Stored,
    next: u64,
}

impl Store {
    pub fn new(range: Range, handler: u8, words: &[u64], departed: Option<Departed>) -> Self {
        let word_count = words.len().min(MAX_WORDS) as u8;
        let words = core::array::from_fn(|at| words.get(at).copied().unwrap_or(0));
        Self { request: Stored { range, handler, words, word_count, departed }, next: 0 }
    }

    /// The bytes that go out next: from where, and how many.
    pub fn piece(&self) -> (u64, usize) {
        let most = match self.next {
            0 => longest_beginning(self.request.words_sent().len()),
            _ => LONGEST_PIECE,
        };
        piece(&self.request.range, self.next, most - stamp_len(self.request.departed))
    }
}

/// What the peer asked for, on its way into the order.
#[derive(Debug)]
pub struct Answer {
    pub range: Range,
    next: u64,
    /// Whether there is such memory, where that was the question.
    pub has: Option<bool>,
    /// Where dials are turned: when it departs.
    pub departed: Option<Departed>,
}

impl Answer {
    /// The bytes that go out next: from where, and how many.
    pub fn piece(&self) -> (u64, usize) {
        piece(&self.range, self.next, LONGEST_PIECE - stamp_len(self.departed))
    }
}

fn stamp_len(departed: Option<Departed>) -> usize {
    if departed.is_some() { STAMP_LEN } else { 0 }
}

fn piece(range: &Range, next: u64, most: usize) -> (u64, usize) {
    (next, (range.len - next).min(most as u64) as usize)
}

/// What a peer asks for.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub range: Range,
    /// Whether there is such memory, where that is the question.
    pub has: Option<bool>,
}

/// What a transfer has come to with a message whose bytes are placed, and what is to be done then.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Stored(Stored),
    Refuse(Stored),
    Asked(Asked),
    Fetched(Range),
    Refused(Event),
}

impl Step {
    /// The bytes that are moved with it, as far as a program asked for them.
    pub fn len(&self) -> usize {
        let len = match self {
            Self::Stored(Stored { range, .. }) | Self::Fetched(range) => range.len,
            Self::Refuse(Stored { range, .. }) => range.len,
            Self::Refused(Event::StoreRefused(refused)) => return size_of_val(refused.words_sent()),
            Self::Asked(_) | Self::Refused(_) => 0,
        };
        len as usize
    }
}

/// A request that waits for the bytes of a store before it.
#[derive(Debug)]
pub enum Waiting {
    Store(Store),
    /// As [`datagram::write`](crate::frame::datagram::write) left it.
    Message(Kind, Vec<u8>),
}

/// Who has a message to put into the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    Requests,
    Answers,
}

/// A get of ours, or a store of the peer's, whose bytes come.
#[derive(Debug)]
struct Coming {
    range: Range,
    placed: u64,
}

impl Coming {
    /// Where the next bytes belong. `None` where so many do not.
    fn place(&self, len: usize) -> Option<u64> {
        (len as u64 <= self.range.len - self.placed).then_some(self.placed)
    }

    fn is_complete(&self) -> bool {
        self.placed == self.range.len
    }
}

#[derive(Debug)]
struct Arriving {
    request: Stored,
    coming: Coming,
    is_refused: bool,
}

/// What became of a store of the peer's.
pub enum Arrival {
    Incomplete,
    Complete(Stored),
    Refused(Stored),
}

/// The transfers of a connection.
#[derive(Debug, Default)]
pub struct Transfers {
    count: u32,
    /// Requests in their order, the first of them a store, if there is any.
    waiting: VecDeque<Waiting>,
    answers: VecDeque<Answer>,
    answered_last: bool,
    gets: VecDeque<Coming>,
    arriving: Option<Arriving>,
}

impl Transfers {
    /// A number for a transfer of ours.
    pub fn number(&mut self) -> u32 {
        self.count = self.count.wrapping_add(1);
        self.count
    }

    /// Whether a request has to wait until those before it are in the order.
    #[inline]
    pub fn are_requests_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether nothing waits to be put into the order.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.answers.is_empty()
    }

    /// Requests that are not, or not wholly, in the order.
    pub fn requests_waiting(&self) -> usize {
        self.waiting.len()
    }

    pub fn wait(&mut self, request: Waiting) {
        self.waiting.push_back(request);
    }

    /// Bytes that were asked for with a get.
    pub fn expect(&mut self, range: Range) {
        self.gets.push_back(Coming { range, placed: 0 });
    }

    /// Whose turn it is to put a message into the order: one each, where both have any.
    pub fn turn(&self) -> Option<Turn> {
        match (self.waiting.is_empty(), self.answers.is_empty()) {
            (true, true) => None,
            (false, true) => Some(Turn::Requests),
            (true, false) => Some(Turn::Answers),
            (false, false) if self.answered_last => Some(Turn::Requests),
            (false, false) => Some(Turn::Answers),
        }
    }

    /// The other one, where it has something as well.
    pub fn other(&self, turn: Turn) -> Option<Turn> {
        match turn {
            Turn::Requests => (!self.answers.is_empty()).then_some(Turn::Answers),
            Turn::Answers => (!self.waiting.is_empty()).then_some(Turn::Requests),
        }
    }

    pub fn first_waiting(&self) -> Option<&Waiting> {
        self.waiting.front()
    }

    pub fn first_answer(&self) -> Option<&Answer> {
        self.answers.front()
    }

    /// A waiting message is in the order, or so many more bytes of a store: gives it back once
    /// it is wholly there.
    pub fn requested(&mut self, len: usize) -> Option<Waiting> {
        self.answered_last = false;
        if let Some(Waiting::Store(store)) = self.waiting.front_mut() {
            store.next += len as u64;
            if store.next < store.request.range.len {
                return None;
            }
        }
        self.waiting.pop_front()
    }

    /// So many more bytes of the first answer are in the order. Whether they were the last.
    pub fn answered(&mut self, len: usize) -> bool {
        self.answered_last = true;
        let Some(answer) = self.answers.front_mut() else { return false };
        answer.next += len as u64;
        let is_whole = answer.next == answer.range.len;
        if is_whole {
            self.answers.pop_front();
        }
        is_whole
    }

    /// The first answer is that there is none.
    pub fn refuse(&mut self) {
        self.answered_last = true;
        self.answers.pop_front();
    }

    /// The peer asks for bytes; of a window of requests it may have none left for that.
    pub fn asked(&mut self, asked: Asked, departed: Option<Departed>, window: u32) -> Result<(), Stray> {
        if self.answers.len() >= window as usize {
            return Err(Stray);
        }
        let Asked { range, has } = asked;
        self.answers.push_back(Answer { range, next: 0, has, departed });
        Ok(())
    }

    /// A store of the peer's begins.
    pub fn begin(
        &mut self,
        request: Stored,
        bytes: &[u8],
        memories: &mut impl Memories,
    ) -> Result<Arrival, Stray> {
        // An empty beginning is that of an empty store: rows end.
        if self.arriving.is_some() || bytes.is_empty() != (request.range.len == 0) {
            return Err(Stray);
        }
        let coming = Coming { range: request.range, placed: 0 };
        self.arriving = Some(Arriving { request, coming, is_refused: false });
        self.arrive(request.range.number.into(), bytes, memories)
    }

    /// More bytes of it.
    pub fn arrive(
        &mut self,
        number: u64,
        bytes: &[u8],
        memories: &mut impl Memories,
    ) -> Result<Arrival, Stray> {
        let Some(Arriving { request, coming, is_refused }) = &mut self.arriving else { return Err(Stray) };
        let at = coming.place(bytes.len()).ok_or(Stray)?;
        if u64::from(coming.range.number) != number {
            return Err(Stray);
        }
        if !*is_refused {
            *is_refused = !memories.write(&coming.range, at, bytes);
        }
        coming.placed += bytes.len() as u64;
        if !coming.is_complete() {
            return Ok(Arrival::Incomplete);
        }
        let arrival = if *is_refused { Arrival::Refused(*request) } else { Arrival::Complete(*request) };
        self.arriving = None;
        Ok(arrival)
    }

    /// Bytes of the oldest get of ours, which comes back with the last ones.
    pub fn fetched(
        &mut self,
        number: u64,
        bytes: &[u8],
        memories: &mut impl Memories,
    ) -> Result<Option<Range>, Stray> {
        let Some(coming) = self.gets.front_mut() else { return Err(Stray) };
        let Range { number: expected, len, .. } = coming.range;
        let at = coming.place(bytes.len()).ok_or(Stray)?;
        if u64::from(expected) != number || bytes.is_empty() != (len == 0) {
            return Err(Stray);
        }
        memories.fetched(expected, at, bytes);
        coming.placed += bytes.len() as u64;
        if !coming.is_complete() {
            return Ok(None);
        }
        Ok(self.gets.pop_front().map(|coming| coming.range))
    }

    /// The peer refuses. Answers to gets come in order, so that of a get is one to the oldest.
    pub fn refused(&mut self, request: Stored) -> Result<Event, Stray> {
        let range = request.range;
        match self.gets.iter().position(|coming| coming.range.number == range.number) {
            None => Ok(Event::StoreRefused(request)),
            Some(0) => {
                let asked = self.gets.pop_front().map(|coming| coming.range);
                if asked == Some(range) { Ok(Event::GetRefused(range)) } else { Err(Stray) }
            }
            Some(_) => Err(Stray),
        }
    }

    /// Whether bytes of our store of that number are still to be taken.
    pub fn is_waiting(&self, number: u32) -> bool {
        self.waiting
            .iter()
            .any(|waiting| matches!(waiting, Waiting::Store(store) if store.request.range.number == number))
    }

    /// Nothing that waits is sent.
    pub fn forget(&mut self) {
        self.waiting.clear();
        self.answers.clear();
    }

    /// Memory for what waits.
    pub fn memory_bytes(&self) -> usize {
        let messages = self.waiting.iter().map(|waiting| match waiting {
            Waiting::Store(_) => 0,
            Waiting::Message(_, bytes) => bytes.capacity(),
        });
        messages.sum::<usize>()
            + self.waiting.capacity() * size_of::<Waiting>()
            + self.answers.capacity() * size_of::<Answer>()
            + self.gets.capacity() * size_of::<Coming>()
    }
}
