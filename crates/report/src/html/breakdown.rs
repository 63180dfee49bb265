//! The part of the page about the steps of operations: stacked bars, and tables (von Eicken et al. 1994, the tables of
//! section 3).

mod charts;
mod tables;

use super::tables::marks;
use crate::breakdown::{TABLES, of_table};
use crate::notes::Notes;
use maud::{Markup, html};
use netdyno_measure::breakdown::record::Breakdown;

/// The result of `breakdown` for a layer.
pub type Subject<'a> = super::subject::Subject<'a, Breakdown>;

/// Returns the whole part of the page.
pub fn sections(subjects: &[Subject<'_>], notes: &Notes<'_>) -> Markup {
    html! {
        @for subject in subjects {
            @let named: Vec<&str> = subject.found.operations.iter().map(|operation| &operation.name[..]).collect();
            section {
                h2 { "Steps over " (subject.label) }
                p.facts { (super::circumstances::of_sizes(subject.result)) (marks(&subject.elsewhere(notes, &named))) }
                @for table in TABLES {
                    @if of_table(subject.found, table).next().is_some() {
                        div.keep {
                            h3 { (capital(table.title())) }
                            (charts::bars(subject, table))
                            (tables::costs(subject, table, notes))
                        }
                    }
                }
            }
        }
    }
}

/// Returns a title with a capital letter.
fn capital(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
