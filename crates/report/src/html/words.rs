//! What the figures say, in sentences.

use super::parts::{cut, shown, time};
use super::subject::Subject;
use super::tables::in_full;
use crate::notes::Notes;
use crate::quantity::{counted, number};
use netdyno_measure::record::{LayerResult, Limit, Record};

/// Layers that a heading names at most.
const NAMED_AT_MOST: usize = 4;

/// What a page is about: what was measured, as it stands alone and among others, over which
/// layers.
pub struct Part {
    pub alone: &'static str,
    pub among: &'static str,
    pub names: Vec<String>,
}

/// The heading of a page. Layers that all of it is about are named once.
pub fn title(parts: &[Part]) -> String {
    let parts: Vec<&Part> = parts.iter().filter(|part| !part.names.is_empty()).collect();
    match parts[..] {
        [] => "No layer was measured".into(),
        [first, _, ..] if parts.iter().all(|part| part.names == first.names) => {
            let about: Vec<String> = parts.iter().map(|part| part.among.to_owned()).collect();
            format!("{} of {}", listed(&about), first_of(&first.names))
        }
        _ => {
            let titles = parts.iter().map(|part| format!("{} {}", part.alone, first_of(&part.names)));
            titles.collect::<Vec<_>>().join("; ")
        }
    }
}

fn first_of(names: &[String]) -> String {
    let first: Vec<String> = names.iter().take(NAMED_AT_MOST).map(|name| cut(name, 60)).collect();
    match names.len() - first.len() {
        0 => listed(&first),
        rest => format!("{} and {rest} more", first.join(", ")),
    }
}

/// Where and when records were made: a line for those of one place, up to its last one.
pub fn whereabouts(records: &[Record]) -> Vec<String> {
    let mut places: Vec<(String, Vec<&str>)> = Vec::new();
    for record in records {
        let place = place(record);
        match places.iter_mut().find(|(other, _)| *other == place) {
            Some((_, times)) => times.push(&record.began),
            None => places.push((place, vec![&record.began])),
        }
    }
    places
        .into_iter()
        .map(|(place, mut times)| {
            times.sort_unstable();
            let time = match times[..] {
                [] => String::new(),
                [one] => one.to_owned(),
                [first, .., last] => format!("{} records from {first} to {last}", times.len()),
            };
            joined(&[&place, &time])
        })
        .collect()
}

fn place(record: &Record) -> String {
    let environment = &record.environment;
    let host = match &record.peer_environment {
        Some(peer) => format!("{} and {}", environment.host, peer.host),
        None => environment.host.clone(),
    };
    joined(&[&host, &environment.cpu_model, &environment.kernel])
}

/// What is known of these.
fn joined(parts: &[&String]) -> String {
    let known: Vec<&str> =
        parts.iter().map(|part| part.as_str()).filter(|part| !part.trim().is_empty()).collect();
    known.join(" · ")
}

/// The findings in a few sentences.
pub fn summary(subjects: &[Subject<'_>], notes: &Notes<'_>) -> Vec<String> {
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

fn round_trips(subjects: &[Subject<'_>]) -> Option<String> {
    let mut known: Vec<(&Subject<'_>, f64)> =
        subjects.iter().filter_map(|s| shown(&s.result.parameters.rtt).map(|ns| (s, ns))).collect();
    known.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (fastest, least) = known.first()?;
    let in_full = in_full(&fastest.result.parameters.rtt, fastest.record.options.confidence);
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

/// How fast a layer can be fed, and by what it is held back.
fn pace(subject: &Subject<'_>) -> String {
    let (label, plateau) = (&subject.label, &subject.logp.plateau);
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

/// How a layer was measured, in a line.
pub fn circumstances(subject: &Subject<'_>) -> String {
    let result = subject.result;
    let size = format!("{} in a request and in a reply", counted(result.size_bytes, "byte", "bytes"));
    let window = format!("window {}", subject.logp.plateau.window);
    how(result, [Some(size), Some(window)])
}

/// The same of a layer that was measured at every size.
pub fn circumstances_of(result: &LayerResult) -> String {
    how(result, [None, None])
}

fn how(result: &LayerResult, [size, window]: [Option<String>; 2]) -> String {
    let mut parts = vec![format!("netdyno {}", result.verb())];
    parts.extend(result.library.iter().chain(&result.launcher).cloned());
    parts.extend(size);
    parts.push(waits(&result.wait));
    parts.extend(processors(result));
    parts.extend(window);
    parts.push(counted(result.launches(), "launch", "launches"));
    parts.join(" · ")
}

/// The same, for a cell.
pub fn in_short(subject: &Subject<'_>) -> String {
    let result = subject.result;
    let mut parts = vec![format!("{} B", result.size_bytes), result.wait.clone()];
    parts.extend(processors(result));
    parts.push(counted(result.launches(), "launch", "launches"));
    parts.join(", ")
}

fn waits(wait: &str) -> String {
    match wait {
        "spin" => "waits by spinning".into(),
        "yield" => "waits by yielding".into(),
        "block" => "waits by blocking".into(),
        "virtual" => "in virtual time".into(),
        other => format!("waits: {other}"),
    }
}

fn processors(result: &LayerResult) -> Option<String> {
    let cpus: Vec<String> = result.cpus.iter().map(usize::to_string).collect();
    let distance = result.distance.as_ref().map(|text| format!(" ({text})")).unwrap_or_default();
    let noun = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    (!cpus.is_empty()).then(|| format!("{noun} {}{distance}", listed(&cpus)))
}

/// Names, with a number where several are the same.
pub fn numbered(names: &[String]) -> Vec<String> {
    let count = |names: &[String], name: &String| names.iter().filter(|other| *other == name).count();
    let numbered = |(at, name): (usize, &String)| match count(names, name) {
        1 => name.clone(),
        _ => format!("{name} #{}", count(&names[..=at], name)),
    };
    names.iter().enumerate().map(numbered).collect()
}

/// `a, b and c`.
pub fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_end_with_and() {
        let list = |names: &[&str]| listed(&names.iter().map(|name| (*name).into()).collect::<Vec<_>>());
        assert_eq!(
            (list(&[]), list(&["a"]), list(&["a", "b", "c"])),
            ("".into(), "a".into(), "a, b and c".into())
        );
    }
}
