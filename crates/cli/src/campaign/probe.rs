//! The probes of a launch. Before and after it they measure the distance between its two processors. During
//! it they measure the processors' speed and the time that the hypervisor took from them.

use crate::launch::bench::Bench;
use netdyno_clock::bounce::{Bounce, bounce};
use netdyno_clock::calibrate::Clock;
use netdyno_clock::pace::Watch;
use netdyno_measure::strata::{Look, Pace, Probe};
use std::fs;
use std::time::Instant;

/// Ticks per second in `/proc/stat`: Linux reports USER_HZ = 100, whatever its internal tick rate.
const TICKS_PER_S: f64 = 100.0;

/// Probes two processors of this host.
#[derive(Clone, Copy, Debug)]
pub struct Prober {
    clock: Clock,
    cpus: (usize, usize),
}

/// The first half of a probe, taken before a launch.
#[derive(Debug)]
pub struct Begun {
    before: Option<Look>,
    stolen_ticks: Option<u64>,
    watch: Watch,
    at: Instant,
}

impl Prober {
    /// Returns a prober of the first two different processors of `bench`. Returns `None` if there are none,
    /// or if the workers may run on several hosts.
    pub fn of(bench: &Bench) -> Option<Self> {
        let &first = bench.cpus.first()?;
        let &second = bench.cpus.iter().find(|&&cpu| cpu != first)?;
        bench.is_of_one_host().then(|| Self { clock: Clock::calibrate(), cpus: (first, second) })
    }

    /// Probes before a launch.
    pub fn begin(&self) -> Begun {
        let before = self.look();
        let watch = Watch::begin(&self.clock, &[self.cpus.0, self.cpus.1]);
        Begun { before, stolen_ticks: self.stolen_ticks(), watch, at: Instant::now() }
    }

    /// Probes after a launch. `launch` is its number in the order; `repeats` counts the launches that were
    /// discarded in its place.
    pub fn end(&self, begun: Begun, launch: usize, repeats: usize) -> Probe {
        let ticks = self.stolen_ticks().zip(begun.stolen_ticks);
        let time_s = 2.0 * begun.at.elapsed().as_secs_f64();
        let stolen_share =
            ticks.map(|(now, then)| now.saturating_sub(then) as f64 / TICKS_PER_S / time_s.max(1e-9));
        let paces = begun.watch.end();
        let paces = paces.into_iter().filter_map(|(cpu, samples_ns)| Pace::of(cpu, samples_ns)).collect();
        Probe { launch, before: begun.before, after: self.look(), stolen_share, paces, repeats }
    }

    /// Measures the distance between the processors. An unusable processor is no error here, because the
    /// launch itself reports it.
    fn look(&self) -> Option<Look> {
        let (a, b) = self.cpus;
        let Bounce { round_trip_ns, lost_share } = bounce(&self.clock, a, b).ok().flatten()?;
        Some(Look { bounce_ns: round_trip_ns, lost_share })
    }

    /// Returns the ticks that the hypervisor gave to other guests, summed over both processors.
    fn stolen_ticks(&self) -> Option<u64> {
        let text = fs::read_to_string("/proc/stat").ok()?;
        Some(stolen(&text, self.cpus.0)? + stolen(&text, self.cpus.1)?)
    }
}

/// Returns the stolen ticks of one processor: the eighth number after its name in `/proc/stat`.
fn stolen(stat: &str, cpu: usize) -> Option<u64> {
    let name = format!("cpu{cpu}");
    let mut fields = stat.lines().map(str::split_whitespace).find_map(|mut fields| {
        let is_it = fields.next() == Some(&name);
        is_it.then_some(fields)
    })?;
    fields.nth(7)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::stolen;

    #[test]
    fn stolen_time_is_the_eighth_number() {
        let stat =
            "cpu  1 2 3 4 5 6 7 80 9 10\ncpu1 1 2 3 4 5 6 7 8 9 10\ncpu10 0 0 0 0 0 0 0 33 0 0\nintr 1\n";
        assert_eq!((stolen(stat, 1), stolen(stat, 10)), (Some(8), Some(33)));
        assert_eq!((stolen(stat, 0), stolen("cpu0 1 2", 0)), (None, None));
    }
}
