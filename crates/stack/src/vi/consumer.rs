//! A VI consumer (VIA 1.0): a provider together with the memory of the program that uses it.
//!
//! A [`Provider`] has to be promised that registered memory stays. A consumer keeps that promise: it has
//! all memory itself, in pieces, and gives nobody a reference to it. So descriptors and bytes are named by
//! piece and offset, or by a number, and every call is safe. What its VIs are for is always the same:
//! reliable delivery, and RDMA writes of the peer to the pieces that are registered for them.

use super::provider::{Config, News, OpenError, Provider, WireKind};
use crate::statistics::{PeerStatistics, Strays};
use netdyno_host::bytes::Stretch;
use netdyno_host::pages::Pages;
use netdyno_protocol::frame::vi_signal::Address;
use netdyno_protocol::vi::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::AsFd;
use std::time::Duration;
use thiserror::Error;

/// The longest message.
const LONGEST_BYTES: u32 = 1 << 30;
/// Bytes of a descriptor with up to two segments.
const DESCRIPTOR_LEN: usize = 64;
/// The piece that descriptors are in.
const DESCRIPTORS: PieceId = PieceId(0);

/// Why a consumer could not go on. One line.
#[derive(Debug, Error)]
pub enum ConsumerError {
    /// The provider could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The system has no memory for it.
    #[error("the system has no room for {bytes} bytes: {error}")]
    Memory {
        /// What was asked for.
        bytes: usize,
        /// What it said.
        error: std::io::Error,
    },
    /// The provider does not do what it is asked for.
    #[error("the provider of Virtual Interfaces cannot {what}: {}", of_code(*.code))]
    Refused {
        /// What it was asked for.
        what: &'static str,
        /// What a C program would be told.
        code: ReturnCode,
    },
    /// The connection is no more.
    #[error("{}", of_break(*.error, *.status))]
    Broken {
        /// What the error callback is told, where it is.
        error: Option<AsyncError>,
        /// What the first descriptor says that was not processed as it should be.
        status: Status,
    },
}

/// Why a VI broke, in words.
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

/// A code, in words where it is one that a connection may end with.
fn of_code(code: ReturnCode) -> String {
    match code {
        ReturnCode::Timeout => "the time is up".into(),
        ReturnCode::NoMatch => "nobody waits for it".into(),
        ReturnCode::Reject => "the other side does not want it".into(),
        ReturnCode::ErrorResource => "there is no room".into(),
        code => format!("{code:?}"),
    }
}

/// Makes errors of a provider's out of its codes.
fn refused<E: Into<ReturnCode>>(what: &'static str) -> impl FnOnce(E) -> ConsumerError {
    move |error| ConsumerError::Refused { what, code: error.into() }
}

/// A piece of memory of a consumer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceId(usize);

struct Piece {
    pages: Pages,
    /// Its registrations, the latest one last.
    handles: Vec<MemHandle>,
}

/// A descriptor that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Its number.
    pub descriptor: usize,
    /// What has come of it.
    pub completion: Completion,
}

/// A provider with the memory of the program that uses it.
pub struct Consumer {
    // Before the memory: it is used until the provider is gone.
    provider: Provider,
    pieces: Vec<Piece>,
    tag: Ptag,
}

impl Consumer {
    /// Opens a provider on `wire`, with room for so many descriptors of two segments each.
    ///
    /// # Errors
    /// The system does not give what it needs.
    pub fn open(wire: WireKind, descriptors: usize) -> Result<Self, ConsumerError> {
        let attributes = NicAttributes { transfer_bytes: LONGEST_BYTES, ..NicAttributes::default() };
        let mut provider = Provider::open(Config { wire, attributes })?;
        let tag = provider.create_tag().map_err(refused("make a protection tag"))?;
        let mut consumer = Self { provider, pieces: Vec::new(), tag };
        let piece = consumer.allocate(descriptors * DESCRIPTOR_LEN)?;
        consumer.register(piece, false)?;
        Ok(consumer)
    }

    /// This host, as peers name it.
    pub fn host(&self) -> Vec<u8> {
        self.provider.host()
    }

    /// What happened between a VI and its peer over UDP, and what the connection holds.
    pub fn statistics(&self, vi: ViHandle) -> Option<PeerStatistics> {
        self.provider.statistics(vi)
    }

    /// Datagrams that came and were not taken as any peer's, and those that never left.
    pub fn strays(&self) -> Strays {
        self.provider.strays()
    }

    /// Takes memory that nothing has touched. It is not registered.
    ///
    /// # Errors
    /// The system has none.
    pub fn allocate(&mut self, bytes: usize) -> Result<PieceId, ConsumerError> {
        let pages = untouched(bytes)?;
        self.pieces.push(Piece { pages, handles: Vec::new() });
        Ok(PieceId(self.pieces.len() - 1))
    }

    /// Gives a piece's memory back, and takes other memory that nothing has touched. It is not
    /// registered.
    ///
    /// # Errors
    /// The system has none, and the piece is one byte long.
    pub fn renew(&mut self, piece: PieceId, bytes: usize) -> Result<(), ConsumerError> {
        while !self.pieces[piece.0].handles.is_empty() {
            self.deregister(piece)?;
        }
        // One after the other: both may not fit.
        self.pieces[piece.0].pages = untouched(1)?;
        self.pieces[piece.0].pages = untouched(bytes)?;
        Ok(())
    }

    /// Writes to every page of a piece.
    pub fn touch(&mut self, piece: PieceId) {
        self.pieces[piece.0].pages.touch();
    }

    /// Registers a piece, which may be registered already. A peer may write to it where that is said.
    ///
    /// # Errors
    /// The provider refuses.
    #[inline]
    pub fn register(&mut self, piece: PieceId, can_be_written: bool) -> Result<(), ConsumerError> {
        let Piece { pages, handles } = &mut self.pieces[piece.0];
        let attributes = MemAttributes { tag: self.tag, can_be_written, can_be_read: false };
        // SAFETY: the memory stays until it is deregistered, or the provider is gone: then pieces are
        // dropped, or given back. Only copies are made of it.
        let handle = unsafe { self.provider.register(pages.base().as_ptr(), pages.bytes(), attributes) };
        handles.push(handle.map_err(refused("register memory"))?);
        Ok(())
    }

    /// Takes the latest registration of a piece back.
    ///
    /// # Errors
    /// There is none.
    #[inline]
    pub fn deregister(&mut self, piece: PieceId) -> Result<(), ConsumerError> {
        let Piece { pages, handles } = &mut self.pieces[piece.0];
        let handle = handles.pop().unwrap_or(MemHandle(0));
        self.provider.deregister(pages.base().as_ptr(), handle).map_err(refused("deregister memory"))
    }

    /// A part of a piece, for a descriptor, under its latest registration.
    pub fn segment(&self, piece: PieceId, offset: usize, len: usize) -> Segment {
        let Remote { address, handle } = self.remote(piece, offset);
        Segment { address, handle, len: len as u32 }
    }

    /// The same as a peer names it that writes there.
    pub fn remote(&self, piece: PieceId, offset: usize) -> Remote {
        let Piece { pages, handles } = &self.pieces[piece.0];
        let address = pages.base().as_ptr().expose_provenance() as u64 + offset as u64;
        Remote { address, handle: handles.last().map_or(0, |handle| handle.0) }
    }

    /// Copies bytes into a piece.
    ///
    /// # Panics
    /// Where they do not fit: the caller has checked.
    #[inline]
    pub fn write(&mut self, piece: PieceId, offset: usize, bytes: &[u8]) {
        self.stretch(piece, offset, bytes.len()).write(bytes);
    }

    /// Copies bytes out of a piece.
    ///
    /// # Panics
    /// Where there are fewer: the caller has checked.
    #[inline]
    pub fn read(&self, piece: PieceId, offset: usize, into: &mut [u8]) {
        self.stretch(piece, offset, into.len()).readable().read(into);
    }

    fn stretch(&self, PieceId(nth): PieceId, offset: usize, len: usize) -> Stretch {
        let pages = &self.pieces[nth].pages;
        // SAFETY: all of the piece, of which nobody has a reference; callers copy at once.
        unsafe { Stretch::new(pages.base(), pages.bytes()) }.split_at(offset).1.split_at(len).0
    }

    /// A new VI, whose receives complete on a completion queue where one is named.
    ///
    /// # Errors
    /// There are too many.
    pub fn create_vi(&mut self, receive_cq: Option<CqHandle>) -> Result<ViHandle, ConsumerError> {
        let attributes = ViAttributes {
            level: Level::Delivery,
            transfer_bytes: LONGEST_BYTES,
            qos: 0,
            tag: self.tag,
            can_be_written: true,
            can_be_read: false,
        };
        self.provider.create_vi(attributes, None, receive_cq).map_err(refused("make a VI"))
    }

    /// Does away with a VI that is disconnected.
    ///
    /// # Errors
    /// It is not.
    pub fn destroy_vi(&mut self, vi: ViHandle) -> Result<(), ConsumerError> {
        self.provider.destroy_vi(vi).map_err(refused("do away with a VI"))
    }

    /// A new completion queue of so many entries.
    ///
    /// # Errors
    /// There is no such size.
    pub fn create_cq(&mut self, entries: usize) -> Result<CqHandle, ConsumerError> {
        let entries = u32::try_from(entries).unwrap_or(u32::MAX);
        self.provider.create_cq(entries).map_err(refused("make a completion queue"))
    }

    /// Waits for one request at a discriminator from now on.
    ///
    /// # Errors
    /// There can be no such discriminator.
    pub fn wait(&mut self, discriminator: &[u8]) -> Result<WaitHandle, ConsumerError> {
        self.provider.wait(discriminator, None).map_err(refused("wait for a connection"))
    }

    /// Connects a VI with the one whose request has come. Whether one has.
    ///
    /// # Errors
    /// There is no connection.
    pub fn accept(&mut self, wait: WaitHandle, vi: ViHandle) -> Result<bool, ConsumerError> {
        let waited = self.provider.waited(wait).map_err(refused("wait for a connection"))?;
        let Some(request) = waited else { return Ok(false) };
        self.provider.accept(request, vi).map_err(refused("accept a connection"))?;
        Ok(true)
    }

    /// Asks whoever waits there for a connection, for so long at most.
    ///
    /// # Errors
    /// It can not.
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

    /// Whether what was asked for is there.
    ///
    /// # Errors
    /// It will not be.
    pub fn is_answered(&mut self, vi: ViHandle) -> Result<bool, ConsumerError> {
        Ok(self.provider.answer(vi).map_err(refused("connect with the other process"))?.is_some())
    }

    /// Ends the connection of a VI.
    ///
    /// # Errors
    /// There is no such VI.
    pub fn disconnect(&mut self, vi: ViHandle) -> Result<(), ConsumerError> {
        self.provider.disconnect(vi).map_err(refused("disconnect a VI"))
    }

    /// Whether a VI is connected.
    ///
    /// # Errors
    /// There is no such VI.
    pub fn is_connected(&mut self, vi: ViHandle) -> Result<bool, ConsumerError> {
        let query = self.provider.query_vi(vi).map_err(refused("look at a VI"))?;
        Ok(query.state == State::Connected)
    }

    /// Lays a descriptor out, to be posted as often as it is wanted.
    ///
    /// # Panics
    /// Where there is no such descriptor, or it has more than two segments: the caller has checked.
    #[inline]
    pub fn describe(&mut self, descriptor: usize, work: &Work) {
        let mut bytes = [0; DESCRIPTOR_LEN];
        let laid_out = View::new(&mut bytes[..]).and_then(|mut view| view.set_work(work));
        assert!(laid_out.is_ok(), "more segments than a descriptor has here");
        self.write(DESCRIPTORS, descriptor * DESCRIPTOR_LEN, &bytes);
    }

    /// Posts a descriptor that is laid out.
    ///
    /// # Errors
    /// The queue is full.
    #[inline]
    pub fn post(&mut self, vi: ViHandle, side: Side, descriptor: usize) -> Result<(), ConsumerError> {
        let Remote { address, handle } = self.remote(DESCRIPTORS, descriptor * DESCRIPTOR_LEN);
        // SAFETY: all that is registered is this consumer's, and stays until it is deregistered.
        unsafe { self.provider.post(vi, side, DescriptorAt { address, handle }) }
            .map_err(refused("post a descriptor"))
    }

    /// Takes the next descriptor that is done; makes progress where none is.
    ///
    /// # Errors
    /// The VI is broken.
    #[inline]
    pub fn done(&mut self, vi: ViHandle, side: Side) -> Result<Option<Finished>, ConsumerError> {
        let done = self.provider.done(vi, side).map_err(refused("look at a queue"))?;
        let Some(Completed { at, completion }) = done else { return Ok(None) };
        if completion.status.is_error() {
            return Err(self.broken(completion.status));
        }
        let offset = at.address - self.remote(DESCRIPTORS, 0).address;
        Ok(Some(Finished { descriptor: offset as usize / DESCRIPTOR_LEN, completion }))
    }

    /// Where something is done next. Makes progress where nothing is.
    ///
    /// # Errors
    /// There is no such queue.
    #[inline]
    pub fn cq_done(&mut self, cq: CqHandle) -> Result<Option<Done>, ConsumerError> {
        self.provider.cq_done(cq).map_err(refused("look at a completion queue"))
    }

    #[cold]
    fn broken(&mut self, status: Status) -> ConsumerError {
        let told = std::iter::from_fn(|| self.provider.next_news()).find_map(|news| match news {
            News::Failed(failure) => Some(failure.error),
            News::Done { .. } | News::CqDone { .. } => None,
        });
        ConsumerError::Broken { error: told, status }
    }

    /// Sleeps in the kernel until something may have come, for so long at most, and looks. The caller
    /// has found nothing just before.
    pub fn sleep(&mut self, most: Duration) {
        let timeout = self.provider.prepare_sleep().min(most);
        // What has come meanwhile is not slept over.
        if !timeout.is_zero()
            && let Ok(timeout) = Timespec::try_from(timeout)
        {
            // A signal ends a sleep as well.
            let _ = poll(&mut [PollFd::new(&self.provider.as_fd(), PollFlags::IN)], Some(&timeout));
        }
        self.provider.progress();
    }
}

fn untouched(bytes: usize) -> Result<Pages, ConsumerError> {
    Pages::untouched(bytes).map_err(|error| ConsumerError::Memory { bytes, error: error.into() })
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests {
    use super::super::udp::UdpOptions;
    use super::*;

    /// Two consumers with a VI each, connected.
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
        let bind = Some(([127, 0, 0, 1], 0).into());
        [WireKind::Shm, WireKind::Udp(UdpOptions { bind, ..UdpOptions::default() })]
    }

    fn work(operation: Operation, segment: Segment) -> Work {
        let segments = [segment].into_iter().collect();
        Work { operation, immediate: Some(7), is_fenced: false, segments, len: segment.len }
    }

    /// Posts work on a piece of so many bytes, with the descriptor of that number.
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
