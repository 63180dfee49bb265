//! Processor time: the accounts of two processes and of their machines, and what was spent between two readings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::{Add, Sub};

/// The processor time of one process, so far or in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessTimes {
    /// Time on the clock of the process's machine.
    pub elapsed_ns: f64,
    /// Processor time of the communicating thread outside of the kernel.
    pub user_ns: f64,
    /// Processor time of the communicating thread in the kernel.
    pub system_ns: f64,
    /// Processor time of the process's other threads.
    pub helpers_ns: f64,
}

impl ProcessTimes {
    /// Returns the processor time of all threads, in nanoseconds.
    pub fn busy_ns(&self) -> f64 {
        self.user_ns + self.system_ns + self.helpers_ns
    }

    fn with(self, other: Self, of: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            elapsed_ns: of(self.elapsed_ns, other.elapsed_ns),
            user_ns: of(self.user_ns, other.user_ns),
            system_ns: of(self.system_ns, other.system_ns),
            helpers_ns: of(self.helpers_ns, other.helpers_ns),
        }
    }
}

impl Sub for ProcessTimes {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        self.with(before, |after, before| after - before)
    }
}

impl Add for ProcessTimes {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.with(other, |one, other| one + other)
    }
}

/// The counters of the communicating thread, so far or in a window. A counter is null if the machine does not
/// have it, or if the process may not read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counters {
    /// Cycles outside of the kernel.
    pub user_cycles: Option<f64>,
    /// Cycles in the kernel.
    pub kernel_cycles: Option<f64>,
    /// Instructions outside of the kernel.
    pub user_instructions: Option<f64>,
    /// Instructions in the kernel.
    pub kernel_instructions: Option<f64>,
    /// Context switches.
    pub switches: Option<f64>,
}

/// The names of the counters, in the order of [`Counters::all`].
pub const COUNTERS: [&str; 5] =
    ["user_cycles", "kernel_cycles", "user_instructions", "kernel_instructions", "switches"];

impl Counters {
    /// Returns the counters in the order of [`COUNTERS`].
    pub fn all(&self) -> [Option<f64>; COUNTERS.len()] {
        let Self { user_cycles, kernel_cycles, user_instructions, kernel_instructions, switches } = *self;
        [user_cycles, kernel_cycles, user_instructions, kernel_instructions, switches]
    }

    /// Returns the counters from values in the order of [`COUNTERS`].
    pub fn of(
        [user_cycles, kernel_cycles, user_instructions, kernel_instructions, switches]: [Option<f64>;
            COUNTERS.len()],
    ) -> Self {
        Self { user_cycles, kernel_cycles, user_instructions, kernel_instructions, switches }
    }

    /// Combines each counter with that of `other`, where both have it.
    fn with(self, other: Self, of: fn(f64, f64) -> f64) -> Self {
        let (own, other) = (self.all(), other.all());
        Self::of(std::array::from_fn(|nth| Some(of(own[nth]?, other[nth]?))))
    }
}

impl Sub for Counters {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        self.with(before, |after, before| after - before)
    }
}

impl Add for Counters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.with(other, |one, other| one + other)
    }
}

/// The time of one processor so far, as its system accounts for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuTimes {
    /// Time outside of the kernel.
    pub user_ns: f64,
    /// Time in the kernel, without interrupts.
    pub system_ns: f64,
    /// Time in interrupts.
    pub irq_ns: f64,
    /// Time in soft interrupts.
    pub softirq_ns: f64,
    /// Time that the hypervisor took.
    pub steal_ns: f64,
    /// Time without work.
    pub idle_ns: f64,
}

/// The accounts of one machine so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineAccount {
    /// Time on the machine's clock.
    pub elapsed_ns: f64,
    /// The step of the processors' times.
    pub tick_ns: f64,
    /// The processors, each with its number.
    pub cpus: Vec<(usize, CpuTimes)>,
}

/// The work of one machine in a window, over all of its processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineTimes {
    /// Length of the window.
    pub elapsed_ns: f64,
    /// Number of processors.
    pub processors: usize,
    /// Time of all processors that was neither idle nor taken by the hypervisor.
    pub busy_ns: f64,
    /// Time in interrupts and in soft interrupts.
    pub softirq_ns: f64,
    /// Time in the kernel on processors without a communicating thread; null if there is no such processor.
    pub elsewhere_ns: Option<f64>,
    /// Time that the hypervisor took.
    pub steal_ns: f64,
    /// Time that it took from the processors of the communicating threads. Older records lack it.
    #[serde(default)]
    pub own_steal_ns: Option<f64>,
    /// The step of the times.
    pub tick_ns: f64,
}

impl MachineAccount {
    /// Returns the work since `before`. `own` are the processors of the communicating threads. Returns `None` if
    /// processors came or went, or if one of `own` is not there: a container may number processors its own way.
    pub fn since(&self, before: &Self, own: &[usize]) -> Option<MachineTimes> {
        let is_there = |cpu: &usize| self.cpus.iter().any(|(number, _)| number == cpu);
        if self.cpus.is_empty() || self.cpus.len() != before.cpus.len() || !own.iter().all(is_there) {
            return None;
        }
        let elapsed_ns = self.elapsed_ns - before.elapsed_ns;
        let mut times = MachineTimes {
            elapsed_ns,
            processors: self.cpus.len(),
            tick_ns: self.tick_ns,
            ..MachineTimes::default()
        };
        for ((number, after), (same, before)) in self.cpus.iter().zip(&before.cpus) {
            if number != same {
                return None;
            }
            let spent = |of: fn(&CpuTimes) -> f64| of(after) - of(before);
            let interrupts_ns = spent(|cpu| cpu.irq_ns) + spent(|cpu| cpu.softirq_ns);
            times.busy_ns += elapsed_ns - spent(|cpu| cpu.idle_ns) - spent(|cpu| cpu.steal_ns);
            times.softirq_ns += interrupts_ns;
            times.steal_ns += spent(|cpu| cpu.steal_ns);
            if own.contains(number) {
                *times.own_steal_ns.get_or_insert(0.0) += spent(|cpu| cpu.steal_ns);
            } else {
                *times.elsewhere_ns.get_or_insert(0.0) += spent(|cpu| cpu.system_ns) + interrupts_ns;
            }
        }
        Some(times)
    }

    /// Reports whether `between`, which was read after this account and before `after`, is of the same machine: no
    /// time of a processor lies outside of the two others. Returns `None` if the accounts hold no time.
    pub fn is_of_machine(between: &Self, [before, after]: [&Self; 2]) -> Option<bool> {
        let counts = |account: &Self| -> Vec<f64> {
            // The time without work is left out, because some systems set it back.
            let of = |(_, cpu): &(usize, CpuTimes)| {
                [cpu.user_ns, cpu.system_ns, cpu.irq_ns, cpu.softirq_ns, cpu.steal_ns]
            };
            account.cpus.iter().flat_map(of).collect()
        };
        let numbers =
            |account: &Self| -> Vec<usize> { account.cpus.iter().map(|(number, _)| *number).collect() };
        if [before, between, after].iter().any(|account| counts(account).iter().all(|&ns| ns == 0.0)) {
            return None;
        }
        if numbers(before) != numbers(between) || numbers(between) != numbers(after) {
            return Some(false);
        }
        let step_ns = before.tick_ns.max(between.tick_ns);
        let (before, between, after) = (counts(before), counts(between), counts(after));
        let mut all = before.iter().zip(&between).zip(&after);
        Some(
            all.all(|((before, between), after)| before - step_ns <= *between && *between <= after + step_ns),
        )
    }
}

/// The accounts of one side so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SideAccount {
    /// The process.
    pub process: ProcessTimes,
    /// The step of the times that the thread spent in the kernel and outside of it.
    pub tick_ns: f64,
    /// The counters of the communicating thread.
    pub counters: Counters,
    /// The reason why some counters cannot be read.
    pub refused: Option<String>,
    /// The processor on which the communicating thread ran last.
    pub cpu: Option<usize>,
    /// The machine; `None` if its accounts cannot be read.
    pub machine: Option<MachineAccount>,
    /// The name of the machine. Two containers of a machine share it.
    pub machine_name: String,
}

/// The accounts of both sides so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accounts {
    /// The requester.
    pub requester: SideAccount,
    /// The replier.
    pub replier: SideAccount,
    /// True if both sides read the accounts of one machine.
    pub one_machine: bool,
}

impl Accounts {
    /// Returns the accounts of both sides. The replier's were read after `before` and before `requester`, which are
    /// of the same side. Their times say whether they are of one machine, because a name may be that of several
    /// containers with accounts of their own, and a machine may have several names. Without times the names decide.
    pub fn between(before: &SideAccount, replier: SideAccount, requester: SideAccount) -> Self {
        let is_one = |between: &MachineAccount| {
            MachineAccount::is_of_machine(between, [before.machine.as_ref()?, requester.machine.as_ref()?])
        };
        let is_one = replier.machine.as_ref().and_then(is_one);
        let one_machine = is_one.unwrap_or(requester.machine_name == replier.machine_name);
        Self { requester, replier, one_machine }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(elapsed_ns: f64, cpus: &[(usize, CpuTimes)]) -> MachineAccount {
        MachineAccount { elapsed_ns, tick_ns: 1.0, cpus: cpus.to_vec() }
    }

    #[test]
    fn the_work_of_a_machine_is_what_is_neither_idle_nor_stolen() {
        let cpu = |system_ns, softirq_ns, idle_ns| CpuTimes {
            system_ns,
            softirq_ns,
            idle_ns,
            ..Default::default()
        };
        let before = account(0.0, &[(0, cpu(0.0, 0.0, 0.0)), (3, cpu(5.0, 1.0, 7.0))]);
        let mut last = cpu(8.0, 2.0, 97.0);
        last.steal_ns = 3.0;
        let after = account(100.0, &[(0, cpu(40.0, 10.0, 50.0)), (3, last)]);
        let all = after.since(&before, &[0]).unwrap();
        assert_eq!((all.busy_ns, all.softirq_ns, all.steal_ns), (50.0 + 7.0, 11.0, 3.0));
        assert_eq!((all.elsewhere_ns, all.processors), (Some(4.0), 2));
        assert_eq!(
            (all.own_steal_ns, after.since(&before, &[3]).unwrap().own_steal_ns),
            (Some(0.0), Some(3.0))
        );
        assert_eq!(after.since(&before, &[0, 3]).unwrap().elsewhere_ns, None);
        assert_eq!(after.since(&before, &[0, 8]), None);
        assert_eq!(after.since(&account(0.0, &[(0, cpu(0.0, 0.0, 0.0))]), &[]), None);
    }

    #[test]
    fn the_times_say_whether_two_sides_are_on_one_machine() {
        let side = |name: &str, users: &[f64]| {
            let cpu = |&user_ns: &f64| CpuTimes { user_ns, ..CpuTimes::default() };
            let cpus: Vec<(usize, CpuTimes)> = users.iter().map(cpu).enumerate().collect();
            let machine = (!users.is_empty()).then(|| account(0.0, &cpus));
            SideAccount { machine, machine_name: name.into(), ..SideAccount::default() }
        };
        let own = [side("a", &[50.0, 70.0]), side("a", &[60.0, 70.0])];
        let is_one = |replier: SideAccount| Accounts::between(&own[0], replier, own[1].clone()).one_machine;
        // A machine with another name, and a container of the same name with accounts of its own.
        assert!(is_one(side("b", &[55.0, 70.0])) && is_one(side("b", &[61.0, 69.0])));
        for other in [&[55.0, 75.0][..], &[40.0, 70.0], &[55.0], &[55.0, 70.0, 1.0]] {
            assert!(!is_one(side("a", other)), "{other:?}");
        }
        // Accounts that say nothing.
        for nothing in [&[][..], &[0.0, 0.0]] {
            assert!(is_one(side("a", nothing)) && !is_one(side("b", nothing)), "{nothing:?}");
        }
    }

    #[test]
    fn a_counter_that_is_missing_stays_missing() {
        let counters = |switches| Counters { switches, ..Counters::default() };
        assert_eq!((counters(Some(7.0)) - counters(Some(5.0))).switches, Some(2.0));
        assert_eq!((counters(Some(7.0)) - counters(None)).switches, None);
    }
}
