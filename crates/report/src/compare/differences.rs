//! Warnings about a comparison: reasons other than the layers that may explain a ratio.

use crate::onesided::{level_in_words, memory_in_words, synchronisation_in_words};
use netdyno_measure::bulk::data::Direction;
use netdyno_measure::onesided::record::Onesided;
use netdyno_measure::overlap::data::ProgressBy;
use netdyno_measure::record::{Doubt, Environment, LayerResult, Record};
use netdyno_measure::stats::{quantile_of_sorted, sorted};
use netdyno_measure::strata::Stratum;

/// The ratio of the spreads of both sides from which the interval of an unpaired ratio is too narrow. Two
/// samples of nine launches from one distribution reach it in 1.6 % of all cases.
const UNEQUAL_SPREAD: f64 = 5.0;

/// Returns the warnings about the differences between two runs.
pub fn of_runs(a: &Record, b: &Record) -> Vec<Doubt> {
    let drift = "the launches of two runs are not interleaved: what drifted between them, such as temperature, \
                 clock rate, placement and neighbours, is in every ratio";
    let mut doubts = vec![Doubt::new("not_interleaved", drift.into())];
    doubts.extend(of_hosts("", "", &a.environment, &b.environment));
    doubts.extend(difference("version_differs", "the version of netdyno", &a.version, &b.version));
    match (&a.peer_environment, &b.peer_environment) {
        (Some(in_a), Some(in_b)) => doubts.extend(of_hosts("peer_", "peer's ", in_a, in_b)),
        (in_a, in_b) => {
            let place = |peer: &Option<Environment>| match peer {
                Some(peer) => format!("on {}", peer.host),
                None => "on the same host".into(),
            };
            doubts.extend(difference("peer_differs", "where the replier ran", &place(in_a), &place(in_b)));
        }
    }
    doubts
        .extend([("A", a), ("B", b)].into_iter().filter_map(|(side, record)| carried(side, &record.doubts)));
    doubts
}

fn of_hosts(prefix: &str, whose: &str, a: &Environment, b: &Environment) -> Vec<Doubt> {
    let governor = |of: &Environment| of.governor.clone().unwrap_or_else(|| "unknown".into());
    let machine = |of: &Environment| if of.virtualised { "virtual" } else { "real" }.to_owned();
    [
        ("host", "host", a.host.clone(), b.host.clone()),
        ("cpu_model", "processor", a.cpu_model.clone(), b.cpu_model.clone()),
        ("kernel", "kernel", a.kernel.clone(), b.kernel.clone()),
        ("governor", "governor", governor(a), governor(b)),
        ("virtualised", "machine", machine(a), machine(b)),
        ("clock", "clock", a.clock.source.clone(), b.clock.source.clone()),
    ]
    .into_iter()
    .filter_map(|(name, what, a, b)| {
        difference(&format!("{prefix}{name}_differs"), &format!("the {whose}{what}"), &a, &b)
    })
    .collect()
}

/// Returns the one-sided operations of a result, of whichever verb they are.
fn accesses(result: &LayerResult) -> Option<&Onesided> {
    result.found.onesided().or_else(|| result.found.memory().map(|found| &found.0))
}

/// Returns the warnings about the settings in which two results differ.
pub fn of_settings(a: &LayerResult, b: &LayerResult) -> Vec<Doubt> {
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".into());
    let lines = |lines: &Option<String>| text(lines).trim_end().replace('\n', "; ");
    let cpus = |result: &LayerResult| format!("{:?}", result.cpus);
    let level = |result: &LayerResult| {
        let level = accesses(result).and_then(|found| found.level);
        level.map_or("none", level_in_words).to_owned()
    };
    // A record of an earlier version has no synchronisation, because the memory was always locked.
    let synchronisation = |result: &LayerResult| {
        let synchronisation = accesses(result).and_then(|found| found.synchronisation);
        synchronisation_in_words(synchronisation.unwrap_or_default()).to_owned()
    };
    // The memory of an earlier version was always registered.
    let memory = |result: &LayerResult| {
        let memory = accesses(result).and_then(|found| found.memory);
        memory_in_words(memory.unwrap_or_default()).to_owned()
    };
    let direction = |result: &LayerResult| {
        let direction = result.found.bulk().map(|found| found.direction);
        direction
            .map_or("none", |direction| match direction {
                Direction::Store => "store",
                Direction::Get => "get",
            })
            .to_owned()
    };
    let procs = |result: &LayerResult| {
        result.found.contention().map_or("none".into(), |found| found.procs.to_string())
    };
    let progress = |result: &LayerResult| {
        let by = result.found.overlap().map(|found| found.progress_by);
        by.map_or("none", |by| match by {
            ProgressBy::Calls => "in calls",
            ProgressBy::Thread => "in calls and in a thread",
        })
        .to_owned()
    };
    let queue =
        |result: &LayerResult| result.found.overlap().map_or("none".into(), |found| found.queue.to_string());
    [
        difference("wait_differs", "the way to wait", &a.wait, &b.wait),
        difference(
            "distance_differs",
            "the distance of the processors",
            &text(&a.distance),
            &text(&b.distance),
        ),
        difference("cpus_differ", "the processors", &cpus(a), &cpus(b)),
        difference("library_differs", "the library", &text(&a.library), &text(&b.library)),
        difference("launcher_differs", "the launcher", &text(&a.launcher), &text(&b.launcher)),
        difference("server_differs", "the server", &text(&a.server), &text(&b.server)),
        difference("level_differs", "the reliability level", &level(a), &level(b)),
        difference(
            "synchronisation_differs",
            "the synchronisation",
            &synchronisation(a),
            &synchronisation(b),
        ),
        difference("memory_differs", "the memory", &memory(a), &memory(b)),
        difference("direction_differs", "the direction of the data", &direction(a), &direction(b)),
        difference("procs_differ", "the number of processes", &procs(a), &procs(b)),
        difference("progress_differs", "where messages make progress", &progress(a), &progress(b)),
        difference("queue_differs", "the number of messages in flight", &queue(a), &queue(b)),
        difference("faults_differ", "what went wrong on purpose", &text(&a.faults), &text(&b.faults)),
        difference("dials_differ", "what the link was made to be like", &text(&a.dials), &text(&b.dials)),
        difference(
            "profiles_differ",
            "how the link changed with time",
            &lines(&a.profile),
            &lines(&b.profile),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns a warning if no stratum of one result has processors as far apart as one of the other. Processors that were
/// moved have no distance.
pub fn of_strata(a: &LayerResult, b: &LayerResult) -> Option<Doubt> {
    let all = |result: &LayerResult| {
        let told = result.strata.iter().filter(|stratum| stratum.bounce_ns.is_some() || stratum.is_moved());
        told.map(Stratum::in_words).collect::<Vec<_>>().join(" and ")
    };
    let (in_a, in_b) = (all(a), all(b));
    let text = || {
        format!(
            "the processors were not equally far apart, or not at the same pace: {in_a} in A, {in_b} in B, so that there \
             is no ratio"
        )
    };
    (!in_a.is_empty() && !in_b.is_empty()).then(|| Doubt::new("strata_differ", text()))
}

/// Returns a warning about sizes that only one side has, for example because the searches chose different
/// sizes.
pub fn of_sizes(mut only_in_a: Vec<usize>, mut only_in_b: Vec<usize>) -> Option<Doubt> {
    let listed = |sizes: &mut Vec<usize>| {
        sizes.dedup();
        let texts: Vec<String> = sizes.iter().map(|size| format!("{size} B")).collect();
        if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
    };
    let any = !only_in_a.is_empty() || !only_in_b.is_empty();
    let (a, b) = (listed(&mut only_in_a), listed(&mut only_in_b));
    any.then(|| Doubt::new("sizes_differ", format!("sizes in one of them are left out: {a} of A, {b} of B")))
}

/// Returns warnings that name the doubts of both results.
pub fn own_doubts(a: &LayerResult, b: &LayerResult) -> Vec<Doubt> {
    [("A", a), ("B", b)].into_iter().filter_map(|(side, result)| carried(side, &result.doubts)).collect()
}

pub fn carried(side: &str, doubts: &[Doubt]) -> Option<Doubt> {
    let name = |doubt: &Doubt| match &doubt.about {
        Some(about) => format!("{} ({about})", doubt.name),
        None => doubt.name.clone(),
    };
    let mut names: Vec<String> = doubts.iter().map(name).collect();
    names.dedup();
    let stable = format!("doubts_in_{}", side.to_lowercase().replace(' ', "_"));
    (!names.is_empty())
        .then(|| Doubt::new(&stable, format!("{side} has doubts of its own: {}", names.join(", "))))
}

/// Returns a warning if the spreads of both samples differ, because the interval assumes equal spreads.
pub fn of_spread(parameter: &str, a: &[f64], b: &[f64]) -> Option<Doubt> {
    let (in_a, in_b) = (spread(a)?, spread(b)?);
    let (wider, narrower, factor) =
        if in_a > in_b { ("A", "B", in_a / in_b) } else { ("B", "A", in_b / in_a) };
    let text = format!(
        "the launches of {wider} are spread {factor:.0} times as wide as those of {narrower}: the interval may \
         be too narrow"
    );
    (factor > UNEQUAL_SPREAD && factor.is_finite()).then(|| Doubt::about("unequal_spread", parameter, text))
}

/// Returns the interquartile range of values on a logarithmic scale. Returns `None` for fewer than four
/// values.
fn spread(values: &[f64]) -> Option<f64> {
    let logs = sorted(values.iter().filter(|&&value| value > 0.0).map(|value| value.ln()));
    (logs.len() >= 4).then(|| quantile_of_sorted(&logs, 0.75) - quantile_of_sorted(&logs, 0.25))
}

/// Returns the warning that figures have no ratio.
pub fn no_ratio(parameter: &str, of_sizes: bool) -> Doubt {
    let text = if of_sizes {
        "it is read off several sizes, and single launches have none: compare the sizes"
    } else {
        "in some launch it is not positive or has no value: there is no ratio"
    };
    Doubt::about("no_ratio", parameter, text.into())
}

/// Returns a warning if launches of a side have no value of a parameter.
pub fn of_gaps(parameter: &str, side: &str, launches: usize, known: usize) -> Option<Doubt> {
    let text = || {
        format!(
            "{} of {launches} launches of {side} have no value of it and are not compared",
            launches - known
        )
    };
    (known < launches).then(|| Doubt::about("launches_without", parameter, text()))
}

/// Returns the warning that a ratio has no interval.
pub fn too_few(parameter: &str) -> Doubt {
    Doubt::about("few_launches", parameter, "too few launches for an interval of the ratio".into())
}

fn difference(name: &str, what: &str, a: &str, b: &str) -> Option<Doubt> {
    (a != b).then(|| Doubt::new(name, format!("{what} differs: {a} in A, {b} in B")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_is_relative() {
        let narrow = [100.0, 101.0, 102.0, 103.0];
        let large = narrow.map(|value| 1000.0 * value);
        let wide = [100.0, 120.0, 140.0, 160.0];
        assert_eq!(of_spread("rtt", &narrow, &large), None);
        let doubt = of_spread("rtt", &narrow, &wide).unwrap();
        assert!(doubt.text.starts_with("the launches of B are spread 16 times"), "{}", doubt.text);
        assert_eq!(of_spread("rtt", &[1.0; 4], &wide), None, "no spread is no measure");
    }
}
