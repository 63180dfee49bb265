//! Model parameters of the simulated layer for which earlier versions gave wrong results, found by other
//! people than the authors.

use crate::common::{error_of, stdout_of};
use netdyno_measure::record::{Record, Status};

fn measured(args: &str) -> Record {
    let mut args: Vec<&str> = args.split(' ').collect();
    args.extend(["--over", "sim", "--format", "json"]);
    Record::from_json(&stdout_of(&args)).unwrap()
}

fn doubts(record: &Record) -> Vec<&str> {
    record.results[0].doubts.iter().map(|doubt| doubt.name.as_str()).collect()
}

/// The result was once 201 µs, because consecutive round trips wait for the gap.
#[test]
fn a_gap_is_no_part_of_the_round_trip_of_overlap() {
    let record = measured("overlap --sizes 64 --truth o_s=1us,o_r=2us,g=200us,L=7us");
    let rtt = record.results[0].parameters.rtt.value_ns.unwrap();
    assert!((rtt / 20e3 - 1.0).abs() < 0.01, "{rtt}");
}

/// The result was once a measured gap of 29.8 µs.
#[test]
fn a_window_of_one_hides_the_gap_under_noise_as_well() {
    for seed in 1..=3 {
        let truth = "logp --max-time 3s --truth o_s=10us,o_r=10ns,g=22us,L=4us,window=1,noise=0.25 --seed";
        let record = measured(&format!("{truth} {seed}"));
        assert_eq!(record.results[0].parameters.g.status, Status::Unobservable);
    }
}

/// The replier's processor hid the bytes of a stream, yet the text said that it carries them. For a stream
/// that did not depend on the size, the text gave a share of 10241730199066744 %.
#[test]
fn no_share_is_told_of_a_stream_that_bytes_do_not_pace() {
    let hidden = "bulk --largest 32KiB --truth o_s=16us,o_r=100ns,g=1us,L=500ns,G=0.32ns/B,O_r=0.065ns/B";
    assert!(doubts(&measured(hidden)).contains(&"not_paced_by_bytes"));
    let flat = "bulk --largest 1024 --truth o_s=266.544ns,o_r=16057.740ns,g=1.375ns,L=76333.182ns,o_poll=0.583ns,\
                capacity=2,G=0.9183ns/B,window=155,O_s=0.1837ns/B";
    for truth in [hidden, flat] {
        let record = measured(truth);
        let overlap = &record.results[0].found.bulk().unwrap().overlap;
        assert_eq!((overlap.sending.share, overlap.receiving.share), (None, None), "{truth}");
    }
}

/// All figures were once 0.
#[test]
fn virtual_time_does_not_wrap() {
    let truth = "o_s=10s,o_r=10s,g=10s,L=10s,G=1ms/B,O_s=1ms/B,O_r=1ms/B,window=1048576";
    let error = error_of(&["logp", "--over", "sim", "--size", "1073741824", "--truth", truth], 1);
    assert!(error.contains("virtual time is over"), "{error}");
    let error = error_of(
        &["logp", "--over", "sim", "--size", "4294967295", "--truth", "o_s=1us,o_r=1us,g=1us,L=1us"],
        2,
    );
    assert!(error.contains("carries in a message"), "{error}");
}

/// The warnings once said that a request costs 10 µs "in one of 2" beside a burst of 2, and that L is "-0
/// ns".
#[test]
fn no_doubt_says_nothing() {
    let record = measured("logp --truth o_s=10us,o_r=2us,g=5us,L=0us,window=2");
    assert!(!doubts(&record).contains(&"short_send_burst"));
    let record = measured(
        "logp --size 1 --truth o_s=10784.601ns,o_r=1803.019ns,g=11706.486ns,L=0ns,o_poll=12.366ns,capacity=7,window=3",
    );
    assert!(!doubts(&record).contains(&"negative"));
}
