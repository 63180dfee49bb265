//! The heading of a page: its title, and the hosts and times of its records.

use super::names::{NAMED_AT_MOST, listed};
use super::parts::cut;
use netdyno_measure::record::Record;

/// One subject of a page: its name, and the layers that were measured.
pub struct Part {
    /// The name in front of layers, as in `Overlap over am+shm`.
    pub alone: &'static str,
    /// The name in a list of subjects.
    pub among: &'static str,
    /// The names of the layers.
    pub names: Vec<String>,
}

/// Returns the title of a page. Layers that all subjects share are named once.
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

/// Returns a line for each host with records: the host, and the times of its records.
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

/// Joins the parts that are not empty.
fn joined(parts: &[&String]) -> String {
    let known: Vec<&str> =
        parts.iter().map(|part| part.as_str()).filter(|part| !part.trim().is_empty()).collect();
    known.join(" · ")
}
