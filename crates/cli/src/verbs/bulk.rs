//! `netdyno bulk`.

use crate::campaign;
use crate::campaign::method::{Method, Reading, Terms};
use crate::job::ranks::Ranks;
use crate::options::bench::BenchArgs;
use crate::options::help::WHAT;
use crate::options::values::largest;
use crate::terminal::fault::Fault;
use clap::Args;
use netdyno_measure::bulk::data::BulkLaunch;
use netdyno_measure::bulk::doubts::is_precise;
use netdyno_measure::bulk::extract::extract;
use netdyno_measure::bulk::pattern::BulkPlan;
use netdyno_measure::bulk::record::Bulk;
use netdyno_measure::record::{Doubt, Found};
use netdyno_measure::show::Bytes;
use netdyno_measure::task::{Data, Task};
use std::rc::Rc;

/// `netdyno bulk`.
#[derive(Debug, Args)]
#[command(mut_arg("size", |size| size.hide(true)))]
pub struct BulkArgs {
    /// What is measured, and how.
    #[command(flatten)]
    pub bench: BenchArgs,

    /// Measure sizes up to this one, as in 64KiB
    ///
    /// Less where a layer carries no message of that size.
    #[arg(long, value_name = "SIZE", default_value = "4MiB", value_parser = largest, help_heading = WHAT)]
    pub largest: usize,
}

/// Maximum time of one launch. The placement of the data in memory varies between processes far more than a
/// figure varies within one, so many short launches say more.
const LONGEST_LAUNCH_NS: f64 = 300e6;
/// Smallest size, in bytes. The LogP parameters of a result are those of this size.
const SMALLEST: u32 = 1;

/// Measures and writes the result.
pub fn run(args: &BulkArgs, ranks: Option<Rc<Ranks>>) -> Result<(), Fault> {
    let mut bench = args.bench.clone();
    if bench.measuring.size.replace(SMALLEST).is_some() {
        return Err(Fault::BadInput(
            "bulk measures every size, so that --size means nothing: use --largest".into(),
        ));
    }
    campaign::run(Box::new(EverySize { largest_bytes: args.largest }), &bench, ranks)
}

/// Messages of every size.
#[derive(Debug)]
struct EverySize {
    largest_bytes: usize,
}

impl Method for EverySize {
    fn task(&self, terms: &Terms, before: &[Data]) -> Task {
        let &Terms { launch, budget_ns, precision, confidence, seed, .. } = terms;
        // The first launch chooses the sizes and bursts for all launches.
        let shape = own(before).next().map(|data| data.shape.clone());
        let largest_bytes = self.largest_bytes;
        let budget_ns = budget_ns.min(LONGEST_LAUNCH_NS);
        Task::Bulk(BulkPlan { launch, shape, largest_bytes, budget_ns, precision, confidence, seed })
    }

    fn is_precise(&self, launches: &[Data], terms: &Terms) -> bool {
        let launches: Vec<BulkLaunch> = own(launches).cloned().collect();
        extract(&launches, terms.of_figures(), terms.precision)
            .is_some_and(|extracted| is_precise(&extracted.bulk, terms.precision))
    }

    fn read(&self, launches: Vec<Data>, terms: &Terms) -> Option<Reading> {
        let launches: Vec<BulkLaunch> = own(&launches).cloned().collect();
        let extracted = extract(&launches, terms.of_figures(), terms.precision)?;
        let last = extracted.bulk.sizes.last().map(|size| size.size_bytes);
        let largest_bytes = last.filter(|&last| last < self.largest_bytes);
        let mut doubts = extracted.doubts;
        doubts.extend(largest_bytes.map(|bytes| {
            Doubt::new(
                "largest_message",
                format!("no message is larger than {}: sizes beyond it are not offered", Bytes(bytes)),
            )
        }));
        Some(Reading {
            parameters: extracted.parameters,
            found: Found::Bulk(Bulk { largest_bytes, launches, ..extracted.bulk }),
            doubts,
        })
    }
}

fn own(launches: &[Data]) -> impl Iterator<Item = &BulkLaunch> {
    launches.iter().filter_map(|data| match data {
        Data::Bulk(data) => Some(data),
        _ => None,
    })
}
