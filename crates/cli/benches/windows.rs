//! Compares the times of `netdyno onesided --over mpi` with those of a program in plain C (tests/programs/windows.c), which
//! makes the same calls: puts and gets of one byte in a window of MPI, for each synchronisation.
//!
//!     cargo bench -p netdyno --bench windows [lock|post|fence]
//!
//! The programs alternate, each time in fresh processes on the same processors. The program pauses before each
//! operation for as long as netdyno did just before. A ratio is taken within a round; medians and intervals are over
//! the rounds. Both give the median over batches, of each the mean of its middle 80 %.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to report")]

#[path = "../tests/common/bench.rs"]
#[allow(dead_code, reason = "the tests use all of it")]
mod bench;
mod figures;
#[path = "../tests/common/mpi.rs"]
mod mpi;

use bench::Bench;
use figures::figure;
use mpi::{launcher, prepare};
use netdyno_measure::onesided::data::Operation;
use netdyno_measure::record::Record;
use std::process::{Command, Output};

const ROUNDS: usize = 15;
/// Operations of a run of the program.
const COUNT: &str = "50000";

const SYNCS: [&str; 3] = ["lock", "post", "fence"];

/// What netdyno found of an operation.
struct Measured {
    time_ns: f64,
    /// The pause before each operation.
    rest_ns: f64,
}

impl Bench {
    /// Measures by the program, with a pause before each operation. Returns nanoseconds.
    fn by_program(&self, sync: &str, operation: Operation, rest_ns: f64) -> Option<f64> {
        let mut command = Command::new(launcher(&self.compiler));
        command.args(["--bind-to", "core", "-n", "2"]).arg(self.folder.path().join("windows"));
        command.args([sync, operation.name(), COUNT, &rest_ns.to_string()]);
        let said = self.run(&mut command)?;
        said.trim().strip_prefix("median_ns=")?.parse().ok()
    }

    fn by_netdyno(&self, sync: &str, operation: Operation) -> Option<Measured> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_netdyno"));
        let launch = format!("{} -n {{n}}", launcher(&self.compiler).display());
        command.args([
            "onesided",
            "--over",
            "mpi",
            "--sync",
            sync,
            "--largest",
            "1KiB",
            "--launcher",
            &launch,
        ]);
        command.args(["--launches", "1", "--max-time", "3s", "--wait", "spin", "--format", "json"]);
        let record = Record::from_json(&self.run(&mut command)?).ok()?;
        let found = record.results[0].found.onesided()?;
        let of = found.operations.iter().find(|figures| figures.operation == operation)?;
        let shapes = &found.launches.first()?.shape.transfers;
        let shape = shapes.iter().find(|shape| shape.operation == operation)?;
        let time_ns = *of.sizes.first()?.complete().quantiles_ns.get("p50")?;
        Some(Measured { time_ns, rest_ns: shape.rest_ns })
    }

    /// Runs a command. Returns what it prints.
    fn run(&self, command: &mut Command) -> Option<String> {
        let Output { status, stdout, stderr } =
            prepare(command, &self.compiler).current_dir(&self.folder).output().ok()?;
        if !status.success() {
            println!("{}", String::from_utf8_lossy(&stderr).trim());
        }
        status.success().then(|| String::from_utf8_lossy(&stdout).into_owned())
    }
}

fn main() {
    let only = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    for bench in Bench::all("tests/programs/windows.c") {
        println!("{}, 1 B, ns, {ROUNDS} rounds", if bench.is_open_mpi() { "Open MPI" } else { "MPICH" });
        for sync in SYNCS.into_iter().filter(|sync| only.as_ref().is_none_or(|only| only == sync)) {
            for operation in [Operation::Put, Operation::Get] {
                let rounds: Option<Vec<[f64; 2]>> = (0..ROUNDS)
                    .map(|_| {
                        let own = bench.by_netdyno(sync, operation)?;
                        Some([own.time_ns, bench.by_program(sync, operation, own.rest_ns)?])
                    })
                    .collect();
                println!("{sync}, {}", operation.name());
                let Some(rounds) = rounds else {
                    println!("  not compared");
                    continue;
                };
                println!("  netdyno           {}", figure(rounds.iter().map(|[own, _]| *own), 0));
                println!("  the program       {}", figure(rounds.iter().map(|[_, program]| *program), 0));
                println!(
                    "  netdyno / program {}",
                    figure(rounds.iter().map(|[own, program]| own / program), 3)
                );
            }
        }
    }
}
