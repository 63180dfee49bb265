//! The record of the verb `utilisation`.

use super::data::UtilisationLaunch;
use crate::overlap::record::Quantity;
use crate::record::parameter::Parameter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The processor time that messages cost on each side, by one way to wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Utilisation {
    /// The largest message of the layer, bytes; null if the layer carries all sizes that were asked for.
    #[serde(default)]
    pub largest_bytes: Option<usize>,
    /// Processors that are busy while nothing is sent, without the two processes: the work of other programs on the
    /// requester's machine. It is subtracted from the machine's work.
    pub idle: Quantity,
    /// The same on the replier's machine if it is another one.
    #[serde(default)]
    pub replier_idle: Option<Quantity>,
    /// Ascending by size.
    pub sizes: Vec<UtilisationSize>,
    /// The data of every launch.
    pub launches: Vec<UtilisationLaunch>,
}

/// The costs of one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UtilisationSize {
    /// Bytes of the message.
    pub size_bytes: usize,
    /// Round trips of that size both ways.
    pub round_trips: Costs,
    /// A stream of that size with small replies.
    pub stream: Costs,
}

/// The costs of one kind of window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Costs {
    /// The requester.
    pub requester: SideCosts,
    /// The replier.
    pub replier: SideCosts,
    /// The requester's machine; it has both sides if they are on one machine.
    pub machine: MachineCosts,
    /// The replier's machine if it is another one.
    #[serde(default)]
    pub replier_machine: Option<MachineCosts>,
}

/// The costs of one side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideCosts {
    /// All processor time of the process.
    pub busy: Cost,
    /// Processor time of the communicating thread outside of the kernel.
    pub user: Cost,
    /// Processor time of the communicating thread in the kernel.
    pub system: Cost,
    /// Processor time of the process's other threads.
    pub helpers: Cost,
    /// Counters of the communicating thread for each message.
    pub counters: Vec<CounterFigure>,
}

/// The work of one machine, without its work while nothing is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineCosts {
    /// Work of all processors, with that of the processes.
    pub busy: Cost,
    /// Interrupts and soft interrupts of all processors. The system may count them among the threads' time too.
    pub softirq: Cost,
    /// Kernel work on processors without a communicating thread.
    pub elsewhere: Cost,
    /// Work that is neither of the processes nor kernel work elsewhere; negative if the processes report more
    /// than the machine.
    pub unexplained: Cost,
}

/// Processor time, as a share of one processor and for each message: a request with its reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Processor time over elapsed time. Its status is that of `per_message`.
    pub share: Quantity,
    /// Processor time for each message.
    pub per_message: Parameter,
}

/// A counter for each message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CounterFigure {
    /// The counter: user_cycles, kernel_cycles, user_instructions, kernel_instructions or switches.
    pub name: String,
    /// Its value for each message.
    pub per_message: Quantity,
}

/// The names of the costs of a side, in the order of tables.
pub const SIDE_COSTS: [&str; 4] = ["busy", "user", "system", "helpers"];
/// The names of the costs of a machine, in the order of tables.
pub const MACHINE_COSTS: [&str; 4] = ["busy", "softirq", "elsewhere", "unexplained"];
/// The names of the kinds of windows.
pub const KINDS: [&str; 2] = ["round_trips", "stream"];

/// A machine is busy if others use more than this share of its processors while nothing is sent.
const BUSY: f64 = 0.05;

impl Utilisation {
    /// Returns the work of others while nothing is sent, on each machine.
    pub fn idle_machines(&self) -> Vec<Quantity> {
        [Some(self.idle), self.replier_idle].into_iter().flatten().collect()
    }

    /// Returns the number of a machine's processors if others keep them busy while nothing is sent. They give
    /// processors up while messages are sent, so that what they would do cannot be subtracted.
    pub(super) fn busy_processors(&self, nth: usize) -> Option<usize> {
        let windows = self.launches.iter().flat_map(|launch| &launch.idle);
        let machines = windows.filter_map(|window| window.machines()[nth]);
        let processors = machines.map(|machine| machine.processors).max()?;
        let others = self.idle_machines().get(nth)?.value?;
        (others > BUSY * processors as f64).then_some(processors)
    }

    /// Removes the figures of each busy machine. What stays unexplained is kept, because it shows how far the sum is
    /// off.
    pub(super) fn without_busy_machines(mut self) -> Self {
        let is_busy = [0, 1].map(|nth| self.busy_processors(nth).is_some());
        for size in &mut self.sizes {
            for costs in [&mut size.round_trips, &mut size.stream] {
                let machines = [Some(&mut costs.machine), costs.replier_machine.as_mut()];
                let busy = machines.into_iter().zip(is_busy).filter(|(_, is_busy)| *is_busy);
                busy.filter_map(|(machine, _)| machine).for_each(MachineCosts::remove_values);
            }
        }
        self
    }
}

impl Cost {
    fn remove_value(&mut self) {
        self.share = Quantity { launches: self.share.launches, ..Quantity::default() };
        self.per_message = self.per_message.clone().without_value();
    }
}

impl UtilisationSize {
    /// Returns the costs by kind, in the order of [`KINDS`].
    pub fn kinds(&self) -> [(&'static str, &Costs); KINDS.len()] {
        [(KINDS[0], &self.round_trips), (KINDS[1], &self.stream)]
    }
}

impl Costs {
    /// Returns the sides with their names.
    pub fn sides(&self) -> [(&'static str, &SideCosts); 2] {
        [("requester", &self.requester), ("replier", &self.replier)]
    }

    /// Returns the machines with their names.
    pub fn machines(&self) -> impl Iterator<Item = (&'static str, &MachineCosts)> {
        let other = self.replier_machine.as_ref().map(|machine| ("replier_machine", machine));
        [("machine", &self.machine)].into_iter().chain(other)
    }
}

impl SideCosts {
    /// Returns the costs by name, in the order of [`SIDE_COSTS`].
    pub fn all(&self) -> [(&'static str, &Cost); SIDE_COSTS.len()] {
        let costs = [&self.busy, &self.user, &self.system, &self.helpers];
        std::array::from_fn(|nth| (SIDE_COSTS[nth], costs[nth]))
    }
}

impl MachineCosts {
    fn remove_values(&mut self) {
        let Self { busy, softirq, elsewhere, .. } = self;
        [busy, softirq, elsewhere].into_iter().for_each(Cost::remove_value);
    }

    /// Returns the costs by name, in the order of [`MACHINE_COSTS`].
    pub fn all(&self) -> [(&'static str, &Cost); MACHINE_COSTS.len()] {
        let costs = [&self.busy, &self.softirq, &self.elsewhere, &self.unexplained];
        std::array::from_fn(|nth| (MACHINE_COSTS[nth], costs[nth]))
    }
}
