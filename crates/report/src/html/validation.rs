//! The part of the page about dials: a plot and a table of wanted and observed values for each dial (León et
//! al. 2002, tables 1 to 6), and the cross-talk.

use super::chart::{EndLabel, HALF, chart};
use super::grid::{grid, heads, row};
use super::parts::{colour, line, pretty, round_time, sound, time, with_minus};
use super::plot::{Along, Curve, Plot, Point};
use super::scale::Scale;
use crate::notes::Notes;
use crate::validation::{error, mean, off, slope, title, unit_of, unit_of_programs};
use maud::{Markup, html};
use netdyno_measure::show::{NONE, Percent, Unit};
use netdyno_measure::stats::Interval;
use netdyno_measure::validation::data::NAMES;
use netdyno_measure::validation::record::{CrossTalk, Figure, Program, Row, Table, Validation};

const HEIGHT: f64 = 280.0;

/// The result of `validate` for a layer.
pub type Subject<'a> = super::subject::Subject<'a, Validation>;

/// Returns the whole part of the page.
pub fn sections(subjects: &[Subject<'_>], notes: &Notes<'_>) -> Markup {
    html! {
        @for subject in subjects {
            section {
                h2 { "The dials of " (subject.label) }
                p.facts {
                    (super::circumstances::of_sizes(subject.result))
                    (super::tables::marks(&subject.elsewhere(notes, &[])))
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
                }
                @if !subject.found.programs.is_empty() {
                    h3 { "Plain MPI programs, which know nothing of the dials" }
                    (programs(&subject.found.programs))
                }
            }
        }
    }
}

/// Says how many values were met, and which was the worst.
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
    let cell = |of: &CrossTalk| {
        let slope = with_minus(&slope(of));
        html! { @if of.is_demanded { b { (slope) } } @else { (slope) } }
    };
    let rows = html! {
        @for of_dial in found.cross_talk.chunk_by(|a, b| a.dial == b.dial) {
            (row(of_dial.first().map_or("", |of| &of.dial), of_dial.iter().map(cell)))
        }
    };
    html! {
        (grid(false, &html! { (heads(["dial"])) (heads(NAMES.map(pretty))) }, &rows))
        p.sub { "In brackets what the model itself demands: an overhead raises the gap, and a latency the round trip, and the gap where the window is short." }
    }
}

/// Plots observed values over wanted ones. On the line both are equal.
fn plot(table: &Table) -> Markup {
    let points: Vec<Point> = table
        .rows
        .iter()
        .filter_map(|row| {
            let observed = row.observed_ns?;
            Some(Point {
                x: row.wanted_ns,
                value: observed,
                ci: sound(row.ci_ns),
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
    let plot = Plot::of(&curves, HALF, HEIGHT);
    // Both axes have one scale, so that the line of the wanted values is straight.
    let all = || curves[0].points.iter().map(|p| p.value).chain([lo, hi]);
    let plot = Plot { y: Scale::log(all(), 1.2, plot.bottom(), plot.top()), ..plot };
    let at = |value: f64| Some((plot.x.at(value)?, plot.y.at(value)?));
    let end = at(hi).map(|(_, y)| EndLabel { y, class: "plain", label: "wanted" });
    let drawn = html! {
        (plot.axes(Along::Time("wanted"), "observed", round_time))
        @if let (Some(from), Some(to)) = (at(lo), at(hi)) { (line("axis", from, to)) }
        (plot.draw_beside(&curves, end.into_iter().collect()))
    };
    chart(HALF, HEIGHT, &title(table), &drawn)
}

/// Returns a table with the values of a dial as rows and the parameters as columns. All times have one unit.
fn values(table: &Table) -> Markup {
    let unit = unit_of(table);
    let heads = html! {
        th scope="col" { "wanted, " (unit.name) } (heads(["observed", "error"])) (heads(NAMES.map(pretty)))
    };
    let cell = |of: &Figure| html! { (in_unit(of.value_ns, unit)) @if of.is_steady == Some(false) { b { "\u{202f}!" } } };
    let observed =
        |of: &Row| [in_unit(of.observed_ns, unit), with_minus(&error(of))].map(|text| html! { (text) });
    let none = [html! {}, html! {}].into_iter();
    let rows = html! {
        (row("link", none.chain(table.link.iter().map(cell))))
        @for of in &table.rows {
            (row(unit.number(of.wanted_ns), observed(of).into_iter().chain(of.figures.iter().map(cell))))
        }
    };
    html! { (grid(false, &heads, &rows)) p.sub { "All times in " (unit.name) "; " (mean(table)) "." } }
}

/// Returns a table with operations of plain programs as rows. All times have one unit.
fn programs(programs: &[Program]) -> Markup {
    let unit = unit_of_programs(programs);
    let heads = html! {
        (heads(["dial", "operation", "bytes"]))
        @for name in ["link", "wanted", "observed"] { th scope="col" { (name) ", " (unit.name) } }
        (heads(["error"]))
    };
    let cells = |program: &Program| {
        let [link, wanted, observed] =
            [program.link_ns, Some(program.wanted_ns), program.observed_ns].map(|ns| in_unit(ns, unit));
        let size = program.size_bytes.to_string();
        [program.pattern.clone(), size, link, wanted, observed, with_minus(&off(program))]
    };
    let name = |program: &Program| format!("{} {}", program.dial, program.setting);
    grid(false, &heads, &html! { @for program in programs { (row(name(program), cells(program))) } })
}

fn in_unit(ns: Option<f64>, unit: Unit) -> String {
    ns.map_or(NONE.to_owned(), |ns| with_minus(&unit.number(ns)))
}
