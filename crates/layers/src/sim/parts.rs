//! Operations in parts over a simulated interface: each consists of known steps, and of a rest that no step explains.

use super::check_time;
use super::time::in_virtual_time;
use netdyno_measure::breakdown::anatomy::{Anatomy, Table};
use netdyno_measure::layer::{Dissected, LayerError};
use netdyno_protocol::random::Random;
use netdyno_protocol::sim::{Noise, Truth};

/// The largest number of operations in a run.
const MOST: u64 = 4096;

/// An operation whose steps are known.
#[derive(Clone, Debug)]
pub struct KnownOperation {
    /// What it does.
    pub name: String,
    /// Its steps: what each does, and what it takes in picoseconds.
    pub steps: Vec<(String, u64)>,
    /// What it takes besides, in picoseconds.
    pub rest_ps: u64,
}

impl KnownOperation {
    /// Returns an operation of `whole_ps` whose steps have these shares of it.
    fn of_shares(name: &str, whole_ps: u64, shares: &[(&str, f64)]) -> Self {
        let step = |(name, share): &(&str, f64)| ((*name).to_owned(), (share * whole_ps as f64) as u64);
        let steps: Vec<(String, u64)> = shares.iter().map(step).collect();
        let explained: u64 = steps.iter().map(|(_, ps)| ps).sum();
        Self { name: name.into(), steps, rest_ps: whole_ps.saturating_sub(explained) }
    }

    /// Returns the operations of an interface on messages of `size_bytes`. Their steps are fixed shares of its overheads.
    fn of_truth(truth: &Truth, size_bytes: usize) -> Vec<Self> {
        let (send_ps, receive_ps) = (truth.o_s_of(size_bytes), truth.o_r_of(size_bytes));
        let way_ps = truth.l_of(size_bytes) + truth.data_of(size_bytes);
        let trip_ps = 2 * (send_ps + way_ps + receive_ps);
        let of_trip = |ps: u64| 2.0 * ps as f64 / trip_ps.max(1) as f64;
        vec![
            Self::of_shares(
                "send request",
                send_ps,
                &[("format", 0.2), ("copy", 0.3), ("checksum", 0.1), ("flow control", 0.35)],
            ),
            Self::of_shares(
                "handle request",
                receive_ps,
                &[("check", 0.3), ("flow control", 0.3), ("dispatch", 0.35)],
            ),
            Self::of_shares("poll in vain", truth.o_poll_ps, &[]),
            Self::of_shares(
                "round trip",
                trip_ps,
                &[
                    ("2 sends", of_trip(send_ps)),
                    ("2 ways", of_trip(way_ps)),
                    ("2 receives", of_trip(receive_ps)),
                ],
            ),
        ]
    }
}

/// The simulated clock.
struct Simulated {
    noise: Noise,
    random: Random,
    now_ps: u64,
}

impl Simulated {
    fn now_ps(&self) -> u64 {
        self.now_ps
    }

    fn compute(&mut self, ps: u64) {
        self.now_ps += ps;
    }

    fn spend(&mut self, mean_ps: u64) {
        self.now_ps += self.noise.around(mean_ps, &mut self.random);
    }
}

/// Operations with known steps. A run makes the first steps of an operation, or all of it.
pub struct SimParts {
    simulated: Simulated,
    operations: Vec<KnownOperation>,
    anatomy: Anatomy,
    /// For each run, its operation and how many of its steps it makes; `None` if it makes all of the operation.
    rungs: Vec<(usize, Option<usize>)>,
}

impl SimParts {
    /// Returns the operations of an interface on messages of `size_bytes`. `seed` seeds the noise.
    pub fn of(truth: &Truth, size_bytes: usize, seed: u64) -> Self {
        Self::new(KnownOperation::of_truth(truth, size_bytes), truth.noise, seed)
    }

    /// Returns these operations.
    pub fn new(operations: Vec<KnownOperation>, noise: Noise, seed: u64) -> Self {
        let (mut anatomy, mut rungs) = (Anatomy::default(), Vec::new());
        for (nth, operation) in operations.iter().enumerate() {
            let [whole] = anatomy.run(MOST, [&operation.name[..]]);
            rungs.push((nth, None));
            let mut before = None;
            let mut terms = Vec::new();
            for (made, (name, _)) in operation.steps.iter().enumerate() {
                let [with] = anatomy.run(MOST, [&format!("{} up to {name}", operation.name)[..]]);
                rungs.push((nth, Some(made + 1)));
                let without = before.replace(with).map(|probe| (probe, -1.0));
                terms.push([Some((with, 1.0)), without].into_iter().flatten().collect::<Vec<_>>());
            }
            let steps: Vec<(&str, &[(usize, f64)])> = operation
                .steps
                .iter()
                .zip(&terms)
                .map(|((name, _), terms)| (&name[..], &terms[..]))
                .collect();
            anatomy.operation(Table::Operation, &operation.name, whole, &steps);
        }
        let simulated = Simulated { noise, random: Random::new(seed), now_ps: 0 };
        Self { simulated, operations, anatomy, rungs }
    }
}

in_virtual_time!(SimParts, simulated);

impl Dissected for SimParts {
    fn anatomy(&self) -> &Anatomy {
        &self.anatomy
    }

    fn make(&mut self, nth: usize, count: u64) -> Result<Vec<u64>, LayerError> {
        let &(operation, made) =
            self.rungs.get(nth).ok_or_else(|| LayerError(format!("there is no run {nth}")))?;
        check_time(self.simulated.now_ps())?;
        let operation = &self.operations[operation];
        let began = self.simulated.now_ps();
        for _ in 0..count {
            let steps = &operation.steps[..made.unwrap_or(operation.steps.len())];
            steps.iter().for_each(|(_, ps)| self.simulated.spend(*ps));
            if made.is_none() {
                self.simulated.spend(operation.rest_ps);
            }
        }
        Ok(vec![self.simulated.now_ps() - began])
    }
}
