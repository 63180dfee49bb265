//! A plot of round trips against loss. Both axes are logarithmic, except for a loss of 0.

use std::fmt::Write;

/// The value at one loss.
pub struct Point {
    pub loss: f64,
    pub us: f64,
    pub interval: [f64; 2],
}

/// The values at all losses.
pub struct Curve {
    pub name: &'static str,
    pub points: Vec<Point>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 70.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 48.0;
/// Colours that differ in print and for colour-blind readers (Okabe and Ito).
const COLOURS: [&str; 4] = ["#000000", "#0072b2", "#d55e00", "#cc79a7"];

/// Returns the plot on a white background.
pub fn svg(curves: &[Curve]) -> String {
    let all = || curves.iter().flat_map(|curve| &curve.points);
    let most = all().map(|point| point.interval[1]).fold(1.0, f64::max);
    let least = all().map(|point| point.interval[0]).fold(most, f64::min);
    let decades = [least.log10().floor(), most.log10().ceil()];
    let y = |us: f64| {
        let share = (us.log10() - decades[0]) / (decades[1] - decades[0]);
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    };
    let count = curves.first().map_or(1, |curve| curve.points.len());
    let x = |at: usize| LEFT + (WIDTH - LEFT - RIGHT) * at as f64 / (count - 1).max(1) as f64;

    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>Round trip of am+udp by loss in each direction</title>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n"
    );
    for decade in decades[0] as i32..=decades[1] as i32 {
        let us = 10f64.powi(decade);
        let at = y(us);
        let end = WIDTH - RIGHT;
        let label = if us < 1e3 { format!("{us} µs") } else { format!("{} ms", us / 1e3) };
        let _ =
            writeln!(out, "<line x1=\"{LEFT}\" x2=\"{end}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>");
        let text = at + 4.0;
        let _ =
            writeln!(out, "<text x=\"{:.1}\" y=\"{text:.1}\" text-anchor=\"end\">{label}</text>", LEFT - 8.0);
    }
    for (at, point) in curves.first().map_or(&[][..], |curve| &curve.points).iter().enumerate() {
        let place = x(at);
        let below = HEIGHT - BOTTOM + 18.0;
        let _ = writeln!(
            out,
            "<text x=\"{place:.1}\" y=\"{below}\" text-anchor=\"middle\">{} %</text>",
            100.0 * point.loss
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">datagrams lost in each direction</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 10.0
    );
    // If curves end close together, their names move apart.
    let mut ends: Vec<(usize, f64)> = curves
        .iter()
        .enumerate()
        .filter_map(|(nth, curve)| Some((nth, y(curve.points.last()?.us))))
        .collect();
    ends.sort_by(|a, b| b.1.total_cmp(&a.1));
    for at in 1..ends.len() {
        ends[at].1 = ends[at].1.min(ends[at - 1].1 - 14.0);
    }
    for (nth, name_at) in ends {
        let (curve, colour) = (&curves[nth], COLOURS[nth % COLOURS.len()]);
        let line: String =
            curve.points.iter().enumerate().map(|(at, p)| format!("{:.1},{:.1} ", x(at), y(p.us))).collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            line.trim_end()
        );
        for (at, p) in curve.points.iter().enumerate() {
            let [lo, hi] = p.interval.map(y);
            let place = x(at);
            let _ = writeln!(
                out,
                "<circle cx=\"{place:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/><line x1=\"{place:.1}\" x2=\"{place:.1}\" y1=\"{lo:.1}\" y2=\"{hi:.1}\" stroke=\"{colour}\"/>",
                y(p.us)
            );
        }
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{}</text>",
            WIDTH - RIGHT + 10.0,
            name_at + 4.0,
            curve.name
        );
    }
    out.push_str("</svg>\n");
    out
}
