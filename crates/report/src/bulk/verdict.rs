//! The verdict on messages of every size, in a sentence: the same on a terminal and on a page.
//!
//! No statement goes beyond its interval. The share of the data that a processor carries is stated only if
//! the interval of that share decides it.

use netdyno_measure::bulk::data::Direction;
use netdyno_measure::bulk::record::{Bulk, Carried, Overlaps, SizeFigures};
use netdyno_measure::record::Status;
use netdyno_measure::show::{Percent, bytes, rate, time_and_interval};
use netdyno_measure::stats::Interval;

/// Returns the verdict.
pub fn verdict(bulk: &Bulk) -> String {
    let parts = [smallest(bulk), fastest(bulk), half(bulk)];
    let mut parts: Vec<String> = parts.into_iter().flatten().collect();
    let verb = match bulk.direction {
        Direction::Store => "sending",
        Direction::Get => "starting a get",
    };
    parts.push(carried(verb, &bulk.overlap.sending));
    parts.push(carried("receiving", &bulk.overlap.receiving));
    parts.join("; ")
}

fn smallest(bulk: &Bulk) -> Option<String> {
    let size = bulk.sizes.first().filter(|size| size.T.status == Status::Measured)?;
    let ns = size.T.value_ns.filter(|ns| ns.is_finite())?;
    Some(format!("{} one way for {}", time_and_interval(ns, size.T.ci_ns), bytes(size.size_bytes as f64)))
}

fn fastest(bulk: &Bulk) -> Option<String> {
    let of = |size: &&SizeFigures| size.streaming.value_bytes_per_s;
    let best =
        bulk.sizes.iter().filter(|size| of(size).is_finite()).max_by(|a, b| of(a).total_cmp(&of(b)))?;
    let between = within(best.streaming.ci_bytes_per_s, rate);
    Some(format!("{}{between} at most, in a stream of {}", rate(of(&best)), bytes(best.size_bytes as f64)))
}

fn half(bulk: &Bulk) -> Option<String> {
    let classic = &bulk.classic;
    let at = classic.n_half_measured_bytes.filter(|at| at.is_finite())?;
    let between = within(classic.n_half_measured_ci_bytes, bytes);
    Some(format!("messages one by one reach half of their best rate at {}{between}", bytes(at)))
}

/// Describes the ends of an interval, if their texts differ.
fn within(ci: Option<Interval>, shown: impl Fn(f64) -> String) -> String {
    match ci.map(|ci| (shown(ci.lo), shown(ci.hi))) {
        Some((lo, hi)) if lo != hi => format!(" ({lo} to {hi})"),
        _ => String::new(),
    }
}

/// Describes the share of the data that a processor carries, as far as the interval decides.
fn carried(verb: &str, carried: &Carried) -> String {
    if carried.share.is_none() && carried.per_byte.status == Status::Measured {
        return format!(
            "whether {verb} can be overlapped is not known: something else than bytes paces the stream"
        );
    }
    if carried.per_byte.status == Status::Unobservable {
        return format!(
            "whether {verb} can be overlapped is not known: too few sizes tell what it takes the processor"
        );
    }
    let (Some(share), Some(ci)) = (carried.share, carried.share_ci) else {
        return format!("whether {verb} can be overlapped is not known from so few launches");
    };
    let busy =
        format!("{} of a byte's time{}", Percent(share), within(Some(ci), |end| Percent(end).to_string()));
    // Records of other versions may claim more than their intervals allow.
    match Overlaps::of(Some(ci)) {
        Overlaps::Nothing => {
            format!("{verb} cannot be overlapped, the processor carries the data: {busy}")
        }
        Overlaps::Fully => format!("{verb} can be overlapped, it takes the processor {busy}"),
        Overlaps::Partly => format!("{verb} can be overlapped in part, it takes the processor {busy}"),
        Overlaps::Unknown => {
            format!("how far {verb} can be overlapped is not decided, it takes the processor {busy}")
        }
    }
}
