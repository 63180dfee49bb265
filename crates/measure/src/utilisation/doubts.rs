//! Warnings about the figures of `utilisation`, because of the layer, the machine or the run.

use super::data::{STEADY_TRIPS_AT_LEAST, UtilisationLaunch, Window, are_alike};
use super::record::{Cost, Costs, Utilisation};
use crate::machine::preempted;
use crate::precision::{self, Wanted};
use crate::processor_time::MachineTimes;
use crate::record::doubt::Doubt;
use crate::record::parameter::{Parameters, Status};
use crate::show::{Bytes, Number, Percent, counted, sizes_between};
use crate::stats::median;

/// A hypervisor that takes more than this share of a processor from the communicating threads changes figures.
const STOLEN: f64 = 0.01;
/// A share of one processor below this does not matter: figures need not be known more precisely.
const NEGLIGIBLE: f64 = 0.01;

/// Returns the warnings: a figure has another meaning than its name says, or is not precise.
pub(super) fn find(parameters: &Parameters, found: &Utilisation, precision: f64) -> Vec<Doubt> {
    let launches = &found.launches;
    let mut doubts = Vec::new();
    doubts.extend(unexplained(found));
    doubts.extend(busy(found));
    doubts.extend(no_accounts(found));
    doubts.extend(nowhere_else(found));
    doubts.extend(in_ticks(found));
    doubts.extend(short_stream(found));
    doubts.extend(window_bound(found));
    doubts.extend(uneven(found));
    doubts.extend(stolen(found));
    doubts.extend(refused(found));
    doubts.extend(preempted("requester", launches.iter().map(|l| (l.preemptions, l.took_ns))));
    doubts.extend(precision::doubt(&wanted(parameters, found, precision), launches.len(), precision));
    doubts
}

/// Returns the kinds of windows of all sizes, with their names.
fn all(found: &Utilisation) -> impl Iterator<Item = (String, &Costs)> {
    found.sizes.iter().flat_map(|size| {
        let bytes = Bytes(size.size_bytes);
        size.kinds().map(|(kind, costs)| (format!("{} of {bytes}", in_words(kind)), costs))
    })
}

fn in_words(kind: &str) -> &str {
    if kind == "stream" { "a stream" } else { "round trips" }
}

/// Warns if the machine worked more than both sides, kernel work elsewhere and the idle machine explain, or less.
fn unexplained(found: &Utilisation) -> Option<Doubt> {
    let checked: Vec<(String, f64, bool)> = all(found)
        .flat_map(|(name, costs)| {
            costs.machines().map(|(_, machine)| (name.clone(), machine.unexplained.share)).collect::<Vec<_>>()
        })
        .filter_map(|(name, share)| Some((name, share.value?, !share.ci?.contains(0.0))))
        .collect();
    let differ = checked.iter().filter(|(_, share, differs)| *differs && share.abs() > NEGLIGIBLE);
    let (name, share, _) = differ.clone().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
    let (word, why) = match *share > 0.0 {
        true => ("more", "other programs ran, or the kernel worked on the sides' processors for no thread"),
        false => (
            "less",
            "the idle machine did more than the busy one, or a time counts twice, as that of helper threads in the kernel \
             on other processors",
        ),
    };
    let text = format!(
        "in {} of {} the machine did {word} than both sides and its idle work; the most with {name}, {} of a processor: {why}",
        differ.count(),
        counted(checked.len(), "check", "checks"),
        Percent(share.abs())
    );
    Some(Doubt::new("unexplained", text))
}

/// Names the machines for which `is` holds: nothing if there is one machine, else its side or sides.
fn where_is(found: &Utilisation, is: impl Fn(usize) -> bool) -> Option<&'static str> {
    match (found.replier_idle.is_some(), is(0), is(1)) {
        (false, true, _) => Some(""),
        (true, true, false) => Some(" on the requester's machine"),
        (true, false, true) => Some(" on the replier's machine"),
        (true, true, true) => Some(" on each machine"),
        (_, false, _) => None,
    }
}

/// Returns the accounts of the machines of a side in all windows without messages.
fn idle_accounts(found: &Utilisation, side: usize) -> impl Iterator<Item = Option<MachineTimes>> + Clone {
    found.launches.iter().flat_map(|launch| &launch.idle).map(move |window| window.machines()[side])
}

/// Warns if other programs keep a machine busy even while nothing is sent.
fn busy(found: &Utilisation) -> Option<Doubt> {
    let place = where_is(found, |side| found.busy_processors(side).is_some())?;
    let idle = found.idle_machines();
    let busy = idle.iter().enumerate().filter_map(|(side, idle)| {
        let processors = counted(found.busy_processors(side)?, "processor", "processors");
        Some(format!("{} of {processors}", Number(idle.value?)))
    });
    let text = format!(
        "others keep {} busy{place} while nothing is sent: they take processors from messages too, and the work of that machine gives no figures",
        busy.collect::<Vec<_>>().join(" and ")
    );
    Some(Doubt::new("busy_machine", text))
}

/// Warns if no accounts of the machine were read.
fn no_accounts(found: &Utilisation) -> Option<Doubt> {
    let place = where_is(found, |side| idle_accounts(found, side).all(|machine| machine.is_none()))?;
    let text = format!(
        "the times of the machine's processors cannot be read{place} (/proc/stat), so that no sum is checked"
    );
    Some(Doubt::new("no_machine", text))
}

/// Warns if every processor has a communicating thread.
fn nowhere_else(found: &Utilisation) -> Option<Doubt> {
    let place = where_is(found, |side| {
        let mut machines = idle_accounts(found, side).flatten().peekable();
        machines.peek().is_some() && machines.all(|machine| machine.elsewhere_ns.is_none())
    })?;
    let text = format!(
        "every processor{place} has a communicating thread, so that no kernel work elsewhere can be seen"
    );
    Some(Doubt::new("no_other_processor", text))
}

/// Warns that times in ticks are only known to be small.
fn in_ticks(found: &Utilisation) -> Option<Doubt> {
    let is_bound = |cost: &Cost| cost.per_message.status == Status::UpperBound;
    let costs: Vec<&Cost> = all(found)
        .flat_map(|(_, costs)| {
            // The clocks of helpers have no ticks.
            let sides = costs
                .sides()
                .into_iter()
                .flat_map(|(_, side)| [("user", &side.user), ("system", &side.system)]);
            let machines = costs.machines().flat_map(|(_, machine)| machine.all());
            sides.chain(machines).map(|(_, cost)| cost).collect::<Vec<_>>()
        })
        .collect();
    let bounds = costs.iter().filter(|cost| is_bound(cost)).count();
    let tick_ns = median(found.launches.iter().flat_map(|launch| launch.tick_ns));
    (bounds > 0).then(|| {
        let text = format!(
            "{bounds} of {} figures are too small for the steps of {} ms in which the system counts: each is at most what is shown",
            costs.len(),
            Number(tick_ns / 1e6)
        );
        Doubt::new("coarse_ticks", text)
    })
}

/// Warns that a stream of large messages was too short.
fn short_stream(found: &Utilisation) -> Option<Doubt> {
    let launches = |at: usize| found.launches.iter().filter(|launch| !launch.sizes[at].is_steady()).count();
    let is_short = |at: usize| launches(at) > 0;
    let (at, size) = found.sizes.iter().enumerate().find(|(at, _)| is_short(*at))?;
    let count = (at..found.sizes.len()).filter(|at| is_short(*at)).count();
    let most = (at..found.sizes.len()).map(launches).max()?;
    let text = format!(
        "streams of {}, from {} on, lasted less than {} round trips in up to {most} of {} launches, so that their start \
         and end count: those give no figure",
        counted(count, "size", "sizes"),
        Bytes(size.size_bytes),
        Number(STEADY_TRIPS_AT_LEAST),
        found.launches.len()
    );
    Some(Doubt::new("short_stream", text))
}

/// Warns that a stream waits for replies, because the layer has few messages in flight.
fn window_bound(found: &Utilisation) -> Option<Doubt> {
    let is_bound = |at: usize, launch: &UtilisationLaunch| {
        launch.sizes[at].is_window_bound(launch.shape.sizes[at].window)
    };
    let is_mostly_bound = |at: usize| {
        2 * found.launches.iter().filter(|launch| is_bound(at, launch)).count() > found.launches.len()
    };
    let sizes = found.sizes.iter().enumerate();
    let bound: Vec<usize> =
        sizes.filter(|(at, _)| is_mostly_bound(*at)).map(|(_, size)| size.size_bytes).collect();
    let text = format!(
        "streams of {} wait for replies, because so few messages are in flight: with more of them, both \
         sides would do more",
        sizes_between(&bound)?
    );
    Some(Doubt::new("window_bound", text))
}

/// Warns that the accounts of both sides are not of the same time.
fn uneven(found: &Utilisation) -> Option<Doubt> {
    let windows = || found.launches.iter().flat_map(|launch| &launch.sizes);
    let all = windows().flat_map(|size| [&size.round_trips, &size.stream]);
    let (uneven, count) =
        all.fold((0, 0), |(uneven, count), windows| (uneven + usize::from(!are_alike(windows)), count + 1));
    (uneven > 0).then(|| {
        let text = format!(
            "in {uneven} of {count} measurements reading the accounts took so long that the windows of both sides differ: they \
             give no figure of the replier"
        );
        Doubt::new("uneven_windows", text)
    })
}

/// Warns if the hypervisor took a machine's processors.
fn stolen(found: &Utilisation) -> Option<Doubt> {
    let shares = [0, 1].map(|side| stolen_share(found, side));
    let place = where_is(found, |side| shares[side] > STOLEN)?;
    let most = shares.into_iter().filter(|share| *share > STOLEN).fold(0.0, f64::max);
    let text = format!(
        "the hypervisor took {} of a processor from the communicating threads{place} (median over launches)",
        Percent(most)
    );
    Some(Doubt::new("stolen", text))
}

/// Returns what the hypervisor took from the communicating threads of a side's machine while messages were sent, as a
/// share of a processor.
fn stolen_share(found: &Utilisation, side: usize) -> f64 {
    let share = |windows: &mut dyn Iterator<Item = &Window>| {
        let machines = windows.filter_map(|window| window.machines()[side]);
        let (steal_ns, all_ns) = machines.fold((0.0, 0.0), |(steal, all), machine| {
            let of_each_ns = machine.steal_ns / machine.processors.max(1) as f64;
            (steal + machine.own_steal_ns.unwrap_or(of_each_ns), all + machine.elapsed_ns)
        });
        steal_ns / all_ns
    };
    let shares = found.launches.iter().map(|launch| {
        share(&mut launch.sizes.iter().flat_map(|size| size.round_trips.iter().chain(&size.stream)))
    });
    median(shares)
}

/// Says why counters are missing.
fn refused(found: &Utilisation) -> Option<Doubt> {
    let why = found.launches.iter().find_map(|launch| launch.refused.as_ref())?;
    Some(Doubt::new("no_counters", format!("counters of the threads are missing: {why}")))
}

/// Returns the utilisation of both sides, which must be precise to a share of itself, or of one processor if
/// it is small.
pub(crate) fn wanted(_parameters: &Parameters, found: &Utilisation, precision: f64) -> Vec<Wanted> {
    let sides = all(found).flat_map(|(name, costs)| {
        costs.sides().map(|(side, of)| (format!("utilisation of the {side}, {name}"), of.busy.share))
    });
    let known = sides.filter_map(|(name, share)| Some((name, share.value?, share.ci)));
    known
        .map(|(name, value, ci)| Wanted {
            name,
            value,
            ci,
            half_width: (precision * value.abs()).max(NEGLIGIBLE),
        })
        .collect()
}
