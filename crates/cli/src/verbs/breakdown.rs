//! `netdyno breakdown`.

use crate::campaign;
use crate::campaign::method::{Method, Terms};
use crate::hosts::processes::Processes;
use crate::job::ranks::Ranks;
use crate::options::abilities::all_able;
use crate::options::bench::BenchArgs;
use crate::terminal::fault::Fault;
use crate::verbs::Examples;
use clap::{Arg, Args};
use netdyno_layers::catalogue::Layer;
use netdyno_measure::breakdown::data::BreakdownLaunch;
use netdyno_measure::breakdown::extract::extract;
use netdyno_measure::breakdown::pattern::BreakdownPlan;
use netdyno_measure::reading::Reading;
use netdyno_measure::record::Found;
use netdyno_measure::task::{Data, Task};
use std::rc::Rc;

/// The examples of the help.
pub const EXAMPLES: &[Examples] = &[(
    "breakdown",
    [
        ("netdyno breakdown --over am+udp", "one layer"),
        ("netdyno breakdown --over udp,tcp --size 1024", "1 KiB in system calls"),
        ("netdyno breakdown --over am+shm --out s.json", "keep the record"),
    ],
)];

/// The options of measuring verbs that mean nothing here.
const MEANINGLESS: [&str; 6] = ["faults", "dials", "profile", "peer", "bind", "wait"];

/// Measure what each step of a message costs
///
/// System calls, a plain exchange, and each operation of the layer, with its steps and the part that no step
/// explains (docs/breakdown.md).
#[derive(Debug, Args)]
#[command(mut_args(of_breakdown))]
pub struct BreakdownArgs {
    /// What is measured, and how.
    #[command(flatten)]
    pub bench: BenchArgs,
}

/// Hides options without a meaning, and says of others what they mean where one process is both ends.
fn of_breakdown(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        id if MEANINGLESS.contains(&id) => arg.hide(true),
        "precision" => arg.long_help(
            "Stop at intervals this narrow\n\nHalf the width of an interval, as a share of the operation: of \
             the whole operation, and of each of its steps.",
        ),
        "launches" => arg.help("Start this many fresh processes for each layer, at least").long_help(
            "Start this many fresh processes for each layer, at least\n\nMore are started until the precision \
             or the time is reached.",
        ),
        "cpus" => arg.help("Run the two ends of round trips on these processors, as in 0,1").long_help(
            "Run the two ends of round trips on these processors, as in 0,1\n\nBy default two that are near each \
             other. Both ends are threads of one process. Everything but round trips runs on the first.",
        ),
        _ => arg,
    }
}

/// Measures and writes the result.
pub fn run(args: &BreakdownArgs, ranks: Option<Rc<Ranks>>) -> Result<(), Fault> {
    let bench = &args.bench;
    all_able(&bench.over, Layer::has_parts, "operations that are made in parts", "use")?;
    let measuring = &bench.measuring;
    let are_given = [
        bench.faults.is_some(),
        bench.dials.is_some(),
        bench.profile.is_some(),
        measuring.peer.is_some(),
        measuring.bind.is_some(),
        !measuring.waits().is_empty(),
    ];
    if let Some((option, _)) = MEANINGLESS.into_iter().zip(are_given).find(|(_, is_given)| *is_given) {
        return Err(Fault::BadInput(format!(
            "breakdown runs both ends in one process, which polls them: remove --{option}"
        )));
    }
    let size = measuring.size.unwrap_or(0) as usize;
    if let Some(layer) = bench.over.iter().find(|layer| size > layer.longest_in_parts()) {
        return Err(Fault::BadInput(format!(
            "--size {size} is more than the {} bytes of which breakdown knows the steps over {layer}",
            layer.longest_in_parts()
        )));
    }
    campaign::run(Box::new(BreakingDown), bench, ranks)
}

/// The steps of operations.
#[derive(Debug)]
struct BreakingDown;

impl Method for BreakingDown {
    fn processes(&self) -> Processes {
        Processes::Single
    }

    fn task(&self, terms: &Terms, before: &[Data]) -> Task {
        let &Terms { launch, budget_ns, seed, .. } = terms;
        // The first launch chooses the numbers of operations for all launches.
        let shape = Data::first::<BreakdownLaunch>(before).map(|data| data.shape.clone());
        Task::Breakdown(BreakdownPlan { launch, shape, budget_ns, seed })
    }

    fn read(&self, launches: &[Data], terms: &Terms) -> Option<Reading<Found>> {
        Some(extract(&Data::of_verb(launches), terms.of_figures(), terms.precision)?.of())
    }
}
