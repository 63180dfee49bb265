//! Jobs whose ranks are threads.

use crate::{cables, killed, launched};
use netdyno_global::am::{self, Faults, Wait, Wire};
use netdyno_global::{Config, Error, Joining, World};
use std::io::Write;
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

/// The environment variable that makes tests in namespaces mandatory.
const REQUIRED: &str = "NETDYNO_NAMESPACES";

/// The most ranks of a test.
const RANKS_AT_MOST: u8 = 8;

impl Transport {
    /// Prepares this thread for a test. Returns `false` if this machine does not allow that. A rank that a test has started
    /// is prepared as the test is.
    pub fn is_ready(self) -> bool {
        let is_rank = killed::is_rank() || launched::is_rank();
        self != Self::Xdp || is_rank || (cables::connect(RANKS_AT_MOST) && self.opens())
    }

    /// Reports whether a rank can open its ports. A machine may permit namespaces and refuse AF_XDP.
    fn opens(self) -> bool {
        let opened = Joining::open(self.config(0).am, 0, 2, self.wire());
        if let Err(error) = &opened {
            assert!(std::env::var_os(REQUIRED).is_none(), "no AF_XDP: {error}");
            // The message bypasses the capture of the test harness.
            let _ = writeln!(std::io::stderr(), "SKIPPED: nothing was tested over AF_XDP: {error}");
        }
        opened.is_ok()
    }

    /// Returns the name of a test over this transport, for the filter of the test harness.
    pub fn test(self, function: &str) -> String {
        let module = match self {
            Self::Shm => "shm",
            Self::Udp => "udp",
            Self::BadUdp => "bad_udp",
            Self::Xdp => "xdp",
        };
        format!("{module}::{function}")
    }

    pub fn wire(self) -> Wire {
        match self {
            Self::Shm => Wire::Shm,
            Self::Udp | Self::BadUdp => Wire::Udp,
            Self::Xdp => Wire::Xdp,
        }
    }

    pub fn config(self, rank: u32) -> Config {
        let faults = Faults { loss: 0.02, duplicate: 0.02, reorder: 0.05, corrupt: 0.005, burst: 0.0 };
        let faults = if self == Self::BadUdp { faults } else { Faults::NONE };
        let am = am::Config::new()
            .wait(Wait::Yield)
            .peer_timeout(Duration::from_secs(10))
            .faults(faults)
            .seed(u64::from(rank));
        // An AF_XDP socket chooses an interface.
        let am = if self == Self::Xdp { am.bind((Ipv4Addr::UNSPECIFIED, 0).into()) } else { am };
        Config::default().am(am).wire(self.wire())
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
