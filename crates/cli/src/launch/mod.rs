//! One launch: a fresh pair of processes that measures a layer once. Some tasks use one process or many; a
//! simulated layer runs in this process.

pub mod bench;
mod crowd;
pub mod end;
pub mod orders;
pub mod origin;
mod pair;
mod start;
pub mod worker;

use crate::terminal::fault::Fault;
use crate::terminal::interrupt::Interrupt;
use bench::{Bench, Launched};
use end::End;
use netdyno_layers::sim::crowd as simulated_crowd;
use netdyno_layers::sim::{SimMessenger, SimRegistrar, SimRequester};
use netdyno_measure::layer::SizedRequester;
use netdyno_measure::task::{AnySize, Data, Memory, Messages, Subject, Task};
use pair::Pair;

impl Bench {
    /// Measures once. `progress` receives the share of the work that is done.
    pub fn launch(
        &self,
        task: &Task,
        interrupt: &Interrupt,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Launched, Fault> {
        let context =
            |text: String| Fault::Failed(format!("{}, launch {}: {text}", self.layer, task.launch() + 1));
        match (self.truth, task) {
            (Some(truth), Task::Contention(plan)) => {
                interrupt.check()?;
                simulated_crowd::launch(truth, self.size_bytes, plan, progress)
                    .map(|data| Data::Contention(data).into())
                    .map_err(|error| context(error.0))
            }
            (None, Task::Contention(plan)) => {
                crowd::launch(self, plan, interrupt, progress).map_err(|end| match end {
                    End::Fault(fault) => fault,
                    End::Failed(text) => context(text),
                })
            }
            (Some(truth), Task::Overlap(_)) => {
                interrupt.check()?;
                Messages(SimMessenger::new(truth, task.seed()))
                    .measure(task, progress)
                    .map(Launched::from)
                    .map_err(|error| context(error.0))
            }
            (Some(truth), Task::Registration(_)) => {
                interrupt.check()?;
                Memory(SimRegistrar::new(truth, task.seed()))
                    .measure(task, progress)
                    .map(Launched::from)
                    .map_err(|error| context(error.0))
            }
            (Some(truth), _) => {
                interrupt.check()?;
                let mut requester = SimRequester::new(truth, task.seed());
                requester
                    .set_sizes(self.size_bytes, self.size_bytes)
                    .and_then(|()| AnySize(requester).measure(task, progress))
                    .map(Launched::from)
                    .map_err(|error| context(error.0))
            }
            (None, _) => Pair::launch(self, task, interrupt)
                .and_then(|pair| pair.measure(self, task, progress))
                .map_err(|end| match end {
                    End::Fault(fault) => fault,
                    End::Failed(text) => context(text),
                }),
        }
    }
}
