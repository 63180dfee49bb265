//! The part of the page that is about dials: what was wanted against what was observed, a plot and
//! a table for each dial (León et al. 2002, tables 1 to 6), and what each does to the others.

use super::parts::{colour, line, pretty, text, time};
use super::plot::{Curve, Plot, Point};
use super::scale::Scale;
use crate::notes::Notes;
use crate::validation::{error, mean, off, slope, title};
use maud::{Markup, html};
use netdyno_measure::record::{LayerResult, Record};
use netdyno_measure::show::Percent;
use netdyno_measure::stats::Interval;
use netdyno_measure::validation::data::NAMES;
use netdyno_measure::validation::record::{Figure, Program, Table, Validation};

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 300.0;

/// What validating found about a layer of a record.
pub struct Subject<'a> {
    record_at: usize,
    layer_at: usize,
    result: &'a LayerResult,
    found: &'a Validation,
}

impl Subject<'_> {
    /// What people call it.
    pub fn label(&self) -> String {
        self.result.name()
    }
}

/// All of them in all records.
pub fn subjects(records: &[Record]) -> Vec<Subject<'_>> {
    let mut subjects = Vec::new();
    for (record_at, record) in records.iter().enumerate() {
        for (layer_at, result) in record.results.iter().enumerate() {
            let found = result.validation();
            subjects.extend(found.map(|found| Subject { record_at, layer_at, result, found }));
        }
    }
    subjects
}

/// The whole part.
pub fn sections(subjects: &[Subject<'_>], notes: &Notes<'_>) -> Markup {
    html! {
        @for subject in subjects {
            section {
                h2 { "The dials of " (subject.label()) }
                p.facts {
                    (super::words::circumstances_of(subject.result))
                    (super::tables::marks(&notes.elsewhere(subject.record_at, subject.layer_at, &[])))
                }
                p { (pretty(&summary(subject.found))) }
                h3 { "What a dial does, for each unit that it is turned by" }
                (cross_talk(subject.found))
                div.pair {
                    @for table in &subject.found.tables {
                        div { h3 { (pretty(&title(table))) } (plot(table)) }
                    }
                }
                @for table in &subject.found.tables {
                    h3 { (pretty(&title(table))) }
                    (values(table))
                    p.sub { (mean(table)) }
                }
                @if !subject.found.programs.is_empty() {
                    h3 { "Plain MPI programs, which know nothing of the dials" }
                    (programs(&subject.found.programs))
                }
            }
        }
    }
}

/// How many values were met, and the worst of them.
fn summary(found: &Validation) -> String {
    let rows = || found.tables.iter().flat_map(|table| &table.rows).filter(|row| row.is_met.is_some());
    let met = rows().filter(|row| row.is_met == Some(true)).count();
    let moved = rows().flat_map(|row| &row.figures).filter(|figure| figure.is_steady.is_some());
    let (steady, all) = moved.fold((0, 0), |(steady, all), figure| {
        (steady + usize::from(figure.is_steady == Some(true)), all + 1)
    });
    let worst = rows().filter_map(|row| Some((row.error_ns? / row.wanted_ns).abs())).fold(0.0, f64::max);
    format!(
        "{met} of {} values were met within 1 % or 150 ns; the largest error is {}. Of {all} parameters \
that a dial is not to touch, {steady} stayed where they were, within 2 % or 100 ns.",
        rows().count(),
        Percent(worst)
    )
}

fn cross_talk(found: &Validation) -> Markup {
    html! {
        table {
            thead { tr { th scope="col" { "dial" } @for name in NAMES { th scope="col" { (pretty(name)) } } } }
            tbody {
                @for of_dial in found.cross_talk.chunk_by(|a, b| a.dial == b.dial) {
                    tr {
                        th scope="row" { (of_dial.first().map_or("", |cell| &cell.dial)) }
                        @for cell in of_dial {
                            td { @if cell.is_demanded { b { (slope(cell)) } } @else { (slope(cell)) } }
                        }
                    }
                }
            }
        }
        p.sub { "In brackets what the model itself demands: an overhead raises the gap, and a latency the round trip, and the gap where the window is short." }
    }
}

/// Wanted against observed; the line is where both are the same.
fn plot(table: &Table) -> Markup {
    let points: Vec<Point> = table
        .rows
        .iter()
        .filter_map(|row| {
            let observed = row.observed_ns?;
            Some(Point {
                x: row.wanted_ns,
                value: observed,
                ci: row.ci_ns.filter(|ci| ci.lo > 0.0),
                is_bound: row.is_met.is_none(),
                tip: format!("wanted {}, observed {} ({})", time(row.wanted_ns), time(observed), error(row)),
            })
        })
        .collect();
    let curves = [Curve { class: colour(0), label: "observed".into(), points }];
    let wanted = table.rows.iter().map(|row| row.wanted_ns);
    let Some(Interval { lo, hi }) = super::scale::extremes(wanted).map(|(lo, hi)| Interval { lo, hi }) else {
        return html! { p.sub { "Nothing was observed." } };
    };
    let plot = Plot::of(&curves, WIDTH, HEIGHT, 90.0);
    // One scale for both: the line of what is wanted is straight.
    let all = || curves[0].points.iter().map(|p| p.value).chain([lo, hi]);
    let plot = Plot { y: Scale::log(all(), 1.2, plot.bottom(), plot.top()), ..plot };
    let at = |value: f64| Some((plot.x.at(value)?, plot.y.at(value)?));
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(title(table)) {
            (plot.axes_over_time("observed", super::parts::round_time, "wanted"))
            @if let (Some(from), Some(to)) = (at(lo), at(hi)) {
                (line("axis", from, to))
                (text("soft", to.0 + 20.0, to.1 + 16.0, "wanted"))
            }
            (plot.draw(&curves))
        }
    }
}

fn values(table: &Table) -> Markup {
    html! {
        table {
            thead {
                tr {
                    @for name in ["wanted", "observed", "error"] { th scope="col" { (name) } }
                    @for name in NAMES { th scope="col" { (pretty(name)) } }
                }
            }
            tbody {
                tr { th scope="row" { "link" } td {} td {} @for figure in &table.link { td { (cell(figure)) } } }
                @for row in &table.rows {
                    tr {
                        th scope="row" { (time(row.wanted_ns)) }
                        td { (row.observed_ns.map_or("–".to_owned(), time)) }
                        td { (error(row)) }
                        @for figure in &row.figures { td { (cell(figure)) } }
                    }
                }
            }
        }
    }
}

fn programs(programs: &[Program]) -> Markup {
    html! {
        table {
            thead {
                tr {
                    @for name in ["dial", "operation", "bytes", "link", "wanted", "observed", "error"] {
                        th scope="col" { (name) }
                    }
                }
            }
            tbody {
                @for program in programs {
                    tr {
                        th scope="row" { (program.dial) " " (program.setting) }
                        td { (program.pattern) }
                        td { (program.size_bytes) }
                        td { (program.link_ns.map_or("–".to_owned(), time)) }
                        td { (time(program.wanted_ns)) }
                        td { (program.observed_ns.map_or("–".to_owned(), time)) }
                        td { (off(program)) }
                    }
                }
            }
        }
    }
}

fn cell(figure: &Figure) -> Markup {
    let value = figure.value_ns.map_or("–".to_owned(), time);
    html! { (value) @if figure.is_steady == Some(false) { b { " !" } } }
}
