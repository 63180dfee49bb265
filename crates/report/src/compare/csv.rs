//! A comparison as comma-separated values (RFC 4180): one row per layer and parameter.

use super::{Change, Compared, Comparison, Pair, SideFigure, Verdict};
use crate::csv::{claim, figure, line};
use netdyno_measure::record::Doubt;

/// The header row.
pub const COLUMNS: [&str; 24] = [
    "a_layer",
    "b_layer",
    "verb",
    "size_bytes",
    "parameter",
    "unit",
    "a_status",
    "a",
    "a_ci_lo",
    "a_ci_hi",
    "a_launches",
    "b_status",
    "b",
    "b_ci_lo",
    "b_ci_hi",
    "b_launches",
    "ratio",
    "ratio_ci_lo",
    "ratio_ci_hi",
    "change",
    "verdict",
    "doubts",
    "a_label",
    "b_label",
];

/// Returns the comparison as CSV text. Lines end with CR LF.
pub fn render(comparison: &Comparison) -> String {
    let mut text = line(&COLUMNS.map(String::from));
    for pair in &comparison.comparisons {
        for compared in &pair.parameters {
            text.push_str(&line(&cells(comparison, pair, compared)));
        }
    }
    text
}

fn cells(comparison: &Comparison, pair: &Pair, compared: &Compared) -> [String; COLUMNS.len()] {
    let concerns = |doubt: &&Doubt| doubt.about.as_deref().is_none_or(|about| about == compared.parameter);
    let doubts = pair.doubts.iter().filter(concerns).chain(&comparison.doubts);
    let [a_status, a, a_lo, a_hi, a_launches] = side(&compared.a);
    let [b_status, b, b_lo, b_hi, b_launches] = side(&compared.b);
    [
        pair.a.layer.clone(),
        pair.b.layer.clone(),
        pair.verb.clone(),
        compared.size_bytes.to_string(),
        compared.parameter.clone(),
        compared.unit.clone(),
        a_status,
        a,
        a_lo,
        a_hi,
        a_launches,
        b_status,
        b,
        b_lo,
        b_hi,
        b_launches,
        figure(compared.ratio),
        figure(compared.ratio_ci.map(|ci| ci.lo)),
        figure(compared.ratio_ci.map(|ci| ci.hi)),
        change(compared.change).into(),
        compared.verdict.map(verdict).unwrap_or_default().into(),
        doubts.map(|doubt| doubt.name.as_str()).collect::<Vec<_>>().join(";"),
        pair.a.label.clone().unwrap_or_default(),
        pair.b.label.clone().unwrap_or_default(),
    ]
}

fn side(of: &SideFigure) -> [String; 5] {
    let [status, value, lo, hi] = claim(of.status, of.value, of.ci);
    [status, value, lo, hi, of.launches.to_string()]
}

/// Returns the change as JSON spells it.
fn change(change: Change) -> &'static str {
    match change {
        Change::Larger => "larger",
        Change::Smaller => "smaller",
        Change::Unclear => "unclear",
        Change::Unknown => "unknown",
    }
}

/// Returns the verdict as JSON spells it.
fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fail => "fail",
        Verdict::Undecided => "undecided",
        Verdict::Pass => "pass",
        Verdict::NotJudged => "not_judged",
    }
}
