//! The part of the page about processor time: the utilisation of both sides over the size (Speight et al. 1999,
//! figure 6), and the processor time of a message.

mod charts;
mod tables;

use super::plot::pairs;
use super::tables::marks;
use crate::notes::Notes;
use maud::{Markup, html};
use netdyno_measure::utilisation::record::{KINDS, Utilisation};

/// The result of `utilisation` for a layer.
pub type Subject<'a> = super::subject::Subject<'a, Utilisation>;

/// Returns the kinds of windows in words, in the order of [`KINDS`].
fn titles() -> [&'static str; KINDS.len()] {
    ["Round trips", "Stream"]
}

/// Returns the whole part of the page.
pub fn sections(subjects: &[Subject<'_>], notes: &Notes<'_>) -> Markup {
    html! {
        @if !subjects.is_empty() {
            section {
                h2 { "Processor time of messages" }
                @if subjects.iter().any(|subject| subject.found.sizes.len() > 1) {
                    (pairs(&charts::utilisation(subjects)))
                    (pairs(&charts::per_message(subjects)))
                }
            }
        }
        @for subject in subjects {
            section {
                h2 { (subject.label) }
                p.facts { (super::circumstances::of_sizes(subject.result)) (marks(&subject.elsewhere(notes, &[]))) }
                p { (tables::idle(subject)) }
                @for (kind, title) in titles().into_iter().enumerate() {
                    @for (side, name) in ["requester", "replier"].into_iter().enumerate() {
                        div.keep { h3 { (title) ": the " (name) } (tables::side(subject, kind, side)) }
                    }
                    div.keep { h3 { (title) ": the machine" } (tables::machines(subject, kind)) }
                }
            }
        }
    }
}
