//! The part of the page about the ways to wait: latency and bandwidth over the size by each way, the share of the
//! peak, and the ratios of the ways (Speight et al. 1999, figures 2 to 5).

mod charts;
mod tables;

use super::parts::pretty;
use super::plot::pairs;
use crate::completion::peak;
use crate::notes::Notes;
use crate::ways::spin_times;
use maud::{Markup, html};
use netdyno_measure::completion::record::Completion;
use netdyno_measure::completion::ways::Ways;
use netdyno_measure::record::Record;

/// The result of `completion` for a layer, by one way to wait.
pub type Subject<'a> = super::subject::Subject<'a, Completion>;

/// Returns the names of the layers, each once.
pub fn layers(subjects: &[Subject<'_>]) -> Vec<String> {
    let mut layers: Vec<String> = Vec::new();
    for subject in subjects {
        if !layers.contains(&subject.result.layer) {
            layers.push(subject.result.layer.clone());
        }
    }
    layers
}

/// Returns the whole part of the page.
pub fn sections(records: &[Record], subjects: &[Subject<'_>], notes: &Notes<'_>) -> Markup {
    let ways: Vec<Ways<'_>> =
        records.iter().flat_map(|record| Ways::of(&record.results, record.options.confidence)).collect();
    html! {
        @if !subjects.is_empty() {
            section {
                h2 #completion { "Latency and bandwidth by the way to wait" }
                @for chart in [charts::latency(subjects), charts::bandwidth(subjects)] {
                    div.keep { h3 { (chart.heading) } (chart.figure()) }
                }
                (pairs(&charts::against(subjects, &ways)))
                @for times in records.iter().flat_map(|record| &record.spin_times) {
                    p.lead { (pretty(&spin_times(times))) "." }
                    (tables::spin_times(times))
                }
            }
        }
        @for ways in &ways {
            section {
                div.keep {
                    h2 { (ways.layer) ": the ways to wait" }
                    (tables::ways(ways))
                }
            }
        }
        @for subject in subjects {
            section {
                div.keep {
                    h2 id=(subject.id) { (subject.label) }
                    p.facts { (super::circumstances::of_sizes(subject.result)) (tables::letters(subject, notes)) }
                    p.facts { (pretty(&peak(subject.found))) }
                    (tables::sizes(subject, notes))
                }
            }
        }
    }
}
