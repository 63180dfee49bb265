//! `netdyno contention` end to end: its results and its errors.

use crate::common::error_of;
use crate::common::schemas::record;
use netdyno_measure::contention::places::Bisected;
use netdyno_measure::record::Status;

const TRUTH: &str = "o_s=1us,o_r=2us,g=5us,L=7us";

#[test]
fn the_simulated_layer_gives_the_ratios_of_the_model() {
    let record = record(&["contention", "--over", "sim", "--truth", TRUTH, "--procs", "6"]);
    let result = &record.results[0];
    assert_eq!((result.verb(), result.launches(), &*result.wait), ("contention", 9, "virtual"));
    let g = &result.parameters.g;
    assert!(g.status == Status::Measured && (g.value_ns.unwrap() / 5e3 - 1.0).abs() < 0.01);
    let found = result.found.contention().unwrap();
    assert_eq!((found.procs, found.halves.pairs, found.many_to_one.len()), (6, 3, 5));
    for at in &found.many_to_one {
        assert!((at.ratio.value / at.model - 1.0).abs() < 0.01 && at.ratio.ci.is_some(), "{at:?}");
    }
    assert!((found.one_to_many.ratio.value - 1.0).abs() < 0.01);
    let bisection = found.bisection.as_ref().unwrap();
    assert_eq!((bisection.pairs, bisection.by), (3, Bisected::Ranks));
    assert!((bisection.ratio.value - 1.0).abs() < 0.01 && bisection.ratio.ci.is_some(), "{bisection:?}");
    assert!(result.doubts.is_empty(), "{:?}", result.doubts);
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    for (args, names) in [
        (&["--over", "udp", "--procs", "1"][..], "2..=64"),
        (&["--over", "udp", "--procs", "65"], "2..=64"),
        (&["--over", "udp", "--procs", "many"], "many"),
        (&["--over", "sim", "--procs", "4"], "--truth"),
        (&["--over", "udp", "--cpus", "9999"], "9999"),
        (&["--over", "udp", "--cpus", "x"], "0,1"),
        (&["--over", "udp", "--procs", "64", "--cpus", "0", "--wait", "spin"], "--wait yield"),
        (&["--procs", "4"], "--over"),
    ] {
        let line = error_of(&[&["contention"], args].concat(), 2);
        assert!(line.contains(names), "{args:?}: {line}");
    }
}
