//! The findings about signatures, in sentences.

use super::names::{NAMED_AT_MOST, listed};
use super::parts::{in_full, shown, time};
use super::subject::Signature;
use crate::notes::Notes;
use netdyno_measure::record::Limit;
use netdyno_measure::show::{counted, number};

/// Returns the paragraphs of the summary.
pub fn summary(subjects: &[Signature<'_>], notes: &Notes<'_>) -> Vec<String> {
    let mut paragraphs = Vec::new();
    let mut first: Vec<String> = round_trips(subjects).into_iter().collect();
    first.extend(subjects.iter().take(NAMED_AT_MOST).map(pace));
    paragraphs.push(first.join(" "));
    paragraphs.push(match notes.all().len() {
        0 => "Nothing in the data speaks against these figures.".into(),
        1 => "One doubt stands beside these figures; its letter leads to it.".into(),
        n => format!("{n} doubts stand beside these figures; their letters lead to them."),
    });
    paragraphs.retain(|paragraph| !paragraph.is_empty() && !subjects.is_empty());
    paragraphs
}

/// Compares the round trips of the layers, the fastest first. Those of another size are left out.
fn round_trips(subjects: &[Signature<'_>]) -> Option<String> {
    let mut known: Vec<(&Signature<'_>, f64)> =
        subjects.iter().filter_map(|s| shown(&s.result.parameters.rtt).map(|ns| (s, ns))).collect();
    known.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (fastest, least) = *known.first()?;
    known.retain(|(subject, _)| subject.result.size_bytes == fastest.result.size_bytes);
    let in_full = in_full(&fastest.result.parameters.rtt, fastest.confidence());
    let bytes = counted(fastest.result.size_bytes, "byte", "bytes");
    let first = format!("A request of {bytes} and its reply take {in_full} over {}", fastest.label);
    let others: Vec<String> = known[1..]
        .iter()
        .take(NAMED_AT_MOST)
        .map(|(subject, ns)| {
            format!("{} over {} ({} times as long)", time(*ns), subject.label, number(ns / least))
        })
        .collect();
    Some(if others.is_empty() { format!("{first}.") } else { format!("{first}, {}.", listed(&others)) })
}

/// Says how fast a layer takes messages, and which term sets that pace.
fn pace(subject: &Signature<'_>) -> String {
    let (label, plateau) = (&subject.label, &subject.found.plateau);
    let every = time(plateau.value_ns);
    match plateau.limited_by {
        Limit::Gap => format!("{label} takes a message every {every}: that is its gap g."),
        Limit::Processor => {
            format!(
                "{label} takes messages as fast as one processor sends them, one every {every}: only an upper bound of g is known."
            )
        }
        Limit::Window => {
            let requests = counted(plateau.window, "request", "requests");
            format!("{label} allows {requests} without a reply, which makes it wait; its gap cannot be seen.")
        }
        Limit::Unknown => {
            format!("{label} never reached a steady pace that can be trusted; its gap cannot be seen.")
        }
    }
}
