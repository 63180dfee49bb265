//! Layers whose operations are made in parts, to break their costs down.
//!
//! Both ends of a layer are in this process. One thread makes the operations of both ends in turn, so that each is
//! timed without waiting. For round trips another thread, on a processor of its own, answers (`partner`).
//!
//! A part of an operation is made by the code that the operation uses: the message ring of `netdyno-host`, the
//! reliability protocol of `netdyno-protocol`, the sockets.
//!
//! * `am`, `vi`, `udp` and `tcp` are the layers. `wire`, `ring`, `lane`, `lines`, `rules` and `reliability` are their parts,
//!   `content` is what their messages carry, `arrival` waits for one, and `pace` is that of the polls.

pub(crate) mod am;
mod arrival;
mod content;
mod lane;
mod lines;
mod pace;
pub(crate) mod partner;
mod reliability;
mod ring;
mod rules;
pub(crate) mod tcp;
pub(crate) mod udp;
pub(crate) mod vi;
mod wire;

use crate::time::{RealTime, in_real_time};
use netdyno_clock::ticks;
use netdyno_measure::breakdown::anatomy::{Anatomy, Table};
use netdyno_measure::layer::{Dissected, LayerError};
use netdyno_measure::task::{self, Subject};
use partner::Partner;
use std::hint::black_box;
use std::rc::Rc;

/// The number of operations in a run over sockets before the other end follows: one, as in a round trip. The kernel's
/// buffers are then as warm as they are there.
pub(crate) const TOGETHER: u64 = 1;
/// The largest number of operations in a run that leaves nothing behind.
const MANY: u64 = 4096;
/// The largest number of round trips in a run.
const TRIPS: u64 = 256;

/// What a breakdown needs to know of its layer.
#[derive(Clone, Copy, Debug)]
pub struct PartsOptions {
    /// Bytes of a message.
    pub size_bytes: usize,
    /// The processor of the thread that answers; `None` if it has none of its own, so that both threads yield.
    pub partner_cpu: Option<usize>,
}

/// One run: makes the operations, and returns the ticks of its probes.
type Run = Box<dyn FnMut(u64) -> Result<Vec<u64>, LayerError>>;

/// A layer in parts.
pub(crate) struct Parts {
    anatomy: Anatomy,
    runs: Vec<Run>,
    time: RealTime,
}

impl Parts {
    /// Returns a layer without runs. Calibrates the clock.
    pub(crate) fn new() -> Self {
        Self { anatomy: Anatomy::default(), runs: Vec::new(), time: RealTime::calibrate() }
    }

    /// Adds a run of at most `most` operations. Returns the indices of its probes.
    pub(crate) fn run<const N: usize>(
        &mut self,
        most: u64,
        probes: [&str; N],
        mut make: impl FnMut(u64) -> Result<[u64; N], LayerError> + 'static,
    ) -> [usize; N] {
        self.runs.push(Box::new(move |count| make(count).map(Vec::from)));
        self.anatomy.run(most, probes)
    }

    /// Adds a run that makes one operation, which leaves nothing behind. Returns the index of its probe.
    pub(crate) fn simple(&mut self, probe: &str, mut operation: impl FnMut() + 'static) -> usize {
        let make = move |count| {
            let began = ticks::now();
            for _ in 0..count {
                operation();
            }
            Ok([ticks::now() - began])
        };
        let [probe] = self.run(MANY, [probe], make);
        probe
    }

    /// Adds a run of round trips, which the server of this index answers. `trip` makes one of them. Returns the index of
    /// the probe.
    pub(crate) fn round_trips(
        &mut self,
        probe: &str,
        partner: &Rc<Partner>,
        server: usize,
        mut trip: impl FnMut(&Partner) -> Result<(), LayerError> + 'static,
    ) -> usize {
        let partner = Rc::clone(partner);
        let make = move |count| {
            partner.answering(server, || {
                let began = ticks::now();
                for _ in 0..count {
                    trip(&partner)?;
                }
                Ok([ticks::now() - began])
            })
        };
        let [probe] = self.run(TRIPS, [probe], make);
        probe
    }

    /// Adds an operation with its steps.
    pub(crate) fn operation(
        &mut self,
        table: Table,
        name: &str,
        whole: usize,
        steps: &[(&str, &[(usize, f64)])],
    ) {
        self.anatomy.operation(table, name, whole, steps);
    }

    /// Adds a run of the system call that does least. Returns the index of its probe.
    pub(crate) fn crossing(&mut self) -> usize {
        self.simple("system call that does nothing", || {
            black_box(rustix::process::getppid());
        })
    }

    pub(crate) fn subject(self) -> Box<dyn Subject> {
        Box::new(task::Parts(self))
    }
}

in_real_time!(Parts);

impl Dissected for Parts {
    fn anatomy(&self) -> &Anatomy {
        &self.anatomy
    }

    fn make(&mut self, nth: usize, count: u64) -> Result<Vec<u64>, LayerError> {
        let run = self.runs.get_mut(nth).ok_or_else(|| LayerError(format!("there is no run {nth}")))?;
        run(count)
    }
}
