//! Bulk transfers: which bytes are sent next, for stores and gets of either side, and where arriving bytes
//! belong.
//!
//! A connection delivers in order, so a transfer is a sequence of messages without holes. The first message
//! of a store says where its bytes belong. The request is handled when the last byte is in place. Bytes are
//! read from memory only when the network has room for them. Replies and acknowledgements do not wait for
//! these bytes.
//!
//! A message is queued when it has its place in the order of the connection, in `sending`. The requests and
//! answers here wait to be queued.

use crate::dial::timing::Departed;
use crate::frame::datagram::{Kind, LONGEST_PIECE, STAMP_LEN, longest_beginning};
use crate::frame::slot::MAX_WORDS;
use crate::frame::transfer::Range;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The memory that the bytes of transfers come from and go to. A program lends it to its connections.
pub trait Memories {
    /// Appends `len` bytes of this side's store of that number to `out`, from offset `at` on. Returns false
    /// if they are not available now.
    fn source(&mut self, number: u32, at: u64, len: usize, out: &mut Vec<u8>) -> bool;

    /// Reports whether the memory of that key is registered.
    fn has(&mut self, key: &[u8]) -> bool;

    /// Appends `len` bytes of this side's memory to `out`, from offset `at` on within `range`. Returns false
    /// if the range is not, or no longer, within registered memory.
    fn read(&mut self, range: &Range, at: u64, len: usize, out: &mut Vec<u8>) -> bool;

    /// Writes bytes of a peer's store to this side's memory, from offset `at` on within `range`. Returns
    /// false, and writes nothing, if the range is not, or no longer, within registered memory.
    fn write(&mut self, range: &Range, at: u64, bytes: &[u8]) -> bool;

    /// Writes bytes that this side's get of that number asked for, from offset `at` on.
    fn fetched(&mut self, number: u32, at: u64, bytes: &[u8]);
}

/// The outcome of a message that belongs to a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Nothing has to be handled yet.
    Nothing,
    /// All bytes of a peer's store are in place. The request must be handled now.
    Stored(Stored),
    /// All bytes of this side's get of that number are in place.
    Fetched(u32),
    /// The peer refused this side's store: its memory is not registered there, or is too short.
    StoreRefused(Stored),
    /// The peer refused this side's get of that range.
    GetRefused(Range),
}

/// The request of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The range of its bytes.
    pub range: Range,
    /// Index into the handler table.
    pub handler: u8,
    /// The words; 0 beyond those that were sent.
    pub words: [u64; MAX_WORDS],
    /// The number of words that were sent.
    pub word_count: u8,
    /// The departure, on a dialled link.
    pub departed: Option<Departed>,
}

impl Stored {
    /// Returns the words that were sent.
    pub fn words_sent(&self) -> &[u64] {
        &self.words[..usize::from(self.word_count).min(MAX_WORDS)]
    }
}

/// The peer sent a message that belongs to no transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stray;

/// A store of this side that is not entirely queued.
#[derive(Debug)]
pub struct Store {
    pub request: Stored,
    /// The offset of the first byte that is not queued.
    next: u64,
}

impl Store {
    pub fn new(range: Range, handler: u8, words: &[u64], departed: Option<Departed>) -> Self {
        let word_count = words.len().min(MAX_WORDS) as u8;
        let words = core::array::from_fn(|at| words.get(at).copied().unwrap_or(0));
        Self { request: Stored { range, handler, words, word_count, departed }, next: 0 }
    }

    /// Returns the offset and the number of the bytes to send next.
    pub fn piece(&self) -> (u64, usize) {
        let most = match self.next {
            0 => longest_beginning(self.request.words_sent().len()),
            _ => LONGEST_PIECE,
        };
        piece(&self.request.range, self.next, most - stamp_len(self.request.departed))
    }
}

/// The answer to a get of the peer that is not entirely queued, or to its question about a memory.
#[derive(Debug)]
pub struct Answer {
    pub range: Range,
    /// The offset of the first byte that is not queued.
    next: u64,
    /// Whether the memory is registered, if the peer asked that.
    pub has: Option<bool>,
    /// The departure, on a dialled link.
    pub departed: Option<Departed>,
}

impl Answer {
    /// Returns the offset and the number of the bytes to send next.
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

/// A get of the peer, or its question about a memory.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub range: Range,
    /// Whether the memory is registered, if the peer asks that.
    pub has: Option<bool>,
    /// The bytes of memory that the answer has, on a dialled link; none if the get will be refused.
    pub bytes: usize,
}

/// The next step of a transfer after a message whose bytes are in place.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Stored(Stored),
    Refuse(Stored),
    Asked(Asked),
    Fetched(Range),
    Refused(Event),
}

impl Step {
    /// Returns the number of bytes that move with the step, as far as a program asked for them.
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

/// A request that waits: a store, or a message behind a store.
#[derive(Debug)]
pub enum Waiting {
    Store(Store),
    /// A complete message from [`datagram::write`](crate::frame::datagram::write).
    Message(Kind, Vec<u8>),
}

/// The two kinds of messages that take turns to be queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    Requests,
    Answers,
}

/// A get of this side, or a store of the peer, whose bytes are arriving.
#[derive(Debug)]
struct Coming {
    range: Range,
    placed: u64,
}

impl Coming {
    /// Returns the offset of the next `len` bytes. Returns `None` if the transfer has fewer left.
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

/// The state of a store of the peer after one of its messages.
pub enum Arrival {
    Incomplete,
    Complete(Stored),
    Refused(Stored),
}

/// The transfers of a connection.
#[derive(Debug, Default)]
pub struct Transfers {
    count: u32,
    /// The waiting requests in order. The first, if there is any, is a store.
    waiting: VecDeque<Waiting>,
    answers: VecDeque<Answer>,
    answered_last: bool,
    gets: VecDeque<Coming>,
    arriving: Option<Arriving>,
}

impl Transfers {
    /// Returns a new number for a transfer of this side.
    pub fn number(&mut self) -> u32 {
        self.count = self.count.wrapping_add(1);
        self.count
    }

    /// Reports whether a new request must wait, because earlier ones are not queued.
    #[inline]
    pub fn are_requests_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Reports whether nothing waits to be queued.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.answers.is_empty()
    }

    /// Reports whether a store of the peer, or a get of this side, has begun and is not complete.
    #[inline]
    pub fn are_bytes_arriving(&self) -> bool {
        self.arriving.is_some() || !self.gets.is_empty()
    }

    /// Returns the number of requests that are not, or not entirely, queued.
    pub fn requests_waiting(&self) -> usize {
        self.waiting.len()
    }

    pub fn wait(&mut self, request: Waiting) {
        self.waiting.push_back(request);
    }

    /// Notes a get of this side, whose bytes will arrive.
    pub fn expect(&mut self, range: Range) {
        self.gets.push_back(Coming { range, placed: 0 });
    }

    /// Returns the kind of the message to be queued next. If both kinds wait, they alternate.
    pub fn turn(&self) -> Option<Turn> {
        match (self.waiting.is_empty(), self.answers.is_empty()) {
            (true, true) => None,
            (false, true) => Some(Turn::Requests),
            (true, false) => Some(Turn::Answers),
            (false, false) if self.answered_last => Some(Turn::Requests),
            (false, false) => Some(Turn::Answers),
        }
    }

    /// Returns the other kind, if such a message waits as well.
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

    /// Notes that the first waiting message, or `len` more bytes of the first store, were queued. Returns the
    /// request once all of it is.
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

    /// Notes that `len` more bytes of the first answer were queued. Returns whether they were the last.
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

    /// Drops the first answer, because its request is refused.
    pub fn refuse(&mut self) {
        self.answered_last = true;
        self.answers.pop_front();
    }

    /// Takes a get of the peer, or its question about a memory.
    ///
    /// # Errors
    /// Returns [`Stray`] if the peer's window has no room for another request.
    pub fn asked(&mut self, asked: Asked, departed: Option<Departed>, window: u32) -> Result<(), Stray> {
        if self.answers.len() >= window as usize {
            return Err(Stray);
        }
        let Asked { range, has, .. } = asked;
        self.answers.push_back(Answer { range, next: 0, has, departed });
        Ok(())
    }

    /// Takes the first message of a store of the peer.
    pub fn begin(
        &mut self,
        request: Stored,
        bytes: &[u8],
        memories: &mut impl Memories,
    ) -> Result<Arrival, Stray> {
        // Only an empty store may begin with no bytes, so that every transfer ends.
        if self.arriving.is_some() || bytes.is_empty() != (request.range.len == 0) {
            return Err(Stray);
        }
        let coming = Coming { range: request.range, placed: 0 };
        self.arriving = Some(Arriving { request, coming, is_refused: false });
        self.arrive(request.range.number.into(), bytes, memories)
    }

    /// Takes more bytes of that store.
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

    /// Takes bytes for the oldest get of this side. Returns the get after its last bytes.
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

    /// Takes a refusal. Gets are answered in order, so a refused get must be the oldest.
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

    /// Reports whether bytes of this side's store of that number are still to be read from memory.
    pub fn is_waiting(&self, number: u32) -> bool {
        self.waiting
            .iter()
            .any(|waiting| matches!(waiting, Waiting::Store(store) if store.request.range.number == number))
    }

    /// Drops the answers without sending them.
    pub fn forget_answers(&mut self) {
        self.answers.clear();
    }

    /// Drops the waiting requests and answers without sending them.
    pub fn forget(&mut self) {
        self.waiting.clear();
        self.answers.clear();
    }

    /// Returns the memory of the waiting messages, in bytes.
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
