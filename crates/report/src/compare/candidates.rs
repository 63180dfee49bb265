//! The figures of a result that can be compared, each with its value in every launch.

use super::SideFigure;
use crate::figure::Figure;
use crate::figures::{figures, of_launches};
use crate::logp::PLATEAU;
use netdyno_measure::record::LayerResult;
use std::borrow::Cow;

/// A figure of a result.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Bytes of user data in a message.
    pub size_bytes: usize,
    /// Its unit.
    pub unit: &'static str,
    /// The figure in the record.
    pub figure: SideFigure,
    /// The value in every launch, in their order; `None` for a launch without one.
    pub launches: Vec<Option<f64>>,
}

/// Returns all figures of a result that can be compared, those in time first.
pub fn of(result: &LayerResult) -> Vec<Candidate> {
    let each_launch = of_launches(result);
    let candidate = |of: Figure| {
        let name = of.compared_as?;
        // A single launch may give a bound of g alone. Its plateau stands in.
        let of_launch = Some(if name == "g" { PLATEAU } else { &name });
        let value = |launch: &Vec<Figure>| {
            let is_same =
                |own: &&Figure| (own.compared_as.as_deref(), own.size_bytes) == (of_launch, of.size_bytes);
            launch.iter().find(is_same)?.value.filter(|value| value.is_finite())
        };
        let each = each_launch.iter().map(value).collect();
        let Figure { size_bytes, unit, status, value: median, ci, launches, .. } = of;
        let figure = SideFigure { status, value: median, ci, launches };
        Some(Candidate { name, size_bytes, unit, figure, launches: each })
    };
    let mut candidates: Vec<Candidate> = figures(result).into_iter().filter_map(candidate).collect();
    candidates.sort_by_key(|candidate| candidate.unit != "ns");
    candidates
}
