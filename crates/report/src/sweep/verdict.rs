//! The verdict of a sweep on the effect of its dials, in a sentence: the same on a terminal and on a page.
//!
//! No statement goes beyond its interval. A dial whose slope may be 0 has no significant effect. A value at
//! which the program is slower stands beside the values between which it lies. Dials whose values do not
//! differ significantly share their place. Values that are added to the link do not compare with values that the link
//! is set to.

use super::value;
use netdyno_measure::show::{Percent, round_rate};
use netdyno_measure::stats::sorted;
use netdyno_measure::sweep::{Point, Sweep, Swept};

/// The slowdown that the sentence reports.
const SLOWER: f64 = 0.10;
/// A dial that slows the program down by at most this share does not matter.
const MATTERS: f64 = 0.01;

/// Returns the verdict.
pub fn verdict(sweep: &Sweep) -> String {
    let dials = sweep.dials.iter().map(|swept| Dial { sweep, swept });
    let (rates, times): (Vec<Dial<'_>>, Vec<Dial<'_>>) = dials.partition(|dial| dial.swept.is_per_byte());
    let (felt, unfelt): (Vec<Dial<'_>>, Vec<Dial<'_>>) = times.into_iter().partition(Dial::is_felt);
    let mut parts = ranked(felt, &unfelt);
    parts.extend(unfelt.iter().map(Dial::without_effect));
    parts.extend(rates.iter().map(Dial::bandwidth));
    if parts.is_empty() {
        return "no dial was turned".into();
    }
    parts.join("; ")
}

/// Reports that a dial slows the program down.
pub fn is_felt(sweep: &Sweep, swept: &Swept) -> bool {
    Dial { sweep, swept }.is_felt()
}

/// Describes the dials that slow the program down, the most sensitive first. `unfelt` are the dials that do not.
fn ranked(mut felt: Vec<Dial<'_>>, unfelt: &[Dial<'_>]) -> Vec<String> {
    let reach = |dial: &Dial<'_>| dial.reach();
    felt.sort_by(|a, b| earlier(reach(a).at).total_cmp(&earlier(reach(b).at)));
    let Some(first) = felt.first() else { return Vec::new() };
    let named = |dials: &[Dial<'_>], separator: &str| {
        let each: Vec<String> =
            dials.iter().map(|dial| format!("{}: {}", dial.swept.dial, dial.slower())).collect();
        each.join(separator)
    };
    if felt.iter().any(|dial| dial.swept.adds != first.swept.adds) {
        return vec![format!("sensitive to {}", named(&felt, ", to "))];
    }
    // A dial whose range begins before the range of the first dial ends may be the more sensitive one.
    let end = earlier(reach(first).latest);
    // Values that were not tried say nothing.
    let was_tried_up_to = |dial: &Dial<'_>, value: f64| {
        dial.swept.adds == first.swept.adds && dial.last().is_some_and(|last| last.value >= value)
    };
    let has_rank = |dial: &Dial<'_>| reach(dial).earliest.is_some() || was_tried_up_to(dial, end);
    let at = reach(first).at;
    let is_most = felt[1..].iter().all(has_rank)
        && at.is_some_and(|at| unfelt.iter().all(|dial| was_tried_up_to(dial, at)))
        && felt.len() + unfelt.len() > 1;
    let head = if is_most { "most sensitive to" } else { "sensitive to" };
    let (alike, less): (Vec<usize>, Vec<usize>) =
        (1..felt.len()).partition(|&nth| earlier(reach(&felt[nth]).earliest) <= end);
    let (less, others): (Vec<usize>, Vec<usize>) = less.into_iter().partition(|&nth| has_rank(&felt[nth]));
    let of = |those: &[usize]| those.iter().map(|&nth| felt[nth]).collect::<Vec<_>>();
    let most = [&[0][..], &alike].concat();
    let mut parts = vec![format!("{head} {}", named(&of(&most), " and, not told apart from it, to "))];
    for (word, those) in [("less", less), ("also", others)] {
        if !those.is_empty() {
            parts.push(format!("{word} to {}", named(&of(&those), ", to ")));
        }
    }
    parts
}

/// Orders a value that is not reached last.
fn earlier(value: Option<f64>) -> f64 {
    value.unwrap_or(f64::INFINITY)
}

/// A dial of a sweep.
#[derive(Clone, Copy)]
struct Dial<'a> {
    sweep: &'a Sweep,
    swept: &'a Swept,
}

/// The slowdown of the program at a value relative to the unmodified link: lower and upper bound.
#[derive(Clone, Copy)]
struct Slowdown {
    least: f64,
    most: f64,
}

/// The value at which the program is slower by [`SLOWER`]: by the medians, and the two values between which
/// it lies by the ranges of the runs.
struct Reach {
    at: Option<f64>,
    earliest: Option<f64>,
    latest: Option<f64>,
}

impl Dial<'_> {
    /// Reports that the dial slows the program down. The interval of its slope must show it, which is wrong
    /// for one dial in twenty. Where values are set, the slope is that among them, and the runs at the last value may show
    /// it as surely. In addition all runs at some value must be slower than all runs of the unmodified link, and some by
    /// more than [`MATTERS`].
    fn is_felt(&self) -> bool {
        let slows = self.swept.slope.is_some_and(|slope| (slope < 0.0) == self.sweep.higher_is_better);
        let shows = slows && !is_insignificant(self.swept) || !self.swept.adds && self.last_is_slower();
        let is_apart = |point: &Point| self.slowdown(point).is_some_and(|slowdown| slowdown.least > 1.0);
        let matters =
            |point: &Point| self.slowdown(point).is_some_and(|slowdown| slowdown.most > 1.0 + MATTERS);
        let points = &self.swept.points;
        shows && points.iter().any(is_apart) && points.iter().any(matters)
    }

    /// Reports that all runs at the last value are slower than all of the link as it is, and that this comes by chance for
    /// one dial in twenty at most: of all orders of so many runs one is this.
    fn last_is_slower(&self) -> bool {
        let Some((last, link)) = self.last().zip(self.swept.points.first()) else { return false };
        let orders: f64 = (1..=last.runs).map(|nth| (link.runs + nth) as f64 / nth as f64).product();
        let is_slower = self.slowdown(last).is_some_and(|slowdown| slowdown.least > 1.0);
        is_slower && orders * (1.0 - self.sweep.confidence) >= 1.0 - 1e-9
    }

    fn last(&self) -> Option<&Point> {
        self.swept.points.last().filter(|point| point.value > 0.0)
    }

    fn slowdown(&self, point: &Point) -> Option<Slowdown> {
        let link = self.swept.points.first().filter(|link| link.value == 0.0)?;
        let (least, most) = match self.sweep.higher_is_better {
            _ if point.value == 0.0 => (1.0, 1.0),
            true => (link.range.lo / point.range.hi, link.range.hi / point.range.lo),
            false => (point.range.lo / link.range.hi, point.range.hi / link.range.lo),
        };
        (least.is_finite() && most.is_finite()).then_some(Slowdown { least, most })
    }

    fn reach(&self) -> Reach {
        let is_meant = |slowdown: f64| (slowdown - SLOWER).abs() < 1e-9;
        let tolerance = self.swept.tolerance.iter().find(|tolerance| is_meant(tolerance.slowdown));
        Reach {
            at: tolerance.and_then(|tolerance| tolerance.value),
            earliest: self.crossing(|slowdown| slowdown.most),
            latest: self.crossing(|slowdown| slowdown.least),
        }
    }

    /// Returns the value at which the line through the slowdowns first exceeds [`SLOWER`].
    fn crossing(&self, of: impl Fn(Slowdown) -> f64) -> Option<f64> {
        self.swept.points.windows(2).find_map(|pair| {
            let [from, to] = [self.slowdown(&pair[0])?, self.slowdown(&pair[1])?].map(&of);
            let share = ((1.0 + SLOWER - from) / (to - from)).clamp(0.0, 1.0);
            let (a, b) = (pair[0].value, pair[1].value);
            // The link's own value between 0 and the first setting is unknown.
            let at = if self.swept.adds || a > 0.0 { a + share * (b - a) } else { b };
            (to > 1.0 + SLOWER).then_some(at)
        })
    }

    /// Describes the tolerance of a dial, as `10 % slower at +31 µs (+28 µs to +35 µs)`.
    fn slower(&self) -> String {
        let reach = self.reach();
        let Some(at) = reach.at else {
            return format!("less than {} slower {}", Percent(SLOWER), self.up_to_last());
        };
        let between = match (reach.earliest, reach.latest) {
            (Some(from), Some(to)) if self.named(from) == self.named(to) => String::new(),
            (Some(from), Some(to)) => format!(" ({} to {})", self.named(from), self.named(to)),
            (Some(from), None) => format!(" ({} at the earliest)", self.named(from)),
            _ => String::new(),
        };
        format!("{} slower at {}{between}", Percent(SLOWER), self.named(at))
    }

    /// Describes a dial that does not slow the program down significantly.
    fn without_effect(&self) -> String {
        let name = &self.swept.dial;
        let turned = self.swept.points.iter().filter(|point| point.value > 0.0);
        let slowest = sorted(turned.filter_map(|point| Some(self.slowdown(point)?.most)));
        let Some((&least, &most)) = slowest.first().zip(slowest.last()) else {
            return format!("{name} was not compared with the link as it is");
        };
        let up_to_last = self.up_to_last();
        match least < 1.0 - MATTERS {
            // Nothing that a dial does makes a program faster.
            true => format!(
                "with {name} {up_to_last} the program was faster, by {} at some value: something else changed it",
                Percent(1.0 - least)
            ),
            false if most <= 1.0 + MATTERS => format!("{name} does not matter {up_to_last}"),
            false => {
                format!(
                    "no effect of {name} can be told {up_to_last} (at most {} slower)",
                    Percent(most - 1.0)
                )
            }
        }
    }

    /// Describes the effect of the gap per byte. It is a bandwidth if the dial sets it. A value added to
    /// the link's own gap has no known bandwidth.
    fn bandwidth(&self) -> String {
        let level = 1.0 - MATTERS..=1.0 + MATTERS;
        let does_not_matter =
            |point: &&Point| self.slowdown(point).is_some_and(|slowdown| level.contains(&slowdown.most));
        let turned = self.swept.points.iter().filter(|point| point.value > 0.0);
        let last_without = turned.take_while(does_not_matter).last();
        let without =
            last_without.map(|point| format!("bandwidth does not matter {}", self.down_to(point.value)));
        match (without, self.is_felt()) {
            (Some(without), true) if self.reach().at.is_some() => format!("{without}, {}", self.slower()),
            (Some(without), _) => without,
            (None, true) => format!("sensitive to bandwidth: {}", self.slower()),
            (None, false) => self.without_effect(),
        }
    }

    fn down_to(&self, value: f64) -> String {
        let word = if self.is_bandwidth() { "above" } else { "up to" };
        format!("{word} {}", self.named(value))
    }

    fn up_to_last(&self) -> String {
        self.down_to(self.last().map_or(f64::NAN, |last| last.value))
    }

    /// Reports that the values of the dial are known as bandwidths.
    fn is_bandwidth(&self) -> bool {
        self.swept.is_per_byte() && !self.swept.adds
    }

    /// Returns a value of the dial, or the bandwidth to which it corresponds.
    fn named(&self, at: f64) -> String {
        if self.is_bandwidth() { round_rate(1e9 / at) } else { value(self.swept, at) }
    }
}

/// Reports that the interval of a slope contains 0, or is missing.
pub fn is_insignificant(swept: &Swept) -> bool {
    swept.slope_ci.is_none_or(|ci| ci.contains(0.0))
}
