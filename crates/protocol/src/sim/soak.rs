//! The oracle for reliable connections: the properties that must hold on a network with faults, tested
//! for one seed at a time.
//!
//! * While neither side restarts, every request and every reply is handled exactly once and in order.
//! * Every byte of a transfer is placed once and correctly, before the handler runs. No byte of a
//!   refused transfer is placed.
//! * Credits come back, and memory stays bounded.
//! * A transfer goes on only as far as its receiver grants.
//! * Once the network has healed, everything ends.
//! * If a peer restarts, a request is handled at most once. Within the peer timeout the survivor learns
//!   that the outcome of the others is unknown.

mod program;

use super::network::{Blackout, Network};
use crate::faults::Faults;
use crate::frame::datagram::{self, MOST_GRANTED};
use crate::random::Random;
use crate::reliability::{Config, Connection, Delivery, Loss};
use alloc::string::String;
use core::fmt;
use program::Program;

/// Time at which the faults end, ns.
const HEALED_NS: u64 = 2_000_000_000;
/// Time within which everything must end after that, ns.
const AFTER_HEALING_NS: u64 = 6_000_000_000;
/// Peer timeout, ns. It is longer than any blackout, so that no peer is given up that comes back.
const PEER_TIMEOUT_NS: u64 = 5_000_000_000;
const LONGEST_BLACKOUT_NS: u64 = 1_000_000_000;
/// Most memory of a connection, bytes: two windows of messages each way, and some more.
const MEMORY_AT_MOST: usize = 1 << 20;

/// The result of one seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Share of datagrams lost by injected faults, percent: one of [`LOSS_CLASSES`].
    pub loss_percent: u32,
    /// Whether a side was restarted.
    pub restarted: bool,
    /// Requests, stores and gets issued.
    pub requests: u64,
    /// Of these: handled, fetched, or refused as required.
    pub handled: u64,
    /// Of these: refused.
    pub refused: u64,
    /// Bytes of stores and gets that were placed.
    pub placed_bytes: u64,
    /// Requests with an unknown outcome.
    pub unresolved: u64,
    /// Retransmissions.
    pub retransmitted: u64,
    /// Messages transmitted for the first time.
    pub sent: u64,
    /// Virtual time until everything was done, ns.
    pub took_ns: u64,
    /// The most memory that a connection used, bytes.
    pub memory_bytes: usize,
}

/// A violated property, and its virtual time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The seed that reproduces it.
    pub seed: u64,
    /// Virtual time, ns.
    pub at_ns: u64,
    /// A description of the violation.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: after {} ns: {}", self.seed, self.at_ns, self.what)
    }
}

impl core::error::Error for Violation {}

/// The classes of loss in the table, in percent.
pub const LOSS_CLASSES: [u32; 6] = [0, 1, 5, 10, 20, 50];

/// Runs one seed to its end.
///
/// # Errors
/// Returns the first violation.
pub fn run(seed: u64) -> Result<Outcome, Violation> {
    World::new(seed).run()
}

struct World {
    seed: u64,
    random: Random,
    network: Network,
    sides: [Program; 2],
    loss_percent: u32,
    restart_ns: Option<(u64, usize)>,
    restarted: bool,
    /// Time at which each side deregisters memory, ns.
    deregister_ns: [u64; 2],
    /// Whether the sides change their grants at random times. Otherwise they grant a whole window.
    changes_grants: bool,
    now_ns: u64,
    memory_bytes: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let class = LOSS_CLASSES[random.below(LOSS_CLASSES.len() as u64) as usize];
        let faults = Faults {
            loss: f64::from(class) / 100.0,
            duplicate: [0.0, 0.01, 0.5][random.below(3) as usize],
            reorder: [0.0, 0.02, 0.3][random.below(3) as usize],
            corrupt: [0.0, 0.001, 0.1][random.below(3) as usize],
            burst: [0.0, 0.0, 0.01][random.below(3) as usize],
        };
        // In a quarter of the runs only one direction has faults.
        let sides = match random.below(8) {
            0 => [faults, Faults::default()],
            1 => [Faults::default(), faults],
            _ => [faults, faults],
        };
        let blackouts = (0..random.below(3))
            .map(|_| {
                let from_ns = random.below(20_000_000);
                let sender = [None, Some(0), Some(1)][random.below(3) as usize];
                // Two blackouts in a row are still shorter than the peer timeout.
                Blackout { from_ns, until_ns: from_ns + random.below(LONGEST_BLACKOUT_NS / 2), sender }
            })
            .collect();
        let restart_ns = (random.below(5) == 0).then(|| (random.below(10_000_000), random.below(2) as usize));
        let network = Network::new(random.bits(), sides, blackouts, HEALED_NS);
        let window = 1 << random.below(8);
        // Half of the runs cross the wrap of sequence numbers.
        let first_sequence = if random.below(2) == 0 { 0 } else { u32::MAX - random.below(300) as u32 };
        let config = Config { window, peer_timeout_ns: PEER_TIMEOUT_NS, first_sequence, ..Config::default() };
        // Three quarters of the runs have transfers.
        let has_transfers = random.below(4) > 0;
        let mut program = |local, remote| {
            Program::new(Connection::new(config, local, remote, 0), random.below(400), has_transfers)
        };
        let sides = [program(11, 22), program(22, 11)];
        let deregister_ns = [(); 2].map(|()| random.below(20_000_000));
        let changes_grants = random.below(2) == 0;
        Self {
            seed,
            random,
            network,
            sides,
            loss_percent: class,
            restart_ns,
            restarted: false,
            deregister_ns,
            changes_grants,
            now_ns: 0,
            memory_bytes: 0,
        }
    }

    fn violation(&self, what: impl Into<String>) -> Violation {
        Violation { seed: self.seed, at_ns: self.now_ns, what: what.into() }
    }

    fn run(mut self) -> Result<Outcome, Violation> {
        let end_ns = HEALED_NS + AFTER_HEALING_NS;
        loop {
            if self.is_over()? {
                return Ok(self.outcome());
            }
            let wake_ns = self.sides[0].wake_ns.min(self.sides[1].wake_ns);
            let next_ns = self.network.next_arrival_ns().map_or(wake_ns, |at_ns| at_ns.min(wake_ns));
            if next_ns > end_ns {
                let left = [0, 1].map(|side| {
                    (
                        self.sides[side].to_issue,
                        self.sides[side].issued,
                        self.sides[side].connection.in_flight(),
                    )
                });
                return Err(self.violation(alloc::format!(
                    "no end after the network healed; (to issue, issued, in flight): {left:?}"
                )));
            }
            self.now_ns = self.now_ns.max(next_ns);
            self.restart_when_due();
            self.deregister_when_due();
            while let Some((to, bytes)) = self.network.arrive(self.now_ns) {
                self.arrive(to, &bytes)?;
            }
            for side in 0..2 {
                if self.sides[side].wake_ns <= self.now_ns {
                    self.wake(side)?;
                }
            }
        }
    }

    /// Reports whether everything is done or, after a restart, whether the survivor knows of it.
    fn is_over(&self) -> Result<bool, Violation> {
        if self.restarted {
            let lost = [0, 1].map(|side| self.sides[side].connection.lost());
            let (_, restarted) = self.restart_ns.unwrap_or_default();
            let survivor = &self.sides[1 - restarted];
            return Ok(lost[1 - restarted] == Some(Loss::Silent)
                || survivor.is_done() && survivor.connection.deadline().is_none());
        }
        if let Some(loss) = self.sides.iter().find_map(|side| side.connection.lost()) {
            return Err(self.violation(alloc::format!("a living peer was given up: {loss:?}")));
        }
        let is_over = self.sides.iter().all(Program::is_done)
            && self.sides.iter().all(|side| side.connection.deadline().is_none());
        if is_over {
            for side in &self.sides {
                side.check_end().map_err(|what| self.violation(what))?;
            }
        }
        Ok(is_over)
    }

    fn outcome(&self) -> Outcome {
        let counters = self.sides.each_ref().map(|side| side.connection.counters());
        Outcome {
            loss_percent: self.loss_percent,
            restarted: self.restarted,
            requests: self.sides.iter().map(|side| side.issued).sum(),
            handled: self.sides.iter().map(|side| side.handled + side.fetched + side.refused).sum(),
            refused: self.sides.iter().map(|side| side.refused).sum(),
            placed_bytes: self.sides.iter().map(Program::placed).sum(),
            unresolved: self.sides.iter().map(|side| u64::from(side.connection.in_flight())).sum(),
            retransmitted: counters.iter().map(|c| c.retransmitted).sum(),
            sent: counters.iter().map(|c| c.sent).sum(),
            took_ns: self.now_ns,
            memory_bytes: self.memory_bytes,
        }
    }

    /// Restarts a side, if it is time, with new connection numbers that the peer does not know.
    fn restart_when_due(&mut self) {
        let Some((at_ns, side)) = self.restart_ns else { return };
        if self.restarted || self.now_ns < at_ns {
            return;
        }
        self.restarted = true;
        let connection = Connection::new(Config::default(), 33, 44, self.now_ns);
        self.sides[side] = Program::after_restart(connection);
    }

    fn deregister_when_due(&mut self) {
        for (side, &at_ns) in self.sides.iter_mut().zip(&self.deregister_ns) {
            if self.now_ns >= at_ns {
                side.deregister();
            }
        }
    }

    fn arrive(&mut self, to: usize, bytes: &[u8]) -> Result<(), Violation> {
        let Ok(datagram) = datagram::parse(bytes) else { return Ok(()) };
        let program = &mut self.sides[to];
        if datagram.header.connection != program.connection.local() {
            return Ok(());
        }
        program.note_grant(datagram.header.arrived);
        let mut handled = Ok(());
        if program.connection.receive(&datagram, self.now_ns) == Delivery::Now {
            handled = program.handle(&datagram, self.now_ns);
            while let (Ok(()), Some(bytes)) = (&handled, program.connection.buffered()) {
                handled = match datagram::parse(&bytes) {
                    Ok(datagram) => program.handle(&datagram, self.now_ns),
                    Err(_) => Err("a kept message is malformed".into()),
                };
                program.connection.recycle(bytes);
            }
        }
        handled.map_err(|what| self.violation(what))?;
        // A descheduled process answers later.
        let asleep_ns =
            if self.random.chance(0.01) { self.random.below(3_000_000) } else { self.random.below(500) };
        let program = &mut self.sides[to];
        program.wake_ns = program.wake_ns.min(self.now_ns + asleep_ns);
        Ok(())
    }

    fn wake(&mut self, side: usize) -> Result<(), Violation> {
        let program = &mut self.sides[side];
        if program.connection.deadline().is_some_and(|at_ns| at_ns <= self.now_ns) {
            program.connection.on_time(self.now_ns);
        }
        let burst = self.random.below(12);
        for _ in 0..burst {
            let is_over = program.issued == program.to_issue || program.connection.lost().is_some();
            if is_over || program.issue(self.now_ns).is_err() {
                break;
            }
        }
        if self.changes_grants && self.random.chance(0.1) {
            let most = [2, 8, u64::from(MOST_GRANTED)][self.random.below(3) as usize];
            program.connection.grant(1 + self.random.below(most) as u8);
        }
        let (mut datagrams, mut before) = (0, u32::MAX);
        loop {
            while let Some(bytes) = program.connection.transmit(self.now_ns) {
                self.network.send(side, bytes, self.now_ns);
                datagrams += 1;
                if datagrams > 1000 {
                    return Err(self.violation("more than 1000 datagrams are sent at once"));
                }
            }
            let in_flight = program.connection.granted_in_flight();
            if in_flight > before.max(program.granted()) {
                let what = alloc::format!("{in_flight} are in flight, {} are granted", program.granted());
                return Err(self.violation(what));
            }
            before = in_flight;
            if !program.feed(self.now_ns) {
                break;
            }
        }
        let program = &mut self.sides[side];
        let memory_bytes = program.connection.memory_bytes();
        self.memory_bytes = self.memory_bytes.max(memory_bytes);
        if memory_bytes > MEMORY_AT_MOST {
            return Err(self.violation(alloc::format!("a connection holds {memory_bytes} bytes")));
        }
        let deadline_ns = program.connection.deadline().unwrap_or(u64::MAX);
        let next_issue_ns = if program.issued < program.to_issue && program.connection.has_room() {
            self.now_ns + 1 + self.random.below(50_000)
        } else {
            u64::MAX
        };
        program.wake_ns = deadline_ns.min(next_issue_ns).max(self.now_ns + 1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn thousands_of_seeds_hold() {
        let outcomes: Result<Vec<Outcome>, Violation> = (0..3000).map(run).collect();
        let outcomes = outcomes.unwrap_or_else(|violation| panic!("{violation}"));
        assert!(outcomes.iter().filter(|o| o.restarted).count() > 300);
        assert!(outcomes.iter().any(|o| o.unresolved > 0));
        for class in LOSS_CLASSES {
            assert!(outcomes.iter().filter(|o| o.loss_percent == class).count() > 100);
        }
        assert!(outcomes.iter().map(|o| o.retransmitted).sum::<u64>() > 10_000);
        assert!(outcomes.iter().map(|o| o.refused).sum::<u64>() > 10_000);
        assert!(outcomes.iter().map(|o| o.placed_bytes).sum::<u64>() > 10_000_000);
        assert!(
            outcomes.iter().filter(|o| !o.restarted).all(|o| o.handled == o.requests && o.unresolved == 0)
        );
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        for seed in 0..50 {
            assert_eq!(run(seed), run(seed));
        }
    }
}
