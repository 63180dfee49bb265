//! Worlds under netdyno's own launcher. Ranks are processes: the test binary is started again.

use crate::job::Transport;
use netdyno_global::{Combination, GlobalPointer, World};
use netdyno_job::launching::{End, run};
use std::fs::OpenOptions;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The variable that makes this binary a rank, with the number of ranks.
const RANKS: &str = "NETDYNO_TEST_RANKS";
/// Only a job that never ends takes this long.
const TOO_LONG: Duration = Duration::from_secs(120);

/// Reports whether this process is a rank that a test has launched.
pub fn is_rank() -> bool {
    std::env::var_os(RANKS).is_some()
}

/// Launches a test again as so many ranks. Returns how they ended, and what they have written to their standard error.
fn launched(test: &str, ranks: u32) -> (End, String) {
    let errors = tempfile::NamedTempFile::new().unwrap();
    let rank = |_| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([test, "--exact", "--nocapture"]).env(RANKS, ranks.to_string());
        let errors = OpenOptions::new().append(true).open(errors.path()).unwrap();
        command.stdout(Stdio::null()).stderr(errors);
        command
    };
    let began = Instant::now();
    let end = run(ranks as usize, rank, || (began.elapsed() > TOO_LONG).then_some(15));
    (end.unwrap(), std::fs::read_to_string(errors.path()).unwrap())
}

/// Joins the job, if this process is a rank of one.
fn joined(transport: Transport) -> Option<World> {
    let ranks: u32 = std::env::var(RANKS).ok()?.parse().unwrap();
    let world = World::launched(transport.config(0)).unwrap();
    assert_eq!(world.ranks(), ranks);
    Some(world)
}

pub fn launched_ranks_share_memory(transport: Transport) {
    let Some(mut world) = joined(transport) else {
        let test = transport.test("launched_ranks_share_memory");
        for ranks in [1, 2, 5, 8] {
            assert_eq!(launched(&test, ranks), (End::Done, String::new()));
        }
        return;
    };
    let (me, ranks) = (world.rank(), world.ranks());
    let segment = world.allocate(8).unwrap();
    world.barrier().unwrap();
    let right = GlobalPointer { rank: (me + 1) % ranks, segment: segment.number(), offset: 0 };
    world.store(right, &u64::from(me).to_le_bytes()).unwrap();
    world.all_store_sync().unwrap();
    let left = u64::from((me + ranks - 1) % ranks);
    assert_eq!(world.read_u64(world.pointer(segment, 0)).unwrap(), left);
    let mut sum = [left];
    world.all_reduce(Combination::Sum, &mut sum).unwrap();
    assert_eq!(sum, [u64::from(ranks * (ranks - 1) / 2)]);
    world.finish().unwrap();
}

pub fn a_killed_rank_ends_its_launch(transport: Transport) {
    let Some(mut world) = joined(transport) else {
        let (end, errors) = launched(&transport.test("a_killed_rank_ends_its_launch"), 3);
        assert_eq!((end.to_string(), end.code()), ("rank 1 was killed by signal 6".into(), 134), "{errors}");
        // The launcher says it, and the others do not.
        assert_eq!(errors, "");
        return;
    };
    world.barrier().unwrap();
    if world.rank() == 1 {
        std::process::abort();
    }
    // The launcher ends this rank, even if the world notices first that another one is gone.
    world.barrier().unwrap();
}
