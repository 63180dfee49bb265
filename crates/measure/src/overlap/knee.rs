//! The most work that a batch of messages hides without cost. The search is a bisection that alternates with
//! cycles without work, and confirms its result below and beyond it.

use super::data::{FreeWork, WorkTrial};
use super::worker::MessageBatch;
use crate::bench::Bench;
use crate::layer::{LayerError, Messenger};
use crate::stats::median;

/// Number of bisection steps.
const HALVINGS: usize = 7;
/// Number of measurements with and without work in one probe.
const MEASUREMENTS: usize = 3;
/// The search begins with work of this many cycles. Work longer than a whole cycle cannot be free. Besides, the finding
/// needs long work, during which the messages of both batches under way arrive: two cycles of it, and more in case that
/// the first cycle was short.
pub(super) const BEYOND: f64 = 2.5;
/// The points at which the knee is confirmed: this share of the knee below it, and this share of a cycle
/// beyond it.
const BELOW: f64 = 0.9;
const ABOVE: f64 = 0.3;

/// The search with messages of one size.
pub(super) struct FreeWorkSearch {
    pub(super) messages: MessageBatch,
    /// Number of cycles in one measurement.
    pub(super) cycles: u32,
    /// The share by which a cycle may grow before its work counts as not free.
    pub(super) precision: f64,
}

impl FreeWorkSearch {
    /// Searches the most work with which a cycle is no longer than without.
    ///
    /// All work beyond that amount lengthens the cycle by its full duration. The smallest work that was not
    /// free therefore shows how much of it was free. Calls `goes_on` before each measurement.
    pub(super) fn run<M: Messenger>(
        &self,
        bench: &mut Bench<'_, M>,
        random: &mut fastrand::Rng,
        goes_on: &mut dyn FnMut(),
    ) -> Result<FreeWork, LayerError> {
        let mut looks = Vec::new();
        goes_on();
        let base_ns = self.cycle(bench, 0.0)?.cycle_ns;
        let (mut free_ns, mut not_free_ns) = (0.0, BEYOND * base_ns);
        let mut least = self.look(bench, not_free_ns, random, goes_on)?;
        looks.push(least);
        for _ in 0..HALVINGS {
            let middle_ns = f64::midpoint(free_ns, not_free_ns);
            let look = self.look(bench, middle_ns, random, goes_on)?;
            looks.push(look);
            if self.is_free(&look) {
                free_ns = middle_ns;
            } else {
                (not_free_ns, least) = (middle_ns, look);
            }
        }
        let found_ns = least.free_ns();
        let base_ns = median(looks.iter().map(|look| look.base_ns));
        let below = self.look(bench, BELOW * found_ns.max(0.0), random, goes_on)?;
        let beyond = self.look(bench, found_ns.max(0.0) + ABOVE * base_ns, random, goes_on)?;
        looks.extend([below, beyond]);
        let is_same = (beyond.free_ns() - found_ns).abs() <= 2.0 * self.precision * base_ns;
        let is_confirmed = self.is_free(&below) && !self.is_free(&beyond) && is_same;
        Ok(FreeWork { looks, free_ns: found_ns, base_ns, is_confirmed })
    }

    fn is_free(&self, look: &WorkTrial) -> bool {
        look.cycle_ns <= (1.0 + self.precision) * look.base_ns
    }

    fn look<M: Messenger>(
        &self,
        bench: &mut Bench<'_, M>,
        work_ns: f64,
        random: &mut fastrand::Rng,
        goes_on: &mut dyn FnMut(),
    ) -> Result<WorkTrial, LayerError> {
        let (mut with, mut without, mut alone) = (Vec::new(), Vec::new(), Vec::new());
        let work = bench.layer.work(work_ns);
        // A single measurement must do once the launch's time is up.
        let count = if bench.is_overdue(1.0) { 1 } else { MEASUREMENTS };
        for _ in 0..count {
            let has_work_first = random.bool();
            for has_work in [has_work_first, !has_work_first] {
                goes_on();
                if has_work {
                    with.push(self.cycle(bench, work_ns)?);
                } else {
                    without.push(self.cycle(bench, 0.0)?);
                }
            }
            alone.push(bench.work_alone(work, self.cycles));
        }
        let over = |cycles: &[Cycle], of: fn(&Cycle) -> f64| median(cycles.iter().map(of));
        Ok(WorkTrial {
            work_ns: median(alone),
            cycle_ns: over(&with, |cycle| cycle.cycle_ns),
            base_ns: over(&without, |cycle| cycle.cycle_ns),
            wait_ns: Some(over(&with, |cycle| cycle.wait_ns)),
            base_wait_ns: Some(over(&without, |cycle| cycle.wait_ns)),
            post_ns: Some(over(&with, |cycle| cycle.post_ns)),
            base_post_ns: Some(over(&without, |cycle| cycle.post_ns)),
        })
    }

    fn cycle<M: Messenger>(&self, bench: &mut Bench<'_, M>, work_ns: f64) -> Result<Cycle, LayerError> {
        let work = bench.layer.work(work_ns);
        let cycled = bench.cycles(self.messages, work, self.cycles)?;
        let cycle_ns = cycled.post_ns + cycled.work_ns + cycled.wait_ns;
        Ok(Cycle { cycle_ns, wait_ns: cycled.wait_ns, post_ns: cycled.post_ns })
    }
}

/// The duration of a cycle, and of the waiting and the posting in it: means over a measurement.
struct Cycle {
    cycle_ns: f64,
    wait_ns: f64,
    post_ns: f64,
}
