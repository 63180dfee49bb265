//! `netdyno contention`.

use crate::args::{ContentionArgs, PROCS_AT_MOST};
use crate::campaign;
use crate::fault::Fault;
use crate::method::{Method, Reading, Terms};
use crate::ranks::Ranks;
use netdyno_measure::contention::data::CrowdData;
use netdyno_measure::contention::direct::CrowdPlan;
use netdyno_measure::contention::doubts::is_precise;
use netdyno_measure::contention::extract::extract;
use netdyno_measure::record::Found;
use netdyno_measure::task::{Data, Task};
use std::rc::Rc;

/// Processes, where neither the user nor a job says how many.
const PROCS: usize = 4;

/// Measures and writes the result.
pub fn run(args: &ContentionArgs, ranks: Option<Rc<Ranks>>) -> Result<(), Fault> {
    let of_job = ranks.as_ref().map(|ranks| ranks.hosts().len());
    let procs = args.procs.map(usize::from).or(of_job).unwrap_or(PROCS);
    if procs > PROCS_AT_MOST.into() {
        return Err(Fault::BadInput(format!(
            "{procs} processes are more than the {PROCS_AT_MOST} that are measured at once"
        )));
    }
    campaign::run(Box::new(Crowding { procs }), &args.bench, ranks)
}

/// The steps that show what contention does.
#[derive(Debug)]
struct Crowding {
    procs: usize,
}

impl Method for Crowding {
    fn procs(&self) -> Option<usize> {
        Some(self.procs)
    }

    fn task(&self, terms: &Terms, before: &[Data]) -> Task {
        let &Terms { launch, budget_ns, seed, .. } = terms;
        // The first launch chooses window and delay for all.
        let shape = crowds(before).next().map(|data| data.shape.clone());
        Task::Contention(CrowdPlan { launch, procs: self.procs, shape, budget_ns, seed })
    }

    fn is_precise(&self, launches: &[Data], terms: &Terms) -> bool {
        let launches: Vec<CrowdData> = crowds(launches).cloned().collect();
        extract(&launches, terms.of_figures(), terms.precision)
            .is_some_and(|extracted| is_precise(&extracted.parameters, &extracted.found, terms.precision))
    }

    fn read(&self, launches: Vec<Data>, terms: &Terms) -> Option<Reading> {
        let launches: Vec<CrowdData> = crowds(&launches).cloned().collect();
        let extracted = extract(&launches, terms.of_figures(), terms.precision)?;
        Some(Reading {
            parameters: extracted.parameters,
            found: Found::Contention(extracted.found),
            doubts: extracted.doubts,
        })
    }
}

fn crowds(launches: &[Data]) -> impl Iterator<Item = &CrowdData> {
    launches.iter().filter_map(|data| match data {
        Data::Contention(data) => Some(data),
        _ => None,
    })
}
