//! One connection: a message ring each way, and the control block of each side.
//!
//! The code of a slot says what the slot contains:
//!
//! | code | words | and |
//! | --- | --- | --- |
//! | whole | head, then the bytes | nothing more |
//! | write | head of an RDMA write in three words, then the bytes | nothing more |
//! | beside | head | one piece with all bytes |
//! | begins | head | pieces with the bytes, in the slots behind |
//! | piece | number and length | a piece of the message that has begun |
//! | abandoned | | the rest of that message does not come |
//! | served | number and length | a piece of the answer to an RDMA read |
//! | lent | head, identifier and offset | the bytes are in memory of the sender that the reader has mapped |

mod sending;
mod taking;

use super::lent::Lender;
use crate::vi::agent::Conn;
use crate::vi::local;
use netdyno_host::bytes::{Readable, Stretch};
use netdyno_host::lane::{self, Lied, PIECE, Reader, Room, Writer};
use netdyno_host::loan::{Borrowed, Loan};
use netdyno_host::region::{CONTROL_BYTES, Region};
use netdyno_host::segment::Segment;
use netdyno_host::sleep;
use netdyno_protocol::frame::vi_message::{Head, Kind, Refusal, Verdict, number_of};
use netdyno_protocol::vi::{
    Arrival, Completed, DescriptorAt, Level, Nic, Outgoing, Parting, Progress, Segment as Part, ViHandle,
};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Length of an inbox in bytes: a control block, and a message ring.
pub(super) const INBOX_LEN: usize = CONTROL_BYTES + lane::LEN;

/// Offset of the number of slots that the owner has taken. The words of the control block lie on separate
/// cache lines, except that `LEFT` and `REFUSED` share one. The owner writes the first three.
const TAKEN: usize = 256;
/// Offset of the end of the owner's own ring, plus one. Set once the owner has left.
const LEFT: usize = 512;
/// Offset of the verdict by which the owner has refused a message.
const REFUSED: usize = 520;
/// Offset of the flag that the owner sleeps; the peer clears it.
const ASLEEP: usize = 768;

const WHOLE: u8 = 1;
const BESIDE: u8 = 2;
const BEGINS: u8 = 3;
const OF_MESSAGE: u8 = 4;
const ABANDONED: u8 = 5;
const SERVED: u8 = 6;
const LENT: u8 = 7;
const WRITE: u8 = 8;

/// A message of this side that is not completely in the ring.
struct Sending {
    number: u64,
    head: Head,
    at: u32,
}

/// A message of this side that is in the ring, but whose send is not complete.
struct Unconfirmed {
    number: u64,
    /// The send is complete when the peer has taken this many slots.
    lines: u64,
    /// The memory that the peer copies the message from, and the length of the message.
    lent: Option<(Arc<Loan>, u32)>,
}

/// A message of the peer that has not completely arrived.
struct Placing {
    head: Head,
    at: u32,
    source: Source,
}

/// The location of the bytes of a message that is longer than one piece.
enum Source {
    /// In pieces, in the slots behind its head.
    Pieces { is_wanted: bool },
    /// In memory of the peer, from byte `offset` on. It stays mapped until the copy ends, even if the
    /// peer withdraws it meanwhile.
    Lent { memory: Arc<Borrowed>, offset: u64 },
}

/// The reason for the end of a connection, read from the peer's control block.
enum Ending {
    /// The peer has refused a message of this side, and thereby the connection.
    Refused(Verdict),
    /// The peer has left, and its ring ends at this slot.
    Left(u64),
}

pub(super) struct Link {
    vi: ViHandle,
    level: Level,
    pub conn: Conn,
    /// The numbers of the connection: this side's, and the peer's.
    pub local: u64,
    pub remote: u64,
    ours: Arc<Segment>,
    theirs: Arc<Region>,
    writer: Writer,
    reader: Reader,
    sending: Option<Sending>,
    unconfirmed: VecDeque<Unconfirmed>,
    /// Identifiers of memory of this side that the peer may read.
    lent: Vec<u64>,
    /// Memory of the peer that this side may read, by identifier.
    borrowed: Vec<(u64, Arc<Borrowed>)>,
    /// The identifier of peer memory that a slot names and that is not known here.
    pub wants: Option<u64>,
    /// RDMA reads by this side, in order, and the bytes that have arrived of the first.
    reads: VecDeque<(u64, u32)>,
    fetched: u32,
    placing: Option<Placing>,
    /// RDMA reads by the peer, and how many bytes of each were sent.
    serving: VecDeque<(Head, u32)>,
    is_turn_of_reads: bool,
    last_number: u64,
    told: u64,
    /// The peer waits for the count of taken slots.
    is_awaited: bool,
    idle: u32,
    is_blocked: bool,
    /// A completion may have unblocked further sends.
    is_further: bool,
    /// The peer has broken the protocol: this side reads nothing more from it.
    is_broken: bool,
    /// The peer's process has ended or has closed the socket, after all that it wrote.
    pub is_closed: bool,
    /// A message of the peer was refused: this side takes no message behind it.
    has_refused: bool,
    parts: Vec<Part>,
    stretches: Vec<Stretch>,
}

impl Link {
    /// # Safety
    /// Nothing else in this process uses the two inboxes.
    pub(super) unsafe fn new(
        vi: ViHandle,
        level: Level,
        conn: Conn,
        [local, remote]: [u64; 2],
        ours: Arc<Segment>,
        theirs: Arc<Region>,
    ) -> Self {
        // SAFETY: as the caller promised, nothing else uses the two inboxes; each has a message ring at
        // this offset.
        let (writer, reader) =
            unsafe { (Writer::new(&theirs, CONTROL_BYTES), Reader::new(&ours.region, CONTROL_BYTES)) };
        Self {
            vi,
            level,
            conn,
            local,
            remote,
            ours,
            theirs,
            writer,
            reader,
            sending: None,
            unconfirmed: VecDeque::new(),
            lent: Vec::new(),
            borrowed: Vec::new(),
            wants: None,
            reads: VecDeque::new(),
            fetched: 0,
            placing: None,
            serving: VecDeque::new(),
            is_turn_of_reads: true,
            last_number: 0,
            told: 0,
            is_awaited: level == Level::Reception,
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

    /// Returns whether the peer sleeps and has not been woken. The caller must then wake it.
    #[inline]
    fn is_peer_asleep(&self) -> bool {
        sleep::is_to_be_woken(self.theirs.word(ASLEEP))
    }

    /// Announces that this side sleeps, so that the peer wakes it from now on.
    pub(super) fn fall_asleep(&self) {
        sleep::announce(self.ours(ASLEEP));
    }

    /// Returns whether nothing is under way, except messages of the peer and RDMA reads of this side.
    #[inline]
    fn is_idle(&self) -> bool {
        self.sending.is_none()
            && self.serving.is_empty()
            && self.unconfirmed.is_empty()
            && !self.is_blocked
            && !self.is_further
    }

    /// Converts the segments that the rules have allowed into pointers.
    #[inline]
    fn spread(&mut self) {
        self.stretches.clear();
        // SAFETY: the rules have found each part in registered memory, which stays until it is
        // deregistered. The stretches are used before that can happen.
        self.stretches.extend(self.parts.iter().map(|part| unsafe { local::stretch(part) }));
    }

    /// Returns whether the peer has ended, or has announced its end.
    #[inline]
    fn is_ended(&self) -> bool {
        let said = |word| self.theirs.word(word).load(Ordering::Relaxed) != 0;
        self.is_closed || said(REFUSED) || said(LEFT)
    }

    #[inline]
    fn ending(&mut self) -> Option<Ending> {
        // Acquire: the messages that the peer wrote before its end are visible.
        let refused = self.theirs.word(REFUSED).load(Ordering::Acquire);
        if refused != 0 {
            let verdict = Verdict::parse(refused);
            self.is_broken |= verdict.is_err();
            return verdict.ok().map(Ending::Refused);
        }
        self.theirs.word(LEFT).load(Ordering::Acquire).checked_sub(1).map(Ending::Left)
    }

    /// Ends the connection from this side. Returns whether the peer has to be woken.
    pub(super) fn leave(&mut self, parting: Parting) -> bool {
        self.find_room();
        let taken = self.writer.taken();
        let lent = self.unconfirmed.iter().find(|message| message.lent.is_some() && message.lines > taken);
        let end = lent.map_or(self.writer.written(), |message| message.lines - 1);
        if parting == Parting::Ours || lent.is_some() {
            self.ours(LEFT).store(end + 1, Ordering::Release);
            // Pairs with the fence of `take_lent`: the program may now overwrite memory that the peer is
            // copying. If the peer sees such bytes, it also sees the word `LEFT`.
            fence(Ordering::Release);
        }
        if !self.has_refused {
            self.tell_taken();
        }
        self.is_peer_asleep()
    }
}

/// Returns the words of a slot with a head, and how many the head takes: two for a send, which names no
/// memory.
#[inline(always)]
fn words_of(head: &Head) -> ([u64; lane::WORDS], usize) {
    let [first, second, address, handle] = head.pack();
    let count = if matches!(head.kind, Kind::Send { .. }) { 2 } else { 4 };
    ([first, second, address, handle, 0, 0, 0], count)
}

/// Returns the head in the words of a slot, and how many words it takes.
#[inline(always)]
fn head_of(words: &[u64; lane::WORDS]) -> Option<(Head, usize)> {
    let is_send = words[0] & 0xff == 1;
    let (remote, count) = if is_send { ([0; 2], 2) } else { ([words[2], words[3]], 4) };
    Some((Head::parse([words[0], words[1], remote[0], remote[1]]).ok()?, count))
}

/// Returns the three words of the head of a write whose bytes are all in its slot. The length goes into
/// the zero bits of the first word, and the handle replaces the length in the second.
#[inline(always)]
fn short_words_of(head: &Head) -> [u64; 3] {
    let [first, second, address, handle] = head.pack();
    [first | u64::from(head.len) << 16, second & !0xffff_ffff | handle, address]
}

/// Returns the head in the words of such a slot.
#[inline(always)]
fn short_head_of(words: &[u64; lane::WORDS]) -> Option<Head> {
    let (len, handle) = (words[0] >> 16 & 0xff, words[1] & 0xffff_ffff);
    Head::parse([words[0] & !0xff_0000, words[1] & !0xffff_ffff | len, words[2], handle]).ok()
}

/// Longest message that fits into a slot behind its head, in bytes.
const SEND_ROOM: usize = 8 * (lane::WORDS - 2);
const WRITE_ROOM: usize = 8 * (lane::WORDS - 3);

/// Writes a message with all of its bytes into one slot, if they fit. Returns whether they did.
#[inline(always)]
fn write_whole(room: Room<'_>, head: &Head, from: &[Stretch]) -> bool {
    let len = head.len as usize;
    match head.kind {
        Kind::Send { .. } if len <= SEND_ROOM => {
            let (mut words, count) = words_of(head);
            put(from, &mut words[count..]);
            room.write(WHOLE, &words);
        }
        Kind::Write { .. } if len <= WRITE_ROOM => {
            let [first, second, third] = short_words_of(head);
            let mut words = [first, second, third, 0, 0, 0, 0];
            put(from, &mut words[3..]);
            room.write(WRITE, &words);
        }
        _ => return false,
    }
    true
}

/// Returns the words of a slot that announces a piece.
fn piece_words(number: u32, len: u32) -> [u64; lane::WORDS] {
    let mut words = [0; lane::WORDS];
    words[0] = u64::from(number) << 32 | u64::from(len);
    words
}

/// Copies all of `from` to consecutive stretches.
#[inline]
fn scatter(mut from: Readable<'_>, to: &[Stretch]) {
    for place in to {
        let (now, rest) = from.split_at(place.len());
        now.copy_to(place);
        from = rest;
    }
}

/// Copies bytes into words. The caller has checked that they fit.
#[inline(always)]
fn put(from: &[Stretch], words: &mut [u64]) {
    if let [only] = from {
        return only.to_words(words);
    }
    let base = NonNull::from(&mut *words).cast();
    // SAFETY: the words are borrowed exclusively for longer than the copy takes. Any bytes are valid
    // words.
    let mut room = unsafe { Stretch::new(base, size_of_val(words)) };
    for stretch in from {
        let (now, rest) = room.split_at(stretch.len());
        stretch.readable().copy_to(&now);
        room = rest;
    }
    words.iter_mut().for_each(|word| *word = u64::from_le(*word));
}

#[cfg(test)]
mod tests {
    use super::*;
    use netdyno_protocol::vi::Remote;

    #[test]
    fn a_write_in_a_line_is_the_same_write() {
        for (number, len, immediate) in [(0, 0, None), (7, 32, Some(9)), (u32::MAX, 1, Some(u32::MAX))] {
            for remote in [Remote { address: 0, handle: 0 }, Remote { address: u64::MAX, handle: u32::MAX }] {
                let head = Head { number, len, kind: Kind::Write { remote, immediate } };
                let mut words = [0; lane::WORDS];
                words[..3].copy_from_slice(&short_words_of(&head));
                assert_eq!(short_head_of(&words), Some(head));
            }
        }
    }

    fn stretch(bytes: &mut [u8]) -> Stretch {
        // SAFETY: the stretch is used before the bytes are touched again.
        unsafe { Stretch::new(NonNull::from(&mut *bytes).cast(), bytes.len()) }
    }

    /// Sends messages of every length that fits, of one segment and of two, through a ring in this
    /// process.
    #[test]
    fn a_message_in_a_line_comes_as_it_was_sent() {
        let memory = Arc::new(Region::anonymous(CONTROL_BYTES + lane::LEN));
        // SAFETY: one writer and one reader, on memory of its own.
        let (mut writer, mut reader) =
            unsafe { (Writer::new(&memory, CONTROL_BYTES), Reader::new(&memory, CONTROL_BYTES)) };
        let write = Kind::Write { remote: Remote { address: 3, handle: 4 }, immediate: None };
        for (kind, room) in [(Kind::Send { immediate: None }, SEND_ROOM), (write, WRITE_ROOM)] {
            for (len, cut) in (0..=room + 1).flat_map(|len| [(len, 0), (len, len / 3)]) {
                let mut bytes: Vec<u8> = (1..=len as u8).collect();
                let head = Head { number: 7, len: len as u32, kind };
                let (first, second) = bytes.split_at_mut(cut);
                let all = [stretch(first), stretch(second)];
                let from = if cut == 0 { &all[1..] } else { &all[..] };
                assert_eq!(write_whole(writer.room().unwrap(), &head, from), len <= room);
                let Some((code, words)) = reader.read() else { continue };
                reader.advance();
                writer.free(reader.taken()).unwrap();
                let is_write = code == WRITE;
                let (found, inline) = if is_write {
                    (short_head_of(&words), 3)
                } else {
                    head_of(&words).map(|(h, n)| (Some(h), n)).unwrap()
                };
                assert_eq!(found, Some(head));
                let mut placed = vec![0; len];
                stretch(&mut placed).fill_from_words(&words[inline..]);
                assert_eq!(placed, bytes);
            }
        }
    }

    #[test]
    fn a_piece_is_scattered_over_all_places() {
        let mut from: Vec<u8> = (1..=20).collect();
        let mut to = [vec![0; 3], vec![], vec![0; 17]];
        let places = to.each_mut().map(|place| stretch(place));
        scatter(Readable::of(&mut from), &places);
        assert_eq!(to.concat(), from);
    }
}
