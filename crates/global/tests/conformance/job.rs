//! Jobs whose ranks are threads.

use crate::{cables, killed, launched};
use netdyno_global::am::{self, Faults, Wait, Wire};
use netdyno_global::{Config, Error, World};
use std::net::Ipv4Addr;
use std::sync::{Barrier, Mutex};
use std::time::Duration;

/// A transport between the ranks of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Shm,
    Udp,
    /// UDP with injected faults.
    BadUdp,
    /// AF_XDP sockets, at one interface for each rank.
    Xdp,
}

/// The most ranks of a test.
const RANKS_AT_MOST: u8 = 8;

impl Transport {
    /// Prepares this thread for a test. Returns `false` if this machine does not allow that. A rank that a test has started
    /// is prepared as the test is.
    pub fn is_ready(self) -> bool {
        self != Self::Xdp || killed::is_rank() || launched::is_rank() || cables::connect(RANKS_AT_MOST)
    }

    pub fn config(self, rank: u32) -> Config {
        let faults = Faults { loss: 0.02, duplicate: 0.02, reorder: 0.05, corrupt: 0.005, burst: 0.0 };
        let faults = if self == Self::BadUdp { faults } else { Faults::NONE };
        let am = am::Config::new()
            .wait(Wait::Yield)
            .peer_timeout(Duration::from_secs(10))
            .faults(faults)
            .seed(u64::from(rank));
        match self {
            Self::Shm => Config::default().am(am).wire(Wire::Shm),
            Self::Udp | Self::BadUdp => Config::default().am(am).wire(Wire::Udp),
            Self::Xdp => Config::default().am(am.bind((Ipv4Addr::UNSPECIFIED, 0).into())).wire(Wire::Xdp),
        }
    }
}

/// Runs a program at every rank, which finishes afterwards.
pub fn run(ranks: u32, transport: Transport, program: impl Fn(&mut World) + Sync) {
    let ends = run_raw(ranks, transport, |mut world| {
        program(&mut world);
        world.finish()
    });
    assert!(ends.iter().all(Result::is_ok), "{ends:?}");
}

/// Runs a program at every rank, and returns the results by rank.
pub fn run_raw<T: Send>(
    ranks: u32,
    transport: Transport,
    program: impl Fn(World) -> Result<T, Error> + Sync,
) -> Vec<Result<T, Error>> {
    let meeting = Barrier::new(ranks as usize);
    let board = Mutex::new(vec![Vec::new(); ranks as usize]);
    let (meeting, board, program) = (&meeting, &board, &program);
    std::thread::scope(|scope| {
        let start = |rank: u32| {
            scope.spawn(move || {
                let gather = |mine: &[u8]| {
                    board.lock().unwrap()[rank as usize] = mine.to_vec();
                    meeting.wait();
                    let all = board.lock().unwrap().clone();
                    meeting.wait();
                    Ok(all)
                };
                program(World::join(transport.config(rank), rank, ranks, gather).unwrap())
            })
        };
        let threads: Vec<_> = (0..ranks).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
