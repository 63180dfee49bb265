//! The verbs, one file each, and their registry. A new verb is a file, and one entry in the registry.

pub mod breakdown;
pub mod bulk;
pub mod characterise;
pub mod compare;
pub mod completion;
pub mod completions;
pub mod contention;
pub mod export;
pub mod launch;
pub mod layers;
pub mod logp;
pub mod man;
pub mod memory;
pub mod onesided;
pub mod overlap;
pub mod paper;
pub mod plugin;
pub mod registration;
pub mod report;
pub mod run;
pub mod serve;
pub mod soak;
pub mod sweep;
pub mod utilisation;
pub mod validate;

use crate::job::ranks::Ranks;
use crate::launch::worker::{self, WorkerArgs};
use crate::options::bench::Measuring;
use crate::program::guard::{self, GuardArgs};
use crate::terminal::fault::Fault;
use breakdown::BreakdownArgs;
use bulk::BulkArgs;
use clap::{Command, Subcommand};
use compare::CompareArgs;
use completion::CompletionArgs;
use completions::CompletionsArgs;
use contention::ContentionArgs;
use export::ExportArgs;
use launch::LaunchArgs;
use layers::LayersArgs;
use logp::LogpArgs;
use man::ManArgs;
use memory::MemoryArgs;
use netdyno_layers::catalogue::Layer;
use onesided::OnesidedArgs;
use overlap::OverlapArgs;
use paper::PaperArgs;
use plugin::PluginArgs;
use registration::RegistrationArgs;
use report::ReportArgs;
use run::RunArgs;
use serve::ServeArgs;
use soak::SoakArgs;
use std::rc::Rc;
use sweep::SweepArgs;
use utilisation::UtilisationArgs;
use validate::ValidateArgs;

/// A command line with its examples for the help: its words after `netdyno`, and three commands with their
/// purposes.
pub type Examples = (&'static str, [(&'static str, &'static str); 3]);

/// What a verb gets from the command beside its arguments.
pub struct Context {
    /// The job in which this command runs, if a launcher started it.
    pub ranks: Option<Rc<Ranks>>,
    /// The definition of the command line, with all help texts.
    pub definition: fn() -> Command,
}

/// Defines [`Verb`], [`GROUPS`] and [`EXAMPLES`]. An entry has the arguments of a verb, its module, the call
/// that performs it, and its measuring options with its layers if it measures.
macro_rules! registry {
    (
        |$args:ident, $context:ident|
        $($group:literal { $($verb:ident($of:ty) in $module:ident: $run:expr, $measuring:expr;)* })*
        hidden { $($inner:ident($inner_of:ty): $inner_run:expr;)* }
    ) => {
        /// The verbs.
        #[derive(Debug, Subcommand)]
        pub enum Verb {
            $($($verb(Box<$of>),)*)*
            $(#[command(hide = true)] $inner(Box<$inner_of>),)*
        }

        #[allow(unused_variables, reason = "not every entry uses its arguments")]
        impl Verb {
            /// Performs the verb.
            pub fn perform(&self, $context: Context) -> Result<(), Fault> {
                match self {
                    $($(Self::$verb($args) => $run,)*)*
                    $(Self::$inner($args) => $inner_run,)*
                }
            }

            /// Reports whether the verb measures one-sided operations.
            pub fn is_one_sided(&self) -> bool {
                matches!(self, Self::Onesided(_) | Self::Memory(_))
            }

            /// Returns the measuring options and the layers of `--over`, if the verb measures layers.
            pub fn measured(&self) -> Option<(&Measuring, &[Layer])> {
                match self {
                    $($(Self::$verb($args) => $measuring,)*)*
                    $(Self::$inner(_) => None,)*
                }
            }
        }

        /// The verbs, by purpose.
        pub const GROUPS: &[(&str, &[&str])] = &[$(($group, &[$(stringify!($module)),*])),*];

        /// The examples of all verbs.
        pub const EXAMPLES: &[&[Examples]] = &[characterise::EXAMPLES, $($($module::EXAMPLES),*),*];
    };
}

registry! {
    |args, context|
    "Measure" {
        Logp(LogpArgs) in logp: logp::run(args, context.ranks), Some(args.bench.measured());
        Breakdown(BreakdownArgs) in breakdown: breakdown::run(args, context.ranks), Some(args.bench.measured());
        Bulk(BulkArgs) in bulk: bulk::run(args, context.ranks), Some(args.bench.measured());
        Completion(CompletionArgs) in completion:
            completion::run(args, context.ranks), Some(args.bench.measured());
        Contention(ContentionArgs) in contention: contention::run(args, context.ranks), Some(args.bench.measured());
        Memory(MemoryArgs) in memory: memory::run(args, context.ranks), Some(args.bench.measured());
        Onesided(OnesidedArgs) in onesided: onesided::run(args, context.ranks), Some(args.bench.measured());
        Overlap(OverlapArgs) in overlap: overlap::run(args, context.ranks), Some(args.bench.measured());
        Registration(RegistrationArgs) in registration:
            registration::run(args, context.ranks), Some(args.bench.measured());
        Utilisation(UtilisationArgs) in utilisation:
            utilisation::run(args, context.ranks), Some(args.bench.measured());
    }
    "Dial" {
        Run(RunArgs) in run: run::run(args).map_err(Fault::of_runner), None;
        Sweep(SweepArgs) in sweep: sweep::run(args).map_err(Fault::of_runner), None;
        Validate(ValidateArgs) in validate: validate::run(args, context.ranks), Some((&args.measuring, std::slice::from_ref(&args.over)));
        Paper(PaperArgs) in paper: paper::run(args, context.ranks), Some((&args.measuring, &[]));
    }
    "Report" {
        Report(ReportArgs) in report: report::run(args), None;
        Compare(CompareArgs) in compare: compare::run(args), None;
        Export(ExportArgs) in export: export::run(args), None;
    }
    "Prepare" {
        Layers(LayersArgs) in layers: layers::run(), None;
        Plugin(PluginArgs) in plugin: plugin::run(args), None;
        Launch(LaunchArgs) in launch: launch::run(args).map_err(Fault::of_runner), None;
        Serve(ServeArgs) in serve: serve::run(args), None;
        Soak(SoakArgs) in soak: soak::run(args), None;
        Completions(CompletionsArgs) in completions: completions::run(args, (context.definition)()), None;
        Man(ManArgs) in man: man::run(args, (context.definition)()), None;
    }
    hidden {
        Worker(WorkerArgs): worker::run(args);
        Guard(GuardArgs): guard::run(args);
    }
}

/// Returns the examples of a verb; the bare command has no name.
pub fn examples(verb: &str) -> &'static [(&'static str, &'static str)] {
    let mut all = EXAMPLES.iter().copied().flatten();
    all.find(|(name, _)| *name == verb).map_or(&[], |(_, examples)| examples)
}

/// Returns the first example of a verb.
pub fn first_example(verb: &str) -> Option<&'static str> {
    examples(verb).first().map(|(command, _)| *command)
}
