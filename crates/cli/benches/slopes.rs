//! Sweeps programs whose run time over a dialled link can be calculated (tests/programs/slopes.c), and prints
//! the measured slope of each dial beside the calculated one. Goal: within 3 %.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to report")]

#[path = "../tests/common/bench.rs"]
#[allow(dead_code, reason = "the tests use all of it")]
mod bench;
#[path = "../tests/common/mpi.rs"]
mod mpi;

use bench::Bench;
use mpi::{launcher, prepare};
use netdyno_measure::sweep::{Sweep, Swept};
use std::process::Command;

/// Values of a dial, and the calculated slowdown of the program in milliseconds, for each microsecond of the
/// dial or each nanosecond per byte.
struct Grid {
    dial: &'static str,
    values: &'static str,
    by_hand_ms: f64,
}

/// A program of `slopes.c`.
struct Program {
    name: &'static str,
    words: &'static str,
    grids: &'static [Grid],
}

const PROGRAMS: &[Program] = &[
    Program {
        name: "chain of 5000 round trips",
        words: "chain 5000 8",
        grids: &[
            Grid { dial: "latency", values: "+50,100us", by_hand_ms: 10.0 },
            Grid { dial: "send-overhead", values: "+25,50us", by_hand_ms: 10.0 },
            Grid { dial: "recv-overhead", values: "+25,50us", by_hand_ms: 10.0 },
        ],
    },
    Program {
        name: "stream of 5000 messages",
        words: "stream 5000 8",
        grids: &[Grid { dial: "send-gap", values: "=50,100us", by_hand_ms: 5.0 }],
    },
    Program {
        name: "stream of 500 messages of 64 KiB",
        words: "stream 500 65536",
        grids: &[Grid { dial: "gap-per-byte", values: "=2,4ns/B", by_hand_ms: 500.0 * 65535.0 / 1e6 }],
    },
    Program {
        name: "5000 reductions",
        words: "allreduce 5000",
        grids: &[Grid { dial: "latency", values: "+50,100us", by_hand_ms: 5.0 }],
    },
    // This program hides the latency behind computation and does not pay for it.
    Program {
        name: "1000 exchanges behind 100 µs of computation",
        words: "hidden 1000 100",
        grids: &[Grid { dial: "latency", values: "+20,40,60us", by_hand_ms: 0.0 }],
    },
];

impl Bench {
    /// Sweeps the dials of a program over a provider, with 5 repetitions.
    fn sweep(&self, program: &Program, provider: &str) -> Option<Sweep> {
        let record = self.folder.path().join("sweep.json");
        let mut command = Command::new(env!("CARGO_BIN_EXE_netdyno"));
        // Each program has a journal of its own, so that a failed sweep does not affect the next one.
        let journal = self.folder.path().join(program.words.replace(' ', "-"));
        command.arg("sweep").arg("--journal").arg(journal);
        command.args(["--provider", provider, "--link", "none", "--repetitions", "5"]);
        command.args(["--metric", "elapsed_s=([0-9.]+)", "--format", "json", "--out"]).arg(&record);
        for Grid { dial, values, .. } in program.grids {
            command.arg(format!("--{dial}")).arg(values);
        }
        // Both libraries know the option with two dashes, and MPICH alone that with one.
        command.arg("--").arg(launcher(&self.compiler)).args(["--bind-to", "core", "-n", "2"]);
        command.arg(self.folder.path().join("slopes")).args(program.words.split(' '));
        let output = prepare(&mut command, &self.compiler).current_dir(&self.folder).output().unwrap();
        if !output.status.success() {
            println!("{}: {}", program.name, String::from_utf8_lossy(&output.stderr).trim());
            return None;
        }
        Sweep::from_json(&std::fs::read_to_string(record).unwrap()).map(Result::unwrap)
    }
}

/// Returns one line with the measured slope and its deviation.
fn line(program: &Program, grid: &Grid, swept: &Swept) -> String {
    let (Some(slope), Some(interval)) = (swept.slope, swept.slope_ci) else {
        return format!("{}: {} has no slope", program.name, grid.dial);
    };
    let [slope, low, high] = [slope, interval.lo, interval.hi].map(|s| s * 1e3);
    let off = match grid.by_hand_ms {
        0.0 => String::new(),
        by_hand => format!("{:+.1} %", 100.0 * (slope / by_hand - 1.0)),
    };
    format!(
        "{:<44} {:<14} {:>7.2} ms {slope:>7.2} ms [{low:.2}, {high:.2}] {off}",
        program.name, grid.dial, grid.by_hand_ms
    )
}

fn main() {
    for bench in Bench::all("tests/programs/slopes.c") {
        let is_open_mpi = bench.is_open_mpi();
        // Open MPI does not use libfabric's shared memory.
        let provider = if is_open_mpi { "tcp" } else { "shm" };
        println!(
            "{}, {provider}: by hand and found, for each µs or ns/B",
            if is_open_mpi { "Open MPI" } else { "MPICH" }
        );
        for program in PROGRAMS {
            let Some(sweep) = bench.sweep(program, provider) else { continue };
            for (grid, swept) in program.grids.iter().zip(&sweep.dials) {
                println!("{}", line(program, grid, swept));
            }
        }
    }
}
