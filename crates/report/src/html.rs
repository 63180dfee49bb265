//! Records as one HTML file, which loads nothing from a network or another file.
//!
//! Every number in a drawing goes through a scale, which rejects values that are not finite. Every text goes
//! through `maud`, which escapes it.

mod bars;
mod breakdown;
mod bulk;
mod chart;
mod circumstances;
mod compare;
mod completion;
mod contention;
mod dots;
mod environment;
mod grid;
mod heading;
mod lean;
mod memory;
mod names;
mod onesided;
mod overlap;
mod paper;
mod parts;
mod plot;
mod registration;
mod scale;
mod signature;
mod strata;
mod strips;
mod subject;
mod summary;
mod sweep;
mod tables;
mod trips;
mod utilisation;
mod validation;

use crate::compare::Comparison;
use crate::logp::LaunchFigures;
use crate::notes::Notes;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use netdyno_measure::record::{Found, Record};
use netdyno_measure::sweep::Sweep;
use subject::{Signature, labels, subjects};

const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/script.js");
/// The page may load nothing.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// Returns the report on `records`.
pub fn render(records: &[Record]) -> String {
    let signatures = subjects(records, "layer", Found::logp);
    let sized = subjects(records, "bulk", Found::bulk);
    let crowds = subjects(records, "contention", Found::contention);
    let validations = subjects(records, "dials", Found::validation);
    let overlaps = subjects(records, "overlap", Found::overlap);
    let completions = subjects(records, "completion", Found::completion);
    let memories = subjects(records, "memory", Found::memory);
    let one_sided = subjects(records, "onesided", Found::onesided);
    let registrations = subjects(records, "registration", Found::registration);
    let utilisations = subjects(records, "utilisation", Found::utilisation);
    let breakdowns = subjects(records, "breakdown", Found::breakdown);
    let notes = Notes::of(records);
    let part = |alone, among, names| heading::Part { alone, among, names };
    let title = paper::title(records).unwrap_or_else(|| {
        heading::title(&[
            part("LogP of", "LogP", labels(&signatures)),
            part("Bulk transfers over", "bulk transfers", labels(&sized)),
            part("Contention over", "contention", labels(&crowds)),
            part("The dials of", "dials", labels(&validations)),
            part("Overlap over", "overlap", labels(&overlaps)),
            part("Polling and blocking over", "polling and blocking", completion::layers(&completions)),
            part("Remote memory over", "remote memory", labels(&memories)),
            part("One-sided operations over", "one-sided operations", labels(&one_sided)),
            part("Registering memory over", "registering memory", labels(&registrations)),
            part("Processor time over", "processor time", labels(&utilisations)),
            part("Steps of messages over", "steps of messages", labels(&breakdowns)),
        ])
    });
    let header = html! {
        h1 { (parts::pretty(&title)) }
        @for line in heading::whereabouts(records) { p.sub { (line) } }
        @for paragraph in summary::summary(&signatures, &notes) { p.lead { (parts::pretty(&paragraph)) } }
        @for paragraph in bulk::summary(&sized) { p.lead { (parts::pretty(&paragraph)) } }
        (contents(&signatures, &sized, !overlaps.is_empty()))
    };
    let main = html! {
        (paper::sections(records, &overlaps))
        @if !signatures.is_empty() { (overview(records, &signatures, &notes)) }
        @if !notes.all().is_empty() && signatures.is_empty() { h3 { "Doubts" } (tables::notes(records, &notes)) }
        @for subject in &signatures { (layer(subject)) }
        @if !sized.is_empty() { (bulk::overview(&sized)) }
        @for subject in &sized { (bulk::layer(subject, &notes)) }
        (contention::sections(&crowds))
        (overlap::sections(&overlaps, &notes))
        (completion::sections(records, &completions, &notes))
        (memory::sections(records, &memories, &notes))
        (onesided::sections(&one_sided, &notes))
        (registration::sections(&registrations, &notes))
        (utilisation::sections(&utilisations, &notes))
        (breakdown::sections(&breakdowns, &notes))
        (validation::sections(&validations, &notes))
        (strata::section(records))
        h2 #environment { "Where and how it was measured" }
        @for record in records { (environment::list(record)) }
    };
    page(&title, &header, &main)
}

/// Returns the page of a sweep.
pub fn of_sweep(sweep: &Sweep) -> String {
    page(sweep::TITLE, &sweep::header(sweep), &sweep::main(sweep))
}

/// Returns the page of a comparison.
pub fn of_comparison(comparison: &Comparison) -> String {
    page(&compare::title(comparison), &compare::header(comparison), &compare::main(comparison))
}

fn page(title: &str, header: &Markup, main: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" href="data:,";
                title { (title) " – netdyno" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (parts::patterns())
                header { (header) }
                main { (main) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn contents(subjects: &[Signature<'_>], sized: &[bulk::Subject<'_>], has_overlap: bool) -> Markup {
    html! {
        @if subjects.len() + sized.len() + usize::from(has_overlap) > 1 {
            nav aria-label="Contents" {
                @if !subjects.is_empty() { a href="#parameters" { "Parameters" } }
                @for subject in subjects { a href={ "#" (subject.id) } { (subject.label) } }
                @if !sized.is_empty() { a href="#bulk" { "Messages of every size" } }
                @for subject in sized { a href={ "#" (subject.id) } { (subject.label) } }
                @if has_overlap { a href="#overlap" { "Computation behind messages" } }
                a href="#environment" { "Environment" }
            }
        }
    }
}

fn overview(records: &[Record], subjects: &[Signature<'_>], notes: &Notes<'_>) -> Markup {
    html! {
        section {
            h2 #parameters { "LogP parameters" }
            (tables::parameters(subjects, notes))
            (lean::table(subjects))
            (tables::ratios(records))
            @if !notes.all().is_empty() { h3 { "Doubts" } (tables::notes(records, notes)) }
            h2 { "Time on the way, and the gap between messages" }
            (bars::figure(subjects))
            (dots::figure(subjects))
        }
    }
}

fn layer(subject: &Signature<'_>) -> Markup {
    let launches: Vec<LaunchFigures> = subject.found.launches.iter().map(LaunchFigures::of).collect();
    html! {
        section {
            div.keep {
                h2 id=(subject.id) { (subject.label) }
                p.facts { (circumstances::of_signature(subject)) }
                h3 { "Signature: time per message over the length of a burst" }
                (signature::figure(&signature::Drawn::of(subject)))
            }
            div.pair {
                div { h3 { "Round trips" } (trips::figure(subject)) }
                div { h3 { "Spread between launches" } (strips::figure(subject, &launches)) }
            }
            div.keep { h3 { "Checks" } (tables::checks(subject)) }
            (tables::launches(&launches))
        }
    }
}
