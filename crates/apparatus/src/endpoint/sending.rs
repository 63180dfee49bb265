//! Sends and one-sided operations of an endpoint: each takes its overhead, gets its departure, and completes
//! when its setting says.

use super::{Counts, End, Endpoint, Operation};
use crate::abi::{self, Address};
use crate::account::Word;
use crate::between::Between;
use crate::guard::Provider;
use crate::hook::force::{Draft, Force};
use crate::hook::{inside, is_inside, spin_until};
use crate::page::Completion;
use crate::peers;
use crate::queue::HeldEnd;
use netdyno_clock::ticks;
use netdyno_protocol::dial::parameters::Latency;
use netdyno_protocol::dial::stamp::{Stamp, is_stamped};
use netdyno_protocol::dial::timing::Departed;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

/// The number of sends of an endpoint that are timed at first; later every `TIMED_EVERY`-th is timed.
const TIMED_AT_FIRST: u32 = 64;
const TIMED_EVERY: u32 = 16;
/// The failure of a program whose data the hook would take for its own.
const LIKE_STAMPS: &str = "the program's own data look like stamps: say --carrier arrival";

impl Endpoint {
    /// Sends a message under the setting in force. `data` is the program's data for the completion. `go`
    /// calls the provider, with the data that it gets or without any.
    pub(super) fn send(
        &self,
        operation: &Operation,
        data: Option<u64>,
        provider: &Provider<'_, isize>,
        mut go: impl FnMut(Option<u64>) -> isize,
    ) -> isize {
        let mut go = |data| provider.call(|| go(data));
        let bytes = operation.bytes;
        if !self.hook.ever_dials() {
            return self.send_undialled(bytes, || go(data));
        }
        if is_inside() {
            return go(data);
        }
        let mut go = |data| inside(|| go(data));
        let Some(force) = self.hook.force() else {
            let result = go(data);
            if result == 0 {
                self.count_sent(bytes);
            }
            return result;
        };
        if self.is_spared(operation.to) {
            return self.send_spared(bytes, data, go);
        }
        let Some(mut draft) = self.draft(force, bytes) else { return -abi::EAGAIN };
        let stamped = self.stamped(data, &draft);
        let is_timed = self.is_timed();
        if is_timed {
            draft.given = ticks::glance();
        }
        let (result, _) = go_stamped(data, stamped, &mut go);
        if is_timed {
            draft.taken = ticks::glance();
        }
        self.settle(force, draft, operation, result);
        if result == 0 {
            self.count_sent(bytes);
        }
        result
    }

    /// Sends a message where no setting dials anything, and counts it. Two threads that send at the same
    /// time may lose a count.
    #[inline]
    fn send_undialled(&self, bytes: usize, go: impl FnOnce() -> isize) -> isize {
        if self.is_sending.load(Relaxed) {
            return go();
        }
        self.is_sending.store(true, Relaxed);
        let result = go();
        self.is_sending.store(false, Relaxed);
        if result == 0 {
            self.count_sent(bytes);
        }
        result
    }

    /// Sends a message on a link that is not dialled, with a mark that tells the receiver so.
    fn send_spared(
        &self,
        bytes: usize,
        data: Option<u64>,
        mut go: impl FnMut(Option<u64>) -> isize,
    ) -> isize {
        let marked = self.with_stamp(data, Departed { at: 0, at_once: true }, true);
        let (result, is_marked) = go_stamped(data, marked, &mut go);
        if result == 0 {
            self.count_sent(bytes);
            self.hook.count(if is_marked { Word::Spared } else { Word::Unstamped }, 1);
        }
        result
    }

    /// Returns whether the link to that address is spared, that is, not dialled.
    fn is_spared(&self, to: Address) -> bool {
        let Some(between) = &self.hook.between else { return false };
        let mut spared = self.spared.lock().unwrap_or_else(PoisonError::into_inner);
        *spared.entry(to).or_insert_with(|| !self.is_dialled(between, to))
    }

    fn is_dialled(&self, between: &Between, to: Address) -> bool {
        let peers = self.peers.load(Relaxed);
        // SAFETY: by libfabric's rules an address vector outlives the endpoints that are bound to it.
        let address = if peers.is_null() { None } else { inside(|| unsafe { peers::address_of(peers, to) }) };
        match address.and_then(|address| peers::find(self.hook.folder, &address)) {
            Some(who) => between.dials(&self.hook.who, &who),
            None => {
                self.hook.fail("--between: a message goes to an address at which nobody has said to be");
                false
            }
        }
    }

    /// Starts a one-sided operation under the setting in force.
    pub fn act(
        &self,
        operation: &Operation,
        provider: &Provider<'_, isize>,
        go: impl FnOnce() -> isize,
    ) -> isize {
        let go = || provider.call(go);
        if is_inside() {
            return go();
        }
        let force = self.hook.force();
        let is_spared = force.is_some() && self.is_spared(operation.to);
        let draft = match force.filter(|_| !is_spared) {
            None => None,
            Some(force) => match self.draft(force, operation.bytes) {
                Some(draft) => Some((force, draft)),
                None => return -abi::EAGAIN,
            },
        };
        let result = inside(go);
        if let Some((force, draft)) = draft {
            self.settle(force, draft, operation, result);
        }
        if result == 0 {
            self.hook.count(Word::OneSided, 1);
            self.hook.count(Word::OneSidedBytes, operation.bytes as u64);
            self.count_empty(operation.bytes);
            self.hook.count(Word::Spared, is_spared.into());
        }
        result
    }

    /// Returns when a send without flags completes.
    pub(super) fn sent(&self) -> End {
        match (self.delivers, self.hook.completion) {
            (false, _) => End::Sent,
            (true, Completion::Local) => End::Local,
            (true, Completion::Delivered) => End::Back,
        }
    }

    fn count_sent(&self, bytes: usize) {
        self.hook.count(Word::Sent, 1);
        self.hook.count(Word::SentBytes, bytes as u64);
        self.count_empty(bytes);
    }

    fn count_empty(&self, bytes: usize) {
        if bytes == 0 {
            self.hook.count(Word::Empty, 1);
        }
    }

    /// Takes the send overhead, once for each message also if the provider refuses it at first, and
    /// computes the departure. Returns `None` if the capacity is used up or the gap is too long to wait
    /// for.
    fn draft(&self, force: &Force, bytes: usize) -> Option<Draft> {
        let entered = ticks::glance();
        let parameters = force.parameters(entered, || self.hook.sides().departures.free());
        let overhead = parameters.send_overhead;
        let began = if overhead > 0 && !self.take_paid() {
            self.hook.count(Word::SendOverheadTicks, overhead);
            spin_until(entered + overhead.saturating_sub(self.hook.own()))
        } else {
            entered
        };
        let began = force.wait_for_gap(self.hook, began);
        let draft = began.and_then(|began| force.depart(self.hook, began, bytes, parameters));
        if draft.is_none() {
            self.keep_paid(overhead);
            self.hook.count(Word::Refused, 1);
        }
        draft
    }

    /// Takes the overhead of a message that was refused after it had been paid, if there is one.
    fn take_paid(&self) -> bool {
        self.paid.fetch_update(Relaxed, Relaxed, |paid| paid.checked_sub(1)).is_ok()
    }

    /// Keeps the overhead of a message that is refused, and that the program will send again.
    fn keep_paid(&self, overhead: u64) {
        self.paid.fetch_add(u32::from(overhead > 0), Relaxed);
    }

    /// Returns the data with the stamp of the departure, if stamps are in use and the data has room for
    /// one.
    fn stamped(&self, data: Option<u64>, draft: &Draft) -> Option<u64> {
        if !self.hook.stamps {
            // The receiver looks for stamps where ranks of another world may have added them.
            if self.hook.marks() && data.is_some_and(|data| is_stamped((data >> 32) as u32)) {
                self.hook.fail(LIKE_STAMPS);
            }
            return None;
        }
        // A stamp may lie ahead by half of its range. The other half is for messages that are read late.
        let furthest = draft.began.saturating_add(self.hook.grain.range() / 2);
        if draft.departs.at > furthest {
            self.hook.count(Word::TooFarAhead, 1);
        }
        let departed = Departed { at: draft.departs.at.min(furthest), ..draft.departs };
        let stamped = self.with_stamp(data, departed, false)?;
        self.hook.announce(departed.at, draft.began);
        Some(stamped)
    }

    /// Returns the data with a stamp, if it has room for one.
    fn with_stamp(&self, data: Option<u64>, departed: Departed, spared: bool) -> Option<u64> {
        let stamp = Stamp { departed, added: data.is_none(), spared };
        let rest = data.unwrap_or(0);
        let taken = (rest >> 32) as u32;
        if is_stamped(taken) {
            self.hook.fail(LIKE_STAMPS);
        }
        let has_room = self.has_data && taken == 0;
        has_room.then(|| rest | u64::from(self.hook.grain.pack(stamp)) << 32)
    }

    /// Updates the hook's state after the provider has accepted or refused an operation.
    fn settle(&self, force: &Force, draft: Draft, operation: &Operation, result: isize) {
        if result != 0 {
            if result == -abi::EAGAIN {
                self.keep_paid(draft.parameters.send_overhead);
            }
            self.hook.recall(draft);
            return;
        }
        if force.has_capacity() {
            force.sent(&mut self.hook.sides(), &draft);
        }
        self.count_end(operation);
        let latencies = match operation.end {
            End::Sent | End::Local => 0,
            End::There => 1,
            End::Back => 2,
        };
        let way = latencies * draft.parameters.latency.ticks();
        let over = draft.departs.at.saturating_add(way);
        // A latency that is added comes on top of the link's own way, which ends when the provider completes.
        let beyond = if matches!(draft.parameters.latency, Latency::Beyond(_)) { way } else { 0 };
        if over > draft.sent {
            self.hold_end(operation, HeldEnd { over, beyond });
        }
        if draft.taken > 0 {
            let before = draft.given.saturating_sub(draft.began);
            let after = ticks::glance().saturating_sub(draft.taken);
            self.hook.note_send(operation.bytes, draft.taken.saturating_sub(draft.began), [before, after]);
        }
    }

    /// Counts a send by when it completes, if delivery was asked for.
    fn count_end(&self, operation: &Operation) {
        if operation.context.is_null() || !matches!(operation.counts, Counts::Sends) {
            return;
        }
        match operation.end {
            End::Local => self.hook.count(Word::EndedLocally, 1),
            End::Back => self.hook.count(Word::EndedDelivered, 1),
            End::Sent | End::There => {}
        }
    }

    /// Holds the completion of an operation until its end, in its queue and its counter. A counter does not tell when the
    /// link's own way has ended.
    fn hold_end(&self, operation: &Operation, end: HeldEnd) {
        let queue = self.ends().filter(|_| !operation.context.is_null());
        if let Some(queue) = queue {
            queue.not_before(operation.context, end);
        }
        // SAFETY: by libfabric's rules a counter outlives the endpoints that are bound to it.
        if let Some(counter) = unsafe { self.counters[operation.counts as usize].load(Relaxed).as_ref() } {
            counter.not_before(end.over);
            // A completion that is also held in a queue is counted there.
            self.hook.count(Word::HeldEnds, queue.is_none().into());
        }
    }

    /// Returns whether to time this send. Reading the clock at every send would add to the overhead.
    fn is_timed(&self) -> bool {
        let nth = self.sends.load(Relaxed);
        self.sends.store(nth.wrapping_add(1), Relaxed);
        nth < TIMED_AT_FIRST || nth.is_multiple_of(TIMED_EVERY)
    }
}

/// Sends with the stamped data. If the provider refuses data that the program did not pass, sends again
/// without data. Also returns whether the stamp was sent.
fn go_stamped(
    data: Option<u64>,
    stamped: Option<u64>,
    go: &mut impl FnMut(Option<u64>) -> isize,
) -> (isize, bool) {
    match stamped.map(|stamped| go(Some(stamped))) {
        None => (go(data), false),
        Some(result) if result != 0 && result != -abi::EAGAIN && data.is_none() => (go(None), false),
        Some(result) => (result, true),
    }
}
