//! A dial setting as a process applies it: the effective parameters of each message, and its departure.

use super::{Hook, Sides, spin_until};
use crate::page::{DialSetting, GapAt, PageError};
use netdyno_protocol::dial::link::size_class;
use netdyno_protocol::dial::parameters::EffectiveParameters;
use netdyno_protocol::dial::profile::Profile;
use netdyno_protocol::dial::table::{Dial, Effect, LinkEnd};
use netdyno_protocol::dial::time_profile::TimeProfile;
use netdyno_protocol::dial::timing::{Departed, Departures};
use netdyno_protocol::dial::variation::Variation;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A dial setting, converted to ticks of this host's clock.
#[derive(Debug)]
pub struct Force {
    time_profile: TimeProfile,
    /// The state that decides which effective parameters a message gets, where these vary.
    variation: Mutex<Variation>,
    capacity: usize,
    /// Each message departs as soon as it is sent: neither a gap nor a capacity delays it.
    departs_at_once: bool,
    /// The receive gap is dialled: a message may wait for the release of the one before it.
    pub(super) changes_recv_gap: bool,
}

/// A message that is being sent.
pub struct Draft {
    /// Its effective dial parameters.
    pub parameters: EffectiveParameters,
    /// When its send overhead ended.
    pub began: u64,
    /// When the hook called the provider.
    pub given: u64,
    /// When the provider returned; 0 where this send is not timed.
    pub taken: u64,
    /// When the provider is expected to return, by the usual time of a send. The time until then is
    /// overhead.
    pub sent: u64,
    /// Its departure.
    pub departs: Departed,
    /// The sending side before and after this message, to undo the departure if the provider refuses it.
    pub(super) change: Option<(Departures, Departures)>,
}

impl Force {
    /// Converts a dial setting to ticks. Returns `None` if it dials nothing.
    pub(super) fn of(
        setting: &DialSetting,
        profile: Option<&Profile>,
        tick_ns: f64,
        seed: u64,
    ) -> Result<Option<Self>, PageError> {
        let DialSetting { dials, own, capacity } = setting;
        if dials.are_none() && profile.is_none() && *capacity == 0 {
            return Ok(None);
        }
        let time_profile = TimeProfile::new(dials, profile, own, tick_ns);
        let time_profile = time_profile.map_err(|error| PageError(error.to_string()))?;
        let is_changed =
            |dial| dials.get(dial).is_some() || profile.is_some_and(|profile| profile.changes(dial));
        let changes = |effect| Dial::ALL.into_iter().any(|dial| dial.effect() == effect && is_changed(dial));
        Ok(Some(Self {
            variation: Mutex::new(Variation::new(&time_profile, seed)),
            time_profile,
            capacity: *capacity as usize,
            changes_recv_gap: changes(Effect::Gap(LinkEnd::Receiver)),
            departs_at_once: !changes(Effect::Gap(LinkEnd::Sender))
                && !changes(Effect::GapPerByte)
                && *capacity == 0,
        }))
    }

    /// Returns the parameters of a message that is sent at `now`. `free` returns when the sender's
    /// interface is free of earlier messages.
    pub fn parameters(&self, now: u64, free: impl FnOnce() -> u64) -> EffectiveParameters {
        if self.time_profile.is_steady() {
            return *self.time_profile.steady();
        }
        // `free` locks what arrivals have locked when they vary their parameters, so it comes first.
        let free = free();
        self.variation().departing(&self.time_profile, now, free)
    }

    /// Returns the parameters of a message that is seen at `now` and whose stamp says that it departed at
    /// `departed`.
    pub fn parameters_seen(&self, now: u64, departed: u64) -> EffectiveParameters {
        self.parameters_of(|variation| variation.seen(&self.time_profile, now, Some(departed)))
    }

    /// Returns the parameters of a message that is released at `at`.
    pub fn parameters_released(&self, at: u64) -> EffectiveParameters {
        self.parameters_of(|variation| variation.released(&self.time_profile, at))
    }

    #[inline]
    fn parameters_of(&self, vary: impl FnOnce(&mut Variation) -> EffectiveParameters) -> EffectiveParameters {
        if self.time_profile.is_steady() {
            return *self.time_profile.steady();
        }
        vary(&mut self.variation())
    }

    /// Returns how much later the last byte of a message of `bytes` can depart than its first, at any time.
    pub fn longest_delay(&self, bytes: usize) -> u64 {
        self.time_profile.longest_delay(bytes)
    }

    /// Returns the latency of a message that arrives at `here`.
    pub fn latency(&self, here: u64) -> u64 {
        if self.time_profile.is_steady() {
            return self.time_profile.steady().latency.ticks();
        }
        self.variation().latency(&self.time_profile, here)
    }

    fn variation(&self) -> MutexGuard<'_, Variation> {
        self.variation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the gap of the message before, if gaps are waited for at the sender. Returns the time at
    /// which the gap is over. Returns `None` if the gap lasts longer than `Hook::short_wait`.
    pub fn wait_for_gap(&self, hook: &Hook, began: u64) -> Option<u64> {
        if hook.gap_at == GapAt::Interface || self.departs_at_once {
            return Some(began);
        }
        let free = hook.sides().departures.free();
        if free > began.saturating_add(hook.short_wait) {
            return None;
        }
        Some(if free > began { spin_until(free) } else { began })
    }

    /// Computes the departure of a message of `bytes`. Returns `None` if the capacity is used up.
    pub fn depart(
        &self,
        hook: &Hook,
        began: u64,
        bytes: usize,
        parameters: EffectiveParameters,
    ) -> Option<Draft> {
        let sent = began.saturating_add(hook.sending[size_class(bytes)].load(Relaxed));
        if self.departs_at_once {
            let departs = Departed { at: sent, at_once: true };
            return Some(Draft { parameters, began, given: began, taken: 0, sent, departs, change: None });
        }
        let mut sides = hook.sides();
        if self.capacity > 0 && !sides.capacity(self.capacity).has_room(began) {
            return None;
        }
        let before = sides.departures.clone();
        let first = began.saturating_add(hook.sending_least.load(Relaxed)).min(sent);
        let departs = sides.departures.depart_over(first, sent, bytes, &parameters);
        let change = Some((before, sides.departures.clone()));
        Some(Draft { parameters, began, given: began, taken: 0, sent, departs, change })
    }

    /// Records that the provider has taken the message, which counts against the capacity until it
    /// arrives.
    pub fn sent(&self, sides: &mut Sides, draft: &Draft) {
        if self.capacity > 0 {
            let arrival = draft.departs.at.saturating_add(draft.parameters.latency.ticks());
            sides.capacity(self.capacity).depart(arrival);
        }
    }

    /// Returns whether a capacity is dialled, so that [`Force::sent`] has an effect.
    pub fn has_capacity(&self) -> bool {
        self.capacity > 0
    }
}
