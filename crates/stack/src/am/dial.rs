//! The dials of an endpoint (León et al. 2002): emulated network parameters.
//!
//! An endpoint emulates one network interface. All messages pass through it, whichever peer they go to
//! or come from, and leave and arrive as late as the dials say. The dial setting may change while links
//! are open: all settings are given when the endpoint is opened, and a shared word names the setting in
//! force.
//!
//! A message uses the setting in force at three moments: when it is sent, when the receiver first sees
//! it, and when it is released to its handler. Parameters that vary at random are drawn once for each
//! message: o_s and g_s at the send, L when the message is seen, g_r and o_r when it is released. A time
//! profile uses other moments: see `netdyno_protocol::dial::time_profile`.
//!
//! Over shared memory the stamp of a message lies beside it in its slot, on a cache line that only
//! dialled messages touch. A message that is not due stays in its ring. Requests, replies and stores are
//! dialled; gets are not, because only one side takes part in them. Over UDP the datagram carries the
//! stamp, and the receiver holds each message until it is due; all messages are dialled.

use netdyno_clock::calibrate::Clock;
use netdyno_clock::ticks;
use netdyno_host::shared_word::SharedWord;
use netdyno_protocol::dial::link::Seen;
use netdyno_protocol::dial::parameters::{Dials, EffectiveParameters, Latency, Own};
use netdyno_protocol::dial::profile::Profile;
use netdyno_protocol::dial::time_profile::{TimeProfile, TimeProfileError};
use netdyno_protocol::dial::timing::{Departed, Departures, Gate, Lane};
use netdyno_protocol::dial::variation::Variation;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Upper limit on how far a stamp may lie in the future, because the peer writes the stamp.
const LONGEST_HOLD_NS: f64 = 600e9;
/// Messages of a peer that has ended or closed are held no longer than this.
const LAST_HOLD_NS: f64 = 5e9;
/// The time profile in force if the shared word names no setting: no dial is set.
static NO_SETTING: TimeProfile = TimeProfile::NONE;

/// The dial settings of an endpoint whose setting changes while links are open.
#[derive(Debug, Default)]
pub struct DialSettings {
    /// The dial settings, one of which is in force at a time. An empty list means one setting without
    /// dials.
    pub settings: Vec<Dials>,
    /// The shared word that holds the index of the setting in force, from 0. If the index is out of
    /// range, no dial is set. Without the word the first setting is in force.
    pub current: Option<SharedWord>,
    /// How each setting changes with time. The time begins with the first message that this endpoint
    /// sends or sees. The profile and a setting must not set the same dial.
    pub profile: Option<Profile>,
}

/// The sending and the receiving side of the interface.
#[derive(Debug)]
struct Sides {
    departures: Departures,
    gate: Gate,
    /// Random draws and the time of the profile, which all settings share.
    variation: Variation,
}

/// The emulated network interface that all messages of an endpoint pass through.
#[derive(Debug)]
pub(super) struct Interface {
    settings: Box<[TimeProfile]>,
    /// The index of the setting in force; without the word the first one is.
    current: Option<SharedWord>,
    tick_ns: f64,
    longest_hold: u64,
    last_hold: u64,
    sides: Mutex<Sides>,
}

impl Interface {
    /// Returns `None` if no setting has a dial and there is no time profile. The link's own parameters
    /// are taken as unknown, because nobody has measured them. Random parameters are drawn from `seed`.
    pub(super) fn of(settings: DialSettings, seed: u64) -> Result<Option<Arc<Self>>, TimeProfileError> {
        let DialSettings { mut settings, current, profile } = settings;
        if settings.is_empty() {
            settings.push(Dials::NONE);
        }
        if settings.iter().all(Dials::are_none) && profile.is_none() {
            return Ok(None);
        }
        let clock = Clock::calibrate();
        let time_profile = |dials| TimeProfile::new(dials, profile.as_ref(), &Own::UNKNOWN, clock.tick_ns);
        let settings: Box<[TimeProfile]> = settings.iter().map(time_profile).collect::<Result<_, _>>()?;
        let [longest_hold, last_hold] = [LONGEST_HOLD_NS, LAST_HOLD_NS].map(|ns| clock.ticks(ns));
        let (departures, gate) = (Departures::default(), Gate::default());
        let variation = Variation::new(settings.first().unwrap_or(&NO_SETTING), seed);
        let sides = Mutex::new(Sides { departures, gate, variation });
        let tick_ns = clock.tick_ns;
        Ok(Some(Arc::new(Self { settings, current, tick_ns, longest_hold, last_hold, sides })))
    }

    /// Returns the time profile in force: the one without dials if the word names no setting.
    fn time_profile(&self) -> &TimeProfile {
        let setting = self.current.as_ref().map_or(0, SharedWord::get);
        self.settings.get(setting as usize).unwrap_or(&NO_SETTING)
    }

    /// Returns the effective parameters of the next message to send. Uses the maximum latency, because
    /// the receiver draws the actual one.
    pub(super) fn parameters(&self) -> Cow<'_, EffectiveParameters> {
        match self.time_profile() {
            time_profile if time_profile.is_steady() => Cow::Borrowed(time_profile.steady()),
            time_profile => {
                let Sides { departures, variation, .. } = &mut *self.sides();
                Cow::Owned(EffectiveParameters {
                    latency: Latency::After(time_profile.longest_latency()),
                    ..variation.departing(time_profile, ticks::now(), departures.free())
                })
            }
        }
    }

    fn sides(&self) -> MutexGuard<'_, Sides> {
        self.sides.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the departure of a message of `bytes` that is sent at `now`.
    pub(super) fn depart(&self, now: u64, bytes: usize, parameters: &EffectiveParameters) -> Departed {
        self.sides().departures.depart(now, bytes, parameters)
    }

    /// Returns when a message of `bytes` is due here, in ticks. `departed` is the stamp of its sender;
    /// without a stamp the time at which the message was seen is used.
    pub(super) fn due(&self, lane: &mut Lane, departed: Option<Departed>, bytes: usize, seen: Seen) -> u64 {
        let latest = seen.at.saturating_add(self.longest_hold);
        let departed = departed.map(|departed| Departed { at: departed.at.min(latest), ..departed });
        let time_profile = self.time_profile();
        if time_profile.is_steady() {
            return lane.due(departed, bytes, seen, time_profile.steady());
        }
        let variation = &mut self.sides().variation;
        let parameters = variation.seen(time_profile, seen.at, departed.map(|departed| departed.at));
        lane.due_by(departed, bytes, seen, &parameters, |here| variation.latency(time_profile, here))
    }

    /// Returns the latest time at which messages of a peer that has ended just now are released.
    pub(super) fn last_release(&self) -> u64 {
        ticks::now().saturating_add(self.last_hold)
    }

    /// Returns when a message that is due at `due` can be released. It is held until `until` at the
    /// latest.
    pub(super) fn opens(&self, due: u64, until: u64) -> u64 {
        self.sides().gate.opens(due).min(until)
    }

    /// Releases the message that is due at `due`, if its time has come at `now`, and then spends the
    /// receive overhead. The message is held until `until` at the latest. Returns whether it was
    /// released.
    pub(super) fn releases(&self, due: u64, until: u64, now: u64) -> bool {
        let time_profile = self.time_profile();
        let recv_overhead = {
            let Sides { gate, variation, .. } = &mut *self.sides();
            let opens = gate.opens(due).min(until);
            if now < opens {
                return false;
            }
            let drawn;
            let parameters = if time_profile.is_steady() {
                time_profile.steady()
            } else {
                drawn = variation.released(time_profile, opens);
                &drawn
            };
            // A message that `until` releases before it is due must not delay messages of other peers.
            gate.pass(due.min(now), parameters);
            parameters.recv_overhead
        };
        spin(recv_overhead);
        true
    }

    /// Returns the nanoseconds from now until `at`.
    pub(super) fn ns_until(&self, at: u64) -> u64 {
        (at.saturating_sub(ticks::now()) as f64 * self.tick_ns) as u64
    }
}

/// Spends the send overhead on this processor. Returns the time at its end.
pub(super) fn take_send_overhead(parameters: &EffectiveParameters) -> u64 {
    spin(parameters.send_overhead)
}

/// Returns when a message with this stamp is due at the peer.
pub(super) fn due_there(stamp: u64, parameters: &EffectiveParameters) -> u64 {
    stamp.saturating_add(parameters.latency.ticks())
}

/// Returns the earliest time at which an answer of `bytes` to that message is due here.
pub(super) fn answered(stamp: u64, bytes: usize, parameters: &EffectiveParameters) -> u64 {
    let departs = due_there(stamp, parameters).saturating_add(parameters.data(bytes));
    due_there(departs, parameters)
}

/// Keeps the processor busy for `length` ticks. Returns the time at the end.
fn spin(length: u64) -> u64 {
    let began = ticks::now();
    let mut now = began;
    while now.saturating_sub(began) < length {
        std::hint::spin_loop();
        now = ticks::now();
    }
    now
}

/// The reading end of one ring of a peer, with dials.
#[derive(Debug)]
pub(super) struct Inlet {
    interface: Arc<Interface>,
    lane: Lane,
    /// When the message at the head is due; `None` before it has been seen.
    due: Option<u64>,
    /// When the ring was last seen empty. A receiver that looked shortly before a message came knows how long the link
    /// took.
    empty_at: Option<u64>,
    /// The time until which messages are held at the latest. Set once the peer has ended.
    until: u64,
}

impl Inlet {
    pub(super) fn new(interface: &Arc<Interface>) -> Self {
        Self {
            interface: Arc::clone(interface),
            lane: Lane::default(),
            due: None,
            empty_at: None,
            until: u64::MAX,
        }
    }

    pub(super) fn note_empty(&mut self) {
        self.empty_at = Some(ticks::glance());
    }

    /// Limits the time for which messages are held, because the peer sends no more.
    pub(super) fn expect_no_more(&mut self) {
        self.until = self.until.min(self.interface.last_release());
    }

    /// Returns whether the message at the head, which has this stamp, is not due yet. Otherwise releases
    /// it and spends the receive overhead.
    #[cold]
    pub(super) fn holds(&mut self, stamp: u64) -> bool {
        let Self { interface, lane, due, empty_at, until } = self;
        let now = ticks::now();
        let at = *due.get_or_insert_with(|| {
            // A peer without dials writes no stamp (0). A stamp in the future means that the message
            // waited at its sender.
            let departed = (stamp != 0).then_some(Departed { at: stamp, at_once: stamp <= now });
            // The bytes were written before the message departed, so messages of all sizes take the
            // same.
            interface.due(lane, departed, 1, Seen { not_at: *empty_at, ..Seen::late(now) })
        });
        if !interface.releases(at, *until, now) {
            return true;
        }
        *due = None;
        lane.took_first(now);
        false
    }
}
