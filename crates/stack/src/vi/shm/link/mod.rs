//! One connection: a lane each way, and what a few words of memory tell the peer.
//!
//! A line says what it is:
//!
//! | code | words | and |
//! | --- | --- | --- |
//! | whole | head, then its bytes | nothing more |
//! | write | head of a write in three words, then its bytes | nothing more |
//! | beside | head | a piece with all of its bytes |
//! | begins | head | its bytes in pieces, in the lines behind |
//! | piece | number and length | a piece of the message that has begun |
//! | abandoned | | no more of that message |
//! | served | number and length | a piece of what an RDMA read asked for |
//! | lent | head, name and offset | its bytes are in memory that the reader may read |

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

/// Bytes of the memory that a peer writes to: a control block of words, and a lane.
pub(super) const INBOX_LEN: usize = CONTROL_BYTES + lane::LEN;

/// Words of the control block, each on lines of its own. The owner writes the first three.
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
const LENT: u8 = 7;
const WRITE: u8 = 8;

/// A message of ours, of which not all is in the lane.
struct Sending {
    number: u64,
    head: Head,
    at: u32,
}

/// A message that is in the lane and not complete.
struct Unconfirmed {
    number: u64,
    /// It is when the peer has taken so many lines.
    lines: u64,
    /// The peer reads so many bytes of it where they are.
    lent: Option<(Arc<Loan>, u32)>,
}

/// A message of the peer's, of which not all has come.
struct Placing {
    head: Head,
    at: u32,
    source: Source,
}

/// Where the bytes of a message are that is longer than a piece.
enum Source {
    /// In the lines behind its head, in pieces.
    Pieces { is_wanted: bool },
    /// In memory of the peer's, from byte `offset` on. It stays mapped until all is copied, even where the peer takes
    /// it back meanwhile.
    Lent { memory: Arc<Borrowed>, offset: u64 },
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
    /// The numbers for it: this side's, and the peer's.
    pub local: u64,
    pub remote: u64,
    ours: Arc<Segment>,
    theirs: Arc<Region>,
    writer: Writer,
    reader: Reader,
    sending: Option<Sending>,
    unconfirmed: VecDeque<Unconfirmed>,
    /// Names of the memory of ours that the peer may read.
    lent: Vec<u64>,
    /// Memory of the peer's, by its names, that this side may read.
    borrowed: Vec<(u64, Arc<Borrowed>)>,
    /// A line names memory of the peer's that is not known here.
    pub wants: Option<u64>,
    /// RDMA reads of ours, in the order of their asking, and the bytes that have come of the first.
    reads: VecDeque<(u64, u32)>,
    fetched: u32,
    placing: Option<Placing>,
    /// What the peer reads, and how far it was served.
    serving: VecDeque<(Head, u32)>,
    is_turn_of_reads: bool,
    last_number: u64,
    told: u64,
    /// The peer waits to be told.
    is_awaited: bool,
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
        conn: Conn,
        [local, remote]: [u64; 2],
        ours: Arc<Segment>,
        theirs: Arc<Region>,
    ) -> Self {
        // SAFETY: the caller has promised that nobody else uses the two, each of which has a lane there.
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

    /// Whether the peer sleeps and nobody has woken it.
    #[inline]
    fn is_peer_asleep(&self) -> bool {
        sleep::is_to_be_woken(self.theirs.word(ASLEEP))
    }

    /// The peer is to wake this side from now on.
    pub(super) fn fall_asleep(&self) {
        sleep::announce(self.ours(ASLEEP));
    }

    /// Whether nothing is under way but what the peer sends, RDMA reads of ours among it.
    #[inline]
    fn is_idle(&self) -> bool {
        self.sending.is_none()
            && self.serving.is_empty()
            && self.unconfirmed.is_empty()
            && !self.is_blocked
            && !self.is_further
    }

    /// Makes pointers of the parts that the rules have allowed.
    #[inline]
    fn spread(&mut self) {
        self.stretches.clear();
        // SAFETY: the rules have found each in registered memory, which stays until it is deregistered; the
        // stretches are used before that can be.
        self.stretches.extend(self.parts.iter().map(|part| unsafe { local::stretch(part) }));
    }

    /// Whether the peer has ended, or has said so.
    #[inline]
    fn is_ended(&self) -> bool {
        let said = |word| self.theirs.word(word).load(Ordering::Relaxed) != 0;
        self.is_closed || said(REFUSED) || said(LEFT)
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

    /// This side has ended the connection. Whether the peer is to be woken.
    pub(super) fn leave(&mut self, parting: Parting) -> bool {
        self.find_room();
        let taken = self.writer.taken();
        let lent = self.unconfirmed.iter().find(|message| message.lent.is_some() && message.lines > taken);
        let end = lent.map_or(self.writer.written(), |message| message.lines - 1);
        if parting == Parting::Ours || lent.is_some() {
            self.ours(LEFT).store(end + 1, Ordering::Release);
            // Pairs with the fence of `take_lent`: should the peer see what the program writes from now
            // on into memory that it is reading, then it sees this as well.
            fence(Ordering::Release);
        }
        if !self.has_refused {
            self.tell_taken();
        }
        self.is_peer_asleep()
    }
}

/// A line with a head, and how many words of it that takes: of a send, which names no memory, two.
#[inline(always)]
fn words_of(head: &Head) -> ([u64; lane::WORDS], usize) {
    let [first, second, address, handle] = head.pack();
    let count = if matches!(head.kind, Kind::Send { .. }) { 2 } else { 4 };
    ([first, second, address, handle, 0, 0, 0], count)
}

/// The head in a line's words, and how many of them it takes.
#[inline(always)]
fn head_of(words: &[u64; lane::WORDS]) -> Option<(Head, usize)> {
    let is_send = words[0] & 0xff == 1;
    let (remote, count) = if is_send { ([0; 2], 2) } else { ([words[2], words[3]], 4) };
    Some((Head::parse([words[0], words[1], remote[0], remote[1]]).ok()?, count))
}

/// The three words of a write whose bytes are all in its line: the length is where the first word has
/// zeros, and the handle where the length was.
#[inline(always)]
fn short_words_of(head: &Head) -> [u64; 3] {
    let [first, second, address, handle] = head.pack();
    [first | u64::from(head.len) << 16, second & !0xffff_ffff | handle, address]
}

/// The head in the words of such a line.
#[inline(always)]
fn short_head_of(words: &[u64; lane::WORDS]) -> Option<Head> {
    let (len, handle) = (words[0] >> 16 & 0xff, words[1] & 0xffff_ffff);
    Head::parse([words[0] & !0xff_0000, words[1] & !0xffff_ffff | len, words[2], handle]).ok()
}

/// Most bytes that fit into a line behind its head.
const SEND_ROOM: usize = 8 * (lane::WORDS - 2);
const WRITE_ROOM: usize = 8 * (lane::WORDS - 3);

/// Writes a message with all of its bytes into one line, if they fit.
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

/// The words of a piece.
fn piece_words(number: u32, len: u32) -> [u64; lane::WORDS] {
    let mut words = [0; lane::WORDS];
    words[0] = u64::from(number) << 32 | u64::from(len);
    words
}

/// Copies all of `from` to where it belongs.
#[inline]
fn scatter(mut from: Readable<'_>, to: &[Stretch]) {
    for place in to {
        let (now, rest) = from.split_at(place.len());
        now.copy_to(place);
        from = rest;
    }
}

/// Copies bytes into words, which have room for them.
#[inline(always)]
fn put(from: &[Stretch], words: &mut [u64]) {
    if let [only] = from {
        return only.to_words(words);
    }
    let base = NonNull::from(&mut *words).cast();
    // SAFETY: borrowed for longer than the copy takes, by nobody else; whatever the bytes are, words they
    // are as well.
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
        // SAFETY: used before the bytes are touched again.
        unsafe { Stretch::new(NonNull::from(&mut *bytes).cast(), bytes.len()) }
    }

    /// Messages of any length that fits, of one segment or of two, through a lane in memory of this process.
    #[test]
    fn a_message_in_a_line_comes_as_it_was_sent() {
        let memory = Arc::new(Region::on_heap(CONTROL_BYTES + lane::LEN));
        // SAFETY: one end each, on memory of its own.
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
