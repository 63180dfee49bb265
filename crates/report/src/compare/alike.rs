//! Selects comparable data: of two results the strata with processors equally far apart, and of two results
//! of one record the launches in both.

use super::differences;
use netdyno_measure::record::{Doubt, LayerResult};
use netdyno_measure::strata::Stratum;
use std::collections::BTreeSet;

/// Two results, reduced to their comparable data.
pub struct Alike {
    /// The result of A.
    pub a: LayerResult,
    /// The result of B.
    pub b: LayerResult,
    /// The reason why there is no ratio, if the results are not comparable.
    pub doubt: Option<Doubt>,
}

impl Alike {
    /// Chooses the strata of `a` and `b` that are alike: those of the headlines if these are alike,
    /// otherwise those with the most launches. Compares results without strata as they are.
    pub fn of(a: &LayerResult, b: &LayerResult, interleaved: bool) -> Self {
        let (mut a, mut b, doubt) = match strata(a, b) {
            None => (a.clone(), b.clone(), differences::of_strata(a, b)),
            Some((in_a, in_b)) => {
                let of = |result: &LayerResult, at| result.of_stratum(at).unwrap_or_else(|| result.clone());
                (of(a, in_a), of(b, in_b), None)
            }
        };
        if interleaved {
            keep_pairs(&mut a, &mut b);
        }
        Self { a, b, doubt }
    }
}

/// Returns the indices of the strata of A and of B to compare. Returns `None` if a result has no strata, or
/// no two strata are alike.
fn strata(a: &LayerResult, b: &LayerResult) -> Option<(usize, usize)> {
    let mut best = None;
    for (in_a, of_a) in a.strata.iter().enumerate() {
        for (in_b, of_b) in b.strata.iter().enumerate() {
            let is_usable = |stratum: &Stratum| stratum.parameters.is_some();
            if !of_a.is_like(of_b) || !is_usable(of_a) || !is_usable(of_b) {
                continue;
            }
            let rank = (of_a.is_headline && of_b.is_headline, of_a.launches.min(of_b.launches));
            if best.is_none_or(|(other, _)| rank > other) {
                best = Some((rank, (in_a, in_b)));
            }
        }
    }
    best.map(|(_, pair)| pair)
}

/// Removes launches that only one of two interleaved results has.
fn keep_pairs(a: &mut LayerResult, b: &mut LayerResult) {
    let numbers = |result: &mut LayerResult| {
        let mut numbers = BTreeSet::new();
        result.found.retain_launches(|launch| {
            numbers.insert(launch);
            true
        });
        numbers
    };
    let (in_a, in_b) = (numbers(a), numbers(b));
    if in_a != in_b {
        a.found.retain_launches(|launch| in_b.contains(&launch));
        b.found.retain_launches(|launch| in_a.contains(&launch));
    }
}
