//! A rank in its job: its connections, its segments, and the way in which every call waits.

use crate::error::Error;
use crate::loss;
use crate::state::{LEAVE, LOST, PING, Segment, State, Stop};
use crate::traffic::Traffic;
use netdyno_job::launching::LAUNCHER_TIME;
use netdyno_protocol::global::initiator::Failure;
use netdyno_protocol::global::message::{SEGMENTS, Words};
use netdyno_protocol::global::{GlobalPointer, Refusal, Segments, check};
use netdyno_stack::am::{Endpoint, Loss, PeerId, PeerLost, PeerStatistics, RequestError, Strays};
use std::thread;
use std::time::{Duration, Instant};

/// The longest sleep of a call that waits.
const SLEEP_AT_MOST: Duration = Duration::from_millis(50);
/// The longest time in which a rank tells the others that it has lost one. A rank that makes calls takes the message at
/// once, and one that computes for longer learns less.
const TELLING_AT_MOST: Duration = Duration::from_secs(1);
/// The time between two polls of a rank that gives its launcher time to end it.
const LAUNCHER_STEP: Duration = Duration::from_millis(5);

/// A rank in its job. Other ranks access its segments while it makes calls; [`World::poll`] serves them without any
/// other effect. A rank that makes no call for the peer timeout counts as lost.
///
/// A world that is dropped without [`World::finish`] ends the job: every other rank gets [`Error::PeerLost`].
pub struct World {
    pub(crate) endpoint: Endpoint<State>,
    pub(crate) state: State,
    /// All ranks; `None` at the place of this one.
    pub(crate) neighbours: Vec<Option<PeerId>>,
    /// The most bytes in a message to any rank.
    pub(crate) piece: usize,
    pub(crate) ask_every: Duration,
    pub(crate) asked: Instant,
    /// Polls that find nothing, between two looks whether to ask.
    pub(crate) polls_per_ask: u32,
    pub(crate) polls_until_ask: u32,
    /// Whether a launcher has started this rank.
    pub(crate) has_launcher: bool,
    /// The error after which the job cannot go on.
    pub(crate) fatal: Option<Error>,
}

impl World {
    /// Returns the number of this rank, from 0.
    pub fn rank(&self) -> u32 {
        self.state.rank
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> u32 {
        self.neighbours.len() as u32
    }

    /// Returns what this rank has sent, received and waited for since it joined.
    pub fn traffic(&self) -> Traffic {
        self.state.traffic
    }

    /// Allocates a segment of `len` bytes, all zero. The call concerns this rank alone; ranks that allocate in the same
    /// order have the same numbers of segments. Other ranks may use the segment from now on.
    ///
    /// # Errors
    /// Returns `Memory` if the system provides no such memory.
    pub fn allocate(&mut self, len: usize) -> Result<Segment, Error> {
        let number = u32::try_from(self.state.memories.0.len()).ok().filter(|number| *number < SEGMENTS);
        let number =
            number.ok_or_else(|| Error::Memory(format!("a rank has {SEGMENTS} segments at most")))?;
        let memory = self.endpoint.allocate(len)?;
        self.state.memories.0.push(Some(memory));
        Ok(Segment(number))
    }

    /// Frees a segment. Operations of other ranks on it are refused from now on. Call a barrier first, if others may
    /// still use it.
    ///
    /// # Errors
    /// Returns `NoSuchSegment` if it was freed before.
    pub fn free(&mut self, segment: Segment) -> Result<(), Error> {
        let at = self.pointer(segment, 0);
        let memory = self.state.memories.0.get_mut(segment.0 as usize).and_then(Option::take);
        let id = memory.ok_or(Error::NoSuchSegment(at))?.id();
        Ok(self.endpoint.deregister(id)?)
    }

    /// Returns the pointer to a place in a segment of this rank.
    pub fn pointer(&self, Segment(segment): Segment, offset: u64) -> GlobalPointer {
        GlobalPointer { rank: self.state.rank, segment, offset }
    }

    /// Copies bytes of a segment of this rank into `into`, without any message.
    ///
    /// # Errors
    /// Returns `OutOfBounds` or `NoSuchSegment`.
    pub fn load(&self, segment: Segment, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        self.check_local(segment, offset, into.len())?;
        self.state.memories.read(segment.0, offset, into);
        Ok(())
    }

    /// Returns little-endian words of a segment of this rank, without any message. Each is read when the iterator comes to
    /// it. No word is stored meanwhile but by ranks that share the memory.
    ///
    /// # Errors
    /// Returns `OutOfBounds` or `NoSuchSegment`.
    pub fn words(
        &self,
        segment: Segment,
        offset: u64,
        words: usize,
    ) -> Result<impl ExactSizeIterator<Item = u64> + '_, Error> {
        let (at, len) = (self.pointer(segment, offset), (words as u64).saturating_mul(8));
        let refused = |refusal| Error::refused(Failure { at, len, refusal });
        let memory = self.state.memories.get(segment.0).ok_or_else(|| refused(Refusal::NoSuchSegment))?;
        let segment_len = memory.len() as u64;
        memory.words(offset as usize, words).map_err(|_| refused(Refusal::OutOfBounds { segment_len }))
    }

    /// Copies `from` into a segment of this rank, without any message.
    ///
    /// # Errors
    /// Returns `OutOfBounds` or `NoSuchSegment`.
    pub fn fill(&mut self, segment: Segment, offset: u64, from: &[u8]) -> Result<(), Error> {
        self.check_local(segment, offset, from.len())?;
        self.state.memories.write(segment.0, offset, from);
        Ok(())
    }

    pub(crate) fn check_local(&self, segment: Segment, offset: u64, len: usize) -> Result<(), Error> {
        let (at, len) = (self.pointer(segment, offset), len as u64);
        let refused = |refusal: Refusal| Error::refused(Failure { at, len, refusal });
        check(&self.state.memories, segment.0, offset, len).map_err(refused)
    }

    /// Serves the operations of other ranks that have arrived. Never waits.
    ///
    /// # Errors
    /// Returns an error if the job cannot go on.
    pub fn poll(&mut self) -> Result<(), Error> {
        self.turn().map(|_| ())
    }

    /// Serves the operations of other ranks that have arrived. If none has, passes time as the wait policy says, at most
    /// `at_most`. Returns whether one had.
    ///
    /// # Errors
    /// Returns an error if the job cannot go on.
    #[inline(always)]
    pub fn serve(&mut self, at_most: Duration) -> Result<bool, Error> {
        let has_served = self.turn()? > 0;
        if !has_served && !at_most.is_zero() {
            self.idle(at_most)?;
        }
        Ok(has_served)
    }

    /// Passes time after a poll that found nothing. Asks the ranks whether they live, if that is due. Reads the clock
    /// after several polls only, because a reading takes as long as a poll.
    #[inline(always)]
    fn idle(&mut self, at_most: Duration) -> Result<(), Error> {
        self.polls_until_ask = match self.polls_until_ask.checked_sub(1) {
            Some(left) => left,
            None => {
                self.ask()?;
                self.polls_per_ask
            }
        };
        self.endpoint.idle(at_most);
        Ok(())
    }

    /// Returns the counters of the connection to a rank, if its transport keeps them.
    pub fn statistics(&self, rank: u32) -> Option<(PeerStatistics, Strays)> {
        let peer = self.neighbours.get(rank as usize).copied().flatten()?;
        Some((self.endpoint.statistics(peer)?, self.endpoint.strays()))
    }

    /// Ends this rank's part in the job. All ranks call it, after their last operation. Waits for this rank's operations
    /// and for all ranks.
    ///
    /// # Errors
    /// Returns the error of an operation that no sync has reported, or that of a lost rank.
    pub fn finish(mut self) -> Result<(), Error> {
        let synced = [self.sync(), self.all_store_sync()];
        self.check()?;
        for rank in 0..self.ranks() {
            // A rank that has finished and is gone needs no farewell.
            if self.neighbours[rank as usize].is_some() && !self.state.has_left[rank as usize] {
                match self.post(rank, LEAVE, [0; 4], &[]) {
                    Err(Error::PeerLost { rank, .. }) if self.state.has_left[rank as usize] => {
                        self.fatal = None
                    }
                    sent => sent?,
                }
            }
        }
        synced.into_iter().collect()
    }

    pub(crate) fn neighbour(&self, rank: u32) -> Result<PeerId, Error> {
        let ranks = self.ranks();
        self.neighbours.get(rank as usize).copied().flatten().ok_or(Error::NoSuchRank { rank, ranks })
    }

    /// Sends a request to another rank, and polls until there is room for it.
    #[inline(always)]
    pub(crate) fn post(&mut self, rank: u32, handler: u8, words: Words, payload: &[u8]) -> Result<(), Error> {
        let peer = self.neighbour(rank)?;
        loop {
            self.check()?;
            let Self { endpoint, state, .. } = self;
            let sent = if payload.is_empty() {
                endpoint.request(state, peer, handler, words).map_err(RequestError::Lost)
            } else {
                endpoint.request_medium(state, peer, handler, words, payload)
            };
            match sent {
                Ok(()) => {
                    state.traffic.send(words.len(), payload.len());
                    return Ok(());
                }
                // Another rank is gone, and the request was not sent.
                Err(RequestError::Lost(lost)) if lost.peer != peer => self.note(lost)?,
                Err(RequestError::Lost(lost)) => return Err(self.lose(rank, lost)),
                Err(error) => return Err(Error::Unreachable { rank, reason: error.to_string() }),
            }
        }
    }

    /// Polls until `is_over`.
    #[inline(always)]
    pub(crate) fn wait(&mut self, is_over: impl Fn(&State) -> bool) -> Result<(), Error> {
        while !is_over(&self.state) {
            self.wait_once()?;
        }
        self.check()
    }

    /// Polls, and passes time if nothing has arrived.
    #[inline(always)]
    pub(crate) fn wait_once(&mut self) -> Result<(), Error> {
        self.serve(SLEEP_AT_MOST).map(|_| ())
    }

    #[inline(always)]
    fn turn(&mut self) -> Result<usize, Error> {
        self.check()?;
        let handled = match self.endpoint.poll(&mut self.state) {
            Ok(handled) => handled,
            Err(lost) => {
                self.note(lost)?;
                // The poll may have handled what is awaited, too.
                1
            }
        };
        self.check()?;
        Ok(handled)
    }

    /// Sends an empty request to each rank to which none is outstanding, because a connection notices the silence of a
    /// peer only while one is.
    fn ask(&mut self) -> Result<(), Error> {
        if self.asked.elapsed() < self.ask_every {
            return Ok(());
        }
        self.asked = Instant::now();
        for rank in 0..self.ranks() {
            let Some(peer) = self.neighbours[rank as usize] else { continue };
            if !self.state.has_left[rank as usize] && self.endpoint.in_flight(peer) == 0 {
                // If the window is full, a request is outstanding after all.
                if let Err(RequestError::Lost(lost)) = self.endpoint.try_request(peer, PING, []) {
                    self.note(lost)?;
                }
            }
        }
        Ok(())
    }

    /// Takes the loss of a rank, which ends the job unless that rank has finished and this one wants nothing of it.
    fn note(&mut self, lost: PeerLost) -> Result<(), Error> {
        let rank = self.state.rank_of(lost.peer);
        let is_missed = !self.state.has_left[rank as usize] || self.state.initiator.waits_for(rank);
        if is_missed { Err(self.lose(rank, lost)) } else { Ok(()) }
    }

    /// Ends the job at this rank because of a lost one.
    #[cold]
    pub(crate) fn lose(&mut self, rank: u32, lost: PeerLost) -> Error {
        self.check().err().unwrap_or_else(|| self.end_by_loss(rank, lost))
    }

    /// Keeps the error for later calls, and tells the other ranks of the loss. They would only see that this rank
    /// closes its endpoint, and would take it for the lost one. So a rank that was told tells the others, too.
    fn end_by_loss(&mut self, rank: u32, lost: PeerLost) -> Error {
        let error = self.fail(Error::PeerLost { rank, lost });
        if !self.state.has_left[rank as usize] {
            self.tell_of_loss(rank, lost.loss);
            if self.has_launcher {
                self.await_launcher();
            }
        }
        error
    }

    /// Gives the launcher time to end this rank. A launcher ends all ranks once one has failed, and names that one. So the
    /// program reports the loss only if the launcher knows of no failure. The others learn of the loss meanwhile.
    fn await_launcher(&mut self) {
        let until = Instant::now() + LAUNCHER_TIME;
        while Instant::now() < until {
            // Other losses change nothing now.
            let _ = self.endpoint.poll(&mut self.state);
            // Leaves the processor to the launcher, whatever the wait policy is.
            thread::sleep(LAUNCHER_STEP);
        }
    }

    /// Ends the job at this rank because another one has broken the protocol. Keeps the error, and tells the other ranks.
    pub(crate) fn end_by_misuse(&mut self, rank: u32) -> Error {
        let error = self.fail(Error::Misbehaved(rank));
        self.tell_of_loss(rank, Loss::Misbehaved);
        error
    }

    fn tell_of_loss(&mut self, lost_rank: u32, loss: Loss) {
        let words = loss::written(lost_rank, loss);
        let until = Instant::now() + TELLING_AT_MOST;
        let mut untold: Vec<u32> = (0..self.ranks()).filter(|&rank| rank != lost_rank).collect();
        loop {
            // A rank is told, or it is lost itself, or its window is full.
            untold.retain(|&rank| {
                let peer = self.neighbours[rank as usize].filter(|_| !self.state.has_left[rank as usize]);
                peer.is_some_and(|peer| {
                    matches!(self.endpoint.try_request(peer, LOST, words), Err(RequestError::Full))
                })
            });
            if untold.is_empty() || Instant::now() > until {
                return;
            }
            // A poll makes room. Other losses change nothing now.
            if !matches!(self.endpoint.poll(&mut self.state), Ok(1..)) {
                self.endpoint.idle(SLEEP_AT_MOST);
            }
        }
    }

    pub(crate) fn fail(&mut self, error: Error) -> Error {
        self.fatal.get_or_insert(error).clone()
    }

    /// Returns the error after which the job cannot go on.
    #[inline(always)]
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        if self.fatal.is_none() && self.state.stop.is_none() { Ok(()) } else { self.fatal_error() }
    }

    /// Kept out of line, so that each operation pays for two comparisons only.
    #[cold]
    #[inline(never)]
    fn fatal_error(&mut self) -> Result<(), Error> {
        match self.state.stop.filter(|_| self.fatal.is_none()) {
            Some(Stop::Misbehaved(rank)) => _ = self.end_by_misuse(rank),
            Some(Stop::Lost(rank, loss)) => {
                if let Ok(peer) = self.neighbour(rank) {
                    let unresolved = self.endpoint.in_flight(peer);
                    self.end_by_loss(rank, PeerLost { peer, loss, unresolved, not_sent: 0 });
                }
            }
            None => {}
        }
        self.fatal.clone().map_or(Ok(()), Err)
    }
}
