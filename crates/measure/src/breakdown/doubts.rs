//! Warnings about the steps of operations, because of the layer, the machine or the run.

use super::anatomy::{Operation, Step, Term};
use super::data::BreakdownLaunch;
use super::record::{Breakdown, OperationCosts};
use crate::machine::{coarse_for_some, preempted};
use crate::precision::{self, Timed, Wanted};
use crate::record::doubt::Doubt;
use crate::record::parameter::Parameters;
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

/// Warns that a run behind an operation or a step takes so little that the cost of the clock matters.
fn coarse(found: &Breakdown) -> Option<Doubt> {
    let figures: Vec<Timed> = wholes(found).into_iter().chain(shortest_probes(found)).collect();
    coarse_for_some(&figures, median_timer(found))
}

fn median_timer(found: &Breakdown) -> f64 {
    median(found.launches.iter().map(|launch| launch.timer_ns))
}

/// Returns the operations as wholes. Those of a run share the readings of the clock.
fn wholes(found: &Breakdown) -> Vec<Timed> {
    let Some(BreakdownLaunch { shape, .. }) = found.launches.first() else { return Vec::new() };
    let counts = shape.counts_by_probe();
    let whole = |(costs, operation): (&OperationCosts, &Operation)| {
        Timed::of(costs.name.clone(), &costs.whole, counts[operation.whole] as f64)
    };
    found.operations.iter().zip(&shape.anatomy.operations).filter_map(whole).collect()
}

/// Returns the shortest probe behind each step.
fn shortest_probes(found: &Breakdown) -> Vec<Timed> {
    let Some(BreakdownLaunch { shape, .. }) = found.launches.first() else { return Vec::new() };
    let counts = shape.counts_by_probe();
    let timed = |name: &str, term: &Term| Timed {
        name: name.into(),
        value_ns: median(found.launches.iter().map(|launch| launch.sum(&[Term { times: 1.0, ..*term }]))),
        ci_ns: None,
        together: counts[term.probe] as f64,
    };
    let run_ns = |probe: &Timed| probe.value_ns * probe.together;
    let shortest = |step: &Step| {
        let probes = step.terms.iter().map(|term| timed(&step.name, term));
        probes.min_by(|one, other| run_ns(one).total_cmp(&run_ns(other)))
    };
    shape.anatomy.operations.iter().flat_map(|operation| &operation.steps).filter_map(shortest).collect()
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
