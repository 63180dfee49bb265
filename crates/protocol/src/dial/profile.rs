//! Time profiles: dials that change with time, as a text with one statement per line:
//!
//! ```text
//! # arriving messages wait for the next interrupt
//! repeat 50us
//! at 0us  latency+50us
//! at 50us latency+0us
//! ```
//!
//! `at` gives the dials at a time, in the syntax of [`Dials`], separated by commas or spaces. Between two
//! points every dial changes linearly; two points at the same time are a step. A dial that a point does not
//! name adds nothing there. `repeat` restarts the profile after that time; without it the last point stays in
//! force. `idle` restarts the profile with the first message after a pause of that length.

use super::parameters::Dials;
use super::setting::{Setting, Spelled};
use super::table::Dial;
use crate::quantity;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The most points of a profile: more than a person writes, and few enough to search.
const POINTS_AT_MOST: usize = 1000;
/// The latest time in a profile: one day.
const LATEST_NS: u64 = 24 * 3600 * 1_000_000_000;

/// A time profile: dials that change with time.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    points: Vec<Point>,
    repeat_ns: Option<u64>,
    idle_ns: Option<u64>,
}

/// The dials at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The time since the profile began, in nanoseconds.
    pub at_ns: u64,
    /// The dials, none of which varies by chance.
    pub dials: Dials,
}

/// The reason why a text is not a profile: one line that names the line of the text and says what to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileError(String);

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for ProfileError {}

impl Profile {
    /// Returns the points in order of time. The first is at 0. Two points at the same time are a step.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Returns the time after which the profile restarts, if it does.
    pub const fn repeat_ns(&self) -> Option<u64> {
        self.repeat_ns
    }

    /// Returns the pause after which the profile restarts, if it does.
    pub const fn idle_ns(&self) -> Option<u64> {
        self.idle_ns
    }

    /// Reports whether any point names this dial with a setting that changes the link.
    pub fn changes(&self, dial: Dial) -> bool {
        self.points.iter().any(|point| point.dials.get(dial).is_some())
    }
}

impl fmt::Display for Profile {
    /// Writes the profile in the form that is parsed. Each point names every dial that the profile changes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (word, ns) in [("repeat", self.repeat_ns), ("idle", self.idle_ns)] {
            if let Some(ns) = ns {
                writeln!(f, "{word} {}", Time(ns))?;
            }
        }
        for Point { at_ns, dials } in &self.points {
            write!(f, "at {}", Time(*at_ns))?;
            for dial in Dial::ALL.into_iter().filter(|&dial| self.changes(dial)) {
                let setting = dials.get(dial).unwrap_or(Setting::Add(0.0));
                write!(f, " {dial}{}", Spelled(dial, setting))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// Whole nanoseconds, written in the largest unit of which they are a multiple.
struct Time(u64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(ns) = *self;
        let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
        match units.into_iter().find(|(unit_ns, _)| ns > 0 && ns % unit_ns == 0) {
            Some((unit_ns, unit)) => write!(f, "{}{unit}", ns / unit_ns),
            None => write!(f, "{ns}ns"),
        }
    }
}

impl core::str::FromStr for Profile {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Self, ProfileError> {
        let mut draft = Draft::default();
        for (nth, line) in text.lines().enumerate() {
            let statement = line.split('#').next().unwrap_or("").trim();
            if !statement.is_empty() {
                draft
                    .read(nth + 1, statement)
                    .map_err(|why| ProfileError(format!("line {}: {why}", nth + 1)))?;
            }
        }
        draft.finish().map_err(ProfileError)
    }
}

/// A profile that is being parsed.
#[derive(Default)]
struct Draft {
    /// Each point with the number of its line.
    points: Vec<(usize, Point)>,
    repeat: Option<(usize, u64)>,
    idle: Option<(usize, u64)>,
}

impl Draft {
    fn read(&mut self, line: usize, statement: &str) -> Result<(), String> {
        let (word, rest) = statement.split_once(char::is_whitespace).unwrap_or((statement, ""));
        match word {
            "at" => self.read_point(line, rest.trim_start()),
            "repeat" => read_once(&mut self.repeat, line, word, rest),
            "idle" => read_once(&mut self.idle, line, word, rest),
            _ => Err(format!("'{word}' begins no statement: use at, repeat or idle")),
        }
    }

    fn read_point(&mut self, line: usize, text: &str) -> Result<(), String> {
        let (time, dials) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let at_ns = read_time_ns("at", time)?;
        match self.points.last() {
            None if at_ns > 0 => return Err("the first point is at 0us".into()),
            Some((_, last)) if at_ns < last.at_ns => {
                let last = Time(last.at_ns);
                return Err(format!("at {time} comes after at {last}: times rise, or stay for a step"));
            }
            _ if self.points.len() == POINTS_AT_MOST => {
                return Err(format!("a profile has {POINTS_AT_MOST} points at most"));
            }
            _ => {}
        }
        self.points.push((line, Point { at_ns, dials: read_dials(dials)? }));
        Ok(())
    }

    fn finish(self) -> Result<Profile, String> {
        let Some((_, last)) = self.points.last() else {
            return Err("a profile has a point at least, as in at 0us latency+10us".into());
        };
        if let Some((line, repeat_ns)) = self.repeat
            && repeat_ns < last.at_ns
        {
            let (repeat, last) = (Time(repeat_ns), Time(last.at_ns));
            return Err(format!("line {line}: repeat {repeat} cuts off the point at {last}: repeat later"));
        }
        Dial::ALL.into_iter().try_for_each(|dial| check_kind(&self.points, dial))?;
        let ns = |told: Option<(usize, u64)>| told.map(|(_, ns)| ns);
        let (repeat_ns, idle_ns) = (ns(self.repeat), ns(self.idle));
        Ok(Profile { points: self.points.into_iter().map(|(_, point)| point).collect(), repeat_ns, idle_ns })
    }
}

/// Checks that a dial is set (`=`) at every point or at none. There is no linear change from an added amount
/// to a set value.
fn check_kind(points: &[(usize, Point)], dial: Dial) -> Result<(), String> {
    let sets = |point: &Point| matches!(point.dials.get(dial), Some(Setting::Set(_)));
    let setting = points.iter().find(|(_, point)| sets(point));
    let other = points.iter().find(|(_, point)| !sets(point));
    match (setting, other) {
        (Some((setting, _)), Some((other, _))) => Err(format!(
            "line {other}: {dial} is not set (=) here and is on line {setting}: set it at every point or at none"
        )),
        _ => Ok(()),
    }
}

/// Parses a statement that may occur only once.
fn read_once(place: &mut Option<(usize, u64)>, line: usize, word: &str, time: &str) -> Result<(), String> {
    if let Some((first, _)) = place {
        return Err(format!("{word} is on line {first} already"));
    }
    let ns = read_time_ns(word, time)?;
    if ns == 0 {
        return Err(format!("{word} {} is less than 1ns, as in {word} 50us", time.trim()));
    }
    *place = Some((line, ns));
    Ok(())
}

/// Parses a time and rounds it to a nanosecond.
fn read_time_ns(word: &str, text: &str) -> Result<u64, String> {
    let time = text.trim();
    let ns = quantity::nanoseconds(time)
        .map_err(|_| format!("'{time}' is no time with a unit (ns, us, ms or s), as in {word} 50us"))?;
    if !(0.0..=LATEST_NS as f64).contains(&ns) {
        return Err(format!("{word} {time} is out of range, which is 0us to {}", Time(LATEST_NS)));
    }
    Ok((ns + 0.5) as u64)
}

/// Parses the dials of a point. Leaves out the settings that add nothing.
fn read_dials(text: &str) -> Result<Dials, String> {
    let words: Vec<&str> = text.split([',', ' ', '\t']).filter(|word| !word.is_empty()).collect();
    let dials: Dials = words.join(",").parse().map_err(|error| format!("{error}"))?;
    if let Some(dial) = Dial::ALL.into_iter().find(|&dial| dials.spread(dial).is_some()) {
        return Err(format!(
            "{dial} varies by chance (±), and in a profile with time alone: leave the ± away"
        ));
    }
    let turned = Dial::ALL.into_iter().filter_map(|dial| Some((dial, dials.get(dial)?)));
    Ok(turned.fold(Dials::NONE, |dials, (dial, setting)| dials.with(dial, setting)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dial::setting::most;
    use alloc::string::ToString;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const SAWTOOTH: &str = "# 50 µs\nrepeat 50us\n\nat 0us  latency+50us  # all of it\nat 50us latency+0us\n";

    #[test]
    fn points_are_read_with_their_dials() {
        let profile: Profile = SAWTOOTH.parse().unwrap();
        assert_eq!((profile.repeat_ns(), profile.idle_ns()), (Some(50_000), None));
        let begin = Dials::NONE.with(Dial::Latency, Setting::Add(50e3));
        let points = [Point { at_ns: 0, dials: begin }, Point { at_ns: 50_000, dials: Dials::NONE }];
        assert_eq!(profile.points(), points);
        assert!(profile.changes(Dial::Latency) && !profile.changes(Dial::SendGap));
        assert_eq!(
            profile.to_string(),
            "repeat 50us\nat 0ns latency+50us\nat 50us latency+0ns\n",
            "each dial is named at each point"
        );
        let profile: Profile = "at 0s send-gap=1us, latency=2us\r\nidle 200ms".parse().unwrap();
        assert_eq!(profile.to_string(), "idle 200ms\nat 0ns latency=2us send-gap=1us\n");
    }

    #[test]
    fn each_mistake_is_named_with_its_line() {
        let long = "at 0us\n".repeat(POINTS_AT_MOST + 1);
        for (text, names) in [
            ("", "a point at least"),
            ("# nothing\n", "a point at least"),
            ("repeat 1us", "a point at least"),
            ("\nfrom 0us", "line 2: 'from' begins no statement: use at, repeat or idle"),
            ("at", "line 1: '' is no time"),
            ("at 0", "no time with a unit"),
            ("at latency+1us", "no time with a unit"),
            ("at 1us", "line 1: the first point is at 0us"),
            ("at 0us\nat 2us\nat 1us", "line 3: at 1us comes after at 2us"),
            ("at 0us\nat -1us", "line 2: at -1us is out of range"),
            ("at 0us\nat 90000s", "0us to 86400s"),
            ("at 0us\nat 2us\nrepeat 1us", "line 3: repeat 1us cuts off the point at 2us"),
            ("at 0us\nrepeat 0us", "less than 1ns"),
            ("idle 1us\nidle 1us\nat 0us", "line 2: idle is on line 1 already"),
            ("idle\nat 0us", "line 1: '' is no time"),
            ("at 0us speed+1us", "line 1: 'speed' is no dial"),
            ("at 0us latency", "neither adds (+)"),
            ("at 0us latency+1us latency+2us", "turned twice"),
            ("at 0us latency+9us±1us", "leave the ± away"),
            (
                "at 0us latency+1us\nat 1us latency=1us",
                "line 1: latency is not set (=) here and is on line 2",
            ),
            ("at 0us send-gap=1us\nat 1us", "line 2: send-gap is not set (=) here"),
            (&long, "line 1001: a profile has 1000 points at most"),
        ] {
            let message = text.parse::<Profile>().unwrap_err().to_string();
            assert!(message.contains(names), "{text}: {message}");
            assert_eq!(message.lines().count(), 1, "{message}");
        }
    }

    fn setting(adds: bool, amount: f64) -> Setting {
        if adds { Setting::Add(amount) } else { Setting::Set(amount) }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "((at|repeat|idle|#) ?[0-9.e-]{0,4}(us|s|ns|µs)? ?[a-z+=0-9./±-]{0,20}[\n ,]){0,6}") {
            let _ = text.parse::<Profile>();
        }

        #[test]
        fn what_is_written_is_read_again(
            pauses in vec((0..1u64 << 40, vec(0.1..1.0f64, Dial::ALL.len())), 1..20),
            turned in vec(prop_oneof![Just(None), Just(Some(true)), Just(Some(false))], Dial::ALL.len()),
            more_ns in proptest::option::of(1..1u64 << 40),
            idle_ns in proptest::option::of(1..1u64 << 40),
        ) {
            let mut at_ns = 0;
            let points = pauses.iter().enumerate().map(|(nth, (pause, shares))| {
                at_ns += if nth == 0 { 0 } else { *pause };
                let dials = Dial::ALL.into_iter().zip(shares).zip(&turned).fold(
                    Dials::NONE,
                    |dials, ((dial, share), adds)| match adds {
                        Some(adds) => dials.with(dial, setting(*adds, share * most(dial))),
                        None => dials,
                    },
                );
                Point { at_ns, dials }
            });
            let points: Vec<Point> = points.collect();
            let profile = Profile { points, repeat_ns: more_ns.map(|more| at_ns + more), idle_ns };
            prop_assert_eq!(profile.to_string().parse(), Ok(profile));
        }
    }
}
