//! The part of the page about strata: for each result with several strata a table of their launches and
//! figures.

use super::grid::{grid, heads};
use super::parts::{pretty, with_minus};
use crate::strata::figures;
use maud::{Markup, html};
use netdyno_measure::record::{LayerResult, Record};
use netdyno_measure::show::{counted, percent, time};
use netdyno_measure::strata::Stratum;

/// Returns the part of the page. Returns nothing if no result has several strata.
pub fn section(records: &[Record]) -> Markup {
    let results: Vec<&LayerResult> =
        records.iter().flat_map(|record| &record.results).filter(|result| result.is_split()).collect();
    html! {
        @if !results.is_empty() {
            section {
                h2 #strata { "By the distance and the pace of the processors" }
                p {
                    "The host moves virtual processors, and gives the other thread of their core to others. \
                     Launches are told apart by how long a cache line bounces between the two processors \
                     before and after them, and by whether both kept their pace during them, not by what they \
                     measured. All other figures and plots of the page are of the stratum in bold."
                }
                @for result in results { (of_result(result)) }
            }
        }
    }
}

fn of_result(result: &LayerResult) -> Markup {
    let heads = html! {
        (heads(["stratum", "launches", "taken by the host"])) th.text scope="col" { "figures" }
    };
    html! {
        h3 { (result.name()) ", " (result.verb()) }
        (grid(false, &heads, &html! { @for stratum in &result.strata { (row(stratum)) } }))
    }
}

fn row(stratum: &Stratum) -> Markup {
    let range = stratum.bounce_range_ns.map(|range| format!("{} to {}", time(range.lo), time(range.hi)));
    let figures = figures(stratum);
    html! {
        tr {
            th scope="row" {
                @if stratum.is_headline { b { (stratum.in_words()) } } @else { (stratum.in_words()) }
                @if let Some(range) = range { small { " " (range) } }
            }
            td { (counted(stratum.launches, "launch", "launches")) }
            td { @if let Some(share) = stratum.stolen_share { (percent(share)) } }
            td.text { @for figure in figures { (pretty(&with_minus(&figure))) br; } }
        }
    }
}
