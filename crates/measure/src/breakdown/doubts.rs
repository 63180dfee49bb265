//! Warnings about the steps of operations, because of the layer, the machine or the run.

use super::anatomy::Operation;
use super::record::{Breakdown, OperationCosts};
use crate::machine::{coarse_for_some, preempted};
use crate::precision::{self, Wanted};
use crate::record::doubt::Doubt;
use crate::record::parameter::{Parameter, Parameters};
use crate::show::{Percent, Time};
use crate::stats::median;

/// The largest part of an operation that the steps may leave unexplained, or explain twice.
const UNEXPLAINED_AT_MOST: f64 = 0.1;

/// Returns the warnings: a figure has another meaning than its name says, or is not precise.
pub(super) fn find(parameters: &Parameters, found: &Breakdown, precision: f64) -> Vec<Doubt> {
    let launches = &found.launches;
    let mut doubts = Vec::new();
    doubts.extend(found.operations.iter().filter_map(unexplained));
    doubts.extend(found.operations.iter().flat_map(impossible));
    doubts.extend(coarse(found));
    doubts.extend(preempted("process", launches.iter().map(|l| (l.preemptions, l.took_ns))));
    doubts.extend(precision::doubt(&wanted(parameters, found, precision), launches.len(), precision));
    doubts
}

/// Warns that the steps of an operation do not sum to it.
fn unexplained(operation: &OperationCosts) -> Option<Doubt> {
    let share = &operation.unexplained_share;
    let value = share.value.filter(|share| share.abs() > UNEXPLAINED_AT_MOST)?;
    // The steps of an operation are not known if it has none.
    let is_far = share.ci.is_none_or(|ci| ci.lo > UNEXPLAINED_AT_MOST || ci.hi < -UNEXPLAINED_AT_MOST);
    (is_far && !operation.steps.is_empty()).then(|| {
        let of = Time(operation.whole.value_ns.unwrap_or(f64::NAN));
        let text = if value > 0.0 {
            format!("no step explains {} of {of}", Percent(value))
        } else {
            format!(
                "the steps take {} longer by themselves than the {of} of the operation: it overlaps them, or the machine was \
                 disturbed",
                Percent(-value)
            )
        };
        Doubt::about("unexplained", &operation.name, text)
    })
}

/// Warns that an operation takes longer without a step than with it.
fn impossible(operation: &OperationCosts) -> impl Iterator<Item = Doubt> {
    let without = operation.steps.iter().filter(|step| step.cost.value_ns.is_none());
    without.map(|step| {
        let text = format!(
            "without {} it takes longer than with it, so that no cost is given: the machine was disturbed, or the processor \
             hides the step",
            step.name
        );
        Doubt::about("negative_step", &operation.name, text)
    })
}

/// Warns that a run of operations takes so little that the cost of the clock matters.
fn coarse(found: &Breakdown) -> Option<Doubt> {
    let shape = &found.launches.first()?.shape;
    let counts = shape.counts_by_probe();
    let of_run = |(costs, operation): (&OperationCosts, &Operation)| {
        let count = counts.get(operation.whole).copied().unwrap_or(1);
        let ns = costs.whole.value_ns.map(|ns| ns * count as f64);
        (costs.name.clone(), Parameter { value_ns: ns, ..costs.whole.clone() })
    };
    let runs: Vec<(String, Parameter)> =
        found.operations.iter().zip(&shape.anatomy.operations).map(of_run).collect();
    let runs: Vec<(String, &Parameter)> = runs.iter().map(|(name, run)| (name.clone(), run)).collect();
    coarse_for_some(&runs, median_timer(found))
}

fn median_timer(found: &Breakdown) -> f64 {
    median(found.launches.iter().map(|launch| launch.timer_ns))
}

/// Returns the operations as wholes, with their names.
fn wholes(found: &Breakdown) -> Vec<(String, &Parameter)> {
    let known = found.operations.iter().filter(|operation| operation.whole.value_ns.is_some());
    known.map(|operation| (operation.name.clone(), &operation.whole)).collect()
}

/// Returns the operations as wholes, which must be precise to a share of themselves, and their steps, which must be
/// precise to that share of the operation.
pub(crate) fn wanted(_parameters: &Parameters, found: &Breakdown, precision: f64) -> Vec<Wanted> {
    let mut wanted = precision::to_a_share(wholes(found), precision, median_timer(found));
    for operation in &found.operations {
        let Some(whole_ns) = operation.whole.value_ns else { continue };
        let known = operation.steps.iter().filter(|step| step.cost.value_ns.is_some());
        wanted.extend(known.map(|step| Wanted {
            name: format!("{} of {}", step.name, operation.name),
            value: step.cost.value_ns.unwrap_or(f64::NAN),
            ci: step.cost.ci_ns,
            half_width: precision * whole_ns.abs(),
        }));
    }
    wanted
}
