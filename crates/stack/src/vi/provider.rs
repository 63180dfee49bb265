//! A provider: the rules, and the wire under them.

use super::local;
use super::shm;
use super::udp::{UdpOptions, UdpWire};
use super::wire::{Look, Wire};
use crate::statistics::{PeerStatistics, Strays};
use netdyno_host::datagram::SocketError;
use netdyno_host::loan::Loan;
use netdyno_host::random;
use netdyno_host::segment::SegmentError;
use netdyno_protocol::frame::vi_signal::{Address, Request};
use netdyno_protocol::vi::*;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// Looks after which signals are looked for as well, whatever was found: they need a call of the
/// kernel, which messages need not wait for.
const LOOKS_BETWEEN_SIGNALS: u32 = 4096;

/// Which way down.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum WireKind {
    /// Shared memory, to processes of the same user on this host.
    #[default]
    Shm,
    /// UDP, to any host.
    Udp(UdpOptions),
}

/// How a provider is to be.
#[derive(Clone, Copy, Debug, Default)]
pub struct Config {
    /// The way down.
    pub wire: WireKind,
    /// What it is to be able to do.
    pub attributes: NicAttributes,
}

/// Why a provider could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The system refused something.
    #[error("the system refused to {what}: {error}")]
    System {
        /// What was asked of it.
        what: &'static str,
        /// What it said.
        #[source]
        error: std::io::Error,
    },
    /// The shared memory could not be made.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// The socket could not be opened.
    #[error(transparent)]
    Socket(#[from] SocketError),
}

/// What a provider has to tell a program that is not told by a call that it made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// A descriptor for which the program wanted to be called is done, and taken from its queue.
    Done {
        /// The VI.
        vi: ViHandle,
        /// Its queue.
        side: Side,
        /// The descriptor.
        at: DescriptorAt,
    },
    /// The same of a completion queue, the entry taken from it.
    CqDone {
        /// The completion queue.
        cq: CqHandle,
        /// Where something is done.
        done: Done,
    },
    /// Something has gone wrong.
    Failed(Failure),
}

/// A provider of Virtual Interfaces.
pub struct Provider {
    nic: Nic,
    wire: Box<dyn Wire>,
    news: VecDeque<News>,
    /// At which discriminators requests are waited for, and peers asked for.
    waits: HashMap<WaitHandle, Vec<u8>>,
    asks: HashMap<ViHandle, Vec<u8>>,
    /// Looks since signals were looked for.
    looks: u32,
    /// How often something happened that somebody may wait for.
    changes: u64,
    /// Whether the descriptor becomes readable when something comes.
    is_prepared: bool,
}

impl Provider {
    /// Opens a provider.
    ///
    /// # Errors
    /// The system does not give what it needs.
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

    /// What it can do.
    pub fn attributes(&self) -> &NicAttributes {
        self.nic.attributes()
    }

    /// This host, as peers name it.
    pub fn host(&self) -> Vec<u8> {
        self.wire.host()
    }

    /// Returns the address that other providers of this host may be opened at as well
    /// ([`UdpOptions::is_shared`]).
    pub fn shared_address(&self) -> Option<SocketAddr> {
        self.wire.shared_address()
    }

    /// What happened between a reliable VI that is connected over UDP and its peer, and what the
    /// connection holds; `None` of any other.
    pub fn statistics(&self, vi: ViHandle) -> Option<PeerStatistics> {
        self.wire.statistics(vi)
    }

    /// Datagrams that came and were not taken as any peer's, and those that never left.
    pub fn strays(&self) -> Strays {
        self.wire.strays()
    }

    /// A new protection tag.
    ///
    /// # Errors
    /// There are too many.
    pub fn create_tag(&mut self) -> Result<Ptag, MemoryError> {
        self.nic.create_tag()
    }

    /// Does away with a tag.
    ///
    /// # Errors
    /// There is none, or it is in use.
    pub fn destroy_tag(&mut self, tag: Ptag) -> Result<(), MemoryError> {
        self.nic.destroy_tag(tag)
    }

    /// Memory of at least `len` bytes, to be registered: what is sent from it in one stretch a peer on
    /// this host copies out itself, where the wire can let it, and nobody copies it twice. Whoever is
    /// sent anything from it may read all of it from then on.
    ///
    /// # Errors
    /// The system gives no such memory.
    pub fn allocate(&mut self, len: usize) -> Result<Arc<Loan>, OpenError> {
        let memory = Arc::new(Loan::create(len)?);
        self.wire.offer(&memory);
        Ok(memory)
    }

    /// Makes memory of this process usable for VIs with its tag.
    ///
    /// # Errors
    /// It can not be.
    ///
    /// # Safety
    /// The memory can be read and written until it is deregistered or the provider is gone, by peers
    /// as well where the attributes let them, and nobody holds a reference to it while messages go
    /// there.
    pub unsafe fn register(
        &mut self,
        base: *mut u8,
        len: usize,
        attributes: MemAttributes,
    ) -> Result<MemHandle, MemoryError> {
        self.nic.register(base.expose_provenance() as u64, len as u64, attributes)
    }

    /// Makes it unusable, at once: also for what is posted and what is coming.
    ///
    /// # Errors
    /// It is not registered so.
    pub fn deregister(&mut self, base: *const u8, handle: MemHandle) -> Result<(), MemoryError> {
        self.nic.deregister(base.addr() as u64, handle)?;
        self.wire.withdraw(&mut self.nic);
        self.settle();
        Ok(())
    }

    /// The registered memory of a handle.
    ///
    /// # Errors
    /// It is not registered so.
    pub fn query_memory(&self, base: *const u8, handle: MemHandle) -> Result<&Region, MemoryError> {
        self.nic.query_memory(base.addr() as u64, handle)
    }

    /// Changes what memory may be used for.
    ///
    /// # Errors
    /// It is not registered so, or can not be used so.
    pub fn set_memory(
        &mut self,
        base: *const u8,
        handle: MemHandle,
        attributes: MemAttributes,
    ) -> Result<(), MemoryError> {
        self.nic.set_memory(base.addr() as u64, handle, attributes)
    }

    /// A new VI, whose queues complete on these completion queues, where there are any.
    ///
    /// # Errors
    /// There is no such thing as it is to have.
    pub fn create_vi(
        &mut self,
        attributes: ViAttributes,
        send_cq: Option<CqHandle>,
        receive_cq: Option<CqHandle>,
    ) -> Result<ViHandle, ResourceError> {
        self.nic.create_vi(attributes, send_cq, receive_cq)
    }

    /// Does away with a VI, which is disconnected.
    ///
    /// # Errors
    /// There is none, or it is not idle.
    pub fn destroy_vi(&mut self, vi: ViHandle) -> Result<(), ResourceError> {
        self.nic.destroy_vi(vi)?;
        self.stop_asking(vi);
        self.changes += 1;
        Ok(())
    }

    /// What a program sees of a VI.
    ///
    /// # Errors
    /// There is none.
    pub fn query_vi(&mut self, vi: ViHandle) -> Result<ViQuery, ResourceError> {
        self.progress();
        self.nic.query_vi(vi)
    }

    /// Changes what an idle VI is made for.
    ///
    /// # Errors
    /// There is none, it is not idle, or it can not be made so.
    pub fn set_vi(&mut self, vi: ViHandle, attributes: ViAttributes) -> Result<(), ResourceError> {
        self.nic.set_vi(vi, attributes)
    }

    /// Whether a queue of a VI completes on a completion queue.
    ///
    /// # Errors
    /// There is no such VI.
    pub fn completes_elsewhere(&self, vi: ViHandle, side: Side) -> Result<bool, ResourceError> {
        self.nic.completes_elsewhere(vi, side)
    }

    /// A new completion queue of so many entries.
    ///
    /// # Errors
    /// There is no such size, or there are too many.
    pub fn create_cq(&mut self, entries: u32) -> Result<CqHandle, CqError> {
        self.nic.create_cq(entries)
    }

    /// Does away with a completion queue that no VI has.
    ///
    /// # Errors
    /// There is none, or it is in use.
    pub fn destroy_cq(&mut self, cq: CqHandle) -> Result<(), CqError> {
        self.nic.destroy_cq(cq)?;
        self.changes += 1;
        Ok(())
    }

    /// Gives a completion queue room for so many entries; those in it stay.
    ///
    /// # Errors
    /// There is none, there is no such size, or more are in it.
    pub fn resize_cq(&mut self, cq: CqHandle, entries: u32) -> Result<(), CqError> {
        self.nic.resize_cq(cq, entries)
    }

    /// Posts a descriptor. One that cannot be understood is posted as well, and completes with an
    /// error.
    ///
    /// # Errors
    /// It can not be posted.
    ///
    /// # Safety
    /// What [`Provider::register`] asks for holds of the memory that it is in.
    #[inline]
    pub unsafe fn post(&mut self, vi: ViHandle, side: Side, at: DescriptorAt) -> Result<(), PostError> {
        if side == Side::Send && self.wire.send_at_once(&mut self.nic, vi, at) {
            return Ok(());
        }
        // SAFETY: what is registered is memory that stays until it is deregistered, as the caller has promised.
        unsafe { self.post_anyhow(vi, side, at) }
    }

    /// The same by the long way.
    ///
    /// # Safety
    /// As for [`Provider::post`].
    unsafe fn post_anyhow(&mut self, vi: ViHandle, side: Side, at: DescriptorAt) -> Result<(), PostError> {
        self.nic.post(vi, side, at, |room| {
            // SAFETY: so many bytes are registered there, and the caller has promised that they are memory.
            let work = unsafe { local::read_descriptor(at, room, side) };
            // SAFETY: a control segment is registered there, and aligned, or nothing would be read.
            unsafe { local::begin(at) };
            work
        })?;
        if side == Side::Send {
            self.wire.send(&mut self.nic, vi);
        }
        self.settle();
        Ok(())
    }

    /// Takes the next descriptor that is done; makes progress where none is.
    ///
    /// # Errors
    /// There is no such VI.
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

    /// Where something is done next: the descriptor is taken from there. Makes progress where nothing
    /// is.
    ///
    /// # Errors
    /// There is no such queue.
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

    /// The program is to be told ([`News::Done`]) of one more descriptor that is done.
    ///
    /// # Errors
    /// There is no such VI.
    pub fn notify(&mut self, vi: ViHandle, side: Side) -> Result<(), PostError> {
        self.nic.notify(vi, side)?;
        self.settle();
        Ok(())
    }

    /// The program is to be told ([`News::CqDone`]) of one more entry.
    ///
    /// # Errors
    /// There is no such queue.
    pub fn notify_cq(&mut self, cq: CqHandle) -> Result<(), CqError> {
        self.nic.notify_cq(cq)?;
        self.settle();
        Ok(())
    }

    /// What there is to tell that no call has told.
    pub fn next_news(&mut self) -> Option<News> {
        self.news.pop_front()
    }

    /// Waits for one request at a discriminator, for so long at most.
    ///
    /// # Errors
    /// There can be no such address, another user has it, or too many wait.
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

    /// The request that has come, and the end of waiting. `None` where it goes on.
    ///
    /// # Errors
    /// The time is up, or nobody waits so.
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

    /// A request that has come.
    ///
    /// # Errors
    /// There is none.
    pub fn request(&self, conn: ConnHandle) -> Result<&Request, ConnectError> {
        self.nic.request(conn)
    }

    /// Connects a VI with the one that asked. Where the VIs do not fit together the request stays,
    /// for another VI or to be rejected.
    ///
    /// # Errors
    /// They can not be connected, or the other side has given up.
    pub fn accept(&mut self, conn: ConnHandle, vi: ViHandle) -> Result<(), ConnectError> {
        self.nic.accept(conn, vi, number()?)?;
        self.settle();
        Ok(())
    }

    /// Tells the one that asked that there will be no connection.
    ///
    /// # Errors
    /// There is no such request.
    pub fn reject(&mut self, conn: ConnHandle) -> Result<(), ConnectError> {
        self.nic.reject(conn)?;
        self.settle();
        Ok(())
    }

    /// A VI asks for a connection: with whoever waits there, or with a peer that asks for it as
    /// well. What came of it says [`Provider::answer`].
    ///
    /// # Errors
    /// It can not ask.
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
            // It may have asked before, and not seen what came of that.
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

    /// What came of asking, told once: the other side's VI. `None` where nothing has yet.
    ///
    /// # Errors
    /// There is no connection, or nobody asked for one.
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

    /// Ends the connection of a VI, or what it asks for. All that is not finished is flushed, and
    /// the VI is idle.
    ///
    /// # Errors
    /// There is no such VI.
    pub fn disconnect(&mut self, vi: ViHandle) -> Result<(), ConnectError> {
        self.nic.disconnect(vi)?;
        self.stop_asking(vi);
        self.changes += 1;
        self.settle();
        Ok(())
    }

    /// Looks at everything once: messages, signals, and what is due. Whether any message was taken or
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

    /// A program that always finds something done looks at the wire all the same.
    #[inline]
    fn count_look(&mut self) {
        self.looks += 1;
        if self.looks >= LOOKS_BETWEEN_SIGNALS {
            self.progress();
        }
    }

    /// Sees to it that whoever has something for this process from now on makes the provider's
    /// descriptor readable ([`AsFd`]), until the next [`Provider::progress`]. How long may be slept at
    /// most: not at all where messages have come before that. The caller looks for what it waits for
    /// before it sleeps, and makes progress when it wakes.
    pub fn prepare_sleep(&mut self) -> Duration {
        let most = self.wire.prepare_sleep();
        self.is_prepared = true;
        let is_any = self.wire.receive_all(&mut self.nic);
        self.settle();
        if is_any { Duration::ZERO } else { self.until_due().min(most) }
    }

    /// How long until something is due by the clock. Who sleeps since before a call may have to be woken
    /// for it.
    pub fn until_due(&mut self) -> Duration {
        let left = |at_ns: u64| Duration::from_nanos(at_ns.saturating_sub(self.wire.now_ns()));
        let due = self.nic.deadline().map_or(Duration::MAX, left);
        due.min(self.wire.until_due())
    }

    /// Whether [`Provider::prepare_sleep`] still holds.
    pub fn is_prepared(&self) -> bool {
        self.is_prepared
    }

    /// A number that is another one whenever something has happened that somebody may wait for. Who
    /// shares a provider with others wakes them when it changes.
    pub fn changes(&self) -> u64 {
        self.changes.wrapping_add(self.nic.answers()).wrapping_add(self.nic.at_once())
    }

    /// Gives the provider up: every VI breaks.
    pub fn fail(&mut self) {
        self.nic.fail();
        self.settle();
    }

    /// Does what the rules have decided, and writes completions into descriptors.
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
            // SAFETY: the descriptor's memory is registered, as the event says, so that it is there
            // and can be written; its first byte is aligned, or it would not have been posted.
            Event::Completed { at, completion, .. } => unsafe { local::complete(at, &completion) },
            Event::Callback { vi, side, at } => self.news.push_back(News::Done { vi, side, at }),
            Event::CqCallback { cq, done } => self.news.push_back(News::CqDone { cq, done }),
            Event::Failed(failure) => self.news.push_back(News::Failed(failure)),
            Event::Linked { vi, link } => {
                self.wire.link(&mut self.nic, vi, &link);
                // Whoever is to wake this process knows nothing of the new link.
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

/// A number for a connection that nobody guesses.
fn number() -> Result<u64, ConnectError> {
    // Without random bits there is no connection: what the system has run out of is a resource.
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
            // There is such a VI.
            let _ = self.nic.disconnect(vi);
        }
        self.settle();
        self.wire.linger(&mut self.nic);
    }
}
