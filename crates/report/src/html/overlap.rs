//! The part of the page about the overlap of computation and messages: the figures of COMB (Brightwell et al.
//! 2003), with all layers in every chart.

mod charts;
mod tables;

use super::parts::pretty;
use crate::notes::Notes;
use maud::{Markup, html};
use netdyno_measure::overlap::record::{Overlap, SizeOverlap};
use netdyno_measure::record::{LayerResult, Record};
use netdyno_measure::show::{Size, counted};

/// The result of `overlap` for a layer of a record.
pub struct Subject<'a> {
    /// The index of its record.
    record_at: usize,
    /// The index of its result in that record.
    layer_at: usize,
    /// Its record.
    record: &'a Record,
    /// The whole result.
    result: &'a LayerResult,
    /// The record of `overlap`.
    overlap: &'a Overlap,
    /// Its name, with a number if several layers have that name.
    pub label: String,
    /// The class of its colour.
    colour: String,
}

impl Subject<'_> {
    fn at(&self, size_bytes: usize) -> Option<&SizeOverlap> {
        self.overlap.sizes.iter().find(|size| size.size_bytes == size_bytes)
    }
}

/// Returns all results of `overlap` in all records.
pub fn subjects(records: &[Record]) -> Vec<Subject<'_>> {
    let mut subjects: Vec<Subject<'_>> = Vec::new();
    for (record_at, record) in records.iter().enumerate() {
        for (layer_at, result) in record.results.iter().enumerate() {
            let Some(overlap) = result.overlap() else { continue };
            let colour = super::parts::colour(subjects.len());
            let label = result.name();
            subjects.push(Subject { record_at, layer_at, record, result, overlap, label, colour });
        }
    }
    let names: Vec<String> = subjects.iter().map(|subject| subject.label.clone()).collect();
    let labels = super::names::numbered(&names);
    subjects.iter_mut().zip(labels).for_each(|(subject, label)| subject.label = label);
    subjects
}

/// Returns all sizes of all layers, ascending.
fn sizes(subjects: &[Subject<'_>]) -> Vec<usize> {
    let mut sizes: Vec<usize> =
        subjects.iter().flat_map(|subject| &subject.overlap.sizes).map(|size| size.size_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Returns the whole part of the page.
pub fn sections(subjects: &[Subject<'_>], notes: &Notes<'_>) -> Markup {
    html! {
        @if !subjects.is_empty() {
            section {
                h2 #overlap { "Computation behind messages" }
                @for subject in subjects { p.facts { b { (subject.label) } " · " (circumstances(subject)) (tables::letters(subject, notes)) } }
                (tables::findings(subjects))
                div.pair {
                    div { h3 { "Half a round trip" } (charts::half_round_trips(subjects)) }
                    div { h3 { "One-way bandwidth" } (charts::one_way(subjects)) }
                }
            }
            @for size in sizes(subjects) { (of_size(subjects, size)) }
        }
    }
}

fn circumstances(subject: &Subject<'_>) -> String {
    let queue = counted(subject.overlap.queue, "message each way under way", "messages each way under way");
    format!("{} · {queue} while polling", super::circumstances::of_sizes(subject.result))
}

/// Returns every chart about messages of one size.
fn of_size(subjects: &[Subject<'_>], size_bytes: usize) -> Markup {
    let has =
        |is: fn(&SizeOverlap) -> bool| subjects.iter().filter_map(|subject| subject.at(size_bytes)).any(is);
    html! {
        section {
            h2 { "Messages of " (Size(size_bytes)) }
            ul.findings {
                @for subject in subjects {
                    @if let Some(size) = subject.at(size_bytes) { li { b { (subject.label) } ": " (pretty(&size.finding.text)) "." } }
                }
            }
            @if has(|size| !size.polling.is_empty()) {
                div.pair {
                    div { h3 { "Polling: bandwidth" } (charts::polling_bandwidth(subjects, size_bytes)) }
                    div { h3 { "Polling: availability" } (charts::polling_availability(subjects, size_bytes)) }
                }
            }
            @if has(|size| !size.pww.is_empty()) {
                div.pair {
                    div { h3 { "Post, work, wait: bandwidth" } (charts::pww_bandwidth(subjects, size_bytes)) }
                    div { h3 { "Post, work, wait: availability" } (charts::pww_availability(subjects, size_bytes)) }
                }
                div.pair {
                    div { h3 { "Post, work, wait: stolen time" } (charts::stolen(subjects, size_bytes)) }
                    div { h3 { "Post, work, wait: the wait" } (charts::wait(subjects, size_bytes)) }
                }
                (tables::phases(subjects, size_bytes))
            }
        }
    }
}
