//! Where the library, the machine or the run do not allow a figure to be taken at its word.

use super::data::RegistrationLaunch;
use super::record::{Registration, SizeCosts};
use crate::machine::{CLOCK_IS_FINE, preempted};
use crate::precision::{imprecise, too_few_launches};
use crate::record::doubt::Doubt;
use crate::record::parameter::Parameter;
use crate::show::{Bytes, Number, Percent, Time};
use crate::stats::median;

/// Whoever pins pages takes more time for so many times as many of them,
const PAGES_THAT_TELL: usize = 64;
/// by this factor at least, and by this much for each page, which may be a part of a huge one. Less is what
/// caches do that are cold after a large region was touched.
const GROWS: f64 = 2.0;
const PINNING_NS: f64 = 0.1;
/// Registering again is much cheaper than for the first time below this share.
const KEPT: f64 = 0.5;
/// What a library saves for each page by keeping it grows with the pages: of two sizes far apart at least by
/// this share of what they differ by. What a processor's caches save is the same for all large regions.
const IN_PROPORTION: f64 = 0.6;
/// Registering again what is kept takes no more than so many hits.
const HIT: f64 = 2.0;
/// The cost of reading the clock, which is taken off, is known to this share of it: no figure is known better.
const CLOCK_IS_KNOWN: f64 = 0.05;
/// No clock is finer, in nanoseconds.
const GRAIN_NS: f64 = 1e-3;

/// Where the figures mean something else than what they are called, or are not known well.
pub(super) fn find(
    launches: &[RegistrationLaunch],
    registration: &Registration,
    precision: f64,
) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    doubts.extend(lock_refused(registration));
    doubts.extend(not_pinned(registration));
    doubts.extend(kept(registration));
    doubts.extend(huge_pages(registration));
    doubts.extend(coarse_clock(launches, registration));
    doubts.extend(preempted("process", launches.iter().map(|l| (l.preemptions, l.took_ns))));
    doubts.extend(doubt_precision(launches, registration, precision));
    doubts
}

/// The system refuses to lock more than a process may.
fn lock_refused(registration: &Registration) -> Option<Doubt> {
    let is_refused =
        |size: &&SizeCosts| size.lock.value_ns.is_none() || size.lock_first_touch.value_ns.is_none();
    let first = registration.sizes.iter().find(is_refused)?;
    let limit = registration.system.lock_limit_bytes.map_or("no limit is set".into(), |bytes| {
        format!("RLIMIT_MEMLOCK is {} (ulimit -l)", Bytes(usize::try_from(bytes).unwrap_or(usize::MAX)))
    });
    let text = format!("the system refused to lock {} and more: {limit}", Bytes(first.size_bytes));
    Some(Doubt::about("lock_refused", "lock", text))
}

/// The largest size, and the largest of a page at most, where there are so many pages between them
/// that a library which sees to each of them is found out.
fn far_apart(registration: &Registration) -> Option<(&SizeCosts, &SizeCosts)> {
    let page = registration.system.page_bytes.max(1);
    let large = registration.sizes.last()?;
    let small = registration.sizes.iter().rev().find(|size| size.size_bytes <= page)?;
    (large.size_bytes / page >= PAGES_THAT_TELL).then_some((small, large))
}

fn pages(registration: &Registration, size: &SizeCosts) -> f64 {
    (size.size_bytes / registration.system.page_bytes.max(1)) as f64
}

/// A library that pins pages takes time for each of them.
fn not_pinned(registration: &Registration) -> Option<Doubt> {
    let (small, large) = far_apart(registration)?;
    let (of_small, of_large) = (small.touched.value_ns?, large.touched.value_ns?);
    let grows =
        of_large >= GROWS * of_small && of_large - of_small >= PINNING_NS * pages(registration, large);
    (!grows).then(|| {
        let text = format!(
            "to register {} takes {}, and {} takes {}: pages are not pinned when they are registered, and what \
             that costs comes with transfers, if at all",
            Bytes(large.size_bytes),
            Time(of_large),
            Bytes(small.size_bytes),
            Time(of_small)
        );
        Doubt::about("not_pinned", "touched", text)
    })
}

/// A library may keep what is deregistered, and unpin it when it likes. Registering again is then much
/// cheaper than for the first time. So it is for the processor's caches, which are cold after a large region
/// was touched: what they save is told apart by its amount, by how it grows with the size, and by small
/// regions, which are in the caches.
fn kept(registration: &Registration) -> Option<Doubt> {
    let large = registration.sizes.last()?;
    let is_more_than_caches = || {
        let (again, touched) = (large.again.value_ns?, large.touched.value_ns?);
        Some(touched - again > PINNING_NS * pages(registration, large))
    };
    let by_size = is_much_cheaper(large)
        && (is_more_than_caches() == Some(true) || grows_with_pages(registration) == Some(true));
    let page = registration.system.page_bytes.max(1);
    let small = registration.sizes.iter().rev().find(|size| size.size_bytes <= page);
    let of = small.filter(|small| is_much_cheaper(small)).or(by_size.then_some(large))?;
    let share = of.again.value_ns? / of.touched.value_ns?;
    let text = format!(
        "to register {} again takes {} of the first time: the library keeps what is deregistered, so that \
         deregistering does not say what it costs to let go of memory",
        Bytes(of.size_bytes),
        Percent(share)
    );
    Some(Doubt::about("kept_after_deregistering", "again", text))
}

/// Whether registering again takes much less than for the first time, by their intervals where there are any.
fn is_much_cheaper(size: &SizeCosts) -> bool {
    let ends = |cost: &Parameter| Some((cost.value_ns?, cost.ci_ns));
    let (Some((again, again_ci)), Some((touched, touched_ci))) = (ends(&size.again), ends(&size.touched))
    else {
        return false;
    };
    let (most, least) = (again_ci.map_or(again, |ci| ci.hi), touched_ci.map_or(touched, |ci| ci.lo));
    most < KEPT * least
}

/// Whether registering again is a hit, and saves more for more pages, in proportion: seen at the largest size
/// and the next two.
fn grows_with_pages(registration: &Registration) -> Option<bool> {
    let [.., smallest, middle, largest] = &registration.sizes[..] else { return None };
    let is_hit = largest.again.value_ns? <= HIT * largest.cached.value_ns?;
    let saved = |size: &SizeCosts| Some(size.touched.value_ns? - size.again.value_ns?);
    let pages = |size: &SizeCosts| pages(registration, size);
    let slope = (saved(middle)? - saved(smallest)?) / (pages(middle) - pages(smallest));
    let more = (saved(largest)? - saved(middle)?) / (slope * (pages(largest) - pages(middle)));
    Some(is_hit && slope > 0.0 && (IN_PROPORTION..1.0 / IN_PROPORTION).contains(&more))
}

fn huge_pages(registration: &Registration) -> Option<Doubt> {
    let is_always = registration.system.huge_pages.as_deref() == Some("always");
    is_always.then(|| {
        let text =
            "transparent huge pages are always on: regions of several MiB may come in pages of 2 MiB, which \
                    cost less to make, to pin and to lock"
                .into();
        Doubt::new("huge_pages", text)
    })
}

fn median_timer(launches: &[RegistrationLaunch]) -> f64 {
    median(launches.iter().map(|launch| launch.timer_ns))
}

fn coarse_clock(launches: &[RegistrationLaunch], registration: &Registration) -> Option<Doubt> {
    let timer = median_timer(launches);
    let costs = costs(registration);
    let short = costs.iter().filter(|(_, p)| p.value_ns.is_some_and(|ns| ns < CLOCK_IS_FINE * timer)).count();
    (short > 0).then(|| {
        let text = format!(
            "{short} of {} figures are less than {} readings of the clock, of which one takes {} and is taken off",
            costs.len(),
            Number(CLOCK_IS_FINE),
            Time(timer)
        );
        Doubt::new("clock_is_coarse", text)
    })
}

/// All figures, with what they are about.
fn costs(registration: &Registration) -> Vec<(String, &Parameter)> {
    let of_sizes = registration.sizes.iter().flat_map(|size| {
        size.times().map(|(name, cost)| (format!("{name} of {}", Bytes(size.size_bytes)), cost))
    });
    let fixed = registration.fixed.iter().map(|fixed| (fixed.name.clone(), &fixed.cost));
    of_sizes.chain(fixed).filter(|(_, cost)| cost.value_ns.is_some()).collect()
}

/// How many times as wide as asked for a figure is. A figure of nothing has no share of itself: none has to
/// be known better than the clock tells, `finest_ns`.
fn excess(cost: &Parameter, precision: f64, finest_ns: f64) -> f64 {
    let excess = || Some(cost.ci_ns?.half_width() / (precision * cost.value_ns?.abs()).max(finest_ns));
    excess().unwrap_or(f64::INFINITY)
}

/// The half-width below which the clock tells nothing.
fn finest_ns(launches: &[RegistrationLaunch]) -> f64 {
    let timer = median_timer(launches);
    if timer > 0.0 { (CLOCK_IS_KNOWN * timer).max(GRAIN_NS) } else { GRAIN_NS }
}

/// Whether every figure that there is is known as precisely as asked for, or as the clock tells.
pub fn is_precise(launches: &[RegistrationLaunch], registration: &Registration, precision: f64) -> bool {
    let finest = finest_ns(launches);
    costs(registration).iter().all(|(_, cost)| excess(cost, precision, finest) <= 1.0)
}

fn doubt_precision(
    launches: &[RegistrationLaunch],
    registration: &Registration,
    precision: f64,
) -> Option<Doubt> {
    let costs = costs(registration);
    if costs.iter().any(|(_, cost)| cost.ci_ns.is_none()) {
        return Some(too_few_launches(launches.len()));
    }
    let finest = finest_ns(launches);
    let excess = |cost: &Parameter| excess(cost, precision, finest);
    let wide = costs.iter().filter(|(_, cost)| excess(cost) > 1.0);
    let (widest, cost) = wide.clone().max_by(|(_, a), (_, b)| excess(a).total_cmp(&excess(b)))?;
    Some(imprecise((wide.count(), costs.len()), precision, excess(cost), widest))
}
