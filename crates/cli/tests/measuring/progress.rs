//! `overlap --progress`: what moves the worker's messages. What is asserted holds on a busy machine.

use crate::common::{beside, stdout_of};
use netdyno_measure::overlap::data::ProgressBy;
use netdyno_measure::record::Record;
use netdyno_measure::stats::median;

/// The progress thread takes this many times the processor time that is counted for other threads without it. That is
/// the error of two clocks.
const SHOWS: f64 = 10.0;

/// Returns the processor time of the worker's other threads in a cycle, in nanoseconds: the median over all batches. A
/// finding may have none on a busy machine. Longer messages would then keep the worker from its peer for too long.
fn others_ns(layer: &str, option: &str, progress_by: ProgressBy) -> f64 {
    let plan = ["overlap", "--sizes", "100kB", "--method", "pww", "--launches", "2", "--max-time", "3s"];
    let args = ["--over", layer, "--progress", option, "--wait", "yield", "--format", "json"];
    let record = Record::from_json(&stdout_of(&[&plan[..], &args].concat())).unwrap();
    let overlap = record.results[0].found.overlap().unwrap();
    assert_eq!(overlap.progress_by, progress_by, "{layer}");
    let batches = overlap.launches.iter().flat_map(|launch| launch.sizes[0].pww.iter().flatten());
    let others: Option<Vec<f64>> = batches.map(|batch| batch.others_ns).collect();
    median(others.expect("the system has clocks of threads"))
}

/// With `--progress thread` another thread of the worker works for its messages, and with `--progress calls` none does.
/// The conformance suite of the layers checks what that thread receives behind work.
#[test]
fn a_progress_thread_works_for_the_messages() {
    let _beside = beside();
    let by_calls = others_ns("am+udp", "calls", ProgressBy::Calls);
    let by_thread = others_ns("am+udp", "thread", ProgressBy::Thread);
    assert!(by_thread > SHOWS * by_calls.abs(), "{by_thread} ns with a thread, {by_calls} ns without");
}
