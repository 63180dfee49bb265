//! The part of the page about the overlap of computation and messages: the figures of COMB (Brightwell et al.
//! 2003), with all layers in every chart.

mod charts;
mod tables;

pub use charts::half_rtt;

use super::parts::pretty;
use super::plot::pairs;
use super::tables::marks;
use crate::notes::Notes;
use maud::{Markup, html};
use netdyno_measure::overlap::record::{Overlap, SizeOverlap};
use netdyno_measure::show::{Size, counted};

/// The result of `overlap` for a layer.
pub type Subject<'a> = super::subject::Subject<'a, Overlap>;

/// Returns what the methods say about messages of one size.
fn at<'a>(subject: &Subject<'a>, size_bytes: usize) -> Option<&'a SizeOverlap> {
    subject.found.sizes.iter().find(|size| size.size_bytes == size_bytes)
}

/// Returns all sizes of all layers, ascending.
fn sizes(subjects: &[Subject<'_>]) -> Vec<usize> {
    let mut sizes: Vec<usize> =
        subjects.iter().flat_map(|subject| &subject.found.sizes).map(|size| size.size_bytes).collect();
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
                @for subject in subjects { p.facts { b { (subject.label) } " · " (circumstances(subject)) (marks(&subject.elsewhere(notes, &[]))) } }
                (tables::findings(subjects))
                (pairs(&charts::alone(subjects)))
            }
            @for size in sizes(subjects) { (of_size(subjects, size)) }
        }
    }
}

fn circumstances(subject: &Subject<'_>) -> String {
    let under_way = |count| counted(count, "message each way under way", "messages each way under way");
    let Overlap { queue, batch, .. } = subject.found;
    let mut text = super::circumstances::of_sizes(subject.result);
    text.push_str(&format!(" · {} while polling", under_way(*queue)));
    if *batch != 1 {
        text.push_str(&format!(" · {} in a cycle of post, work, wait", under_way(*batch)));
    }
    text
}

/// Returns every chart about messages of one size.
fn of_size(subjects: &[Subject<'_>], size_bytes: usize) -> Markup {
    let has =
        |is: fn(&SizeOverlap) -> bool| subjects.iter().filter_map(|subject| at(subject, size_bytes)).any(is);
    html! {
        section {
            h2 { "Messages of " (Size(size_bytes)) }
            ul.findings {
                @for subject in subjects {
                    @if let Some(size) = at(subject, size_bytes) { li { b { (subject.label) } ": " (pretty(&size.finding.text)) "." } }
                }
            }
            @if has(|size| !size.polling.is_empty()) {
                (pairs(&charts::polling(subjects, size_bytes)))
            }
            @if has(|size| !size.pww.is_empty()) {
                (pairs(&charts::pww(subjects, size_bytes)))
                (tables::phases(subjects, size_bytes))
            }
        }
    }
}
