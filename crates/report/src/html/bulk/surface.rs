//! The signature as a surface (Culler et al. 1996, "Bulk-transfer microbenchmark"), drawn as a map: the
//! time to issue a message over the length of the burst M and the size n.

use super::Subject;
use crate::html::chart::{WIDE, chart, names_along};
use crate::html::parts::{rect, rect_with_tip, round_time, text, time};
use crate::html::scale::{extremes, px};
use maud::{Markup, html};
use netdyno_measure::bulk::data::BulkLaunch;
use netdyno_measure::show::bytes;
use netdyno_measure::stats::median;

const LEFT: f64 = 66.0;
const RIGHT: f64 = 704.0;
const TOP: f64 = 24.0;
const ROW: f64 = 24.0;
/// The opacity of the palest and of the fullest colour.
const OPACITY: (f64, f64) = (0.06, 1.0);
const STEPS_OF_LEGEND: usize = 24;

/// Time per message in bursts of one length and size.
struct Cell {
    size_at: usize,
    m: usize,
    ns: f64,
}

/// Returns the figure with its caption.
pub fn figure(subject: &Subject<'_>) -> Markup {
    let cells = cells(&subject.found.launches);
    let Some((lo, hi)) = extremes(cells.iter().map(|cell| cell.ns)) else {
        return html! { p.none { "This record holds no bursts." } };
    };
    let sizes: Vec<usize> = subject.found.sizes.iter().map(|size| size.size_bytes).collect();
    let longest = cells.iter().map(|cell| cell.m).max().unwrap_or(1);
    let rows = longest.max(1).ilog2() as usize + 1;
    let bottom = TOP + ROW * rows as f64;
    let width = (RIGHT - LEFT) / sizes.len().max(1) as f64;
    // The logarithms are subtracted, because the ratio of two times may overflow.
    let (low, span) = (lo.ln(), hi.ln() - lo.ln());
    let shade = |share: f64| OPACITY.0 + (OPACITY.1 - OPACITY.0) * share;
    let share_of = |ns: f64| if span > 0.0 { (ns.ln() - low) / span } else { 1.0 };
    let columns = sizes.iter().enumerate();
    let columns: Vec<(f64, String)> =
        columns.map(|(at, size)| (LEFT + width * (at as f64 + 0.5), bytes(*size as f64))).collect();
    let drawn = html! {
        @for cell in &cells {
            @let left = LEFT + width * cell.size_at as f64;
            @let floor = bottom - ROW * f64::from(cell.m.max(1).ilog2());
            g style={ "fill-opacity:" (format!("{:.2}", shade(share_of(cell.ns)))) } {
                (rect_with_tip("cell", (left, floor - ROW), (left + width, floor), &tip(subject, &sizes, cell)))
            }
        }
        @for row in 0..rows {
            (text("soft end", LEFT - 8.0, bottom - ROW * (row as f64 + 0.5) + 4.0, &(1u64 << row).to_string()))
        }
        (names_along(bottom + 18.0, &columns))
        (text("soft", 0.0, 12.0, "messages in a burst, M"))
        (text("soft mid", (LEFT + RIGHT) / 2.0, bottom + 38.0, "bytes in a message, n"))
        (legend(|share| (low + share * span).exp(), (TOP, bottom), shade))
    };
    html! {
        figure {
            (chart(WIDE, bottom + 46.0, &format!("Signature surface of {}", subject.label), &drawn))
            figcaption {
                "The deeper the colour, the longer a message takes to issue, on a logarithmic scale. Along a column runs the signature of that size: "
                "sending only below, the steady state above. Where colours deepen to the right although few messages are in a burst, overhead rises with the size."
            }
        }
    }
}

fn cells(launches: &[BulkLaunch]) -> Vec<Cell> {
    let Some(first) = launches.first() else { return Vec::new() };
    let mut cells = Vec::new();
    for (size_at, size) in first.sizes.iter().enumerate() {
        for (at, burst) in size.stream.iter().enumerate().filter(|(_, burst)| burst.m > 0) {
            let each = launches.iter().filter_map(|launch| {
                let other = launch.sizes.get(size_at)?.stream.get(at).filter(|other| other.m == burst.m)?;
                Some((median(other.issue_ns.iter().copied()) - launch.timer_ns) / burst.m as f64)
            });
            let ns = median(each);
            if ns.is_finite() && ns > 0.0 {
                cells.push(Cell { size_at, m: burst.m, ns });
            }
        }
    }
    cells
}

fn tip(subject: &Subject<'_>, sizes: &[usize], cell: &Cell) -> String {
    let n = sizes.get(cell.size_at).map_or(0.0, |size| *size as f64);
    let steady = subject.found.sizes.get(cell.size_at).map(|size| size.plateau.value_ns);
    let beside = steady.map(|ns| format!("\nsteady state: {}", time(ns))).unwrap_or_default();
    format!("M = {}, n = {}\n{} a message{beside}", cell.m, bytes(n), time(cell.ns))
}

/// Returns the legend of the colours from the palest to the fullest, with the times `of` three of them.
fn legend(of: impl Fn(f64) -> f64, (top, bottom): (f64, f64), shade: impl Fn(f64) -> f64) -> Markup {
    let step = (bottom - top) / STEPS_OF_LEGEND as f64;
    let (left, right) = (RIGHT + 24.0, RIGHT + 38.0);
    html! {
        @for nth in 0..STEPS_OF_LEGEND {
            @let share = (nth as f64 + 0.5) / STEPS_OF_LEGEND as f64;
            @let floor = bottom - step * nth as f64;
            g style={ "fill-opacity:" (format!("{:.2}", shade(share))) } {
                (rect("cell", (left, floor - step), (right, floor)))
            }
        }
        @for share in [0.0, 0.5, 1.0] {
            text.soft x=(px(right + 6.0)) y=(px(bottom + (top - bottom) * share + 4.0)) { (round_time(of(share))) }
        }
    }
}
