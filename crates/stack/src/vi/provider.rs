//! A provider: the rules of VIA, and a transport under them.

use super::config::{Config, WireKind};
use super::error::OpenError;
use super::local;
use super::shm;
use super::udp::UdpWire;
use super::wire::{Look, Wire};
use crate::statistics::{PeerStatistics, Strays};
use netdyno_host::loan::Loan;
use netdyno_host::random;
use netdyno_protocol::frame::vi_signal::{Address, Request};
use netdyno_protocol::vi::*;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// Calls that look for completions between two checks for signals. A check needs a system call, which
/// messages must not wait for.
const LOOKS_BETWEEN_SIGNALS: u32 = 4096;

/// An event that no call of the program reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// A descriptor with a requested notification is done, and was taken from its queue.
    Done {
        /// The VI.
        vi: ViHandle,
        /// The queue of the VI.
        side: Side,
        /// The descriptor.
        at: DescriptorAt,
    },
    /// A completion queue with a requested notification has an entry, which was taken from it.
    CqDone {
        /// The completion queue.
        cq: CqHandle,
        /// The queue whose descriptor is done.
        done: Done,
    },
    /// An asynchronous error has occurred.
    Failed(Failure),
}

/// A provider of Virtual Interfaces.
pub struct Provider {
    nic: Nic,
    wire: Box<dyn Wire>,
    news: VecDeque<News>,
    /// The discriminators at which this provider waits for requests, and those that it requests as a
    /// peer.
    waits: HashMap<WaitHandle, Vec<u8>>,
    asks: HashMap<ViHandle, Vec<u8>>,
    /// Calls that looked for completions since the last check for signals.
    looks: u32,
    /// Number of events that a thread may wait for.
    changes: u64,
    /// Whether the descriptor becomes readable when something arrives.
    is_prepared: bool,
}

impl Provider {
    /// Opens a provider.
    ///
    /// # Errors
    /// Returns an error if the system refuses memory, a socket or another resource.
    pub fn open(config: Config) -> Result<Self, OpenError> {
        let wire: Box<dyn Wire> = match config.wire {
            WireKind::Shm => Box::new(shm::ShmWire::open()?),
            WireKind::Udp(options) => Box::new(UdpWire::open(&options)?),
        };
        let attributes = NicAttributes { host_bytes: wire.host().len() as u8, ..config.attributes };
        Ok(Self {
            nic: Nic::new(attributes),
            wire,
            news: VecDeque::new(),
            waits: HashMap::new(),
            asks: HashMap::new(),
            looks: 0,
            changes: 0,
            is_prepared: false,
        })
    }

    /// Returns the attributes of the NIC.
    pub fn attributes(&self) -> &NicAttributes {
        self.nic.attributes()
    }

    /// Returns the address of this host, as peers name it.
    pub fn host(&self) -> Vec<u8> {
        self.wire.host()
    }

    /// Returns the address that this provider shares with others of this host, if it does
    /// ([`is_shared`](super::UdpOptions::is_shared)).
    pub fn shared_address(&self) -> Option<SocketAddr> {
        self.wire.shared_address()
    }

    /// Returns the statistics of a connected reliable VI over UDP; `None` for any other VI.
    pub fn statistics(&self, vi: ViHandle) -> Option<PeerStatistics> {
        self.wire.statistics(vi)
    }

    /// Returns whether the peer of a VI has all that was sent, or takes it without this process. Otherwise a message may be
    /// lost when the provider is dropped, although its send is complete.
    pub fn is_delivered(&self, vi: ViHandle) -> bool {
        self.wire.is_delivered(vi)
    }

    /// Returns counts of received datagrams that belong to no peer, and of own datagrams that were never
    /// sent.
    pub fn strays(&self) -> Strays {
        self.wire.strays()
    }

    /// Creates a protection tag.
    ///
    /// # Errors
    /// Returns an error if there are too many.
    pub fn create_tag(&mut self) -> Result<Ptag, MemoryError> {
        self.nic.create_tag()
    }

    /// Destroys a protection tag.
    ///
    /// # Errors
    /// Returns an error if the tag does not exist or is in use.
    pub fn destroy_tag(&mut self, tag: Ptag) -> Result<(), MemoryError> {
        self.nic.destroy_tag(tag)
    }

    /// Allocates at least `len` bytes of memory, which the program may register. If the transport allows
    /// it, a peer on this host copies a message directly out of this memory, when the message is one
    /// segment of it. That saves a copy. The peer of such a message may read all of the memory from then
    /// on.
    ///
    /// # Errors
    /// Returns an error if the system provides no such memory.
    pub fn allocate(&mut self, len: usize) -> Result<Arc<Loan>, OpenError> {
        let memory = Arc::new(Loan::create(len)?);
        self.wire.offer(&memory);
        Ok(memory)
    }

    /// Registers memory of this process for VIs with its protection tag.
    ///
    /// # Errors
    /// Returns an error if the memory or its attributes are not valid.
    ///
    /// # Safety
    /// The memory must be readable and writable until it is deregistered or the provider is dropped. If
    /// the attributes allow it, peers access it as well. Nobody may hold a reference to it while
    /// messages go there.
    pub unsafe fn register(
        &mut self,
        base: *mut u8,
        len: usize,
        attributes: MemAttributes,
    ) -> Result<MemHandle, MemoryError> {
        self.nic.register(base.expose_provenance() as u64, len as u64, attributes)
    }

    /// Deregisters memory. Takes effect at once, also for posted descriptors and arriving messages.
    ///
    /// # Errors
    /// Returns an error if the memory is not registered under this handle.
    pub fn deregister(&mut self, base: *const u8, handle: MemHandle) -> Result<(), MemoryError> {
        self.nic.deregister(base.addr() as u64, handle)?;
        self.wire.withdraw(&mut self.nic);
        self.settle();
        Ok(())
    }

    /// Returns the region that a memory handle stands for.
    ///
    /// # Errors
    /// Returns an error if the memory is not registered under this handle.
    pub fn query_memory(&self, base: *const u8, handle: MemHandle) -> Result<&Region, MemoryError> {
        self.nic.query_memory(base.addr() as u64, handle)
    }

    /// Changes the attributes of registered memory.
    ///
    /// # Errors
    /// Returns an error if the memory is not registered under this handle, or if the attributes are not
    /// valid.
    pub fn set_memory(
        &mut self,
        base: *const u8,
        handle: MemHandle,
        attributes: MemAttributes,
    ) -> Result<(), MemoryError> {
        self.nic.set_memory(base.addr() as u64, handle, attributes)
    }

    /// Creates a VI, whose queues complete on the given completion queues, if any.
    ///
    /// # Errors
    /// Returns an error if an attribute is not valid or not supported, or a resource does not exist.
    pub fn create_vi(
        &mut self,
        attributes: ViAttributes,
        send_cq: Option<CqHandle>,
        receive_cq: Option<CqHandle>,
    ) -> Result<ViHandle, ResourceError> {
        self.nic.create_vi(attributes, send_cq, receive_cq)
    }

    /// Destroys a disconnected VI.
    ///
    /// # Errors
    /// Returns an error if the VI does not exist or is not idle.
    pub fn destroy_vi(&mut self, vi: ViHandle) -> Result<(), ResourceError> {
        self.nic.destroy_vi(vi)?;
        self.stop_asking(vi);
        self.changes += 1;
        Ok(())
    }

    /// Returns state and attributes of a VI.
    ///
    /// # Errors
    /// Returns an error if the VI does not exist.
    pub fn query_vi(&mut self, vi: ViHandle) -> Result<ViQuery, ResourceError> {
        self.progress();
        self.nic.query_vi(vi)
    }

    /// Changes the attributes of an idle VI.
    ///
    /// # Errors
    /// Returns an error if the VI does not exist or is not idle, or if the attributes are not valid.
    pub fn set_vi(&mut self, vi: ViHandle, attributes: ViAttributes) -> Result<(), ResourceError> {
        self.nic.set_vi(vi, attributes)
    }

    /// Returns whether a queue of a VI completes on a completion queue.
    ///
    /// # Errors
    /// Returns an error if the VI does not exist.
    pub fn completes_elsewhere(&self, vi: ViHandle, side: Side) -> Result<bool, ResourceError> {
        self.nic.completes_elsewhere(vi, side)
    }

    /// Creates a completion queue of `entries` entries.
    ///
    /// # Errors
    /// Returns an error if the size is not valid, or if there are too many queues.
    pub fn create_cq(&mut self, entries: u32) -> Result<CqHandle, CqError> {
        self.nic.create_cq(entries)
    }

    /// Destroys a completion queue that no VI uses.
    ///
    /// # Errors
    /// Returns an error if the queue does not exist or is in use.
    pub fn destroy_cq(&mut self, cq: CqHandle) -> Result<(), CqError> {
        self.nic.destroy_cq(cq)?;
        self.changes += 1;
        Ok(())
    }

    /// Resizes a completion queue to `entries` entries; the entries in it stay.
    ///
    /// # Errors
    /// Returns an error if the queue does not exist, if the size is not valid, or if more entries are in
    /// it.
    pub fn resize_cq(&mut self, cq: CqHandle, entries: u32) -> Result<(), CqError> {
        self.nic.resize_cq(cq, entries)
    }

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

    /// Requests one notification ([`News::Done`]) for the next completed descriptor of a queue.
    ///
    /// # Errors
    /// Returns an error if the VI does not exist.
    pub fn notify(&mut self, vi: ViHandle, side: Side) -> Result<(), PostError> {
        self.nic.notify(vi, side)?;
        self.settle();
        Ok(())
    }

    /// Requests one notification ([`News::CqDone`]) for the next entry of a completion queue.
    ///
    /// # Errors
    /// Returns an error if the completion queue does not exist.
    pub fn notify_cq(&mut self, cq: CqHandle) -> Result<(), CqError> {
        self.nic.notify_cq(cq)?;
        self.settle();
        Ok(())
    }

    /// Returns the next event that no call has reported.
    pub fn next_news(&mut self) -> Option<News> {
        self.news.pop_front()
    }

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

    fn stop_asking(&mut self, vi: ViHandle) {
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

    /// Checks everything once: messages, signals and timers. Returns whether any message was received or
    /// sent.
    pub fn progress(&mut self) -> bool {
        self.looks = 0;
        self.is_prepared = false;
        self.wire.hear(&mut self.nic);
        let now_ns = self.wire.now_ns();
        if self.nic.deadline().is_some_and(|at_ns| at_ns <= now_ns) {
            self.nic.on_time(now_ns);
        }
        let is_any = self.wire.receive_all(&mut self.nic);
        self.settle();
        is_any
    }

    /// Counts calls, so that a program that always finds a completion still checks for signals.
    #[inline]
    fn count_look(&mut self) {
        self.looks += 1;
        if self.looks >= LOOKS_BETWEEN_SIGNALS {
            self.progress();
        }
    }

    /// Prepares for a sleep: from now on a peer that sends something makes the provider's descriptor
    /// readable ([`AsFd`]), until the next [`Provider::progress`]. Returns the longest permitted sleep,
    /// which is zero if messages have already arrived. The caller must check once more before it sleeps,
    /// and make progress when it wakes.
    pub fn prepare_sleep(&mut self) -> Duration {
        let most = self.wire.prepare_sleep();
        self.is_prepared = true;
        let is_any = self.wire.receive_all(&mut self.nic);
        self.settle();
        if is_any { Duration::ZERO } else { self.until_due().min(most) }
    }

    /// Returns the time until the next timer is due. A thread that sleeps since before a call may have
    /// to be woken earlier for it.
    pub fn until_due(&mut self) -> Duration {
        let left = |at_ns: u64| Duration::from_nanos(at_ns.saturating_sub(self.wire.now_ns()));
        let due = self.nic.deadline().map_or(Duration::MAX, left);
        due.min(self.wire.until_due())
    }

    /// Returns whether the last [`Provider::prepare_sleep`] is still in force.
    pub fn is_prepared(&self) -> bool {
        self.is_prepared
    }

    /// Returns a number that changes with every event that a thread may wait for. A program that shares
    /// a provider between threads wakes the other threads when the number changes.
    pub fn changes(&self) -> u64 {
        self.changes.wrapping_add(self.nic.answers()).wrapping_add(self.nic.at_once())
    }

    /// Breaks every VI, as on a failure of the NIC.
    pub fn fail(&mut self) {
        self.nic.fail();
        self.settle();
    }

    /// Carries out the decisions of the rules, and writes completions into descriptors.
    #[inline]
    fn settle(&mut self) {
        loop {
            while let Some(event) = self.nic.next_event() {
                self.changes += 1;
                self.attend(event);
            }
            let Some((host, signal)) = self.nic.next_signal() else { break };
            self.wire.say(&mut self.nic, &host, &signal);
        }
    }

    #[inline]
    fn attend(&mut self, event: Event) {
        match event {
            // SAFETY: the event names a descriptor in registered memory, which is valid and writable.
            // Its first byte is aligned, or it would not have been posted.
            Event::Completed { at, completion, .. } => unsafe { local::complete(at, &completion) },
            Event::Callback { vi, side, at } => self.news.push_back(News::Done { vi, side, at }),
            Event::CqCallback { cq, done } => self.news.push_back(News::CqDone { cq, done }),
            Event::Failed(failure) => self.news.push_back(News::Failed(failure)),
            Event::Linked { vi, link } => {
                self.wire.link(&mut self.nic, vi, &link);
                // The peer of the new link does not know that it has to wake this process.
                self.is_prepared = false;
            }
            Event::Unlinked { vi, link, parting } => self.wire.unlink(&mut self.nic, vi, &link, parting),
        }
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

impl AsFd for Provider {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.descriptor()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        for vi in self.nic.vis() {
            // The VI exists, so this cannot fail.
            let _ = self.nic.disconnect(vi);
        }
        self.settle();
        self.wire.linger(&mut self.nic);
    }
}
