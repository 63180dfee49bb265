//! The description of the machine in every record, and the warnings about the machine.

use netdyno_clock::calibrate::{Clock, detours};
use netdyno_clock::{place, ticks};
use netdyno_measure::record::{ClockReading, Detours, Doubt, Environment};
use netdyno_measure::show::{Percent, Time};
use std::fs;
use std::thread;
use std::time::Duration;

/// Time to watch a processor for interruptions.
const WATCH: Duration = Duration::from_millis(20);
/// Share of the time lost to interruptions at which the machine counts as noisy.
const NOISY: f64 = 0.01;
/// Load per processor at which the machine counts as busy.
const BUSY: f64 = 0.5;

/// Reads the description of the machine. `cpu` is a processor of the measurement, to be watched.
pub fn environment(cpu: Option<usize>) -> Environment {
    let uname = rustix::system::uname();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags: Vec<String> = field(&cpuinfo, "flags")
        .map(|flags| flags.split(' ').map(str::to_owned).collect())
        .unwrap_or_default();
    let has = |name: &str| flags.iter().any(|flag| flag == name);
    let (mut clock, detours) = watch(cpu);
    clock.is_constant = (!flags.is_empty()).then(|| has("constant_tsc") && has("nonstop_tsc"));
    Environment {
        host: uname.nodename().to_string_lossy().into_owned(),
        kernel: format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
        cpu_model: field(&cpuinfo, "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        cpus_allowed: place::allowed().unwrap_or_default(),
        cpus_online: fs::read_to_string("/sys/devices/system/cpu/online")
            .ok()
            .and_then(|list| place::parse_list(&list))
            .map(|cpus| cpus.len()),
        virtualised: has("hypervisor") || fs::exists("/sys/hypervisor/type").unwrap_or(false),
        governor: cpu.and_then(|cpu| {
            let file = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
            Some(fs::read_to_string(file).ok()?.trim().to_owned())
        }),
        clock,
        load_1min: load(),
        detours,
    }
}

/// Returns netdyno's command line for the record, word by word.
pub fn command_line() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Returns the warnings about the machine.
pub fn doubts(environment: &Environment) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    if environment.clock.is_constant == Some(false) {
        doubts.push(Doubt::new(
            "clock_not_constant",
            "the processor does not promise that its counter runs at one rate and never stops".into(),
        ));
    }
    if let Some(detours) = environment.detours.as_ref().filter(|d| d.lost_share > NOISY) {
        doubts.push(Doubt::new(
            "noisy_machine",
            format!(
                "an idle processor lost {} of its time to interruptions, the longest of {}",
                Percent(detours.lost_share),
                Time(detours.longest_ns)
            ),
        ));
    }
    // The load is that of the whole host, whatever part of it this process may use.
    let busy = environment.load_1min.zip(environment.cpus_online);
    if let Some((load, cpus)) = busy.filter(|(load, cpus)| *load > BUSY * *cpus as f64) {
        doubts.push(Doubt::new(
            "busy_machine",
            format!("the load was {load:.2} on {cpus} processors before measuring"),
        ));
    }
    doubts
}

/// Returns the warnings about the other host.
pub fn doubts_about_peer(environment: &Environment) -> Vec<Doubt> {
    let mut doubts = doubts(environment);
    doubts.iter_mut().for_each(|doubt| doubt.text = format!("on the other host {}", doubt.text));
    doubts
}

/// Calibrates the clock and watches the processor for interruptions. A separate thread does so, because it
/// changes its CPU affinity.
fn watch(cpu: Option<usize>) -> (ClockReading, Option<Detours>) {
    let watched = thread::spawn(move || {
        if let Some(cpu) = cpu {
            // An unusable processor is no error here, because the launch itself reports it.
            let _ = place::pin(cpu);
        }
        let clock = Clock::calibrate();
        (clock, detours(&clock, WATCH))
    });
    let Ok((clock, seen)) = watched.join() else { return (ClockReading::default(), None) };
    let reading = ClockReading {
        source: ticks::SOURCE.into(),
        tick_ns: clock.tick_ns,
        cost_ns: clock.cost_ns,
        resolution_ns: clock.resolution_ns,
        is_constant: None,
    };
    let detours = Detours {
        observed_ns: seen.observed_ns,
        count: seen.count,
        lost_share: seen.lost_ns / seen.observed_ns,
        longest_ns: seen.longest_ns,
    };
    (reading, Some(detours))
}

fn field(cpuinfo: &str, name: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn load() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}
