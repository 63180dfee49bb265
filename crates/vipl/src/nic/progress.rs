//! The progress thread of a NIC. It makes progress while the program does not call, and it calls the
//! program's handlers one after the other.
//!
//! ```text
//!   the program calls -------------------------> nap: it only checks whether the calls go on
//!   a thread of the program sleeps on the wire -> doze: it wakes only for timers
//!   neither -----------------------------------> watch: it sleeps on the wire
//! ```

use crate::nic::id::NicId;
use crate::nic::{self, Nic, Sleep};
use crate::wakeup::Wakeup;
use netdyno_host::signals;
use netdyno_stack::vi::ReturnCode;
use rustix::io::Errno;
use std::cell::Cell;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The time without a call after which the progress thread makes progress for the program.
const QUIET: Duration = Duration::from_millis(1);

/// The state of the progress thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Awake,
    Napping,
    Dozing,
    Watching,
}

/// The NIC's handle on its progress thread.
#[derive(Debug)]
pub struct ProgressThread {
    wakeup: Arc<Wakeup>,
    thread: JoinHandle<()>,
    mode: Mode,
    /// The latest time at which the thread wakes by itself, while it watches the wire.
    until: Option<Instant>,
}

impl ProgressThread {
    /// Starts the progress thread of a NIC.
    ///
    /// # Errors
    /// Returns the error of the system if there is no eventfd or thread to be had.
    pub fn start(id: NicId) -> Result<Self, Errno> {
        let wakeup = Wakeup::new()?;
        let own = Arc::clone(&wakeup);
        let thread = thread::Builder::new().name("vipl-progress".to_owned());
        let thread = signals::without_signals(|| thread.spawn(move || run(id, &own)));
        let thread = thread.map_err(|_| Errno::AGAIN)?;
        Ok(Self { wakeup, thread, mode: Mode::Awake, until: None })
    }

    /// Wakes the thread, because there is work for it.
    pub fn ring(&self) {
        self.wakeup.ring();
    }

    /// Ends a doze: the program has called, or its last sleeper has woken. No sleeper may be left on the
    /// wire.
    #[inline]
    pub fn look_up(&mut self) {
        if self.mode == Mode::Dozing {
            self.mode = Mode::Awake;
            self.ring();
        }
    }

    /// Returns whether the thread sleeps on the wire.
    pub fn is_watching(&self) -> bool {
        self.mode == Mode::Watching
    }

    /// Returns the thread's wake-up and the latest time at which it wakes by itself, if it sleeps on the
    /// wire.
    pub fn watching(&mut self) -> Option<(&Arc<Wakeup>, &mut Option<Instant>)> {
        (self.mode == Mode::Watching).then_some((&self.wakeup, &mut self.until))
    }

    /// Waits until the thread has ended. Its NIC is closed.
    pub fn end(self) {
        self.ring();
        // A progress thread may run a handler that closes this NIC, or another one, whose handlers may close the first at
        // the same time. The thread then ends after its handler.
        if handler_of().is_none() {
            // The result of the thread says nothing of use.
            let _ = self.thread.join();
        }
    }
}

/// How the thread sleeps next.
enum Rest {
    Nap,
    Doze(Sleep),
    Watch(Sleep),
}

thread_local! {
    /// The NIC whose progress thread this is.
    static PROGRESSES: Cell<Option<NicId>> = const { Cell::new(None) };
}

/// Returns the NIC whose handlers this thread calls, so that a function of the library is called by one of them.
pub fn handler_of() -> Option<NicId> {
    PROGRESSES.get()
}

fn run(id: NicId, wakeup: &Wakeup) {
    PROGRESSES.set(Some(id));
    let mut seen = None;
    loop {
        while let Some(call) = nic::next_callback(id) {
            call.make();
        }
        let Ok(rest) = nic::visit(id, |nic| Ok(rest(nic, &mut seen))) else { break };
        match rest {
            None => {}
            Some(Rest::Nap) => wakeup.sleep(None, Some(QUIET)),
            Some(Rest::Doze(sleep)) => wakeup.sleep(None, Some(sleep.most)),
            Some(Rest::Watch(sleep)) => wakeup.sleep(Some(sleep.wire.as_fd()), Some(sleep.most)),
        }
        if nic::visit(id, get_up).is_err() {
            break;
        }
    }
    // The NIC may have failed, and the error callback must still be called.
    while let Some(call) = nic::next_callback(id) {
        call.make();
    }
}

/// Decides how to sleep. `seen` holds the number of the program's calls at the last decision. Returns
/// `None` if there is work to do.
fn rest(nic: &mut Nic, seen: &mut Option<u64>) -> Option<Rest> {
    let (mode, rest) = if seen.replace(nic.calls()) != Some(nic.calls()) {
        (Mode::Napping, Rest::Nap)
    } else if nic.has_sleepers() {
        (Mode::Dozing, Rest::Doze(nic.prepare_sleep()))
    } else {
        (Mode::Watching, Rest::Watch(nic.prepare_sleep()))
    };
    if nic.callbacks.are_due() {
        return None;
    }
    let until = if let Rest::Watch(sleep) = &rest { sleep.until() } else { None };
    nic.progress_thread
        .iter_mut()
        .for_each(|progress_thread| (progress_thread.mode, progress_thread.until) = (mode, until));
    Some(rest)
}

fn get_up(nic: &mut Nic) -> Result<(), ReturnCode> {
    let was = nic
        .progress_thread
        .as_mut()
        .map(|progress_thread| std::mem::replace(&mut progress_thread.mode, Mode::Awake));
    // Also after a nap: the program's calls may have been about another VI, or about none.
    if was.is_some() {
        nic.provider.progress();
    }
    Ok(())
}
