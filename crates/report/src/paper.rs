//! What the repetition of a paper's experiment says, beside what the paper says.

use crate::overlap::{in_rate, percent_and_interval};
use netdyno_measure::comb::{Named, Stack};
use netdyno_measure::overlap::record::{Overlap, Quantity, SizeOverlap};
use netdyno_measure::record::{Paper, Record};
use netdyno_measure::show::{NONE, Size, number_and_interval, time};
use netdyno_measure::speight::{Section5, Variant};
use netdyno_measure::stats::Interval;
use std::ops::RangeInclusive;

/// Sizes of short messages in section 5: less than 1 KiB.
pub const SHORT: RangeInclusive<usize> = 1..=1023;
const ALL: RangeInclusive<usize> = 1..=usize::MAX;
/// Sizes of long messages.
const LONG: RangeInclusive<usize> = 16 << 10..=usize::MAX;

/// A gain of at most this share is none.
const NO_GAIN: f64 = 0.02;
/// Gains that differ by less than this share are alike.
const ALIKE: f64 = 0.2;

/// Returns the sentences about the experiment that a record repeats; none for other records.
pub fn sentences(record: &Record) -> Vec<String> {
    match record.paper {
        None => Vec::new(),
        Some(Paper::Comb) => of_comb(record),
        Some(Paper::Speight5) => of_section_5(&Section5::of(&record.results, record.options.confidence)),
    }
}

/// Returns what section 5 of Speight et al. (1999) found, and what was found here.
fn of_section_5(section: &Section5<'_>) -> Vec<String> {
    let gain = |change, sizes| section.gain(change, sizes);
    let [short_acks, long_acks] = [SHORT, LONG].map(|sizes| gain(Variant::NoAcks, sizes));
    let [short_copies, long_copies] = [SHORT, LONG].map(|sizes| gain(Variant::NoCopies, sizes));
    let [short_spin, long_spin] = [SHORT, LONG].map(|sizes| gain(Variant::Spinning, sizes));
    let all = gain(Variant::AllThree, ALL);
    let [short_all, long_all] = [SHORT, LONG].map(|sizes| gain(Variant::AllThree, sizes));
    let without = gain(Variant::WithoutThread, ALL);
    let ratio = |above, below, sizes| factor(&section.ratio(above, below, sizes));
    vec![
        format!(
            "Without acknowledgements of the message layer a half round trip is {} below 1 KiB, and {} from 16 KiB \
             on; in the paper 19.5 % below 1 KiB, and less for longer messages. {}",
            shorter(&short_acks),
            shorter(&long_acks),
            verdict_of_gain(
                [is_gain(&short_acks), exceeds(&short_acks, &long_acks)],
                "The shape holds: an acknowledgement is a message of a fixed cost.",
                "The shape does not hold: an acknowledgement here is a short message within the host, and the wake-ups of \
                 the threads cost many times as much."
            )
        ),
        format!(
            "Without copies it is {} below 1 KiB, and {} from 16 KiB on; in the paper 46 % on average, and more for \
             longer messages. {}",
            shorter(&short_copies),
            shorter(&long_copies),
            verdict_of_gain(
                [is_gain(&long_copies), exceeds(&long_copies, &short_copies)],
                "The shape holds for long messages. Up to 8 KiB this provider sends every message through a buffer, because \
                 a copy of that size costs less than an agreement with the receiver.",
                "The shape does not hold: copies cost little beside the wake-up of the thread."
            )
        ),
        format!(
            "With a variable in place of an event it is {} below 1 KiB, and {} from 16 KiB on; in the paper 38 % below \
             1 KiB. {}",
            shorter(&short_spin),
            shorter(&long_spin),
            verdict(
                is_gain(&short_spin),
                "The shape holds: a wake-up by the system is a fixed cost.",
                "The shape does not hold: the thread itself must be woken by the system in both cases, and shares the \
                 processor of the program."
            )
        ),
        format!(
            "All three changes make it {}, {} below 1 KiB and {} from 16 KiB on; in the paper 51 to 55 % at all sizes. \
             {}",
            shorter(&all),
            shorter(&short_all),
            shorter(&long_all),
            verdict(
                both(is_gain(&all), are_alike(&short_all, &long_all)),
                "The shape holds: the changes complement each other.",
                "The shape does not hold: the weights of fixed costs and of copies differ from those of 1999."
            )
        ),
        format!(
            "With all three, a message below 1 KiB takes {} times as long as over a bare VI; in the paper 2.5 times. Without \
             the messaging thread it takes {} times as long, and is {} than the baseline. The paper expects that \
             threads of the program that receive by themselves gain further (section 5.5).",
            ratio(Variant::AllThree, Variant::Vi, SHORT),
            ratio(Variant::WithoutThread, Variant::Vi, SHORT),
            shorter(&without),
        ),
        format!(
            "MPI over UDP takes {} times as long as MPI over VI, and bare UDP {} times as long as a bare VI, below 1 KiB.",
            ratio(Variant::MpiOverUdp, Variant::Baseline, SHORT),
            ratio(Variant::Udp, Variant::Vi, SHORT),
        ),
    ]
}

/// Returns what COMB finds in each stack.
fn of_comb(record: &Record) -> Vec<String> {
    let results = record.results.iter().filter_map(|result| {
        let stack = result.label.as_deref().and_then(Stack::of)?;
        Some((stack, result.found.overlap()?))
    });
    results.map(|(stack, found)| of_stack(stack, found)).collect()
}

fn of_stack(stack: Stack, found: &Overlap) -> String {
    let wanted = Named::wanted(stack);
    let named: Vec<String> = found.sizes.iter().map(|size| of_size(wanted, size)).collect();
    let small = found.trips.first();
    let half = small.and_then(|trip| trip.half_rtt.value_ns).map_or(NONE.into(), time);
    let best = found.trips.iter().filter_map(|trip| trip.bandwidth_bytes_per_s.value).fold(0.0, f64::max);
    let best = in_rate(&Quantity { value: Some(best), ..Quantity::default() });
    let in_paper = stack
        .in_paper()
        .map_or(String::new(), |(latency, rate)| format!("; in the paper {latency} µs and {rate} MB/s"));
    format!(
        "{}: progress is made {}. By messages of {}. Half a round trip takes {half}, and the bandwidth reaches {best}{in_paper}.",
        stack.label(),
        wanted.text(),
        named.join("; ")
    )
}

fn of_size(wanted: Named, size: &SizeOverlap) -> String {
    let methods = [("polling", Named::by_polling(size)), ("post-work-wait", Named::by_waiting(size))];
    let wrong: Vec<String> = methods
        .into_iter()
        .filter(|(_, named)| *named != wanted)
        .map(|(method, named)| format!("{method} says: {}", named.text()))
        .collect();
    let of = Size(size.size_bytes);
    if wrong.is_empty() {
        format!("{of}: both methods say so")
    } else {
        format!("{of}: {}", wrong.join(", "))
    }
}

/// Describes by what share a time is shorter.
fn shorter(gain: &Quantity) -> String {
    let lost = Quantity {
        value: gain.value.map(|value| -value),
        ci: gain.ci.map(|ci| Interval { lo: -ci.hi, hi: -ci.lo }),
        ..*gain
    };
    let (of, word) = if value(gain) < 0.0 { (&lost, "longer") } else { (gain, "shorter") };
    format!("{} {word}", percent_and_interval(of))
}

fn value(quantity: &Quantity) -> f64 {
    quantity.value.unwrap_or(f64::NAN)
}

/// Returns the sentence about the shape of a curve: whether it `holds`, if the intervals tell.
fn verdict(holds: Option<bool>, yes: &'static str, no: &'static str) -> &'static str {
    match holds {
        Some(true) => yes,
        Some(false) => no,
        None => "Whether the shape holds cannot be told from these launches.",
    }
}

/// Returns the sentence about a gain at some sizes that must exceed that at others. `no` says why there is none.
fn verdict_of_gain(
    [is_gain, exceeds]: [Option<bool>; 2],
    yes: &'static str,
    no: &'static str,
) -> &'static str {
    let no = match is_gain {
        Some(false) => no,
        _ => "The shape does not hold: the gain is not larger at these sizes than at the others.",
    };
    verdict(both(is_gain, exceeds), yes, no)
}

/// Returns whether both statements hold, as far as that is known.
fn both(one: Option<bool>, other: Option<bool>) -> Option<bool> {
    match (one, other) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// Reports whether a change shortens the half round trip. A gain of at most [`NO_GAIN`] is none.
fn is_gain(gain: &Quantity) -> Option<bool> {
    match gain.ci? {
        ci if ci.hi <= NO_GAIN => Some(false),
        ci if ci.lo > 0.0 => Some(true),
        _ => None,
    }
}

/// Reports whether one gain is the larger one.
fn exceeds(above: &Quantity, below: &Quantity) -> Option<bool> {
    let (above, below) = (above.ci?, below.ci?);
    match () {
        () if above.lo > below.hi => Some(true),
        () if above.hi < below.lo => Some(false),
        () => None,
    }
}

/// Reports whether two gains differ by less than [`ALIKE`].
fn are_alike(one: &Quantity, other: &Quantity) -> Option<bool> {
    let (one, other) = (one.ci?, other.ci?);
    let apart = (one.lo - other.hi).max(other.lo - one.hi);
    let at_most = (one.hi - other.lo).max(other.hi - one.lo);
    match () {
        () if at_most < ALIKE => Some(true),
        () if apart > ALIKE => Some(false),
        () => None,
    }
}

fn factor(ratio: &Quantity) -> String {
    ratio.value.map_or(NONE.into(), |value| number_and_interval(value, ratio.ci))
}
