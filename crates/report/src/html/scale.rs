//! Scales: from values to positions on paper, and the ticks of an axis.

use netdyno_measure::stats::Interval;

/// The largest number of ticks of a linear axis.
const TICKS_AT_MOST: usize = 12;
/// A logarithmic axis is extended for the ends of an interval up to this factor of its value.
const WIDEST: f64 = 10.0;
/// No axis exceeds this value, because differences of larger numbers overflow.
const LARGEST: f64 = 1e290;

/// The distribution of values over an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Linear,
    Log,
}

/// An axis that maps the values `lo` to `hi` to the positions `from` to `to`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    kind: Kind,
    lo: f64,
    hi: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// Returns a linear axis over all of `values` and 0.
    pub fn linear(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Self {
        let (lo, hi) = extremes(values.into_iter().chain([0.0])).unwrap_or((0.0, 1.0));
        let hi = if lo < hi { hi } else { lo + 1.0 };
        Self { kind: Kind::Linear, lo, hi, from, to }
    }

    /// Returns a linear axis from `lo` to `hi`.
    pub fn between(lo: f64, hi: f64, from: f64, to: f64) -> Self {
        let sound = lo.is_finite() && hi.is_finite() && lo < hi && lo.abs().max(hi.abs()) < LARGEST;
        let (lo, hi) = if sound { (lo, hi) } else { (0.0, 1.0) };
        Self { kind: Kind::Linear, lo, hi, from, to }
    }

    /// Returns a logarithmic axis over the positive ones of `values`, extended by the factor `margin` on
    /// both sides.
    pub fn log(values: impl IntoIterator<Item = f64>, margin: f64, from: f64, to: f64) -> Self {
        let positive = values.into_iter().filter(|value| *value > 1.0 / LARGEST);
        let (lo, hi) = extremes(positive).unwrap_or((1.0, 10.0));
        Self { kind: Kind::Log, lo: lo / margin, hi: hi * margin, from, to }
    }

    /// Returns the position of a value. Returns `None` if the axis cannot show it.
    pub fn at(&self, value: f64) -> Option<f64> {
        let share = match self.kind {
            Kind::Linear => (value - self.lo) / (self.hi - self.lo),
            Kind::Log if value > 0.0 => (value / self.lo).ln() / (self.hi / self.lo).ln(),
            Kind::Log => return None,
        };
        // Positions far off the paper are limited.
        share.is_finite().then(|| self.from + share.clamp(-2.0, 3.0) * (self.to - self.from))
    }

    /// Returns the position of a value, limited to the nearer end of the axis. A value below the positive ones is
    /// at the low end of a logarithmic axis.
    pub fn within(&self, value: f64) -> Option<f64> {
        let (least, most) = (self.from.min(self.to), self.from.max(self.to));
        let place = if self.is_log() && value <= 0.0 { Some(self.from) } else { self.at(value) };
        place.map(|place| place.clamp(least, most))
    }

    /// Returns the positions of the ends of an interval, each limited to the nearer end of the axis.
    pub fn ends(&self, ci: Option<Interval>) -> Option<(f64, f64)> {
        ci.and_then(|ci| Some((self.within(ci.lo)?, self.within(ci.hi)?)))
    }

    /// Returns the positions of round values along the axis, with their names.
    pub fn named(&self, count: usize, name: impl Fn(f64) -> String) -> Vec<(f64, String)> {
        self.ticks(count).into_iter().filter_map(|tick| Some((self.at(tick)?, name(tick)))).collect()
    }

    /// Returns the values at both ends of the axis.
    pub fn domain(&self) -> (f64, f64) {
        (self.lo, self.hi)
    }

    /// Reports that the axis is logarithmic.
    pub fn is_log(&self) -> bool {
        self.kind == Kind::Log
    }

    /// Returns round values along the axis; about `count` of them if it is linear.
    pub fn ticks(&self, count: usize) -> Vec<f64> {
        match self.kind {
            Kind::Linear => self.linear_ticks(count),
            Kind::Log => self.log_ticks(count),
        }
    }

    fn linear_ticks(&self, count: usize) -> Vec<f64> {
        let rough = (self.hi - self.lo) / count.max(1) as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|n| n * power).into_iter().find(|step| *step >= rough);
        let Some(step) = step.filter(|step| step.is_finite() && *step > 0.0) else { return Vec::new() };
        let first = (self.lo / step - 1e-9).ceil();
        let ticks = (0..TICKS_AT_MOST).map(|n| (first + n as f64) * step);
        // Adding 0 turns a negative zero into a positive one.
        ticks.filter(|tick| *tick <= self.hi + 1e-9 * step).map(|tick| tick + 0.0).collect()
    }

    fn log_ticks(&self, count: usize) -> Vec<f64> {
        let decades = (self.hi / self.lo).log10();
        if decades < 0.6 {
            // A range this short is almost linear.
            return self.linear_ticks(count.min(4));
        }
        let steps: &[f64] = if decades < 2.2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let (first, last) = (self.lo.log10().floor() as i32, self.hi.log10().ceil() as i32);
        let stride = ((decades / count.max(1) as f64).ceil() as usize).max(1);
        (first..=last)
            .step_by(stride)
            .flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)))
            .filter(|tick| (self.lo * 0.999..=self.hi * 1.001).contains(tick))
            .collect()
    }
}

/// Returns a value and the ends of its interval, as far as a logarithmic axis shall show them.
pub fn reach(value: f64, ci: Option<Interval>) -> impl Iterator<Item = f64> {
    let ci = ci.filter(|_| value > 0.0);
    let (lo, hi) = (ci.map(|ci| ci.lo.max(value / WIDEST)), ci.map(|ci| ci.hi.min(value * WIDEST)));
    [Some(value), lo, hi].into_iter().flatten()
}

/// Returns the smallest and the largest of the values that can be drawn.
pub fn extremes(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let drawable = values.into_iter().filter(|value| value.abs() < LARGEST);
    drawable.fold(None, |extremes, value| match extremes {
        None => Some((value, value)),
        Some((lo, hi)) => Some((f64::min(lo, value), f64::max(hi, value))),
    })
}

/// Returns a position for an attribute, rounded to a tenth of a pixel.
pub fn px(place: f64) -> String {
    let place = if place.is_finite() { place } else { 0.0 };
    let text = format!("{place:.1}");
    text.strip_suffix(".0").map(String::from).unwrap_or(text)
}

/// Returns a path through positions.
pub fn path(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let mut text = String::new();
    for (x, y) in points {
        text.push(if text.is_empty() { 'M' } else { 'L' });
        text.push_str(&px(x));
        text.push(' ');
        text.push_str(&px(y));
    }
    text
}

/// Moves positions apart until they are `gap` from each other, between `least` and `most` if there is room.
/// Keeps their order in the list.
pub fn spread(places: &[f64], gap: f64, least: f64, most: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|a, b| places[*a].total_cmp(&places[*b]));
    let mut spread: Vec<f64> = places.to_vec();
    let mut floor = least;
    for &at in &order {
        spread[at] = spread[at].max(floor);
        floor = spread[at] + gap;
    }
    let mut ceiling = most;
    for &at in order.iter().rev() {
        spread[at] = spread[at].min(ceiling);
        ceiling = spread[at] - gap;
    }
    spread
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ends_of_intervals_are_within_the_axis() {
        let scale = Scale::log(reach(5.0, Some(Interval { lo: -3.0, hi: 12.0 })), 1.0, 0.0, 100.0);
        assert_eq!(scale.domain(), (0.5, 12.0));
        let (lo, hi) = scale.ends(Some(Interval { lo: -3.0, hi: 12.0 })).unwrap();
        assert_eq!((lo, hi.round()), (0.0, 100.0));
        assert_eq!((scale.at(-3.0), scale.within(f64::NAN)), (None, None));
        // An interval without end does not make its axis endless.
        assert!(reach(5.0, Some(Interval { lo: 1e-9, hi: f64::INFINITY })).eq([5.0, 0.5, 50.0]));
        assert!(reach(-5.0, Some(Interval { lo: -6.0, hi: -4.0 })).eq([-5.0]));
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(Scale::linear([9.3], 0.0, 100.0).ticks(5), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(Scale::linear([-1.0, 2.0], 0.0, 100.0).ticks(3), [-1.0, 0.0, 1.0, 2.0]);
        assert_eq!(Scale::log([90.0, 1100.0], 1.0, 0.0, 1.0).ticks(9), [100.0, 200.0, 500.0, 1000.0]);
        assert_eq!(Scale::log([9.0, 11000.0], 1.0, 0.0, 1.0).ticks(9), [10.0, 100.0, 1e3, 1e4]);
    }

    #[test]
    fn labels_keep_their_distance() {
        assert_eq!(spread(&[5.0, 5.0, 50.0], 10.0, 0.0, 100.0), [5.0, 15.0, 50.0]);
        assert_eq!(spread(&[98.0, 99.0], 10.0, 0.0, 100.0), [90.0, 100.0]);
    }

    proptest! {
        #[test]
        fn no_value_has_a_place_that_is_none(values in proptest::collection::vec(any::<f64>(), 0..5), value in any::<f64>()) {
            for scale in [
                Scale::linear(values.clone(), 0.0, 100.0),
                Scale::log(values.clone(), 1.2, 0.0, 100.0),
                Scale::between(value, value.abs() * 2.0, 100.0, 0.0),
            ] {
                for x in values.iter().copied().chain([value]).chain(scale.ticks(6)) {
                    prop_assert!(scale.at(x).is_none_or(f64::is_finite));
                }
                prop_assert!(scale.ticks(6).len() < 1000);
            }
        }
    }
}
