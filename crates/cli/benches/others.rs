//! Compares the half round trip of a layer in netdyno with that in a tool of its makers or users: sockperf, fi_pingpong and
//! ucx_perftest, at the same size and processors, and with that in a program in plain C (tests/programs/fi_trips.c). A tool
//! that is not installed is left out:
//!
//!     cargo bench -p netdyno --bench others [LAYER]
//!
//! Needs Debian's sockperf, libfabric-bin and ucx-utils, with libfabric-dev and libucx-dev. The programs alternate, each
//! time in fresh processes. A ratio is taken within a round; medians and intervals are over the rounds.
//!
//! sockperf, ucx_perftest and the program give the median of their trips, which is compared with the median of
//! netdyno's trips. fi_pingpong gives only the average, with all interruptions; it is compared with netdyno's figure,
//! the median of trimmed means.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to report")]

mod figures;

use figures::figure;
use netdyno_clock::place;
use netdyno_measure::record::Record;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

const ROUNDS: usize = 15;
/// Bytes of a message.
const SIZE: &str = "64";
/// Time for a server to listen.
const LISTENS_AFTER: Duration = Duration::from_millis(400);
/// The first port. Every run has its own, because a closed connection keeps its port for a while.
const PORT: u16 = 21_000;

/// From the first end's port to the second's, where each end has one.
const TO_OTHER: u16 = 10_000;

/// A tool: the command lines of both ends, in which `PORT`, `OTHER` and `SIZE` are replaced.
struct Tool {
    layer: &'static str,
    server: &'static str,
    client: &'static str,
    /// Finds the half round trip in microseconds in what the client prints.
    half_trip_us: fn(&str) -> Option<f64>,
    /// Whether that is the average.
    is_average: bool,
}

const TOOLS: [Tool; 8] = [
    Tool {
        layer: "tcp",
        server: "sockperf server -i 127.0.0.1 -p PORT --tcp --nonblocked",
        client: "sockperf ping-pong -i 127.0.0.1 -p PORT --tcp --nonblocked -m SIZE -t 1",
        half_trip_us: of_sockperf,
        is_average: false,
    },
    Tool {
        layer: "udp",
        server: "sockperf server -i 127.0.0.1 -p PORT --nonblocked",
        client: "sockperf ping-pong -i 127.0.0.1 -p PORT --nonblocked -m SIZE -t 1",
        half_trip_us: of_sockperf,
        is_average: false,
    },
    Tool {
        layer: "ofi:tcp",
        server: "fi_pingpong -p tcp -e rdm -m tagged -S SIZE -I 30000 -B PORT",
        client: "fi_pingpong -p tcp -e rdm -m tagged -S SIZE -I 30000 -P PORT 127.0.0.1",
        half_trip_us: of_fi_pingpong,
        is_average: true,
    },
    Tool {
        layer: "ofi:tcp",
        server: "fi_trips one tcp PORT OTHER",
        client: "fi_trips one tcp OTHER PORT 30000",
        half_trip_us: of_fi_trips,
        is_average: false,
    },
    Tool {
        layer: "ucx:tcp",
        server: "env UCX_TLS=tcp ucx_perftest -p PORT",
        client: "env UCX_TLS=tcp ucx_perftest 127.0.0.1 -p PORT -s SIZE -n 30000 -t ucp_am_lat",
        half_trip_us: of_ucx_perftest,
        is_average: false,
    },
    Tool {
        layer: "ucx:tcp",
        server: "env UCX_TLS=tcp ucx_perftest -p PORT",
        client: "env UCX_TLS=tcp ucx_perftest 127.0.0.1 -p PORT -s SIZE -n 30000 -t tag_lat",
        half_trip_us: of_ucx_perftest,
        is_average: false,
    },
    Tool {
        layer: "ucx:posix+cma",
        server: "env UCX_TLS=posix,cma ucx_perftest -p PORT",
        client: "env UCX_TLS=posix,cma ucx_perftest 127.0.0.1 -p PORT -s SIZE -n 1000000 -t ucp_am_lat",
        half_trip_us: of_ucx_perftest,
        is_average: false,
    },
    Tool {
        layer: "ucx:posix+cma",
        server: "env UCX_TLS=posix,cma ucx_perftest -p PORT",
        client: "env UCX_TLS=posix,cma ucx_perftest 127.0.0.1 -p PORT -s SIZE -n 1000000 -t tag_lat",
        half_trip_us: of_ucx_perftest,
        is_average: false,
    },
];

/// Reads `percentile 50.000 = N`.
fn of_sockperf(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.contains("percentile 50.000"))?;
    line.split_whitespace().next_back()?.parse().ok()
}

/// Reads the line of the size, whose last words are microseconds for a transfer, and a rate.
fn of_fi_pingpong(text: &str) -> Option<f64> {
    let last = text.lines().rfind(|line| line.starts_with(SIZE))?;
    last.split_whitespace().rev().nth(1)?.parse().ok()
}

/// Reads `half_median_ns=N`.
fn of_fi_trips(text: &str) -> Option<f64> {
    let median_ns: f64 = text.split_whitespace().next()?.strip_prefix("half_median_ns=")?.parse().ok()?;
    Some(median_ns / 1e3)
}

/// Reads `Final: COUNT MEDIAN …`.
fn of_ucx_perftest(text: &str) -> Option<f64> {
    let last = text.lines().rfind(|line| line.starts_with("Final:"))?;
    last.split_whitespace().nth(2)?.parse().ok()
}

/// Compiles fi_trips. Returns its folder, which is empty if there is no libfabric.
fn compile() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/fi_trips.c");
    let mut command = Command::new("cc");
    command.args(["-O2", source, "-lfabric", "-o"]).arg(folder.path().join("fi_trips"));
    if !command.status().is_ok_and(|status| status.success()) {
        println!("fi_trips does not compile: not compared with it");
    }
    folder
}

/// Returns the command of an end, on its processor. A program in `folder` is found.
fn end(line: &str, cpu: usize, port: u16, folder: &TempDir) -> Command {
    let mut command = Command::new("taskset");
    let other = (port + TO_OTHER).to_string();
    let line = line.replace("PORT", &port.to_string()).replace("OTHER", &other).replace("SIZE", SIZE);
    command.args(["-c", &cpu.to_string()]).args(line.split(' '));
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", folder.path().display()));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Measures the half round trip by a tool, in nanoseconds.
fn by_tool(tool: &Tool, (a, b): (usize, usize), port: u16, folder: &TempDir) -> Option<f64> {
    let mut server = end(tool.server, b, port, folder).spawn().ok()?;
    thread::sleep(LISTENS_AFTER);
    let said = end(tool.client, a, port, folder).stdout(Stdio::piped()).output();
    let _ = server.kill();
    let _ = server.wait();
    Some((tool.half_trip_us)(&String::from_utf8_lossy(&said.ok()?.stdout))? * 1e3)
}

/// Measures the half round trip by netdyno, in nanoseconds: the median of trips, or what compares with an average.
fn by_netdyno(tool: &Tool, (a, b): (usize, usize)) -> Option<f64> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netdyno"));
    command.args([
        "logp",
        "--over",
        tool.layer,
        "--size",
        SIZE,
        "--cpus",
        &format!("{a},{b}"),
        "--wait",
        "spin",
    ]);
    command.args(["--launches", "1", "--max-time", "2s", "--no-reference", "--format", "json"]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let record = Record::from_json(&String::from_utf8_lossy(&output.stdout)).ok()?;
    let rtt = &record.results[0].parameters.rtt;
    let trip_ns = if tool.is_average { rtt.value_ns? } else { *rtt.quantiles_ns.get("p50")? };
    Some(trip_ns / 2.0)
}

fn main() {
    let only = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let cpus = place::choose_pair(&place::allowed().unwrap()).unwrap();
    assert_ne!(cpus.0, cpus.1, "this benchmark polls and needs two processors");
    println!("half round trips of {SIZE} B in ns, {ROUNDS} rounds, {}", place::distance(cpus.0, cpus.1));
    let folder = compile();
    let mut port = PORT;
    for tool in TOOLS.iter().filter(|tool| only.as_ref().is_none_or(|only| only == tool.layer)) {
        let rounds: Option<Vec<[f64; 2]>> = (0..ROUNDS)
            .map(|_| {
                port += 1;
                Some([by_netdyno(tool, cpus)?, by_tool(tool, cpus, port, &folder)?])
            })
            .collect();
        println!("{}: {}", tool.layer, tool.client.replace("PORT", "P").replace("SIZE", SIZE));
        let Some(rounds) = rounds else {
            println!("  not compared: the layer or the tool is not installed, or failed");
            continue;
        };
        println!("  netdyno        {}", figure(rounds.iter().map(|[own, _]| *own), 0));
        println!("  the tool       {}", figure(rounds.iter().map(|[_, tool]| *tool), 0));
        println!("  netdyno / tool {}", figure(rounds.iter().map(|[own, tool]| own / tool), 3));
    }
}
