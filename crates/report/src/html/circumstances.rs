//! The circumstances of a measurement: sizes, waiting, processors, window and launches.

use super::names::listed;
use super::subject::Signature;
use netdyno_measure::record::LayerResult;
use netdyno_measure::show::counted;

/// Returns the circumstances of a signature in a line.
pub fn of_signature(subject: &Signature<'_>) -> String {
    let result = subject.result;
    let size = format!("{} in a request and in a reply", counted(result.size_bytes, "byte", "bytes"));
    let window = format!("window {}", subject.found.plateau.window);
    how(result, [Some(size), Some(window)])
}

/// Returns the circumstances of a layer that was measured at every size.
pub fn of_sizes(result: &LayerResult) -> String {
    how(result, [None, None])
}

fn how(result: &LayerResult, [size, window]: [Option<String>; 2]) -> String {
    let mut parts = vec![format!("netdyno {}", result.verb())];
    parts.extend(result.behind());
    parts.extend(size);
    parts.push(waits(&result.wait));
    parts.extend(processors(result));
    parts.extend(window);
    parts.push(counted(result.launches(), "launch", "launches"));
    parts.join(" · ")
}

/// Returns the circumstances of a signature for a cell of a table.
pub fn in_short(subject: &Signature<'_>) -> String {
    let result = subject.result;
    let mut parts = vec![format!("{} B", result.size_bytes), result.wait.clone()];
    parts.extend(processors(result));
    parts.push(counted(result.launches(), "launch", "launches"));
    parts.join(", ")
}

/// Says how an idle process waits.
fn waits(wait: &str) -> String {
    match wait {
        "spin" => "waits by spinning".into(),
        "yield" => "waits by yielding".into(),
        "block" => "waits by blocking".into(),
        "virtual" => "in virtual time".into(),
        other => format!("waits: {other}"),
    }
}

/// Names the processors and their distance, if the processes were pinned.
fn processors(result: &LayerResult) -> Option<String> {
    let cpus: Vec<String> = result.cpus.iter().map(usize::to_string).collect();
    let distance = result.distance.as_ref().map(|text| format!(" ({text})")).unwrap_or_default();
    let noun = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    (!cpus.is_empty()).then(|| format!("{noun} {}{distance}", listed(&cpus)))
}
