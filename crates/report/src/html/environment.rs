//! The host of a record, and the options of the run.

use super::parts::{time, with_minus};
use maud::{Markup, html};
use netdyno_measure::record::{ClockReading, Detours, Environment, Options, Record};
use netdyno_measure::show::{number, percent};

/// Returns the host, the peer's host and the options of a record as a list.
pub fn list(record: &Record) -> Markup {
    let mut rows = host("host", &record.environment);
    rows.extend(record.peer_environment.iter().flat_map(|peer| host("other host", peer)));
    rows.extend(options(record));
    html! {
        dl.environment {
            @for (name, value) in rows.iter().filter(|(_, value)| !value.trim().is_empty()) {
                dt { (name) } dd { (with_minus(value)) }
            }
        }
    }
}

fn host(name: &'static str, environment: &Environment) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        (name, environment.host.clone()),
        ("processor", environment.cpu_model.clone()),
        ("kernel", environment.kernel.clone()),
        ("virtual machine", if environment.virtualised { "yes" } else { "no" }.into()),
        ("processors allowed", ranges(&environment.cpus_allowed)),
    ];
    rows.extend(environment.governor.clone().map(|governor| ("frequency governor", governor)));
    rows.push(("clock", clock(&environment.clock)));
    rows.extend(environment.load_1min.map(|load| ("load at the start", number(load))));
    rows.extend(environment.detours.as_ref().map(|found| ("interruptions", detours(found))));
    rows
}

fn options(record: &Record) -> [(&'static str, String); 4] {
    let Options { precision, confidence, max_time_s, launches, seed } = &record.options;
    [
        ("measured", format!("{} by netdyno {}, record {}", record.began, record.version, record.schema)),
        ("precision asked for", format!("±{} at {} confidence", percent(*precision), percent(*confidence))),
        ("launches asked for", format!("at least {launches} of each layer, begun within {max_time_s} s")),
        ("seed", seed.to_string()),
    ]
}

fn clock(clock: &ClockReading) -> String {
    format!(
        "{}: a tick is {}, a reading costs {}, the smallest difference seen is {}",
        clock.source,
        time(clock.tick_ns),
        time(clock.cost_ns),
        time(clock.resolution_ns)
    )
}

fn detours(found: &Detours) -> String {
    format!(
        "{} of more than 1 µs in {} on an idle processor, the longest {}, together {} of the time",
        found.count,
        time(found.observed_ns),
        time(found.longest_ns),
        percent(found.lost_share)
    )
}

/// Returns processors as ranges, as `0–3, 6` for 0, 1, 2, 3 and 6.
fn ranges(cpus: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(cpu) => *last = cpu,
            _ => runs.push((cpu, cpu)),
        }
    }
    let text = |(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}–{last}") }
    };
    runs.iter().map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 3, 6]), "0–3, 6");
        assert_eq!(ranges(&[usize::MAX, 0]), format!("{}, 0", usize::MAX));
        assert_eq!(ranges(&[]), "");
    }
}
