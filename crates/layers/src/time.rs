//! Real time, for the layers between processes.

use netdyno_clock::calibrate::Clock;
use netdyno_clock::{ticks, work};
use netdyno_measure::layer::Work;
use rustix::time::{ClockId, clock_gettime};

/// The processor's time stamp counter, and computation that takes a known time.
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

/// Returns the processor time that the other threads of this process have taken so far, in ns.
pub(crate) fn other_threads_ns() -> f64 {
    let ns = |clock| {
        let time = clock_gettime(clock);
        time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
    };
    ns(ClockId::ProcessCPUTime) - ns(ClockId::ThreadCPUTime)
}

/// Implements [`netdyno_measure::layer::Time`] for a type by its field `time`.
macro_rules! in_real_time {
    ($name:ident $(<$wire:ident: $bound:path>)?) => {
        impl $(<$wire: $bound>)? netdyno_measure::layer::Time for $name $(<$wire>)? {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_other_threads_is_theirs() {
        let work = |ns| {
            let own = || {
                let time = clock_gettime(ClockId::ThreadCPUTime);
                time.tv_sec * 1_000_000_000 + time.tv_nsec
            };
            let until = own() + ns;
            while own() < until {}
        };
        let ns = 5_000_000;
        let before = other_threads_ns();
        std::thread::spawn(move || work(ns)).join().unwrap();
        // The two clocks are not read at once.
        assert!(other_threads_ns() - before > 0.9 * ns as f64);
    }
}
