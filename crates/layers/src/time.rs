//! Real time, as layers between processes have it.

use netdyno_clock::calibrate::Clock;
use netdyno_clock::{ticks, work};
use netdyno_measure::layer::Work;

/// The processor's counter, and work that takes a known time.
pub(crate) struct RealTime {
    clock: Clock,
    work: work::Work,
}

impl RealTime {
    /// Calibrates both.
    pub(crate) fn calibrate() -> Self {
        let clock = Clock::calibrate();
        let work = work::Work::calibrate(&clock);
        Self { clock, work }
    }

    #[inline(always)]
    pub(crate) fn now(&self) -> u64 {
        ticks::now()
    }

    pub(crate) fn tick_ns(&self) -> f64 {
        self.clock.tick_ns
    }

    pub(crate) fn work(&self, d_ns: f64) -> Work {
        Work(self.work.steps(d_ns))
    }

    #[inline(always)]
    pub(crate) fn compute(&self, work: Work) {
        work::run(work.0);
    }
}

/// Implements [`netdyno_measure::layer::Time`] for a type by its field `time`.
macro_rules! in_real_time {
    ($name:ident<$wire:ident: $bound:path>) => {
        impl<$wire: $bound> netdyno_measure::layer::Time for $name<$wire> {
            #[inline(always)]
            fn now(&mut self) -> u64 {
                self.time.now()
            }

            fn tick_ns(&self) -> f64 {
                self.time.tick_ns()
            }

            fn work(&self, d_ns: f64) -> netdyno_measure::layer::Work {
                self.time.work(d_ns)
            }

            #[inline(always)]
            fn compute(&mut self, work: netdyno_measure::layer::Work) {
                self.time.compute(work);
            }
        }
    };
}
pub(crate) use in_real_time;
