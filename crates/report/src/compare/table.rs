//! A comparison as plain text for a terminal.

use super::{Change, Compared, Comparison, Pair, Setting, SideFigure, Source, Verdict};
use crate::lines::Lines;
use netdyno_measure::record::{Doubt, Status};
use netdyno_measure::show::{NONE, counted, number, percent, time};

/// Returns the table, ended by a line feed. No line is longer than `width`, or than 40 characters if
/// `width` is less.
pub fn render(comparison: &Comparison, width: usize) -> String {
    let mut lines = Lines::of(width);
    lines.wrapped(&source(&comparison.a), "A  ", "   ");
    lines.wrapped(&source(&comparison.b), "B  ", "   ");
    lines.wrapped(&method(comparison), "", "");
    lines.blank();
    let rows =
        comparison.comparisons.iter().flat_map(|pair| pair.parameters.iter().map(move |it| (pair, it)));
    let columns = Columns::of(rows.map(|(pair, compared)| name(pair, compared)));
    lines.wrapped(&columns.row(["parameter", "A", "B", "B / A", ""]), "  ", "    ");
    lines.rule();
    for (at, pair) in comparison.comparisons.iter().enumerate() {
        if at > 0 {
            lines.blank();
        }
        lines.wrapped(&title(pair), "", "    ");
        for compared in &pair.parameters {
            lines.wrapped(&line(&columns, pair, compared), "  ", "    ");
        }
    }
    lines.rule();
    for (only, side) in [(&comparison.only_in_a, "A"), (&comparison.only_in_b, "B")] {
        if !only.is_empty() {
            lines.wrapped(&format!("only in {side}: {}", only.join(", ")), "", "    ");
        }
    }
    lines.wrapped(&judgement(comparison), "", "    ");
    let of_pairs = comparison.comparisons.iter().flat_map(|pair| {
        let layer = layers(pair);
        pair.doubts.iter().map(move |doubt| concern(&layer, doubt))
    });
    let all = comparison.doubts.iter().map(|doubt| doubt.text.clone()).chain(of_pairs);
    all.for_each(|text| lines.wrapped(&text, "-  ", "   "));
    lines.text
}

/// Describes a record and its run in a line.
pub(crate) fn source(source: &Source) -> String {
    let layer = source.layer.iter().map(|layer| format!("{layer} of ")).collect::<String>();
    let Source { name, began, host, version, .. } = source;
    format!("{layer}{name}, {began}, {host}, netdyno {version}")
}

/// Describes the method of the ratios in a line.
pub(crate) fn method(comparison: &Comparison) -> String {
    let pairing = if comparison.interleaved {
        "paired by launch"
    } else {
        "unpaired (Hodges and Lehmann, by the test of Mann and Whitney)"
    };
    format!("ratios over launches, {} intervals, {pairing}", percent(comparison.confidence))
}

/// Names the layers of a pair, as `udp`, or `am+shm against udp`.
pub(crate) fn layers(pair: &Pair) -> String {
    let (a, b) = (pair.a.name(), pair.b.name());
    if a == b { a } else { format!("{b} against {a}") }
}

/// Names the layers of a pair, and the settings of both.
pub(crate) fn title(pair: &Pair) -> String {
    let both = |of: fn(&Setting) -> String| {
        let (a, b) = (of(&pair.a), of(&pair.b));
        if a == b { a } else { format!("{a} and {b}") }
    };
    let launches = both(|setting| counted(setting.launches, "launch", "launches"));
    let wait = both(|setting| setting.wait.clone());
    format!("{}  {}, {} B, {wait}, {launches}", layers(pair), pair.verb, pair.size_bytes)
}

fn line(columns: &Columns, pair: &Pair, compared: &Compared) -> String {
    let figure = |figure: &SideFigure| value(figure, &compared.unit);
    let cells = [&name(pair, compared), &figure(&compared.a), &figure(&compared.b), &compared.in_words()];
    columns.row([cells[0], cells[1], cells[2], cells[3], words(compared)])
}

/// Names a parameter, with its size if that is not the size of the pair.
fn name(pair: &Pair, compared: &Compared) -> String {
    if compared.size_bytes == pair.size_bytes {
        compared.parameter.clone()
    } else {
        format!("{} {} B", compared.parameter, compared.size_bytes)
    }
}

/// The widths of the columns, in characters.
struct Columns {
    name: usize,
    figure: usize,
}

impl Columns {
    /// Makes room for these names. Long names take it from the figures, so that a line still fits into 80
    /// characters.
    fn of(names: impl Iterator<Item = String>) -> Self {
        let name = names.map(|name| name.chars().count()).fold(14, usize::max).min(23) + 1;
        Self { name, figure: if name > 15 { 10 } else { 12 } }
    }

    fn row(&self, cells: [&str; 5]) -> String {
        let Self { name: n, figure: f } = *self;
        let [name, a, b, ratio, words] = cells;
        format!("{name:<n$}{a:>f$} {b:>f$}   {ratio:<21}  {words}").trim_end().to_owned()
    }
}

/// Returns a figure with its unit, if it has one, with `≤` before a bound.
pub(crate) fn value(figure: &SideFigure, unit: &str) -> String {
    let Some(value) = figure.value.filter(|value| value.is_finite()) else { return NONE.into() };
    let text = match unit {
        "ns" => time(value),
        "ns_per_byte" => format!("{} ns/B", number(value)),
        _ => number(value),
    };
    match figure.status {
        Status::Measured => text,
        Status::UpperBound => format!("≤ {text}"),
        Status::Unobservable => NONE.into(),
    }
}

/// Describes a ratio in a word or two.
pub(crate) fn words(compared: &Compared) -> &'static str {
    match (compared.verdict, compared.change) {
        (Some(Verdict::Fail), _) => "FAIL",
        (Some(Verdict::Undecided), _) => "undecided",
        (Some(Verdict::Pass), _) => "pass",
        (Some(Verdict::NotJudged), _) => "not judged",
        (None, Change::Larger) => "larger",
        (None, Change::Smaller) => "smaller",
        (None, Change::Unclear | Change::Unknown) => "",
    }
}

/// Counts the judgements of the limit. Returns an empty text without a limit.
pub(crate) fn judgement(comparison: &Comparison) -> String {
    let Some(limit) = comparison.fail_on else { return String::new() };
    let count = |verdict| comparison.with(verdict).count();
    format!(
        "limit {}: {} failed, {} undecided, {} passed, {} not judged",
        percent(limit),
        count(Verdict::Fail),
        count(Verdict::Undecided),
        count(Verdict::Pass),
        count(Verdict::NotJudged)
    )
}

/// Returns a warning with its subject.
pub(crate) fn concern(layer: &str, doubt: &Doubt) -> String {
    match &doubt.about {
        Some(parameter) => format!("{parameter} of {layer}: {}", doubt.text),
        None => format!("{layer}: {}", doubt.text),
    }
}
