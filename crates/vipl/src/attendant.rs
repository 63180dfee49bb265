//! The attendant of a NIC: a thread that makes progress where the program does not call, and that
//! calls the program's handlers, one after the other.
//!
//! ```text
//!   the program calls ------------> nap: it looks whether that goes on, and at nothing else
//!   a thread of it sleeps on the wire -> doze: only what is due in time wakes the attendant
//!   neither ----------------------> watch: it sleeps on the wire
//! ```

use crate::bell::Bell;
use crate::nic::{self, Nic, NicId, Sleep};
use crate::process;
use netdyno_stack::vi::ReturnCode;
use rustix::io::Errno;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time without a call after which the program is left to itself no longer.
const QUIET: Duration = Duration::from_millis(1);

/// What the attendant is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Awake,
    Napping,
    Dozing,
    Watching,
}

/// The attendant, as its NIC knows it.
#[derive(Debug)]
pub struct Attendant {
    bell: Arc<Bell>,
    thread: JoinHandle<()>,
    mode: Mode,
    /// When it wakes at the latest, where it watches.
    until: Option<Instant>,
}

impl Attendant {
    /// Has one come to a NIC.
    ///
    /// # Errors
    /// The system does not give what it needs.
    pub fn start(id: NicId) -> Result<Self, Errno> {
        let bell = Bell::new()?;
        let own = Arc::clone(&bell);
        let thread = thread::Builder::new().name("vipl-attendant".to_owned());
        let thread = process::without_signals(|| thread.spawn(move || attend(id, &own)));
        let thread = thread.map_err(|_| Errno::AGAIN)?;
        Ok(Self { bell, thread, mode: Mode::Awake, until: None })
    }

    /// There is something for it to do.
    pub fn ring(&self) {
        self.bell.ring();
    }

    /// The program calls, or sleeps no longer: what a thread of it does on the wire no longer says enough.
    #[inline]
    pub fn look_up(&mut self) {
        if self.mode == Mode::Dozing {
            self.mode = Mode::Awake;
            self.ring();
        }
    }

    /// Whether it sleeps on the wire.
    pub fn is_watching(&self) -> bool {
        self.mode == Mode::Watching
    }

    /// Its bell, and when it wakes at the latest, where it sleeps on the wire.
    pub fn watching(&mut self) -> Option<(&Arc<Bell>, &mut Option<Instant>)> {
        (self.mode == Mode::Watching).then_some((&self.bell, &mut self.until))
    }

    /// Its NIC is closed: waits until it has gone.
    pub fn end(self) {
        self.ring();
        // A handler that closes its NIC is called by this thread, and the thread goes after it.
        if self.thread.thread().id() != thread::current().id() {
            // There is nothing to learn from how it went.
            let _ = self.thread.join();
        }
    }
}

/// How the attendant sleeps next.
enum Rest {
    Nap,
    Doze(Sleep),
    Watch(Sleep),
}

fn attend(id: NicId, bell: &Bell) {
    let mut seen = None;
    loop {
        while let Some(call) = nic::next_callback(id) {
            call.make();
        }
        let Ok(rest) = nic::visit(id, |nic| Ok(rest(nic, &mut seen))) else { break };
        match rest {
            None => {}
            Some(Rest::Nap) => bell.sleep(None, Some(QUIET)),
            Some(Rest::Doze(sleep)) => bell.sleep(None, Some(sleep.most)),
            Some(Rest::Watch(sleep)) => bell.sleep(Some(sleep.wire.as_fd()), Some(sleep.most)),
        }
        if nic::visit(id, get_up).is_err() {
            break;
        }
    }
    // Of a NIC that has failed the program is still to learn that.
    while let Some(call) = nic::next_callback(id) {
        call.make();
    }
}

/// How to rest, the program having called so often when it was last asked. `None` where there is
/// something to do.
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
    nic.attendant.iter_mut().for_each(|attendant| (attendant.mode, attendant.until) = (mode, until));
    Some(rest)
}

fn get_up(nic: &mut Nic) -> Result<(), ReturnCode> {
    let was = nic.attendant.as_mut().map(|attendant| std::mem::replace(&mut attendant.mode, Mode::Awake));
    // Who has napped has missed nothing: the program looks for itself.
    if matches!(was, Some(Mode::Watching | Mode::Dozing)) {
        nic.provider.progress();
    }
    Ok(())
}
