//! The procedure of one launch.
//!
//! The first launch chooses the sizes and the numbers of messages between two looks at the clock; later launches
//! use the same. Then each launch makes passes over all windows, in another order every time, until the time is
//! up. The windows are, for each size n,
//!
//! * round trips with n bytes both ways, one after the other;
//! * a stream of requests with n bytes and small replies. While the window of the layer is full, the requester
//!   waits for a reply;
//!
//! and windows in which nothing is sent and the requester sleeps. The accounts of both sides are read before and
//! after each window. The requester waits by the layer's own way to wait only, and never polls.

use super::data::{STEADY_TRIPS, UtilisationLaunch, UtilisationShape, UtilisationSizeData, Window};
use crate::bench::Bench;
use crate::completion::data::CompletionSizeShape;
use crate::completion::pattern::{SMALL, WINDOWS_AT_LEAST, pilot};
use crate::layer::{LayerError, SizedRequester};
use crate::powers;
use crate::processor_time::{Accounts, MachineTimes};
use crate::stats::median;
use serde::{Deserialize, Serialize};

/// The shortest and the longest window. Processors are accounted for in steps of 10 ms.
const WINDOW_NS: (f64, f64) = (20e6, 250e6);
/// The longest stream. A stream of larger messages has fewer round trips.
const LONGEST_STREAM_NS: f64 = 1e9;
/// Round trips of short messages from a quiet layer, before a stream. A message is long from this time on.
const ALONE_TRIPS: usize = 9;
const LONG_NS: f64 = 5e6;
/// Round trips of a window in virtual time.
const VIRTUAL_TRIPS: u64 = 200;
/// Length of an idle window in virtual time.
const VIRTUAL_IDLE_NS: f64 = 1e6;
/// Idle windows in a pass.
const IDLE_WINDOWS: usize = 2;
/// The largest number of passes.
const PASSES_AT_MOST: usize = 20;
/// Passes in virtual time, which has no ticks.
const VIRTUAL_PASSES: usize = 1;

/// The plan of one launch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UtilisationPlan {
    /// The index in the order of launches.
    pub launch: usize,
    /// Sizes and numbers of messages, if an earlier launch of the run chose them.
    pub shape: Option<UtilisationShape>,
    /// The largest size wanted, in bytes.
    pub largest_bytes: usize,
    /// Time budget of the whole launch, on the layer's clock.
    pub budget_ns: f64,
    /// Seed of the order of the windows.
    pub seed: u64,
}

/// The subject of a window.
#[derive(Clone, Copy, Debug)]
enum Cell {
    Idle,
    RoundTrips(usize),
    Stream(usize),
}

/// Runs one launch over `requester`. `progress` receives the share that is done.
///
/// # Errors
/// Returns an error if the layer fails, or if the accounts cannot be read.
pub fn run<R: SizedRequester>(
    requester: &mut R,
    plan: &UtilisationPlan,
    progress: &mut dyn FnMut(f64),
) -> Result<UtilisationLaunch, LayerError> {
    let largest = plan.largest_bytes.min(requester.largest());
    let mut bench = Bench::new(requester, plan.budget_ns);
    bench.set_sizes(SMALL, SMALL, 0.0)?;
    bench.warm_up()?;
    let shape = match &plan.shape {
        Some(shape) => shape.clone(),
        None => choose(&mut bench, largest, progress)?,
    };
    let accounts = bench.layer.accounts()?;
    let mut data = UtilisationLaunch {
        launch: plan.launch,
        one_machine: accounts.one_machine,
        tick_ns: [accounts.requester.tick_ns, accounts.replier.tick_ns],
        refused: accounts.requester.refused.or(accounts.replier.refused),
        sizes: vec![UtilisationSizeData::default(); shape.sizes.len()],
        shape,
        ..UtilisationLaunch::default()
    };
    let sizes = 0..data.sizes.len();
    let mut cells: Vec<Cell> = sizes.flat_map(|at| [Cell::RoundTrips(at), Cell::Stream(at)]).collect();
    cells.extend([Cell::Idle; IDLE_WINDOWS]);
    let window_ns = (plan.budget_ns / cells.len() as f64).clamp(WINDOW_NS.0, WINDOW_NS.1);
    let passes = if bench.layer.is_virtual() { VIRTUAL_PASSES } else { PASSES_AT_MOST };
    let mut random = fastrand::Rng::with_seed(plan.seed);
    bench.pass_over(&mut cells, passes, &mut random, progress, |bench, &cell, _, _| {
        measure(bench, cell, window_ns, &mut data)
    })?;
    data.took_ns = bench.took_ns();
    progress(1.0);
    Ok(data)
}

/// Chooses sizes and numbers of messages for all launches.
fn choose<R: SizedRequester>(
    bench: &mut Bench<'_, R>,
    largest: usize,
    progress: &mut dyn FnMut(f64),
) -> Result<UtilisationShape, LayerError> {
    let sizes = powers::up_to(largest).into_iter().map(|size| pilot(bench, size, WINDOWS_AT_LEAST, progress));
    Ok(UtilisationShape { sizes: sizes.collect::<Result<_, _>>()? })
}

/// Adds a window of `cell` to `data`.
fn measure<R: SizedRequester>(
    bench: &mut Bench<'_, R>,
    cell: Cell,
    window_ns: f64,
    data: &mut UtilisationLaunch,
) -> Result<(), LayerError> {
    match cell {
        Cell::Idle => {
            bench.drain()?;
            let idle_ns = if bench.layer.is_virtual() { VIRTUAL_IDLE_NS } else { window_ns };
            data.idle.push(window(bench, |bench| {
                bench.layer.sleep(idle_ns);
                Ok(0)
            })?);
        }
        Cell::RoundTrips(at) => {
            let CompletionSizeShape { size_bytes, trips, .. } = data.shape.sizes[at];
            // The first round trip after a change of size is not representative.
            bench.set_sizes(size_bytes, size_bytes, 0.0)?;
            bench.trip()?;
            let trips = trips.max(1);
            data.sizes[at].round_trips.push(window(bench, |bench| round_trips(bench, trips, window_ns))?);
        }
        Cell::Stream(at) => {
            let CompletionSizeShape { size_bytes, row, window: in_flight, .. } = data.shape.sizes[at];
            bench.set_sizes(size_bytes, SMALL, 0.0)?;
            // The shape may come from a record, or from a launch whose layer had another window.
            bench.set_window(in_flight.clamp(1, bench.layer.max_window()));
            bench.trip()?;
            let alone_ns = alone_ns(bench)?;
            let window = window(bench, |bench| stream(bench, row.max(1), alone_ns, window_ns))?;
            data.sizes[at].alone_ns.push(alone_ns);
            data.sizes[at].stream.push(window);
        }
    }
    Ok(())
}

/// Returns the time of a round trip from a quiet layer. Several of short messages are made, because one may be
/// interrupted.
fn alone_ns<R: SizedRequester>(bench: &mut Bench<'_, R>) -> Result<f64, LayerError> {
    let first_ns = bench.round_trip()?;
    if first_ns > LONG_NS {
        return Ok(first_ns);
    }
    let others = (1..ALONE_TRIPS).map(|_| bench.round_trip()).collect::<Result<Vec<_>, _>>()?;
    Ok(median(others.into_iter().chain([first_ns])))
}

/// Makes round trips for `window_ns`, and looks at the clock after every `trips`. Returns their number.
fn round_trips<R: SizedRequester>(
    bench: &mut Bench<'_, R>,
    trips: u64,
    window_ns: f64,
) -> Result<u64, LayerError> {
    let (start, mut messages) = (bench.layer.now(), 0);
    loop {
        for _ in 0..trips {
            bench.trip()?;
        }
        messages += trips;
        let is_over = match bench.layer.is_virtual() {
            true => messages >= VIRTUAL_TRIPS,
            false => bench.since(start) >= window_ns,
        };
        if is_over {
            return Ok(messages);
        }
    }
}

/// Sends a stream for `window_ns`, and for as many round trips as are needed. Looks at the clock after every `row`
/// messages. Returns the number of messages.
fn stream<R: SizedRequester>(
    bench: &mut Bench<'_, R>,
    row: u64,
    alone_ns: f64,
    window_ns: f64,
) -> Result<u64, LayerError> {
    let steady_ns = STEADY_TRIPS * alone_ns;
    let least_ns = match bench.layer.is_virtual() {
        true => steady_ns,
        false => window_ns.max(steady_ns.min(LONGEST_STREAM_NS)),
    };
    let (start, mut messages) = (bench.layer.now(), 0);
    while messages == 0 || bench.since(start) < least_ns {
        for _ in 0..row {
            bench.issue()?;
        }
        messages += row;
    }
    bench.drain()?;
    Ok(messages)
}

/// Reads the accounts before and after `work`, which returns its number of messages.
fn window<R: SizedRequester>(
    bench: &mut Bench<'_, R>,
    work: impl FnOnce(&mut Bench<'_, R>) -> Result<u64, LayerError>,
) -> Result<Window, LayerError> {
    let before = bench.layer.accounts()?;
    let messages = work(bench)?;
    let after = bench.layer.accounts()?;
    Ok(between(&before, &after, messages))
}

/// Returns the processor time between two readings.
fn between(before: &Accounts, after: &Accounts, messages: u64) -> Window {
    let sides = [(&before.requester, &after.requester), (&before.replier, &after.replier)];
    // A thread may have moved between the readings. Both of its processors are its own.
    let own = |sides: &[usize]| -> Vec<usize> {
        let cpus = [before.requester.cpu, after.requester.cpu, before.replier.cpu, after.replier.cpu];
        sides.iter().flat_map(|side| [cpus[2 * side], cpus[2 * side + 1]]).flatten().collect()
    };
    let machine = |side: usize, own: &[usize]| -> Option<MachineTimes> {
        let (before, after) = sides[side];
        after.machine.as_ref()?.since(before.machine.as_ref()?, own)
    };
    Window {
        messages,
        requester: after.requester.process - before.requester.process,
        replier: after.replier.process - before.replier.process,
        requester_counters: after.requester.counters - before.requester.counters,
        replier_counters: after.replier.counters - before.replier.counters,
        machine: machine(0, &if after.one_machine { own(&[0, 1]) } else { own(&[0]) }),
        replier_machine: if after.one_machine { None } else { machine(1, &own(&[1])) },
    }
}
