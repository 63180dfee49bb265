//! One launch: a fresh pair of processes that measures a layer once. Some tasks use one process or many; a
//! simulated layer runs in this process.

pub mod bench;
mod crowd;
pub mod end;
pub mod orders;
pub mod origin;
mod pair;
pub mod peak;
pub mod placed;
pub mod scout;
mod simulated;
mod start;
pub mod trial;
pub mod worker;

use crate::terminal::fault::Fault;
use crate::terminal::interrupt::Interrupt;
use bench::{Bench, Launched};
use end::End;
use netdyno_measure::task::Task;
use pair::Pair;

impl Bench {
    /// Measures once. `progress` receives the share of the work that is done.
    pub fn launch(
        &self,
        task: &Task,
        interrupt: &Interrupt,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Launched, Fault> {
        let failed =
            |text: String| Fault::Failed(format!("{}, launch {}: {text}", self.layer, task.launch() + 1));
        let launched = match (self.truth, task) {
            (Some(truth), _) => simulated::launch((truth, self.size_bytes), task, interrupt, progress),
            (None, Task::Contention(plan)) => crowd::launch(self, plan, interrupt, progress),
            _ => Pair::launch(self, task, interrupt).and_then(|pair| pair.measure(self, task, progress)),
        };
        launched.map_err(|end| match end {
            End::Fault(fault) => fault,
            // A launcher gives a signal to all processes of a job, so that others may have ended by it.
            End::Failed(text) => interrupt.check().err().unwrap_or_else(|| failed(text)),
        })
    }
}
