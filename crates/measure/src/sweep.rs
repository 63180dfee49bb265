//! The dependence of a program's run time on its link: each dial is varied alone, as Martin et al. (ISCA
//! 1997) did.
//!
//! The runs of a repetition are in random order, and include runs of the unmodified link. For each dial the
//! runs give a line, its linearity, its knee, and the tolerance: the value at which the program is slower
//! by a given share.

use crate::record::Preamble;
use crate::stats::{Interval, median, sorted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};

/// The schema of the record of a sweep.
pub const SCHEMA: &str = "netdyno-sweep/1";
/// Slowdowns for which the tolerance is reported.
pub const SLOWDOWNS: [f64; 3] = [0.01, 0.05, 0.10];
/// A knee counts if a straight line would fit as well by chance with at most this probability.
const KNEE_BY_CHANCE: f64 = 0.001;
/// A knee counts if the program loses at least this share beyond it.
const KNEE_AT_LEAST: f64 = 0.01;
/// The number of candidate positions for a knee.
const KNEES: usize = 200;

/// A sweep of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sweep {
    /// Always `netdyno-sweep/1`.
    pub schema: String,
    /// Version of the command.
    pub version: String,
    /// Start of the sweep, or of its last part if it was interrupted: RFC 3339, UTC.
    pub began: String,
    /// Host, processor and kernel.
    pub place: String,
    /// The command of the program, with its launcher.
    pub command: Vec<String>,
    /// The whole command line of netdyno, word by word. Empty in records of earlier versions.
    #[serde(default)]
    pub command_line: Vec<String>,
    /// Provider of libfabric; null if the user chose none.
    pub provider: Option<String>,
    /// The metric of each run: `wall time`, or the pattern of a number in the output.
    pub metric: String,
    /// The unit of the metric; empty if it is unknown.
    pub unit: String,
    /// True if a higher metric is better.
    pub higher_is_better: bool,
    /// Confidence level of every interval.
    pub confidence: f64,
    /// The dials, and their effects on the program.
    pub dials: Vec<Swept>,
    /// All runs in their order.
    pub runs: Vec<Run>,
    /// Warnings.
    pub doubts: Vec<String>,
}

impl Sweep {
    /// Returns the sweep from JSON text. Returns `None` if the text names another schema, or is no JSON
    /// with a schema.
    ///
    /// # Errors
    /// Returns an error if the text names this schema, but is not a sweep.
    pub fn from_json(text: &str) -> Option<Result<Self, serde_json::Error>> {
        let is_sweep =
            serde_json::from_str::<Preamble>(text).is_ok_and(|it| it.schema.as_deref() == Some(SCHEMA));
        is_sweep.then(|| serde_json::from_str(text))
    }
}

/// One run of the program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// The dial; null for the unmodified link.
    pub dial: Option<String>,
    /// Value of the dial, in nanoseconds or nanoseconds per byte; 0 for the unmodified link.
    pub value: f64,
    /// Index of the repetition.
    pub repetition: usize,
    /// The metric of the run.
    pub metric: f64,
    /// Duration of the command.
    pub wall_s: f64,
    /// The counters of its ranks.
    pub counted: MessageCounts,
    /// Warnings of the hook.
    #[serde(default)]
    pub doubts: Vec<String>,
}

/// The messages of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessageCounts {
    /// Number of ranks.
    pub ranks: u64,
    /// Number of messages that all ranks sent.
    pub messages: u64,
    /// Number of messages of the rank that sent most.
    pub most_sent: u64,
    /// Number of messages of the rank that received most.
    pub most_received: u64,
    /// Number of bytes of the rank that sent most bytes.
    pub most_bytes: u64,
    /// The same without the first byte of each message, for which the gap per byte is not paid. 0 in records of
    /// earlier versions.
    #[serde(default)]
    pub most_further_bytes: u64,
}

/// A dial that was swept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Swept {
    /// The dial, as on the command line.
    pub dial: String,
    /// True if the dial adds its value to the link's own; otherwise it sets the link to the value.
    pub adds: bool,
    /// The results at each value; the unmodified link is the first.
    pub points: Vec<Point>,
    /// Slope of the metric per microsecond or nanosecond per byte, by least squares.
    pub slope: Option<f64>,
    /// Its interval.
    pub slope_ci: Option<Interval>,
    /// Slope per message of the rank with most messages, or per byte, if the metric is in
    /// seconds: 1 if the program waits for every message, 0 if for none.
    pub slope_per_message: Option<f64>,
    /// The slope that the counted messages predict, if each costs the full value.
    pub predicted: Option<f64>,
    /// Share of the change that a straight line explains.
    pub linearity: Option<f64>,
    /// The knee of the line, in the unit of the values.
    pub knee: Option<Knee>,
    /// The values at which the program is slower by certain shares.
    pub tolerance: Vec<Tolerance>,
}

impl Swept {
    /// Reports whether the values are times of a byte: the name of such a dial ends in `-per-byte`.
    pub fn is_per_byte(&self) -> bool {
        self.dial.ends_with("-per-byte")
    }
}

/// A value of a dial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Value of the dial.
    pub value: f64,
    /// The median over the repetitions.
    pub median: f64,
    /// The smallest and the largest value.
    pub range: Interval,
    /// Slowdown relative to the unmodified link; 1 without a slowdown. Null if the metric of the link, or of the
    /// value, is 0.
    #[serde(default = "not_a_number", deserialize_with = "number_or_null")]
    #[schemars(with = "Option<f64>")]
    pub slowdown: f64,
    /// Number of runs.
    pub runs: usize,
}

fn not_a_number() -> f64 {
    f64::NAN
}

/// Reads a number; null, as which JSON has every number that is not finite, as `NaN`.
fn number_or_null<'de, D: serde::Deserializer<'de>>(json: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(json)?.unwrap_or(f64::NAN))
}

/// The value at which a dial begins to cost time, or costs more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Knee {
    /// The value at which the line bends.
    pub at: f64,
    /// The slope before it.
    pub before: f64,
    /// The slope after it.
    pub after: f64,
}

/// The value at which the program is slower by a certain share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tolerance {
    /// The slowdown, as a share of the run time.
    pub slowdown: f64,
    /// The value of the dial; null if no value was large enough.
    pub value: Option<f64>,
}

/// The properties of a dial that the runs do not show.
#[derive(Clone, Debug)]
pub struct SweptDial {
    /// The dial, as on the command line.
    pub dial: String,
    /// True if the dial adds to the link; otherwise it sets the link.
    pub adds: bool,
    /// Nanoseconds in the unit of slopes: a microsecond, or a nanosecond per byte.
    pub unit_ns: f64,
    /// The counted messages that pay the cost of the dial, if each of them does.
    pub counts: Counts,
}

/// The count on which a prediction is based.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// Messages sent by one rank.
    Sent,
    /// Messages received by one rank.
    Received,
    /// Bytes sent by one rank, without the first of each message.
    Bytes,
    /// No count: the number of messages that wait for each other for a latency is unknown.
    Nothing,
    /// The counts are those of all messages, and only some ranks are dialled.
    Unknown,
}

/// Computes the figures of a dial from its runs.
pub fn read(subject: &SweptDial, runs: &[Run], sweep: &Sweep) -> Swept {
    let of_dial = || {
        let is_of = |run: &&Run| run.dial.as_deref().is_none_or(|dial| dial == subject.dial);
        runs.iter().filter(is_of).filter(|run| run.metric.is_finite())
    };
    let points = points(&of_dial().collect::<Vec<_>>(), sweep.higher_is_better);
    // A dial that sets the link has no run at 0: the link has a value of its own.
    let fitted = of_dial().filter(|run| subject.adds || run.dial.is_some());
    let data: Vec<(f64, f64)> = fitted.map(|run| (run.value / subject.unit_ns, run.metric)).collect();
    let line = Fit::line(&data);
    let knee = knee(&data, points.first().map_or(f64::NAN, |point| point.median));
    let count = median(runs.iter().map(|run| subject.counts.of(&run.counted) as f64));
    let seconds_per_unit = subject.unit_ns * 1e-9;
    let is_time = sweep.unit == "s";
    Swept {
        dial: subject.dial.clone(),
        adds: subject.adds,
        slope: line.as_ref().map(|line| line.coefficients[1]),
        slope_ci: line.as_ref().and_then(|line| line.slope_interval(&data, sweep.confidence)),
        slope_per_message: line
            .as_ref()
            .map(|line| line.coefficients[1] / (count * seconds_per_unit))
            .filter(|share| is_time && subject.counts != Counts::Unknown && share.is_finite()),
        predicted: Some(count * seconds_per_unit).filter(|slope| {
            is_time && !matches!(subject.counts, Counts::Nothing | Counts::Unknown) && slope.is_finite()
        }),
        linearity: line.as_ref().and_then(|line| line.explains(&data)),
        knee: knee.map(|knee| Knee { at: knee.at * subject.unit_ns, ..knee }),
        tolerance: SLOWDOWNS.map(|slowdown| tolerance(&points, slowdown, subject.adds)).to_vec(),
        points,
    }
}

impl Counts {
    fn of(self, counted: &MessageCounts) -> u64 {
        match self {
            Self::Sent => counted.most_sent,
            Self::Received => counted.most_received,
            Self::Bytes => counted.most_further_bytes,
            // The slope per message still needs a count.
            Self::Nothing | Self::Unknown => counted.most_sent,
        }
    }
}

fn points(runs: &[&Run], higher_is_better: bool) -> Vec<Point> {
    let mut values: Vec<f64> = runs.iter().map(|run| run.value).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let mut points: Vec<Point> = values
        .into_iter()
        .map(|value| {
            let metrics = sorted(runs.iter().filter(|run| run.value == value).map(|run| run.metric));
            Point {
                value,
                median: median(metrics.iter().copied()),
                range: Interval { lo: metrics[0], hi: metrics[metrics.len() - 1] },
                slowdown: f64::NAN,
                runs: metrics.len(),
            }
        })
        .collect();
    let link = points.iter().find(|point| point.value == 0.0).map_or(f64::NAN, |point| point.median);
    for point in &mut points {
        point.slowdown = if higher_is_better { link / point.median } else { point.median / link };
    }
    points
}

/// Returns the value at which the line through the slowdowns first exceeds this one. Returns none if the metric of the
/// link is 0.
fn tolerance(points: &[Point], slowdown: f64, adds: bool) -> Tolerance {
    let limit = 1.0 + slowdown;
    let value = points.windows(2).find_map(|pair| {
        let (a, b) = (pair[0], pair[1]);
        (a.slowdown.is_finite() && b.slowdown > limit).then(|| {
            let share = ((limit - a.slowdown) / (b.slowdown - a.slowdown)).clamp(0.0, 1.0);
            // The link's own value between 0 and the first setting is unknown. A rate of 0 has no point on the line.
            let has_line = (adds || a.value > 0.0) && b.slowdown.is_finite();
            if has_line { a.value + share * (b.value - a.value) } else { b.value }
        })
    });
    Tolerance { slowdown, value }
}

/// A fit by least squares: value at 0, slope, and, with a knee, the change of the slope there.
#[derive(Clone, Debug)]
struct Fit {
    coefficients: Vec<f64>,
    /// Residual sum of squares.
    left: f64,
}

impl Fit {
    fn line(data: &[(f64, f64)]) -> Option<Self> {
        Self::of(data, &|x| vec![1.0, x])
    }

    fn with_knee(data: &[(f64, f64)], at: f64) -> Option<Self> {
        Self::of(data, &|x| vec![1.0, x, (x - at).max(0.0)])
    }

    /// Solves the normal equations for `terms` of x. Returns `None` if there are fewer values of x than terms.
    fn of(data: &[(f64, f64)], terms: &dyn Fn(f64) -> Vec<f64>) -> Option<Self> {
        let count = terms(0.0).len();
        let mut values = sorted(data.iter().map(|point| point.0));
        values.dedup();
        // Rounding would leave such equations with a solution.
        if values.len() < count {
            return None;
        }
        let mut matrix = vec![vec![0.0; count + 1]; count];
        for &(x, y) in data {
            let row = terms(x);
            for i in 0..count {
                for j in 0..count {
                    matrix[i][j] += row[i] * row[j];
                }
                matrix[i][count] += row[i] * y;
            }
        }
        let coefficients = solve(matrix)?;
        let at = |x: f64| terms(x).iter().zip(&coefficients).map(|(term, c)| term * c).sum::<f64>();
        let left = data.iter().map(|&(x, y)| (y - at(x)).powi(2)).sum();
        Some(Self { left, coefficients })
    }

    /// Returns the interval of the slope of a line. Returns `None` with too few runs.
    fn slope_interval(&self, data: &[(f64, f64)], confidence: f64) -> Option<Interval> {
        let free = data.len().checked_sub(2).filter(|free| *free > 0)? as f64;
        let mean = data.iter().map(|p| p.0).sum::<f64>() / data.len() as f64;
        let spread: f64 = data.iter().map(|p| (p.0 - mean).powi(2)).sum();
        let t = StudentsT::new(0.0, 1.0, free).ok()?.inverse_cdf(0.5 + confidence / 2.0);
        let half = t * (self.left / free / spread).sqrt();
        let slope = self.coefficients[1];
        half.is_finite().then_some(Interval { lo: slope - half, hi: slope + half })
    }

    /// Returns the share of the variance that the fit explains.
    fn explains(&self, data: &[(f64, f64)]) -> Option<f64> {
        let mean = data.iter().map(|p| p.1).sum::<f64>() / data.len() as f64;
        let spread: f64 = data.iter().map(|p| (p.1 - mean).powi(2)).sum();
        Some(1.0 - self.left / spread).filter(|share| share.is_finite())
    }
}

/// Solves the equations by Gaussian elimination with partial pivoting. Returns `None` without a unique
/// solution.
fn solve(mut matrix: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let count = matrix.len();
    for column in 0..count {
        let pivot = (column..count)
            .max_by(|&a, &b| f64::total_cmp(&matrix[a][column].abs(), &matrix[b][column].abs()))?;
        matrix.swap(column, pivot);
        let head = matrix[column][column];
        if head.is_nan() || head.abs() < 1e-12 {
            return None;
        }
        let row = matrix[column].clone();
        for other in (0..count).filter(|&other| other != column) {
            let share = matrix[other][column] / head;
            matrix[other].iter_mut().zip(&row).for_each(|(value, of_row)| *value -= share * of_row);
        }
    }
    Some((0..count).map(|at| matrix[at][count] / matrix[at][at]).collect())
}

/// Returns the knee, if two lines explain significantly more than one.
fn knee(data: &[(f64, f64)], link: f64) -> Option<Knee> {
    let mut values: Vec<f64> = data.iter().map(|p| p.0).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let ([_, second, ..], [.., before_last, last]) = (&values[..], &values[..]) else { return None };
    if values.len() < 4 || before_last <= second {
        return None;
    }
    let line = Fit::line(data)?;
    let places = (0..=KNEES).map(|nth| second + (before_last - second) * nth as f64 / KNEES as f64);
    let (at, best) = places
        .filter_map(|at| Some((at, Fit::with_knee(data, at)?)))
        .min_by(|(_, a), (_, b)| a.left.total_cmp(&b.left))?;
    let free = data.len().checked_sub(4).filter(|free| *free > 0)? as f64;
    let better = (line.left - best.left) / 2.0 / (best.left / free);
    let by_chance = 1.0 - FisherSnedecor::new(2.0, free).ok()?.cdf(better.max(0.0));
    let bend = best.coefficients[2];
    let is_felt = (bend * (last - at)).abs() > KNEE_AT_LEAST * link.abs();
    (by_chance < KNEE_BY_CHANCE && is_felt).then_some(Knee {
        at,
        before: best.coefficients[1],
        after: best.coefficients[1] + bend,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject() -> SweptDial {
        SweptDial { dial: "latency".into(), adds: true, unit_ns: 1e3, counts: Counts::Sent }
    }

    fn sweep() -> Sweep {
        Sweep { unit: "s".into(), confidence: 0.95, ..Sweep::default() }
    }

    /// Returns runs of a program that takes 2 s and `cost` for each microsecond, 3 times, with noise of 0.1
    /// %.
    fn runs(values_us: &[f64], cost: impl Fn(f64) -> f64) -> Vec<Run> {
        let mut random = fastrand::Rng::with_seed(3);
        let mut runs = Vec::new();
        for repetition in 0..3 {
            for &us in values_us {
                let noise = 1.0 + 0.001 * (random.f64() - 0.5);
                runs.push(Run {
                    dial: (us > 0.0).then(|| "latency".into()),
                    value: us * 1e3,
                    repetition,
                    metric: (2.0 + cost(us)) * noise,
                    counted: MessageCounts { most_sent: 10_000, ..MessageCounts::default() },
                    ..Run::default()
                });
            }
        }
        runs
    }

    #[test]
    fn a_straight_line_is_read_off() {
        let runs = runs(&[0.0, 10.0, 20.0, 50.0, 100.0], |us| 0.01 * us);
        let found = read(&subject(), &runs, &sweep());
        let (slope, ci) = (found.slope.unwrap(), found.slope_ci.unwrap());
        assert!((slope / 0.01 - 1.0).abs() < 0.01 && ci.contains(0.01), "{slope} {ci:?}");
        assert!((found.predicted.unwrap() / 0.01 - 1.0).abs() < 1e-9);
        assert!((found.slope_per_message.unwrap() - 1.0).abs() < 0.01);
        assert!(found.linearity.unwrap() > 0.999 && found.knee.is_none());
        let tolerance: Vec<f64> = found.tolerance.iter().map(|t| t.value.unwrap()).collect();
        for (found, wanted) in tolerance.iter().zip([2_000.0, 10_000.0, 20_000.0]) {
            assert!((found / wanted - 1.0).abs() < 0.1, "{found} {wanted}");
        }
    }

    #[test]
    fn a_latency_that_is_hidden_up_to_a_point_has_a_knee() {
        let runs = runs(&[0.0, 20.0, 40.0, 60.0, 80.0, 100.0], |us| 0.01 * (us - 50.0).max(0.0));
        let found = read(&subject(), &runs, &sweep());
        let knee = found.knee.unwrap();
        assert!((knee.at - 50_000.0).abs() < 2_000.0, "{knee:?}");
        assert!(knee.before.abs() < 1e-4 && (knee.after / 0.01 - 1.0).abs() < 0.05, "{knee:?}");
        assert!(found.tolerance[0].value.unwrap() > 40_000.0);
    }

    #[test]
    fn what_does_not_matter_is_tolerated() {
        let runs = runs(&[0.0, 10.0, 50.0, 100.0], |_| 0.0);
        let found = read(&subject(), &runs, &sweep());
        assert!(found.tolerance.iter().all(|tolerance| tolerance.value.is_none()));
        assert!(found.slope.unwrap().abs() < 1e-4 && found.knee.is_none());
    }

    #[test]
    fn a_rate_slows_down_as_it_falls() {
        let mut runs = runs(&[0.0, 10.0], |_| 0.0);
        runs.iter_mut().for_each(|run| run.metric = if run.value > 0.0 { 50.0 } else { 100.0 });
        let found =
            read(&subject(), &runs, &Sweep { unit: String::new(), higher_is_better: true, ..sweep() });
        assert_eq!(found.points[1].slowdown, 2.0);
        assert_eq!((found.predicted, found.slope_per_message), (None, None));
        assert!(found.tolerance.iter().all(|tolerance| tolerance.value.is_some_and(|at| at < 10_000.0)));
        // A rate of 0 is slower than anything, and nothing is known of the values before it.
        runs.iter_mut().filter(|run| run.value > 0.0).for_each(|run| run.metric = 0.0);
        let found =
            read(&subject(), &runs, &Sweep { unit: String::new(), higher_is_better: true, ..sweep() });
        assert!(
            found.tolerance.iter().all(|tolerance| tolerance.value == Some(10_000.0)),
            "{:?}",
            found.tolerance
        );
    }

    #[test]
    fn one_value_has_no_slope() {
        // A rounded sum would leave a slope here.
        let set = SweptDial { adds: false, ..subject() };
        let ten = runs(&[0.0, 936.0, 936.0, 936.0, 936.0, 936.0], |_| 0.01);
        let found = read(&set, &ten, &sweep());
        assert_eq!((found.slope, found.slope_per_message, found.linearity), (None, None, None));
    }

    #[test]
    fn a_record_with_a_metric_of_nothing_is_read_again() {
        let mut runs = runs(&[0.0, 10.0], |_| 0.0);
        runs.iter_mut().for_each(|run| run.metric = run.value);
        let dials = vec![read(&subject(), &runs, &sweep())];
        assert!(dials[0].points.iter().all(|point| !point.slowdown.is_finite()));
        assert!(dials[0].tolerance.iter().all(|tolerance| tolerance.value.is_none()));
        let text = serde_json::to_string(&Sweep { schema: SCHEMA.into(), dials, runs, ..sweep() }).unwrap();
        let again = Sweep::from_json(&text).unwrap().unwrap();
        assert!(again.dials[0].points.iter().all(|point| point.slowdown.is_nan()));
    }

    #[test]
    fn nothing_is_read_off_nothing() {
        let found = read(&subject(), &[], &sweep());
        assert!(found.points.is_empty() && found.slope.is_none() && found.knee.is_none());
        let one = runs(&[0.0], |_| 0.0);
        assert!(read(&subject(), &one, &sweep()).slope.is_none());
    }
}
