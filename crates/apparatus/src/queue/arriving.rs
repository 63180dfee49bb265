//! Arrivals: when the program may see a completion, and which dial parameters a message is released
//! under.

use super::{
    Completion, Found, HeldEnd, Kind, MANY_NOTES, Name, Queue, Said, Sender, State, TIMED_AT_FIRST,
    TIMED_EVERY,
};
use crate::abi::{self, Address, Entry, Opaque};
use crate::account::Word;
use crate::fault::{self, Side};
use crate::hook::force::Force;
use netdyno_clock::ticks;
use netdyno_protocol::dial::hold::Released;
use netdyno_protocol::dial::link::Seen;
use netdyno_protocol::dial::parameters::{EffectiveParameters, Latency};
use netdyno_protocol::dial::timing::{Departed, Gate};

impl Queue {
    /// Takes a completion of the provider and computes when the program may see it. The stamp is removed
    /// from the entry first, so that the program does not see it even if the rest panics.
    pub(super) fn take(&self, state: &mut State, entry: &mut Entry, source: Address, seen: Seen) {
        let now = seen.at;
        if entry.flags & abi::RECV == 0 {
            self.hook.panic_if_asked(fault::Entry::Queue, Side::After);
            self.take_other(state, Completion { entry: *entry, source, kind: Kind::Other }, seen);
            return;
        }
        let said = self.unstamp(entry, source, now);
        self.hook.panic_if_asked(fault::Entry::Queue, Side::After);
        let completion = Completion { entry: *entry, source, kind: Kind::Other };
        if let Some((_, takes)) = state.peek(entry.op_context) {
            self.found(state, completion, &said, now, takes);
            return;
        }
        self.count_received(entry.len);
        if said.is_spared {
            let due = state.in_order(entry, 0, now);
            // A message of an undialled link does not wait, unless an earlier one in the same buffer
            // does.
            let line = if due > 0 { &mut state.messages } else { &mut state.others };
            line.put(due, completion);
            return;
        }
        self.hold(state, completion, &said, seen);
    }

    /// Takes the completion of an operation, or of a multi-receive buffer.
    fn take_other(&self, state: &mut State, completion: Completion, seen: Seen) {
        let entry = completion.entry;
        if entry.flags & abi::MULTI_RECV != 0 {
            // The provider has released a buffer. The program may reuse it only after it has seen every
            // message in the buffer.
            let last = state.buffers.remove(&(entry.op_context as u64)).unwrap_or(0);
            // The completion is queued behind the messages, because these may be released later than they
            // are due.
            state.messages.put(last, completion);
            return;
        }
        let HeldEnd { over, beyond } = state.ends.remove(&(entry.op_context as u64)).unwrap_or_default();
        // The provider has completed it since the last poll that found nothing. A program that has not polled meanwhile
        // pays no more for that than it must.
        let own = seen.not_at.filter(|_| beyond > 0).unwrap_or(0);
        let end = over.max(own.saturating_add(beyond));
        if end > seen.at {
            self.hook.count(Word::HeldEnds, 1);
        }
        state.others.put(end, completion);
    }

    /// Reads the stamp that the hook of the sender has added, and removes it from the entry.
    fn unstamp(&self, entry: &mut Entry, source: Address, now: u64) -> Said {
        let has_data = entry.flags & abi::REMOTE_CQ_DATA != 0;
        let packed = if has_data { (entry.data >> 32) as u32 } else { 0 };
        let unpack = || {
            let delay = self.hook.force().map_or(0, |force| force.longest_delay(entry.len));
            let grain = self.hook.grain;
            grain.unpack(packed, self.hook.latest(now), grain.latest_at_once(now, delay))
        };
        let stamp = self.hook.marks().then(unpack).flatten();
        // Programs that send data with their messages identify themselves by it.
        let says_who = has_data && !stamp.is_some_and(|stamp| stamp.added);
        let sender = match source {
            Address::MAX if says_who => Some(entry.data & u64::from(u32::MAX)),
            Address::MAX => None,
            source => Some(source),
        };
        match stamp {
            Some(stamp) if stamp.added => (entry.flags, entry.data) = (entry.flags & !abi::REMOTE_CQ_DATA, 0),
            Some(_) => entry.data &= u64::from(u32::MAX),
            None => {}
        }
        Said {
            sender,
            departed: stamp.filter(|_| self.hook.stamps).map(|stamp| stamp.departed),
            is_spared: stamp.is_some_and(|stamp| stamp.spared),
        }
    }

    /// Holds a message until it is due.
    fn hold(&self, state: &mut State, completion: Completion, said: &Said, seen: Seen) {
        let (force, entry, now) = (self.hook.force(), &completion.entry, seen.at);
        if force.is_some() && self.hook.stamps && said.departed.is_none() {
            self.hook.count(Word::Unstamped, 1);
        }
        let found = if state.found.is_empty() { None } else { state.found.remove(&said.name(entry)) };
        let seen = found.map_or(seen, |found| Seen::late(found.first));
        // Messages that do not identify their sender, such as acknowledgements of synchronous sends, are
        // seen as they arrive. That holds even where the program posts each receive long after its
        // message arrived.
        let elsewhere = state.lanes.get(&u64::MAX).and_then(|other| other.lane.seen_coming(entry.len));
        let seen = Seen { elsewhere, ..seen };
        let drawn = found.and_then(|found| found.latency);
        let releasing = state.releasing.get().unwrap_or(0);
        let sender = state.lane(said.sender);
        let parameters = said.parameters(force, seen.at, sender);
        // Part of the latency has passed in the hook of the sender, and part will pass in this hook.
        let passed = self.hook.before(&parameters) + if parameters.recv_overhead > 0 { 0 } else { releasing };
        let latency = |here| {
            let latency = drawn.unwrap_or_else(|| force.map_or(0, |force| force.latency(here)));
            latency.saturating_sub(passed)
        };
        let due = sender.due(said, entry.len, seen, &parameters, latency);
        let due = state.in_order(entry, due, now);
        let waited = due > now;
        if waited {
            self.hook.count(Word::Held, 1);
            self.hook.count(Word::HeldTicks, due - now);
        } else if due < state.looks.vain()
            && said.departed.is_some()
            && matches!(parameters.latency, Latency::After(_))
        {
            // The message was due before the last poll, and that poll did not find it.
            self.hook.count(Word::Late, 1);
        }
        state.messages.put(due, Completion { kind: Kind::Message { waited }, ..completion });
    }

    /// Handles a message that a peek has found. A peek does not find a message before it is due, unless
    /// the peek also claims or discards it.
    fn found(&self, state: &mut State, found: Completion, said: &Said, now: u64, takes: bool) {
        let Some(force) = self.hook.force().filter(|_| !said.is_spared) else {
            state.others.put(now, found);
            return;
        };
        // The program may peek repeatedly. The message counts as seen at the first peek that found it.
        let name = said.name(&found.entry);
        let Found { first, mut latency } = state.found_first(name, now);
        let parameters = said.parameters(Some(force), first, state.lane(said.sender));
        let draw = |here| *latency.get_or_insert_with(|| force.latency(here));
        let due =
            state.lane(said.sender).would_be_due(said, found.entry.len, Seen::late(first), &parameters, draw);
        state.found.insert(name, Found { first, latency });
        if due <= now || takes {
            state.others.put(due, found);
        } else {
            state.unfound.push_back(found.entry);
        }
    }

    /// Returns the next completion that may be released, if any. For a message it also returns until when
    /// its receive overhead lasts, or 0 without one.
    pub(super) fn release(&self, state: &mut State) -> Option<(Completion, u64)> {
        if state.messages.is_empty() && state.others.is_empty() {
            return None;
        }
        // After a failure of the hook nothing is held any more.
        let is_open = self.hook.has_failed();
        let now = if is_open { u64::MAX } else { ticks::glance() };
        if !state.others.is_empty() {
            let other = state.others.take(now, &mut Gate::default(), &EffectiveParameters::NONE);
            if let Some(other) = other {
                return Some((other.item, 0));
            }
        }
        let is_message = state.messages.peek()?.kind != Kind::Other;
        let force = self.hook.force().filter(|_| is_message);
        let (released, parameters) = if self.hook.has_gate {
            let mut sides = self.hook.sides();
            state.take_message(now, &mut sides.gate, force)?
        } else {
            state.take_message(now, &mut Gate::default(), force)?
        };
        if is_open || released.item.kind == Kind::Other {
            return Some((released.item, 0));
        }
        if released.item.kind == (Kind::Message { waited: true }) {
            self.hook.note_lateness(now.saturating_sub(released.at));
        }
        if parameters.recv_overhead == 0 {
            return Some((released.item, 0));
        }
        self.hook.count(Word::RecvOverheadTicks, parameters.recv_overhead);
        // The time since the message could have been released counts towards the overhead.
        let began = state.began.max(released.at).min(now);
        Some((released.item, began.saturating_add(parameters.recv_overhead)))
    }

    pub(super) fn count_received(&self, bytes: usize) {
        self.hook.count(Word::Received, 1);
        self.hook.count(Word::ReceivedBytes, bytes as u64);
    }
}

impl Said {
    fn name(&self, entry: &Entry) -> Name {
        (entry.tag, self.sender.unwrap_or(u64::MAX), entry.len)
    }

    /// Returns the parameters of a message that was seen at `seen`. A message without a stamp departs
    /// when it is seen.
    fn parameters(&self, force: Option<&Force>, seen: u64, sender: &Sender) -> EffectiveParameters {
        match (force, self.departed) {
            (None, _) => EffectiveParameters::NONE,
            (Some(force), Some(departed)) => force.parameters_seen(seen, departed.at),
            (Some(force), None) => force.parameters(seen, || sender.departures.free()),
        }
    }
}

impl Sender {
    /// Returns when the sender's next message is due. A message without a stamp departs when it is seen,
    /// but keeps its distance from the one before.
    fn due(
        &mut self,
        said: &Said,
        bytes: usize,
        seen: Seen,
        parameters: &EffectiveParameters,
        latency: impl FnOnce(u64) -> u64,
    ) -> u64 {
        let departed = said.departed.unwrap_or_else(|| self.departures.depart(seen.at, bytes, parameters));
        match said.sender {
            Some(_) => self.lane.due_by(Some(departed), bytes, seen, parameters, latency),
            // Senders that cannot be distinguished do not wait for each other.
            None => self.lane.due_of_any_by(Some(departed), bytes, seen, parameters, latency),
        }
    }

    /// Returns the same for a message that stays in the provider's queue. The lane is not changed.
    fn would_be_due(
        &self,
        said: &Said,
        bytes: usize,
        seen: Seen,
        parameters: &EffectiveParameters,
        latency: impl FnOnce(u64) -> u64,
    ) -> u64 {
        let departed = said.departed.unwrap_or(Departed { at: seen.at, at_once: true });
        self.lane.clone().due_by(Some(departed), bytes, seen, parameters, latency)
    }
}

impl State {
    /// Returns the next message, if it may be released, and the parameters of its release.
    fn take_message(
        &mut self,
        now: u64,
        gate: &mut Gate,
        force: Option<&Force>,
    ) -> Option<(Released<Completion>, EffectiveParameters)> {
        let at = self.messages.next(gate).filter(|&at| at <= now)?;
        let parameters = force.map_or(EffectiveParameters::NONE, |force| force.parameters_released(at));
        Some((self.messages.take(now, gate, &parameters)?, parameters))
    }

    /// Times the release of a message that the hook has spun for. The message was due at `due`.
    pub(super) fn time_release(&mut self, due: u64) {
        if self.released < TIMED_AT_FIRST || self.released.is_multiple_of(TIMED_EVERY) {
            self.releasing.note(ticks::glance().saturating_sub(due));
        }
        self.released = self.released.wrapping_add(1);
    }

    /// Returns the state of a sender, or that of all senders that cannot be distinguished.
    fn lane(&mut self, sender: Option<u64>) -> &mut Sender {
        self.lanes.entry(sender.unwrap_or(u64::MAX)).or_default()
    }

    /// Removes a pending peek, if the context is that of one.
    pub(super) fn peek(&mut self, context: Opaque) -> Option<(usize, bool)> {
        let at = self.peeks.iter().position(|(of, _)| *of == context as usize)?;
        Some(self.peeks.swap_remove(at))
    }

    /// Returns when a message was first found that a peek finds now.
    fn found_first(&mut self, name: Name, now: u64) -> Found {
        if self.found.len() >= MANY_NOTES {
            // The program has received these messages under other names than the peeks reported.
            self.found.clear();
        }
        *self.found.entry(name).or_insert(Found { first: now, latency: None })
    }

    /// Delays a message behind the others in the same buffer. After the last message the program may
    /// reuse the buffer.
    fn in_order(&mut self, entry: &Entry, due: u64, now: u64) -> u64 {
        if entry.flags & abi::TAGGED != 0 {
            return due;
        }
        if self.buffers.len() >= MANY_NOTES {
            self.buffers.retain(|_, &mut last| last > now);
        }
        let last = self.buffers.entry(entry.op_context as u64).or_default();
        *last = due.max(*last);
        *last
    }
}
