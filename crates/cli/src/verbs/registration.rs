//! `netdyno registration`.

use crate::campaign;
use crate::campaign::method::{Method, Terms};
use crate::hosts::processes::Processes;
use crate::job::ranks::Ranks;
use crate::options::abilities::all_able;
use crate::options::bench::BenchArgs;
use crate::options::headings::WHAT;
use crate::options::values::largest;
use crate::terminal::fault::Fault;
use crate::verbs::Examples;
use clap::Args;
use netdyno_host::memory;
use netdyno_layers::catalogue::Layer;
use netdyno_measure::reading::Reading;
use netdyno_measure::record::Found;
use netdyno_measure::registration::data::RegistrationLaunch;
use netdyno_measure::registration::extract::extract;
use netdyno_measure::registration::pattern::RegistrationPlan;
use netdyno_measure::show::Bytes;
use netdyno_measure::task::{Data, Task};
use std::rc::Rc;

/// The examples of the help.
pub const EXAMPLES: &[Examples] = &[(
    "registration",
    [
        ("netdyno registration --over vi+shm", "measure one layer"),
        ("netdyno registration --over ofi:tcp,ucx:tcp", "compare two libraries"),
        ("netdyno registration --over vi+shm --largest 1MiB", "stop at 1 MiB"),
    ],
)];

/// Measure what registering memory costs, beside mlock
#[derive(Debug, Args)]
#[command(mut_arg("size", |size| size.hide(true)))]
pub struct RegistrationArgs {
    /// What is measured, and how.
    #[command(flatten)]
    pub bench: BenchArgs,

    /// Measure regions up to this size, as in 1GiB
    ///
    /// Half of the memory that is available at most.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = largest, help_heading = WHAT)]
    pub largest: usize,
}

/// Measures and writes the result.
pub fn run(args: &RegistrationArgs, ranks: Option<Rc<Ranks>>) -> Result<(), Fault> {
    let bench = args.bench.of_every_size("registration")?;
    if bench.faults.is_some() {
        return Err(Fault::BadInput("registration sends nothing, so that --faults means nothing".into()));
    }
    all_able(&bench.over, Layer::registers, "memory to register", "use")?;
    if bench.over.iter().any(|layer| *layer != Layer::Sim) {
        check_memory(args.largest, memory::available_bytes())?;
    }
    campaign::run(Box::new(Registering { largest_bytes: args.largest }), &bench, ranks)
}

/// Rejects regions of more than half of the available memory, because their figures would include the reclaim
/// of other programs' memory.
fn check_memory(largest: usize, available: Option<usize>) -> Result<(), Fault> {
    match available {
        Some(available) if largest > available / 2 => Err(Fault::BadInput(format!(
            "--largest {} is more than half of the {} MiB of memory that are available here: use less",
            Bytes(largest),
            available >> 20
        ))),
        _ => Ok(()),
    }
}

/// The cost of registering memory with a layer.
#[derive(Debug)]
struct Registering {
    largest_bytes: usize,
}

impl Method for Registering {
    fn processes(&self) -> Processes {
        Processes::Many(1)
    }

    fn task(&self, terms: &Terms, before: &[Data]) -> Task {
        let &Terms { launch, budget_ns, seed, .. } = terms;
        // The first launch chooses the samples for all launches.
        let shape = Data::first::<RegistrationLaunch>(before).map(|data| data.shape.clone());
        Task::Registration(RegistrationPlan {
            launch,
            shape,
            largest_bytes: self.largest_bytes,
            budget_ns,
            seed,
        })
    }

    fn read(&self, launches: &[Data], terms: &Terms) -> Option<Reading<Found>> {
        let launches = Data::of_verb(launches);
        Some(extract(&launches, terms.confidence, terms.precision)?.of())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_memory_may_be_taken() {
        let check = |largest, available| check_memory(largest, available).is_ok();
        assert!(check(1 << 30, Some(2 << 30)) && check(1 << 30, None));
        assert!(!check(1 << 30, Some((2 << 30) - 1)) && !check(1, Some(1)));
    }
}
