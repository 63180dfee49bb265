//! The parameters of one layer over the message's size.

use super::ExportError;
use netdyno_measure::record::{Found, LayerResult, Parameter, Status};

/// A layer, at one size or at several.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The layer.
    pub layer: String,
    /// Ascending by size; never empty.
    pub points: Vec<Point>,
}

/// A layer at one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Bytes of user data in a message.
    pub size_bytes: usize,
    /// One-way time: half of a round trip.
    pub one_way_ns: f64,
    /// Processor time to send.
    pub o_s_ns: f64,
    /// Processor time to receive.
    pub o_r_ns: f64,
    /// Least time between messages.
    pub g: Gap,
}

/// What is known of the gap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gap {
    /// It is this.
    Measured(f64),
    /// It is at most this: something else set the pace.
    AtMost(f64),
    /// Nothing.
    Unknown,
}

impl Point {
    /// The time on the way that takes no processor. It is what is left of the one-way time,
    /// so that a simulated round trip takes as long as the measured one.
    pub fn wire_ns(&self) -> f64 {
        self.one_way_ns - self.o_s_ns - self.o_r_ns
    }
}

impl Curve {
    /// All that `results` say of their layer, which must be one.
    pub fn of(results: &[&LayerResult]) -> Result<Self, ExportError> {
        let layer = one_layer(results)?;
        let mut points = results.iter().map(|result| point(result)).collect::<Result<Vec<_>, _>>()?;
        points.sort_by_key(|point| point.size_bytes);
        match points.windows(2).find(|pair| pair[0].size_bytes == pair[1].size_bytes) {
            Some(pair) => Err(ExportError::Twice { layer, size_bytes: pair[0].size_bytes }),
            None => Ok(Self { layer, points }),
        }
    }

    /// The smallest and the largest size.
    pub fn ends(&self) -> (&Point, &Point) {
        (&self.points[0], &self.points[self.points.len() - 1])
    }
}

fn one_layer(results: &[&LayerResult]) -> Result<String, ExportError> {
    let mut layers: Vec<&str> = results.iter().map(|result| result.layer.as_str()).collect();
    layers.sort_unstable();
    layers.dedup();
    match layers[..] {
        [] => Err(ExportError::Nothing),
        [layer] => Ok(layer.to_owned()),
        _ => Err(ExportError::SeveralLayers(layers.join(", "))),
    }
}

fn point(result: &LayerResult) -> Result<Point, ExportError> {
    let (layer, size_bytes) = (result.layer.clone(), result.size_bytes);
    let needed = |parameter: &'static str, p: &Parameter| match figure(p) {
        None => Err(ExportError::Missing { parameter, layer: layer.clone(), size_bytes }),
        Some(value_ns) if value_ns < 0.0 => {
            Err(ExportError::Negative { parameter, layer: layer.clone(), size_bytes, value_ns })
        }
        Some(value_ns) => Ok(value_ns),
    };
    let p = &result.parameters;
    Ok(Point {
        size_bytes: result.size_bytes,
        one_way_ns: needed("rtt", &p.rtt)? / 2.0,
        o_s_ns: needed("o_s", &p.o_s)?,
        o_r_ns: needed("o_r", &p.o_r)?,
        g: gap(result),
    })
}

fn figure(p: &Parameter) -> Option<f64> {
    p.value_ns.filter(|ns| ns.is_finite() && p.status != Status::Unobservable)
}

/// The steady state takes max(g, o_s + o_r, rtt / window): where it is not g, g is at most that.
fn gap(result: &LayerResult) -> Gap {
    let plateau_ns = match &result.found {
        Found::Logp(logp) => logp.plateau.value_ns,
    };
    match (result.parameters.g.status, figure(&result.parameters.g)) {
        (Status::Measured, Some(ns)) => Gap::Measured(ns),
        (_, Some(ns)) => Gap::AtMost(ns),
        (_, None) if plateau_ns > 0.0 && plateau_ns.is_finite() => Gap::AtMost(plateau_ns),
        (_, None) => Gap::Unknown,
    }
}
