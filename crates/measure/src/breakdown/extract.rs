//! The figures computed from several launches. A step is a difference of probes of the same launch. Each figure is the
//! median of the values of the launches, with its distribution-free interval. No figure is clamped.

use super::anatomy::{Operation, Step, Term};
use super::data::BreakdownLaunch;
use super::doubts;
use super::pattern::samples;
use super::record::{Breakdown, OperationCosts, StepCost};
use crate::figure::Figure;
use crate::reading::Reading;
use crate::record::parameter::{Parameter, Parameters, Status};
use crate::stats::{Confidence, median};

/// Computes figures and warnings from launches. Returns `None` if the launches measured nothing, or differ in what
/// they measured.
pub fn extract(
    data: &[BreakdownLaunch],
    confidence: impl Into<Confidence>,
    precision: f64,
) -> Option<Reading<Breakdown>> {
    let shape = &data.first().filter(|first| !first.shape.anatomy.operations.is_empty())?.shape;
    // A record is a file that others may have written: its launches may differ, and name probes that are not there.
    let is_sound = shape.anatomy.is_sound() && shape.counts.len() == shape.anatomy.runs.len();
    let is_like =
        |launch: &BreakdownLaunch| launch.shape == *shape && launch.probes_ns.len() == shape.anatomy.probes();
    if !is_sound || !data.iter().all(is_like) {
        return None;
    }
    let launches = BreakdownLaunches { data, confidence: confidence.into() };
    let found = Breakdown {
        operations: shape.anatomy.operations.iter().map(|one| launches.operation(one)).collect(),
        launches: data.to_vec(),
    };
    let parameters = Parameters::unobservable();
    let doubts = doubts::find(&parameters, &found, precision);
    Some(Reading { parameters, found, doubts })
}

/// Several launches of the same shape.
struct BreakdownLaunches<'a> {
    data: &'a [BreakdownLaunch],
    confidence: Confidence,
}

impl BreakdownLaunches<'_> {
    fn operation(&self, operation: &Operation) -> OperationCosts {
        let whole = [Term { probe: operation.whole, times: 1.0 }];
        let explained = operation.steps.iter().flat_map(|step| &step.terms);
        let rest: Vec<Term> = whole.into_iter().chain(explained.map(|term| -*term)).collect();
        let share = |launch: &BreakdownLaunch| launch.sum(&rest) / launch.sum(&whole);
        OperationCosts {
            table: operation.table,
            name: operation.name.clone(),
            whole: self.cost(&whole),
            steps: operation.steps.iter().map(|step| self.step(step)).collect(),
            unexplained: self.cost(&rest),
            unexplained_share: Figure::over(self.data.iter().map(share), self.confidence).into(),
        }
    }

    fn step(&self, step: &Step) -> StepCost {
        StepCost { name: step.name.clone(), cost: judged(self.cost(&step.terms)) }
    }

    /// Returns a sum of probes.
    fn cost(&self, terms: &[Term]) -> Parameter {
        let values: Vec<f64> = self.data.iter().map(|launch| launch.sum(terms)).collect();
        let samples = self.data.iter().map(|launch| launch.samples(terms)).sum();
        let quantiles = values.iter().copied().filter(|value| value.is_finite()).collect::<Vec<_>>();
        Figure::over(values, self.confidence).parameter(quantiles, samples)
    }
}

impl BreakdownLaunch {
    /// Returns the sum of probes of this launch, in nanoseconds; NaN if the launch lacks one. A record is a file that
    /// others may have written: a term may name any probe.
    pub fn sum(&self, terms: &[Term]) -> f64 {
        let batches = |probe: usize| self.probes_ns.get(probe).map_or(&[][..], Vec::as_slice);
        terms.iter().map(|term| term.times * median(batches(term.probe).iter().copied())).sum()
    }

    /// Returns the number of samples of the probe with the fewest.
    fn samples(&self, terms: &[Term]) -> u64 {
        let counts = self.shape.counts_by_probe();
        let of_probe = |probe: usize| {
            Some(samples(*counts.get(probe)?).saturating_mul(self.probes_ns.get(probe)?.len() as u64))
        };
        terms.iter().map(|term| of_probe(term.probe).unwrap_or(0)).min().unwrap_or(0)
    }
}

impl std::ops::Neg for Term {
    type Output = Self;

    fn neg(self) -> Self {
        Self { times: -self.times, ..self }
    }
}

/// Returns the cost of a step with its status. A step takes time. An interval that reaches 0 gives a bound, and one
/// below 0 nothing. Too few launches for an interval tell nothing by a median that is not above 0.
fn judged(mut cost: Parameter) -> Parameter {
    match cost.ci_ns {
        Some(ci) if ci.hi < 0.0 => cost.without_value(),
        Some(ci) if ci.lo < 0.0 => {
            cost.status = Status::UpperBound;
            cost.value_ns = Some(ci.hi);
            cost
        }
        None if cost.value_ns.is_some_and(|ns| ns <= 0.0) => cost.without_value(),
        _ => cost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Interval;

    #[test]
    fn a_step_that_takes_no_time_has_no_cost() {
        let judged = |value: f64, ci: Option<[f64; 2]>| {
            let ci_ns = ci.map(|[lo, hi]| Interval { lo, hi });
            let status = Status::Measured;
            let cost =
                judged(Parameter { status, value_ns: Some(value), ci_ns, ..Parameter::unobservable() });
            (cost.status, cost.value_ns)
        };
        assert_eq!(judged(5.0, Some([2.0, 8.0])), (Status::Measured, Some(5.0)));
        assert_eq!(judged(5.0, Some([-2.0, 8.0])), (Status::UpperBound, Some(8.0)));
        assert_eq!(judged(-5.0, Some([-8.0, -2.0])), (Status::Unobservable, None));
        // Of few launches.
        assert_eq!(judged(5.0, None), (Status::Measured, Some(5.0)));
        assert_eq!(judged(-5.0, None), (Status::Unobservable, None));
    }
}
