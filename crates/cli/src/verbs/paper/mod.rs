//! `netdyno paper`: the experiments of papers, repeated on this machine over netdyno's provider under a real MPI.

mod comb;
mod speight;
mod stack;

use crate::campaign::Campaign;
use crate::campaign::ending::conclude;
use crate::job::ranks::Ranks;
use crate::options::bench::Measuring;
use crate::options::headings::WHAT;
use crate::options::output::OutputArgs;
use crate::records::output::Sink;
use crate::terminal::fault::Fault;
use crate::verbs::Examples;
use crate::verbs::overlap::{UnderWay, ascending, message_size};
use clap::{Args, ValueEnum};
use netdyno_measure::overlap::pattern::smallest_trip;
use netdyno_measure::record::Paper;
use stack::Stacks;
use std::rc::Rc;

/// The examples of the help.
pub const EXAMPLES: &[Examples] = &[(
    "paper",
    [
        ("netdyno paper comb --out comb.html", "tell stacks apart"),
        ("netdyno paper speight-5 --out mpi.html", "improve MPI by steps"),
        ("netdyno paper comb --launcher 'mpiexec -n {n}'", "choose the MPI"),
    ],
)];

/// Repeat the experiment of a paper, with an MPI over netdyno's provider
///
/// MPICH 5 and Open MPI use libfabric, so they run over the provider (docs/paper.md).
#[derive(Debug, Args)]
#[command(mut_arg("size", |size| size.hide(true)))]
#[command(mut_arg("wait", |wait| wait.hide(true)))]
#[command(mut_arg("peer", |peer| peer.hide(true)))]
#[command(mut_arg("key_file", |file| file.hide(true)))]
pub struct PaperArgs {
    /// Repeat this experiment
    #[arg(value_name = "EXPERIMENT", value_enum, help_heading = WHAT)]
    experiment: Experiment,

    /// Send messages of these sizes
    ///
    /// In bytes or as in 5kB, 100KiB. Section 5 measures the powers of four below the largest as well. By default
    /// 5kB,100kB for comb, and 8,32KiB,64KiB for speight-5.
    #[arg(long, value_name = "SIZE[,SIZE…]", value_delimiter = ',', value_parser = message_size, help_heading = WHAT)]
    sizes: Vec<usize>,

    /// How many messages COMB's methods keep under way.
    #[command(flatten)]
    under_way: UnderWay,

    /// How to measure.
    #[command(flatten)]
    pub measuring: Measuring,

    /// Where and in which form the result goes.
    #[command(flatten)]
    output: OutputArgs,
}

/// The experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Experiment {
    /// COMB over stacks that make progress in four ways (Brightwell et al. 2003)
    Comb,
    /// MPI over Virtual Interfaces, improved step by step (Speight et al. 1999, section 5)
    #[value(name = "speight-5")]
    Speight5,
}

/// Measures and writes the result.
pub fn run(args: &PaperArgs, ranks: Option<Rc<Ranks>>) -> Result<(), Fault> {
    let mut measuring = args.measuring.clone();
    check(&measuring, ranks.as_deref())?;
    let sizes = sizes(args)?;
    measuring.size = Some(u32::try_from(smallest_trip(&sizes)).unwrap_or(u32::MAX));
    let method = match args.experiment {
        Experiment::Comb => comb::method(sizes, args.under_way),
        Experiment::Speight5 => speight::method(sizes),
    };
    args.under_way.check(&method.methods)?;
    let sink = Sink::open(&args.output)?;
    let stacks = Stacks::prepare(&mut measuring)?;
    let (variants, paper) = match args.experiment {
        Experiment::Comb => (comb::variants(&stacks), Paper::Comb),
        Experiment::Speight5 => (speight::variants(&stacks), Paper::Speight5),
    };
    let campaign = Campaign::of_variants(Box::new(method), variants, &measuring, ranks)?;
    let mut record = campaign.run()?;
    if record.failed.is_none() {
        stacks.check_used()?;
    }
    record.paper = Some(paper);
    conclude(&record, sink.write(&record))
}

/// Returns the sizes of messages, ascending.
fn sizes(args: &PaperArgs) -> Result<Vec<usize>, Fault> {
    let usual: &[usize] = match args.experiment {
        Experiment::Comb => &comb::SIZES,
        Experiment::Speight5 => &speight::SIZES,
    };
    ascending(if args.sizes.is_empty() { usual } else { &args.sizes })
}

/// Rejects options that mean nothing here.
fn check(measuring: &Measuring, ranks: Option<&Ranks>) -> Result<(), Fault> {
    let fault = |text: &str| Err(Fault::BadInput(text.into()));
    if measuring.size.is_some() {
        return fault("paper measures several sizes: use --sizes, as in --sizes 5kB,100kB");
    }
    if !measuring.waits().is_empty() {
        return fault("paper chooses how processes wait: leave --wait away");
    }
    if measuring.peer.is_some() || ranks.is_some() {
        return fault(
            "paper starts MPI itself, each time with other variables: run it without --peer and without a launcher \
             around it",
        );
    }
    Ok(())
}
