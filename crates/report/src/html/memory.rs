//! The part of the page about remote memory: the accesses as rows and the layers as columns.

use super::grid::{grid, heads, row};
use super::tables::{marks, over_interval};
use crate::memory::{ratio, title};
use crate::notes::Notes;
use crate::onesided::setting_in_words;
use maud::{Markup, html};
use netdyno_measure::memory::record::{Access, RemoteMemory, accesses};
use netdyno_measure::record::Record;
use netdyno_measure::show::{NONE, number_and_interval};

/// The result of `memory` for a layer.
pub type Subject<'a> = super::subject::Subject<'a, RemoteMemory>;

/// Returns a section for each record that has such results: only layers of one run have ratios.
pub fn sections(records: &[Record], subjects: &[Subject<'_>], notes: &Notes<'_>) -> Markup {
    let of = |record: &Record| -> Vec<&Subject<'_>> {
        subjects.iter().filter(|subject| std::ptr::eq(subject.record, record)).collect()
    };
    html! {
        @for layers in records.iter().map(of).filter(|layers| !layers.is_empty()) {
            section {
                h2 { "Remote memory" }
                (comparison(&layers, notes))
                @if layers.len() > 1 {
                    p { "The second line of a cell is the ratio to " (layers[0].label) ", paired by launch." }
                }
                @for subject in &layers {
                    p.facts { (subject.label) ": " (super::circumstances::of_sizes(subject.result)) }
                    @for words in setting_in_words(subject.found) { p { (subject.label) ": " (words) } }
                }
            }
        }
    }
}

fn comparison(layers: &[&Subject<'_>], notes: &Notes<'_>) -> Markup {
    let heads = html! {
        (heads(["access"]))
        @for subject in layers { th scope="col" { (subject.label) (marks(&subject.elsewhere(notes, &[]))) } }
    };
    let rows = html! {
        @for access in accesses(layers.iter().map(|subject| subject.found)) {
            (row(title(access), layers.iter().map(|subject| cell(subject, access))))
        }
    };
    grid(true, &heads, &rows)
}

fn cell(subject: &Subject<'_>, access: Access) -> Markup {
    let ratio = ratio(&subject.record.ratios, &subject.result.name(), access);
    html! {
        @match subject.found.time(access) {
            Some(time) => (over_interval(time)),
            None => span.none { (NONE) },
        }
        @if let Some(ratio) = ratio { " " br; "× " (number_and_interval(ratio.value, ratio.ci)) }
    }
}
