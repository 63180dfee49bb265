//! The versioned record of a measurement: schema `netdyno/1`.
//!
//! Running and reporting are separate: every table, plot and comparison reads records.
//! The JSON schema in `schema/netdyno-1.schema.json` is derived from these types.
//! Fields may be added within a version, never changed or removed.

use crate::bulk::record::Bulk;
use crate::contention::found::Contention;
use crate::logp::data::LaunchData;
use crate::overlap::record::Overlap;
use crate::registration::record::Registration;
use crate::stats::Interval;
use crate::strata::{Probe, Stratum};
use crate::validation::record::Validation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// The schema that this version writes and reads.
pub const SCHEMA: &str = "netdyno/1";

/// One run of the command, with everything that was measured in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Always `netdyno/1`.
    pub schema: String,
    /// Version of the command that measured.
    pub version: String,
    /// When measuring began, RFC 3339, UTC.
    pub began: String,
    /// The command line that measured, word by word. Empty in records of earlier versions.
    #[serde(default)]
    pub command_line: Vec<String>,
    /// What was asked for.
    pub options: Options,
    /// Where it ran.
    pub environment: Environment,
    /// The other host, where the replier ran on one.
    #[serde(default)]
    pub peer_environment: Option<Environment>,
    /// One entry per layer.
    pub results: Vec<LayerResult>,
    /// Ratios between layers whose launches were interleaved, paired by launch.
    #[serde(default)]
    pub ratios: Vec<Ratio>,
    /// Number of the signal that ended the run early; null where it ended by itself.
    #[serde(default)]
    pub interrupted: Option<i32>,
    /// Doubts about the run as a whole.
    #[serde(default)]
    pub doubts: Vec<Doubt>,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Options {
    /// Half-width of an interval at which measuring stops: a share of the value, or, for
    /// o_s, o_r and L, of the one-way time that they are parts of.
    pub precision: f64,
    /// Confidence of every interval.
    pub confidence: f64,
    /// Time for each layer at most, after which no launch is begun.
    pub max_time_s: f64,
    /// Fresh process pairs at least.
    pub launches: usize,
    /// Seed of everything random.
    pub seed: u64,
}

/// Where a run took place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Name of the host.
    pub host: String,
    /// Operating system and kernel release.
    pub kernel: String,
    /// Processor model.
    pub cpu_model: String,
    /// Processors this process may use.
    pub cpus_allowed: Vec<usize>,
    /// Whether a hypervisor is underneath.
    pub virtualised: bool,
    /// Frequency governor of the first processor used, where one can be read.
    pub governor: Option<String>,
    /// The clock that times.
    pub clock: ClockReading,
    /// Load average over one minute when measuring began.
    pub load_1min: Option<f64>,
    /// What interrupted a processor that did nothing else.
    pub detours: Option<Detours>,
}

/// The clock that times, as calibrated in this run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockReading {
    /// `tsc`, `cntvct` or `clock_gettime`.
    pub source: String,
    /// Length of a tick.
    pub tick_ns: f64,
    /// Cost of one reading (median).
    pub cost_ns: f64,
    /// Smallest difference seen between two readings that differ.
    pub resolution_ns: f64,
    /// Whether the processor says that it counts at one rate and never stops.
    #[serde(default)]
    pub is_constant: Option<bool>,
}

/// Interruptions of a processor that only read its clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Detours {
    /// How long it read.
    pub observed_ns: f64,
    /// Gaps between two readings of more than a microsecond.
    pub count: u64,
    /// Share of the time lost in them.
    pub lost_share: f64,
    /// The longest of them.
    pub longest_ns: f64,
}

/// What was found about one layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LayerResult {
    /// The layer, as spelled on the command line.
    pub layer: String,
    /// What tells it from other results of the same layer, as given to `--label`.
    #[serde(default)]
    pub label: Option<String>,
    /// Bytes of user data in a request, and in a reply.
    pub size_bytes: usize,
    /// How an idle process waits: `spin`, `yield`, `block`; `virtual` for a simulated layer.
    pub wait: String,
    /// Where the processes ran, by rank. Empty where they were not pinned or there are none.
    #[serde(default)]
    pub cpus: Vec<usize>,
    /// How far those processors are apart.
    pub distance: Option<String>,
    /// Which library of which version is behind the layer, where one is.
    #[serde(default)]
    pub library: Option<String>,
    /// What started its processes, where netdyno did not.
    #[serde(default)]
    pub launcher: Option<String>,
    /// What went wrong with datagrams on purpose, as given to `--faults`.
    #[serde(default)]
    pub faults: Option<String>,
    /// What the link was made to be like on purpose, as given to `--dials`.
    #[serde(default)]
    pub dials: Option<String>,
    /// How the link changed with time on purpose, as `--profile` reads it.
    #[serde(default)]
    pub profile: Option<String>,
    /// The parameters, of the launches of the headline where there are several strata.
    pub parameters: Parameters,
    /// The launches by what they found of their processors, from near to far. Empty where no two
    /// processors of one host were probed.
    #[serde(default)]
    pub strata: Vec<Stratum>,
    /// What each launch found of its processors.
    #[serde(default)]
    pub probes: Vec<Probe>,
    /// The measuring verb, and what it found beside the parameters.
    #[serde(flatten)]
    pub found: Found,
    /// Doubts about this layer's figures.
    #[serde(default)]
    pub doubts: Vec<Doubt>,
}

/// What a verb finds beside the parameters, with the data behind all of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "verb", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "one for each layer of a run")]
pub enum Found {
    /// By the LogP signature.
    Logp(Logp),
    /// By messages of every size.
    Bulk(Bulk),
    /// What contention does to a layer, beside the parameters of one pair alone.
    Contention(Contention),
    /// By computation behind messages.
    Overlap(Overlap),
    /// By having the layer know memory of every size.
    Registration(Registration),
    /// By turning the dials of a link and looking what becomes of its parameters.
    Validate(Validation),
}

/// What the LogP signature finds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Logp {
    /// What set the plateau of the signature, and so what `g` is worth.
    pub plateau: Plateau,
    /// Figures that check the parameters or stand beside them.
    pub checks: Checks,
    /// Where the round trip goes; null where that is not known, or not in a record of its version.
    #[serde(default)]
    pub shares: Option<Shares>,
    /// The data behind all of it.
    pub launches: Vec<LaunchData>,
}

/// Where the round trip 2 (o_s + L + o_r) goes: the parameters as shares of half of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(non_snake_case, reason = "the names of the field")]
pub struct Shares {
    /// Issuing.
    pub o_s: Share,
    /// Receiving.
    pub o_r: Share,
    /// On the way.
    pub L: Share,
}

impl Shares {
    /// All of them, by name.
    pub fn all(&self) -> [(&'static str, &Share); 3] {
        [("o_s", &self.o_s), ("o_r", &self.o_r), ("L", &self.L)]
    }
}

/// A share of something.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// Median over the launches.
    pub value: f64,
    /// Interval of that median; null with too few launches.
    pub ci: Option<Interval>,
}

impl LayerResult {
    /// What people call it: the layer, with its label where it has one.
    pub fn name(&self) -> String {
        match &self.label {
            Some(label) => format!("{} ({label})", self.layer),
            None => self.layer.clone(),
        }
    }

    /// The verb that measured, as on the command line.
    pub fn verb(&self) -> &'static str {
        match self.found {
            Found::Logp(_) => "logp",
            Found::Bulk(_) => "bulk",
            Found::Contention(_) => "contention",
            Found::Overlap(_) => "overlap",
            Found::Registration(_) => "registration",
            Found::Validate(_) => "validate",
        }
    }

    /// What the signature found, where that was the verb.
    pub fn logp(&self) -> Option<&Logp> {
        match &self.found {
            Found::Logp(logp) => Some(logp),
            _ => None,
        }
    }

    /// What messages of every size found, where that was the verb.
    pub fn bulk(&self) -> Option<&Bulk> {
        match &self.found {
            Found::Bulk(bulk) => Some(bulk),
            _ => None,
        }
    }

    /// What was found about contention, where that was the verb.
    pub fn contention(&self) -> Option<&Contention> {
        match &self.found {
            Found::Contention(contention) => Some(contention),
            _ => None,
        }
    }

    /// What was found about computation behind messages, where that was the verb.
    pub fn overlap(&self) -> Option<&Overlap> {
        match &self.found {
            Found::Overlap(overlap) => Some(overlap),
            _ => None,
        }
    }

    /// What was found about registering memory, where that was the verb.
    pub fn registration(&self) -> Option<&Registration> {
        match &self.found {
            Found::Registration(registration) => Some(registration),
            _ => None,
        }
    }

    /// What was found about dials, where that was the verb.
    pub fn validation(&self) -> Option<&Validation> {
        match &self.found {
            Found::Validate(validation) => Some(validation),
            _ => None,
        }
    }

    /// How many launches are behind the figures.
    pub fn launches(&self) -> usize {
        self.found.launches()
    }

    /// How many launches there were, of whatever stratum.
    pub fn launches_in_all(&self) -> usize {
        match self.strata[..] {
            [] => self.launches(),
            ref strata => strata.iter().map(|stratum| stratum.launches).fold(0, usize::saturating_add),
        }
    }
}

impl Found {
    /// How many launches are behind it.
    pub fn launches(&self) -> usize {
        match self {
            Self::Logp(logp) => logp.launches.len(),
            Self::Bulk(bulk) => bulk.launches.len(),
            Self::Contention(contention) => contention.launches.len(),
            Self::Overlap(overlap) => overlap.launches.len(),
            Self::Registration(registration) => registration.launches.len(),
            Self::Validate(validation) => validation.launches.len(),
        }
    }
}

/// The LogP parameters of a layer (Culler et al. 1996, "LogP model").
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(non_snake_case, reason = "the names of the field")]
pub struct Parameters {
    /// Round trip of one request and its reply: 2 (o_s + L + o_r).
    pub rtt: Parameter,
    /// Processor time to issue a message.
    pub o_s: Parameter,
    /// Processor time to receive a message.
    pub o_r: Parameter,
    /// Processor time of a poll that finds nothing.
    pub o_poll: Parameter,
    /// Least time between messages that the layer sustains.
    pub g: Parameter,
    /// Time on the way that takes no processor: rtt / 2 - o_s - o_r.
    pub L: Parameter,
    /// Gap per byte.
    pub G: PerByte,
}

impl Parameters {
    /// Those of a layer on which none can be seen.
    pub fn unobservable() -> Self {
        let none = Parameter::unobservable;
        let per_byte = PerByte::unobservable();
        Self { rtt: none(), o_s: none(), o_r: none(), o_poll: none(), g: none(), L: none(), G: per_byte }
    }

    /// The parameters in time, by name, in the order in which they are shown.
    pub fn times(&self) -> [(&'static str, &Parameter); 6] {
        [
            ("rtt", &self.rtt),
            ("o_s", &self.o_s),
            ("o_r", &self.o_r),
            ("o_poll", &self.o_poll),
            ("g", &self.g),
            ("L", &self.L),
        ]
    }
}

/// How much a figure claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The figure is the parameter.
    Measured,
    /// The parameter is at most the figure.
    UpperBound,
    /// The parameter cannot be seen on this layer; there is no figure.
    Unobservable,
}

/// A parameter in time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Parameter {
    /// How much the figure claims.
    pub status: Status,
    /// Median over the launches; null where unobservable.
    pub value_ns: Option<f64>,
    /// Interval of that median; null where unobservable or with too few launches.
    pub ci_ns: Option<Interval>,
    /// Quantiles of the samples behind it, by name: min, p01, p05, p25, p50, p75, p95, p99, p99.9, max.
    #[serde(default)]
    pub quantiles_ns: BTreeMap<String, f64>,
    /// Samples behind it.
    pub samples: u64,
    /// Launches behind it.
    pub launches: usize,
}

impl Parameter {
    /// One that cannot be seen.
    pub fn unobservable() -> Self {
        Self {
            status: Status::Unobservable,
            value_ns: None,
            ci_ns: None,
            quantiles_ns: BTreeMap::new(),
            samples: 0,
            launches: 0,
        }
    }
}

/// A parameter in time per byte.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PerByte {
    /// How much the figure claims.
    pub status: Status,
    /// Median over the launches; null where unobservable.
    pub value_ns_per_byte: Option<f64>,
    /// Interval of that median; null where unobservable.
    pub ci_ns_per_byte: Option<Interval>,
    /// Quantiles of the samples behind it.
    #[serde(default)]
    pub quantiles_ns_per_byte: BTreeMap<String, f64>,
    /// Samples behind it.
    pub samples: u64,
    /// Launches behind it.
    pub launches: usize,
}

impl PerByte {
    /// One that cannot be seen.
    pub fn unobservable() -> Self {
        Self {
            status: Status::Unobservable,
            value_ns_per_byte: None,
            ci_ns_per_byte: None,
            quantiles_ns_per_byte: BTreeMap::new(),
            samples: 0,
            launches: 0,
        }
    }
}

/// What set the plateau of the signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The slowest stage of the layer: the plateau is g.
    Gap,
    /// The requester's processor: g is at most the plateau.
    Processor,
    /// The number of requests that may be without a reply: g cannot be seen.
    Window,
    /// Nothing that can be told: no burst was long enough to become steady, or its times
    /// contradict each other. g cannot be seen.
    Unknown,
}

/// The steady state of the signature without delay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plateau {
    /// What set it.
    pub limited_by: Limit,
    /// Time per message.
    pub value_ns: f64,
    /// Its interval.
    pub ci_ns: Option<Interval>,
    /// Requests that were allowed to be without a reply.
    pub window: usize,
    /// Time per message with half of that window; null where the window is 1.
    pub half_window_ns: Option<f64>,
    /// Time per message that the requester's processor is idle: plateau - o_s - o_r; null
    /// where no delay reached beyond it.
    pub idle_ns: Option<f64>,
}

/// Figures that check the parameters or stand beside them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Checks {
    /// The first round trip after a pause.
    pub rtt_after_pause: Parameter,
    /// Length of that pause.
    pub pause_ns: f64,
    /// o_r by the second method: stay away for 1.2 round trips, then time the receive.
    pub o_r_away: Parameter,
    /// Slope of the time per message over the delay D; 1 where the method holds, null where
    /// too few delays reached beyond the idle time.
    pub delay_slope: Option<f64>,
    /// Its interval.
    pub delay_slope_ci: Option<Interval>,
    /// Streams that were not used in the fit, as predicted and as measured.
    pub streams: Vec<StreamCheck>,
}

/// A stream of messages, as predicted from the parameters and as measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamCheck {
    /// Messages.
    pub messages: usize,
    /// Delay between two of them.
    pub d_ns: f64,
    /// From the first issue to the last reply, as predicted.
    pub predicted_ns: f64,
    /// The same as measured (median over the launches).
    pub measured_ns: f64,
    /// Interval of what was measured.
    pub ci_ns: Option<Interval>,
}

/// A ratio of two layers' parameters, paired by launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// Layer above the line.
    pub numerator: String,
    /// Layer below the line.
    pub denominator: String,
    /// What is compared: `rtt`, `o_s`, `o_r`; `g` where both are measured, else `plateau`.
    pub parameter: String,
    /// Median of the ratios of paired launches.
    pub value: f64,
    /// Its interval.
    pub ci: Option<Interval>,
    /// Pairs behind it.
    pub pairs: usize,
    /// Whether the layer below the line is the lean layer on the path that the one above takes.
    #[serde(default)]
    pub to_reference: bool,
}

/// Why a figure should not be taken at its word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Doubt {
    /// A stable name for scripts, such as `processor_bound`.
    pub name: String,
    /// The parameter in doubt, where it is one.
    #[serde(default)]
    pub about: Option<String>,
    /// One sentence for people.
    pub text: String,
}

impl Doubt {
    /// A doubt about the whole result.
    pub fn new(name: &str, text: String) -> Self {
        Self { name: name.into(), about: None, text }
    }

    /// A doubt about one parameter.
    pub fn about(name: &str, parameter: &str, text: String) -> Self {
        Self { name: name.into(), about: Some(parameter.into()), text }
    }
}

/// Why text is not a record that can be read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum RecordError {
    /// It names another schema.
    #[error("it is a record of schema '{0}', and this version reads {SCHEMA}")]
    Schema(String),
    /// It names no schema.
    #[error("it names no schema: not a netdyno record")]
    NoSchema,
    /// It is not the JSON of a record.
    #[error("it is not a whole netdyno record: {0}")]
    Malformed(String),
}

/// The part of a record that says what the rest is.
#[derive(Deserialize)]
pub(crate) struct Preamble {
    pub(crate) schema: Option<String>,
}

impl Record {
    /// The record in JSON text.
    pub fn from_json(text: &str) -> Result<Self, RecordError> {
        let malformed = |error: serde_json::Error| RecordError::Malformed(error.to_string());
        match serde_json::from_str::<Preamble>(text).map_err(malformed)?.schema {
            None => Err(RecordError::NoSchema),
            Some(schema) if schema != SCHEMA => Err(RecordError::Schema(schema)),
            Some(_) => serde_json::from_str(text).map_err(malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_not_a_record_is_told_apart() {
        assert_eq!(Record::from_json("{}"), Err(RecordError::NoSchema));
        assert_eq!(
            Record::from_json(r#"{"schema":"netdyno/9"}"#),
            Err(RecordError::Schema("netdyno/9".into()))
        );
        assert!(matches!(Record::from_json(r#"{"schema":"netdyno/1"}"#), Err(RecordError::Malformed(_))));
        assert!(matches!(Record::from_json(r#"{"schema":"net"#), Err(RecordError::Malformed(_))));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,200}") {
            let _ = Record::from_json(&text);
        }
    }
}
