//! The accounts of this machine's processors, from `/proc/stat`.

use super::clocks::now_ns;
use netdyno_measure::processor_time::{CpuTimes, MachineAccount};
use rustix::param::clock_ticks_per_second;

/// Returns the accounts so far, or `None` if the system does not tell them. Some systems tell zeros alone.
pub(crate) fn account() -> Option<MachineAccount> {
    let elapsed_ns = now_ns();
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let tick_ns = tick_ns();
    let cpus: Vec<(usize, CpuTimes)> = text.lines().filter_map(|line| cpu(line, tick_ns)).collect();
    let says_something = cpus.iter().any(|(_, times)| *times != CpuTimes::default());
    says_something.then_some(MachineAccount { elapsed_ns, tick_ns, cpus })
}

/// Returns the step of the times that the system tells to processes.
pub(super) fn tick_ns() -> f64 {
    1e9 / clock_ticks_per_second() as f64
}

/// Parses the line of one processor: its number, then its times in ticks. The line of all processors has no number.
/// Old systems tell fewer times.
fn cpu(line: &str, tick_ns: f64) -> Option<(usize, CpuTimes)> {
    let mut words = line.strip_prefix("cpu")?.split(' ');
    let number = words.next()?.parse().ok()?;
    let mut times = words.map(|word| word.parse::<u64>().map_or(0.0, |ticks| ticks as f64 * tick_ns));
    let mut next = || times.next().unwrap_or(0.0);
    let [user, nice, system, idle, waiting, irq, softirq, steal] = std::array::from_fn(|_| next());
    // A processor that waits for a device does nothing.
    let (user_ns, idle_ns) = (user + nice, idle + waiting);
    let times =
        CpuTimes { user_ns, system_ns: system, irq_ns: irq, softirq_ns: softirq, steal_ns: steal, idle_ns };
    Some((number, times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_processor_is_read() {
        let (number, times) = cpu("cpu3 28449 1 4115 17975 145 2 24 13 0 0", 10.0).unwrap();
        assert_eq!((number, times.user_ns, times.system_ns), (3, 284_500.0, 41_150.0));
        assert_eq!((times.idle_ns, times.irq_ns), (181_200.0, 20.0));
        assert_eq!((times.softirq_ns, times.steal_ns), (240.0, 130.0));
        assert_eq!(cpu("cpu0 1 2 3 4", 1.0).unwrap().1.idle_ns, 4.0);
        for line in ["cpu  57787 0 9911 32961", "intr 1 2", "", "cpu", "cpux 1"] {
            assert_eq!(cpu(line, 10.0), None, "{line}");
        }
    }

    #[test]
    fn this_machine_has_processors() {
        let account = account().unwrap();
        assert!(
            account.tick_ns > 0.0 && account.cpus.iter().all(|(_, cpu)| cpu.idle_ns >= 0.0),
            "{account:?}"
        );
    }
}
