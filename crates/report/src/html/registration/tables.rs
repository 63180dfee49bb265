//! Costs as tables.

use super::Subject;
use crate::html::parts::{figure, shown, sound, with_minus};
use crate::html::tables::marks;
use crate::notes::Notes;
use crate::registration::HEADINGS;
use maud::{Markup, html};
use netdyno_measure::record::Parameter;
use netdyno_measure::show::{Bytes, NONE, time_interval};

/// Returns the letters of the doubts about a layer that concern no single cost.
pub fn letters(subject: &Subject<'_>, notes: &Notes<'_>) -> Markup {
    let names: Vec<&str> = names(subject);
    marks(&notes.elsewhere(subject.record_at, subject.layer_at, &names))
}

/// Returns the names of the columns.
fn names(subject: &Subject<'_>) -> Vec<&'static str> {
    let first = subject.registration.sizes.first();
    first.map_or(Vec::new(), |size| size.times().map(|(name, _)| name).into())
}

/// Returns the table of sizes as rows and costs as columns, with the letters of doubts in the heading.
pub fn sizes(subject: &Subject<'_>, notes: &Notes<'_>) -> Markup {
    let about = |name: &str| marks(&notes.about(subject.record_at, subject.layer_at, Some(name)));
    html! {
        div.scroll {
            table.wide {
                thead {
                    tr {
                        th scope="col" { "region" }
                        @for (heading, name) in HEADINGS.iter().zip(names(subject)) { th scope="col" { (heading) (about(name)) } }
                    }
                }
                tbody {
                    @for size in &subject.registration.sizes {
                        tr {
                            th scope="row" { (Bytes(size.size_bytes)) }
                            @for (_, cost) in size.times() { td { (cell(cost)) } }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the table of the costs that do not depend on the size.
pub fn fixed(subject: &Subject<'_>) -> Markup {
    html! {
        @if !subject.registration.fixed.is_empty() {
            h3 { "Whatever the size" }
            div.scroll {
                table {
                    tbody {
                        @for fixed in &subject.registration.fixed { tr { th scope="row" { (fixed.name) } td { (cell(&fixed.cost)) } } }
                    }
                }
            }
        }
    }
}

fn cell(cost: &Parameter) -> Markup {
    html! {
        @match shown(cost) {
            Some(_) => (figure(cost)),
            None => span.none { (NONE) },
        }
        @if let (Some(ns), Some(ci)) = (shown(cost), sound(cost.ci_ns)) {
            span.ci { (with_minus(&time_interval(ns, ci, 24))) }
        }
    }
}
