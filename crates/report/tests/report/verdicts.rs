//! Tests of the verdict at the end of a sweep and of a `bulk` result, on a terminal and on a page.

use crate::support;
use crate::support::Dial;
use netdyno_measure::sweep::{Sweep, Swept};
use netdyno_report::sweep::{sentences, table, verdict};
use netdyno_report::{html, table as tables};

/// Returns a sweep of a program that takes 1 s over the undialled link. `noise` is the relative noise.
fn sweep(dials: &[Dial<'_>], noise: f64) -> Sweep {
    seeded(dials, noise, 7)
}

fn seeded(dials: &[Dial<'_>], noise: f64, seed: u64) -> Sweep {
    support::sweep(dials, noise, seed)
}

const TIMES: [f64; 4] = [10e3, 20e3, 40e3, 80e3];

#[test]
fn a_sweep_ends_in_what_matters_most() {
    let found = sweep(
        &[
            ("send-overhead", &TIMES, true, &|ns| 1.0 + 0.1 * ns / 60e3),
            ("latency", &TIMES, true, &|ns| 1.0 + 0.1 * ns / 31e3),
            ("gap-per-byte", &[0.5, 1.0, 2.0, 4.0], false, &|ns| {
                if ns > 1.0 { 1.0 + 0.03 * ns } else { 1.0 }
            }),
        ],
        0.001,
    );
    let text = verdict(&found);
    assert!(text.starts_with("most sensitive to latency: 10 % slower at +31"), "{text}");
    assert!(text.contains(" µs to +"), "the values between which that lies: {text}");
    assert!(text.contains("less to send-overhead: 10 % slower at +60"), "{text}");
    assert!(text.contains("bandwidth does not matter above 1 GB/s, 10 % slower at 300 MB/s (30"), "{text}");
    let shown = table(&found, 80);
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let last: Vec<&str> = shown.rsplit('─').next().unwrap().split_whitespace().collect();
    assert_eq!(last, text.split_whitespace().collect::<Vec<_>>(), "the last thing that is said");
    let page = html::of_sweep(&found);
    assert!(page.contains("most sensitive to latency") && page.contains("bandwidth does not matter above"));
}

/// A dial that was tried up to a smaller value may be the more sensitive one beyond it.
#[test]
fn a_dial_ranks_as_far_as_it_was_tried() {
    let latency: Dial<'_> = ("latency", &TIMES, true, &|ns| 1.0 + 0.1 * ns / 60e3);
    let short: Dial<'_> = ("send-overhead", &[1e3, 2e3, 4e3], true, &|_| 1.0);
    let text = verdict(&sweep(&[latency, short], 0.001));
    assert!(text.starts_with("sensitive to latency: 10 % slower at +"), "{text}");
    let felt: Dial<'_> = ("send-overhead", &[1e3, 2e3, 4e3], true, &|ns| 1.0 + 0.05 * ns / 4e3);
    let text = verdict(&sweep(&[latency, felt], 0.001));
    assert!(text.starts_with("sensitive to latency: 10 % slower at +"), "{text}");
    assert!(text.contains("; also to send-overhead: less than 10 % slower up to +4 µs"), "{text}");
    let long: Dial<'_> = ("send-overhead", &TIMES, true, &|_| 1.0);
    let text = verdict(&sweep(&[latency, long], 0.001));
    assert!(text.starts_with("most sensitive to latency: 10 % slower at +"), "{text}");
}

/// What noise alone slows down is no tolerance.
#[test]
fn a_dial_that_is_not_felt_has_no_tolerance() {
    let still = sweep(&[("latency", &TIMES, true, &|ns| 1.0 + 0.02 * (ns / 10e3).sin())], 0.001);
    let said = sentences(&still, &still.dials[0]).join("\n");
    assert!(!said.contains("slower at"), "{said}");
}

#[test]
fn a_slope_that_may_be_nothing_is_called_that() {
    let found = sweep(
        &[
            ("send-gap", &TIMES, true, &|_| 1.0),
            ("latency", &TIMES, true, &|_| 1.0),
            ("gap-per-byte", &[0.5, 1.0], true, &|_| 1.0),
        ],
        0.2,
    );
    let text = verdict(&found);
    assert!(text.contains("no effect of send-gap can be told up to +80 µs (at most"), "{text}");
    assert!(!text.contains("sensitive"), "{text}");
    let insignificant = |swept: &&Swept| swept.slope_ci.unwrap().contains(0.0);
    assert!(found.dials.iter().filter(insignificant).count() >= 2, "one in twenty is not, by chance");
    for swept in found.dials.iter().filter(insignificant) {
        let said = sentences(&found, swept).join("\n");
        assert!(said.contains("a slope that cannot be told from 0"), "{said}");
        let predicted = said.lines().find(|line| line.starts_with("predicted")).unwrap_or_default();
        assert!(swept.dial == "latency" || predicted.ends_with("cannot be compared"), "{said}");
    }
    let page = html::of_sweep(&found);
    assert!(page.contains("a slope that cannot be told from 0"));
    let still = sweep(&[("latency", &TIMES, true, &|_| 1.0)], 0.001);
    assert_eq!(verdict(&still), "latency does not matter up to +80 µs");
}

/// The interval of a slope is wrong for one dial in twenty. The verdict is wrong much more rarely.
#[test]
fn noise_is_hardly_ever_said_to_matter() {
    let null: Dial<'_> = ("latency", &TIMES, true, &|_| 1.0);
    let is_said = |seed: &u64| verdict(&seeded(&[null], 0.2, *seed)).contains("sensitive");
    let said: Vec<u64> = (0..300).filter(is_said).collect();
    assert!(said.len() <= 3, "of 300 sweeps of noise: {said:?}");
}

/// If a program does not depend on its messages, its time may change by chance. No prediction is then
/// compared.
#[test]
fn no_prediction_is_thousands_of_percent() {
    for slope in [-0.5, 0.5] {
        let found = sweep(&[("send-gap", &TIMES, true, &|ns| 1.0 + slope * ns / 80e3)], 0.001);
        let said = sentences(&found, &found.dials[0]).join("\n");
        assert!(said.contains("cannot be compared"), "{said}");
    }
    let paid = sweep(&[("send-gap", &TIMES, true, &|ns| 1.0 + 20.0 * ns * 1e-9)], 0.000_001);
    let said = sentences(&paid, &paid.dials[0]).join("\n");
    assert!(said.contains("measured 200 % of it"), "{said}");
}

#[test]
fn dials_that_are_not_told_apart_share_their_place() {
    let felt = |ns: f64| 1.0 + 0.1 * ns / 31e3;
    let found = sweep(&[("latency", &TIMES, true, &felt), ("send-gap", &TIMES, true, &felt)], 0.02);
    let text = verdict(&found);
    assert!(text.starts_with("most sensitive to ") && text.contains("not told apart from it"), "{text}");
    let alone = sweep(&[("latency", &TIMES, true, &felt)], 0.001);
    assert!(verdict(&alone).starts_with("sensitive to latency: 10 % slower at +3"), "{}", verdict(&alone));
    assert_eq!(verdict(&Sweep::default()), "no dial was turned");
}

/// The third dial is the noisiest: its range begins before that of the first ends.
#[test]
fn a_dial_behind_one_that_is_told_apart_may_not_be() {
    let reaches = |at: f64| move |ns: f64| 1.0 + 0.1 * ns / at;
    let (first, second, third) = (reaches(10e3), reaches(30e3), reaches(40e3));
    let mut found = sweep(
        &[
            ("latency", &TIMES, true, &first),
            ("send-gap", &TIMES, true, &second),
            ("recv-gap", &TIMES, true, &third),
        ],
        0.0001,
    );
    for point in found.dials[2].points.iter_mut().filter(|point| point.value > 0.0) {
        point.range.hi *= 1.2;
    }
    let text = verdict(&found);
    assert!(text.starts_with("most sensitive to latency: "), "{text}");
    assert!(
        text.contains("not told apart from it, to recv-gap") && text.contains("less to send-gap"),
        "{text}"
    );
}

/// A value that is set has no slope by itself.
#[test]
fn one_set_value_may_be_felt() {
    let slow = |ns: f64| if ns > 0.0 { 2.0 } else { 1.0 };
    for values in [&[50e3][..], &[50e3, 100e3]] {
        let text = verdict(&sweep(&[("latency", values, false, &slow)], 0.001));
        assert!(text.starts_with("sensitive to latency: 10 % slower at =50 µs"), "{text}");
    }
    let text = verdict(&sweep(&[("gap-per-byte", &[1.0], false, &slow)], 0.001));
    assert!(text.starts_with("sensitive to bandwidth: 10 % slower at "), "{text}");
    let mut found = sweep(&[("latency", &[50e3], false, &slow)], 0.001);
    // A single run of each is slower by chance in one of two.
    found.dials[0].points.iter_mut().for_each(|point| point.runs = 1);
    assert!(verdict(&found).starts_with("no effect of latency can be told"), "{}", verdict(&found));
}

#[test]
fn every_value_counts_where_a_dial_does_not_matter() {
    let resonance = |ns: f64| if ns == 20e3 { 1.3 } else { 1.0 };
    let text = verdict(&sweep(&[("latency", &TIMES, true, &resonance)], 0.001));
    assert!(text.starts_with("no effect of latency can be told up to +80 µs (at most 30"), "{text}");
    let faster = |ns: f64| 1.0 - 0.5 * ns / 80e3;
    let text = verdict(&sweep(&[("latency", &TIMES, true, &faster)], 0.001));
    assert!(text.starts_with("with latency up to +80 µs the program was faster, by 50 %"), "{text}");
}

#[test]
fn added_values_and_set_values_have_no_order() {
    let felt = |ns: f64| 1.0 + 0.1 * ns / 31e3;
    let text =
        verdict(&sweep(&[("latency", &TIMES, true, &felt), ("send-gap", &TIMES, false, &felt)], 0.001));
    assert!(
        text.starts_with("sensitive to ") && text.contains(", to ") && !text.contains("less to"),
        "{text}"
    );
}

#[test]
fn messages_of_every_size_end_in_what_they_come_to() {
    let carried = "o_s=30ns,o_r=40ns,g=20ns,L=100ns,O_s=0.08ns/B,noise=0.03";
    let record = support::record(vec![
        support::bulk_layer("am+shm", carried, 6),
        support::bulk_layer("tcp", "o_s=1us,o_r=2us,g=5us,L=7us,G=0.5ns/B", 1),
    ]);
    let shown = tables::render(&record, 80);
    let last = shown.rsplit('─').next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(last.starts_with("am+shm: 17"), "{last}");
    for words in [
        "one way for 1 B",
        "GB/s at most, in a stream of",
        "reach half of their best rate at",
        "sending cannot be overlapped, the processor carries the data: ",
        "receiving can be overlapped, it takes the processor ",
        "whether sending can be overlapped is not known from so few launches",
    ] {
        assert!(last.contains(words), "{words}\n{last}");
    }
    let page = html::render(std::slice::from_ref(&record));
    assert!(page.contains("sending cannot be overlapped, the processor carries the data"));
    assert!(!netdyno_report::csv::render(&record).contains("overlapped"));
}
