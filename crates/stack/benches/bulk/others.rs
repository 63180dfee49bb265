//! The bandwidth of other layers on the same processors, if they are installed: UCX's own test, and
//! NetPIPE over Open MPI and MPICH.

use crate::common::show;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Maximum time for one run of another layer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Bandwidths in GB/s, one for each run that succeeded.
#[derive(Default)]
pub struct Others {
    runs: usize,
    ucx: Vec<f64>,
    open_mpi: Vec<f64>,
    mpich: Vec<f64>,
}

impl Others {
    /// Runs each layer once.
    pub fn run(&mut self, len: usize, processors: (usize, usize)) {
        self.runs += 1;
        self.ucx.extend(ucx_put(len, processors));
        self.open_mpi.extend(net_pipe("mpirun.openmpi", "NPopenmpi", len, processors));
        self.mpich.extend(net_pipe("mpirun.mpich", "NPmpich2", len, processors));
    }

    pub fn show(&self) {
        let layers = [
            ("UCX ucp_put_bw", &self.ucx, "ucx_perftest (Debian: ucx-utils)"),
            ("Open MPI, NetPIPE ping-pong", &self.open_mpi, "NPopenmpi (Debian: netpipe-openmpi)"),
            ("MPICH, NetPIPE ping-pong", &self.mpich, "NPmpich2 (Debian: netpipe-mpich2)"),
        ];
        for (what, rates, program) in layers {
            if rates.len() == self.runs {
                show(what, "GB/s", rates);
            } else {
                println!("{what}: not compared, {program} is not installed or failed");
            }
        }
    }
}

fn pinned((a, b): (usize, usize), program: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &format!("{a},{b}"), program]).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// Returns the output of a command, if it succeeds within the time limit.
fn output(mut command: Command) -> Option<String> {
    let mut child = command.spawn().ok()?;
    let began = Instant::now();
    while child.try_wait().ok()?.is_none() {
        if began.elapsed() > TIMEOUT {
            end(&mut child);
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    output.status.success().then(|| String::from_utf8_lossy(&text).into_owned())
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// The last line has: iterations, three latencies, the average and the overall bandwidth in MB/s (of
/// 2^20 bytes), and two message rates.
fn ucx_put(len: usize, (a, b): (usize, usize)) -> Option<f64> {
    let test = |cpu: usize, host: &[&str]| {
        let mut command = pinned((cpu, cpu), "ucx_perftest");
        command.args(["-t", "ucp_put_bw", "-s", &len.to_string(), "-n", "2000", "-p", "13374"]).args(host);
        command
    };
    let mut server = test(b, &[]).spawn().ok()?;
    std::thread::sleep(Duration::from_millis(300));
    let text = output(test(a, &["127.0.0.1"]));
    end(&mut server);
    let text = text?;
    let last = text.lines().rev().find(|line| line.starts_with("Final:"))?;
    let rate: f64 = last.split_whitespace().rev().nth(2)?.parse().ok()?;
    Some(rate * f64::from(1 << 20) / 1e9)
}

/// A line of results ends in `N bytes M times --> X Mbps in Y usec` (of 2^20 bits).
fn net_pipe(launcher: &str, program: &str, len: usize, processors: (usize, usize)) -> Option<f64> {
    let mut command = pinned(processors, launcher);
    let len = len.to_string();
    // Only Open MPI needs this, and only for root.
    if launcher.ends_with("openmpi") {
        command.arg("--allow-run-as-root");
    }
    command.args(["-np", "2", program, "-l", &len, "-u", &len, "-p", "0", "-o", "/dev/null"]);
    // NetPIPE prints its results on standard error.
    command.stderr(Stdio::piped());
    let text = output(command)?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = words.iter().rposition(|&word| word == "Mbps")?;
    let rate: f64 = words.get(at.checked_sub(1)?)?.parse().ok()?;
    Some(rate * f64::from(1 << 20) / 8e9)
}
