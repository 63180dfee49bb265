//! A provider of Virtual Interfaces: its connections, the messages of its VIs, and memory that peers write.

use super::acks::{PREFIX, Taken};
use super::block::{BUFFER_LEN, Block, release};
use super::settings::{Acks, Copying, Switches};
use crate::engine::{Payload, RECEIVES};
use crate::frame::LONGEST_HEADER;
use crate::memory::{Memory, Window, WindowPart};
use netdyno_stack::vi::{
    Address, Completed, Config, ConnHandle, ConnectError, Level, MemAttributes, MemHandle, NicAttributes,
    OpenError, Provider, Ptag, Remote, Segment, Side, ViAttributes, ViHandle, WaitHandle, WireKind,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::slice;
use std::time::{Duration, Instant};

/// Number of requests that may wait until the next look. Further ones are refused, and repeated.
pub const WAITS: usize = 64;
/// Most bytes of one RDMA write.
const LONGEST_WRITE: u32 = 1 << 20;
/// Most segments of memory that peers may write at once. A provider registers twice as many: the others are for its own writes.
const MOST_WINDOW_PARTS: usize = 1 << 15;
/// Time for RDMA writes to end whose memory the program takes away.
const WRITES_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of VIs with the latest messages that every look includes.
const RECENT: usize = 2;
/// Number of other VIs that a look includes, by turns. So the time of a look does not grow with the number of peers.
const OTHERS: usize = 4;
/// Messages in a row for which the recent VIs come first.
const IN_A_ROW: u32 = 16;

/// A received message, which occupies a receive until it is given back.
#[derive(Debug)]
pub struct Buffer {
    vi: ViHandle,
    slot: usize,
    bytes: NonNull<u8>,
    len: usize,
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes are a buffer of the block of the VI, which is kept while a message is not given back. Nobody
        // writes there before the receive is posted again, which takes the buffer away.
        unsafe { slice::from_raw_parts(self.bytes.as_ptr(), self.len) }
    }
}

impl Buffer {
    /// Returns the VI.
    pub fn vi(&self) -> ViHandle {
        self.vi
    }
}

/// A connection that was accepted.
pub struct Accepted {
    /// The VI.
    pub vi: ViHandle,
    /// The name of the requester.
    pub name: Vec<u8>,
    /// The requester knows this process by the port that it serves.
    pub is_by_service: bool,
}

/// An event of a NIC.
pub enum NicEvent {
    /// A message has arrived.
    Message(Buffer),
    /// A VI is broken.
    Broken(ViHandle),
}

/// A provider of Virtual Interfaces and the memory of its VIs.
pub struct Nic {
    // Declared before the blocks, so that it is dropped first: it uses their memory until then.
    provider: Provider,
    blocks: FxHashMap<ViHandle, Block>,
    tag: Ptag,
    /// Where requests are waited for, and a wait at each for as many as may come until the next look.
    discriminators: Vec<Vec<u8>>,
    waits: Vec<(usize, WaitHandle)>,
    /// The connected VIs, in the order of their last messages, the latest first.
    connected: Vec<ViHandle>,
    /// Number of messages in a row for which the recent ones came first.
    row: u32,
    /// Number of the VI, of those that are not [`RECENT`], with which the next look goes on.
    turn: usize,
    /// Whether the next look includes every VI.
    looks_at_all: bool,
    /// Time for a peer to answer a request; `None` for ever.
    answer_timeout: Option<Duration>,
    /// Whether peers write long messages by RDMA. Within a host the system copies them.
    has_windows: bool,
    /// The segments of memory that peers may write now.
    window_parts: usize,
    /// Whether the message layer acknowledges, and the VI is unreliable.
    has_acks: bool,
    /// Whether an acknowledgement has come since the caller asked.
    is_news: bool,
}

impl Nic {
    /// Opens a provider, and waits for requests at a discriminator. A peer may take `answer_timeout` to answer a request.
    /// The switches say who makes messages reliable and how long ones travel.
    ///
    /// # Errors
    /// Returns an error if the system refuses memory, a socket or another resource.
    pub fn open(
        wire: WireKind,
        discriminator: &[u8],
        answer_timeout: Option<Duration>,
        switches: Switches,
    ) -> Result<Self, OpenError> {
        let is_udp = matches!(wire, WireKind::Udp(_));
        let attributes = NicAttributes { vis: 1 << 16, ..NicAttributes::default() };
        let mut provider = Provider::open(Config::new(wire).attributes(attributes))?;
        let tag = provider.create_tag().unwrap_or(Ptag(0));
        let mut nic = Self {
            provider,
            blocks: FxHashMap::default(),
            tag,
            discriminators: vec![discriminator.to_vec()],
            waits: Vec::new(),
            connected: Vec::new(),
            row: 0,
            turn: 0,
            looks_at_all: false,
            answer_timeout,
            has_windows: switches.copying == Copying::Direct && switches.acks == Acks::None && is_udp,
            window_parts: 0,
            has_acks: switches.acks == Acks::Explicit,
            is_news: false,
        };
        nic.keep_waiting();
        Ok(nic)
    }

    /// Returns the address of this host.
    pub fn host(&self) -> Vec<u8> {
        self.provider.host()
    }

    /// Waits for requests at another discriminator as well.
    ///
    /// # Errors
    /// Returns an error if another process waits there.
    pub fn wait_at(&mut self, discriminator: &[u8]) -> Result<(), ConnectError> {
        let wait = self.provider.wait(discriminator, None)?;
        self.waits.push((self.discriminators.len(), wait));
        self.discriminators.push(discriminator.to_vec());
        self.keep_waiting();
        Ok(())
    }

    fn keep_waiting(&mut self) {
        for (place, discriminator) in self.discriminators.iter().enumerate() {
            let count = self.waits.iter().filter(|(other, _)| *other == place).count();
            for _ in count..WAITS {
                let Ok(wait) = self.provider.wait(discriminator, None) else { break };
                self.waits.push((place, wait));
            }
        }
    }

    /// Returns a new VI with its receives posted; `None` if the system has no room.
    pub fn create_vi(&mut self) -> Option<ViHandle> {
        let attributes = ViAttributes {
            level: if self.has_acks { Level::Unreliable } else { Level::Delivery },
            transfer_bytes: if self.has_windows { LONGEST_WRITE } else { BUFFER_LEN as u32 },
            qos: 0,
            tag: self.tag,
            can_be_written: self.has_windows,
            can_be_read: false,
        };
        let block = Block::new(&mut self.provider, self.tag, self.has_acks)?;
        let Ok(vi) = self.provider.create_vi(attributes, None, None) else {
            block.end(&mut self.provider);
            return None;
        };
        let receives = block.receives();
        self.blocks.insert(vi, block);
        let Self { provider, blocks, .. } = self;
        let block = blocks.get(&vi)?;
        (0..receives).try_for_each(|slot| block.post_receive(provider, vi, slot)).ok()?;
        Some(vi)
    }

    /// Asks a process for a connection with a VI. An earlier request of it must have ended.
    ///
    /// # Errors
    /// Returns an error if the request cannot be made.
    pub fn ask(&mut self, vi: ViHandle, from: &[u8], to: Address) -> Result<(), ConnectError> {
        self.provider.ask(vi, from, to, false, self.answer_timeout)
    }

    /// Returns whether a request was answered.
    ///
    /// # Errors
    /// Returns an error if it was refused.
    pub fn is_answered(&mut self, vi: ViHandle) -> Result<bool, ConnectError> {
        let is_answered = self.provider.answer(vi)?.is_some();
        if is_answered {
            self.connected.push(vi);
        }
        Ok(is_answered)
    }

    /// Answers the requests that have arrived. `is_welcome` says by the name of a requester, and by whether it knows this
    /// process by the port that it serves, whether it gets a connection.
    pub fn accept(&mut self, is_welcome: impl Fn(&[u8], bool) -> bool) -> Vec<Accepted> {
        let (mut accepted, mut is_any) = (Vec::new(), false);
        for place in (0..self.waits.len()).rev() {
            let (discriminator, wait) = self.waits[place];
            if !self.provider.has_request(wait) {
                continue;
            }
            match self.provider.waited(wait) {
                // The requester has withdrawn it just now. The wait goes on.
                Ok(None) => {}
                Ok(Some(conn)) => {
                    self.waits.swap_remove(place);
                    is_any = true;
                    let is_by_service = discriminator > 0;
                    let one = self.accept_one(conn, |name| is_welcome(name, is_by_service));
                    accepted.extend(one.map(|(vi, name)| Accepted { vi, name, is_by_service }));
                }
                Err(_) => drop(self.waits.swap_remove(place)),
            }
        }
        if is_any {
            self.keep_waiting();
        }
        accepted
    }

    fn accept_one(
        &mut self,
        conn: ConnHandle,
        is_welcome: impl Fn(&[u8]) -> bool,
    ) -> Option<(ViHandle, Vec<u8>)> {
        let name = self.provider.request(conn).ok()?.from.discriminator.clone();
        let vi = if is_welcome(&name) { self.create_vi() } else { None };
        let Some(vi) = vi else {
            // A requester without an error of its own asks again.
            let _ = self.provider.reject(conn);
            return None;
        };
        if self.provider.accept(conn, vi).is_err() {
            let _ = self.provider.reject(conn);
            self.destroy(vi);
            return None;
        }
        self.connected.push(vi);
        Some((vi, name))
    }

    /// Ends a VI, and frees its memory unless the caller has messages of it.
    pub fn destroy(&mut self, vi: ViHandle) {
        self.connected.retain(|connected| *connected != vi);
        let _ = self.provider.disconnect(vi);
        for side in [Side::Send, Side::Receive] {
            while let Ok(Some(_)) = self.provider.done(vi, side) {}
        }
        if self.blocks.get(&vi).is_some_and(|block| block.taken == 0)
            && self.provider.destroy_vi(vi).is_ok()
            && let Some(block) = self.blocks.remove(&vi)
        {
            block.end(&mut self.provider);
        }
    }

    /// Lets peers write memory. Returns `None` if they cannot.
    pub fn open_window(&mut self, memory: &Memory) -> Option<Window> {
        if !self.has_windows || self.window_parts >= MOST_WINDOW_PARTS {
            return None;
        }
        let mut window = Window::default();
        for segment in memory.segments().iter().filter(|segment| segment.len > 0) {
            let Some(handle) = self.register(segment.address, segment.len, true) else {
                self.close_window(&window);
                return None;
            };
            window.parts.push(WindowPart { segment: *segment, handle: handle.0.into() });
            self.window_parts += 1;
        }
        (!window.parts.is_empty()).then_some(window)
    }

    /// Ends the access of peers to memory.
    pub fn close_window(&mut self, window: &Window) {
        for part in &window.parts {
            release(&mut self.provider, part.segment.address, part.handle as u32);
            self.window_parts = self.window_parts.saturating_sub(1);
        }
    }

    fn register(&mut self, address: u64, len: u64, can_be_written: bool) -> Option<MemHandle> {
        let attributes = MemAttributes { tag: self.tag, can_be_written, can_be_read: false };
        let base = ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: the program keeps the memory of an operation until it is complete. Its end deregisters it.
        unsafe { self.provider.register(base, len as usize, attributes) }.ok()
    }

    /// Writes bytes from an offset on to the same offset of a peer's window, by one RDMA write. Returns their number; 0 if
    /// that is impossible now.
    pub fn try_write(&mut self, vi: ViHandle, memory: &Memory, offset: usize, window: &Window) -> usize {
        let Some(to) = window.at(offset) else { return 0 };
        let most = to.segment.len.min(LONGEST_WRITE.into()) as usize;
        let Some(from) = memory.part(offset, most).segments().first().copied() else { return 0 };
        let Some(handle) = self.register(from.address, from.len, false) else { return 0 };
        let from = Segment { address: from.address, handle: handle.0, len: from.len as u32 };
        let to = Remote { address: to.segment.address, handle: to.handle as u32 };
        let Self { provider, blocks, .. } = self;
        if blocks.get_mut(&vi).is_some_and(|block| block.write_to(provider, vi, from, to)) {
            return from.len as usize;
        }
        release(provider, from.address, from.handle);
        0
    }

    /// Waits until nothing is read any more from memory that a VI writes to its peer.
    pub fn finish_writes(&mut self, vi: ViHandle) {
        let until = Instant::now() + WRITES_TIMEOUT;
        loop {
            let Some(block) = self.blocks.get_mut(&vi) else { return };
            let is_sound = block.take_complete_sends(&mut self.provider, vi);
            if !block.is_writing() {
                return;
            }
            if !is_sound || Instant::now() >= until {
                break;
            }
            self.provider.progress();
        }
        // This breaks the VI, and nothing is read any more.
        let Self { provider, blocks, .. } = self;
        blocks.get_mut(&vi).into_iter().for_each(|block| block.end_writes(provider));
    }

    /// Sends a message, if the VI has a free send.
    pub fn try_send(&mut self, vi: ViHandle, header: &[u8], payload: Payload<'_>) -> bool {
        let Self { provider, blocks, .. } = self;
        let Some(block) = blocks.get_mut(&vi) else { return false };
        let Some(acks) = &block.acks else {
            return block.send(provider, vi, |room| payload.write_behind(header, room)).is_some();
        };
        if acks.kept() >= RECEIVES.into() {
            return false;
        }
        let mut prefixed = SmallVec::<[u8; PREFIX + LONGEST_HEADER]>::from_slice(&acks.prefix());
        prefixed.extend_from_slice(header);
        let sent = block.send(provider, vi, |room| payload.write_behind(&prefixed, room)).map(<[u8]>::to_vec);
        let now = Instant::now();
        sent.as_ref().zip(block.acks.as_mut()).map(|(sent, acks)| acks.keep(sent, now)).is_some()
    }

    /// Returns the next event of the connected VIs.
    pub fn next(&mut self) -> Option<NicEvent> {
        loop {
            match self.next_done()? {
                NicEvent::Message(buffer) => {
                    if let Some(buffer) = self.acknowledged(buffer) {
                        return Some(NicEvent::Message(buffer));
                    }
                }
                event @ NicEvent::Broken(_) => return Some(event),
            }
        }
    }

    /// Makes the next look include every VI, as a caller wants who looks seldom, or not again before a signal.
    pub fn look_at_all(&mut self) {
        self.looks_at_all = true;
    }

    /// Returns the next event, and with it what the message layer sends for itself.
    fn next_done(&mut self) -> Option<NicEvent> {
        let recent = self.connected.len().min(RECENT);
        let others = self.connected.len() - recent;
        let looked_at = if self.looks_at_all { others } else { others.min(OTHERS) };
        let begin = self.turn;
        let in_turn = |nth: usize| recent + (begin + nth) % others;
        // The next message is likely of a recent peer. After some messages the others come first, and of the
        // recent ones the one whose message is the oldest.
        let is_last_first = self.row >= IN_A_ROW;
        for nth in 0..recent + looked_at {
            let place = match is_last_first {
                false if nth < recent => nth,
                false => in_turn(nth - recent),
                true if nth < looked_at => in_turn(nth),
                true => recent - 1 - (nth - looked_at),
            };
            if place >= recent {
                // The next look goes on behind those that this one reaches.
                self.turn = (place - recent + 1) % others;
            }
            let vi = self.connected[place];
            let Ok(Some(Completed { at, completion })) = self.provider.done(vi, Side::Receive) else {
                continue;
            };
            if completion.status.is_error() {
                self.connected.remove(place);
                return Some(NicEvent::Broken(vi));
            }
            let block = self.blocks.get_mut(&vi)?;
            let (slot, buffer) = block.slot_of(at);
            let bytes = NonNull::new(buffer)?;
            self.row = if is_last_first { 0 } else { self.row + 1 };
            if place > 0 {
                self.connected[..=place].rotate_right(1);
            }
            block.taken += 1;
            return Some(NicEvent::Message(Buffer { vi, slot, bytes, len: completion.len as usize }));
        }
        self.looks_at_all = false;
        None
    }

    /// Returns a message without its prefix if the caller gets it, and acknowledges it, where the message layer does that.
    fn acknowledged(&mut self, buffer: Buffer) -> Option<Buffer> {
        if !self.has_acks {
            return Some(buffer);
        }
        let Self { provider, blocks, .. } = self;
        let Some(block) = blocks.get_mut(&buffer.vi) else { return Some(buffer) };
        let Some(acks) = &mut block.acks else { return Some(buffer) };
        let taken = acks.take(&buffer, Instant::now());
        if taken != Taken::Nothing {
            block.acknowledge(provider, buffer.vi);
        }
        if taken == Taken::Next {
            // SAFETY: the message is longer than its prefix.
            let bytes = unsafe { buffer.bytes.add(PREFIX) };
            return Some(Buffer { bytes, len: buffer.len - PREFIX, ..buffer });
        }
        self.is_news |= taken == Taken::Nothing;
        self.give_back(buffer);
        None
    }

    /// Posts the receive of a message again.
    pub fn give_back(&mut self, Buffer { vi, slot, .. }: Buffer) {
        let Self { provider, blocks, .. } = self;
        if let Some(block) = blocks.get_mut(&vi) {
            block.taken -= 1;
            // A VI that is broken completes the receive with an error. One that was destroyed has no receives.
            let _ = block.post_receive(provider, vi, slot);
        }
    }

    /// Returns whether an acknowledgement has come since the last call.
    pub fn take_acknowledged(&mut self) -> bool {
        std::mem::take(&mut self.is_news)
    }

    /// Returns whether a peer has acknowledged all that a VI has sent.
    pub fn is_acknowledged(&self, vi: ViHandle) -> bool {
        self.blocks.get(&vi).and_then(|block| block.acks.as_ref()).is_none_or(|acks| acks.kept() == 0)
    }

    /// Returns whether the peers have all that was sent.
    pub fn is_flushed(&mut self) -> bool {
        let mut is_flushed = true;
        for vi in &self.connected {
            let Some(block) = self.blocks.get_mut(vi) else { continue };
            block.take_complete_sends(&mut self.provider, *vi);
            is_flushed &= block.is_complete() && self.provider.is_delivered(*vi);
            is_flushed &= block.acks.as_ref().is_none_or(|acks| acks.kept() == 0 && !acks.is_owed);
        }
        is_flushed
    }

    /// Prepares for a sleep, which the next call of [`Nic::maintain`] ends. Returns the longest permitted sleep.
    pub fn prepare_sleep(&mut self) -> Duration {
        let now = Instant::now();
        let all = self.blocks.values().filter_map(|block| block.acks.as_ref());
        let due = all.filter_map(|acks| acks.until_due(now)).min().unwrap_or(Duration::MAX);
        self.provider.prepare_sleep().min(due)
    }

    /// Hears of requests, answers and lost peers, and checks timers.
    pub fn maintain(&mut self) {
        self.provider.progress();
        // The receives of a VI tell of its end, behind the messages that came before.
        while self.provider.next_news().is_some() {}
        if self.has_acks {
            for vi in &self.connected {
                self.blocks.get_mut(vi).into_iter().for_each(|block| block.retry(&mut self.provider, *vi));
            }
        }
    }
}

impl AsFd for Nic {
    /// Returns the descriptor that becomes readable during a sleep.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.provider.as_fd()
    }
}
