//! The ways to wait of one layer against each other (Speight et al. 1999, figure 5).
//!
//! All values are half round trips of launches that were interleaved, paired by launch.

use super::data::CompletionLaunch;
use super::record::Completion;
use crate::figure::Figure;
use crate::overlap::record::Quantity;
use crate::pairing::are_of_one_stratum;
use crate::record::LayerResult;
use crate::stats::median;

/// The ways to wait that poll, the fastest first.
const POLLING: [&str; 2] = ["spin", "yield"];

/// A way to wait of a layer: its name and its result.
#[derive(Clone, Copy, Debug)]
pub struct Way<'a> {
    /// The name, as on the command line.
    pub name: &'a str,
    result: &'a LayerResult,
    found: &'a Completion,
}

/// Several ways to wait of one layer.
#[derive(Debug)]
pub struct Ways<'a> {
    /// The layer.
    pub layer: &'a str,
    /// The way that the others are compared with: polling, if it was measured.
    pub base: Way<'a>,
    /// The others, in the order of the record.
    pub others: Vec<Way<'a>>,
    confidence: f64,
}

impl<'a> Ways<'a> {
    /// Returns the layers that were measured in several ways, in the order of the record.
    pub fn of(results: &'a [LayerResult], confidence: f64) -> Vec<Self> {
        let mut layers: Vec<&str> = Vec::new();
        for result in results {
            if !layers.contains(&&result.layer[..]) {
                layers.push(&result.layer);
            }
        }
        layers.into_iter().filter_map(|layer| Self::of_layer(layer, results, confidence)).collect()
    }

    fn of_layer(layer: &'a str, results: &'a [LayerResult], confidence: f64) -> Option<Self> {
        let results = results.iter().filter(|result| result.layer == layer);
        let way = |result: &'a LayerResult| {
            // Ways to wait are the labels of a layer that was measured in several.
            let name = result.label.as_deref().unwrap_or(&result.wait);
            Some(Way { name, result, found: result.found.completion()? })
        };
        let mut ways: Vec<Way<'a>> = results.filter_map(way).collect();
        if ways.len() < 2 {
            return None;
        }
        let polling = POLLING.iter().find_map(|name| ways.iter().position(|way| way.name == *name));
        let base = ways.remove(polling.unwrap_or(0));
        Some(Self { layer, base, others: ways, confidence })
    }

    /// Returns the sizes of the way that the others are compared with, ascending.
    pub fn sizes(&self) -> impl Iterator<Item = usize> {
        self.base.found.sizes.iter().map(|size| size.size_bytes)
    }

    /// Returns the half round trip of a way over that of the way that all are compared with, at one size.
    pub fn ratio(&self, of: &Way<'a>, size_bytes: usize) -> Quantity {
        self.quotient(of, &self.base, size_bytes)
    }

    /// Returns the ways with the shortest half round trip at one size: the one with the shortest median, then those
    /// that are not told apart from it, by the interval or because the launches cannot be paired. Returns none if no
    /// way has that size.
    pub fn fastest(&self, size_bytes: usize) -> Vec<&'a str> {
        let all = || [&self.base].into_iter().chain(&self.others);
        let timed = all().filter_map(|way| Some((way, way.half_rtt_ns(size_bytes)?)));
        let Some((first, _)) = timed.min_by(|one, other| one.1.total_cmp(&other.1)) else {
            return Vec::new();
        };
        let is_alike = |way: &&Way<'a>| {
            let ratio = self.quotient(way, first, size_bytes);
            ratio.ci.is_none_or(|ci| ci.lo <= 1.0)
        };
        let has_size = |way: &&Way<'a>| way.half_rtt_ns(size_bytes).is_some();
        let others = all().filter(|way| way.name != first.name).filter(has_size).filter(is_alike);
        [first.name].into_iter().chain(others.map(|way| way.name)).collect()
    }

    /// Returns a ratio of half round trips, as a median over the launches that both ways have. Ways of different strata
    /// have none.
    fn quotient(&self, above: &Way<'a>, below: &Way<'a>, size_bytes: usize) -> Quantity {
        if !are_of_one_stratum(above.result, below.result) {
            return Quantity::default();
        }
        let pair = |launch: &CompletionLaunch| {
            let other = below.found.launches.iter().find(|other| other.launch == launch.launch)?;
            Some(of_launch(launch, size_bytes)? / of_launch(other, size_bytes)?)
        };
        Figure::over(above.found.launches.iter().filter_map(pair), self.confidence).into()
    }
}

impl Way<'_> {
    /// Reports whether the way polls all the time.
    pub fn polls(&self) -> bool {
        POLLING.contains(&self.name)
    }

    fn half_rtt_ns(&self, size_bytes: usize) -> Option<f64> {
        let size = self.found.sizes.iter().find(|size| size.size_bytes == size_bytes)?;
        size.half_rtt.value_ns.filter(|ns| *ns > 0.0)
    }
}

/// Returns the half round trip of a launch at one size, if it is positive.
fn of_launch(launch: &CompletionLaunch, size_bytes: usize) -> Option<f64> {
    let at = launch.shape.sizes.iter().position(|size| size.size_bytes == size_bytes)?;
    let batches = launch.sizes.get(at)?.half_rtt_ns.iter().copied();
    Some(median(batches)).filter(|ns| *ns > 0.0)
}
