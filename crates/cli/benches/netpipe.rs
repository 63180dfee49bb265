//! The half round trip of MPI as netdyno measures it, beside NetPIPE's of the same library on the
//! same processors: in turn, over fresh processes. Needs Debian's netpipe-openmpi or
//! netpipe-mpich2, with libopenmpi-dev or libmpich-dev.
//!
//! NetPIPE waits in MPI_Recv, netdyno tests requests that were posted before.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to report")]

use netdyno_clock::place;
use netdyno_measure::record::Record;
use netdyno_measure::stats::{median_interval_of_sorted, quantile_of_sorted, sorted};
use std::process::{Command, Stdio};

const ROUNDS: usize = 21;
const CONFIDENCE: f64 = 0.95;
/// Bytes of a message.
const SIZES: [usize; 5] = [8, 64, 1024, 8192, 65536];

/// A library: its compiler, its launcher, NetPIPE over it.
const LIBRARIES: [(&str, &str, &str); 2] =
    [("mpicc.openmpi", "mpiexec.openmpi", "NPopenmpi"), ("mpicc.mpich", "mpiexec.mpich", "NPmpich2")];

/// What it says, where it succeeds.
fn output(command: &mut Command) -> Option<String> {
    // Open MPI asks for both, of root.
    command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    let output = command.stdin(Stdio::null()).output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    output.status.success().then(|| String::from_utf8_lossy(&text).into_owned())
}

/// By netdyno, in ns, by size.
fn by_netdyno(compiler: &str, launcher: &str, cpus: &str) -> Option<Vec<f64>> {
    let sizes = SIZES.map(|size| size.to_string()).join(",");
    let launcher = format!("{launcher} -n {{n}}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_netdyno"));
    command.args(["overlap", "--over", "mpi", "--launcher", &launcher, "--cpus", cpus, "--sizes", &sizes]);
    command.args(["--method", "max", "--launches", "1", "--max-time", "1s", "--format", "json"]);
    let record = Record::from_json(&output(command.env("NETDYNO_MPICC", compiler))?).unwrap();
    let trips = &record.results[0].overlap().unwrap().trips;
    let half_rtt = |size: usize| trips.iter().find(|trip| trip.size_bytes == size)?.half_rtt.value_ns;
    SIZES.iter().map(|&size| half_rtt(size)).collect()
}

/// By NetPIPE, which says `N bytes M times --> X Mbps in Y usec`.
fn by_netpipe(program: &str, launcher: &str, cpus: &str, size: usize) -> Option<f64> {
    let size = size.to_string();
    // Each process on its own processor, as netdyno does.
    let pinned = "cpus=$0; rank=${PMI_RANK:-$OMPI_COMM_WORLD_RANK}; \
                  exec taskset -c $(echo $cpus | cut -d, -f$((rank + 1))) \"$@\"";
    let mut command = Command::new(launcher);
    command.args(["-n", "2", "sh", "-c", pinned, cpus, program]);
    command.args(["-l", &size, "-u", &size, "-p", "0", "-o", "/dev/null"]);
    let text = output(&mut command)?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = words.iter().rposition(|&word| word == "usec")?;
    Some(words[at - 1].parse::<f64>().ok()? * 1e3)
}

fn figure(values: &[f64]) -> String {
    let values = sorted(values.iter().copied());
    let middle = quantile_of_sorted(&values, 0.5);
    let interval = median_interval_of_sorted(&values, CONFIDENCE).unwrap();
    if middle >= 10.0 {
        format!("{middle:>9.0} [{:.0}, {:.0}]", interval.lo, interval.hi)
    } else {
        format!("{middle:>6.3} [{:.3}, {:.3}]", interval.lo, interval.hi)
    }
}

fn main() {
    let (a, b) = place::choose_pair(&place::allowed().unwrap()).unwrap();
    let cpus = format!("{a},{b}");
    for (compiler, launcher, program) in LIBRARIES {
        let mut pairs: [Vec<(f64, f64)>; SIZES.len()] = Default::default();
        for round in 0..ROUNDS {
            let pipe = || SIZES.map(|size| by_netpipe(program, launcher, &cpus, size));
            let dyno = || by_netdyno(compiler, launcher, &cpus);
            let (ours, theirs) = if round % 2 == 0 {
                let ours = dyno();
                (ours, pipe())
            } else {
                let theirs = pipe();
                (dyno(), theirs)
            };
            let Some(ours) = ours else { break };
            for (at, (ours, theirs)) in ours.into_iter().zip(theirs).enumerate() {
                pairs[at].extend(theirs.map(|theirs| (ours, theirs)));
            }
        }
        println!("{program}, {launcher}, processors {cpus}, medians of pairs at 95 %");
        for (size, pairs) in SIZES.iter().zip(&pairs) {
            if pairs.len() < ROUNDS {
                println!("  not compared: {program}, {launcher} or {compiler} is missing or fails");
                break;
            }
            let of = |value: fn(&(f64, f64)) -> f64| figure(&pairs.iter().map(value).collect::<Vec<_>>());
            let (ours, theirs, ratio) = (of(|pair| pair.0), of(|pair| pair.1), of(|pair| pair.0 / pair.1));
            println!("  {size:>6} B  netdyno {ours} ns  NetPIPE {theirs} ns  ratio {ratio}");
        }
    }
}
