//! Signatures of named sizes: the whole grid of burst lengths M and delays D, with transfers of n bytes (Culler
//! et al. 1996, "Bulk-transfer microbenchmark", figures 8 and 9).
//!
//! Each is a LogP signature whose requests store n bytes, or get them. The round trip of a signature has n bytes
//! in one direction only, so that half of it is no one-way time: L cannot be observed.

use super::data::{BulkLaunch, Direction, SignatureLaunch};
use super::record::{Bulk, BulkSignature};
use crate::bench::Bench;
use crate::layer::{LayerError, SizedRequester, Transfer};
use crate::logp::data::{LaunchData, Shape};
use crate::logp::doubts::wanted as wanted_of_signature;
use crate::logp::extract::extract;
use crate::logp::pattern::{self, BATCH_MESSAGES, LONGEST_BURST, Plan};
use crate::precision::Wanted;
use crate::record::doubt::Doubt;
use crate::record::parameter::Parameter;
use crate::show::{Bytes, Time};
use crate::stats::Confidence;
use serde::{Deserialize, Serialize};

/// The doubts of a signature that `bulk` states about all of its figures.
const STATED_OF_ALL: [&str; 4] = ["imprecise", "too_few_launches", "clock_is_coarse", "preempted"];

/// Number of transfers of a signature in a launch without time, about: those of single trips, of the pilot stream, and of
/// one pass over the shortest bursts.
const TRANSFERS_AT_LEAST: f64 = 300.0;
/// Size from which on transfers take so long that their number matters, in bytes.
const LONG_FROM: usize = 1 << 20;
/// Number of round trips that tell the time of a transfer.
const TRIPS: usize = 3;

/// The plan of the signature of one size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SignaturePlan {
    /// Bytes of a transfer.
    pub size_bytes: usize,
    /// Bursts and delays, if an earlier launch of the run chose them.
    pub shape: Option<Shape>,
    /// The time of the whole run, in nanoseconds, if it is limited. A first launch that would take longer is refused.
    #[serde(default)]
    pub at_most_ns: Option<f64>,
}

impl SignaturePlan {
    /// Returns the plan in a run of at most `ns`.
    pub fn within(self, ns: f64) -> Self {
        Self { at_most_ns: Some(ns), ..self }
    }

    /// Returns the plans of the sizes, with the bursts and delays of an earlier launch, if there is one.
    pub fn of_sizes(sizes: &[usize], before: Option<&BulkLaunch>) -> Vec<Self> {
        let of_size = |&size_bytes: &usize| {
            let same = |launch: &&SignatureLaunch| launch.size_bytes == size_bytes;
            let earlier = before.and_then(|launch| launch.signatures.iter().find(same));
            let shape = earlier.map(|launch| launch.data.shape.clone());
            Self { size_bytes, shape, at_most_ns: None }
        };
        sizes.iter().map(of_size).collect()
    }
}

/// Returns the way of the bytes of a signature: an operation of its own at every size, if the layer has one.
fn operation(direction: Direction) -> Transfer {
    match direction {
        Direction::Store => Transfer::Store,
        Direction::Get => Transfer::Get,
    }
}

/// Measures the signature of one size in one launch. The message in the other direction has `small` bytes.
pub(super) fn measure<R: SizedRequester>(
    requester: &mut R,
    (direction, small): (Direction, usize),
    of: &SignaturePlan,
    plan: Plan,
    progress: &mut dyn FnMut(f64),
) -> Result<SignatureLaunch, LayerError> {
    let transfer = aim(requester, (direction, small), of.size_bytes)?;
    let data = pattern::run(requester, &plan, progress)?;
    Ok(SignatureLaunch { size_bytes: of.size_bytes, transfer, data })
}

/// Prepares transfers of `size_bytes`. Returns the way of their bytes.
fn aim<R: SizedRequester>(
    requester: &mut R,
    (direction, small): (Direction, usize),
    size_bytes: usize,
) -> Result<Transfer, LayerError> {
    let largest = requester.largest();
    if size_bytes > largest {
        let text = format!(
            "--signature {size_bytes} is more than the {largest} bytes that the layer carries in a message"
        );
        return Err(LayerError(text));
    }
    let transfer = requester.set_transfer(operation(direction));
    let (request, reply) = direction.sizes(size_bytes, small);
    requester.set_sizes(request, reply)?;
    Ok(transfer)
}

/// Checks that the first launch of a signature with large transfers ends in the time of the whole run. Such a launch has
/// a number of transfers however little time it has.
pub(super) fn check_time<R: SizedRequester>(
    requester: &mut R,
    way: (Direction, usize),
    of: &SignaturePlan,
) -> Result<(), LayerError> {
    let Some(at_most_ns) = of.at_most_ns.filter(|_| of.shape.is_none() && of.size_bytes >= LONG_FROM) else {
        return Ok(());
    };
    if requester.is_virtual() {
        return Ok(());
    }
    aim(requester, way, of.size_bytes)?;
    let mut bench = Bench::new(requester, at_most_ns);
    let trips = (0..TRIPS).map(|_| bench.round_trip()).collect::<Result<Vec<_>, _>>()?;
    // Other programs make a trip longer, so that the shortest one says how much time is needed at least.
    let takes_ns = TRANSFERS_AT_LEAST * trips.into_iter().fold(f64::INFINITY, f64::min);
    if takes_ns <= at_most_ns {
        return Ok(());
    }
    Err(LayerError(format!(
        "the signature of {} has {TRANSFERS_AT_LEAST} transfers and more, which take {} here, and --max-time is {}: give \
         more time, or name a smaller size",
        Bytes(of.size_bytes),
        Time(takes_ns),
        Time(at_most_ns)
    )))
}

/// Returns the plan of a signature in a launch of `bulk` with these parameters.
pub(super) fn plan(
    launch: usize,
    shape: Option<Shape>,
    (budget_ns, seed): (f64, u64),
    (precision, confidence): (f64, f64),
) -> Plan {
    Plan {
        launch,
        shape,
        budget_ns,
        precision,
        confidence,
        seed,
        longest_burst: LONGEST_BURST,
        batch_messages: BATCH_MESSAGES,
    }
}

/// Computes the signatures from launches, and the warnings about them. A size that a launch lacks is left out.
pub(super) fn signatures(
    launches: &[BulkLaunch],
    confidence: Confidence,
    precision: f64,
) -> (Vec<BulkSignature>, Vec<Doubt>) {
    let (mut signatures, mut doubts) = (Vec::new(), Vec::new());
    for (at, first) in launches.first().map_or(&[][..], |first| &first.signatures).iter().enumerate() {
        let of = |launch: &BulkLaunch| {
            let same = launch.signatures.get(at).filter(|same| same.size_bytes == first.size_bytes);
            same.map(|same| same.data.clone())
        };
        let data: Option<Vec<LaunchData>> = launches.iter().map(of).collect();
        let Some(reading) = data.and_then(|data| extract(&data, confidence, precision)) else { continue };
        doubts.extend(reading.doubts.into_iter().filter_map(|doubt| about(first.size_bytes, doubt)));
        let (mut parameters, mut signature) = (reading.parameters, reading.found);
        parameters.L = parameters.L.without_value();
        signature.shares = None;
        signature.launches.clear();
        let (size_bytes, transfer) = (first.size_bytes, first.transfer);
        signatures.push(BulkSignature { size_bytes, transfer, parameters, signature });
    }
    (signatures, doubts)
}

/// Returns the doubt about a figure of a signature as one about the signature of that size.
fn about(size_bytes: usize, doubt: Doubt) -> Option<Doubt> {
    let is_elsewhere = STATED_OF_ALL.contains(&&*doubt.name) || doubt.about.as_deref() == Some("L");
    let text = match &doubt.about {
        Some(parameter) if !doubt.text.starts_with(parameter) => format!("{parameter}: {}", doubt.text),
        _ => doubt.text,
    };
    let of = format!("signature of {}", Bytes(size_bytes));
    (!is_elsewhere).then(|| Doubt::about(&doubt.name, &of, text))
}

/// Returns the figures of signatures that must be precise.
pub(super) fn wanted(bulk: &Bulk, precision: f64) -> impl Iterator<Item = Wanted> {
    bulk.signatures.iter().flat_map(move |of| {
        let is_shown = |name: &str| of.figure(name).is_some_and(|p| p.value_ns.is_some());
        let wanted = wanted_of_signature(&of.parameters, &of.signature, precision).into_iter();
        let named = |figure: Wanted| Wanted {
            name: format!("{} in the signature of {}", figure.name, Bytes(of.size_bytes)),
            ..figure
        };
        wanted.filter(move |figure| is_shown(&figure.name)).map(named)
    })
}

impl BulkSignature {
    /// Returns a parameter by name.
    fn figure(&self, name: &str) -> Option<&Parameter> {
        self.parameters.times().into_iter().find(|(own, _)| *own == name).map(|(_, p)| p)
    }
}
