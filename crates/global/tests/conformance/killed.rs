//! A rank that ends without a word. Ranks are processes: the test binary is started again with a rank.

use crate::job::Transport;
use netdyno_global::{Error, World};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const RANK: &str = "NETDYNO_TEST_RANK";
const FOLDER: &str = "NETDYNO_TEST_FOLDER";
const RANKS: u32 = 3;
/// The rank that ends.
const VICTIM: u32 = 1;
/// Exit code of a rank that got the right error.
const TOLD: i32 = 40;
/// Only a call that never ends takes this long.
const TOO_LONG: Duration = Duration::from_secs(120);

pub fn a_killed_rank_ends_the_others(transport: Transport) {
    if let Ok(rank) = std::env::var(RANK) {
        let rank = rank.parse().unwrap();
        let folder = PathBuf::from(std::env::var(FOLDER).unwrap());
        std::process::exit(survive(transport, rank, &folder));
    }
    let folder = std::env::temp_dir().join(format!("netdyno-global-{}-{transport:?}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let test = std::thread::current().name().unwrap().to_owned();
    let start = |rank: u32| {
        Command::new(std::env::current_exe().unwrap())
            .args([&test, "--exact", "--nocapture"])
            .envs([(RANK, rank.to_string()), (FOLDER, folder.display().to_string())])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let children: Vec<Child> = (0..RANKS).map(start).collect();
    let ends: Vec<Option<i32>> = children.into_iter().map(end).collect();
    std::fs::remove_dir_all(&folder).unwrap();
    // The victim is ended by a signal and has no code.
    assert_eq!(ends, [Some(TOLD), None, Some(TOLD)]);
}

/// Waits for a child, and returns its exit code.
fn end(mut child: Child) -> Option<i32> {
    let until = Instant::now() + TOO_LONG;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if Instant::now() > until {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("a rank waits for ever for one that was killed");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Joins, loses the victim, and returns the exit code.
fn survive(transport: Transport, rank: u32, folder: &Path) -> i32 {
    let mut config = transport.config(rank);
    config.am.peer_timeout = Duration::from_secs(2);
    let mut nth = 0;
    let mut world = World::join(config, rank, RANKS, |mine| {
        nth += 1;
        Ok(gather(folder, nth, rank, mine))
    })
    .unwrap();
    world.barrier().unwrap();
    if rank == VICTIM {
        std::process::abort();
    }
    // Every rank waits, although no request to the victim is outstanding.
    match world.barrier() {
        Err(Error::PeerLost { .. }) if matches!(world.barrier(), Err(Error::PeerLost { .. })) => TOLD,
        other => panic!("{other:?}"),
    }
}

/// Exchanges bytes by files.
fn gather(folder: &Path, nth: u32, rank: u32, mine: &[u8]) -> Vec<Vec<u8>> {
    let path = |rank: u32| folder.join(format!("{nth}-{rank}"));
    let unfinished = folder.join(format!("{nth}-{rank}-unfinished"));
    std::fs::write(&unfinished, mine).unwrap();
    std::fs::rename(unfinished, path(rank)).unwrap();
    let read = |rank| loop {
        match std::fs::read(path(rank)) {
            Ok(bytes) => return bytes,
            Err(_) => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    (0..RANKS).map(read).collect()
}
