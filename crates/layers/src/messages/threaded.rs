//! Slots with a progress thread, which the kernel wakes: messages make progress while the program computes.

use super::exchange::{Exchange, MessageWire};
use super::slots::Slots;
use netdyno_host::progress::{Guard, Progress, ProgressThread};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use netdyno_measure::logp::data::Transport;
use netdyno_measure::order::Order;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// A wire that a thread can sleep on. The calls are those of [`Progress`].
pub(crate) trait SleepingWire: MessageWire + Send + 'static {
    fn prepare_sleep(&mut self) -> Duration;

    fn cancel_sleep(&mut self);

    fn must_end_sleep(&mut self, left: Duration) -> bool;

    fn descriptor(&self) -> BorrowedFd<'_>;
}

impl<W: SleepingWire> Progress for Exchange<W> {
    type Error = LayerError;

    fn progress(&mut self) -> Result<bool, LayerError> {
        Slots::progress(self)
    }

    fn prepare_sleep(&mut self) -> Duration {
        self.wire_mut().prepare_sleep()
    }

    fn cancel_sleep(&mut self) {
        self.wire_mut().cancel_sleep();
    }

    fn must_end_sleep(&mut self, left: Duration) -> bool {
        self.wire_mut().must_end_sleep(left)
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.wire().descriptor()
    }
}

/// The slots of a program, which a progress thread moves on as well.
pub(crate) struct Threaded<W: SleepingWire> {
    thread: ProgressThread<Exchange<W>>,
    wait: Wait,
    largest: usize,
    /// The number of the thread's steps when the program last looked.
    seen: u64,
}

impl<W: SleepingWire> Threaded<W> {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(crate) fn start(exchange: Exchange<W>) -> Result<Self, LayerError> {
        let (wait, largest) = (exchange.waits(), exchange.largest());
        Ok(Self { thread: ProgressThread::start(exchange).map_err(LayerError::new)?, wait, largest, seen: 0 })
    }

    fn lock(&self) -> Result<Guard<'_, Exchange<W>>, LayerError> {
        self.thread.lock()
    }
}

impl<W: SleepingWire> Slots for Threaded<W> {
    fn largest(&self) -> usize {
        self.largest
    }

    fn post_receive(&mut self, slot: usize, bytes: usize) -> Result<(), LayerError> {
        self.lock()?.post_receive(slot, bytes)
    }

    fn post_send(&mut self, slot: usize, bytes: usize, order: Order) -> Result<(), LayerError> {
        self.lock()?.post_send(slot, bytes, order)
    }

    fn has_received(&mut self, slot: usize) -> Result<bool, LayerError> {
        self.lock()?.has_received(slot)
    }

    fn has_sent(&mut self, slot: usize) -> Result<bool, LayerError> {
        self.lock()?.has_sent(slot)
    }

    fn beginning(&self, slot: usize) -> Result<[u8; Order::LEN], LayerError> {
        self.lock()?.beginning(slot)
    }

    /// Makes progress. The progress of the thread since the last call counts as well.
    fn progress(&mut self) -> Result<bool, LayerError> {
        let mut exchange = self.thread.lock()?;
        let before = std::mem::replace(&mut self.seen, exchange.progressed());
        Ok(Slots::progress(&mut *exchange)? || before != self.seen)
    }

    /// A program that does not sleep makes progress itself.
    fn begin_wait(&mut self) -> Result<(), LayerError> {
        if !self.wait.sleeps() {
            self.lock()?.attend();
        }
        Ok(())
    }

    fn end_wait(&mut self) -> Result<(), LayerError> {
        self.lock()?.leave();
        Ok(())
    }

    fn waits(&self) -> Wait {
        self.wait
    }

    /// Sleeps until the thread has made progress.
    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        let exchange = self.lock()?;
        if exchange.progressed() == self.seen {
            exchange.wait(timeout)?;
        }
        Ok(())
    }

    fn on_timeout(error: LayerError) -> LayerError {
        W::on_timeout(error)
    }

    fn transport(&self) -> Option<Transport> {
        self.lock().ok()?.transport()
    }
}
