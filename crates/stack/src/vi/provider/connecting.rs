//! Connections: a program waits for requests and answers them, or requests one itself.

use super::Provider;
use netdyno_host::random;
use netdyno_protocol::frame::vi_signal::{Address, Request};
use netdyno_protocol::vi::*;
use std::time::Duration;

impl Provider {
    /// Starts to wait for one connection request at a discriminator, for at most `timeout`.
    ///
    /// # Errors
    /// Returns an error if the discriminator is not valid, if another user owns it, or if too many wait.
    pub fn wait(
        &mut self,
        discriminator: &[u8],
        timeout: Option<Duration>,
    ) -> Result<WaitHandle, ConnectError> {
        let local = Address { host: self.wire.host(), discriminator: discriminator.to_vec() };
        let until_ns = self.until(timeout);
        self.wire.listen(discriminator)?;
        let wait = self.nic.wait(local, until_ns).inspect_err(|_| self.wire.ignore(discriminator))?;
        self.waits.insert(wait, discriminator.to_vec());
        Ok(wait)
    }

    /// Returns the request that has arrived, which ends the wait; `None` if the wait continues.
    ///
    /// # Errors
    /// Returns `Timeout` if the time is up, and an error if this wait does not exist.
    pub fn waited(&mut self, wait: WaitHandle) -> Result<Option<ConnHandle>, ConnectError> {
        self.progress();
        let now_ns = self.wire.now_ns();
        let waited = self.nic.waited(wait, now_ns);
        if !matches!(waited, Ok(None))
            && let Some(discriminator) = self.waits.remove(&wait)
        {
            self.wire.ignore(&discriminator);
        }
        waited
    }

    /// Returns whether a wait has received a request, which [`Provider::waited`] returns. Makes no progress.
    pub fn has_request(&self, wait: WaitHandle) -> bool {
        self.nic.has_request(wait)
    }

    /// Returns a connection request that has arrived.
    ///
    /// # Errors
    /// Returns an error if the request does not exist.
    pub fn request(&self, conn: ConnHandle) -> Result<&Request, ConnectError> {
        self.nic.request(conn)
    }

    /// Accepts a connection request: connects a VI with the requesting VI. If the two VIs do not match,
    /// the request stays, and the program can accept it for another VI or reject it.
    ///
    /// # Errors
    /// Returns an error if the VIs cannot be connected, or if the requester has given up.
    pub fn accept(&mut self, conn: ConnHandle, vi: ViHandle) -> Result<(), ConnectError> {
        self.nic.accept(conn, vi, number()?)?;
        self.settle();
        Ok(())
    }

    /// Rejects a connection request.
    ///
    /// # Errors
    /// Returns an error if the request does not exist.
    pub fn reject(&mut self, conn: ConnHandle) -> Result<(), ConnectError> {
        self.nic.reject(conn)?;
        self.settle();
        Ok(())
    }

    /// Requests a connection for a VI: with a provider that waits at the address, or with a peer that
    /// requests one as well. [`Provider::answer`] returns the outcome.
    ///
    /// # Errors
    /// Returns an error if the request cannot be made.
    pub fn ask(
        &mut self,
        vi: ViHandle,
        from: &[u8],
        to: Address,
        is_of_peer: bool,
        timeout: Option<Duration>,
    ) -> Result<(), ConnectError> {
        let (now_ns, until_ns) = (self.wire.now_ns(), self.until(timeout));
        let local = Address { host: self.wire.host(), discriminator: from.to_vec() };
        let number = number()?;
        if is_of_peer {
            self.wire.listen(from)?;
        }
        let asked = self.nic.ask(vi, [local, to], is_of_peer, number, until_ns, now_ns);
        if asked.is_ok() {
            // The VI may have made a request before, whose outcome the program did not ask for.
            self.stop_asking(vi);
        }
        match (asked, is_of_peer) {
            (Ok(()), true) => drop(self.asks.insert(vi, from.to_vec())),
            (Err(_), true) => self.wire.ignore(from),
            (_, false) => {}
        }
        self.settle();
        asked
    }

    /// Returns the outcome of a connection request once: the other side's VI. `None` if there is no
    /// outcome yet.
    ///
    /// # Errors
    /// Returns an error if the request failed, or if none was made.
    pub fn answer(&mut self, vi: ViHandle) -> Result<Option<Offer>, ConnectError> {
        self.progress();
        let answer = self.nic.answer(vi);
        if !matches!(answer, Ok(None)) {
            self.stop_asking(vi);
        }
        answer
    }

    pub(super) fn stop_asking(&mut self, vi: ViHandle) {
        if let Some(discriminator) = self.asks.remove(&vi) {
            self.wire.ignore(&discriminator);
        }
    }

    /// Disconnects a VI, or cancels its connection request. Unfinished descriptors are flushed, and the
    /// VI is idle.
    ///
    /// # Errors
    /// Returns an error if the VI does not exist.
    pub fn disconnect(&mut self, vi: ViHandle) -> Result<(), ConnectError> {
        self.nic.disconnect(vi)?;
        self.stop_asking(vi);
        self.changes += 1;
        self.settle();
        Ok(())
    }

    fn until(&mut self, timeout: Option<Duration>) -> Option<u64> {
        let now_ns = self.wire.now_ns();
        timeout.map(|timeout| now_ns.saturating_add(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// Returns a number for a connection that nobody can guess.
fn number() -> Result<u64, ConnectError> {
    // No connection is made without random bits: the system has run out of a resource.
    Ok(u64::from_le_bytes(random::bytes().map_err(|_| ConnectError::TooMany)?))
}
