//! Counters of a thread, by perf_event_open(2).

use netdyno_measure::processor_time::Counters;
use perf_event::events::{Hardware, Software};
use perf_event::{Builder, Counter, CounterData};
use rustix::process::Pid;
use std::{fs, io};

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// The names of the counters, in the order of [`Counters::all`].
const NAMES: [&str; 5] =
    ["cycles", "cycles in the kernel", "instructions", "instructions in the kernel", "switches"];

/// The counters of a thread.
pub(super) struct ThreadCounters {
    /// In the order of [`Counters::all`].
    all: [Option<Counter>; 5],
    /// Those that are missing, with the reason.
    missing: Vec<(&'static str, String)>,
}

/// The events that a counter counts.
#[derive(Clone, Copy)]
enum Where {
    OutsideOfTheKernel,
    InTheKernel,
}

impl ThreadCounters {
    /// Opens the counters that the machine has and that this process may read.
    pub(super) fn open(thread: Pid) -> Self {
        let hardware = |event: Hardware, place: Where| {
            let mut builder = Builder::new(event);
            match place {
                Where::OutsideOfTheKernel => builder.exclude_kernel(true).exclude_user(false),
                Where::InTheKernel => builder.exclude_kernel(false).exclude_user(true),
            };
            started(&mut builder, thread)
        };
        // The switches themselves are events in the kernel.
        let switches = started(
            Builder::new(Software::CONTEXT_SWITCHES).exclude_kernel(false).exclude_user(false),
            thread,
        );
        let all = [
            hardware(Hardware::CPU_CYCLES, Where::OutsideOfTheKernel),
            hardware(Hardware::CPU_CYCLES, Where::InTheKernel),
            hardware(Hardware::INSTRUCTIONS, Where::OutsideOfTheKernel),
            hardware(Hardware::INSTRUCTIONS, Where::InTheKernel),
            switches,
        ];
        let missing = NAMES.into_iter().zip(&all);
        let missing =
            missing.filter_map(|(name, opened)| Some((name, why(opened.as_ref().err()?)))).collect();
        Self { all: all.map(Result::ok), missing }
    }

    /// Returns the counters so far, and the reason why some are missing.
    pub(super) fn read(&mut self) -> (Counters, Option<String>) {
        let counts = std::array::from_fn(|nth| {
            let read = self.all[nth].as_mut()?.read_full().ok()?;
            if was_always_counted(&read) {
                return Some(read.count() as f64);
            }
            self.all[nth] = None;
            self.missing.push((NAMES[nth], "the machine has too few counters for all who count".into()));
            None
        });
        (Counters::of(counts), sentence(&self.missing))
    }
}

/// Reports whether a counter had a counter of the machine all the time. One that took turns with others has counted a
/// part.
fn was_always_counted(read: &CounterData) -> bool {
    read.time_enabled().zip(read.time_running()).is_none_or(|(enabled, running)| running >= enabled)
}

/// Opens a counter of the thread and starts it.
fn started(builder: &mut Builder<'_>, thread: Pid) -> io::Result<Counter> {
    let mut counter = builder.observe_pid(thread.as_raw_nonzero().get()).any_cpu().build()?;
    counter.enable()?;
    Ok(counter)
}

/// Says why a counter cannot be opened.
fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            let paranoid = fs::read_to_string(PARANOID).unwrap_or_default();
            format!("not allowed ({PARANOID} is {})", paranoid.trim())
        }
        io::ErrorKind::NotFound | io::ErrorKind::Unsupported => "this machine has none".into(),
        _ => error.to_string(),
    }
}

/// Returns the missing counters with the reasons; counters with the same reason together.
fn sentence(missing: &[(&str, String)]) -> Option<String> {
    let mut reasons: Vec<&str> = Vec::new();
    for (_, reason) in missing {
        if !reasons.contains(&&reason[..]) {
            reasons.push(reason);
        }
    }
    let part = |reason: &&str| {
        let names: Vec<&str> =
            missing.iter().filter(|(_, other)| other == reason).map(|(name, _)| *name).collect();
        format!("{}: {reason}", names.join(", "))
    };
    let parts: Vec<String> = reasons.iter().map(part).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_that_are_missing_are_named_with_the_reason() {
        let missing = [("a", "none".to_owned()), ("b", "not allowed".to_owned()), ("c", "none".to_owned())];
        assert_eq!(sentence(&missing).unwrap(), "a, c: none; b: not allowed");
        assert_eq!(sentence(&[]), None);
        let refused = why(&io::Error::from(io::ErrorKind::PermissionDenied));
        assert!(refused.contains("perf_event_paranoid is "), "{refused}");
    }

    #[test]
    fn each_counter_is_there_or_has_a_reason() {
        let (counters, refused) = ThreadCounters::open(rustix::thread::gettid()).read();
        assert_eq!(counters.all().iter().any(Option::is_none), refused.is_some(), "{counters:?} {refused:?}");
    }
}
