//! A figure of a result. The module of each verb yields its figures once; CSV, comparisons and exports are
//! written over them.

use netdyno_measure::record::{Parameter, Parameters, PerByte, Status};
use netdyno_measure::show::{NONE, time};
use netdyno_measure::stats::Interval;
use std::borrow::Cow;

/// A figure of a result over its launches.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The name. Parts are separated by dots, as in `many_to_one.3.ratio`.
    pub name: Cow<'static, str>,
    /// The unit, as in `ns_per_byte`.
    pub unit: &'static str,
    /// Bytes of user data in a message, or of a region of memory.
    pub size_bytes: usize,
    /// The status of the figure.
    pub status: Status,
    /// The value.
    pub value: Option<f64>,
    /// The interval of the value.
    pub ci: Option<Interval>,
    /// Samples behind the value.
    pub samples: u64,
    /// Launches behind the value.
    pub launches: usize,
    /// False if the figure has no row in CSV.
    pub has_row: bool,
    /// The name in comparisons; `None` for a figure that is not compared.
    pub compared_as: Option<Cow<'static, str>>,
}

impl Figure {
    /// Returns the median over `launches`. Without a value it is unobservable.
    pub fn median(
        name: impl Into<Cow<'static, str>>,
        unit: &'static str,
        size_bytes: usize,
        (value, ci): (Option<f64>, Option<Interval>),
        launches: usize,
    ) -> Self {
        Self {
            name: name.into(),
            unit,
            size_bytes,
            status: if value.is_some() { Status::Measured } else { Status::Unobservable },
            value,
            ci,
            samples: launches as u64,
            launches,
            has_row: true,
            compared_as: None,
        }
    }

    /// Returns a parameter in time.
    pub fn time(name: impl Into<Cow<'static, str>>, size_bytes: usize, p: &Parameter) -> Self {
        let median = Self::median(name, "ns", size_bytes, (p.value_ns, p.ci_ns), p.launches);
        Self { status: p.status, samples: p.samples, ..median }
    }

    /// Returns a parameter in time per byte.
    pub fn per_byte(name: &'static str, size_bytes: usize, p: &PerByte) -> Self {
        let value = (p.value_ns_per_byte, p.ci_ns_per_byte);
        let median = Self::median(name, "ns_per_byte", size_bytes, value, p.launches);
        Self { status: p.status, samples: p.samples, ..median }
    }

    /// Returns the figure with a name in comparisons.
    pub fn compared_as(self, name: impl Into<Cow<'static, str>>) -> Self {
        Self { compared_as: Some(name.into()), ..self }
    }

    /// Returns the figure for comparisons alone.
    pub fn without_row(self) -> Self {
        Self { has_row: false, ..self }
    }
}

/// Returns a parameter in words, with `≤` if it is a bound.
pub fn in_words(p: &Parameter) -> String {
    match (p.status, p.value_ns.filter(|ns| ns.is_finite())) {
        (Status::Measured, Some(ns)) => time(ns),
        (Status::UpperBound, Some(ns)) => format!("≤ {}", time(ns)),
        (Status::Unobservable, _) | (_, None) => NONE.into(),
    }
}

/// Returns the parameters in time.
pub fn times(parameters: &Parameters, size_bytes: usize) -> Vec<Figure> {
    let times = parameters.times().into_iter();
    times.map(|(name, p)| Figure::time(name, size_bytes, p).compared_as(name)).collect()
}
