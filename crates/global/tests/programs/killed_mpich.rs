//! Programs of which a rank is killed while it works, under the `mpiexec` of MPICH.

use crate::built::example;
use crate::common::installed::Installed;
use crate::common::launched::{self, Launched, kill_one};
use crate::common::shared_memory::{self, Shared};
use crate::killed::{LONG, VICTIM, assert_names_the_victim};
use std::fs;
use std::path::Path;
use std::process::Command;

const RANKS: usize = 4;

/// A shell that hides the end of a killed rank from its launcher until there is a file.
const HIDE: &str = r#""$0" "$@"; code=$?
if [ $code = 137 ]; then while [ ! -e "$NETDYNO_TEST_TOLD" ]; do sleep 0.1; done; fi; exit $code"#;

/// Returns `mpiexec` with a program, behind a command that starts it.
fn mpiexec(hydra: &Path, before: &[&str], installed: &Installed, options: &[&[&str]]) -> Command {
    let mut command = Command::new(hydra);
    command.args(["-n", &RANKS.to_string()]).args(before);
    command.arg(installed.program()).args(options.concat());
    command
}

/// Returns the lines of the program. `mpiexec` writes others.
fn own_lines(errors: &str) -> Vec<&str> {
    errors.lines().filter(|line| line.starts_with("error: ")).collect()
}

/// `mpiexec` sees the end of the rank and ends the others. One of them may have reported the loss before, if the machine is
/// very busy.
pub fn a_killed_rank_ends_the_job(hydra: &Path, wire: &[&str]) {
    let [name, options @ ..] = LONG[0];
    let installed = Installed::new(&example(name));
    let command = mpiexec(hydra, &[], &installed, &[&options, wire]);
    let (ended, shared) = kill_one(&installed, command, RANKS, VICTIM);
    assert!(!ended.status.success(), "{ended:?}");
    own_lines(&ended.errors).into_iter().for_each(assert_names_the_victim);
    installed.assert_nothing_is_left(&shared);
}

/// Each survivor names the rank if `mpiexec` does not see its end.
pub fn a_rank_that_is_killed_unseen_is_named(hydra: &Path, wire: &[&str]) {
    let [name, options @ ..] = LONG[1];
    let installed = Installed::new(&example(name));
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("told");
    let mut command = mpiexec(hydra, &["sh", "-c", HIDE], &installed, &[&options, wire]);
    command.env("NETDYNO_TEST_TOLD", &told);
    let mut job = Launched::start(&installed, command);
    let processes = job.work(RANKS);
    let shared: Vec<Shared> = processes.iter().map(|process| shared_memory::of(*process)).collect();
    launched::kill(processes[VICTIM]);
    job.await_that("the survivors do not end", |job| own_lines(&job.errors()).len() == RANKS - 1);
    fs::write(told, "").unwrap();
    let ended = job.end();
    assert!(!ended.status.success(), "{ended:?}");
    let lines = own_lines(&ended.errors);
    assert_eq!(lines.len(), RANKS - 1, "{ended:?}");
    lines.into_iter().for_each(assert_names_the_victim);
    installed.assert_nothing_is_left(&shared);
}
