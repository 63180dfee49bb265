//! The state of a rank that handlers work on, and the handlers.

use crate::loss;
use crate::traffic::Traffic;
use netdyno_protocol::global::collective::Collectives;
use netdyno_protocol::global::initiator::Initiator;
use netdyno_protocol::global::message::{self, Operation, Outcome, Reply, Request, TreeMessage};
use netdyno_protocol::global::{Refusal, Segments, target};
use netdyno_stack::am::{self, Handlers, Loss, Memory, PeerId, Refused, Remote, Stored};
use std::collections::HashMap;

/// Indices of the handlers of requests.
pub(crate) const OPERATE: u8 = 0;
pub(crate) const TREE: u8 = 1;
pub(crate) const KEY: u8 = 2;
pub(crate) const PING: u8 = 3;
pub(crate) const LEAVE: u8 = 4;
pub(crate) const LOST: u8 = 5;
/// Index of the handler of bulk stores. The second word says whether the bytes count as stored.
pub(crate) const STORED: u8 = 0;
/// Index of the handler of bulk gets.
pub(crate) const FETCHED: u8 = 0;
/// Indices of the handlers of replies.
const OPERATED: u8 = 0;
const KEY_TOLD: u8 = 1;

/// A segment of this rank, by its number. Numbers are not given out again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Segment(pub(crate) u32);

impl Segment {
    /// Returns the number of the segment, for a [`GlobalPointer`](crate::GlobalPointer).
    pub fn number(self) -> u32 {
        self.0
    }
}

/// The segments of this rank; `None` once freed.
#[derive(Debug, Default)]
pub(crate) struct Memories(pub Vec<Option<Memory>>);

impl Memories {
    pub fn get(&self, segment: u32) -> Option<&Memory> {
        self.0.get(segment as usize)?.as_ref()
    }
}

impl Segments for Memories {
    fn len(&self, segment: u32) -> Option<u64> {
        self.get(segment).map(|memory| memory.len() as u64)
    }

    fn read(&self, segment: u32, offset: u64, into: &mut [u8]) {
        // The range was checked.
        let read = self.get(segment).map(|memory| memory.read(offset as usize, into));
        debug_assert!(matches!(read, Some(Ok(()))));
    }

    fn write(&mut self, segment: u32, offset: u64, from: &[u8]) {
        // The range was checked.
        let written = self.get(segment).map(|memory| memory.write(offset as usize, from));
        debug_assert!(matches!(written, Some(Ok(()))));
    }
}

/// The reason why the job cannot go on, as a handler has learnt it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stop {
    /// This rank broke the protocol.
    Misbehaved(u32),
    /// Another rank has lost this one.
    Lost(u32, Loss),
}

/// A question for the key of a segment.
#[derive(Debug)]
pub(crate) struct KeyQuestion {
    /// The rank that has the segment.
    pub rank: u32,
    /// The key, or `None` if there is no such segment.
    pub answer: Option<Option<Vec<u8>>>,
}

/// The state of a rank.
#[derive(Debug)]
pub(crate) struct State {
    pub rank: u32,
    pub memories: Memories,
    pub initiator: Initiator,
    pub collectives: Collectives,
    /// Bytes that stores have written into segments of this rank, and that no sync has taken yet.
    pub stored: u64,
    /// The question for a key that waits for its answer, or has it.
    pub key: Option<KeyQuestion>,
    /// Memory of other ranks, by rank and segment.
    pub attached: HashMap<(u32, u32), Remote>,
    /// Whether each rank has finished.
    pub has_left: Vec<bool>,
    /// Whether any other rank has finished.
    pub has_any_left: bool,
    /// Present once a handler has learnt that the job cannot go on.
    pub stop: Option<Stop>,
    pub traffic: Traffic,
    /// The most bytes of a reply to any rank. The transport of the rank may take fewer.
    longest_reply: usize,
    /// The bytes of the reply to a get.
    out: Vec<u8>,
}

impl State {
    pub fn new(rank: u32, ranks: u32, longest_reply: usize) -> Self {
        Self {
            rank,
            memories: Memories::default(),
            initiator: Initiator::new(rank),
            collectives: Collectives::new(rank, ranks),
            stored: 0,
            key: None,
            attached: HashMap::new(),
            has_left: vec![false; ranks as usize],
            has_any_left: false,
            stop: None,
            traffic: Traffic::default(),
            longest_reply,
            out: Vec::new(),
        }
    }

    /// Returns the rank of a peer. Peers were connected in the order of their ranks.
    #[inline(always)]
    pub fn rank_of(&self, peer: PeerId) -> u32 {
        let index = peer.index() as u32;
        if index < self.rank { index } else { index + 1 }
    }

    /// Carries out an operation on a segment of this rank. A get of more bytes than `longest` is refused.
    #[inline(always)]
    pub fn serve<'a>(
        &mut self,
        words: message::Words,
        payload: &[u8],
        longest: usize,
        out: &'a mut Vec<u8>,
    ) -> Reply<'a> {
        let Ok(request) = Request::parse(words, payload) else {
            return Reply {
                ticket: message::ticket(words[0]),
                outcome: Outcome::Refused(Refusal::Malformed),
            };
        };
        let outcome = target::serve(&request, &mut self.memories, longest, out);
        if let (Operation::Store(data), Outcome::Written) = (request.operation, outcome) {
            self.stored += data.as_slice().len() as u64;
        }
        Reply { ticket: request.ticket, outcome }
    }

    /// Takes a reply to an operation of this rank.
    #[inline(always)]
    pub fn take(&mut self, from: u32, words: message::Words, payload: &[u8]) {
        let reply = Reply::parse(words, payload).ok();
        let taken = reply.and_then(|reply| self.initiator.take(from, reply, &mut self.memories).ok());
        if taken.is_none() {
            self.stop = Some(Stop::Misbehaved(from));
        }
    }

    /// Ends an operation whose bytes the transport has moved or refused.
    fn complete(&mut self, from: u32, ticket: u32, refused: Option<Refusal>) {
        if self.initiator.complete(from, ticket, refused).is_err() {
            self.stop = Some(Stop::Misbehaved(from));
        }
    }
}

/// Returns the handlers of a rank.
pub(crate) fn handlers() -> Handlers<State> {
    let mut handlers = Handlers::new();
    handlers.on_request(OPERATE, operate);
    handlers.on_request(TREE, |state: &mut State, request| {
        state.traffic.receive();
        let from = state.rank_of(request.peer());
        let message = TreeMessage::parse(request.words(), request.payload()).ok();
        if message.and_then(|message| state.collectives.take(from, &message).ok()).is_none() {
            state.stop = Some(Stop::Misbehaved(from));
        }
    });
    handlers.on_request(KEY, tell_key);
    handlers.on_request(PING, |_, _| {});
    handlers.on_request(LEAVE, |state: &mut State, request| {
        let from = state.rank_of(request.peer());
        state.has_left[from as usize] = true;
        state.has_any_left = true;
    });
    handlers.on_request(LOST, |state: &mut State, request| {
        let from = state.rank_of(request.peer());
        let lost = loss::read(request.words());
        let stop = match lost.filter(|(rank, _)| (*rank as usize) < state.has_left.len()) {
            // A rank that counts this one as lost is about to close its endpoint, and a rank that has finished may be gone.
            Some((rank, _)) if rank == state.rank || state.has_left[rank as usize] => return,
            Some((rank, loss)) => Stop::Lost(rank, loss),
            None => Stop::Misbehaved(from),
        };
        state.stop.get_or_insert(stop);
    });
    handlers.on_reply(OPERATED, |state: &mut State, reply| {
        state.traffic.receive();
        let from = state.rank_of(reply.peer());
        state.take(from, reply.words(), reply.payload());
    });
    handlers.on_reply(KEY_TOLD, |state: &mut State, reply| {
        state.traffic.receive();
        let from = state.rank_of(reply.peer());
        match &mut state.key {
            Some(KeyQuestion { rank, answer: answer @ None }) if *rank == from => {
                *answer = Some((reply.words()[0] == 1).then(|| reply.payload().to_vec()));
            }
            _ => state.stop = Some(Stop::Misbehaved(from)),
        }
    });
    handlers.on_store(STORED, |state: &mut State, stored: Stored<'_>| {
        state.traffic.receive();
        let [ticket, counts, ..] = stored.words();
        if counts != 0 {
            state.stored += stored.bytes().len() as u64;
        }
        let (words, _) = Reply { ticket: ticket as u32, outcome: Outcome::Written }.encode();
        state.traffic.send(1, 0);
        stored.reply(OPERATED, [words[0]]);
    });
    handlers.on_fetched(FETCHED, |state: &mut State, fetched| {
        state.traffic.receive();
        let from = state.rank_of(fetched.peer());
        state.complete(from, fetched.words()[0] as u32, None);
    });
    handlers.on_refused(|state: &mut State, refused: Refused| {
        let rank = state.rank_of(refused.peer);
        state.attached.retain(|(owner, _), remote| *owner != rank || remote.memory() != refused.memory);
        state.complete(rank, refused.words[0] as u32, Some(Refusal::NoSuchSegment));
    });
    handlers
}

fn operate(state: &mut State, request: am::Request<'_>) {
    state.traffic.receive();
    let mut out = std::mem::take(&mut state.out);
    let reply = state.serve(request.words(), request.payload(), state.longest_reply, &mut out);
    match reply.encode() {
        (words, []) => answer(state, request, words),
        (words, bytes) => {
            state.traffic.send(1, bytes.len());
            // The other words of a reply with a payload are zero.
            if let Err((_, request)) = request.reply_medium(OPERATED, [words[0]], bytes) {
                let refused = Reply { outcome: Outcome::Refused(Refusal::Malformed), ..reply };
                request.reply(OPERATED, refused.encode().0);
            }
        }
    }
    state.out = out;
}

/// Replies without a payload. Words that were not sent are zero at the other side, so that two are mostly enough.
#[inline(always)]
fn answer(state: &mut State, request: am::Request<'_>, words: message::Words) {
    if let [first, value, 0, 0] = words {
        state.traffic.send(2, 0);
        request.reply(OPERATED, [first, value]);
    } else {
        state.traffic.send(words.len(), 0);
        request.reply(OPERATED, words);
    }
}

/// Tells the key of a segment: the first word of the reply is 1 and the payload is the key, or the word is 0.
fn tell_key(state: &mut State, request: am::Request<'_>) {
    state.traffic.receive();
    let segment = u32::try_from(request.words()[0]).ok();
    let key = segment.and_then(|segment| state.memories.get(segment)).map(Memory::key);
    match key {
        Some(key) => {
            state.traffic.send(1, key.len());
            if let Err((_, request)) = request.reply_medium(KEY_TOLD, [1], &key) {
                request.reply(KEY_TOLD, [0]);
            }
        }
        None => {
            state.traffic.send(1, 0);
            request.reply(KEY_TOLD, [0]);
        }
    }
}
