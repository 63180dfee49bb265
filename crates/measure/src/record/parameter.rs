//! The LogP parameters: medians over launches, each with its interval.

use crate::stats::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The names of the parameters in time, in the order of tables.
pub const TIMES: [&str; 6] = ["rtt", "o_s", "o_r", "o_poll", "g", "L"];

/// The LogP parameters of a layer (Culler et al. 1996, "LogP model").
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(non_snake_case, reason = "the notation of the LogP papers")]
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
    /// Returns the parameters of a layer on which no parameter can be observed.
    pub fn unobservable() -> Self {
        let none = Parameter::unobservable;
        let per_byte = PerByte::unobservable();
        Self { rtt: none(), o_s: none(), o_r: none(), o_poll: none(), g: none(), L: none(), G: per_byte }
    }

    /// Returns the parameters in time by name, in the order of [`TIMES`].
    pub fn times(&self) -> [(&'static str, &Parameter); TIMES.len()] {
        let times = [&self.rtt, &self.o_s, &self.o_r, &self.o_poll, &self.g, &self.L];
        std::array::from_fn(|at| (TIMES[at], times[at]))
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
    /// Number of samples.
    pub samples: u64,
    /// Launches behind it.
    pub launches: usize,
}

impl Parameter {
    /// Returns a parameter that cannot be observed.
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

    /// Returns the parameter without its value, if the samples do not show it.
    pub(crate) fn without_value(self) -> Self {
        Self { samples: self.samples, launches: self.launches, ..Self::unobservable() }
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
    /// Number of samples.
    pub samples: u64,
    /// Launches behind it.
    pub launches: usize,
}

impl PerByte {
    /// Returns a parameter that cannot be observed.
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
