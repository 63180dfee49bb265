//! Compares radix sort over global memory with the same program in C over MPI (`programs/radix_sort.c`), at two ranks of
//! this host:
//!
//!     cargo build --release -p netdyno-global --examples
//!     NETDYNO_TEST_MPICC=/path/to/mpicc cargo bench -p netdyno-global --bench radix_sort [KEYS]
//!
//! Both have the same keys and digits. By digit the keys move together: by stores of 256 keys to their places here,
//! and by one `MPI_Alltoallv` there, which is what an MPI programmer would write. By key each key is a store of its
//! own, and an `MPI_Put`; this has fewer keys, because `MPI_Put` takes long. Both programs check their results.
//!
//! The two alternate, each time in fresh processes with a processor a rank. A ratio is taken within a pair of runs;
//! medians and intervals are over the pairs. The ranks start by netdyno's launcher, as those of MPICH can.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to report")]

#[path = "../tests/programs/built.rs"]
mod built;
#[path = "../tests/programs/mpich.rs"]
mod mpich;
#[path = "../../libam/benches/ranks/mod.rs"]
mod ranks;

use netdyno_clock::place;
use ranks::show;
use std::path::{Path, PathBuf};
use std::process::Command;

const PAIRS: usize = 11;
const KEYS: u64 = 10_000_000;
/// The share of the keys that are moved one by one.
const BY_KEY: u64 = 20;

fn main() {
    // Cargo adds `--bench`.
    let keys = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(KEYS);
    let (a, b) = place::choose_pair(&place::allowed().unwrap()).unwrap();
    assert_ne!(a, b, "this benchmark polls and needs two processors");
    let Some(compiler) = mpich::compiler() else { return };
    let folder = tempfile::tempdir().unwrap();
    let over_mpi = compile(&compiler, folder.path());
    let over_global = built::example("radix_sort");
    println!("{PAIRS} pairs of runs on processors {a} and {b} ({})", place::distance(a, b));
    for (way, keys) in [("digit", keys), ("key", keys / BY_KEY)] {
        let keys_word = keys.to_string();
        let pinned = |program: &Path, arguments: &[&str]| {
            ranks::output(|rank| {
                let mut command = Command::new("taskset");
                command.args(["-c", &[a, b][rank].to_string()]).arg(program).args(arguments);
                command
            })
        };
        let pairs: Vec<[f64; 2]> = (0..PAIRS)
            .map(|pair| {
                let mut both = [0.0; 2];
                for nth in [pair % 2, 1 - pair % 2] {
                    let seconds = if nth == 0 {
                        seconds_of(&pinned(&over_global, &[&keys_word, "--by", way, "--counts"]))
                    } else {
                        seconds(pinned(&over_mpi, &[&keys_word, way]).trim())
                    };
                    both[nth] = 1e3 * seconds;
                }
                both
            })
            .collect();
        let title = |of: &str| format!("{keys} keys by {way}: {of}");
        show(&title("global memory, ms"), pairs.iter().map(|[ours, _]| *ours).collect());
        show(&title("MPI, ms"), pairs.iter().map(|[_, theirs]| *theirs).collect());
        show(&title("MPI / global memory"), pairs.iter().map(|[ours, theirs]| theirs / ours).collect());
    }
}

/// Compiles the program over MPI.
fn compile(compiler: &Path, folder: &Path) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/programs/radix_sort.c");
    let program = folder.join("radix_sort");
    let mut command = Command::new(compiler);
    command.args(["-O3", "-Wall", "-Wextra", "-Werror", source, "-o"]).arg(&program);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Returns the time in the counts that the example prints.
fn seconds_of(output: &str) -> f64 {
    let time = output.split_whitespace().find_map(|word| word.strip_prefix("time_s="));
    seconds(time.unwrap_or(output))
}

fn seconds(text: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("no time in '{text}'"))
}
