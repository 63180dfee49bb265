//! The thread that answers in round trips. It sleeps while no run needs it.

use crate::peer_wait::PEER_TIMEOUT;
use netdyno_clock::place::pin;
use netdyno_measure::layer::LayerError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// What the partner is to do, beside the index of a server plus 2.
const SLEEP: usize = 0;
const END: usize = 1;
const FIRST: usize = 2;
/// Polls between two looks at the clock.
const LOOKS: u32 = 1024;

/// One poll of a server: answers what has arrived. Returns whether anything had.
pub(crate) type Server = Box<dyn FnMut() -> Result<bool, LayerError> + Send>;

#[derive(Default)]
struct Shared {
    /// What the partner is to do, and what it does.
    wanted: AtomicUsize,
    done: AtomicUsize,
    failed: Mutex<Option<LayerError>>,
}

impl Shared {
    fn failure(&self) -> Option<LayerError> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The thread. It ends with this value.
pub(crate) struct Partner {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    yields: bool,
}

impl Partner {
    /// Starts the thread on the processor `cpu`, with its servers. Without a processor of its own it yields.
    pub(crate) fn start(cpu: Option<usize>, mut servers: Vec<Server>) -> Result<Self, LayerError> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new().spawn(move || {
            let pinned = cpu.map_or(Ok(()), pin).map_err(LayerError::new);
            if let Err(error) = pinned.and_then(|()| serve(&theirs, &mut servers, cpu.is_none())) {
                *theirs.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                theirs.done.store(END, Ordering::Release);
            }
        });
        let thread = thread.map_err(|error| LayerError(format!("the system starts no thread: {error}")))?;
        Ok(Self { shared, thread: Some(thread), yields: cpu.is_none() })
    }

    /// Makes `work` while the server of this index answers.
    pub(crate) fn answering<T>(
        &self,
        server: usize,
        work: impl FnOnce() -> Result<T, LayerError>,
    ) -> Result<T, LayerError> {
        self.want(FIRST + server)?;
        let result = work();
        let ended = self.want(SLEEP);
        let result = result?;
        ended.map(|()| result)
    }

    /// Polls until `is_there` finds something. `is_there` returns whether it did.
    #[inline(always)]
    pub(crate) fn until(
        &self,
        mut is_there: impl FnMut() -> Result<bool, LayerError>,
    ) -> Result<(), LayerError> {
        let (mut polls, mut until) = (0u32, None);
        while !is_there()? {
            polls = polls.wrapping_add(1);
            if self.yields {
                thread::yield_now();
            }
            if polls.is_multiple_of(LOOKS) {
                self.check(&mut until)?;
            }
        }
        Ok(())
    }

    /// Ends a wait that has lasted too long, or that nobody will end.
    #[cold]
    fn check(&self, until: &mut Option<Instant>) -> Result<(), LayerError> {
        if self.shared.done.load(Ordering::Acquire) == END {
            return Err(self.ended());
        }
        let until = *until.get_or_insert_with(|| Instant::now() + PEER_TIMEOUT);
        if Instant::now() < until {
            return Ok(());
        }
        Err(LayerError(format!("the thread that answers has done nothing for {PEER_TIMEOUT:?}")))
    }

    fn ended(&self) -> LayerError {
        self.shared.failure().unwrap_or_else(|| LayerError::new("the thread that answers has ended"))
    }

    /// Waits until the thread does what is wanted.
    fn want(&self, wanted: usize) -> Result<(), LayerError> {
        self.shared.wanted.store(wanted, Ordering::Release);
        self.thread.iter().for_each(|thread| thread.thread().unpark());
        let is_so = || self.shared.done.load(Ordering::Acquire) == wanted;
        let mut until = None;
        while !is_so() {
            thread::yield_now();
            self.check(&mut until)?;
        }
        Ok(())
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        self.shared.wanted.store(END, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the thread was reported as the end of its answers.
            let _ = thread.join();
        }
    }
}

/// Does what is wanted, until the end is.
fn serve(shared: &Shared, servers: &mut [Server], yields: bool) -> Result<(), LayerError> {
    loop {
        let wanted = shared.wanted.load(Ordering::Acquire);
        if shared.done.load(Ordering::Relaxed) != wanted {
            shared.done.store(wanted, Ordering::Release);
        }
        match wanted {
            END => return Ok(()),
            SLEEP => thread::park(),
            _ => {
                let server = servers.get_mut(wanted - FIRST);
                let server = server.ok_or_else(|| LayerError::new("there is no such server"))?;
                if !server()? && yields {
                    thread::yield_now();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wanted_server_answers_until_the_work_is_done() {
        let counts = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        let server = |count: &Arc<AtomicUsize>| {
            let count = Arc::clone(count);
            Box::new(move || Ok(count.fetch_add(1, Ordering::Relaxed) > 0)) as Server
        };
        let partner = Partner::start(None, counts.iter().map(server).collect()).unwrap();
        let has_served = || Ok(counts[1].load(Ordering::Relaxed) > 5);
        partner.answering(1, || partner.until(has_served)).unwrap();
        let after = counts[1].load(Ordering::Relaxed);
        thread::yield_now();
        assert_eq!((counts[0].load(Ordering::Relaxed), counts[1].load(Ordering::Relaxed)), (0, after));
    }

    #[test]
    fn a_server_that_fails_ends_the_wait() {
        let failing: Server = Box::new(|| Err(LayerError::new("the wire is cut")));
        let partner = Partner::start(None, vec![failing]).unwrap();
        let error = partner.answering(0, || partner.until(|| Ok(false))).unwrap_err();
        assert_eq!(error.to_string(), "the wire is cut");
    }
}
