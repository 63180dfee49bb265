//! The most work that goes behind a message for free: by bisection, with cycles without work in
//! turn, and confirmed below and beyond.

use super::data::{Knee, Look};
use crate::bench::Bench;
use crate::layer::{LayerError, Messenger};
use crate::stats::median;

/// Halvings of the range in which it lies.
const HALVINGS: usize = 6;
/// Batches with and without work in a look.
const BATCHES: usize = 3;
/// Work beyond a whole cycle cannot be free; the search begins with a little more.
const BEYOND: f64 = 1.25;
/// Where the knee is confirmed: a share of it below, and this share of a cycle beyond.
const BELOW: f64 = 0.9;
const ABOVE: f64 = 0.3;

/// Messages of one size, and how precisely they are looked at.
pub(super) struct Search {
    pub(super) bytes: usize,
    /// Cycles in a batch.
    pub(super) cycles: u32,
    /// Share by which a cycle may be longer.
    pub(super) precision: f64,
}

impl Search {
    /// Searches the most work with which a cycle is not longer than without.
    ///
    /// Work beyond it makes a cycle longer by all that it is more, so that the least work that
    /// was found not to be free tells how much of it was.
    pub(super) fn run<M: Messenger>(
        &self,
        bench: &mut Bench<'_, M>,
        random: &mut fastrand::Rng,
    ) -> Result<Knee, LayerError> {
        let mut looks = Vec::new();
        let base_ns = self.cycle(bench, 0.0)?.cycle_ns;
        let (mut free_ns, mut not_free_ns) = (0.0, BEYOND * base_ns);
        let mut least = self.look(bench, not_free_ns, random)?;
        looks.push(least);
        for _ in 0..HALVINGS {
            let middle_ns = f64::midpoint(free_ns, not_free_ns);
            let look = self.look(bench, middle_ns, random)?;
            looks.push(look);
            if self.is_free(&look) {
                free_ns = middle_ns;
            } else {
                (not_free_ns, least) = (middle_ns, look);
            }
        }
        let found_ns = least.free_ns();
        let base_ns = median(looks.iter().map(|look| look.base_ns));
        let below = self.look(bench, BELOW * found_ns.max(0.0), random)?;
        let beyond = self.look(bench, found_ns.max(0.0) + ABOVE * base_ns, random)?;
        looks.extend([below, beyond]);
        let is_same = (beyond.free_ns() - found_ns).abs() <= 2.0 * self.precision * base_ns;
        let is_confirmed = self.is_free(&below) && !self.is_free(&beyond) && is_same;
        Ok(Knee { looks, free_ns: found_ns, base_ns, is_confirmed })
    }

    fn is_free(&self, look: &Look) -> bool {
        look.cycle_ns <= (1.0 + self.precision) * look.base_ns
    }

    fn look<M: Messenger>(
        &self,
        bench: &mut Bench<'_, M>,
        work_ns: f64,
        random: &mut fastrand::Rng,
    ) -> Result<Look, LayerError> {
        let (mut with, mut without, mut alone) = (Vec::new(), Vec::new(), Vec::new());
        let work = bench.layer.work(work_ns);
        // Where the launch's time is up, one must do.
        let batches = if bench.is_overdue(1.0) { 1 } else { BATCHES };
        for _ in 0..batches {
            if random.bool() {
                with.push(self.cycle(bench, work_ns)?);
                without.push(self.cycle(bench, 0.0)?);
            } else {
                without.push(self.cycle(bench, 0.0)?);
                with.push(self.cycle(bench, work_ns)?);
            }
            alone.push(bench.work_alone(work, self.cycles));
        }
        let over = |cycles: &[Cycle], of: fn(&Cycle) -> f64| median(cycles.iter().map(of));
        Ok(Look {
            work_ns: median(alone),
            cycle_ns: over(&with, |cycle| cycle.cycle_ns),
            base_ns: over(&without, |cycle| cycle.cycle_ns),
            wait_ns: Some(over(&with, |cycle| cycle.wait_ns)),
            base_wait_ns: Some(over(&without, |cycle| cycle.wait_ns)),
        })
    }

    fn cycle<M: Messenger>(&self, bench: &mut Bench<'_, M>, work_ns: f64) -> Result<Cycle, LayerError> {
        let work = bench.layer.work(work_ns);
        let cycled = bench.cycles(self.bytes, work, self.cycles)?;
        let cycle_ns = cycled.post_ns + cycled.work_ns + cycled.wait_ns;
        Ok(Cycle { cycle_ns, wait_ns: cycled.wait_ns })
    }
}

/// A cycle, and the waiting in it: means over a batch.
struct Cycle {
    cycle_ns: f64,
    wait_ns: f64,
}
