//! The accounts of this process: one thread that communicates, and all others.

use super::clocks::{now_ns, process_ns, thread_ns};
use super::counters::ThreadCounters;
use super::machine;
use netdyno_measure::layer::LayerError;
use netdyno_measure::processor_time::{Counters, ProcessTimes, SideAccount};
use rustix::process::Pid;
use std::fs;

/// The accounts of this process.
pub(super) struct ProcessAccount {
    thread: Pid,
    counters: ThreadCounters,
    machine_name: String,
}

impl ProcessAccount {
    /// Returns the accounts of this process, in which `thread` communicates.
    pub(super) fn new(thread: Pid) -> Self {
        Self { thread, counters: ThreadCounters::open(thread), machine_name: netdyno_host::machine::name() }
    }

    /// Returns the accounts so far. The time of this thread is left out if it is not the one that communicates,
    /// because it only reads accounts. The clock and the counters are read first, so that they have nothing of the rest.
    pub(super) fn read(&mut self) -> Result<SideAccount, LayerError> {
        let clock = self.clock()?;
        let (counters, refused) = self.counters.read();
        let (system_ns, cpu) = self.status()?;
        Ok(SideAccount {
            process: times(clock, system_ns, self.helpers_ns()?),
            tick_ns: machine::tick_ns(),
            counters,
            refused,
            cpu: Some(cpu),
            machine: machine::account(),
            machine_name: self.machine_name.clone(),
        })
    }

    /// Returns what the process and its thread have spent so far. The clock and the counters are read last, so that
    /// they have all of the rest.
    pub(super) fn spent(&mut self) -> Result<(ProcessTimes, Counters), LayerError> {
        let (helpers_ns, (system_ns, _)) = (self.helpers_ns()?, self.status()?);
        let (counters, _) = self.counters.read();
        Ok((times(self.clock()?, system_ns, helpers_ns), counters))
    }

    /// Returns the time, and the processor time of the thread that communicates.
    fn clock(&self) -> Result<[f64; 2], LayerError> {
        Ok([now_ns(), thread_ns(self.thread)?])
    }

    /// Returns the processor time of all threads but this one and that which communicates.
    fn helpers_ns(&self) -> Result<f64, LayerError> {
        let this = rustix::thread::gettid();
        // The clock of a process has the time of a running thread only as of the last time that it was accounted
        // for. Reading its own clock does that.
        threads().for_each(|thread| drop(thread_ns(thread)));
        let thread_ns_now = thread_ns(self.thread)?;
        let process_ns = process_ns()?;
        let own_ns = if this == self.thread { 0.0 } else { thread_ns(this)? };
        Ok(process_ns - thread_ns_now - own_ns)
    }

    /// Returns the time that the thread spent in the kernel, and the processor on which it ran last.
    fn status(&self) -> Result<(f64, usize), LayerError> {
        let path = format!("/proc/self/task/{}/stat", self.thread);
        let text =
            fs::read_to_string(&path).map_err(|error| LayerError(format!("cannot read {path}: {error}")))?;
        let (ticks, cpu) = status(&text)
            .ok_or_else(|| LayerError(format!("{path} has an unknown form: {}", text.trim())))?;
        Ok((ticks as f64 * machine::tick_ns(), cpu))
    }
}

fn times([elapsed_ns, thread_ns]: [f64; 2], system_ns: f64, helpers_ns: f64) -> ProcessTimes {
    ProcessTimes { elapsed_ns, user_ns: thread_ns - system_ns, system_ns, helpers_ns }
}

/// Returns the ticks in the kernel and the processor from the status of a thread (proc(5)). The name of the
/// program stands in parentheses and may have any characters.
fn status(text: &str) -> Option<(u64, usize)> {
    let (_, after_name) = text.rsplit_once(')')?;
    let mut words = after_name.split_ascii_whitespace();
    let ticks = words.nth(12)?.parse().ok()?;
    let cpu = words.nth(23)?.parse().ok()?;
    Some((ticks, cpu))
}

/// Returns the threads of this process.
pub(super) fn threads() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::resource::{UsageWho, getrusage};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, mpsc};
    use std::thread;

    const WORK_NS: f64 = 60e6;

    fn work() {
        let own = || thread_ns(rustix::thread::gettid()).unwrap();
        let until = own() + WORK_NS;
        while own() < until {}
    }

    fn is_near(found_ns: f64, wanted_ns: f64) -> bool {
        (found_ns - wanted_ns).abs() < 0.1 * WORK_NS
    }

    #[test]
    fn the_time_of_another_thread_is_what_that_thread_is_told() {
        let (to_test, from_worker) = mpsc::channel();
        let (to_worker, go) = mpsc::channel();
        let worker = thread::spawn(move || {
            to_test.send(rustix::thread::gettid()).unwrap();
            go.recv().unwrap();
            work();
            let usage = getrusage(UsageWho::RUSAGE_THREAD).unwrap();
            let ns = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 * 1e9 + time.tv_usec() as f64 * 1e3;
            to_test.send(rustix::thread::gettid()).unwrap();
            go.recv().unwrap();
            (ns(usage.user_time()), ns(usage.system_time()))
        });
        let mut account = ProcessAccount::new(from_worker.recv().unwrap());
        let before = account.read().unwrap();
        to_worker.send(()).unwrap();
        from_worker.recv().unwrap();
        let spent = account.read().unwrap().process - before.process;
        to_worker.send(()).unwrap();
        let (user_ns, system_ns) = worker.join().unwrap();
        assert!(
            is_near(spent.user_ns + spent.system_ns, user_ns + system_ns),
            "{spent:?} {user_ns} {system_ns}"
        );
        // The system accounts for the kernel in ticks.
        let tick_ns = before.tick_ns;
        assert!((spent.system_ns - system_ns).abs() <= 2.0 * tick_ns, "{spent:?} {system_ns}");
        assert!(spent.elapsed_ns >= 0.99 * WORK_NS, "{spent:?}");
    }

    #[test]
    fn helpers_are_threads_that_run_as_well_as_threads_that_have_ended() {
        let mut account = ProcessAccount::new(rustix::thread::gettid());
        let before = account.read().unwrap();
        thread::spawn(work).join().unwrap();
        let ended = account.read().unwrap().process - before.process;
        // Other tests run in other threads of this process.
        assert!(ended.helpers_ns >= 0.99 * WORK_NS, "{ended:?}");
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let (to_test, from_helper) = mpsc::channel();
        let helper = thread::spawn(move || {
            work();
            to_test.send(()).unwrap();
            while !over.load(Ordering::Relaxed) {}
        });
        from_helper.recv().unwrap();
        let running = account.read().unwrap().process - before.process;
        is_over.store(true, Ordering::Relaxed);
        helper.join().unwrap();
        assert!(running.helpers_ns - ended.helpers_ns >= 0.99 * WORK_NS, "{ended:?} {running:?}");
    }

    #[test]
    fn the_status_of_a_thread_is_read() {
        let rest = (0..30).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        // The 15th and the 39th field of proc(5).
        let text = format!("14022 (a) b (cat) R 4 5 6 7 8 9 10 11 12 13 14 15 16 {rest}");
        assert_eq!(status(&text), Some((15, 22)));
        assert_eq!(status("14022 (cat) R 4 5"), None);
        assert_eq!(status(""), None);
    }
}
