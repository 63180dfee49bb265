//! Warnings about the parameters by size, because of the layer, the machine or the run.

use super::carried::HOPS;
use super::data::Direction;
use super::launches::BulkLaunches;
use super::record::{Bulk, Classic, Segment, SizeFigures};
use super::signature;
use crate::machine::{coarse_clock, preempted, two_groups};
use crate::precision::{self, Wanted};
use crate::record::doubt::Doubt;
use crate::record::parameter::{Parameter, Parameters, PerByte, Status};
use crate::record::plateau::Limit;
use crate::show::{Bytes, Number, Percent, Time};
use crate::stats::median;

/// The tolerated error of the classic fit at the smallest size, as a share of T.
const DISAGREEMENT: f64 = 0.1;
/// The tolerated distance of a figure from the line of its segment, as a share of T.
const OFF_THE_LINE: f64 = 0.1;
/// A sentence names at most this many sizes.
const NAMED_AT_MOST: usize = 4;

/// Returns the warnings: the layer or the machine does not behave as the model says.
pub(super) fn find(
    launches: &BulkLaunches<'_>,
    parameters: &Parameters,
    bulk: &Bulk,
    precision: f64,
) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    doubt_gap(launches, bulk, &mut doubts);
    doubt_overheads(bulk, &mut doubts);
    doubts.extend(doubt_direction(bulk));
    doubt_lines(bulk, &mut doubts);
    doubt_machine(launches, parameters, &mut doubts);
    doubts.extend(precision::doubt(&wanted(parameters, bulk, precision), launches.data.len(), precision));
    doubts
}

/// Returns sizes in words: all of them, or a range.
fn listed(sizes: &[usize]) -> String {
    match sizes {
        [first, .., last] if sizes.len() > NAMED_AT_MOST => {
            format!("{} sizes from {} to {}", sizes.len(), Bytes(*first), Bytes(*last))
        }
        _ => sizes.iter().map(|&size| Bytes(size).to_string()).collect::<Vec<_>>().join(", "),
    }
}

fn sizes_where(bulk: &Bulk, is: impl Fn(&SizeFigures) -> bool) -> Option<String> {
    let sizes: Vec<usize> = bulk.sizes.iter().filter(|size| is(size)).map(|size| size.size_bytes).collect();
    (!sizes.is_empty()).then(|| listed(&sizes))
}

/// Adds the warnings about `g(n)` and `G`.
fn doubt_gap(launches: &BulkLaunches<'_>, bulk: &Bulk, doubts: &mut Vec<Doubt>) {
    let limited = |limit| sizes_where(bulk, |size| size.plateau.limited_by == limit);
    if let Some(sizes) = limited(Limit::Processor) {
        doubts.push(Doubt::about(
            "processor_bound",
            "g",
            format!("at {sizes} the requester's processor sets the pace: g(n) is at most what is shown"),
        ));
    }
    if let Some(sizes) = limited(Limit::Window) {
        doubts.push(Doubt::about(
            "window_bound",
            "g",
            format!("at {sizes} the window sets the pace: g(n) cannot be seen"),
        ));
    }
    for segment in bulk.segments.iter().filter(|segment| segment.G.status == Status::UpperBound) {
        let largest = bulk.sizes.iter().find(|size| size.size_bytes == segment.to_bytes);
        let is_measured = |size: &SizeFigures| size.g.status == Status::Measured;
        let of_segment =
            |size: &&SizeFigures| (segment.from_bytes..=segment.to_bytes).contains(&size.size_bytes);
        let measured = bulk.sizes.iter().filter(of_segment).filter(|size| is_measured(size)).count();
        let (name, why) = match largest.is_some_and(is_measured) {
            true if measured > 1 => (
                "one_gap",
                "the sizes with a measured g(n) lie too near each other for a slope: G is at most a byte's share of g(n) \
                 at the largest size",
            ),
            true => {
                ("one_gap", "g(n) is measured at the largest size alone: G is at most a byte's share of it")
            }
            false => (
                "processor_bound",
                "it is a byte's share of the pace at the largest size, which G does not set",
            ),
        };
        let (from, to) = (Bytes(segment.from_bytes), Bytes(segment.to_bytes));
        doubts.push(Doubt::about(name, "G", format!("from {from} to {to} {why}")));
    }
    for segment in bulk.segments.iter().filter(|segment| segment.G.status == Status::Measured) {
        let first_measured = bulk
            .sizes
            .iter()
            .find(|size| size.size_bytes >= segment.from_bytes && size.g.status == Status::Measured);
        let Some((from, first)) = segment.G_from_bytes.zip(first_measured) else { continue };
        if first.size_bytes < from {
            doubts.push(Doubt::about(
                "gap_bends",
                "G",
                format!(
                    "g(n) is no straight line from {} to {}: G is its slope from {} on",
                    Bytes(first.size_bytes),
                    Bytes(segment.to_bytes),
                    Bytes(from)
                ),
            ));
        }
    }
    doubts.extend(bulk.segments.iter().filter_map(|segment| doubt_pace(bulk, segment)));
    doubt_unknown(launches, bulk, doubts);
}

/// Adds the reasons why g(n) is not known at some sizes.
fn doubt_unknown(launches: &BulkLaunches<'_>, bulk: &Bulk, doubts: &mut Vec<Doubt>) {
    let mut reasons: [(_, Vec<usize>, _); 3] = [
        (
            "bursts_contradict",
            Vec::new(),
            "the bursts contradict each other, as where a busy machine disturbs them",
        ),
        ("pipeline_too_deep", Vec::new(), "too many messages fit on the way for the longest burst"),
        ("paced_by_polls", Vec::new(), "polls that find nothing set the pace, since no burst outlasts them"),
    ];
    for (at, size) in bulk.sizes.iter().enumerate() {
        if size.plateau.limited_by == Limit::Unknown {
            let reason = match () {
                () if launches.contradicts(at) => 0,
                () if launches.is_too_deep(at) => 1,
                () => 2,
            };
            reasons[reason].1.push(size.size_bytes);
        }
    }
    for (name, sizes, why) in reasons.iter().filter(|(_, sizes, _)| !sizes.is_empty()) {
        doubts.push(Doubt::about(name, "g", format!("at {} {why}: g(n) cannot be seen", listed(sizes))));
    }
}

/// Warns if a byte takes many times as long on the way of a single message as in a stream. Something else
/// then paces the stream, and its slope is not the cost of a byte.
fn doubt_pace(bulk: &Bulk, segment: &Segment) -> Option<Doubt> {
    let gap = segment.G.value_ns_per_byte.filter(|_| segment.G.status == Status::Measured)?;
    let latency =
        |bytes| bulk.sizes.iter().find(|size| size.size_bytes == bytes).and_then(|size| size.L.value_ns);
    let from = segment.G_from_bytes.unwrap_or(segment.from_bytes);
    let bytes = segment.to_bytes.checked_sub(from).filter(|bytes| *bytes > 0)? as f64;
    let way = (latency(segment.to_bytes)? - latency(from)?) / bytes;
    (way > HOPS * gap.max(0.0)).then(|| {
        let text = format!(
            "a byte takes {} ns on the way of a message alone, {} ns in a stream: something else than bytes \
             paces the stream, as the replier's processor may",
            Number(way),
            Number(gap)
        );
        Doubt::about("not_paced_by_bytes", "G", text)
    })
}

fn doubt_overheads(bulk: &Bulk, doubts: &mut Vec<Doubt>) {
    if let Some(sizes) = sizes_where(bulk, |size| size.o_r.status == Status::UpperBound) {
        doubts.push(Doubt::about(
            "receive_waits",
            "o_r",
            format!(
                "at {sizes} a receive had to wait for a part of the message: o_r(n) is at most what is shown, and L(n) cannot be seen"
            ),
        ));
    }
    for (name, of) in negative_candidates() {
        if let Some(sizes) = sizes_where(bulk, |size| of(size).value_ns.is_some_and(|ns| ns < 0.0)) {
            doubts.push(Doubt::about(
                "negative",
                name,
                format!("is negative at {sizes}: overhead and flight overlap, which the model does not know"),
            ));
        }
    }
}

/// Warns that the requester of gets does not see a part of the time.
fn doubt_direction(bulk: &Bulk) -> Option<Doubt> {
    (bulk.direction == Direction::Get).then(|| {
        let text =
            "the requester of a get does not see the overhead of sending the data: L(n) cannot be seen";
        Doubt::about("sender_unseen", "L", text.into())
    })
}

/// A figure of a size, by name.
type Named = (&'static str, fn(&SizeFigures) -> &Parameter);

fn negative_candidates() -> [Named; 3] {
    [("o_s", |size| &size.o_s), ("o_r", |size| &size.o_r), ("L", |size| &size.L)]
}

/// Adds the warnings about lines.
fn doubt_lines(bulk: &Bulk, doubts: &mut Vec<Doubt>) {
    for segment in &bulk.segments {
        let off = segment.T.largest_residual;
        if off > OFF_THE_LINE {
            doubts.push(Doubt::about(
                "not_linear",
                "T",
                format!(
                    "from {} to {} it is up to {} off a straight line",
                    Bytes(segment.from_bytes),
                    Bytes(segment.to_bytes),
                    Percent(off)
                ),
            ));
        }
    }
    doubts.extend(doubt_classic("T0", &bulk.classic));
    doubts.extend(bulk.classic_of_transfer.iter().filter_map(|fit| doubt_classic("T0.transfer", fit)));
}

/// Warns if the classic fit does not predict the time of the smallest message.
fn doubt_classic(about: &str, classic: &Classic) -> Option<Doubt> {
    let (predicted, measured) = (classic.small_predicted_ns, classic.small_measured_ns);
    ((predicted / measured - 1.0).abs() > DISAGREEMENT).then(|| {
        let text = format!(
            "T0 + n / R∞ predicts {} for {}, which takes {}: T0 is a property of the fit, not of the layer",
            Time(predicted),
            Bytes(classic.small_bytes),
            Time(measured)
        );
        Doubt::about("T0_misleads", about, text)
    })
}

/// Adds the warnings about the clock and the system.
fn doubt_machine(launches: &BulkLaunches<'_>, parameters: &Parameters, doubts: &mut Vec<Doubt>) {
    let timer = median(launches.data.iter().map(|launch| launch.timer_ns));
    doubts.extend(coarse_clock(parameters.rtt.value_ns, timer));
    for at in [0, launches.sizes.len() - 1] {
        if let Some(groups) = two_groups(launches.one_way(at)) {
            let size = Bytes(launches.sizes[at]);
            doubts.push(Doubt::about("two_groups", "T", format!("at {size} {groups}")));
        }
    }
    doubts.extend(preempted("requester", launches.data.iter().map(|l| (l.preemptions, l.took_ns))));
}

/// Returns all figures that must be precise. T(n), transfer(n), the steady time per message and G must be so to a share of
/// themselves. o_s(n), o_r(n) and L(n) are parts of T(n), and must be so to a share of T(n).
pub(crate) fn wanted(_parameters: &Parameters, bulk: &Bulk, precision: f64) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    for size in &bulk.sizes {
        let whole = size.T.value_ns.unwrap_or(f64::NAN);
        for (name, p) in size.times() {
            // If g is a bound or cannot be seen, the plateau is the measured figure.
            let (value, ci, of) = match name {
                "g" => (Some(size.plateau.value_ns), size.plateau.ci_ns, size.plateau.value_ns),
                "transfer" => (p.value_ns, p.ci_ns, p.value_ns.unwrap_or(f64::NAN)),
                _ => (p.value_ns, p.ci_ns, whole),
            };
            let Some(value) = value else { continue };
            let name = format!("{name} at {}, {}", Bytes(size.size_bytes), Time(value));
            wanted.push(Wanted { name, value, ci, half_width: precision * of.abs() });
        }
    }
    wanted.extend(bulk.segments.iter().filter_map(|segment| slope(&segment.G, precision)));
    wanted.extend(signature::wanted(bulk, precision));
    wanted
}

fn slope(gap: &PerByte, precision: f64) -> Option<Wanted> {
    let value = gap.value_ns_per_byte?;
    let name = format!("G, {} ns/B", Number(value));
    Some(Wanted { name, value, ci: gap.ci_ns_per_byte, half_width: precision * value.abs() })
}
