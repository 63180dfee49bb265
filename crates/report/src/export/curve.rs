//! The parameters of one layer over the message's size.

use super::{ExportError, MOST_BYTES, MOST_NS};
use netdyno_measure::bulk::data::Direction;
use netdyno_measure::bulk::record::SizeFigures;
use netdyno_measure::record::{Found, LayerResult, Parameter, Plateau, Status};

/// The parameters of a layer at one size or at several.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The layer.
    pub layer: String,
    /// The points, ascending by size; never empty.
    pub points: Vec<Point>,
    /// Gap per byte of the largest sizes.
    pub per_byte_ns: Gap,
}

/// The parameters of a layer at one size.
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
    /// True if `o_r_ns` is an upper bound, because a receive had to wait for a part of the message.
    pub o_r_is_bound: bool,
    /// Least time between messages.
    pub g: Gap,
}

/// The knowledge of the gap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gap {
    /// The gap in nanoseconds.
    Measured(f64),
    /// An upper bound of the gap, because something else set the pace.
    AtMost(f64),
    /// No gap is known, or it is negative.
    Unknown,
}

impl Point {
    /// Returns the time on the way that takes no processor, in nanoseconds. It is the remainder of the
    /// one-way time, so that a simulated round trip takes as long as the measured one.
    pub fn wire_ns(&self) -> f64 {
        self.one_way_ns - self.o_s_ns - self.o_r_ns
    }

    /// Returns the overhead of a model that has one for both sides: half of both together.
    pub fn overhead_ns(&self) -> f64 {
        (self.o_s_ns + self.o_r_ns) / 2.0
    }
}

impl Curve {
    /// Collects the points of `results`, which must be of one layer.
    ///
    /// # Errors
    /// Returns `SeveralLayers` or `Nothing` if there is not exactly one layer, and `Twice` if a size occurs
    /// more than once. Returns `Missing`, `Impossible` or `Endless` for a parameter or a size that cannot
    /// be exported.
    pub fn of(results: &[&LayerResult]) -> Result<Self, ExportError> {
        let layer = one_layer(results)?;
        let mut points = Vec::new();
        for result in results {
            points.extend(of_result(result)?);
        }
        if let Some(what) = differing(results) {
            return Err(ExportError::Settings { layer, what });
        }
        points.sort_by_key(|point| point.size_bytes);
        if let Some(pair) = points.windows(2).find(|pair| pair[0].size_bytes == pair[1].size_bytes) {
            return Err(ExportError::Twice { layer, size_bytes: pair[0].size_bytes });
        }
        if points.is_empty() {
            return Err(ExportError::Nothing);
        }
        Ok(Self { layer, points, per_byte_ns: per_byte(results) })
    }

    /// Returns the notes for the readers of any simulator's file.
    pub fn notes(&self) -> Vec<String> {
        let bounds: Vec<usize> =
            self.points.iter().filter(|point| point.o_r_is_bound).map(|point| point.size_bytes).collect();
        let text = |least: &usize| {
            let count = bounds.len();
            format!("o_r is an upper bound at {count} of {} sizes, from {least} B on", self.points.len())
        };
        bounds.first().map(text).into_iter().collect()
    }

    /// Returns the points of the smallest and of the largest size.
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

fn is_between_hosts(result: &LayerResult) -> bool {
    result.distance.as_deref() == Some("two hosts")
}

/// Returns what results must have in common, and have not.
fn differing(results: &[&LayerResult]) -> Option<&'static str> {
    let (first, others) = results.split_first()?;
    type IsSame = fn(&LayerResult, &LayerResult) -> bool;
    let settings: [(&'static str, IsSame); 8] = [
        ("the way to wait", |a, b| a.wait == b.wait),
        ("their labels", |a, b| a.label == b.label),
        ("the hosts of their processes", |a, b| is_between_hosts(a) == is_between_hosts(b)),
        ("the server", |a, b| a.server == b.server),
        ("the library", |a, b| a.library == b.library),
        ("the faults", |a, b| a.faults == b.faults),
        ("the dials", |a, b| a.dials == b.dials),
        ("the profile", |a, b| a.profile == b.profile),
    ];
    let is_other = |is_same: &IsSame| others.iter().any(|other| !is_same(first, other));
    settings.into_iter().find(|(_, is_same)| is_other(is_same)).map(|(what, _)| what)
}

fn of_result(result: &LayerResult) -> Result<Vec<Point>, ExportError> {
    let p = &result.parameters;
    let at_one_size = |plateau: &Plateau| {
        let figures = Figures {
            layer: &result.layer,
            size_bytes: result.size_bytes,
            rtt_share: 0.5,
            times: [("rtt", &p.rtt), ("o_s", &p.o_s), ("o_r", &p.o_r)],
        };
        Ok(vec![figures.point(&p.g, plateau)?])
    };
    match &result.found {
        Found::Logp(logp) => at_one_size(&logp.plateau),
        Found::Contention(found) => at_one_size(&found.plateau),
        Found::Bulk(bulk) if bulk.direction == Direction::Get => {
            Err(ExportError::Gets { layer: result.layer.clone() })
        }
        Found::Bulk(bulk) => bulk.sizes.iter().map(|size| of_size(&result.layer, size)).collect(),
        Found::Completion(_)
        | Found::Memory(_)
        | Found::Onesided(_)
        | Found::Overlap(_)
        | Found::Breakdown(_)
        | Found::Registration(_)
        | Found::Utilisation(_)
        | Found::Validate(_) => Err(ExportError::Missing {
            parameter: "o_s",
            layer: result.layer.clone(),
            size_bytes: result.size_bytes,
        }),
    }
}

fn of_size(layer: &str, size: &SizeFigures) -> Result<Point, ExportError> {
    let figures = Figures {
        layer,
        size_bytes: size.size_bytes,
        rtt_share: 1.0,
        times: [("T", &size.T), ("o_s", &size.o_s), ("o_r", &size.o_r)],
    };
    figures.point(&size.g, &size.plateau)
}

/// The figures that a point needs.
struct Figures<'a> {
    layer: &'a str,
    size_bytes: usize,
    /// The one-way share of the first of the times.
    rtt_share: f64,
    times: [(&'static str, &'a Parameter); 3],
}

impl Figures<'_> {
    fn point(&self, g: &Parameter, plateau: &Plateau) -> Result<Point, ExportError> {
        let [there, o_s, o_r] = self.times;
        if self.size_bytes > MOST_BYTES {
            return Err(ExportError::Endless { layer: self.layer.to_owned(), size_bytes: self.size_bytes });
        }
        Ok(Point {
            size_bytes: self.size_bytes,
            one_way_ns: self.rtt_share * self.needed(there)?,
            o_s_ns: self.needed(o_s)?,
            o_r_ns: self.needed(o_r)?,
            o_r_is_bound: o_r.1.status == Status::UpperBound,
            g: gap(g, plateau),
        })
    }

    fn needed(&self, (parameter, p): (&'static str, &Parameter)) -> Result<f64, ExportError> {
        let (layer, size_bytes) = (self.layer.to_owned(), self.size_bytes);
        match figure(p) {
            None => Err(ExportError::Missing { parameter, layer, size_bytes }),
            Some(value_ns) if (0.0..=MOST_NS).contains(&value_ns) => Ok(value_ns),
            Some(value_ns) => Err(ExportError::Impossible { parameter, layer, size_bytes, value_ns }),
        }
    }
}

fn figure(p: &Parameter) -> Option<f64> {
    p.value_ns.filter(|ns| ns.is_finite() && p.status != Status::Unobservable)
}

/// Returns the knowledge of the gap. The steady state takes max(g, o_s + o_r, rtt / window): if g does not
/// set it, it is an upper bound of g.
fn gap(g: &Parameter, plateau: &Plateau) -> Gap {
    match (g.status, figure(g).filter(|ns| *ns >= 0.0)) {
        (Status::Measured, Some(ns)) => Gap::Measured(ns),
        (_, Some(ns)) => Gap::AtMost(ns),
        (_, None) if plateau.value_ns > 0.0 && plateau.value_ns.is_finite() => Gap::AtMost(plateau.value_ns),
        (_, None) => Gap::Unknown,
    }
}

/// Returns G of the result with the largest size.
fn per_byte(results: &[&LayerResult]) -> Gap {
    let largest = |result: &LayerResult| match &result.found {
        Found::Bulk(bulk) => bulk.sizes.last().map_or(0, |size| size.size_bytes),
        _ => result.size_bytes,
    };
    let Some(result) = results.iter().max_by_key(|result| largest(result)) else { return Gap::Unknown };
    let per_byte = &result.parameters.G;
    match (per_byte.status, per_byte.value_ns_per_byte.filter(|ns| *ns >= 0.0 && ns.is_finite())) {
        (Status::Measured, Some(ns)) => Gap::Measured(ns),
        (Status::UpperBound, Some(ns)) => Gap::AtMost(ns),
        _ => Gap::Unknown,
    }
}
