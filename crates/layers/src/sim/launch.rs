//! One launch of any verb over simulated interfaces.

use super::{SimInitiator, SimMessenger, SimParts, SimRegistrar, SimRequester, crowd};
use netdyno_measure::layer::{LayerError, SizedRequester};
use netdyno_measure::task::{AnySize, Data, Memory, Messages, OneSided, Parts, Subject, Task};
use netdyno_protocol::sim::Truth;

/// Carries out `task` on simulated interfaces, with messages of `size_bytes` unless the task sets their size.
///
/// # Errors
/// Returns an error if a request is not possible on the simulated interface.
pub fn launch(
    truth: Truth,
    size_bytes: usize,
    task: &Task,
    progress: &mut dyn FnMut(f64),
) -> Result<Data, LayerError> {
    match task {
        Task::Contention(plan) => crowd::launch(truth, size_bytes, plan, progress).map(Data::Contention),
        Task::Overlap(plan) => Messages(SimMessenger::new(truth, plan.seed)).measure(task, progress),
        Task::Onesided(_) | Task::Memory(_) => {
            OneSided(SimInitiator::new(truth, task.seed())).measure(task, progress)
        }
        Task::Registration(plan) => Memory(SimRegistrar::new(truth, plan.seed)).measure(task, progress),
        Task::Breakdown(plan) => Parts(SimParts::of(&truth, size_bytes, plan.seed)).measure(task, progress),
        _ => {
            let mut requester = SimRequester::new(truth, task.seed());
            requester.set_sizes(size_bytes, size_bytes)?;
            AnySize(requester).measure(task, progress)
        }
    }
}
