//! The model: the slope of a program's time over a dial, by what its busiest rank sent, received and waited for.

use crate::plan::Swept;
use netdyno_global::am::{Config, Dial};
use netdyno_measure::show::{NONE, number, number_and_interval};
use netdyno_measure::slope::TheilSen;
use netdyno_measure::sweep::{self, Counts, MessageCounts, Run, SweptDial};

/// The least number of runs of a value.
const RUNS_AT_LEAST: usize = 2;
/// Milliseconds in a second.
const MS: f64 = 1e3;

/// What a program prints behind `counts:`.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    /// The time of the timed part.
    pub time_s: f64,
    /// The time for which a rank waited for a processor in it.
    waited_s: f64,
    sent: u64,
    sent_bytes: u64,
    received: u64,
    round_trips: u64,
    collectives: u64,
}

impl Traffic {
    /// Parses the line. With `gets_in_bulk`, adds the requests and answers that owners of memory do not count: as many as
    /// a rank has of its own, because ranks have the same work.
    pub fn parse(line: &str, gets_in_bulk: bool) -> Option<Self> {
        let of = |name: &str| line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let count = |name: &str| of(name)?.parse::<u64>().ok();
        let both = if gets_in_bulk { 2 } else { 1 };
        Some(Self {
            time_s: of("time_s")?.parse().ok()?,
            waited_s: of("waited_s")?.parse().ok()?,
            sent: both * count("sent")?,
            sent_bytes: count("sent_bytes")? + count("got_bytes")?,
            received: both * count("received")?,
            round_trips: count("round_trips")?,
            collectives: count("collectives")?,
        })
    }

    /// Returns the share of the time for which a rank waited for its processor.
    pub fn waited(&self) -> f64 {
        self.waited_s / self.time_s
    }

    /// Returns the messages of the busiest rank, as a sweep counts them. The first byte of a message costs nothing.
    pub fn messages(&self, ranks: u32) -> MessageCounts {
        MessageCounts {
            ranks: ranks.into(),
            messages: self.sent * u64::from(ranks),
            most_sent: self.sent,
            most_received: self.received,
            most_bytes: self.sent_bytes,
            most_further_bytes: self.sent_bytes.saturating_sub(self.sent),
        }
    }
}

/// The slope over the latency, in latencies: the least and the most.
#[derive(Clone, Copy, Debug)]
pub struct LatencySlope {
    least: f64,
    most: f64,
}

impl LatencySlope {
    /// Returns the latencies that a run waited for: two for each round trip, and those of each way up the tree of ranks
    /// and down again. At most it waits once more for every window of requests that it sends without waiting.
    pub fn of(traffic: &Traffic, ranks: u32) -> Self {
        let depth = u64::from(ranks.next_power_of_two().ilog2());
        let least = (2 * traffic.round_trips + 2 * depth * traffic.collectives) as f64;
        // Half of the messages are requests.
        let windows = traffic.sent as f64 / 2.0 / f64::from(Config::new().window);
        Self { least, most: least + 2.0 * windows }
    }

    /// Returns the least and the most of two runs. They differ where a program works between a get and its sync: an
    /// answer that has arrived by then is not waited for.
    pub fn and(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }
}

/// Returns what a sweep must know of a dial.
pub fn swept_dial(swept: &Swept) -> SweptDial {
    let counts = match swept.dial {
        Dial::Latency => Counts::Nothing,
        Dial::SendOverhead | Dial::SendGap => Counts::Sent,
        Dial::RecvOverhead | Dial::RecvGap => Counts::Received,
        Dial::GapPerByte => Counts::Bytes,
    };
    let unit_ns = if swept.dial.is_per_byte() { 1.0 } else { 1e3 };
    SweptDial { dial: swept.dial.name().into(), adds: swept.adds(), unit_ns, counts }
}

/// Returns the slope over a dial, per microsecond or nanosecond per byte, of the runs that had the dial.
pub fn slope(swept: &Swept, runs: &[Run], confidence: f64) -> Option<TheilSen> {
    let unit_ns = swept_dial(swept).unit_ns;
    let with_dial = runs.iter().filter(|run| run.dial.as_deref() == Some(swept.dial.name()));
    let points: Vec<(f64, f64)> = with_dial.map(|run| (run.value / unit_ns, run.metric * MS)).collect();
    TheilSen::through(&points, confidence)
}

/// Returns the row of a dial: the slope in milliseconds, the one by the model, their ratio, the slowdown at the last
/// value, and the number of runs.
pub fn row(
    title: &str,
    swept: &Swept,
    measured: &TheilSen,
    result: &sweep::Swept,
    latencies: LatencySlope,
) -> String {
    // A microsecond is a thousandth of a millisecond.
    let by_latency = |count: f64| count * 1e-3;
    let (least, most) = match (swept.dial, result.predicted) {
        (Dial::Latency, _) => (by_latency(latencies.least), by_latency(latencies.most)),
        (_, predicted) => (predicted.unwrap_or(f64::NAN) * MS, predicted.unwrap_or(f64::NAN) * MS),
    };
    let to = |from: f64, to: f64| {
        let (from, to) = (number(from), number(to));
        if from == to { from } else { format!("{from} to {to}") }
    };
    let TheilSen { slope, interval } = *measured;
    // Fewer than two runs of a value may be what chance left of it.
    let has_all = swept
        .values
        .iter()
        .all(|value| result.points.iter().any(|p| p.value == *value && p.runs >= RUNS_AT_LEAST));
    // Without an interval, or with one around 0, nothing is measured.
    let share = match interval.filter(|interval| !interval.contains(0.0)) {
        _ if !has_all => "too few runs".into(),
        Some(interval) => format!(
            "{} [{}, {}]",
            to(slope / most, slope / least),
            number(interval.lo / most),
            number(interval.hi / least)
        ),
        None => "not told from 0".into(),
    };
    let last = result.points.last();
    format!(
        "| {title} | `{}` to {} | {} | {} | {share} | {} | {} |",
        swept.dial,
        swept.shown(swept.values[swept.values.len() - 1]),
        number_and_interval(slope, interval),
        to(least, most),
        last.map_or_else(|| NONE.to_owned(), |point| number(point.slowdown)),
        result.points.iter().map(|point| point.runs).sum::<usize>(),
    )
}
