//! The effective parameters of a link: the dial settings applied to its own parameters, in ticks of the clock
//! that both sides read.

use super::setting::{Setting, SettingError, Spelled, named};
use super::spread::{Spread, VaryingSetting};
use super::table::{Dial, Effect};
use core::fmt;

/// The setting of each dial, in the order of [`Dial::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Dials {
    /// `None` leaves the link unchanged.
    settings: [Option<Setting>; Dial::ALL.len()],
    /// The random variation of each setting; `None` if it does not vary.
    spreads: [Option<Spread>; Dial::ALL.len()],
}

impl Dials {
    /// The link is unchanged.
    pub const NONE: Self = Self { settings: [None; Dial::ALL.len()], spreads: [None; Dial::ALL.len()] };

    /// Returns the same dials with one dial set.
    pub const fn with(self, dial: Dial, setting: Setting) -> Self {
        self.with_varying(dial, VaryingSetting { setting, spread: None })
    }

    /// Returns the same dials with one dial set, with its random variation if it has one.
    pub const fn with_varying(
        mut self,
        dial: Dial,
        VaryingSetting { setting, spread }: VaryingSetting,
    ) -> Self {
        self.settings[dial as usize] = Some(setting);
        self.spreads[dial as usize] = spread;
        self
    }

    /// Returns the setting of a dial, or its mean if it varies. Returns `None` if the dial leaves the link
    /// unchanged.
    pub fn get(&self, dial: Dial) -> Option<Setting> {
        self.settings[dial as usize].filter(|setting| !setting.is_nothing())
    }

    /// Returns the random variation of a setting, if it has one.
    pub fn spread(&self, dial: Dial) -> Option<Spread> {
        self.spreads[dial as usize]
    }

    /// Reports whether no dial changes the link.
    pub fn are_none(&self) -> bool {
        Dial::ALL.iter().all(|&dial| self.get(dial).is_none())
    }
}

impl fmt::Display for Dials {
    /// Writes the dials in the form that is parsed: `latency=20us,send-gap+500ns±100ns:normal`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let turned = Dial::ALL.into_iter().filter_map(|dial| Some((dial, self.get(dial)?)));
        for (nth, (dial, setting)) in turned.enumerate() {
            let comma = if nth == 0 { "" } else { "," };
            write!(f, "{comma}{dial}{}", Spelled(dial, setting))?;
            if let Some(spread) = self.spread(dial) {
                write!(f, "{spread}")?;
            }
        }
        Ok(())
    }
}

impl core::str::FromStr for Dials {
    type Err = SettingError;

    /// Parses dials, each with its setting after its name, with commas between them. An empty text sets none.
    fn from_str(text: &str) -> Result<Self, SettingError> {
        let mut dials = Self::NONE;
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let at = part.find(['+', '=']).unwrap_or(part.len());
            let (name, setting) = part.split_at(at);
            let dial = named(name.trim())?;
            if dials.settings[dial as usize].is_some() {
                return Err(SettingError::twice(dial));
            }
            dials = dials.with_varying(dial, VaryingSetting::parse(dial, setting)?);
        }
        Ok(dials)
    }
}

/// The link's own parameters, as far as they were measured, in nanoseconds and nanoseconds per byte.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Own([Option<f64>; Dial::ALL.len()]);

impl Own {
    /// Nothing was measured.
    pub const UNKNOWN: Self = Self([None; Dial::ALL.len()]);

    /// Returns the link's own value of a parameter, if it was measured.
    pub fn get(&self, dial: Dial) -> Option<f64> {
        self.0[dial as usize]
    }

    /// Notes a measured value.
    pub fn note(&mut self, dial: Dial, value: f64) {
        self.0[dial as usize] = Some(value);
    }
}

/// The reason why dials cannot be set like this on this link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DialsError {
    /// The link's own value is larger than the set value.
    BelowOwn {
        /// The dial.
        dial: Dial,
        /// The set value.
        wanted: f64,
        /// The link's own value.
        own: f64,
    },
    /// The setting needs the link's own value, which was not measured.
    Unmeasured(Dial),
}

impl fmt::Display for DialsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BelowOwn { dial, wanted, own } => {
                let unit = dial.unit_ns();
                write!(
                    f,
                    "{dial} ={wanted}{unit} is below the link's own {own:.3} {unit}: set more, or add (+)"
                )
            }
            Self::Unmeasured(dial) => {
                let instead = if dial.is_gap() { "set it (=)" } else { "add to it (+)" };
                write!(f, "what {dial} the link has of its own is not known: {instead}")
            }
        }
    }
}

impl core::error::Error for DialsError {}

/// The effective latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    /// The message is due this long after its arrival, or after the arrival that the link's own latency
    /// predicts.
    Beyond(u64),
    /// The message is due this long after its last byte has left.
    After(u64),
}

impl Latency {
    /// Returns the latency in ticks, as on a link without latency of its own.
    pub const fn ticks(self) -> u64 {
        match self {
            Self::Beyond(ticks) | Self::After(ticks) => ticks,
        }
    }

    const fn ticks_mut(&mut self) -> &mut u64 {
        match self {
            Self::Beyond(ticks) | Self::After(ticks) => ticks,
        }
    }
}

/// The effective parameters of a message, in ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EffectiveParameters {
    /// The latency.
    pub latency: Latency,
    /// The processor time that is added to each message sent.
    pub send_overhead: u64,
    /// The processor time that is added to each message received.
    pub recv_overhead: u64,
    /// The least time from one departure to the next.
    pub send_gap: u64,
    /// The least time from one release to the next.
    pub recv_gap: u64,
    /// The time for each byte but the first, as a whole: it keeps departures apart.
    pub gap_per_byte: f64,
    /// The part of `gap_per_byte` that is added to the link's own; `None` if the whole is set. A message is
    /// later by this much for each byte but the first.
    pub added_per_byte: Option<f64>,
}

impl EffectiveParameters {
    /// The link is unchanged.
    pub const NONE: Self = Self {
        latency: Latency::Beyond(0),
        send_overhead: 0,
        recv_overhead: 0,
        send_gap: 0,
        recv_gap: 0,
        gap_per_byte: 0.0,
        added_per_byte: None,
    };

    /// Returns the effective parameters of `dials` on a link with its `own` parameters, where a tick takes
    /// `tick_ns`. A setting that varies gives its mean;
    /// [`TimeProfile`](super::time_profile::TimeProfile) draws values.
    ///
    /// Gaps are enforced as a whole, and overheads are added to the link's own. So an added gap and a set
    /// overhead need the link's own value.
    ///
    /// # Errors
    /// Returns [`DialsError`] if a value is below the link's own, or if a value is needed that was not
    /// measured.
    pub fn new(dials: &Dials, own: &Own, tick_ns: f64) -> Result<Self, DialsError> {
        let mut parameters = Self::NONE;
        if let Some(Setting::Set(_)) = dials.get(Dial::Latency) {
            parameters.latency = Latency::After(0);
        }
        for dial in Dial::ALL {
            let ns = effective_ns(dials, own, dial)?;
            match parameters.ticks_mut(dial) {
                Some(ticks) => *ticks = (ns / tick_ns + 0.5) as u64,
                None => parameters.gap_per_byte = ns / tick_ns,
            }
        }
        if let Some(Setting::Add(added)) = dials.get(Dial::GapPerByte) {
            parameters.added_per_byte = Some(added / tick_ns);
        }
        Ok(parameters)
    }

    /// Returns the place of a dial that is a time; `None` for the gap per byte.
    pub(super) const fn ticks_mut(&mut self, dial: Dial) -> Option<&mut u64> {
        match dial {
            Dial::Latency => Some(self.latency.ticks_mut()),
            Dial::SendOverhead => Some(&mut self.send_overhead),
            Dial::RecvOverhead => Some(&mut self.recv_overhead),
            Dial::SendGap => Some(&mut self.send_gap),
            Dial::RecvGap => Some(&mut self.recv_gap),
            Dial::GapPerByte => None,
        }
    }

    /// Returns the time from the first byte of a message to its last.
    #[inline]
    pub fn data(&self, bytes: usize) -> u64 {
        further_bytes(bytes, self.gap_per_byte)
    }

    /// Returns how much later a message of `bytes` has left than a message of one byte. If a gap is added,
    /// the link itself takes its own part of [`EffectiveParameters::data`].
    #[inline]
    pub fn delay(&self, bytes: usize) -> u64 {
        further_bytes(bytes, self.added_per_byte.unwrap_or(self.gap_per_byte))
    }
}

/// Returns the time for each byte but the first.
#[inline]
fn further_bytes(bytes: usize, per_byte: f64) -> u64 {
    (bytes.saturating_sub(1) as f64 * per_byte + 0.5) as u64
}

/// Checks that a value is not below the link's own, as far as that is known.
fn not_below(own: &Own, dial: Dial, wanted: f64) -> Result<(), DialsError> {
    match own.get(dial) {
        Some(own) if wanted < own => Err(DialsError::BelowOwn { dial, wanted, own }),
        _ => Ok(()),
    }
}

/// Returns the effective value of a dial, in nanoseconds.
fn effective_ns(dials: &Dials, own: &Own, dial: Dial) -> Result<f64, DialsError> {
    let Some(setting) = dials.get(dial) else { return Ok(0.0) };
    if let Setting::Set(wanted) = setting {
        not_below(own, dial, wanted)?;
    }
    Ok(setting.amount() + beside_setting_ns(own, dial, setting)?)
}

/// Returns the amount by which the effective value differs from the setting, in nanoseconds. Gaps are
/// enforced as a whole, so an added gap includes the link's own. Overheads are added to the link's own, so a
/// set overhead excludes it.
pub(super) fn beside_setting_ns(own: &Own, dial: Dial, setting: Setting) -> Result<f64, DialsError> {
    let own = own.get(dial).ok_or(DialsError::Unmeasured(dial));
    match (dial.effect(), setting) {
        (Effect::Gap(_) | Effect::GapPerByte, Setting::Add(_)) => own.map(|own| own.max(0.0)),
        (Effect::Overhead(_), Setting::Set(_)) => own.map(|own| -own),
        _ => Ok(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::ToString;

    fn dials(settings: &[(Dial, Setting)]) -> Dials {
        settings.iter().fold(Dials::NONE, |dials, &(dial, setting)| dials.with(dial, setting))
    }

    fn own() -> Own {
        let mut own = Own::UNKNOWN;
        for (dial, value) in [
            (Dial::Latency, 700.0),
            (Dial::SendOverhead, 100.0),
            (Dial::RecvOverhead, 200.0),
            (Dial::SendGap, 300.0),
            (Dial::RecvGap, 400.0),
            (Dial::GapPerByte, 0.5),
        ] {
            own.note(dial, value);
        }
        own
    }

    #[test]
    fn no_dials_change_no_parameter() {
        assert_eq!(EffectiveParameters::new(&Dials::NONE, &Own::UNKNOWN, 0.5), Ok(EffectiveParameters::NONE));
        let nothing = dials(&Dial::ALL.map(|dial| (dial, Setting::Add(0.0))));
        assert!(nothing.are_none());
        assert_eq!(EffectiveParameters::new(&nothing, &Own::UNKNOWN, 0.5), Ok(EffectiveParameters::NONE));
    }

    #[test]
    fn gaps_are_enforced_whole_and_overheads_added() {
        let add = dials(&Dial::ALL.map(|dial| (dial, Setting::Add(1000.0))));
        let expected = EffectiveParameters {
            latency: Latency::Beyond(2000),
            send_overhead: 2000,
            recv_overhead: 2000,
            send_gap: 2600,
            recv_gap: 2800,
            gap_per_byte: 2001.0,
            added_per_byte: Some(2000.0),
        };
        assert_eq!(EffectiveParameters::new(&add, &own(), 0.5), Ok(expected));
        let set = dials(&Dial::ALL.map(|dial| (dial, Setting::Set(1000.0))));
        let expected = EffectiveParameters {
            latency: Latency::After(2000),
            send_overhead: 1800,
            recv_overhead: 1600,
            send_gap: 2000,
            recv_gap: 2000,
            gap_per_byte: 2000.0,
            added_per_byte: None,
        };
        assert_eq!(EffectiveParameters::new(&set, &own(), 0.5), Ok(expected));
    }

    #[test]
    fn what_cannot_be_is_refused_and_named() {
        for dial in Dial::ALL {
            let below = own().get(dial).unwrap() / 2.0;
            let error =
                EffectiveParameters::new(&dials(&[(dial, Setting::Set(below))]), &own(), 1.0).unwrap_err();
            assert!(matches!(error, DialsError::BelowOwn { dial: of, .. } if of == dial), "{error:?}");
            let text = error.to_string();
            assert!(
                text.contains(dial.name()) && text.contains(&format!("own {:.3}", 2.0 * below)),
                "{text}"
            );
        }
        let unmeasured =
            |dial, setting| EffectiveParameters::new(&dials(&[(dial, setting)]), &Own::UNKNOWN, 1.0).is_err();
        for dial in [Dial::SendGap, Dial::RecvGap, Dial::GapPerByte] {
            assert!(unmeasured(dial, Setting::Add(1.0)) && !unmeasured(dial, Setting::Set(1.0)));
        }
        for dial in [Dial::SendOverhead, Dial::RecvOverhead] {
            assert!(unmeasured(dial, Setting::Set(1.0)) && !unmeasured(dial, Setting::Add(1.0)));
        }
        assert!(
            !unmeasured(Dial::Latency, Setting::Add(1.0)) && !unmeasured(Dial::Latency, Setting::Set(1.0))
        );
    }

    #[test]
    fn several_dials_are_read_and_written() {
        let text = "latency=20us+-2us, send-gap =5us,gap-per-byte=1GB/s,recv-overhead+100ns±10ns:uniform";
        let dials: Dials = text.parse().unwrap();
        let written = dials.to_string();
        assert_eq!(
            written,
            "latency=20us±2us:normal,recv-overhead+100ns±10ns:uniform,send-gap=5us,gap-per-byte=1ns/B"
        );
        assert_eq!(written.parse(), Ok(dials));
        assert_eq!("".parse(), Ok(Dials::NONE));
        for (text, names) in [
            ("speed=1us", "'speed' is no dial: use latency, send-overhead"),
            ("latency", "adds (+)"),
            ("latency=1us,latency+1us", "latency is turned twice"),
            ("latency=1", "no unit"),
            ("send-gap=1us,latency=9us±1us:round", "no shape"),
        ] {
            let message = text.parse::<Dials>().unwrap_err().to_string();
            assert!(message.contains(names), "{text}: {message}");
        }
    }

    #[test]
    fn the_first_byte_is_free() {
        let parameters = EffectiveParameters { gap_per_byte: 2.5, ..EffectiveParameters::NONE };
        assert_eq!([0, 1, 2, 3, 1001].map(|bytes| parameters.data(bytes)), [0, 0, 3, 5, 2500]);
        assert_eq!(parameters.delay(1001), 2500);
        // The link itself takes half of it.
        let added = EffectiveParameters { added_per_byte: Some(1.25), ..parameters };
        assert_eq!((added.data(1001), added.delay(1001)), (2500, 1250));
    }
}
