//! The distribution of single round trips: the density of the fastest ones, and the share of longer ones.

use super::chart::{HALF, chart, levels, uprights};
use super::parts::{line, point, round_time, text, time};
use super::scale::{Scale, path};
use super::subject::Signature;
use maud::{Markup, html};
use netdyno_measure::logp::data::LaunchData;
use netdyno_measure::show::percent;

const HEIGHT: f64 = 372.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 366.0;
/// The density above and the share of longer trips below, each with its own time axis.
const DENSITY: (f64, f64) = (8.0, 104.0);
const LONGER: (f64, f64) = (148.0, 330.0);
/// The density omits the slowest trips, because they would compress the others into a line.
const SHOWN: f64 = 0.99;
/// Values have a resolution of 0.1 %: narrower bins would be alternately full and empty.
const BIN_AT_LEAST: f64 = 0.002;
const BINS_AT_MOST: f64 = 120.0;
/// Quantiles with a point on the curve, and whether their names are drawn.
const QUANTILES: [(&str, f64, bool); 7] = [
    ("p25", 0.25, false),
    ("p50", 0.5, true),
    ("p75", 0.75, false),
    ("p95", 0.95, false),
    ("p99", 0.99, true),
    ("p99.9", 0.999, true),
    ("max", 1.0, true),
];

/// Round trip times in ascending order, with the number of trips of each.
struct Trips {
    values: Vec<(f64, f64)>,
    total: f64,
}

impl Trips {
    fn of<'a>(launches: impl IntoIterator<Item = &'a LaunchData>) -> Self {
        let all = launches.into_iter().flat_map(|launch| launch.rtt.histogram_ns.iter());
        // A time of zero has no position on a logarithmic axis.
        let sound = all.filter(|(ns, count)| ns.is_finite() && *ns > 0.0 && *count > 0);
        let mut values: Vec<(f64, f64)> = sound.map(|(ns, count)| (*ns, *count as f64)).collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total = values.iter().map(|(_, count)| count).sum();
        Self { values, total }
    }

    fn quantile(&self, q: f64) -> Option<f64> {
        let mut seen = 0.0;
        let at = self.values.iter().find(|(_, count)| {
            seen += count;
            seen >= q * self.total * (1.0 - 1e-12)
        });
        at.or(self.values.last()).map(|(ns, _)| *ns)
    }

    /// Returns each value with the share of trips that took at least that long.
    fn at_least(&self) -> Vec<(f64, f64)> {
        let mut left = self.total;
        let mut steps = Vec::with_capacity(self.values.len());
        for (ns, count) in &self.values {
            steps.push((*ns, left / self.total));
            left -= count;
        }
        steps
    }
}

/// Returns the figure with its caption.
pub fn figure(subject: &Signature<'_>) -> Markup {
    let trips = Trips::of(&subject.found.launches);
    if trips.values.is_empty() {
        return html! { p.none { "This record holds no distribution of round trips." } };
    }
    let x = Scale::log(trips.values.iter().map(|(ns, _)| *ns), 1.06, LEFT, RIGHT);
    let y = Scale::log([1.0, (0.6 / trips.total).min(1e-3)], 1.0, LONGER.1, LONGER.0);
    let drawn = html! {
        (density(&trips))
        (time_axis(&x, LONGER))
        (levels((LEFT, RIGHT), 6.0, &y.named(6, small_percent)))
        (text("soft mid", (LEFT + RIGHT) / 2.0, LONGER.1 + 37.0, "round trip time"))
        @for launch in &subject.found.launches {
            path class="line rtt ghost" d=(steps(&Trips::of([launch]), &x, &y)) {}
        }
        path class="line rtt" d=(steps(&trips, &x, &y)) {}
        @for (name, q, is_named) in QUANTILES { (quantile(&trips, name, q, is_named, &x, &y)) }
    };
    html! {
        figure {
            (chart(HALF, HEIGHT, &format!("Distribution of round trips of {}", subject.label), &drawn))
            figcaption {
                "Above: where the fastest 99 % lie. Below: the share that takes longer; all launches together and, pale, each by itself. "
                (format!("{:.0}", trips.total)) " round trips."
            }
        }
    }
}

fn time_axis(x: &Scale, (top, bottom): (f64, f64)) -> Markup {
    html! {
        (uprights((top, bottom), bottom + 18.0, &x.named(6, round_time)))
        (line("axis", (LEFT, bottom), (RIGHT, bottom)))
    }
}

/// Formats a share; one in a million and less does not fit as a percentage.
fn small_percent(share: f64) -> String {
    if share < 0.9e-5 { format!("{share:.0e}") } else { percent(share) }
}

fn density(trips: &Trips) -> Markup {
    let Some(most_ns) = trips.quantile(SHOWN) else { return html! {} };
    let values = || trips.values.iter().filter(|(ns, _)| *ns <= most_ns);
    let x = Scale::log(values().map(|(ns, _)| *ns), 1.004, LEFT, RIGHT);
    let (lo, hi) = x.domain();
    let bins = ((hi / lo).ln() / BIN_AT_LEAST).clamp(4.0, BINS_AT_MOST).floor();
    let width = (RIGHT - LEFT) / bins;
    let mut counts = vec![0.0; bins as usize];
    for (ns, count) in values() {
        let bin = x.within(*ns).map_or(0, |at| ((at - LEFT) / width) as usize);
        let last = counts.len() - 1;
        counts[bin.min(last)] += count;
    }
    let most = counts.iter().copied().fold(1.0, f64::max);
    let height = |count: f64| DENSITY.1 - (DENSITY.1 - DENSITY.0) * count / most;
    let tops = counts.iter().enumerate().flat_map(|(at, count)| {
        let left = LEFT + width * at as f64;
        [(left, height(*count)), (left + width, height(*count))]
    });
    let outline: Vec<(f64, f64)> = tops.collect();
    let closed = [(LEFT, DENSITY.1)].into_iter().chain(outline.iter().copied()).chain([(RIGHT, DENSITY.1)]);
    html! {
        (time_axis(&x, DENSITY))
        (text("soft end", LEFT - 6.0, (DENSITY.0 + DENSITY.1) / 2.0 + 4.0, "density"))
        path class="area rtt" d=(path(closed)) {}
        path class="line thin rtt" d=(path(outline.iter().copied())) {}
    }
}

/// Returns the share of longer trips as steps: constant up to a value, with a fall at it. Omits steps below
/// half a pixel.
fn steps(trips: &Trips, x: &Scale, y: &Scale) -> String {
    let mut places: Vec<(f64, f64)> = Vec::new();
    for (ns, share) in trips.at_least() {
        let (Some(right), Some(height)) = (x.at(ns), y.at(share)) else { continue };
        let (left, before) = places.last().copied().unwrap_or((LEFT, height));
        if places.is_empty() {
            places.push((left, height));
        } else if right - left < 0.5 && (height - before).abs() < 0.5 {
            continue;
        } else {
            places.push((left, height));
        }
        places.push((right, height));
    }
    // No trip takes longer than the longest one.
    if let Some((right, _)) = places.last().copied() {
        places.push((right, LONGER.1));
    }
    path(places)
}

/// Returns a quantile as a point on the curve, with its name where the curve leaves room.
fn quantile(trips: &Trips, name: &str, q: f64, is_named: bool, x: &Scale, y: &Scale) -> Markup {
    let Some(ns) = trips.quantile(q) else { return html! {} };
    let longer = (1.0 - q).max(1.0 / trips.total);
    let (Some(left), Some(top)) = (x.at(ns), y.at(longer)) else { return html! {} };
    let tip = match name {
        "max" => format!("the longest: {}", time(ns)),
        _ => format!("{name}: {}\n{} take longer", time(ns), small_percent(1.0 - q)),
    };
    // The curve falls: the room for a name is above a point to its right, or below it to its left. The last
    // point ends the curve.
    let is_far = left > LEFT + 0.7 * (RIGHT - LEFT);
    let (class, at) = if is_far {
        ("end halo", (left - 6.0, if q == 1.0 { top - 5.0 } else { top + 12.0 }))
    } else {
        ("halo", (left + 6.0, top - 5.0))
    };
    html! {
        // With few trips a high quantile is the longest trip.
        @if is_named && (q == 1.0 || longer > 2.0 / trips.total) { (text(class, at.0, at.1, &format!("{name} {}", time(ns)))) }
        (point(left, top, "2.8", "fill rtt", "quantiles", &tip))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netdyno_measure::logp::data::RoundTrips;

    fn trips(histogram_ns: Vec<(f64, u64)>) -> Trips {
        let rtt = RoundTrips { histogram_ns, ..RoundTrips::default() };
        Trips::of([&LaunchData { rtt, ..LaunchData::default() }])
    }

    #[test]
    fn quantiles_count_trips() {
        let trips = trips(vec![(30.0, 1), (10.0, 98), (20.0, 1), (f64::NAN, 7), (0.0, 3)]);
        assert_eq!(trips.quantile(0.5), Some(10.0));
        assert_eq!(trips.quantile(0.99), Some(20.0));
        assert_eq!(trips.quantile(1.0), Some(30.0));
        assert_eq!(trips.at_least(), [(10.0, 1.0), (20.0, 0.02), (30.0, 0.01)]);
        assert_eq!(super::small_percent(1e-6), "1e-6");
    }

    #[test]
    fn no_trips_have_no_quantile() {
        assert_eq!(trips(Vec::new()).quantile(0.5), None);
    }
}
