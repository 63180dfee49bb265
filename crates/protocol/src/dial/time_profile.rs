//! Effective parameters that vary from message to message by chance, or change with time:
//! [`EffectiveParameters`] for each moment, drawn and interpolated.
//!
//! A message in flight has several moments. Each parameter uses its own:
//!
//! ```text
//! o_s, g_s and G    the time at which the message is sent or, behind others, these have left
//! L                 the time at which the message would be due without this dial (Lane::due_by)
//! g_r and o_r       the time at which the message is released
//! ```
//!
//! As an example, a latency falls from the length of a period to 0 during the period. Then all messages that
//! arrive during a period are released together at its end. This is interrupt coalescing.

use super::parameters::{Dials, DialsError, EffectiveParameters, Own, beside_setting_ns};
use super::profile::Profile;
use super::quantiles::Quantiles;
use super::setting::{Setting, SettingError, Spelled};
use super::spread::{self, Spread};
use super::table::Dial;
use crate::random::Random;
use alloc::boxed::Box;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

/// The effective parameters of dials and a profile.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeProfile {
    steady: EffectiveParameters,
    /// Boxed, because most time profiles have none.
    differences: Option<Box<Differences>>,
}

/// The ways in which the parameters differ between messages.
#[derive(Clone, Debug, PartialEq)]
struct Differences {
    /// The dials that vary by chance.
    varying: Vec<(Dial, Quantiles)>,
    /// The parameters over time; empty if nothing changes with time.
    points: Vec<Point>,
    /// The time after which the profile restarts, in ticks.
    period: Option<u64>,
    /// The pause after which the profile restarts, in ticks.
    idle: Option<u64>,
}

/// The effective parameters at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    at: u64,
    parameters: EffectiveParameters,
}

/// The reason why dials and a profile are not possible on this link.
#[derive(Clone, Debug, PartialEq)]
pub enum TimeProfileError {
    /// The link does not allow a setting, or a needed value was not measured.
    Dials(DialsError),
    /// A dial cannot have this setting.
    Setting(SettingError),
}

impl fmt::Display for TimeProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dials(error) => error.fmt(f),
            Self::Setting(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for TimeProfileError {}

impl From<DialsError> for TimeProfileError {
    fn from(error: DialsError) -> Self {
        Self::Dials(error)
    }
}

impl From<SettingError> for TimeProfileError {
    fn from(error: SettingError) -> Self {
        Self::Setting(error)
    }
}

impl TimeProfile {
    /// The link is unchanged.
    pub const NONE: Self = Self { steady: EffectiveParameters::NONE, differences: None };

    /// Returns the effective parameters of `dials` and `profile` on a link with its `own` parameters, where a
    /// tick takes `tick_ns`.
    ///
    /// # Errors
    /// Returns an error if [`EffectiveParameters::new`] does at any point of the profile. Returns an error if a
    /// dial cannot vary like this, or if both `dials` and `profile` set a dial.
    pub fn new(
        dials: &Dials,
        profile: Option<&Profile>,
        own: &Own,
        tick_ns: f64,
    ) -> Result<Self, TimeProfileError> {
        let points = match profile {
            Some(profile) => points(dials, profile, own, tick_ns)?,
            None => vec![Point { at: 0, parameters: EffectiveParameters::new(dials, own, tick_ns)? }],
        };
        let varying = varying(dials, own, tick_ns)?;
        let steady = points.first().map_or(EffectiveParameters::NONE, |point| point.parameters);
        let is_constant = points.iter().all(|point| point.parameters == steady);
        let points = if is_constant { Vec::new() } else { points };
        let ticks = |ns: Option<u64>| ns.map(|ns| time_in_ticks(ns, tick_ns).max(1));
        let (period, idle) =
            (ticks(profile.and_then(Profile::repeat_ns)), ticks(profile.and_then(Profile::idle_ns)));
        let is_steady = varying.is_empty() && points.is_empty();
        let differences = (!is_steady).then(|| Box::new(Differences { varying, points, period, idle }));
        Ok(Self { steady, differences })
    }

    /// Reports whether all messages have the same parameters.
    #[inline]
    pub const fn is_steady(&self) -> bool {
        self.differences.is_none()
    }

    /// Returns the parameters of all messages if they have the same. Otherwise it returns means for
    /// parameters that vary, and initial values for parameters that change.
    #[inline]
    pub const fn steady(&self) -> &EffectiveParameters {
        &self.steady
    }

    /// Returns the parameters of a message at `elapsed` ticks after the profile began. Each call draws the
    /// random variation anew.
    #[inline]
    pub fn parameters_at(&self, elapsed: u64, random: &mut Random) -> EffectiveParameters {
        let mut parameters = self.means_at(elapsed);
        for (dial, quantiles) in self.differences.iter().flat_map(|differences| &differences.varying) {
            // The gap per byte does not vary by chance.
            if let Some(ticks) = parameters.ticks_mut(*dial) {
                *ticks = quantiles.draw(random);
            }
        }
        parameters
    }

    /// Works like [`TimeProfile::parameters_at`], but with means instead of random values.
    #[inline]
    pub(super) fn means_at(&self, elapsed: u64) -> EffectiveParameters {
        let differences = self.differences.as_ref();
        differences.and_then(|differences| differences.means_at(elapsed)).unwrap_or(self.steady)
    }

    /// Returns the latency of a message that would be due without one at `elapsed` ticks after the profile
    /// began. It serves [`Lane::due_by`](super::timing::Lane::due_by).
    #[inline]
    pub fn latency_at(&self, elapsed: u64, random: &mut Random) -> u64 {
        let Some(differences) = &self.differences else { return self.steady.latency.ticks() };
        match differences.latencies() {
            Some(latencies) => latencies.draw(random),
            None => self.means_at(elapsed).latency.ticks(),
        }
    }

    /// Returns the pause after which the profile restarts, in ticks.
    pub(super) fn idle(&self) -> Option<u64> {
        self.differences.as_ref().and_then(|differences| differences.idle)
    }

    /// Returns the longest time that the bytes of a message can delay its departure ([`EffectiveParameters::delay`]), in
    /// ticks.
    pub fn longest_delay(&self, bytes: usize) -> u64 {
        let steady = self.steady.delay(bytes);
        let points = self.differences.iter().flat_map(|differences| &differences.points);
        points.map(|point| point.parameters.delay(bytes)).fold(steady, u64::max)
    }

    /// Returns the largest latency that a message can have, in ticks.
    pub fn longest_latency(&self) -> u64 {
        let steady = self.steady.latency.ticks();
        let Some(differences) = &self.differences else { return steady };
        match differences.latencies() {
            Some(latencies) => latencies.most(),
            None => {
                differences.points.iter().map(|point| point.parameters.latency.ticks()).fold(steady, u64::max)
            }
        }
    }
}

impl Differences {
    /// Returns the distribution of the latency, if it varies by chance.
    fn latencies(&self) -> Option<&Quantiles> {
        self.varying.iter().find(|(dial, _)| *dial == Dial::Latency).map(|(_, quantiles)| quantiles)
    }

    /// Returns the parameters at a time, without random variation. Returns `None` if nothing changes with
    /// time.
    fn means_at(&self, elapsed: u64) -> Option<EffectiveParameters> {
        let time = self.period.map_or(elapsed, |period| elapsed % period);
        // At a step the later point is in force.
        let next = self.points.partition_point(|point| point.at <= time);
        let last = self.points.get(next.checked_sub(1)?)?;
        Some(match self.points.get(next) {
            Some(next) => {
                let share = (time - last.at) as f64 / (next.at - last.at) as f64;
                between(&last.parameters, next.parameters, share)
            }
            None => last.parameters,
        })
    }
}

/// Converts a time to ticks and rounds it.
fn time_in_ticks(ns: u64, tick_ns: f64) -> u64 {
    (ns as f64 / tick_ns + 0.5) as u64
}

/// Returns the effective parameters at each point of a profile.
fn points(dials: &Dials, profile: &Profile, own: &Own, tick_ns: f64) -> Result<Vec<Point>, TimeProfileError> {
    let is_turned = |dial: &Dial| profile.changes(*dial);
    if let Some(twice) = Dial::ALL.into_iter().filter(is_turned).find(|&dial| dials.get(dial).is_some()) {
        let text = format!("{twice} is turned by the profile and by itself: leave one of them away");
        return Err(SettingError::new(text).into());
    }
    let points = profile.points().iter().map(|point| {
        let dials = Dial::ALL.into_iter().filter(is_turned).fold(*dials, |dials, dial| {
            let setting = point.dials.get(dial).or_else(|| whole_of_own(dial, own));
            setting.map_or(dials, |setting| dials.with(dial, setting))
        });
        Ok(Point {
            at: time_in_ticks(point.at_ns, tick_ns),
            parameters: EffectiveParameters::new(&dials, own, tick_ns)?,
        })
    });
    points.collect()
}

/// Returns the setting of a dial at a point that adds nothing. A gap is enforced as a whole, so it falls to
/// the link's own gap, not to 0.
fn whole_of_own(dial: Dial, own: &Own) -> Option<Setting> {
    own.get(dial).filter(|_| dial.is_gap()).map(Setting::Set)
}

/// Returns the dials that vary by chance.
fn varying(dials: &Dials, own: &Own, tick_ns: f64) -> Result<Vec<(Dial, Quantiles)>, TimeProfileError> {
    let turned = Dial::ALL.into_iter().filter_map(|dial| Some((dial, dials.get(dial)?, dials.spread(dial)?)));
    let tables = turned.map(|(dial, setting, spread)| {
        check(dial, setting, spread)?;
        let beside = beside_setting_ns(own, dial, setting)?;
        Ok((dial, Quantiles::new(setting.amount(), spread, beside, tick_ns)))
    });
    tables.collect()
}

/// Checks a setting. A parsed setting is valid, but a program may have made another one.
fn check(dial: Dial, setting: Setting, spread: Spread) -> Result<(), SettingError> {
    spread::check(dial, setting, spread)
        .map_err(|why| SettingError::new(format!("{dial} {}{spread} {why}", Spelled(dial, setting))))
}

/// Interpolates between two points whose latencies are of the same kind.
fn between(from: &EffectiveParameters, mut to: EffectiveParameters, share: f64) -> EffectiveParameters {
    let real = |from: f64, to: f64| from + (to - from) * share;
    let mut parameters = EffectiveParameters {
        gap_per_byte: real(from.gap_per_byte, to.gap_per_byte),
        // A point that does not name an added gap adds nothing.
        added_per_byte: match (from.added_per_byte, to.added_per_byte) {
            (None, None) => None,
            (from, to) => Some(real(from.unwrap_or(0.0), to.unwrap_or(0.0))),
        },
        ..*from
    };
    for dial in Dial::ALL {
        if let (Some(ticks), Some(to)) = (parameters.ticks_mut(dial), to.ticks_mut(dial)) {
            *ticks = (real(*ticks as f64, *to as f64) + 0.5) as u64;
        }
    }
    parameters
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dial::link::Seen;
    use crate::dial::parameters::Latency;
    use crate::dial::timing::{Departures, Lane};
    use alloc::string::ToString;
    use libm::sqrt;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn time_profile(dials: &str, profile: &str, own: &Own) -> Result<TimeProfile, TimeProfileError> {
        let profile = (!profile.is_empty()).then(|| profile.parse().unwrap());
        TimeProfile::new(&dials.parse().unwrap(), profile.as_ref(), own, 1.0)
    }

    fn unknown(dials: &str, profile: &str) -> TimeProfile {
        time_profile(dials, profile, &Own::UNKNOWN).unwrap()
    }

    const SAWTOOTH: &str = "repeat 50us\nat 0us latency+50us\nat 50us latency+0us";

    #[test]
    fn what_neither_varies_nor_changes_is_steady() {
        for (dials, profile) in
            [("", ""), ("latency+1us,send-gap=2us", ""), ("", "at 0us latency+1us\nat 9us latency+1us")]
        {
            let time_profile = unknown(dials, profile);
            assert!(time_profile.is_steady());
            assert_eq!(time_profile.parameters_at(5000, &mut Random::new(1)), *time_profile.steady());
        }
        assert_eq!(unknown("latency+1us", "").steady().latency, Latency::Beyond(1000));
        assert!(!unknown("latency+1us±10ns", "").is_steady());
        assert!(!unknown("", SAWTOOTH).is_steady());
    }

    #[test]
    fn what_varies_is_drawn_and_the_rest_stays() {
        let time_profile = unknown("latency=10us±2us:lognormal,send-gap=1us,recv-gap=3us±1us:uniform", "");
        assert_eq!(time_profile.steady().latency, Latency::After(10_000));
        let mut random = Random::new(1);
        let all: Vec<EffectiveParameters> =
            (0..1000).map(|_| time_profile.parameters_at(0, &mut random)).collect();
        assert!(all.iter().all(|parameters| parameters.send_gap == 1000 && (1267..=4733).contains(&parameters.recv_gap)));
        assert!(all.iter().all(|parameters| matches!(parameters.latency, Latency::After(4000..25_000))));
        let mean = all.iter().map(|parameters| parameters.latency.ticks()).sum::<u64>() / 1000;
        assert!((9_800..10_200).contains(&mean), "{mean}");
        assert!(all.iter().all(|parameters| parameters.latency.ticks() <= time_profile.longest_latency()));
        assert_eq!(unknown("", SAWTOOTH).longest_latency(), 50_000);
    }

    /// A draw replaces the setting. The link's own value is added or subtracted as for a setting.
    #[test]
    fn a_draw_is_added_to_a_gap_and_the_own_overhead_taken_off_it() {
        let mut own = Own::UNKNOWN;
        own.note(Dial::SendGap, 500.0);
        own.note(Dial::RecvOverhead, 900.0);
        let time_profile =
            time_profile("send-gap+1us±1us:exponential,recv-overhead=1us±400ns", "", &own).unwrap();
        let mut random = Random::new(1);
        let all: Vec<EffectiveParameters> =
            (0..2000).map(|_| time_profile.parameters_at(0, &mut random)).collect();
        let least = all.iter().map(|parameters| parameters.send_gap).min().unwrap();
        assert!((500..510).contains(&least), "{least}");
        assert!(all.iter().any(|parameters| parameters.recv_overhead == 0));
        assert!(all.iter().any(|parameters| parameters.recv_overhead > 500));
    }

    fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
        (mean, sqrt(squares / values.len() as f64))
    }

    /// The messages go through all calculations. Departures are as far apart as the gaps that were drawn, and
    /// each message is as late as its latency.
    #[test]
    fn messages_have_the_mean_and_the_deviation_that_were_asked_for() {
        let time_profile = unknown("latency=2us±500ns:lognormal,send-gap=20us±3us:exponential", "");
        let (mut departures, mut lane, mut random) = (Departures::default(), Lane::default(), Random::new(3));
        let (mut gaps, mut late, mut last) = (Vec::new(), Vec::new(), 0);
        for _ in 0..100_000 {
            let parameters = time_profile.parameters_at(0, &mut random);
            let departed = departures.depart(0, 8, &parameters);
            let due = lane.due_by(Some(departed), 8, Seen::late(departed.at), &parameters, |here| {
                time_profile.latency_at(here, &mut random)
            });
            gaps.push((departed.at - last) as f64);
            late.push((due - departed.at) as f64);
            last = departed.at;
        }
        for (values, mean, deviation) in [(&gaps[1..], 20e3, 3e3), (&late, 2e3, 500.0)] {
            let found = mean_and_deviation(values);
            assert!((found.0 / mean - 1.0).abs() < 0.01, "{found:?}");
            assert!((found.1 / deviation - 1.0).abs() < 0.02, "{found:?}");
        }
    }

    #[test]
    fn between_points_dials_go_linearly_and_stay_at_the_last() {
        let profile = "at 0us latency+1us\nat 10us latency+2us\nat 10us latency+4us\nat 20us";
        let time_profile = unknown("send-overhead+7ns", profile);
        let mut random = Random::new(1);
        for (time, latency) in [
            (0, 1000),
            (5_000, 1500),
            (9_999, 2000),
            (10_000, 4000),
            (15_000, 2000),
            (20_000, 0),
            (u64::MAX, 0),
        ] {
            let parameters = time_profile.parameters_at(time, &mut random);
            assert_eq!((parameters.latency.ticks(), parameters.send_overhead), (latency, 7), "{time}");
            assert_eq!(time_profile.latency_at(time, &mut random), latency);
        }
    }

    #[test]
    fn a_profile_begins_again() {
        let time_profile = unknown("", "repeat 30us\nat 0us send-gap=1us\nat 20us send-gap=3us");
        let mut random = Random::new(1);
        let gaps = [0, 10, 25, 30, 40, 3_000_010]
            .map(|us| time_profile.parameters_at(us * 1000, &mut random).send_gap);
        assert_eq!(gaps, [1000, 2000, 3000, 1000, 2000, 2000]);
    }

    /// An added gap is enforced as a whole, also at a point that adds nothing.
    #[test]
    fn an_added_gap_falls_to_that_of_the_link() {
        let mut own = Own::UNKNOWN;
        own.note(Dial::SendGap, 300.0);
        let time_profile = time_profile("", "at 0us send-gap+1us\nat 10us", &own).unwrap();
        let gaps = [0, 5_000, 10_000].map(|at| time_profile.parameters_at(at, &mut Random::new(1)).send_gap);
        assert_eq!(gaps, [1300, 800, 300]);
    }

    #[test]
    fn what_cannot_be_is_named() {
        let refused = |dials: &str, profile: &str| {
            let text = time_profile(dials, profile, &Own::UNKNOWN).unwrap_err().to_string();
            assert_eq!(text.lines().count(), 1);
            text
        };
        assert!(refused("latency+1us", SAWTOOTH).contains("latency is turned by the profile and by itself"));
        assert!(refused("", "at 0us send-gap+1us").contains("send-gap"));
        assert!(refused("send-gap+2us±1us", "").contains("send-gap"));
        // Such a spread comes from a program, not from parsing.
        let spread = Spread { deviation: 1.0, shape: spread::Shape::Normal };
        let turned = spread::VaryingSetting { setting: Setting::Set(1.0), spread: Some(spread) };
        let dials = Dials::NONE.with_varying(Dial::GapPerByte, turned);
        let error = TimeProfile::new(&dials, None, &Own::UNKNOWN, 1.0).unwrap_err().to_string();
        assert!(error.contains("gap-per-byte =1ns/B±1ns:normal cannot vary"), "{error}");
    }

    proptest! {
        /// A time profile of several dials stays between its points.
        #[test]
        fn nothing_leaves_the_range_of_its_points(
            points in vec((0..10_000u64, 0..5000u32, 0..5000u32), 1..20), repeat: bool, time: u64,
        ) {
            let mut at = 0;
            let mut text: Vec<_> = points.iter().enumerate().map(|(nth, (pause, latency, gap))| {
                at += if nth == 0 { 0 } else { *pause };
                format!("at {at}ns latency+{latency}ns send-gap={gap}ns")
            }).collect();
            if repeat {
                text.push(format!("repeat {}ns", at + 1));
            }
            let Ok(profile) = text.join("\n").parse::<Profile>() else { panic!("{text:?}") };
            let time_profile = TimeProfile::new(&Dials::NONE, Some(&profile), &Own::UNKNOWN, 1.0).unwrap();
            let parameters = time_profile.parameters_at(time, &mut Random::new(1));
            let within = |value: u64, of: fn(&(u64, u32, u32)) -> u32| {
                let all = points.iter().map(of);
                u64::from(all.clone().min().unwrap()) <= value && value <= u64::from(all.max().unwrap())
            };
            prop_assert!(within(parameters.latency.ticks(), |point| point.1) && within(parameters.send_gap, |point| point.2));
        }

        #[test]
        fn the_same_seed_gives_the_same_parameters(seed: u64) {
            let profile = "repeat 50us\nat 0us recv-overhead+50us\nat 50us";
            let time_profile = unknown("latency+9us±3us:lognormal,send-gap=5us±1us", profile);
            let draw = || {
                let mut random = Random::new(seed);
                (0..100).map(|time| time_profile.parameters_at(time * 777, &mut random)).collect::<Vec<_>>()
            };
            prop_assert_eq!(draw(), draw());
        }
    }
}
