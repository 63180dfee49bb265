//! Compares two records: for every layer, verb and size in both, the ratio of each parameter in B to that
//! in A, with an interval.
//!
//! Launches of the layers of one record are interleaved. They are paired, and drift of the machine cancels.
//! Launches of two records are unpaired ([`netdyno_measure::unpaired`]), and the ratio contains the drift
//! between the two runs. Such a comparison always has a warning about that. Other warnings name the
//! differences between the two settings.

mod alike;
mod candidates;
mod combine;
pub mod csv;
mod differences;
pub mod table;

use alike::Alike;
use netdyno_measure::record::{Doubt, LayerResult, Record, Status};
use netdyno_measure::show::{NONE, number, percent};
use netdyno_measure::stats::Interval;
use schemars::JsonSchema;
use serde::Serialize;
use thiserror::Error;

/// The schema of the record of a comparison.
pub const SCHEMA: &str = "netdyno-compare/1";

/// One side of a comparison: a record, and the part of it to compare.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// The name for the user: that of the file.
    pub name: &'a str,
    /// The record.
    pub record: &'a Record,
    /// The only layer to compare; `None` for all.
    pub layer: Option<&'a str>,
}

/// The parameters of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Confidence of the intervals of ratios.
    pub confidence: f64,
    /// Growth of a parameter that counts as worse, as a share.
    pub fail_on: Option<f64>,
}

/// The reason why nothing can be compared.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum CompareError {
    /// The record does not contain the layer asked for.
    #[error("{name} has no layer '{layer}': it has {has}")]
    NoLayer {
        /// The record.
        name: String,
        /// The layer asked for.
        layer: String,
        /// The layers of the record.
        has: String,
    },
    /// No layer, verb and size is in both records.
    #[error("nothing to compare: {a} has {in_a}; {b} has {in_b}")]
    NothingInCommon {
        /// The first record.
        a: String,
        /// The results of the first record.
        in_a: String,
        /// The second record.
        b: String,
        /// The results of the second record.
        in_b: String,
    },
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// Always `netdyno-compare/1`.
    pub schema: String,
    /// The record below the line.
    pub a: Source,
    /// The record above the line.
    pub b: Source,
    /// Confidence of the intervals of ratios.
    pub confidence: f64,
    /// Whether both sides are of one record, whose launches were interleaved and are paired.
    pub interleaved: bool,
    /// Growth of a parameter from which it counts as worse, as a share; null where nothing
    /// was to be judged.
    pub fail_on: Option<f64>,
    /// One entry for each layer, verb and size in both.
    pub comparisons: Vec<Pair>,
    /// What only A has.
    pub only_in_a: Vec<String>,
    /// What only B has.
    pub only_in_b: Vec<String>,
    /// Doubts about all of it.
    pub doubts: Vec<Doubt>,
}

/// Where one side comes from.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Source {
    /// Its file.
    pub name: String,
    /// The one layer that was meant; null for all.
    pub layer: Option<String>,
    /// When measuring began, RFC 3339, UTC.
    pub began: String,
    /// Version of the command that measured.
    pub version: String,
    /// Name of the host.
    pub host: String,
}

/// A layer, a verb and a size that both sides have.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Pair {
    /// The measuring verb.
    pub verb: String,
    /// Bytes of user data in a request, and in a reply.
    pub size_bytes: usize,
    /// How A was measured.
    pub a: Setting,
    /// How B was measured.
    pub b: Setting,
    /// The parameters that at least one of the two knows something of.
    pub parameters: Vec<Compared>,
    /// Doubts about these ratios.
    pub doubts: Vec<Doubt>,
}

/// How one of them was measured.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Setting {
    /// The layer.
    pub layer: String,
    /// The user's label for the layer.
    pub label: Option<String>,
    /// How an idle process waits.
    pub wait: String,
    /// Where the two processes ran.
    pub cpus: Vec<usize>,
    /// How far those processors are apart.
    pub distance: Option<String>,
    /// What went wrong with datagrams on purpose.
    pub faults: Option<String>,
    /// What the link was made to be like on purpose.
    pub dials: Option<String>,
    /// How that changed with time.
    pub profile: Option<String>,
    /// Launches.
    pub launches: usize,
    /// How far its processors were apart, where that was probed, as `near, bounce 119 ns`.
    pub stratum: Option<String>,
}

/// A parameter on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Compared {
    /// Its name; beside a g that is not measured in both, `plateau`: the time per message
    /// in the steady state, whatever set it.
    pub parameter: String,
    /// Bytes of user data in a message.
    pub size_bytes: usize,
    /// `ns` or `ns_per_byte`.
    pub unit: String,
    /// In A.
    pub a: SideFigure,
    /// In B.
    pub b: SideFigure,
    /// B / A: the median over the launches paired, or over all pairs of launches; null where
    /// it is not measured in both, or is not positive in every launch.
    pub ratio: Option<f64>,
    /// Its interval; null with too few launches.
    pub ratio_ci: Option<Interval>,
    /// What the interval says of B against A.
    pub change: Change,
    /// What the limit makes of that; null without one.
    pub verdict: Option<Verdict>,
}

/// A parameter on one side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Figure")]
pub struct SideFigure {
    /// How much the figure claims.
    pub status: Status,
    /// Its value; null where unobservable.
    pub value: Option<f64>,
    /// The interval that the record gives, with the record's confidence.
    pub ci: Option<Interval>,
    /// Launches that gave a value.
    pub launches: usize,
}

impl Setting {
    /// Returns the name of the layer, with its label if it has one.
    pub fn name(&self) -> String {
        match &self.label {
            Some(label) => format!("{} ({label})", self.layer),
            None => self.layer.clone(),
        }
    }
}

/// What an interval says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The whole interval is above 1.
    Larger,
    /// The whole interval is below 1.
    Smaller,
    /// The interval holds 1.
    Unclear,
    /// There is no interval.
    Unknown,
}

/// What a limit makes of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval is beyond the limit.
    Fail,
    /// The limit is within the interval, or there is no interval.
    Undecided,
    /// The whole interval is within the limit.
    Pass,
    /// The parameter is not measured in both, or has no ratio.
    NotJudged,
}

impl Comparison {
    /// Returns the parameters with `verdict`, each with its pair.
    pub fn with(&self, verdict: Verdict) -> impl Iterator<Item = (&Pair, &Compared)> {
        let all = self.comparisons.iter().flat_map(|pair| pair.parameters.iter().map(move |p| (pair, p)));
        all.filter(move |(_, compared)| compared.verdict == Some(verdict))
    }
}

impl Compared {
    /// Returns the ratio with its interval, as `1.058 [1.049, 1.066]`.
    pub fn in_words(&self) -> String {
        match (self.ratio, self.ratio_ci) {
            (None, _) => NONE.into(),
            (Some(ratio), None) => in_thousandths(ratio),
            (Some(ratio), Some(ci)) => {
                format!("{} [{}, {}]", in_thousandths(ratio), in_thousandths(ci.lo), in_thousandths(ci.hi))
            }
        }
    }
}

/// Returns a ratio with three decimals near 1, because three digits would hide small differences there.
fn in_thousandths(ratio: f64) -> String {
    if (0.1..10.0).contains(&ratio) { format!("{ratio:.3}") } else { number(ratio) }
}

/// Compares B with A.
///
/// # Errors
/// Returns `NoLayer` if a record lacks the layer asked for, and `NothingInCommon` if the records share no
/// result.
pub fn compare(a: Side<'_>, b: Side<'_>, terms: Terms) -> Result<Comparison, CompareError> {
    // A layer named on one side applies to both sides.
    let (of_a, of_b) = (a.layer.or(b.layer), b.layer.or(a.layer));
    let (in_a, in_b) = (chosen(a, of_a)?, chosen(b, of_b)?);
    let interleaved = a.record == b.record;
    let partners = partners(&in_a, &in_b, of_a != of_b);
    let mut only_in_a = Vec::new();
    let mut comparisons = Vec::new();
    for (one, partner) in in_a.iter().zip(&partners) {
        match partner {
            Some(at) => {
                let alike = Alike::of(one, in_b[*at], interleaved);
                comparisons.push(combine::pair(&alike, interleaved, terms));
            }
            None => only_in_a.push(heading(one)),
        }
    }
    let rest_of_b = (0..in_b.len()).filter(|at| !partners.contains(&Some(*at))).map(|at| in_b[at]);
    if comparisons.is_empty() {
        let held = |results: &[&LayerResult]| listed(results.iter().map(|result| heading(result)));
        return Err(CompareError::NothingInCommon {
            a: a.name.into(),
            in_a: held(&in_a),
            b: b.name.into(),
            in_b: held(&in_b),
        });
    }
    let mut comparison = Comparison {
        schema: SCHEMA.into(),
        a: source(a),
        b: source(b),
        confidence: terms.confidence,
        interleaved,
        fail_on: terms.fail_on,
        comparisons,
        only_in_a,
        only_in_b: rest_of_b.map(heading).collect(),
        doubts: match interleaved {
            true => Vec::from_iter(differences::carried("the run", &a.record.doubts)),
            false => differences::of_runs(a.record, b.record),
        },
    };
    comparison.doubts.extend(unjudged(&comparison));
    Ok(comparison)
}

/// Returns a warning if no parameter was judged: otherwise the limit would appear to be kept.
fn unjudged(comparison: &Comparison) -> Option<Doubt> {
    let limit = comparison.fail_on?;
    let judged = [Verdict::Fail, Verdict::Undecided, Verdict::Pass];
    let none = judged.iter().all(|&verdict| comparison.with(verdict).next().is_none());
    let text = format!("no parameter has a ratio to judge: none was held to the limit of {}", percent(limit));
    none.then(|| Doubt::new("nothing_judged", text))
}

/// Returns the results of one side that are to be compared.
fn chosen<'a>(side: Side<'a>, layer: Option<&str>) -> Result<Vec<&'a LayerResult>, CompareError> {
    let results = &side.record.results;
    let Some(layer) = layer else { return Ok(results.iter().collect()) };
    let chosen: Vec<&LayerResult> = results.iter().filter(|result| result.layer == layer).collect();
    if chosen.is_empty() {
        let has = listed(results.iter().map(|result| result.layer.clone()));
        return Err(CompareError::NoLayer { name: side.name.into(), layer: layer.into(), has });
    }
    Ok(chosen)
}

/// Returns for each result of A the index of its partner in B. The pairs whose settings are most similar come first,
/// so that no result takes the exact partner of another one; of equally similar pairs, the first.
fn partners(in_a: &[&LayerResult], in_b: &[&LayerResult], across_layers: bool) -> Vec<Option<usize>> {
    let likeness = |one: &LayerResult, other: &LayerResult| {
        let is_same = [
            other.label == one.label,
            other.wait == one.wait,
            other.faults == one.faults,
            other.dials == one.dials,
            other.profile == one.profile,
            other.cpus == one.cpus,
        ];
        is_same.iter().filter(|&&same| same).count()
    };
    let comparable = |one: &LayerResult, other: &LayerResult| {
        (across_layers || other.layer == one.layer)
            && (other.verb(), other.size_bytes) == (one.verb(), one.size_bytes)
    };
    let mut pairs: Vec<(usize, usize)> = (0..in_a.len())
        .flat_map(|a| (0..in_b.len()).map(move |b| (a, b)))
        .filter(|&(a, b)| comparable(in_a[a], in_b[b]))
        .collect();
    // The sort keeps the order of equally similar pairs.
    pairs.sort_by_key(|&(a, b)| std::cmp::Reverse(likeness(in_a[a], in_b[b])));
    let mut partners = vec![None; in_a.len()];
    for (a, b) in pairs {
        if partners[a].is_none() && !partners.contains(&Some(b)) {
            partners[a] = Some(b);
        }
    }
    partners
}

fn source(side: Side<'_>) -> Source {
    Source {
        name: side.name.into(),
        layer: side.layer.map(str::to_owned),
        began: side.record.began.clone(),
        version: side.record.version.clone(),
        host: side.record.environment.host.clone(),
    }
}

/// Names a result by layer, verb and size, as `udp logp 32 B`.
fn heading(result: &LayerResult) -> String {
    format!("{} {} {} B", result.name(), result.verb(), result.size_bytes)
}

fn listed(texts: impl Iterator<Item = String>) -> String {
    let texts: Vec<String> = texts.collect();
    if texts.is_empty() { "nothing".into() } else { texts.join(", ") }
}
