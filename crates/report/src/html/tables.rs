//! The tables of the page.

use super::circumstances::in_short;
use super::grid::{grid, heads, row};
use super::parts::{figure, pretty, round_time, shown, sound, time, with_minus};
use super::subject::Signature;
use crate::logp::{LaunchFigures, PLATEAU, in_words};
use crate::notes::{Note, Notes};
use maud::{Markup, html};
use netdyno_measure::record::{
    LayerResult, Limit, Parameter, PerByte, Ratio, Record, Status, StreamCheck, TIMES,
};
use netdyno_measure::show::{self, NONE, number, number_and_interval, time_and_interval};
use netdyno_measure::stats::Interval;

/// Returns a table with layers as rows and parameters as columns.
pub fn parameters(subjects: &[Signature<'_>], notes: &Notes<'_>) -> Markup {
    let has_per_byte = subjects.iter().any(|s| s.result.parameters.G.value_ns_per_byte.is_some());
    let shown_names = [&TIMES[..], if has_per_byte { &["G"] } else { &[] }].concat();
    let heads = html! {
        (heads(["layer"]))
        @for name in TIMES { th scope="col" title=(in_words(name)) { (column_head(name)) } }
        @if has_per_byte { th scope="col" title="gap per byte" { i { "G" } } }
    };
    let rows = html! {
        @for subject in subjects {
            tr {
                th scope="row" {
                    a.name href={ "#" (subject.id) } { (subject.label) }
                    (marks(&subject.elsewhere(notes, &shown_names)))
                    small { (in_short(subject)) }
                }
                @for (name, p) in subject.result.parameters.times() {
                    td { (cell(p)) (marks(&subject.about(notes, name))) (interval(p)) }
                }
                @if has_per_byte { td { (per_byte(&subject.result.parameters.G)) (marks(&subject.about(notes, "G"))) } }
            }
        }
    };
    grid(true, &heads, &rows)
}

fn column_head(name: &str) -> Markup {
    match name {
        "rtt" => html! { "round trip" },
        "g" | "L" => html! { i { (name) } },
        other => pretty(other),
    }
}

/// Returns a figure. The dash in place of a missing one explains itself.
fn cell(p: &Parameter) -> Markup {
    match shown(p) {
        Some(_) => html! { (figure(p)) },
        None => html! { span.none title="cannot be seen on this layer" { (NONE) } },
    }
}

/// Returns the interval of a figure, on a line below it.
pub fn interval(p: &Parameter) -> Markup {
    html! {
        @if let (Some(ns), Some(ci)) = (shown(p), sound(p.ci_ns)) {
            span.ci { (with_minus(&show::time_interval(ns, ci, 24))) }
        }
    }
}

/// Returns a figure over its interval.
pub fn over_interval(p: &Parameter) -> Markup {
    html! {
        @match shown(p) {
            Some(_) => (figure(p)),
            None => span.none { (show::NONE) },
        }
        (interval(p))
    }
}

/// Returns a time per byte with its interval.
pub fn per_byte(p: &PerByte) -> Markup {
    let bound = if p.status == Status::UpperBound { "≤ " } else { "" };
    match p.value_ns_per_byte.filter(|ns| ns.is_finite() && p.status != Status::Unobservable) {
        Some(ns) => {
            html! { (bound) (with_minus(&number(ns))) " ns/B" span.ci { (per_byte_interval(ns, p.ci_ns_per_byte)) } }
        }
        None => html! { span.none { (NONE) } },
    }
}

fn per_byte_interval(value: f64, ci: Option<Interval>) -> String {
    let text = number_and_interval(value, sound(ci));
    text.split_once(' ').map(|(_, bracket)| with_minus(bracket)).unwrap_or_default()
}

/// Returns the letters of doubts as links to them. The letters are raised, and separate from the word before
/// them and from each other, also if the page is read aloud or copied.
pub fn marks(notes: &[&Note<'_>]) -> Markup {
    html! {
        @if !notes.is_empty() {
            "\u{202f}"
            sup.marks {
                @for (nth, note) in notes.iter().enumerate() {
                    @if nth > 0 { ", " }
                    a href={ "#note-" (note.mark()) } { (note.mark()) }
                }
            }
        }
    }
}

/// Returns all doubts with their letters.
pub fn notes(records: &[Record], notes: &Notes<'_>) -> Markup {
    html! {
        ol.notes {
            @for note in notes.all() {
                li id={ "note-" (note.mark()) } { span { (note.mark()) } span { b { (pretty(&concern(note, records))) ": " } (pretty(&note.doubt.text)) } }
            }
        }
    }
}

fn concern(note: &Note<'_>, records: &[Record]) -> String {
    let record = records.get(note.record());
    let layer = note.layer().and_then(|at| record.and_then(|r| r.results.get(at))).map(LayerResult::name);
    let run = if records.len() > 1 { format!(" (record {})", note.record() + 1) } else { String::new() };
    match (layer, note.figure()) {
        (Some(layer), Some(figure)) => format!("{figure} of {layer}{run}"),
        (Some(layer), None) => format!("{layer}{run}"),
        (None, figure) => format!("{}{run}", figure.as_deref().unwrap_or("the whole run")),
    }
}

/// Returns the ratios between layers.
pub fn ratios(records: &[Record]) -> Markup {
    let all: Vec<_> =
        records.iter().flat_map(|record| &record.ratios).filter(|ratio| !ratio.to_reference).collect();
    let cells = |ratio: &Ratio| {
        let ratios = two_lines(&number_and_interval(ratio.value, sound(ratio.ci)));
        html! {
            tr {
                th scope="row" { (ratio.numerator) " / " (ratio.denominator) }
                td.text { (pretty(&ratio.parameter)) } td { (ratios) } td { (ratio.pairs) }
            }
        }
    };
    let heads = html! { (heads(["layers"])) th.text scope="col" { "parameter" } (heads(["ratio", "pairs"])) };
    html! {
        @if !all.is_empty() {
            h3 { "Ratios, paired by launch" }
            (grid(false, &heads, &html! { @for ratio in all { (cells(ratio)) } }))
        }
    }
}

/// A check of a figure: its name, the expected and the found value, their ratio, and its meaning.
struct Check {
    what: String,
    expected: String,
    found: String,
    ratio: Option<f64>,
    means: String,
}

/// Returns the figures that check the parameters.
pub fn checks(subject: &Signature<'_>) -> Markup {
    let ratio =
        |of: &Check| of.ratio.filter(|r| r.is_finite()).map_or(NONE.into(), |r| with_minus(&number(r)));
    let rows = html! {
        @for check in check_rows(subject) {
            tr {
                th scope="row" { (pretty(&check.what)) }
                td { (with_minus(&check.expected)) } td { (with_minus(&check.found)) } td { (ratio(&check)) }
                td.text { (pretty(&check.means)) }
            }
        }
    };
    let heads = html! {
        (heads(["check", "expected", "found", "found / expected"])) th.text scope="col" { "what it says" }
    };
    grid(true, &heads, &rows)
}

fn check_rows(subject: &Signature<'_>) -> Vec<Check> {
    let result = subject.result;
    let (parameters, checks, plateau) = (&result.parameters, &subject.found.checks, &subject.found.plateau);
    let both = |found: &Parameter, expected: &Parameter| Some(shown(found)? / shown(expected)?);
    let mut rows = vec![
        Check {
            what: "o_r, two ways".into(),
            expected: with_interval(&parameters.o_r),
            found: with_interval(&checks.o_r_away),
            ratio: both(&checks.o_r_away, &parameters.o_r),
            means: "from delayed bursts; from one receive after staying away".into(),
        },
        Check {
            what: "slope over the delay D".into(),
            expected: "1".into(),
            found: number_and_interval(checks.delay_slope.unwrap_or(f64::NAN), sound(checks.delay_slope_ci)),
            ratio: checks.delay_slope,
            means: "a nanosecond of delay costs a nanosecond, or o_r is not what was read".into(),
        },
    ];
    rows.extend(checks.streams.iter().map(stream));
    rows.push(half_window(plateau.half_window_ns, plateau.value_ns, plateau.window, plateau.limited_by));
    rows.push(Check {
        what: format!("round trip after {} of rest", round_time(checks.pause_ns)),
        expected: with_interval(&parameters.rtt),
        found: with_interval(&checks.rtt_after_pause),
        ratio: both(&checks.rtt_after_pause, &parameters.rtt),
        means: "what a message costs that comes alone".into(),
    });
    rows
}

fn with_interval(p: &Parameter) -> String {
    shown(p).map_or(NONE.into(), |ns| time_and_interval(ns, sound(p.ci_ns)))
}

fn stream(stream: &StreamCheck) -> Check {
    Check {
        what: format!(
            "stream of {} messages, D = {}",
            stream.messages,
            if stream.d_ns == 0.0 { "0".into() } else { time(stream.d_ns) }
        ),
        expected: time(stream.predicted_ns),
        found: time_and_interval(stream.measured_ns, sound(stream.ci_ns)),
        ratio: Some(stream.measured_ns / stream.predicted_ns),
        means: "predicted from the parameters; not used to find them".into(),
    }
}

fn half_window(half_ns: Option<f64>, whole_ns: f64, window: usize, limit: Limit) -> Check {
    let means = match limit {
        Limit::Window => "2 where the window sets the plateau",
        Limit::Gap | Limit::Processor | Limit::Unknown => {
            "1 where the window has no part in the plateau, 2 where it sets it"
        }
    };
    Check {
        what: "plateau with half the window".into(),
        expected: time(whole_ns),
        found: half_ns.map_or(NONE.into(), time),
        ratio: half_ns.map(|half| half / whole_ns),
        means: if window > 1 { format!("the window is {window}; {means}") } else { "the window is 1".into() },
    }
}

/// Returns the parameters of each launch.
pub fn launches(launches: &[LaunchFigures]) -> Markup {
    let heads = html! {
        (heads(["launch"]))
        @for name in TIMES { th scope="col" { @if name == "g" { (PLATEAU) } @else { (column_head(name)) } } }
        (heads(["clock", "preempted"]))
    };
    let cells = |launch: &LaunchFigures| {
        let preemptions = launch.preemptions.map_or(NONE.into(), |n| n.to_string());
        let values = launch.values.map(|value| value.map_or(NONE.into(), time));
        row(launch.launch, values.into_iter().chain([time(launch.timer_ns), preemptions]))
    };
    html! {
        @if !launches.is_empty() {
            details {
                summary { "Launches one by one" }
                (grid(false, &heads, &html! { @for launch in launches { (cells(launch)) } }))
            }
        }
    }
}

/// Returns a figure, with its interval on the line below.
pub fn two_lines(text: &str) -> Markup {
    let text = with_minus(text);
    match text.split_once(" [") {
        Some((value, bracket)) => html! { (value) span.ci { "[" (bracket) } },
        None => html! { (text) },
    }
}
