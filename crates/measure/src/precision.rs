//! The precision of figures: the interval that each may have, and warnings about wider ones.

use crate::record::doubt::Doubt;
use crate::record::parameter::Parameter;
use crate::show::{Number, Percent, counted};
use crate::stats::Interval;

/// The cost of a clock reading, which is subtracted, has an error of this share. No figure is more precise.
const CLOCK_IS_KNOWN: f64 = 0.05;
/// The finest resolution of any clock, in nanoseconds.
const GRAIN_NS: f64 = 1e-3;

/// A time with its name.
pub(crate) struct Timed {
    pub(crate) name: String,
    pub(crate) value_ns: f64,
    pub(crate) ci_ns: Option<Interval>,
    /// The number of times that the clock measured together, which share the error of its readings.
    pub(crate) together: f64,
}

impl Timed {
    /// Returns a time of which the clock measured so many `together`, if it has a value.
    pub(crate) fn of(name: String, time: &Parameter, together: f64) -> Option<Self> {
        Some(Self { name, value_ns: time.value_ns?, ci_ns: time.ci_ns, together })
    }
}

/// A figure with the half-width that its interval may have.
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) ci: Option<Interval>,
    pub(crate) half_width: f64,
}

impl Wanted {
    /// Reports whether the figure has an interval that is narrow enough.
    pub(crate) fn is_met(&self) -> bool {
        self.ci.is_some() && !self.is_wide()
    }

    /// Reports whether the figure has an interval that is too wide.
    fn is_wide(&self) -> bool {
        self.ci.is_some_and(|ci| ci.half_width() > self.half_width)
    }

    /// Returns the half-width as a multiple of the one that the interval may have.
    fn excess(&self) -> f64 {
        self.ci.map_or(0.0, Interval::half_width) / self.half_width
    }
}

/// Returns named figures, which must be precise to a share of themselves. For a figure near 0 such a share is
/// meaningless, so that the half-width may always be what the clock resolves, of which one reading costs
/// `timer_ns`.
pub(crate) fn to_a_share(figures: Vec<Timed>, precision: f64, timer_ns: f64) -> Vec<Wanted> {
    let wanted = |Timed { name, value_ns: value, ci_ns: ci, together }: Timed| {
        // The maximum with an unknown cost is the grain.
        let finest_ns = (CLOCK_IS_KNOWN * timer_ns / together).max(GRAIN_NS);
        Wanted { name, value, ci, half_width: (precision * value.abs()).max(finest_ns) }
    };
    figures.into_iter().map(wanted).collect()
}

/// Returns the warnings that figures have no interval, and that intervals are wider than `precision`.
pub(crate) fn doubt(wanted: &[Wanted], launches: usize, precision: f64) -> Vec<Doubt> {
    let without: Vec<&Wanted> = wanted.iter().filter(|figure| figure.ci.is_none()).collect();
    match without[..] {
        [] => imprecise(wanted, precision).into_iter().collect(),
        _ if without.len() == wanted.len() => vec![too_few_launches(launches)],
        [first, ..] => {
            let text = format!(
                "{} of {} figures have a value in too few of {} for an interval, such as {}",
                without.len(),
                wanted.len(),
                counted(launches, "launch", "launches"),
                first.name
            );
            let doubt = Doubt::new("too_few_launches", text);
            std::iter::once(doubt).chain(imprecise(wanted, precision)).collect()
        }
    }
}

/// Returns the warning that intervals are wider than `precision`.
fn imprecise(wanted: &[Wanted], precision: f64) -> Option<Doubt> {
    let wide = wanted.iter().filter(|figure| figure.is_wide());
    let widest = wide.clone().max_by(|a, b| a.excess().total_cmp(&b.excess()))?;
    let text = format!(
        "{} of {} figures are wider than the ±{} asked for; the widest, {} times that, is {}",
        wide.count(),
        wanted.len(),
        Percent(precision),
        Number(widest.excess()),
        widest.name
    );
    Some(Doubt::new("imprecise", text))
}

/// Returns the names of the figures whose intervals are too wide, with their half-widths.
pub(crate) fn wide_names(wanted: &[Wanted]) -> Vec<String> {
    let wide = wanted.iter().filter(|figure| figure.is_wide());
    let share = |figure: &Wanted| Percent(figure.ci.map_or(0.0, Interval::half_width) / figure.value.abs());
    wide.map(|figure| format!("{} (±{})", figure.name, share(figure))).collect()
}

/// Returns the warning that `launches` launches give no interval.
pub(crate) fn too_few_launches(launches: usize) -> Doubt {
    let verb = if launches == 1 { "is" } else { "are" };
    let launches = counted(launches, "launch", "launches");
    let text = format!("{launches} {verb} too few for an interval at this confidence");
    Doubt::new("too_few_launches", text)
}
