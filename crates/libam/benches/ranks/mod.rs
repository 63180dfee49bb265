//! Shared parts of the benchmarks whose ranks are started by a launcher: two ranks, the figure that rank 0 prints, and
//! figures with intervals over pairs of runs.

use netdyno_job::launching::{self, End};
use netdyno_job::pmi::Pmi;
use netdyno_measure::stats::{median_interval_of_sorted, quantile_of_sorted, sorted};
use netdyno_stack::am::{Endpoint, PeerId, Wire};
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs two ranks, and returns what rank 0 prints.
pub fn output(command: impl Fn(usize) -> Command) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    let append = |path: &Path| Stdio::from(std::fs::File::options().append(true).open(path).unwrap());
    let rank = |rank| {
        let mut command = command(rank);
        command.stdout(append(file.path()));
        command
    };
    assert_eq!(launching::run(2, rank, || None).unwrap(), End::Done);
    std::fs::read_to_string(file.path()).unwrap()
}

/// Connects an endpoint of a rank with that of the other one, over shared memory.
#[allow(dead_code, reason = "a benchmark of other programs has no endpoints of its own")]
pub fn connect<S>(endpoint: &mut Endpoint<S>, rank: usize, pmi: &mut Pmi) -> PeerId {
    let port = endpoint.open_port(Wire::Shm).unwrap();
    let ports = pmi.gather(&port.address()).unwrap();
    endpoint.connect(port, &ports[1 - rank]).unwrap()
}

/// Prints one line: the median over pairs and its interval.
pub fn show(what: &str, values: Vec<f64>) {
    let values = sorted(values);
    let interval = median_interval_of_sorted(&values, 0.95).unwrap();
    println!("{what:<48} {:.3} [{:.3}, {:.3}]", quantile_of_sorted(&values, 0.5), interval.lo, interval.hi);
}
