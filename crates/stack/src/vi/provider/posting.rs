//! Posting of descriptors, and how a program learns of their completion.

use super::Provider;
use crate::vi::local;
use crate::vi::wire::Look;
use netdyno_protocol::vi::*;

/// Calls that look for completions between two checks for signals. A check needs a system call, which
/// messages must not wait for.
const LOOKS_BETWEEN_SIGNALS: u32 = 4096;

impl Provider {
    /// Posts a descriptor. A malformed descriptor is posted as well, and completes with an error.
    ///
    /// # Errors
    /// Returns an error if the descriptor cannot be posted.
    ///
    /// # Safety
    /// The memory that holds the descriptor must meet the conditions of [`Provider::register`].
    #[inline]
    pub unsafe fn post(&mut self, vi: ViHandle, side: Side, at: DescriptorAt) -> Result<(), PostError> {
        if side == Side::Send && self.wire.send_at_once(&mut self.nic, vi, at) {
            return Ok(());
        }
        // SAFETY: as the caller promised, registered memory stays valid until it is deregistered.
        unsafe { self.post_anyhow(vi, side, at) }
    }

    /// Posts a descriptor by the slow path, which handles every descriptor.
    ///
    /// # Safety
    /// As for [`Provider::post`].
    unsafe fn post_anyhow(&mut self, vi: ViHandle, side: Side, at: DescriptorAt) -> Result<(), PostError> {
        self.nic.post(vi, side, at, |room| {
            // SAFETY: `room` bytes are registered there, and the caller has promised that registered
            // bytes are memory.
            let work = unsafe { local::read_descriptor(at, room, side) };
            // SAFETY: an aligned control segment is registered there, or `post` would not have called
            // this.
            unsafe { local::begin(at) };
            work
        })?;
        if side == Side::Send {
            self.wire.send(&mut self.nic, vi);
        }
        self.settle();
        Ok(())
    }

    /// Takes the next completed descriptor of a queue; makes progress if none is completed.
    ///
    /// # Errors
    /// Returns an error if the VI does not exist.
    #[inline]
    pub fn done(&mut self, vi: ViHandle, side: Side) -> Result<Option<Completed>, PostError> {
        self.count_look();
        if let Some(completed) = self.nic.done(vi, side)? {
            return Ok(Some(completed));
        }
        if side == Side::Receive {
            match self.wire.receive_at_once(&mut self.nic, vi) {
                Look::Done(completed) => return Ok(Some(completed)),
                Look::Nothing => return Ok(None),
                Look::Further => {}
            }
        }
        self.wire.receive(&mut self.nic, vi);
        self.settle();
        self.nic.done(vi, side)
    }

    /// Takes the next entry of a completion queue: the queue whose descriptor is done. Makes progress if
    /// there is none.
    ///
    /// # Errors
    /// Returns an error if the completion queue does not exist.
    #[inline]
    pub fn cq_done(&mut self, cq: CqHandle) -> Result<Option<Done>, CqError> {
        self.count_look();
        if let Some(done) = self.nic.cq_done(cq)? {
            return Ok(Some(done));
        }
        self.wire.receive_all(&mut self.nic);
        self.settle();
        self.nic.cq_done(cq)
    }

    /// Requests one notification ([`News::Done`](super::News::Done)) for the next completed descriptor of a queue.
    ///
    /// # Errors
    /// Returns an error if the VI does not exist.
    pub fn notify(&mut self, vi: ViHandle, side: Side) -> Result<(), PostError> {
        self.nic.notify(vi, side)?;
        self.settle();
        Ok(())
    }

    /// Requests one notification ([`News::CqDone`](super::News::CqDone)) for the next entry of a completion queue.
    ///
    /// # Errors
    /// Returns an error if the completion queue does not exist.
    pub fn notify_cq(&mut self, cq: CqHandle) -> Result<(), CqError> {
        self.nic.notify_cq(cq)?;
        self.settle();
        Ok(())
    }

    /// Counts calls, so that a program that always finds a completion still checks for signals.
    #[inline]
    fn count_look(&mut self) {
        self.looks += 1;
        if self.looks >= LOOKS_BETWEEN_SIGNALS {
            self.progress();
        }
    }
}
