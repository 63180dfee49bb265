//! `netdyno utilisation`.

use crate::campaign;
use crate::campaign::method::{Method, Terms};
use crate::job::ranks::Ranks;
use crate::launch::bench::Bench;
use crate::options::bench::BenchArgs;
use crate::options::headings::WHAT;
use crate::options::values::largest;
use crate::terminal::fault::Fault;
use crate::verbs::Examples;
use crate::verbs::bulk::no_larger_message;
use crate::verbs::completion::{cannot_block, only_polled};
use clap::Args;
use netdyno_host::wait::Wait;
use netdyno_layers::catalogue::Layer;
use netdyno_measure::reading::Reading;
use netdyno_measure::record::{Doubt, Found};
use netdyno_measure::task::{Data, Task};
use netdyno_measure::utilisation::data::UtilisationLaunch;
use netdyno_measure::utilisation::extract::extract;
use netdyno_measure::utilisation::pattern::UtilisationPlan;
use std::rc::Rc;

/// The examples of the help.
pub const EXAMPLES: &[Examples] = &[(
    "utilisation",
    [
        ("netdyno utilisation --over tcp,vi+udp", "poll, then block"),
        ("netdyno utilisation --over udp --wait block", "one way to wait"),
        ("netdyno utilisation --over tcp --largest 4MiB", "larger messages too"),
    ],
)];

/// Measure the processor time that messages cost on each side
///
/// Utilisation of both sides at every size by each way to wait: user, kernel, helper threads, and what the
/// machine did besides (docs/utilisation.md). By default each layer polls, and also blocks if it can.
#[derive(Debug, Args)]
#[command(mut_arg("size", |size| size.hide(true)))]
pub struct UtilisationArgs {
    /// What is measured, and how.
    #[command(flatten)]
    pub bench: BenchArgs,

    /// Measure sizes up to this one, as in 64KiB
    ///
    /// Less where a layer carries no message of that size.
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = largest, help_heading = WHAT)]
    pub largest: usize,
}

/// Measures and writes the result.
pub fn run(args: &UtilisationArgs, ranks: Option<Rc<Ranks>>) -> Result<(), Fault> {
    let bench = args.bench.of_every_size("utilisation")?;
    let names_waits = !bench.measuring.waits().is_empty();
    let is_across = bench.measuring.peer.is_some();
    let only_polled = Vec::new();
    let method = Utilising { largest_bytes: args.largest, names_waits, is_across, only_polled };
    campaign::run(Box::new(method), &bench, ranks)
}

/// The processor time of messages by the ways to wait.
#[derive(Debug)]
struct Utilising {
    largest_bytes: usize,
    /// True if the user named the ways to wait.
    names_waits: bool,
    /// True if the user named another host.
    is_across: bool,
    /// The layers that would also block if they could.
    only_polled: Vec<Layer>,
}

impl Method for Utilising {
    fn prepare(&mut self, benches: &[Bench]) {
        self.only_polled = if self.names_waits { Vec::new() } else { only_polled(benches) };
    }

    fn also_waits(&self) -> Vec<Wait> {
        vec![Wait::Block]
    }

    fn task(&self, terms: &Terms, before: &[Data]) -> Task {
        // The system accounts for processors in ticks, so that longer launches say more than more launches.
        let &Terms { launch, share_ns, seed, .. } = terms;
        // The first launch chooses the numbers of messages for all launches.
        let shape = Data::first::<UtilisationLaunch>(before).map(|data| data.shape.clone());
        let largest_bytes = self.largest_bytes;
        Task::Utilisation(UtilisationPlan { launch, shape, largest_bytes, budget_ns: share_ns, seed })
    }

    fn read(&self, launches: &[Data], terms: &Terms) -> Option<Reading<Found>> {
        let launches = Data::of_verb(launches);
        let mut reading = extract(&launches, terms.of_figures(), terms.precision)?;
        let last = reading.found.sizes.last().map(|size| size.size_bytes);
        reading.found.largest_bytes = last.filter(|&last| last < self.largest_bytes);
        reading.doubts.extend(reading.found.largest_bytes.map(no_larger_message));
        reading.doubts.extend(self.only_polled.contains(&terms.layer).then(|| cannot_block(terms.layer)));
        reading.doubts.extend(one_machine(&launches).filter(|_| self.is_across));
        Some(reading.of())
    }
}

/// Warns that both hosts are one machine, as two containers are.
fn one_machine(launches: &[UtilisationLaunch]) -> Option<Doubt> {
    launches.iter().all(|launch| launch.one_machine).then(|| {
        let text =
            "both hosts read the accounts of one machine: its work is counted once, and holds both sides";
        Doubt::new("one_machine", text.into())
    })
}
