//! A platform for SMPI, SimGrid's simulated MPI: two hosts, a link, and the overheads.
//!
//! SMPI charges `smpi/os` (blocking sends) or `smpi/ois` (other sends) before a message leaves. It then
//! charges latency times `smpi/lat-factor`, size over bandwidth times `smpi/bw-factor`, and finally
//! `smpi/or`. Each parameter consists of sections; a section begins above the size that it names. SimGrid
//! adds an envelope of 16 bytes to a message on the way, which this export subtracts. A message of a
//! measured size therefore takes the measured time, and a message of a size between two measured ones the
//! interpolated time. (SimGrid documentation, "Configuring SimGrid"; the sections' ends and the envelope
//! are as in its code, 3.32 to 4.1.)

use super::Exported;
use super::curve::{Curve, Point};
use std::fmt::Write;

/// Number of bytes that SMPI adds to every message on the way.
const ENVELOPE_BYTES: usize = 16;
/// A rate at which bytes take no time.
const UNLIMITED_BYTES_PER_S: f64 = 1e15;
/// A threshold that no message reaches.
const ALL_MESSAGES: i32 = i32::MAX;

/// A straight line for messages larger than `above_bytes`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Section {
    above_bytes: usize,
    base_ns: f64,
    slope_ns_per_byte: f64,
}

/// Returns the platform in XML.
pub fn render(curve: &Curve) -> Exported {
    let o_s = overhead(&curve.points, |point| point.o_s_ns);
    let o_r = overhead(&curve.points, |point| point.o_r_ns);
    let wire = Wire::of(&curve.points);
    let notes = notes(curve);
    let mut text = String::from(
        "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n",
    );
    for note in std::iter::once(&format!("{}, by netdyno", curve.layer)).chain(&notes) {
        text += &format!("<!-- {} -->\n", in_comment(note));
    }
    text += "<platform version=\"4.1\">\n  <config>\n";
    for (name, value) in [
        ("smpi/os", in_sections(&o_s)),
        ("smpi/ois", in_sections(&o_s)),
        ("smpi/or", in_sections(&o_r)),
        ("smpi/lat-factor", wire.latency_factors()),
        ("smpi/bw-factor", wire.bandwidth_factors()),
        ("smpi/async-small-thresh", ALL_MESSAGES.to_string()),
        ("smpi/send-is-detached-thresh", ALL_MESSAGES.to_string()),
        // Both options model the effects of TCP, which the measured times already contain.
        ("network/TCP-gamma", "0".into()),
        ("network/crosstraffic", "no".into()),
    ] {
        text += &format!("    <prop id=\"{name}\" value=\"{value}\"/>\n");
    }
    text += &format!(
        "  </config>
  <zone id=\"netdyno\" routing=\"Full\">
    <host id=\"requester\" speed=\"1Gf\"/>
    <host id=\"replier\" speed=\"1Gf\"/>
    <link id=\"wire\" bandwidth=\"{:.6e}Bps\" latency=\"{:.6e}s\" sharing_policy=\"SPLITDUPLEX\"/>
    <route src=\"requester\" dst=\"replier\"><link_ctn id=\"wire\" direction=\"UP\"/></route>
  </zone>
</platform>
",
        wire.bytes_per_s,
        1e-9 * wire.latency_ns
    );
    Exported { text, notes }
}

/// Returns an overhead as sections through its figures.
fn overhead(points: &[Point], of: impl Fn(&Point) -> f64) -> Vec<Section> {
    let mut sections = vec![level(0, of(&points[0]))];
    for pair in points.windows(2) {
        let slope = (of(&pair[1]) - of(&pair[0])) / (pair[1].size_bytes - pair[0].size_bytes) as f64;
        sections.push(Section {
            above_bytes: pair[0].size_bytes,
            base_ns: of(&pair[0]) - slope * pair[0].size_bytes as f64,
            slope_ns_per_byte: slope,
        });
    }
    sections.extend(end(&sections, points, of));
    sections
}

fn level(above_bytes: usize, base_ns: f64) -> Section {
    Section { above_bytes, base_ns, slope_ns_per_byte: 0.0 }
}

/// Returns a level section beyond the largest size if the last line falls, because it would reach 0.
/// Otherwise the last line continues.
fn end(sections: &[Section], points: &[Point], of: impl Fn(&Point) -> f64) -> Option<Section> {
    let (last, point) = (sections.last()?, points.last()?);
    (last.slope_ns_per_byte < 0.0).then(|| level(point.size_bytes, of(point)))
}

/// The path between the processors.
struct Wire {
    latency_ns: f64,
    bytes_per_s: f64,
    /// By the size of a message with its envelope.
    sections: Vec<Section>,
}

impl Wire {
    fn of(points: &[Point]) -> Self {
        let ns = |point: &Point| point.wire_ns().max(0.0);
        let mut sections = vec![level(0, ns(&points[0]))];
        sections.extend(points.windows(2).map(|pair| {
            let [from, to] = [pair[0].size_bytes, pair[1].size_bytes].map(|bytes| bytes + ENVELOPE_BYTES);
            let slope = (ns(&pair[1]) - ns(&pair[0])) / (to - from) as f64;
            let base_ns = ns(&pair[0]) - slope * from as f64;
            // A link has neither a negative rate nor a negative latency. The time of the size at the upper
            // end, which was measured, stays the same.
            match (slope <= 0.0, base_ns < 0.0) {
                (true, _) => level(from, ns(&pair[1])),
                (false, true) => {
                    Section { above_bytes: from, base_ns: 0.0, slope_ns_per_byte: ns(&pair[1]) / to as f64 }
                }
                (false, false) => Section { above_bytes: from, base_ns, slope_ns_per_byte: slope },
            }
        }));
        let bases = sections.iter().map(|section| section.base_ns);
        let rates = sections.iter().map(Section::bytes_per_s).filter(|rate| *rate < UNLIMITED_BYTES_PER_S);
        let fastest = rates.fold(0.0, f64::max);
        Self {
            latency_ns: bases.clone().find(|ns| *ns > 0.0).unwrap_or(0.0),
            bytes_per_s: if fastest > 0.0 { fastest } else { UNLIMITED_BYTES_PER_S },
            sections,
        }
    }

    fn latency_factors(&self) -> String {
        let factor = |section: &Section| {
            if self.latency_ns > 0.0 { section.base_ns / self.latency_ns } else { 1.0 }
        };
        self.factors(factor)
    }

    fn bandwidth_factors(&self) -> String {
        self.factors(|section| section.bytes_per_s() / self.bytes_per_s)
    }

    fn factors(&self, factor: impl Fn(&Section) -> f64) -> String {
        let sections: Vec<String> =
            self.sections.iter().map(|s| format!("{}:{:.6e}", s.above_bytes, factor(s))).collect();
        sections.join(";")
    }
}

impl Section {
    fn bytes_per_s(&self) -> f64 {
        if self.slope_ns_per_byte > 0.0 {
            (1e9 / self.slope_ns_per_byte).min(UNLIMITED_BYTES_PER_S)
        } else {
            UNLIMITED_BYTES_PER_S
        }
    }
}

fn in_sections(sections: &[Section]) -> String {
    let mut text = String::new();
    for Section { above_bytes, base_ns, slope_ns_per_byte } in sections {
        let separator = if text.is_empty() { "" } else { ";" };
        let (base_s, slope_s) = (1e-9 * base_ns, 1e-9 * slope_ns_per_byte);
        let _ = write!(text, "{separator}{above_bytes}:{base_s:.6e}:{slope_s:.6e}");
    }
    text
}

fn notes(curve: &Curve) -> Vec<String> {
    let mut notes = curve.notes();
    let (small, large) = curve.ends();
    if curve.points.len() == 1 {
        notes.push(format!(
            "bandwidth is unlimited: G is not measured, and every message costs what one of {} B does",
            small.size_bytes
        ));
    } else {
        notes.push(format!(
            "below {} B everything costs what it does there; above {} B the last lines go on",
            small.size_bytes, large.size_bytes
        ));
    }
    let most = curve.points.iter().min_by(|a, b| a.wire_ns().total_cmp(&b.wire_ns()));
    if let Some(point) = most.filter(|point| point.wire_ns() < 0.0) {
        notes.push(format!(
            "latency 0 where overheads and flight overlap: at {} B L is {:.1} ns, and simulated round trips take \
             {:.1} ns longer than measured",
            point.size_bytes,
            point.wire_ns(),
            -2.0 * point.wire_ns()
        ));
    }
    notes.push("g is not in it: SMPI's rate of messages is limited by smpi/os and by the bandwidth".into());
    notes.push("every message is eager: whether a sender waits for its receiver is not measured".into());
    notes.push("the speed of the hosts is a placeholder".into());
    notes
}

/// Returns `text` for a comment in XML: without control characters, and without two consecutive hyphens.
fn in_comment(text: &str) -> String {
    let mut safe = String::new();
    for c in text.chars() {
        if c == '-' && safe.ends_with('-') {
            safe.push(' ');
        }
        safe.push(if c.is_control() { ' ' } else { c });
    }
    safe
}
