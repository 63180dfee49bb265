//! The table of where round trips go, and of layers beside the lean ones on the same path.

use super::parts::pretty;
use super::subject::Subject;
use crate::lean::beside;
use crate::quantity::{NONE, number_and_interval};
use maud::{Markup, html};
use netdyno_measure::record::{Ratio, Share};
use netdyno_measure::show::Percent;

/// What stands in a column of ratios.
const RATIOS: [(&str, &[&str]); 4] =
    [("rtt", &["rtt"]), ("o_s", &["o_s"]), ("o_r", &["o_r"]), ("g", &["g", "plateau"])];

/// A row for each layer; nothing where no record says where the round trips go.
pub fn table(subjects: &[Subject<'_>]) -> Markup {
    let has_shares = subjects.iter().any(|subject| subject.logp.shares.is_some());
    let has_lean = subjects.iter().any(|subject| !of(subject).is_empty());
    html! {
        @if has_shares || has_lean {
            h3 { "Where the round trip goes" @if has_lean { ", and is that good?" } }
            div.scroll {
                table {
                    thead {
                        tr {
                            th scope="col" { "layer" }
                            @for name in ["o_s", "o_r", "L"] { th scope="col" { (pretty(name)) } }
                            @if has_lean {
                                th.text scope="col" { "beside" }
                                @for (name, _) in RATIOS { th scope="col" { (pretty(name)) } }
                            }
                        }
                    }
                    tbody { @for subject in subjects { (row(subject, has_lean)) } }
                }
            }
            @if has_lean {
                p.sub { "Beside the lean layer on the same path, measured in the same run: times as long." }
            }
        }
    }
}

fn of<'a>(subject: &Subject<'a>) -> Vec<&'a Ratio> {
    beside(subject.result, &subject.record.ratios)
}

fn row(subject: &Subject<'_>, has_lean: bool) -> Markup {
    let ratios = of(subject);
    let named = |names: &[&str]| ratios.iter().find(|ratio| names.contains(&&ratio.parameter[..]));
    html! {
        tr {
            th scope="row" { (subject.label) }
            @match &subject.logp.shares {
                Some(shares) => @for (_, share) in shares.all() { td { (cell(share)) } },
                None => @for _ in 0..3 { td { (NONE) } },
            }
            @if has_lean {
                td.text { (ratios.first().map_or(NONE, |ratio| &ratio.denominator)) }
                @for (_, names) in RATIOS {
                    td { (named(names).map_or(NONE.into(), |ratio| number_and_interval(ratio.value, ratio.ci))) }
                }
            }
        }
    }
}

fn cell(share: &Share) -> Markup {
    let ci = share.ci.map(|ci| format!("[{}, {}]", Percent(ci.lo), Percent(ci.hi)));
    html! { (Percent(share.value)) @if let Some(ci) = ci { span.ci { (ci) } } }
}
