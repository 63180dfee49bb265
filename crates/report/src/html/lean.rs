//! The table of the shares of round trips, and of the ratios of layers to the lean layers on the same path.

use super::grid::{grid, heads};
use super::parts::{pretty, with_minus};
use super::subject::Signature;
use crate::lean::beside;
use maud::{Markup, html};
use netdyno_measure::record::{Ratio, Share};
use netdyno_measure::show::{NONE, number_and_interval};

/// The parameters in each column of ratios: the plateau stands in for a g that is not measured.
const RATIOS: [&[&str]; 4] = [&["rtt"], &["o_s"], &["o_r"], &["g", "plateau"]];

/// Returns a table with a row for each layer. Returns nothing if no record has shares or ratios.
pub fn table(subjects: &[Signature<'_>]) -> Markup {
    let has_shares = subjects.iter().any(|subject| subject.found.shares.is_some());
    let has_lean = subjects.iter().any(|subject| !of(subject).is_empty());
    let heads = html! {
        (heads(["layer"])) (heads(["o_s", "o_r"].map(pretty))) th scope="col" { i { "L" } }
        @if has_lean {
            th.text scope="col" { "beside" }
            (heads(["round trip"])) (heads(["o_s", "o_r"].map(pretty)))
            th scope="col" { i { "g" } ", or plateau" }
        }
    };
    html! {
        @if has_shares || has_lean {
            h3 { "Where the round trip goes" @if has_lean { ", and is that good?" } }
            (grid(false, &heads, &html! { @for subject in subjects { (row(subject, has_lean)) } }))
            @if has_lean {
                p.sub { "Beside the lean layer on the same path, measured in the same run: times as long." }
            }
        }
    }
}

fn of<'a>(subject: &Signature<'a>) -> Vec<&'a Ratio> {
    beside(subject.result, &subject.record.ratios)
}

fn row(subject: &Signature<'_>, has_lean: bool) -> Markup {
    let ratios = of(subject);
    let named = |names: &[&str]| ratios.iter().find(|ratio| names.contains(&&ratio.parameter[..]));
    html! {
        tr {
            th scope="row" { (subject.label) }
            @match &subject.found.shares {
                Some(shares) => @for (_, share) in shares.all() { td { (cell(share)) } },
                None => @for _ in 0..3 { td { (NONE) } },
            }
            @if has_lean {
                td.text { (ratios.first().map_or(NONE, |ratio| &ratio.denominator)) }
                @for names in RATIOS {
                    td { @match named(names) { Some(ratio) => (times(ratio)), None => (NONE) } }
                }
            }
        }
    }
}

fn times(ratio: &Ratio) -> Markup {
    interval_below(&number_and_interval(ratio.value, ratio.ci), "")
}

fn cell(share: &Share) -> Markup {
    let percent = |end: f64| 100.0 * end;
    let ci = share.ci.map(|ci| [percent(ci.lo), percent(ci.hi)].into());
    interval_below(&number_and_interval(percent(share.value), ci), " %")
}

/// Splits a figure from its interval, and sets the interval below it.
fn interval_below(text: &str, unit: &str) -> Markup {
    let (figure, ci) = text.split_once(' ').unwrap_or((text, ""));
    html! { (with_minus(figure)) (unit) @if !ci.is_empty() { span.ci { (with_minus(ci)) } } }
}
