//! Costs as tables.

use super::Subject;
use crate::html::grid::{grid, heads, row};
use crate::html::tables::{marks, over_interval};
use crate::notes::Notes;
use crate::registration::HEADINGS;
use maud::{Markup, html};
use netdyno_measure::show::Bytes;

/// Returns the letters of the doubts about a layer that concern no single cost.
pub fn letters(subject: &Subject<'_>, notes: &Notes<'_>) -> Markup {
    let names: Vec<&str> = names(subject);
    marks(&subject.elsewhere(notes, &names))
}

/// Returns the names of the columns.
fn names(subject: &Subject<'_>) -> Vec<&'static str> {
    let first = subject.found.sizes.first();
    first.map_or(Vec::new(), |size| size.times().map(|(name, _)| name).into())
}

/// Returns the table of sizes as rows and costs as columns, with the letters of doubts in the heading.
pub fn sizes(subject: &Subject<'_>, notes: &Notes<'_>) -> Markup {
    let about = |name: &str| marks(&subject.about(notes, name));
    let heads = html! {
        (heads(["region"]))
        @for (heading, name) in HEADINGS.iter().zip(names(subject)) { th scope="col" { (heading) (about(name)) } }
    };
    let rows = html! {
        @for size in &subject.found.sizes {
            (row(Bytes(size.size_bytes).to_string(), size.times().map(|(_, cost)| over_interval(cost))))
        }
    };
    grid(true, &heads, &rows)
}

/// Returns the table of the costs that do not depend on the size.
pub fn fixed(subject: &Subject<'_>) -> Markup {
    html! {
        @if !subject.found.fixed.is_empty() {
            h3 { "Whatever the size" }
            div.scroll {
                table {
                    tbody {
                        @for fixed in &subject.found.fixed { (row(&fixed.name, [over_interval(&fixed.cost)])) }
                    }
                }
            }
        }
    }
}
