//! One connection: a lane each way, and what a few words of memory tell the peer.
//!
//! A line says what it is:
//!
//! | code | words | and |
//! | --- | --- | --- |
//! | whole | head, then its bytes | nothing more |
//! | beside | head | a piece with all of its bytes |
//! | begins | head | its bytes in pieces, in the lines behind |
//! | piece | number and length | a piece of the message that has begun |
//! | abandoned | | no more of that message |
//! | served | number and length | a piece of what an RDMA read asked for |

use super::agent::Conn;
use crate::vi::local;
use netdyno_host::bytes::Stretch;
use netdyno_host::lane::{self, Lied, PIECE, Reader, Writer};
use netdyno_host::region::{PAGE, Region};
use netdyno_host::segment::Segment;
use netdyno_protocol::frame::vi_message::{Head, Kind, Refusal, Verdict};
use netdyno_protocol::vi::{Arrival, Level, Nic, Outgoing, Parting, Progress, Segment as Part, ViHandle};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Bytes of the memory that a peer writes to: a page of words, and a lane.
pub(super) const INBOX_LEN: usize = PAGE + lane::LEN;

/// Words of the first page, each on lines of its own. The owner writes the first three.
const TAKEN: usize = 256;
/// What the end of the owner's lane is, plus one, once it has left.
const LEFT: usize = 512;
/// The verdict by which the owner has refused a message.
const REFUSED: usize = 520;
/// Whether the owner sleeps; the peer takes it back.
const ASLEEP: usize = 768;

const WHOLE: u8 = 1;
const BESIDE: u8 = 2;
const BEGINS: u8 = 3;
const OF_MESSAGE: u8 = 4;
const ABANDONED: u8 = 5;
const SERVED: u8 = 6;

/// Lines taken in a row, so that others get their turn.
const AT_ONCE: usize = 32;
/// The same of those with pieces, which are to be copied.
const PIECES_AT_ONCE: u32 = 4;
/// Lines after which the peer is told that they are taken.
const TOLD_AFTER: u64 = 16;
/// RDMA reads of a peer's that may wait to be served: more than the descriptors of any VI.
const MOST_SERVED: usize = 1 << 16;
/// Looks in a row that find nothing, after which it is told of fewer.
const IDLE: u32 = 64;

/// A message of ours, of which not all is in the lane.
struct Sending {
    number: u64,
    head: Head,
    at: u32,
}

/// A message of the peer's, of which not all has come.
struct Placing {
    head: Head,
    at: u32,
    is_wanted: bool,
}

/// What the peer's memory says of its end.
enum Ending {
    /// It refuses a message of ours, and with that the connection.
    Refused(Verdict),
    /// It has left, and its lane ends there.
    Left(u64),
}

pub(super) struct Link {
    vi: ViHandle,
    level: Level,
    pub conn: Conn,
    /// The peer's number for it.
    pub remote: u64,
    ours: Arc<Segment>,
    theirs: Arc<Region>,
    writer: Writer,
    reader: Reader,
    sending: Option<Sending>,
    /// Messages in the lane that are complete when the peer has taken so many lines.
    unconfirmed: VecDeque<(u64, u64)>,
    /// RDMA reads of ours, in the order of their asking, and the bytes that have come of the first.
    reads: VecDeque<(u64, u32)>,
    fetched: u32,
    placing: Option<Placing>,
    /// What the peer reads, and how far it was served.
    serving: VecDeque<(Head, u32)>,
    is_turn_of_reads: bool,
    last_number: u64,
    told: u64,
    idle: u32,
    is_blocked: bool,
    /// Something is complete for which others may have waited.
    is_further: bool,
    /// The peer has written what nobody writes: nothing more of it is read.
    is_broken: bool,
    /// Its process has ended, or has closed the socket, behind all that it wrote.
    pub is_closed: bool,
    /// A message of the peer's was refused: nothing behind it is taken.
    has_refused: bool,
    parts: Vec<Part>,
    stretches: Vec<Stretch>,
}

impl Link {
    /// # Safety
    /// Nobody else in this process uses the two.
    pub(super) unsafe fn new(
        vi: ViHandle,
        level: Level,
        (conn, remote): (Conn, u64),
        ours: Arc<Segment>,
        theirs: Arc<Region>,
    ) -> Self {
        // SAFETY: the caller's promise; both are as long.
        let (writer, reader) = unsafe { (Writer::new(&theirs, PAGE), Reader::new(&ours.region, PAGE)) };
        Self {
            vi,
            level,
            conn,
            remote,
            ours,
            theirs,
            writer,
            reader,
            sending: None,
            unconfirmed: VecDeque::new(),
            reads: VecDeque::new(),
            fetched: 0,
            placing: None,
            serving: VecDeque::new(),
            is_turn_of_reads: true,
            last_number: 0,
            told: 0,
            idle: 0,
            is_blocked: false,
            is_further: false,
            is_broken: false,
            is_closed: false,
            has_refused: false,
            parts: Vec::new(),
            stretches: Vec::new(),
        }
    }

    pub(super) fn vi(&self) -> ViHandle {
        self.vi
    }

    fn ours(&self, word: usize) -> &AtomicU64 {
        self.ours.region.word(word)
    }

    /// Carries what the VI sends, as far as there is room. Whether the peer is to be woken.
    #[inline]
    pub(super) fn send(&mut self, nic: &mut Nic) -> bool {
        let before = self.writer.written();
        (self.is_blocked, self.is_further) = (false, false);
        while self.go_on(nic) {
            match nic.next(self.vi) {
                Some(outgoing) => self.begin(nic, outgoing),
                None if self.serving.is_empty() => break,
                None => {}
            }
            // What the peer reads, and what this side sends, take turns.
            self.is_turn_of_reads = true;
        }
        self.writer.written() != before && self.is_peer_asleep()
    }

    /// Whether the peer sleeps and nobody has woken it.
    #[inline]
    fn is_peer_asleep(&self) -> bool {
        // Pairs with the fence of `fall_asleep`: either it sees the line, or this side that it sleeps.
        fence(Ordering::SeqCst);
        let asleep = self.theirs.word(ASLEEP);
        asleep.load(Ordering::Relaxed) != 0 && asleep.swap(0, Ordering::Relaxed) != 0
    }

    /// The peer is to wake this side from now on.
    pub(super) fn fall_asleep(&self) {
        self.ours(ASLEEP).store(1, Ordering::Relaxed);
        // Pairs with the fence of `is_peer_asleep`.
        fence(Ordering::SeqCst);
    }

    /// Goes on with what was begun. Whether there is room for something new.
    #[inline]
    fn go_on(&mut self, nic: &mut Nic) -> bool {
        loop {
            if !self.writer.has_room() {
                self.find_room();
                if !self.writer.has_room() {
                    self.is_blocked = true;
                    return false;
                }
            }
            if self.is_turn_of_reads && !self.serving.is_empty() {
                self.is_turn_of_reads = false;
                self.serve(nic);
            } else if let Some(sending) = self.sending.take() {
                self.is_turn_of_reads = true;
                self.send_piece(nic, sending);
            } else {
                return true;
            }
        }
    }

    /// Looks how much the peer has taken.
    fn find_room(&mut self) {
        // Acquire: what the peer has copied out of the lane is copied before it says so.
        let taken = self.theirs.word(TAKEN).load(Ordering::Acquire);
        if let Err(Lied) = self.writer.free(taken) {
            self.is_broken = true;
        }
    }

    #[inline]
    fn begin(&mut self, nic: &mut Nic, Outgoing { number, head }: Outgoing) {
        self.last_number = number;
        let packed = head.pack();
        let mut words = [0; lane::WORDS];
        let head_words = head_words(&head);
        words[..head_words].copy_from_slice(&packed[..head_words]);
        if let Kind::Read { .. } = head.kind {
            self.reads.push_back((number, head.len));
            return self.writer.write(WHOLE, &words);
        }
        let len = head.len as usize;
        if len > PIECE {
            self.writer.write(BEGINS, &words);
            self.sending = Some(Sending { number, head, at: 0 });
            return;
        }
        if !self.gather(nic, number, 0, head.len) {
            return;
        }
        if len <= 8 * (lane::WORDS - head_words) {
            put(&self.stretches, &mut words[head_words..]);
            self.writer.write(WHOLE, &words);
        } else {
            self.writer.write_piece(BESIDE, &words, &self.stretches);
        }
        self.sent(nic, number);
    }

    /// All of a message is in the lane.
    #[inline]
    fn sent(&mut self, nic: &mut Nic, number: u64) {
        if self.level == Level::Reception {
            self.unconfirmed.push_back((self.writer.written(), number));
        } else {
            nic.progress(self.vi, number, Progress::Accepted);
        }
    }

    /// Finds the bytes of a message of ours. False where they may not be used any more.
    #[inline]
    fn gather(&mut self, nic: &mut Nic, number: u64, at: u32, len: u32) -> bool {
        self.parts.clear();
        let is_there = nic.bytes_of(self.vi, number, at, len, &mut self.parts).is_ok();
        self.spread();
        is_there
    }

    /// Makes pointers of the parts that the rules have allowed.
    #[inline]
    fn spread(&mut self) {
        self.stretches.clear();
        // SAFETY: the rules have found each in registered memory.
        self.stretches.extend(self.parts.iter().map(|part| unsafe { local::stretch(part) }));
    }

    fn send_piece(&mut self, nic: &mut Nic, Sending { number, head, at }: Sending) {
        let len = (head.len - at).min(PIECE as u32);
        if !self.gather(nic, number, at, len) {
            return self.writer.write(ABANDONED, &[0; lane::WORDS]);
        }
        self.writer.write_piece(OF_MESSAGE, &piece_words(head.number, len), &self.stretches);
        if at + len == head.len {
            self.sent(nic, number);
        } else {
            self.sending = Some(Sending { number, head, at: at + len });
        }
    }

    /// Sends a piece of what the peer reads.
    fn serve(&mut self, nic: &mut Nic) {
        let Some((head, at)) = self.serving.front().copied() else { return };
        let len = (head.len - at).min(PIECE as u32);
        match nic.serves(self.vi, &head, at, len) {
            Err(refusal) => self.refuse(head.number, refusal),
            Ok(part) => {
                self.parts.clear();
                self.parts.push(part);
                self.spread();
                self.writer.write_piece(SERVED, &piece_words(head.number, len), &self.stretches);
                if let Some((_, served)) = self.serving.front_mut() {
                    *served += len;
                }
                if at + len == head.len {
                    self.serving.pop_front();
                }
            }
        }
    }

    /// Tells the peer that a message of its own is refused, and with that all.
    fn refuse(&mut self, number: u32, refusal: Refusal) {
        self.serving.clear();
        self.placing = None;
        self.tell_taken();
        let verdict = Verdict { number, refusal: Some(refusal) };
        self.ours(REFUSED).store(verdict.pack(), Ordering::Release);
        self.has_refused = true;
    }

    /// Takes what has come. Whether anything has, and whether the peer is to be woken.
    #[inline]
    pub(super) fn receive(&mut self, nic: &mut Nic) -> (bool, bool) {
        let (mut count, mut pieces) = (0, 0);
        while count < AT_ONCE
            && pieces < PIECES_AT_ONCE
            && !self.is_broken
            && !self.has_refused
            && let Some((code, words)) = self.reader.read()
        {
            count += 1;
            pieces += u32::from(code != WHOLE);
            if self.take(nic, code, &words).is_none() {
                self.is_broken = true;
            }
            self.reader.advance();
        }
        if count > 0 {
            self.idle = 0;
            // What was refused is not confirmed.
            let is_due = self.level == Level::Reception || self.reader.taken() - self.told >= TOLD_AFTER;
            if is_due && !self.has_refused {
                self.tell_taken();
            }
        } else {
            self.find_nothing(nic);
        }
        self.confirm(nic);
        let has_more = self.is_blocked || self.is_further || !self.serving.is_empty();
        let wakes = has_more && self.send(nic);
        // Who waits for a confirmation is woken by it as well.
        let is_told = self.has_refused || self.told == self.reader.taken();
        let wakes = wakes || count > 0 && is_told && self.is_peer_asleep();
        (count > 0, wakes)
    }

    fn tell_taken(&mut self) {
        self.told = self.reader.taken();
        // Release: what was copied out of the lane was copied before.
        self.ours(TAKEN).store(self.told, Ordering::Release);
    }

    /// What the peer has confirmed is complete.
    #[inline]
    fn confirm(&mut self, nic: &mut Nic) {
        if self.unconfirmed.is_empty() {
            return;
        }
        self.find_room();
        let taken = self.writer.taken();
        while let Some(&(_, number)) = self.unconfirmed.front().filter(|(lines, _)| *lines <= taken) {
            self.unconfirmed.pop_front();
            self.is_further = true;
            nic.progress(self.vi, number, Progress::Received);
        }
    }

    #[inline]
    fn find_nothing(&mut self, nic: &mut Nic) {
        self.idle = self.idle.saturating_add(1);
        if self.idle == IDLE && self.told != self.reader.taken() && !self.has_refused {
            self.tell_taken();
        }
        match self.ending() {
            // What was taken before it is complete.
            Some(Ending::Refused(Verdict { number, refusal })) => {
                self.confirm(nic);
                let behind = (self.last_number as u32).wrapping_sub(number);
                let number = self.last_number.wrapping_sub(behind.into());
                let progress = refusal.map_or(Progress::Received, Progress::Refused);
                nic.progress(self.vi, number, progress);
                nic.left(self.vi);
            }
            Some(Ending::Left(end)) if end == self.reader.taken() => {
                self.confirm(nic);
                nic.left(self.vi);
            }
            Some(Ending::Left(_)) | None if self.is_broken || self.is_closed => {
                self.confirm(nic);
                nic.lost(self.vi);
            }
            Some(Ending::Left(_)) | None => {}
        }
    }

    #[inline]
    fn ending(&mut self) -> Option<Ending> {
        // Acquire: what the peer has said before it ended is seen.
        let refused = self.theirs.word(REFUSED).load(Ordering::Acquire);
        if refused != 0 {
            let verdict = Verdict::parse(refused);
            self.is_broken |= verdict.is_err();
            return verdict.ok().map(Ending::Refused);
        }
        self.theirs.word(LEFT).load(Ordering::Acquire).checked_sub(1).map(Ending::Left)
    }

    /// Takes a line. `None` where it has no meaning.
    #[inline]
    fn take(&mut self, nic: &mut Nic, code: u8, words: &[u64; lane::WORDS]) -> Option<()> {
        match code {
            WHOLE | BESIDE | BEGINS => self.take_head(nic, code, words),
            OF_MESSAGE => self.take_piece(nic, words),
            ABANDONED => {
                self.placing.take()?;
                nic.abandon(self.vi);
                Some(())
            }
            SERVED => self.take_served(nic, words),
            _ => None,
        }
    }

    #[inline]
    fn take_head(&mut self, nic: &mut Nic, code: u8, words: &[u64; lane::WORDS]) -> Option<()> {
        let is_send = words[0] & 0xff == 1;
        let (remote, inline) = if is_send { ([0; 2], 2) } else { ([words[2], words[3]], 4) };
        let head = Head::parse([words[0], words[1], remote[0], remote[1]]).ok()?;
        let (len, is_read) = (head.len as usize, matches!(head.kind, Kind::Read { .. }));
        let is_meant = self.placing.is_none()
            && match code {
                WHOLE => is_read || len <= 8 * (lane::WORDS - inline),
                BESIDE => !is_read && len <= PIECE,
                _ => !is_read && len > PIECE,
            };
        if !is_meant {
            return None;
        }
        // Its place in the buffer is behind, whatever becomes of it.
        let beside = (code == BESIDE).then(|| self.reader.piece(len));
        match nic.arrive(self.vi, &head) {
            Arrival::Refuse(refusal) => self.refuse(head.number, refusal),
            // More than a VI can ask for.
            Arrival::Serve if self.serving.len() >= MOST_SERVED => return None,
            Arrival::Serve => self.serving.push_back((head, 0)),
            arrival if code == BEGINS => {
                self.placing = Some(Placing { head, at: 0, is_wanted: arrival == Arrival::Place });
            }
            Arrival::Drop => {}
            Arrival::Place => {
                let bytes = words.map(u64::to_le_bytes);
                // SAFETY: a local that outlives the copy.
                let here = || unsafe { Stretch::new(NonNull::from(&bytes[inline..]).cast(), len) };
                let from = beside.unwrap_or_else(here);
                if self.place(nic, &head, 0, from) {
                    nic.arrived(self.vi);
                }
            }
        }
        Some(())
    }

    /// Places bytes of the message that is coming. Whether they have a place.
    #[inline]
    fn place(&mut self, nic: &mut Nic, head: &Head, at: u32, from: Stretch) -> bool {
        self.parts.clear();
        match nic.places(self.vi, at, from.len() as u32, &mut self.parts) {
            Err(refusal) => {
                if self.level.is_reliable() {
                    self.refuse(head.number, refusal);
                }
                false
            }
            Ok(()) => {
                self.spread();
                scatter(from, &self.stretches);
                true
            }
        }
    }

    fn take_piece(&mut self, nic: &mut Nic, words: &[u64; lane::WORDS]) -> Option<()> {
        let Placing { head, at, is_wanted } = self.placing.take()?;
        let len = (head.len - at).min(PIECE as u32);
        if words[0] != piece_words(head.number, len)[0] {
            return None;
        }
        let from = self.reader.piece(len as usize);
        let is_wanted = is_wanted && self.place(nic, &head, at, from);
        if at + len < head.len {
            self.placing = Some(Placing { head, at: at + len, is_wanted });
        } else if is_wanted {
            nic.arrived(self.vi);
        }
        Some(())
    }

    fn take_served(&mut self, nic: &mut Nic, words: &[u64; lane::WORDS]) -> Option<()> {
        let (number, whole) = self.reads.front().copied()?;
        let len = (whole - self.fetched).min(PIECE as u32);
        if words[0] != piece_words(number as u32, len)[0] {
            return None;
        }
        let from = self.reader.piece(len as usize);
        if self.gather(nic, number, self.fetched, len) {
            scatter(from, &self.stretches);
        }
        self.fetched += len;
        if self.fetched == whole {
            self.reads.pop_front();
            (self.fetched, self.is_further) = (0, true);
            nic.progress(self.vi, number, Progress::Fetched);
        }
        Some(())
    }

    /// This side has ended the connection. Whether the peer is to be woken.
    pub(super) fn leave(&mut self, parting: Parting) -> bool {
        if parting == Parting::Ours {
            self.ours(LEFT).store(self.writer.written() + 1, Ordering::Release);
        }
        if !self.has_refused {
            self.tell_taken();
        }
        self.is_peer_asleep()
    }
}

/// Words of a head that are sent: of a send, which names no memory, two.
#[inline]
const fn head_words(head: &Head) -> usize {
    if matches!(head.kind, Kind::Send { .. }) { 2 } else { 4 }
}

/// The words of a piece.
fn piece_words(number: u32, len: u32) -> [u64; lane::WORDS] {
    let mut words = [0; lane::WORDS];
    words[0] = u64::from(number) << 32 | u64::from(len);
    words
}

/// Copies all of `from` to where it belongs.
#[inline]
fn scatter(mut from: Stretch, to: &[Stretch]) {
    for place in to {
        let (now, rest) = from.split_at(place.len());
        now.copy_to(place);
        from = rest;
    }
}

/// Copies what fits into words.
#[inline]
fn put(from: &[Stretch], words: &mut [u64]) {
    let mut bytes = [0_u8; 8 * lane::WORDS];
    let mut at = 0;
    for stretch in from {
        // SAFETY: a local that outlives the copy, and has room for all.
        let room = unsafe { Stretch::new(NonNull::from(&mut bytes[at..]).cast(), stretch.len()) };
        stretch.copy_to(&room);
        at += stretch.len();
    }
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
}
