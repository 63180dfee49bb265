//! `netdyno completion`, end to end.

use crate::common::schemas::record;
use crate::common::{error_of, stdout_of};
use netdyno_measure::completion::peak::PeakSource;
use netdyno_measure::record::Status;

const TRUTH: &str = "o_s=1us,o_r=2us,g=5us,L=7us,G=1ns/B";

#[test]
fn the_simulated_layer_gives_back_its_parameters() {
    let record = record(&["completion", "--over", "sim", "--truth", TRUTH, "--largest", "16KiB"]);
    let result = &record.results[0];
    assert_eq!((result.verb(), result.launches(), &result.label), ("completion", 9, &None));
    assert_eq!(result.parameters.rtt.status, Status::Unobservable);
    let found = result.found.completion().unwrap();
    let near = |value: Option<f64>, truth: f64| (value.unwrap() / truth - 1.0).abs() < 1e-3;
    let (first, last) = (&found.sizes[0], found.sizes.last().unwrap());
    assert_eq!((first.size_bytes, last.size_bytes), (1, 16 << 10));
    assert!(near(first.half_rtt.value_ns, 10e3) && near(first.per_message.value_ns, 5e3), "{first:?}");
    assert!(found.peak.source == PeakSource::Model && near(found.peak.peak_bytes_per_s, 1e9), "{found:?}");
    let share = found.sizes.iter().map(|size| (size.size_bytes as f64, size.share_of_peak));
    for (bytes, share) in share {
        assert!(near(share.value, bytes / (4999.0 + bytes)) && share.ci.is_some(), "{bytes} B: {share:?}");
    }
    assert!(near(last.half_rtt.value_ns, 26383.0) && near(last.per_message.value_ns, 21383.0), "{last:?}");
}

#[test]
fn the_forms_of_a_result() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("completion.json");
    let file = file.to_str().unwrap();
    let sim = ["completion", "--over", "sim", "--truth", TRUTH, "--launches", "6", "--largest", "16KiB"];
    stdout_of(&[&sim[..], &["--out", file]].concat());
    let form = |form: &str| stdout_of(&["report", file, "--format", form, "--out", "-"]);
    let table = form("table");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(
        ["half rtt", "per message", "bandwidth", "of peak", "ideal"].iter().all(|word| table.contains(word)),
        "{table}"
    );
    let csv = form("csv");
    assert!(csv.lines().any(|row| row.starts_with("sim,completion,16384,half_rtt,measured,ns,")), "{csv}");
    assert!(
        csv.lines().any(|row| row.starts_with("sim,completion,16384,bandwidth,measured,bytes_per_s,")),
        "{csv}"
    );
    assert!(
        csv.lines().any(|row| row.starts_with("sim,completion,16384,share_of_peak,measured,ratio,0.76")),
        "{csv}"
    );
    assert!(table.contains("peak: 1.00 GB/s, 1/G of --truth"), "{table}");
    let same = stdout_of(&["compare", file, file]);
    assert!(
        same.contains("half_rtt") && same.contains("per_message") && same.contains("share_of_peak"),
        "{same}"
    );
    let share =
        same.lines().find(|line| line.contains("share_of_peak 16384 B")).unwrap_or_else(|| panic!("{same}"));
    assert!(share.contains("0.76") && !share.contains("ns"), "{share}");
    assert!(error_of(&["export", file, "--to", "simgrid"], 2).contains("o_s"));
}

/// A peak that is given counts, and a stream that is faster than it denies it.
#[test]
fn a_peak_that_is_given_is_compared_with() {
    let of = |truth: &str, peak: &[&str]| {
        let sim = ["completion", "--over", "sim", "--truth", truth, "--largest", "4KiB"];
        let mut record = record(&[&sim[..], peak].concat());
        record.results.remove(0)
    };
    let slow = of(TRUTH, &["--peak", "1Mbit/s"]);
    let found = slow.found.completion().unwrap();
    assert_eq!((found.peak.source, found.peak.peak_bytes_per_s), (PeakSource::Given, Some(125e3)));
    assert_eq!(found.sizes.last().unwrap().ideal_ns(), Some(4096.0 * 8e3));
    let above = found.sizes.iter().filter(|size| size.share_of_peak.value > Some(1.0)).count();
    // A message takes 5 us and more: from 1 B on that is faster than 1 Mbit/s.
    assert_eq!(above, 7, "{found:?}");
    assert!(slow.doubts.iter().any(|doubt| doubt.name == "above_peak" && doubt.text.contains("7 sizes")));
    assert!(slow.doubts.iter().any(|doubt| doubt.text.contains("give a larger one")), "{:?}", slow.doubts);
    let fast = of(TRUTH, &["--peak", "1TB/s"]);
    assert!(fast.doubts.iter().all(|doubt| doubt.name != "above_peak"), "{:?}", fast.doubts);
    let unknown = of("o_s=1us,o_r=2us,g=5us,L=7us", &[]);
    let found = unknown.found.completion().unwrap();
    assert_eq!((found.peak.source, found.peak.peak_bytes_per_s), (PeakSource::Unknown, None));
    assert!(found.sizes.iter().all(|size| size.share_of_peak.value.is_none()), "{found:?}");
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let cases: &[(&[&str], &str)] = &[
        (&["completion"], "--over"),
        (&["completion", "--over", "sim"], "--truth"),
        (&["completion", "--over", "udp", "--wait", "block,block"], "--wait names block twice"),
        (&["completion", "--over", "udp", "--wait", "spin", "--best-spin"], "--best-spin"),
        (&["completion", "--over", "sim,mpi", "--truth", TRUTH, "--best-spin"], "sim, mpi cannot"),
        (&["completion", "--over", "sim", "--truth", TRUTH, "--size", "64"], "--largest"),
        (&["completion", "--over", "sim", "--truth", TRUTH, "--largest", "2GiB"], "1KiB to 1GiB"),
        (&["completion", "--over", "sim", "--truth", TRUTH, "--peak", "0GB/s"], "--peak '0GB/s': must be"),
        (&["completion", "--over", "sim", "--truth", TRUTH, "--peak", "1GB"], "as in 12.5GB/s or 100Mbit/s"),
        (&["completion", "--over", "sim", "--truth", TRUTH, "--peak", "nanB/s"], "1B/s to 1000TB/s"),
        (&["completion", "--over", "sim", "--truth", TRUTH, "--peak=-1B/s"], "1B/s to 1000TB/s"),
    ];
    for (args, names) in cases {
        let line = error_of(args, 2);
        assert!(line.contains(names), "{args:?}: {line}");
    }
}
