//! A VI consumer (VIA 1.0): a provider, together with the memory of the program that uses it.
//!
//! A [`Provider`] relies on registered memory to stay valid. A consumer guarantees that: it owns all
//! memory, in pieces, and gives out no reference to it. Callers name descriptors by a number, and bytes
//! by piece and offset, so every call is safe. All VIs of a consumer have the same attributes: reliable
//! delivery, and RDMA writes by the peer to pieces that are registered for them.

use super::config::{Config, WireKind};
use super::error::OpenError;
use super::provider::{News, Provider};
use crate::statistics::{PeerStatistics, Strays};
use netdyno_host::bytes::Stretch;
use netdyno_host::pages::Pages;
use netdyno_protocol::frame::vi_signal::Address;
use netdyno_protocol::vi::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::AsFd;
use std::time::Duration;
use thiserror::Error;

/// The longest message, in bytes.
const LONGEST_BYTES: u32 = 1 << 30;
/// Length of a descriptor with up to two segments, in bytes.
const DESCRIPTOR_LEN: usize = 64;
/// The piece that holds the descriptors.
const DESCRIPTORS: PieceId = PieceId(0);

/// Reasons why a consumer cannot go on. Each message is one line.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConsumerError {
    /// The provider could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The system has no memory for a piece.
    #[error("the system has no room for {bytes} bytes: {error}")]
    Memory {
        /// The size that was asked for, in bytes.
        bytes: usize,
        /// The error of the system.
        error: std::io::Error,
    },
    /// The provider refused a request.
    #[error("the provider of Virtual Interfaces cannot {what}: {}", of_code(*.code))]
    Refused {
        /// The request.
        what: &'static str,
        /// The return code that a C program would get.
        code: ReturnCode,
    },
    /// The connection is broken.
    #[error("{}", of_break(*.error, *.status))]
    Broken {
        /// The error that the error callback reports, if any.
        error: Option<AsyncError>,
        /// The status of the first descriptor that failed.
        status: Status,
    },
}

/// Describes why a VI broke.
fn of_break(error: Option<AsyncError>, status: Status) -> String {
    match error {
        _ if status.has(Status::LENGTH_ERROR) => {
            "a message came that is longer than the receive that it was for".into()
        }
        Some(AsyncError::RecvqEmpty) => "a message came for which no receive was posted".into(),
        None | Some(AsyncError::ConnLost | AsyncError::RdmaTransport | AsyncError::RdmawAbort) => {
            "the other process has closed the connection, or is not heard of any more".into()
        }
        Some(error) => format!("the connection is broken: {error:?}, status {:#x}", status.0),
    }
}

/// Describes a return code, in words if a connection attempt can end with it.
fn of_code(code: ReturnCode) -> String {
    match code {
        ReturnCode::Timeout => "the time is up".into(),
        ReturnCode::NoMatch => "nobody waits for it".into(),
        ReturnCode::Reject => "the other side does not want it".into(),
        ReturnCode::ErrorResource => "there is no room".into(),
        code => format!("{code:?}"),
    }
}

/// Returns a function that converts return codes of a provider into errors.
fn refused<E: Into<ReturnCode>>(what: &'static str) -> impl FnOnce(E) -> ConsumerError {
    move |error| ConsumerError::Refused { what, code: error.into() }
}

/// Identifies a piece of a consumer's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceId(usize);

struct Piece {
    pages: Pages,
    /// The registrations of the piece, the latest last.
    handles: Vec<MemHandle>,
}

/// A completed descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The number of the descriptor.
    pub descriptor: usize,
    /// The completion of the descriptor.
    pub completion: Completion,
}

/// A provider together with the memory of the program that uses it.
pub struct Consumer {
    // Declared before the memory, so that it is dropped first: it uses the memory until then.
    provider: Provider,
    pieces: Vec<Piece>,
    tag: Ptag,
    /// [`Provider::changes`] at the first look in vain since something was found.
    seen: Option<u64>,
}

impl Consumer {
    /// Opens a provider on `wire`, with room for `descriptors` descriptors of two segments each.
    ///
    /// # Errors
    /// Returns an error if the system refuses memory or another resource.
    pub fn open(wire: WireKind, descriptors: usize) -> Result<Self, ConsumerError> {
        let attributes = NicAttributes { transfer_bytes: LONGEST_BYTES, ..NicAttributes::default() };
        let mut provider = Provider::open(Config::new(wire).attributes(attributes))?;
        let tag = provider.create_tag().map_err(refused("make a protection tag"))?;
        let mut consumer = Self { provider, pieces: Vec::new(), tag, seen: None };
        let piece = consumer.allocate(descriptors * DESCRIPTOR_LEN)?;
        consumer.register(piece, false)?;
        Ok(consumer)
    }

    /// Returns the address of this host, as peers name it.
    pub fn host(&self) -> Vec<u8> {
        self.provider.host()
    }

    /// Returns the statistics of a VI's connection over UDP.
    pub fn statistics(&self, vi: ViHandle) -> Option<PeerStatistics> {
        self.provider.statistics(vi)
    }

    /// Returns counts of received datagrams that belong to no peer, and of own datagrams that were never
    /// sent.
    pub fn strays(&self) -> Strays {
        self.provider.strays()
    }

    /// Allocates a piece of untouched memory, without registering it.
    ///
    /// # Errors
    /// Returns an error if the system has no memory.
    pub fn allocate(&mut self, bytes: usize) -> Result<PieceId, ConsumerError> {
        let pages = untouched(bytes)?;
        self.pieces.push(Piece { pages, handles: Vec::new() });
        Ok(PieceId(self.pieces.len() - 1))
    }

    /// Deregisters a piece and replaces its memory by untouched memory of `bytes` bytes.
    ///
    /// # Errors
    /// Returns an error if the system has no memory. The piece may then be one byte long.
    pub fn renew(&mut self, piece: PieceId, bytes: usize) -> Result<(), ConsumerError> {
        while !self.pieces[piece.0].handles.is_empty() {
            self.deregister(piece)?;
        }
        // Release the old memory first, because both may not fit.
        self.pieces[piece.0].pages = untouched(1)?;
        self.pieces[piece.0].pages = untouched(bytes)?;
        Ok(())
    }

    /// Writes to every page of a piece.
    pub fn touch(&mut self, piece: PieceId) {
        self.pieces[piece.0].pages.touch();
    }

    /// Registers a piece, which may be registered already. `is_open` says whether a peer may write to it
    /// and read it.
    ///
    /// # Errors
    /// Returns an error if the provider refuses.
    #[inline]
    pub fn register(&mut self, piece: PieceId, is_open: bool) -> Result<(), ConsumerError> {
        let Piece { pages, handles } = &mut self.pieces[piece.0];
        let attributes = MemAttributes { tag: self.tag, can_be_written: is_open, can_be_read: is_open };
        // SAFETY: the memory stays until it is deregistered or the provider is dropped; only then a
        // piece is dropped or its memory released. The consumer only copies bytes in and out.
        let handle = unsafe { self.provider.register(pages.base().as_ptr(), pages.bytes(), attributes) };
        handles.push(handle.map_err(refused("register memory"))?);
        Ok(())
    }

    /// Removes the latest registration of a piece.
    ///
    /// # Errors
    /// Returns an error if the piece is not registered.
    #[inline]
    pub fn deregister(&mut self, piece: PieceId) -> Result<(), ConsumerError> {
        let Piece { pages, handles } = &mut self.pieces[piece.0];
        let handle = handles.pop().unwrap_or(MemHandle(0));
        self.provider.deregister(pages.base().as_ptr(), handle).map_err(refused("deregister memory"))
    }

    /// Returns a segment for a descriptor: a part of a piece, under its latest registration.
    pub fn segment(&self, piece: PieceId, offset: usize, len: usize) -> Segment {
        let Remote { address, handle } = self.remote(piece, offset);
        Segment { address, handle, len: len as u32 }
    }

    /// Returns the remote address by which a peer writes to the piece at `offset`.
    pub fn remote(&self, piece: PieceId, offset: usize) -> Remote {
        let Piece { pages, handles } = &self.pieces[piece.0];
        let address = pages.base().as_ptr().expose_provenance() as u64 + offset as u64;
        Remote { address, handle: handles.last().map_or(0, |handle| handle.0) }
    }

    /// Copies bytes into a piece.
    ///
    /// # Panics
    /// Panics if the bytes do not fit.
    #[inline]
    pub fn write(&mut self, piece: PieceId, offset: usize, bytes: &[u8]) {
        self.stretch(piece, offset, bytes.len()).write(bytes);
    }

    /// Copies bytes out of a piece.
    ///
    /// # Panics
    /// Panics if the piece has fewer bytes.
    #[inline]
    pub fn read(&self, piece: PieceId, offset: usize, into: &mut [u8]) {
        self.stretch(piece, offset, into.len()).readable().read(into);
    }

    fn stretch(&self, PieceId(nth): PieceId, offset: usize, len: usize) -> Stretch {
        let pages = &self.pieces[nth].pages;
        // SAFETY: this is all of the piece, to which nobody holds a reference; callers copy at once.
        unsafe { Stretch::new(pages.base(), pages.bytes()) }.split_at(offset).1.split_at(len).0
    }

    /// Creates a VI of reliable delivery, whose receives complete on `receive_cq` if one is given.
    ///
    /// # Errors
    /// Returns an error if there are too many VIs.
    pub fn create_vi(&mut self, receive_cq: Option<CqHandle>) -> Result<ViHandle, ConsumerError> {
        self.create_vi_of(Level::Delivery, receive_cq)
    }

    /// Creates a VI of this reliability level, whose receives complete on `receive_cq` if one is given. An
    /// unreliable VI has no RDMA reads.
    ///
    /// # Errors
    /// Returns an error if there are too many VIs.
    pub fn create_vi_of(
        &mut self,
        level: Level,
        receive_cq: Option<CqHandle>,
    ) -> Result<ViHandle, ConsumerError> {
        let attributes = ViAttributes {
            level,
            transfer_bytes: LONGEST_BYTES,
            qos: 0,
            tag: self.tag,
            can_be_written: true,
            can_be_read: level.is_reliable(),
        };
        self.provider.create_vi(attributes, None, receive_cq).map_err(refused("make a VI"))
    }

    /// Destroys a disconnected VI.
    ///
    /// # Errors
    /// Returns an error if the VI is not disconnected.
    pub fn destroy_vi(&mut self, vi: ViHandle) -> Result<(), ConsumerError> {
        self.provider.destroy_vi(vi).map_err(refused("do away with a VI"))
    }

    /// Creates a completion queue of `entries` entries.
    ///
    /// # Errors
    /// Returns an error if the size is not valid.
    pub fn create_cq(&mut self, entries: usize) -> Result<CqHandle, ConsumerError> {
        let entries = u32::try_from(entries).unwrap_or(u32::MAX);
        self.provider.create_cq(entries).map_err(refused("make a completion queue"))
    }

    /// Starts to wait for one connection request at a discriminator.
    ///
    /// # Errors
    /// Returns an error if the discriminator is not valid.
    pub fn wait(&mut self, discriminator: &[u8]) -> Result<WaitHandle, ConsumerError> {
        self.provider.wait(discriminator, None).map_err(refused("wait for a connection"))
    }

    /// Connects a VI with the VI whose request has arrived. Returns whether a request has arrived.
    ///
    /// # Errors
    /// Returns an error if the connection cannot be made.
    pub fn accept(&mut self, wait: WaitHandle, vi: ViHandle) -> Result<bool, ConsumerError> {
        let waited = self.provider.waited(wait).map_err(refused("wait for a connection"))?;
        let Some(request) = waited else { return Ok(false) };
        self.provider.accept(request, vi).map_err(refused("accept a connection"))?;
        Ok(true)
    }

    /// Requests a connection with the provider that waits at `to`, for at most `timeout`.
    ///
    /// # Errors
    /// Returns an error if the request cannot be made.
    pub fn ask(
        &mut self,
        vi: ViHandle,
        discriminator: &[u8],
        to: Address,
        timeout: Duration,
    ) -> Result<(), ConsumerError> {
        let asked = self.provider.ask(vi, discriminator, to, false, Some(timeout));
        asked.map_err(refused("ask for a connection"))
    }

    /// Returns whether the requested connection is established.
    ///
    /// # Errors
    /// Returns an error if the request failed.
    pub fn is_answered(&mut self, vi: ViHandle) -> Result<bool, ConsumerError> {
        Ok(self.provider.answer(vi).map_err(refused("connect with the other process"))?.is_some())
    }

    /// Disconnects a VI.
    ///
    /// # Errors
    /// Returns an error if the VI does not exist.
    pub fn disconnect(&mut self, vi: ViHandle) -> Result<(), ConsumerError> {
        self.provider.disconnect(vi).map_err(refused("disconnect a VI"))
    }

    /// Returns whether a VI is connected.
    ///
    /// # Errors
    /// Returns an error if the VI does not exist.
    pub fn is_connected(&mut self, vi: ViHandle) -> Result<bool, ConsumerError> {
        let query = self.provider.query_vi(vi).map_err(refused("look at a VI"))?;
        Ok(query.state == State::Connected)
    }

    /// Writes a descriptor, which can then be posted any number of times.
    ///
    /// # Panics
    /// Panics if the descriptor does not exist, or if `work` has more than two segments.
    #[inline]
    pub fn describe(&mut self, descriptor: usize, work: &Work) {
        let mut bytes = [0; DESCRIPTOR_LEN];
        let laid_out = View::new(&mut bytes[..]).and_then(|mut view| view.set_work(work));
        assert!(laid_out.is_ok(), "more segments than a descriptor has here");
        self.write(DESCRIPTORS, descriptor * DESCRIPTOR_LEN, &bytes);
    }

    /// Posts a descriptor that was written by [`Consumer::describe`].
    ///
    /// # Errors
    /// Returns an error if the queue is full.
    #[inline]
    pub fn post(&mut self, vi: ViHandle, side: Side, descriptor: usize) -> Result<(), ConsumerError> {
        let Remote { address, handle } = self.remote(DESCRIPTORS, descriptor * DESCRIPTOR_LEN);
        // SAFETY: all registered memory belongs to this consumer, and stays until it is deregistered.
        unsafe { self.provider.post(vi, side, DescriptorAt { address, handle }) }
            .map_err(refused("post a descriptor"))
    }

    /// Takes the next completed descriptor of a queue; makes progress if none is completed.
    ///
    /// # Errors
    /// Returns `Broken` if the descriptor completed with an error.
    #[inline]
    pub fn done(&mut self, vi: ViHandle, side: Side) -> Result<Option<Finished>, ConsumerError> {
        let done = self.provider.done(vi, side).map_err(refused("look at a queue"))?;
        self.note_look(done.is_some());
        let Some(Completed { at, completion }) = done else { return Ok(None) };
        if completion.status.is_error() {
            return Err(self.broken(completion.status));
        }
        let offset = at.address - self.remote(DESCRIPTORS, 0).address;
        Ok(Some(Finished { descriptor: offset as usize / DESCRIPTOR_LEN, completion }))
    }

    /// Takes the next entry of a completion queue; makes progress if there is none.
    ///
    /// # Errors
    /// Returns an error if the completion queue does not exist.
    #[inline]
    pub fn cq_done(&mut self, cq: CqHandle) -> Result<Option<Done>, ConsumerError> {
        let done = self.provider.cq_done(cq).map_err(refused("look at a completion queue"))?;
        self.note_look(done.is_some());
        Ok(done)
    }

    /// Notes a look. One into another queue may complete what an earlier look did not find.
    #[inline]
    fn note_look(&mut self, has_found: bool) {
        if has_found {
            self.seen = None;
        } else if self.seen.is_none() {
            self.seen = Some(self.provider.changes());
        }
    }

    #[cold]
    fn broken(&mut self, status: Status) -> ConsumerError {
        let told = std::iter::from_fn(|| self.provider.next_news()).find_map(|news| match news {
            News::Failed(failure) => Some(failure.error),
            News::Done { .. } | News::CqDone { .. } => None,
        });
        ConsumerError::Broken { error: told, status }
    }

    /// Sleeps in the kernel until something may have arrived, for at most `most`, and then makes
    /// progress. The caller has just found nothing.
    pub fn sleep(&mut self, most: Duration) {
        let timeout = self.provider.prepare_sleep().min(most);
        let has_changed = self.seen.take().is_some_and(|seen| seen != self.provider.changes());
        // A zero timeout means that something has arrived meanwhile.
        if !has_changed
            && !timeout.is_zero()
            && let Ok(timeout) = Timespec::try_from(timeout)
        {
            // A signal ends the sleep as well.
            let _ = poll(&mut [PollFd::new(&self.provider.as_fd(), PollFlags::IN)], Some(&timeout));
        }
        self.provider.progress();
    }
}

fn untouched(bytes: usize) -> Result<Pages, ConsumerError> {
    Pages::untouched(bytes).map_err(|error| ConsumerError::Memory { bytes, error })
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests {
    use super::super::config::UdpOptions;
    use super::*;
    use std::net::SocketAddr;

    /// Returns two consumers with one connected VI each.
    fn pair(wire: WireKind, name: &[u8]) -> [(Consumer, ViHandle); 2] {
        let mut ends = [(); 2].map(|()| {
            let mut consumer = Consumer::open(wire, 4).unwrap();
            let vi = consumer.create_vi(None).unwrap();
            (consumer, vi)
        });
        let [(asks, asks_vi), (waits, waits_vi)] = &mut ends;
        let name = [name, &std::process::id().to_le_bytes()].concat();
        let wait = waits.wait(&name).unwrap();
        let to = Address { host: waits.host(), discriminator: name };
        asks.ask(*asks_vi, b"asks", to, Duration::from_secs(20)).unwrap();
        while !waits.accept(wait, *waits_vi).unwrap() {}
        while !asks.is_answered(*asks_vi).unwrap() {}
        ends
    }

    fn wires() -> [WireKind; 2] {
        let bind = SocketAddr::from(([127, 0, 0, 1], 0));
        [WireKind::Shm, WireKind::Udp(UdpOptions::new().bind(bind))]
    }

    fn work(operation: Operation, segment: Segment) -> Work {
        let segments = [segment].into_iter().collect();
        Work { operation, immediate: Some(7), is_fenced: false, segments, len: segment.len }
    }

    /// Posts work on a new piece of `bytes` bytes, with the descriptor of that number.
    fn post(end: &mut (Consumer, ViHandle), side: Side, descriptor: usize, bytes: usize) -> PieceId {
        let (consumer, vi) = end;
        let piece = consumer.allocate(bytes).unwrap();
        consumer.register(piece, false).unwrap();
        consumer.touch(piece);
        let operation = if side == Side::Send { Operation::Send } else { Operation::Receive };
        let work = work(operation, consumer.segment(piece, 0, bytes));
        consumer.describe(descriptor, &work);
        consumer.post(*vi, side, descriptor).unwrap();
        piece
    }

    fn done((consumer, vi): &mut (Consumer, ViHandle), side: Side) -> Result<Finished, String> {
        loop {
            match consumer.done(*vi, side) {
                Ok(Some(finished)) => return Ok(finished),
                Ok(None) => consumer.sleep(Duration::from_millis(1)),
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    #[test]
    fn a_message_comes_into_the_piece_of_its_receive() {
        for wire in wires() {
            let [mut asks, mut waits] = pair(wire, b"comes");
            let room = post(&mut waits, Side::Receive, 3, 6000);
            post(&mut asks, Side::Send, 1, 5000);
            assert_eq!(done(&mut asks, Side::Send).unwrap().descriptor, 1);
            let Finished { descriptor, completion } = done(&mut waits, Side::Receive).unwrap();
            assert_eq!((descriptor, completion.len, completion.immediate), (3, 5000, Some(7)));
            let mut page = [0; 2];
            waits.0.read(room, 4096, &mut page);
            assert_eq!(page, [1, 0]);
        }
    }

    #[test]
    fn what_breaks_a_vi_is_told_in_words() {
        for wire in wires() {
            let [mut asks, mut waits] = pair(wire, b"long");
            post(&mut waits, Side::Receive, 0, 10);
            post(&mut asks, Side::Send, 0, 11);
            let error = done(&mut waits, Side::Receive).unwrap_err();
            assert!(error.contains("longer than the receive"), "{error}");
            let [mut asks, waits] = pair(wire, b"gone");
            post(&mut asks, Side::Receive, 0, 10);
            drop(waits);
            let error = done(&mut asks, Side::Receive).unwrap_err();
            assert!(error.contains("has closed the connection"), "{error}");
        }
    }

    #[test]
    fn what_is_given_back_is_registered_no_more() {
        let [mut asks, mut waits] = pair(WireKind::Shm, b"renewed");
        let room = post(&mut waits, Side::Receive, 0, 5000);
        waits.0.register(room, true).unwrap();
        waits.0.renew(room, 10_000).unwrap();
        assert!(waits.0.deregister(room).is_err());
        post(&mut asks, Side::Send, 0, 5000);
        assert!(done(&mut waits, Side::Receive).is_err());
    }
}
