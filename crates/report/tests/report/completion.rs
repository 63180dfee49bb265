//! The ways to wait on a terminal and on a page.

use crate::support::{completion_layer, record};
use netdyno_measure::completion::record::SpinTimes;
use netdyno_measure::record::{LayerResult, Record};
use netdyno_report::{html, table};

/// Returns a layer in ways to wait whose receive overheads are given, in microseconds.
fn ways(ways: &[(&str, u32)]) -> Record {
    let result = |&(way, o_r): &(&str, u32)| {
        completion_layer("vi+udp", way, &format!("o_s=1us,o_r={o_r}us,g=1us,L=1us,G=0.6ns/B"), 6)
    };
    let results: Vec<LayerResult> = ways.iter().map(result).collect();
    let spin_ns =
        |name: &str| name.strip_prefix("spin:")?.strip_suffix("us")?.parse().ok().map(|us: f64| us * 1e3);
    Record { spin_times: SpinTimes::of(&results, spin_ns, 0.95), ..record(results) }
}

/// A sentence may be broken into lines.
fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_best_time_to_spin_is_said_in_a_sentence() {
    // With 30 us the overhead is that of polling. With 3 us the data of large messages hide the larger overhead.
    let found = ways(&[("spin", 1), ("block", 9), ("spin:3us", 5), ("spin:30us", 1), ("spin:90us", 1)]);
    let text = in_one_line(&table::render(&found, 80));
    let says = "vi+udp: spin for 30 µs before blocking: from 1 B to 64 KiB not slower than spin";
    assert!(text.contains(says), "{text}");
    assert!(html::render(std::slice::from_ref(&found)).contains(says));
    let none = ways(&[("spin", 1), ("spin:3us", 9)]);
    let text = in_one_line(&table::render(&none, 80));
    let says =
        "no time to spin before blocking, of those up to 3 µs, is within 5 % of spin at the smallest size";
    assert!(text.contains(says), "{text}");
    assert!(!table::render(&ways(&[("spin", 1), ("block", 9)]), 80).contains("before blocking"));
}

/// Many ways stand in several tables, of which none is wider than a terminal.
#[test]
fn ways_stand_side_by_side_as_far_as_they_fit() {
    let all = [("spin", 1), ("block", 9), ("spin:1us", 9), ("spin:3us", 9), ("spin:30us", 1)];
    let text = table::render(&ways(&all), 80);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let below = text.split_once("half round trip over that of spin").unwrap().1;
    let heads: Vec<String> =
        below.lines().filter(|line| line.trim_start().starts_with("size")).map(in_one_line).collect();
    assert_eq!(heads, ["size block spin:1us spin:3us", "size spin:30us fastest"]);
    // Half of a round trip is 11 us instead of 3 us.
    let rows: Vec<String> = below.lines().filter(|line| line.starts_with("  1 B")).map(in_one_line).collect();
    assert!(rows[0].starts_with("1 B 3.67 ") && rows[1].ends_with("spin or spin:30us"), "{rows:?}");
}

#[test]
fn a_page_has_a_curve_for_each_way_and_the_peak() {
    let page = html::render(&[ways(&[("spin", 1), ("block", 9), ("spin:30us", 1)])]);
    for text in
        ["Half of a round trip", "Bandwidth of a stream", "Share of the peak", "Each way over polling"]
    {
        assert!(page.contains(text), "{text}");
    }
    assert!(page.contains("Polling and blocking over vi+udp – netdyno"));
    assert!(page.contains("peak: 2.00 GB/s, given by --peak") && !page.contains("NaN"));
    // The curves of three ways, the ideal and the peak, in one chart each; two ways over polling.
    let of = |series: &str| page.matches(&format!("data-series=\"{series}\"")).count();
    assert_eq!((of("ideal"), of("peak"), of("spin"), of("block"), of("spin:30us")), (9, 9, 27, 36, 36));
}
