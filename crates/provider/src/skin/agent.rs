//! The messaging thread of a domain: it makes progress in place of the program's calls.
//!
//! One that stands for a network interface never sleeps, and takes a processor of its own. The others run on the
//! program's processor and sleep until a message comes.

use super::state::Shared;
use super::wait::sleep;
use crate::links::Progress;
use netdyno_host::signals::without_signals;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::hint;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Longest sleep. The thread then looks whether it has to end, and on which processor the program runs.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);
/// The same while messages wait for room.
const LONGEST_SLEEP_WAITING: Duration = Duration::from_millis(1);
/// Looks for messages before a sleep.
const LOOKS: u32 = 4;
/// Looks that find nothing before a thread that never sleeps yields its processor once.
const LOOKS_BEFORE_YIELD: u32 = 64;

/// The messaging thread of a domain.
#[derive(Debug)]
pub struct Agent {
    has_to_end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Agent {
    /// Starts the thread, if the switches want one.
    pub fn start(shared: &Arc<Shared>) -> std::io::Result<Option<Self>> {
        if !shared.switches.has_thread() {
            return Ok(None);
        }
        let has_to_end = Arc::new(AtomicBool::new(false));
        let (of_thread, end) = (shared.clone(), has_to_end.clone());
        let run = move || Engine { shared: of_thread, has_to_end: end }.run();
        let thread = without_signals(|| thread::Builder::new().name("netdyno-engine".into()).spawn(run))?;
        Ok(Some(Self { has_to_end, thread: Some(thread) }))
    }

    /// Ends the thread.
    pub fn end(mut self, shared: &Shared) {
        self.has_to_end.store(true, Ordering::Relaxed);
        shared.lock().engine.links.wake();
        // A panic of the thread has been printed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// What the thread does.
struct Engine {
    shared: Arc<Shared>,
    has_to_end: Arc<AtomicBool>,
}

impl Engine {
    fn run(&self) {
        let switches = self.shared.switches;
        let is_offload = switches.progress == Progress::Offload;
        if [Progress::Interrupt, Progress::Kernel].contains(&switches.progress) {
            prefer();
        }
        let mut placed = None;
        while !self.has_to_end.load(Ordering::Relaxed) {
            // The program may bind itself to a processor later than it opens the domain.
            if placed.is_none_or(|at: Instant| at.elapsed() >= LONGEST_SLEEP) {
                placed = Some(Instant::now());
                place(is_offload, switches.cpu);
            }
            if is_offload { self.poll() } else { self.wait() }
        }
    }

    /// Makes progress for a while, without a sleep.
    fn poll(&self) {
        for _ in 0..LOOKS_BEFORE_YIELD {
            if !self.shared.lock_as_agent().progress() {
                hint::spin_loop();
            }
        }
        // Others may need the processor, if there are too few.
        thread::yield_now();
    }

    /// Makes progress until there is nothing to do, and sleeps until there is.
    fn wait(&self) {
        let mut looks = 0;
        while looks < LOOKS {
            looks = if self.shared.lock_as_agent().progress() { 0 } else { looks + 1 };
        }
        let mut state = self.shared.lock_as_agent();
        let is_waiting = state.engine.is_waiting();
        let Some(descriptor) = state.prepare_agent_sleep() else { return };
        drop(state);
        let most = if is_waiting { LONGEST_SLEEP_WAITING } else { LONGEST_SLEEP };
        // SAFETY: the descriptor is open as long as the domain, which ends this thread first.
        sleep(unsafe { BorrowedFd::borrow_raw(descriptor) }, Some(most));
        self.shared.lock_as_agent().end_agent_sleep();
    }
}

/// Lets this thread run before the program, as an interrupt and the kernel do. Without the right to that it runs beside it.
fn prefer() {
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameter is valid. Zero is this thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) };
}

/// Puts this thread on the processor of this number, or on the processors of the program, or on another one.
fn place(is_elsewhere: bool, cpu: Option<usize>) {
    let Ok(of_program) = sched_getaffinity(Some(rustix::process::getpid())) else { return };
    let wanted = match cpu {
        Some(cpu) => Some(single(cpu)),
        None if is_elsewhere => elsewhere(&of_program),
        None => Some(of_program),
    };
    // Where that is not allowed, the thread stays.
    let _ = wanted.map(|wanted| sched_setaffinity(None, &wanted));
}

/// Returns a processor that a program bound to one does not use; `None` if the program is not bound. Programs that are
/// bound to different ones of the first half of a host's processors get different ones.
fn elsewhere(of_program: &CpuSet) -> Option<CpuSet> {
    // SAFETY: the call has no arguments that could be wrong.
    let all = usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).ok()?;
    let own = (0..CpuSet::MAX_CPU).find(|cpu| of_program.is_set(*cpu))?;
    (of_program.count() == 1 && all > 1).then(|| single((own + all / 2) % all))
}

fn single(cpu: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(cpu);
    set
}
