//! An endpoint with a progress thread.

use super::endpoint::Endpoint;
use super::error::PeerLost;
use netdyno_host::progress::{self, Progress};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// An endpoint with the state of its handlers, as a progress thread drives it.
pub struct Driven<S> {
    /// The endpoint. Over shared memory its configuration has [`Config::is_woken`](super::Config::is_woken),
    /// or it blocks; otherwise the thread polls without a pause.
    pub endpoint: Endpoint<S>,
    /// The state of its handlers.
    pub state: S,
}

/// A progress thread: it handles messages while the program computes. The kernel wakes it for each message
/// that finds it asleep.
///
/// Start it when all ports are open. The program calls the endpoint under [`ProgressThread::lock`]; it need
/// not poll. Handlers run in the thread, or in a call of the program. The loss of a peer that the thread
/// finds is returned by the next [`ProgressThread::lock`] or [`Guard::wait`](progress::Guard::wait).
///
/// ```
/// use netdyno_stack::am::{Config, Driven, Endpoint, Handlers, ProgressThread, Wire};
/// use std::time::Duration;
///
/// let mut handlers = Handlers::<u64>::new();
/// handlers.on_request(0, |handled, request| {
///     *handled += 1;
///     let words = request.words();
///     request.reply(0, words);
/// });
/// handlers.on_reply(0, |answers, _| *answers += 1);
/// let config = Config::new().is_woken(true);
/// let (mut a, mut b) = (Endpoint::new(handlers.clone(), config)?, Endpoint::new(handlers, config)?);
/// let (port_a, port_b) = (a.open_port(Wire::Shm)?, b.open_port(Wire::Shm)?);
/// let (address_a, address_b) = (port_a.address(), port_b.address());
/// let to_b = a.connect(port_a, &address_b)?;
/// b.connect(port_b, &address_a)?;
///
/// // b answers without a call of its program.
/// let b = ProgressThread::start(Driven { endpoint: b, state: 0 })?;
/// let a = ProgressThread::start(Driven { endpoint: a, state: 0 })?;
/// let mut guard = a.lock()?;
/// let Driven { endpoint, state } = &mut *guard;
/// endpoint.request(state, to_b, 0, [1, 2])?;
/// while guard.state == 0 {
///     guard = guard.wait(Duration::from_secs(1))?;
/// }
/// drop(guard);
/// assert_eq!(b.stop()?.state, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type ProgressThread<S> = progress::ProgressThread<Driven<S>>;

impl<S: Send + 'static> Progress for Driven<S> {
    type Error = PeerLost;

    fn progress(&mut self) -> Result<bool, PeerLost> {
        // Room in a window is progress too: a program may wait for it.
        let handled = self.endpoint.poll(&mut self.state)?;
        Ok(self.endpoint.take_untold_room() || handled > 0)
    }

    fn prepare_sleep(&mut self) -> Duration {
        self.endpoint.until_due()
    }

    fn cancel_sleep(&mut self) {
        self.endpoint.cancel_sleep();
    }

    fn must_end_sleep(&mut self, left: Duration) -> bool {
        self.endpoint.must_end_sleep(left)
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.endpoint.as_fd()
    }
}
