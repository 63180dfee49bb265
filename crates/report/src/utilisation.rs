//! The figures of `utilisation`, and its findings for the terminal.

use crate::cell::{self, cell, quantity_cell};
use crate::figure::Figure;
use crate::lines::Lines;
use netdyno_measure::overlap::record::Quantity;
use netdyno_measure::record::Status;
use netdyno_measure::show::{Bytes, NONE, number, number_and_interval, without_zeros};
use netdyno_measure::stats::Interval;
use netdyno_measure::utilisation::data::{UtilisationLaunch, Window, are_alike};
use netdyno_measure::utilisation::record::{
    Cost, Costs, MachineCosts, SIDE_COSTS, SideCosts, Utilisation, UtilisationSize,
};

/// Widths of the column of sizes, of a column of shares without an interval, and of the last column.
const SIZE: usize = 9;
const SHARE: usize = 9;
const LAST: usize = 12;
/// Shares without an interval are shown in steps of this: a thousandth of a processor.
const STEP: f64 = 1e-3;
/// The names in comparisons: requester and replier in round trips, then in a stream.
const COMPARED: [[&str; 2]; 2] = [
    ["round_trips.requester.busy.per_message", "round_trips.replier.busy.per_message"],
    ["stream.requester.busy.per_message", "stream.replier.busy.per_message"],
];

/// Writes a row for each size: the work of both sides, then its parts.
pub fn write(lines: &mut Lines, found: &Utilisation) {
    for (nth, title) in [(0, "ping-pong"), (1, "stream")] {
        lines.blank();
        let headings = ["requester", "per message", "replier", "per message"];
        row(lines, title, headings.map(|name| format!("{name:>width$}", width = cell::WIDTH)), "unexplained");
        for size in &found.sizes {
            let Costs { requester, replier, machine, .. } = size.kinds()[nth].1;
            let cells = [requester, replier].map(|side| [share(&side.busy), cell(&side.busy.per_message)]);
            let unexplained = short_share(&machine.unexplained);
            let cells =
                cells.into_iter().flatten().map(|cell| format!("{cell:>width$}", width = cell::WIDTH));
            row(lines, &Bytes(size.size_bytes).to_string(), cells, &unexplained);
        }
        lines.blank();
        let parts = |user: &'static str| [user, "system", "others"].map(|part| format!("{part:>SHARE$}"));
        row(lines, "of which", parts("req user").into_iter().chain(parts("rep user")), "elsewhere");
        for size in &found.sizes {
            let Costs { requester, replier, machine, .. } = size.kinds()[nth].1;
            let cells =
                [requester, replier].map(|side| [&side.user, &side.system, &side.helpers].map(short_share));
            let elsewhere = short_share(&machine.elsewhere);
            let cells = cells.into_iter().flatten().map(|cell| format!("{cell:>SHARE$}"));
            row(lines, &Bytes(size.size_bytes).to_string(), cells, &elsewhere);
        }
        write_replier_machine(lines, found, nth);
    }
    lines.blank();
    let text = format!("shares are of one processor; while nothing is sent, {}", idle(found, |ci| ci));
    lines.wrapped(&text, "  ", "    ");
}

/// Writes the work of the replier's machine, if it has one of its own: the tables before have that of the requester's.
fn write_replier_machine(lines: &mut Lines, found: &Utilisation, nth: usize) {
    let machines: Vec<(usize, &MachineCosts)> = found
        .sizes
        .iter()
        .filter_map(|size| Some((size.size_bytes, size.kinds()[nth].1.replier_machine.as_ref()?)))
        .collect();
    if machines.is_empty() {
        return;
    }
    lines.blank();
    let mut row = |name: &str, unexplained: &str, elsewhere: &str| {
        row(lines, name, [format!("{unexplained:>LAST$}")], elsewhere);
    };
    row("replier's", "unexplained", "elsewhere");
    for (size_bytes, machine) in machines {
        let [unexplained, elsewhere] = [&machine.unexplained, &machine.elsewhere].map(short_share);
        row(&Bytes(size_bytes).to_string(), &unexplained, &elsewhere);
    }
}

/// Says what others do on each machine while nothing is sent. `shown` says how an interval is shown.
pub fn idle(found: &Utilisation, shown: impl Fn(Option<Interval>) -> Option<Interval>) -> String {
    let share =
        |idle: &Quantity| idle.value.map_or(NONE.into(), |value| number_and_interval(value, shown(idle.ci)));
    match &found.replier_idle {
        None => format!("others keep {} processors busy", share(&found.idle)),
        Some(replier) => format!(
            "others keep {} processors busy on the requester's machine and {} on the replier's",
            share(&found.idle),
            share(replier)
        ),
    }
}

fn row(lines: &mut Lines, name: &str, cells: impl IntoIterator<Item = String>, last: &str) {
    let cells: String = cells.into_iter().collect();
    lines.row(&format!("  {name:<SIZE$}{cells}{last:>LAST$}"), "  ", "    ");
}

/// Returns a share with half of its interval, with `≤` if it is a bound.
fn share(cost: &Cost) -> String {
    if is_bound(cost) { short_share(cost) } else { quantity_cell(&cost.share) }
}

/// Returns a share without its interval.
pub fn short_share(cost: &Cost) -> String {
    match cost.share.value.filter(|value| value.is_finite()) {
        Some(value) if is_bound(cost) => format!("≤ {}", plain((value / STEP).ceil())),
        Some(value) => plain((value / STEP).round()),
        None => NONE.into(),
    }
}

/// Returns a share of so many [`STEP`]s as a number, without zeros beyond a step.
fn plain(steps: f64) -> String {
    let text = number(if steps == 0.0 { 0.0 } else { steps * STEP });
    let is_long = text.split_once('.').is_some_and(|(_, digits)| digits.len() > 3);
    if is_long { without_zeros(&text) } else { text }
}

/// Reports whether a cost is only known to be small.
pub fn is_bound(cost: &Cost) -> bool {
    cost.per_message.status == Status::UpperBound
}

/// Returns the utilisation of both sides with the smallest and the largest message, for the line of a stratum.
pub fn of_stratum(found: &Utilisation) -> Vec<String> {
    let ends = found.sizes.first().into_iter().chain(found.sizes.last());
    let sides = ends.flat_map(|size| {
        size.round_trips.sides().into_iter().filter_map(|(name, side)| {
            let Quantity { value, ci, .. } = side.busy.share;
            Some(format!("{name} at {} {}", Bytes(size.size_bytes), number_and_interval(value?, ci)))
        })
    });
    sides.collect()
}

/// Returns the costs of each size.
pub fn figures(found: &Utilisation) -> Vec<Figure> {
    found.sizes.iter().flat_map(of_size).collect()
}

fn of_size(size: &UtilisationSize) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (nth, (kind, costs)) in size.kinds().into_iter().enumerate() {
        for (side, (of, side_costs)) in costs.sides().into_iter().enumerate() {
            figures.extend(of_side(
                &format!("{kind}.{of}"),
                size.size_bytes,
                side_costs,
                COMPARED[nth][side],
            ));
        }
        for (of, machine) in costs.machines() {
            figures.extend(of_machine(&format!("{kind}.{of}"), size.size_bytes, machine));
        }
    }
    figures
}

fn of_side(prefix: &str, size_bytes: usize, side: &SideCosts, compared: &'static str) -> Vec<Figure> {
    let costs = side.all().into_iter().flat_map(|(name, cost)| {
        let mut figures = of_cost(&format!("{prefix}.{name}"), size_bytes, cost);
        if name == SIDE_COSTS[0] {
            figures[1].compared_as = Some(compared.into());
        }
        figures
    });
    let counters = side.counters.iter().map(|counter| {
        let Quantity { value, ci, launches } = counter.per_message;
        let name = format!("{prefix}.{}.per_message", counter.name);
        Figure::median(name, "count", size_bytes, (value, ci), launches)
    });
    costs.chain(counters).collect()
}

fn of_machine(prefix: &str, size_bytes: usize, machine: &MachineCosts) -> Vec<Figure> {
    let costs = machine.all().into_iter();
    costs.flat_map(|(name, cost)| of_cost(&format!("{prefix}.{name}"), size_bytes, cost)).collect()
}

/// Returns a share of one processor, and the same for each message.
fn of_cost(name: &str, size_bytes: usize, cost: &Cost) -> [Figure; 2] {
    let Quantity { value, ci, launches } = cost.share;
    let share = Figure::median(name.to_owned(), "ratio", size_bytes, (value, ci), launches);
    let status = if value.is_some() { cost.per_message.status } else { share.status };
    let each = Figure::time(format!("{name}.per_message"), size_bytes, &cost.per_message);
    [Figure { status, samples: cost.per_message.samples, ..share }, each]
}

/// Returns the processor time for each message of each launch by itself.
pub fn of_launches(found: &Utilisation) -> Vec<Vec<Figure>> {
    found.launches.iter().map(of_launch).collect()
}

fn of_launch(launch: &UtilisationLaunch) -> Vec<Figure> {
    let sizes = launch.shape.sizes.iter().zip(&launch.sizes);
    let figures = sizes.flat_map(|(shape, data)| {
        // A launch whose figure the record does not count has none here.
        let of_kind = |windows: &[Window], is_sound: bool, names: [&'static str; 2]| -> Vec<Figure> {
            let is_counted = [is_sound, is_sound && are_alike(windows)];
            let messages: f64 = windows.iter().map(|window| window.messages as f64).sum();
            let sides: [fn(&Window) -> f64; 2] =
                [|window| window.requester.busy_ns(), |window| window.replier.busy_ns()];
            let figure = |side: usize| {
                let (name, busy_ns) = (names[side], sides[side]);
                let value = Some(windows.iter().map(busy_ns).sum::<f64>() / messages);
                let value = value.filter(|ns| is_counted[side] && ns.is_finite());
                Figure::median(name, "ns", shape.size_bytes, (value, None), 1).compared_as(name)
            };
            [0, 1].map(figure).into()
        };
        [of_kind(&data.round_trips, true, COMPARED[0]), of_kind(&data.stream, data.is_steady(), COMPARED[1])]
            .concat()
    });
    figures.collect()
}
