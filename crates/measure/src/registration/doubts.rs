//! Warnings about the costs of registration, because of the library, the machine or the run.

use super::data::RegistrationLaunch;
use super::record::{Registration, SizeCosts};
use crate::machine::{coarse_for_some, preempted};
use crate::precision::{self, Timed, Wanted};
use crate::record::doubt::Doubt;
use crate::record::parameter::{Parameter, Parameters};
use crate::show::{Bytes, Percent, Time};
use crate::stats::median;

/// A cost per page must show if the largest size has at least this many pages.
const PAGES_THAT_TELL: usize = 64;
/// A library that pins pages needs time for each page. The time must grow at least by this factor, and at
/// least by this number of nanoseconds for each page. A page may be a part of a huge page. A smaller growth
/// comes from cold caches after a large region was touched.
const GROWS: f64 = 2.0;
const PINNING_NS: f64 = 0.1;
/// No cold cache costs so much for each page that was touched before.
const SURELY_PINNING_NS: f64 = 10.0;
/// Cold caches cost up to this much, however few pages were touched.
const COLD_NS: f64 = 3e3;
/// Registering again is much cheaper than for the first time if it takes less than this share of that time.
const KEPT: f64 = 0.5;
/// The saving of a library that keeps registrations grows with the pages. Between two sizes far apart it
/// grows at least by this share of the difference in pages. The saving through the processor's caches is
/// the same for all large regions.
const IN_PROPORTION: f64 = 0.6;
/// Registering a kept region again takes at most this many times the time of a hit.
const HIT: f64 = 2.0;

/// Returns the warnings: a figure has another meaning than its name says, or is not precise.
pub(super) fn find(parameters: &Parameters, registration: &Registration, precision: f64) -> Vec<Doubt> {
    let launches = &registration.launches;
    let mut doubts = Vec::new();
    doubts.extend(lock_refused(registration));
    doubts.extend(not_pinned(registration));
    doubts.extend(kept(registration));
    doubts.extend(huge_pages(registration));
    doubts.extend(coarse_for_some(&costs(registration), median_timer(launches)));
    doubts.extend(preempted("process", launches.iter().map(|l| (l.preemptions, l.took_ns))));
    doubts.extend(precision::doubt(&wanted(parameters, registration, precision), launches.len(), precision));
    doubts
}

/// Warns if the system refused to lock a region, because of the limit of the process.
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

/// Returns the largest size of at most a page, and the largest size. Returns `None` unless enough pages lie
/// between them to show a cost per page.
fn far_apart(registration: &Registration) -> Option<(&SizeCosts, &SizeCosts)> {
    let page = registration.system.page_bytes.max(1);
    let large = registration.sizes.last()?;
    let small = registration.sizes.iter().rev().find(|size| size.size_bytes <= page)?;
    (large.size_bytes / page >= PAGES_THAT_TELL).then_some((small, large))
}

fn pages(registration: &Registration, size: &SizeCosts) -> f64 {
    (size.size_bytes / registration.system.page_bytes.max(1)) as f64
}

/// Warns if the time to register does not grow with the number of pages: the library then does not pin
/// pages.
fn not_pinned(registration: &Registration) -> Option<Doubt> {
    let (small, large) = far_apart(registration)?;
    let (of_small, of_large) = (small.touched.value_ns?, large.touched.value_ns?);
    let (growth_ns, pages) = (of_large - of_small, pages(registration, large));
    let is_more_than_caches = growth_ns >= PINNING_NS * pages && growth_ns >= COLD_NS;
    let grows =
        growth_ns >= SURELY_PINNING_NS * pages || (of_large >= GROWS * of_small && is_more_than_caches);
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

/// Warns if the library keeps deregistered regions. Registering again is then much cheaper than for the first
/// time. Cold caches after a large region was touched have the same effect. The amount of the saving, its
/// growth with the size, and small regions, which are in the caches, distinguish the two.
fn kept(registration: &Registration) -> Option<Doubt> {
    let large = registration.sizes.last()?;
    let is_more_than_caches = || {
        let (again, touched) = (large.again.value_ns?, large.touched.value_ns?);
        let saved_ns = touched - again;
        Some(saved_ns > PINNING_NS * pages(registration, large) && saved_ns > COLD_NS)
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

/// Reports that registering again takes much less time than for the first time, by the intervals if they
/// are known.
fn is_much_cheaper(size: &SizeCosts) -> bool {
    let ends = |cost: &Parameter| Some((cost.value_ns?, cost.ci_ns));
    let (Some((again, again_ci)), Some((touched, touched_ci))) = (ends(&size.again), ends(&size.touched))
    else {
        return false;
    };
    let (most, least) = (again_ci.map_or(again, |ci| ci.hi), touched_ci.map_or(touched, |ci| ci.lo));
    most < KEPT * least
}

/// Reports that registering again is a hit, and that the saving grows in proportion to the pages, over the
/// three largest sizes that are far apart.
fn grows_with_pages(registration: &Registration) -> Option<bool> {
    let largest = registration.sizes.last()?;
    let middle = far_below(registration, largest)?;
    let smallest = far_below(registration, middle)?;
    let is_hit = largest.again.value_ns? <= HIT * largest.cached.value_ns?;
    let saved = |size: &SizeCosts| Some(size.touched.value_ns? - size.again.value_ns?);
    let pages = |size: &SizeCosts| pages(registration, size);
    let slope = (saved(middle)? - saved(smallest)?) / (pages(middle) - pages(smallest));
    let more = (saved(largest)? - saved(middle)?) / (slope * (pages(largest) - pages(middle)));
    Some(is_hit && slope > 0.0 && (IN_PROPORTION..1.0 / IN_PROPORTION).contains(&more))
}

/// Returns the largest size that is at most half of another one. The difference of two sizes that are close to each other
/// is mostly noise.
fn far_below<'a>(registration: &'a Registration, size: &SizeCosts) -> Option<&'a SizeCosts> {
    registration.sizes.iter().rev().find(|other| other.size_bytes <= size.size_bytes / 2)
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

/// Returns all figures with their names.
fn costs(registration: &Registration) -> Vec<Timed> {
    let of_sizes = registration.sizes.iter().flat_map(|size| {
        size.times().map(|(name, cost)| (format!("{name} of {}", Bytes(size.size_bytes)), cost))
    });
    let fixed = registration.fixed.iter().map(|fixed| (fixed.name.clone(), &fixed.cost));
    of_sizes.chain(fixed).filter_map(|(name, cost)| Timed::of(name, cost, 1.0)).collect()
}

/// Returns all figures, which must be precise to a share of themselves.
pub(crate) fn wanted(_parameters: &Parameters, registration: &Registration, precision: f64) -> Vec<Wanted> {
    precision::to_a_share(costs(registration), precision, median_timer(&registration.launches))
}
