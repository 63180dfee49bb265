//! netdyno's own launcher, with processes: this test binary is started again as the ranks of a job.

#![allow(clippy::unwrap_used, reason = "a test")]

use netdyno_job::launching::{End, LaunchError, run};
use netdyno_job::place::Place;
use netdyno_job::pmi::Pmi;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The variable that makes this binary a rank, with its folder.
const FOLDER: &str = "NETDYNO_TEST_FOLDER";
/// No launch of these tests takes this long.
const TOO_LONG: Duration = Duration::from_secs(60);

/// Runs `launch` in the test, and `rank` in each rank that it starts: processes of this binary that run this test.
fn in_job<T>(launch: impl FnOnce(&Path, &dyn Fn() -> Command) -> T, rank: impl FnOnce(&Path)) -> Option<T> {
    if let Some(folder) = std::env::var_os(FOLDER) {
        rank(&PathBuf::from(folder));
        return None;
    }
    let test = std::thread::current().name().unwrap().to_owned();
    let folder = std::env::temp_dir().join(format!("netdyno-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let again = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([&test, "--exact", "--nocapture"]).env(FOLDER, &folder).stdout(Stdio::null());
        command.stderr(Stdio::null());
        command
    };
    let found = launch(&folder, &again);
    std::fs::remove_dir_all(&folder).unwrap();
    Some(found)
}

fn place() -> Place {
    Place::of_this_process().unwrap().unwrap()
}

/// Leaves a file with the number of this process.
fn note_pid(folder: &Path) {
    std::fs::write(folder.join(std::process::id().to_string()), []).unwrap();
}

/// Returns the processes that have called [`note_pid`].
fn pids(folder: &Path) -> Vec<i32> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok()).collect()
}

/// Reports whether a process is there and no zombie.
fn is_alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
}

fn await_that(what: impl Fn() -> bool) {
    let until = Instant::now() + TOO_LONG;
    while !what() {
        assert!(Instant::now() < until, "it does not come about");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Writes to the launcher without PMI's client.
fn say(bytes: &[u8]) -> File {
    let number = std::env::var("PMI_FD").unwrap().parse().unwrap();
    let mut socket = netdyno_host::inherited::descriptor(number).unwrap();
    socket.write_all(bytes).unwrap();
    socket
}

/// Lives until it is ended.
fn sleep() {
    std::thread::sleep(2 * TOO_LONG);
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

fn never() -> Option<i32> {
    None
}

#[test]
fn ranks_exchange_bytes_and_end() {
    let bytes = |rank: usize, nth: usize| vec![rank as u8; [7, 1000 * rank][nth]];
    let ends = in_job(
        |_, again| [1, 2, 5, 16].map(|procs| run(procs, |_| again(), never).unwrap()),
        |_| {
            let place = place();
            let mut pmi = Pmi::open(place).unwrap();
            for nth in 0..2 {
                let all: Vec<Vec<u8>> = (0..place.procs).map(|rank| bytes(rank, nth)).collect();
                assert_eq!(pmi.gather(&bytes(place.rank, nth)).unwrap(), all);
            }
        },
    );
    assert!(ends.is_none_or(|ends| ends == [End::Done; 4]));
}

/// Returns the end of a launch of three ranks and the error, and asserts that it left no process behind.
fn end_of_three(rank: impl FnOnce(usize)) -> Option<Result<End, String>> {
    in_job(
        |folder, again| {
            let began = Instant::now();
            let end = run(3, |_| again(), never).map_err(|error| error.to_string());
            assert!(began.elapsed() < TOO_LONG, "only the end of a sleep has ended it");
            assert!(pids(folder).iter().all(|&pid| !is_alive(pid)));
            end
        },
        |folder| {
            note_pid(folder);
            rank(place().rank);
        },
    )
}

/// A gather in which the others wait for rank 1.
fn gather() {
    drop(Pmi::open(place()).unwrap().gather(b"x"));
    // The others do not end by themselves.
    sleep();
}

#[test]
fn a_killed_rank_ends_those_that_wait_for_it() {
    let end = end_of_three(|rank| if rank == 1 { std::process::abort() } else { gather() });
    let Some(end) = end else { return };
    let end = end.unwrap();
    assert_eq!((end.to_string(), end.code()), ("rank 1 was killed by signal 6".into(), 134));
}

#[test]
fn a_rank_that_fails_after_its_last_exchange_ends_the_others() {
    let end = end_of_three(|rank| {
        drop(Pmi::open(place()).unwrap().gather(b"x").unwrap());
        if rank == 1 { std::process::exit(3) } else { sleep() }
    });
    let Some(end) = end else { return };
    let end = end.unwrap();
    assert_eq!((end.to_string(), end.code()), ("rank 1 ended with exit code 3".into(), 3));
}

#[test]
fn a_rank_that_does_not_come_to_a_barrier_ends_the_others() {
    let end = end_of_three(|rank| {
        if rank != 1 {
            gather()
        }
    });
    let Some(end) = end else { return };
    let error = end.unwrap_err();
    assert!(error.contains("to which rank 1 does not come: it has ended"), "{error}");
}

#[test]
fn a_rank_that_aborts_ends_the_others() {
    let end = end_of_three(|rank| {
        let _socket = (rank == 1).then(|| say(b"cmd=abort exitcode=9\n"));
        sleep();
    });
    let Some(end) = end else { return };
    assert_eq!(end, Ok(End::Aborted { rank: 1, code: 9 }));
    assert_eq!(end.unwrap().code(), 9);
    assert_eq!(End::Aborted { rank: 0, code: 0 }.code(), 1);
}

#[test]
fn a_rank_that_leaves_without_a_word_ends_the_others() {
    let end = end_of_three(|rank| {
        let pmi = Pmi::open(place()).unwrap();
        if rank == 1 {
            std::process::exit(0);
        }
        sleep();
        drop(pmi);
    });
    let Some(end) = end else { return };
    assert_eq!(end, Ok(End::Left { rank: 1 }));
    assert_eq!(end.unwrap().code(), 1);
}

#[test]
fn a_rank_that_speaks_another_protocol_ends_the_others() {
    let end = end_of_three(|rank| {
        let _socket = (rank == 1).then(|| say(b"GET / HTTP/1.1\n"));
        sleep();
    });
    let Some(end) = end else { return };
    let error = end.unwrap_err();
    assert!(error.starts_with("rank 1 sent 'GET / HTTP/1.1', which is no command"), "{error}");
}

#[test]
fn a_rank_that_reads_no_answer_ends_the_others() {
    let end = end_of_three(|rank| {
        if rank == 1 {
            // The launcher closes the socket before all of it is written.
            let number = std::env::var("PMI_FD").unwrap().parse().unwrap();
            let mut socket = netdyno_host::inherited::descriptor(number).unwrap();
            while socket.write_all(&b"cmd=get_maxes\n".repeat(1000)).is_ok() {}
        }
        sleep();
    });
    let Some(end) = end else { return };
    assert_eq!(end.unwrap_err(), "rank 1 does not read the launcher's answers");
}

#[test]
fn the_variables_of_an_outer_launcher_are_replaced() {
    let script = "test $PMI_RANK-$PMI_SIZE-$SLURM_PROCID-$PMIX_RANK = $0-2--";
    let rank = |rank: usize| {
        let mut command = shell(script);
        command.arg(rank.to_string());
        command.envs(["PMI_RANK", "PMI_SIZE", "SLURM_PROCID", "PMIX_RANK"].map(|name| (name, "40")));
        command
    };
    assert_eq!(run(2, rank, never).unwrap(), End::Done);
}

#[test]
fn ranks_above_0_have_no_standard_input() {
    // Of the others it is /dev/null, whose device number is 1:3.
    let script = r#"test "$(stat -L -c %t:%T /proc/self/fd/0)" = 1:3"#;
    assert_eq!(run(3, |rank| shell(if rank == 0 { "true" } else { script }), never).unwrap(), End::Done);
}

#[test]
fn bad_numbers_and_programs_are_errors() {
    for procs in [0, 65_537, usize::MAX] {
        let error = run(procs, |_| shell("true"), never).unwrap_err().to_string();
        assert!(error.contains("use 1 to 65536"), "{error}");
    }
    let rank = |rank| if rank == 1 { Command::new("/nonexistent/x") } else { shell("exec sleep 1000") };
    let error = run(2, rank, never).unwrap_err();
    assert!(matches!(error, LaunchError::Start { rank: 1, .. }), "{error}");
}

#[test]
fn a_stop_ends_ranks_that_ignore_sigterm() {
    let end = in_job(
        |folder, _| {
            let rank = |_| {
                let mut command = shell("trap '' TERM; : >$FOLDER/$$; while :; do sleep 0.1; done");
                command.env("FOLDER", folder);
                command
            };
            let end = run(2, rank, || (pids(folder).len() == 2).then_some(15)).unwrap();
            assert!(pids(folder).iter().all(|&pid| !is_alive(pid)));
            end
        },
        |_| {},
    );
    assert_eq!(end, Some(End::Stopped(15)));
}

/// This process is the test, a launcher, or a rank of that launcher.
#[test]
fn ranks_end_with_a_killed_launcher() {
    const LAUNCHER: &str = "NETDYNO_TEST_LAUNCHER";
    if let Some(folder) = std::env::var_os(LAUNCHER) {
        let rank = |_| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(std::env::args_os().skip(1).collect::<Vec<OsString>>());
            command.env_remove(LAUNCHER).env(FOLDER, &folder);
            command
        };
        drop(run(3, rank, never));
        return;
    }
    in_job(
        |folder, again| {
            let mut command = again();
            let mut launcher = command.env_remove(FOLDER).env(LAUNCHER, folder).spawn().unwrap();
            await_that(|| pids(folder).len() == 3);
            kill_process(Pid::from_child(&launcher), Signal::KILL).unwrap();
            launcher.wait().unwrap();
            await_that(|| pids(folder).iter().all(|&pid| !is_alive(pid)));
        },
        |folder| {
            note_pid(folder);
            sleep();
        },
    );
}
