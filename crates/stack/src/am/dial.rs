//! The dials of an endpoint (León et al. 2002): it is its own network interface, which messages
//! leave and reach as late as the dials say, whichever peer they go to or come from. How they are
//! turned may change while links are open: the turns are known when they are opened, and a word says
//! which is in force. A message goes by what is in force when it is sent, when it is seen and when it
//! is taken. What varies by chance is drawn once for each message: o_s and g_s when it is sent, L when
//! it is seen, g_r and o_r when it is taken. What a profile changes with time goes by other moments:
//! `netdyno_protocol::dial::course`.
//!
//! Over shared memory the stamp of a message lies beside it in its slot, on a line that only dialled
//! messages touch, and a message that is not due stays in its ring. Dialled are requests, replies and
//! stores; gets, which only one side has a part in, are not. Over UDP the stamp is in the datagram, and
//! what has arrived is held until it is due; there all messages are dialled.

use netdyno_clock::calibrate::Clock;
use netdyno_clock::ticks;
use netdyno_host::shared_word::SharedWord;
use netdyno_protocol::dial::course::{Course, CourseError};
use netdyno_protocol::dial::link::Seen;
use netdyno_protocol::dial::profile::Profile;
use netdyno_protocol::dial::terms::{Dials, Latency, Own, Terms};
use netdyno_protocol::dial::timing::{Departed, Departures, Gate, Lane};
use netdyno_protocol::dial::variation::Variation;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A stamp cannot lie further in the future: the peer writes it.
const LONGEST_HOLD_NS: f64 = 600e9;
/// What a peer has left behind that has ended, or closed, is held no longer than this.
const LAST_HOLD_NS: f64 = 5e9;
/// What is in force where no turn is.
static NO_TURN: Course = Course::NONE;

/// How the links of an endpoint are dialled, where that changes while they are open.
#[derive(Debug, Default)]
pub struct Turning {
    /// The turns, of which one is in force at a time; with none of them there is one that turns nothing.
    pub turns: Vec<Dials>,
    /// Says which, counted from 0; the link is as it is where it names none. Without it the first turn
    /// is in force.
    pub current: Option<SharedWord>,
    /// How each of them changes with time, which begins with the first message that this endpoint
    /// sends or sees. A dial is turned by the profile or by itself.
    pub profile: Option<Profile>,
}

/// Both sides of the interface.
#[derive(Debug)]
struct Sides {
    departures: Departures,
    gate: Gate,
    /// All turns change in the same way with time.
    variation: Variation,
}

/// What all peers of an endpoint go through.
#[derive(Debug)]
pub(super) struct Interface {
    turns: Box<[Course]>,
    /// Which of them is in force; without it the first one is.
    current: Option<SharedWord>,
    tick_ns: f64,
    longest_hold: u64,
    last_hold: u64,
    sides: Mutex<Sides>,
}

impl Interface {
    /// `None` where no turn has a dial turned, and nothing changes with time. What the link has of its
    /// own nobody has measured. What varies by chance is drawn from `seed`.
    pub(super) fn of(turning: Turning, seed: u64) -> Result<Option<Arc<Self>>, CourseError> {
        let Turning { mut turns, current, profile } = turning;
        if turns.is_empty() {
            turns.push(Dials::NONE);
        }
        if turns.iter().all(Dials::are_none) && profile.is_none() {
            return Ok(None);
        }
        let clock = Clock::calibrate();
        let course = |dials| Course::new(dials, profile.as_ref(), &Own::UNKNOWN, clock.tick_ns);
        let turns: Box<[Course]> = turns.iter().map(course).collect::<Result<_, _>>()?;
        let [longest_hold, last_hold] = [LONGEST_HOLD_NS, LAST_HOLD_NS].map(|ns| clock.ticks(ns));
        let (departures, gate) = (Departures::default(), Gate::default());
        let variation = Variation::new(turns.first().unwrap_or(&NO_TURN), seed);
        let sides = Mutex::new(Sides { departures, gate, variation });
        let tick_ns = clock.tick_ns;
        Ok(Some(Arc::new(Self { turns, current, tick_ns, longest_hold, last_hold, sides })))
    }

    /// What is in force: nothing where the word names no turn.
    fn course(&self) -> &Course {
        let turn = self.current.as_ref().map_or(0, SharedWord::get);
        self.turns.get(turn as usize).unwrap_or(&NO_TURN)
    }

    /// What the next message to be sent is put under. Of the latency the longest that there is: it is
    /// drawn where the message is received.
    pub(super) fn terms(&self) -> Cow<'_, Terms> {
        match self.course() {
            course if course.is_steady() => Cow::Borrowed(course.steady()),
            course => {
                let Sides { departures, variation, .. } = &mut *self.sides();
                Cow::Owned(Terms {
                    latency: Latency::After(course.longest_latency()),
                    ..variation.departing(course, ticks::now(), departures.free())
                })
            }
        }
    }

    fn sides(&self) -> MutexGuard<'_, Sides> {
        self.sides.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How a message of `bytes` departs that is sent at `now`.
    pub(super) fn depart(&self, now: u64, bytes: usize, terms: &Terms) -> Departed {
        self.sides().departures.depart(now, bytes, terms)
    }

    /// When a message of `bytes` is due here that its peer has stamped so; where it did not, the time
    /// at which it was seen must serve.
    pub(super) fn due(&self, lane: &mut Lane, departed: Option<Departed>, bytes: usize, seen: Seen) -> u64 {
        let latest = seen.at.saturating_add(self.longest_hold);
        let departed = departed.map(|departed| Departed { at: departed.at.min(latest), ..departed });
        let course = self.course();
        if course.is_steady() {
            return lane.due(departed, bytes, seen, course.steady());
        }
        let variation = &mut self.sides().variation;
        let terms = variation.seen(course, seen.at, departed.map(|departed| departed.at));
        lane.due_by(departed, bytes, seen, &terms, |here| variation.latency(course, here))
    }

    /// When the messages are released at the latest of a peer that sends no more, as is known now.
    pub(super) fn last_release(&self) -> u64 {
        ticks::now().saturating_add(self.last_hold)
    }

    /// When a message is released that is due then and held until `until` at the latest.
    pub(super) fn opens(&self, due: u64, until: u64) -> u64 {
        self.sides().gate.opens(due).min(until)
    }

    /// Releases a message that is due then, and held until `until` at the latest, if its time has come
    /// at `now`; the receive overhead is then taken of the processor.
    pub(super) fn releases(&self, due: u64, until: u64, now: u64) -> bool {
        let course = self.course();
        let recv_overhead = {
            let Sides { gate, variation, .. } = &mut *self.sides();
            let opens = gate.opens(due).min(until);
            if now < opens {
                return false;
            }
            let drawn;
            let terms = if course.is_steady() {
                course.steady()
            } else {
                drawn = variation.released(course, opens);
                &drawn
            };
            // What is released before it is due is not to hold up what others send.
            gate.pass(due.min(now), terms);
            terms.recv_overhead
        };
        spin(recv_overhead);
        true
    }

    /// Nanoseconds until that time.
    pub(super) fn ns_until(&self, at: u64) -> u64 {
        (at.saturating_sub(ticks::now()) as f64 * self.tick_ns) as u64
    }
}

/// Takes the send overhead of the processor. Returns when that is over.
pub(super) fn take_send_overhead(terms: &Terms) -> u64 {
    spin(terms.send_overhead)
}

/// When a message that was stamped so is due at its peer.
pub(super) fn due_there(stamp: u64, terms: &Terms) -> u64 {
    stamp.saturating_add(terms.latency.ticks())
}

/// When an answer of `bytes` to it is due here, at the earliest.
pub(super) fn answered(stamp: u64, bytes: usize, terms: &Terms) -> u64 {
    let departs = due_there(stamp, terms).saturating_add(terms.data(bytes));
    due_there(departs, terms)
}

/// Passes so many ticks with the processor busy. Returns when they are over.
fn spin(length: u64) -> u64 {
    let began = ticks::now();
    let mut now = began;
    while now.saturating_sub(began) < length {
        std::hint::spin_loop();
        now = ticks::now();
    }
    now
}

/// One ring of a peer, at the end that reads.
#[derive(Debug)]
pub(super) struct Inlet {
    interface: Arc<Interface>,
    lane: Lane,
    /// When the message at the head is due, once it has been seen.
    due: Option<u64>,
    /// Until when messages are held of a peer that sends no more.
    until: u64,
}

impl Inlet {
    pub(super) fn new(interface: &Arc<Interface>) -> Self {
        Self { interface: Arc::clone(interface), lane: Lane::default(), due: None, until: u64::MAX }
    }

    /// The peer sends no more. What it has sent is not waited for without end.
    pub(super) fn expect_no_more(&mut self) {
        self.until = self.until.min(self.interface.last_release());
    }

    /// Whether the message at the head, which the peer stamped so, has to wait. Where not, it is
    /// released, and the receive overhead taken of the processor.
    #[cold]
    pub(super) fn holds(&mut self, stamp: u64) -> bool {
        let Self { interface, lane, due, until } = self;
        let now = ticks::now();
        let at = *due.get_or_insert_with(|| {
            // A peer without dials stamps nothing.
            // One that lies in the future has waited at its sender.
            let departed = (stamp != 0).then_some(Departed { at: stamp, at_once: stamp <= now });
            // Its bytes were there before it departed: all messages take the same.
            interface.due(lane, departed, 1, Seen::late(now))
        });
        if !interface.releases(at, *until, now) {
            return true;
        }
        *due = None;
        lane.took_first(now);
        false
    }
}
