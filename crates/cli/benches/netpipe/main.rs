//! Compares MPI's half round trip in netdyno with that in NetPIPE, over the same library and processors. The
//! programs alternate, with fresh processes. A program of 150 lines (pingpong.c) makes the calls of either,
//! and so explains the difference. Needs Debian's netpipe-openmpi with libopenmpi-dev, or netpipe-mpich2 with
//! libmpich-dev.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to report")]

#[path = "../figures/mod.rs"]
mod figures;

use figures::figure;
use netdyno_clock::place;
use netdyno_measure::record::Record;
use std::path::Path;
use std::process::{Command, Stdio};

const ROUNDS: usize = 21;
/// Sizes of a message, in bytes.
const SIZES: [usize; 5] = [8, 64, 1024, 8192, 65536];
/// The measured columns, and the ratios between them: numerator and denominator.
const COLUMNS: [&str; 5] = ["NetPIPE", "bounced", "blocking", "posted", "netdyno"];
const RATIOS: [(usize, usize); 3] = [(4, 0), (1, 0), (4, 3)];

/// Half round trips in ns, by column.
type Row = [f64; COLUMNS.len()];

struct Library {
    compiler: &'static str,
    launcher: &'static str,
    netpipe: &'static str,
}

const LIBRARIES: [Library; 2] = [
    Library { compiler: "mpicc.openmpi", launcher: "mpiexec.openmpi", netpipe: "NPopenmpi" },
    Library { compiler: "mpicc.mpich", launcher: "mpiexec.mpich", netpipe: "NPmpich2" },
];

/// Returns the output of a command that succeeds.
fn output(command: &mut Command) -> Option<String> {
    // Open MPI requires both variables when it runs as root.
    command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    let output = command.stdin(Stdio::null()).output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    output.status.success().then(|| String::from_utf8_lossy(&text).into_owned())
}

impl Library {
    /// Measures all columns of all sizes, one program after the other, or in the reverse order.
    fn round(&self, pingpong: &Path, cpus: &str, is_backwards: bool) -> Option<[Row; SIZES.len()]> {
        let mut rows = [[f64::NAN; COLUMNS.len()]; SIZES.len()];
        let mut steps = [0, 1, 2];
        if is_backwards {
            steps.reverse();
        }
        for step in steps {
            match step {
                0 => SIZES.iter().zip(&mut rows).try_for_each(|(&size, row)| {
                    row[0] = self.by_netpipe(cpus, size)?;
                    Some(())
                })?,
                1 => self.by_pingpong(pingpong, cpus, &mut rows)?,
                _ => self.by_netdyno(cpus, &mut rows)?,
            }
        }
        Some(rows)
    }

    /// Starts two processes, each on its own processor, as netdyno places them.
    fn pinned(&self, cpus: &str) -> Command {
        let script = "cpus=$0; rank=${PMI_RANK:-$OMPI_COMM_WORLD_RANK}; \
                      exec taskset -c $(echo $cpus | cut -d, -f$((rank + 1))) \"$@\"";
        let mut command = Command::new(self.launcher);
        command.args(["-n", "2", "sh", "-c", script, cpus]);
        command
    }

    /// Reads NetPIPE's `N bytes M times --> X Mbps in Y usec`, to 10 ns.
    fn by_netpipe(&self, cpus: &str, size: usize) -> Option<f64> {
        let size = size.to_string();
        let mut command = self.pinned(cpus);
        command.args([self.netpipe, "-l", &size, "-u", &size, "-p", "0", "-o", "/dev/null"]);
        let text = output(&mut command)?;
        let words: Vec<&str> = text.split_whitespace().collect();
        let at = words.iter().rposition(|&word| word == "usec")?;
        Some(words[at - 1].parse::<f64>().ok()? * 1e3)
    }

    /// Reads `SIZE WAY NS` in the order of the columns.
    fn by_pingpong(&self, pingpong: &Path, cpus: &str, rows: &mut [Row]) -> Option<()> {
        let text = output(self.pinned(cpus).arg(pingpong).args(SIZES.map(|size| size.to_string())))?;
        let mut times = text.lines().map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        for row in rows {
            for time in &mut row[1..=3] {
                *time = times.next()??;
            }
        }
        Some(())
    }

    fn by_netdyno(&self, cpus: &str, rows: &mut [Row]) -> Option<()> {
        let sizes = SIZES.map(|size| size.to_string()).join(",");
        let launcher = format!("{} -n {{n}}", self.launcher);
        let mut command = Command::new(env!("CARGO_BIN_EXE_netdyno"));
        command.args([
            "overlap",
            "--over",
            "mpi",
            "--launcher",
            &launcher,
            "--cpus",
            cpus,
            "--sizes",
            &sizes,
        ]);
        command.args(["--method", "max", "--launches", "1", "--max-time", "1s", "--format", "json"]);
        let record = Record::from_json(&output(command.env("NETDYNO_MPICC", self.compiler))?).unwrap();
        let trips = &record.results[0].found.overlap().unwrap().trips;
        for (&size, row) in SIZES.iter().zip(rows) {
            row[4] = trips.iter().find(|trip| trip.size_bytes == size)?.half_rtt.value_ns?;
        }
        Some(())
    }

    fn compare(&self, folder: &Path, cpus: &str) -> Option<()> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/netpipe/pingpong.c");
        let pingpong = folder.join(self.compiler);
        output(Command::new(self.compiler).arg("-O2").arg(source).arg("-o").arg(&pingpong))?;
        let rounds: Vec<[Row; SIZES.len()]> =
            (0..ROUNDS).map(|round| self.round(&pingpong, cpus, round % 2 == 1)).collect::<Option<_>>()?;
        println!("{}, processors {cpus}: half round trips in ns, medians of {ROUNDS} rounds", self.launcher);
        for (at, size) in SIZES.iter().enumerate() {
            println!("  {size} B");
            for (column, name) in COLUMNS.iter().enumerate() {
                println!("    {name:<24} {}", figure(rounds.iter().map(|rows| rows[at][column]), 0));
            }
            for (above, below) in RATIOS {
                let ratios = rounds.iter().map(|rows| rows[at][above] / rows[at][below]);
                let name = format!("{} / {}", COLUMNS[above], COLUMNS[below]);
                println!("    {name:<24} {}", figure(ratios, 3));
            }
        }
        Some(())
    }
}

fn main() {
    let (a, b) = place::choose_pair(&place::allowed().unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for library in LIBRARIES {
        if library.compare(folder.path(), &format!("{a},{b}")).is_none() {
            let Library { compiler, launcher, netpipe } = library;
            println!("not compared: {netpipe}, {launcher} or {compiler} is missing or fails");
        }
    }
}
