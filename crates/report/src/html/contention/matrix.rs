//! The round trips of all pairs as a matrix: requesters as rows, repliers as columns.

use crate::html::chart::{HALF, chart};
use crate::html::parts::{rect, spoken, text, time};
use crate::html::scale::{extremes, px};
use maud::{Markup, html};
use netdyno_measure::contention::record::Contention;

const LEFT: f64 = 64.0;
/// Leaves room for half a label above the last column.
const RIGHT: f64 = HALF - 8.0;
const TOP: f64 = 40.0;
/// Higher ranks are not drawn.
const RANKS_AT_MOST: usize = 64;
/// Cells have room for a figure up to this number of ranks.
const FIGURES_AT_MOST: usize = 6;
/// The largest number of labelled ranks.
const LABELS_AT_MOST: usize = 16;
/// The darkest cell represents at least this many times the time of the lightest, so that small differences
/// look alike.
const DARKEST_AT_LEAST: f64 = 1.5;
/// The opacity of the lightest and of the darkest cell.
const LIGHTEST: f64 = 0.08;
const DARKEST: f64 = 0.62;

/// Returns the figure with its caption.
pub fn figure(found: &Contention) -> Markup {
    let rows: Vec<&Vec<Option<f64>>> = found.pairs.rtt_ns.iter().take(RANKS_AT_MOST).collect();
    let drawable = |ns: &f64| *ns > 0.0;
    let values = rows.iter().flat_map(|row| row.iter().take(rows.len()).flatten().copied().filter(drawable));
    let Some((least, most)) = extremes(values) else {
        return html! { p.none { "This record holds no round trips of pairs." } };
    };
    let darkest = most.max(DARKEST_AT_LEAST * least);
    let cell = (RIGHT - LEFT) / rows.len() as f64;
    let stride = rows.len().div_ceil(LABELS_AT_MOST);
    let drawn = html! {
        (text("soft mid", (LEFT + RIGHT) / 2.0, 12.0, "replier"))
        (text("soft", 0.0, 12.0, "requester"))
        @for rank in (0..rows.len()).step_by(stride) {
            @let middle = cell * (rank as f64 + 0.5);
            (text("soft mid", LEFT + middle, TOP - 8.0, &rank.to_string()))
            (text("soft end", LEFT - 8.0, TOP + middle + 4.0, &rank.to_string()))
        }
        @for (from, row) in rows.iter().enumerate() {
            @for (to, ns) in row.iter().take(rows.len()).enumerate() {
                @let (x, y) = (LEFT + cell * to as f64, TOP + cell * from as f64);
                @match ns.filter(drawable) {
                    None => (rect("band", (x + 0.5, y + 0.5), (x + cell - 0.5, y + cell - 0.5))),
                    Some(ns) => {
                        (pair((x, y), cell, shade(ns, least, darkest), &tip(from, to, ns)))
                        @if rows.len() <= FIGURES_AT_MOST {
                            (text("mid", x + cell / 2.0, y + cell / 2.0 + 4.0, &time(ns)))
                        }
                    },
                }
            }
        }
    };
    let label = "Round trips of all pairs: requesters as rows, repliers as columns";
    html! {
        figure {
            (chart(HALF, TOP + cell * rows.len() as f64 + 4.0, label, &drawn))
            figcaption {
                "Medians over the launches, from " (time(least)) " to " (time(most)) "; all other processes only wait for requests. "
                "The strongest shade is " (time(darkest)) "."
            }
        }
    }
}

/// Returns the opacity of a cell.
fn shade(ns: f64, least: f64, darkest: f64) -> f64 {
    let share = (ns.ln() - least.ln()) / (darkest.ln() - least.ln());
    LIGHTEST + (DARKEST - LIGHTEST) * if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
}

fn tip(from: usize, to: usize, ns: f64) -> String {
    format!("rank {from} asks rank {to}\n{}", time(ns))
}

fn pair((x, y): (f64, f64), cell: f64, shade: f64, tip: &str) -> Markup {
    html! {
        rect.pt.cell x=(px(x + 0.5)) y=(px(y + 0.5)) width=(px(cell - 1.0)) height=(px(cell - 1.0))
            fill-opacity=(format!("{shade:.2}")) data-series="pairs" data-tip=(tip) role="img" aria-label=(spoken(tip)) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_that_are_nearly_alike_look_alike() {
        let apart = |most: f64| shade(most, 100.0, f64::max(most, 150.0)) - shade(100.0, 100.0, 150.0);
        assert!(apart(101.0) < 0.02);
        assert_eq!(shade(400.0, 100.0, 400.0), DARKEST);
        assert_eq!(shade(100.0, 100.0, 100.0), LIGHTEST);
    }
}
