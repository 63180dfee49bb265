//! The receiving side: messages for a VI.

use super::*;
use crate::vi::wire::Look;
use netdyno_protocol::vi::Taken as TakenAtOnce;

/// Slots taken in a row, so that other VIs get their turn.
const AT_ONCE: usize = 32;
/// Slots with pieces taken in a row. There are fewer, because each piece has to be copied.
const PIECES_AT_ONCE: u32 = 4;
/// Bytes copied in a row directly out of the peer's memory: the size that is copied fastest.
const LENT_AT_ONCE: u32 = 1 << 20;
/// Taken slots after which the peer is told.
const TOLD_AFTER: u64 = 16;
/// Maximum number of pending RDMA reads by a peer: more than the descriptors of any VI.
const MOST_SERVED: usize = 1 << 16;
/// Polls in a row that find nothing, after which the peer is told even of few taken slots.
const IDLE: u32 = 64;

/// How far a slot was taken.
#[derive(PartialEq)]
enum Taken {
    Whole,
    /// The next poll continues with the slot.
    Part,
    /// The slot cannot be taken now.
    Nothing,
}

impl Link {
    /// Takes the messages that have arrived. Returns whether any has arrived or a send was completed,
    /// and whether the peer has to be woken.
    #[inline]
    pub(in crate::vi::shm) fn receive(&mut self, nic: &mut Nic, lender: Lender<'_>) -> (bool, bool) {
        let (mut count, mut pieces, mut is_empty) = (0, 0, false);
        while count < AT_ONCE && pieces < PIECES_AT_ONCE && !self.is_broken && !self.has_refused {
            let Some((code, words)) = self.reader.read() else {
                is_empty = true;
                break;
            };
            match self.take(nic, code, &words) {
                Some(Taken::Whole) => self.reader.advance(),
                Some(Taken::Part) => {}
                Some(Taken::Nothing) => break,
                None => self.is_broken = true,
            }
            count += 1;
            pieces += u32::from(!matches!(code, WHOLE | WRITE));
        }
        let mut is_any = count > 0;
        if is_any {
            self.tell_if_due();
        } else {
            is_any = self.find_nothing(nic, is_empty);
        }
        is_any |= self.confirm(nic);
        let has_more = self.is_blocked || self.is_further || !self.serving.is_empty();
        let wakes = has_more && self.send(nic, lender);
        // A peer that waits for a confirmation is woken by it as well.
        let is_told = self.has_refused || self.told == self.reader.taken();
        let wakes = wakes || count > 0 && is_told && self.is_peer_asleep();
        (is_any, wakes)
    }

    /// Takes a slot. Returns `None` if the slot breaks the protocol.
    #[inline]
    fn take(&mut self, nic: &mut Nic, code: u8, words: &[u64; lane::WORDS]) -> Option<Taken> {
        match code {
            WHOLE | WRITE | BESIDE | BEGINS => self.take_head(nic, code, words)?,
            LENT => return self.take_lent(nic, words),
            OF_MESSAGE => self.take_piece(nic, words)?,
            ABANDONED => {
                self.placing.take()?;
                nic.abandon(self.vi);
            }
            SERVED => self.take_served(nic, words)?,
            _ => return None,
        }
        Some(Taken::Whole)
    }

    #[inline]
    fn take_head(&mut self, nic: &mut Nic, code: u8, words: &[u64; lane::WORDS]) -> Option<()> {
        let (head, inline) = meant_head_of(code, words).filter(|_| self.placing.is_none())?;
        let len = head.len as usize;
        if matches!(code, WHOLE | WRITE)
            && let Some(TakenAtOnce { receive }) = self.take_at_once(nic, &head, &words[inline..])
        {
            receive.into_iter().for_each(|completed| nic.keep(self.vi, completed));
            return Some(());
        }
        // Whatever becomes of the message, its piece in the buffer is consumed.
        let beside = (code == BESIDE).then(|| self.reader.take_piece(len));
        if matches!(head.kind, Kind::Read { .. }) {
            // A VI cannot have so many pending reads.
            if self.serving.len() >= MOST_SERVED {
                return None;
            }
            // It is judged in its turn, because a refusal ends the connection, and with it the answers to earlier reads.
            self.serving.push_back((head, 0));
            return Some(());
        }
        match nic.arrive(self.vi, &head) {
            Arrival::Refuse(refusal) => self.refuse(head.number, refusal),
            Arrival::Serve => return None,
            arrival if code == BEGINS => {
                let is_wanted = arrival == Arrival::Place;
                self.placing = Some(Placing { head, at: 0, source: Source::Pieces { is_wanted } });
            }
            Arrival::Drop => {}
            Arrival::Place => {
                if self.find_places(nic, &head, 0, len as u32) {
                    let mut bytes = words.map(u64::to_le_bytes);
                    let here = Readable::of(bytes[inline..].as_flattened_mut());
                    let from = match beside {
                        Some(piece) => self.reader.bytes(piece),
                        None => here.split_at(len).0,
                    };
                    scatter(from, &self.stretches);
                    nic.arrived(self.vi);
                }
            }
        }
        Some(())
    }

    /// Takes a message by the fast path, if it completes a receive. Also returns whether the peer has to
    /// be woken.
    #[inline]
    pub(in crate::vi::shm) fn receive_at_once(&mut self, nic: &mut Nic) -> (Look, bool) {
        if self.placing.is_some() || self.is_broken || self.has_refused || !self.is_idle() {
            return (Look::Further, false);
        }
        let Some((code, words)) = self.reader.read() else {
            // Now and then the slow path must run: it tells the peer how many slots are taken, and finds
            // its end.
            let is_long = self.idle % IDLE == IDLE - 1 || self.is_ended();
            self.idle = self.idle.wrapping_add(u32::from(!is_long));
            return (if is_long { Look::Further } else { Look::Nothing }, false);
        };
        let Some(completed) = self.take_receive(nic, code, &words) else { return (Look::Further, false) };
        self.reader.advance();
        let is_told = self.tell_if_due();
        (Look::Done(completed), is_told && self.is_peer_asleep())
    }

    /// Called after slots were taken. Tells the peer if it waits for that, or if enough slots were
    /// taken. Returns whether it was told.
    #[inline]
    fn tell_if_due(&mut self) -> bool {
        self.idle = 0;
        // A refused message is not confirmed.
        let is_due = !self.has_refused && (self.is_awaited || self.reader.taken() - self.told >= TOLD_AFTER);
        if is_due {
            self.tell_taken();
        }
        is_due
    }

    /// Takes a message by the fast path. Returns the receive that it completes.
    #[inline(always)]
    fn take_receive(&mut self, nic: &mut Nic, code: u8, words: &[u64; lane::WORDS]) -> Option<Completed> {
        if !matches!(code, WHOLE | WRITE) {
            return None;
        }
        let (head, inline) = meant_head_of(code, words)?;
        if matches!(head.kind, Kind::Write { immediate: None, .. }) {
            return None;
        }
        self.take_at_once(nic, &head, &words[inline..])?.receive
    }

    /// Takes a message by the fast path, if the rules allow it.
    #[inline(always)]
    fn take_at_once(&mut self, nic: &mut Nic, head: &Head, words: &[u64]) -> Option<TakenAtOnce> {
        // SAFETY: the rules have found the part in registered memory, which stays until it is
        // deregistered.
        let place = |part: &Part| unsafe { local::stretch(part) }.fill_from_words(words);
        let taken = nic.take_at_once(self.vi, head, place)?;
        if let Some(Completed { at, completion }) = &taken.receive {
            // SAFETY: the rules have found the descriptor in registered memory. It is aligned, or it
            // would not have been posted.
            unsafe { local::complete(*at, completion) };
        }
        Some(taken)
    }

    /// Copies a part of a message directly out of the peer's memory.
    fn take_lent(&mut self, nic: &mut Nic, words: &[u64; lane::WORDS]) -> Option<Taken> {
        let (head, at, memory, offset) = match self.placing.take() {
            Some(Placing { head, at, source: Source::Lent { memory, offset } }) => (head, at, memory, offset),
            Some(Placing { source: Source::Pieces { .. }, .. }) => return None,
            None => {
                let (head, inline) = head_of(words)?;
                if matches!(head.kind, Kind::Read { .. }) {
                    return None;
                }
                let (id, offset) = (words[inline], words[inline + 1]);
                let Some(memory) = self.find_borrowed(id) else {
                    self.wants = Some(id);
                    return Some(Taken::Nothing);
                };
                memory.bytes(offset, head.len as usize)?;
                // The peer may have cut the message off before this side saw it.
                if self.has_ended() {
                    return Some(Taken::Nothing);
                }
                match nic.arrive(self.vi, &head) {
                    Arrival::Serve => return None,
                    Arrival::Drop => {
                        self.is_awaited = true;
                        return Some(Taken::Whole);
                    }
                    Arrival::Refuse(refusal) => {
                        self.refuse(head.number, refusal);
                        return Some(Taken::Whole);
                    }
                    Arrival::Place => (head, 0, memory, offset),
                }
            }
        };
        let len = (head.len - at).min(LENT_AT_ONCE);
        self.is_awaited = true;
        if !self.find_places(nic, &head, at, len) {
            return Some(Taken::Whole);
        }
        scatter(memory.bytes(offset + u64::from(at), len as usize)?, &self.stretches);
        if at + len < head.len {
            self.placing = Some(Placing { head, at: at + len, source: Source::Lent { memory, offset } });
            return Some(Taken::Part);
        }
        // Pairs with the fence of `leave`: if the peer's program had its memory back and overwrote
        // copied bytes, this side now sees the end of the connection.
        fence(Ordering::Acquire);
        if self.has_ended() {
            return Some(Taken::Nothing);
        }
        nic.arrived(self.vi);
        Some(Taken::Whole)
    }

    /// Returns memory of the peer that this side may read, by its identifier.
    fn find_borrowed(&self, id: u64) -> Option<Arc<Borrowed>> {
        self.borrowed.iter().find(|(known, _)| *known == id).map(|(_, memory)| Arc::clone(memory))
    }

    /// Returns whether the peer's ring ends at the next slot.
    fn has_ended(&self) -> bool {
        let left = self.theirs.word(LEFT).load(Ordering::Acquire);
        left.checked_sub(1).is_some_and(|end| end <= self.reader.taken())
    }

    /// Adds the memory that a slot has named. Without it the peer has named memory that it never passed.
    pub(in crate::vi::shm) fn borrow(&mut self, id: u64, memory: Option<Arc<Borrowed>>) {
        match memory {
            Some(memory) => self.borrowed.push((id, memory)),
            None => self.is_broken = true,
        }
    }

    /// The peer has withdrawn memory: unmaps it once no copy uses it.
    pub(in crate::vi::shm) fn give_back(&mut self, id: u64) {
        self.borrowed.retain(|(known, _)| *known != id);
    }

    /// Finds the destination of `len` bytes of the arriving message. Returns whether there is one.
    #[inline]
    fn find_places(&mut self, nic: &mut Nic, head: &Head, at: u32, len: u32) -> bool {
        self.parts.clear();
        match nic.places(self.vi, at, len, &mut self.parts) {
            Err(refusal) => {
                if self.level.is_reliable() {
                    self.refuse(head.number, refusal);
                }
                false
            }
            Ok(()) => {
                self.spread();
                true
            }
        }
    }

    fn take_piece(&mut self, nic: &mut Nic, words: &[u64; lane::WORDS]) -> Option<()> {
        let Placing { head, at, source: Source::Pieces { is_wanted } } = self.placing.take()? else {
            return None;
        };
        let len = (head.len - at).min(PIECE as u32);
        if words[0] != piece_words(head.number, len)[0] {
            return None;
        }
        let piece = self.reader.take_piece(len as usize);
        let is_wanted = is_wanted && self.find_places(nic, &head, at, len);
        if is_wanted {
            scatter(self.reader.bytes(piece), &self.stretches);
        }
        if at + len < head.len {
            self.placing = Some(Placing { head, at: at + len, source: Source::Pieces { is_wanted } });
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
        let piece = self.reader.take_piece(len as usize);
        if self.gather(nic, number, self.fetched, len) {
            scatter(self.reader.bytes(piece), &self.stretches);
        }
        self.fetched += len;
        if self.fetched == whole {
            self.reads.pop_front();
            (self.fetched, self.is_further) = (0, true);
            nic.progress(self.vi, number, Progress::Fetched);
        }
        Some(())
    }

    /// Called if no slot is ready; `is_empty` if none was there. Returns whether the connection has ended, or a slot has
    /// come meanwhile.
    #[inline]
    fn find_nothing(&mut self, nic: &mut Nic, is_empty: bool) -> bool {
        self.idle = self.idle.wrapping_add(1);
        if self.idle == IDLE && self.told != self.reader.taken() && !self.has_refused {
            self.tell_taken();
        }
        match self.ending() {
            // The peer wrote its last slots before its refusal, and maybe behind the look at the ring.
            Some(Ending::Refused(_)) if is_empty && self.reader.read().is_some() => {}
            // Sends whose messages the peer took before the refusal are complete.
            Some(Ending::Refused(Verdict { number, refusal })) => {
                self.confirm(nic);
                if let Some(number) = number_of(self.last_number, number) {
                    let progress = refusal.map_or(Progress::Received, Progress::Refused);
                    nic.progress(self.vi, number, progress);
                }
                nic.left(self.vi);
            }
            Some(Ending::Left(end)) if end <= self.reader.taken() => {
                self.confirm(nic);
                nic.left(self.vi);
            }
            Some(Ending::Left(_)) | None if self.is_broken || self.is_closed => {
                self.confirm(nic);
                nic.lost(self.vi);
            }
            Some(Ending::Left(_)) | None => return false,
        }
        true
    }

    /// Refuses a message of the peer, and thereby the connection.
    pub(super) fn refuse(&mut self, number: u32, refusal: Refusal) {
        self.serving.clear();
        self.placing = None;
        self.tell_taken();
        let verdict = Verdict { number, refusal: Some(refusal) };
        self.ours(REFUSED).store(verdict.pack(), Ordering::Release);
        self.has_refused = true;
    }

    pub(super) fn tell_taken(&mut self) {
        self.is_awaited = self.level == Level::Reception;
        self.told = self.reader.taken();
        // Release: the bytes were copied out of the buffer before this store.
        self.ours(TAKEN).store(self.told, Ordering::Release);
    }
}

/// Returns the head in a slot with this code, and how many words it takes. Returns `None` if no correct
/// peer writes such a slot.
#[inline(always)]
fn meant_head_of(code: u8, words: &[u64; lane::WORDS]) -> Option<(Head, usize)> {
    let (head, inline) = if code == WRITE { (short_head_of(words)?, 3) } else { head_of(words)? };
    let (len, is_read) = (head.len as usize, matches!(head.kind, Kind::Read { .. }));
    let is_meant = match (code, head.kind) {
        (WHOLE, Kind::Read { .. }) => true,
        (WHOLE, Kind::Send { .. }) => len <= SEND_ROOM,
        (WRITE, Kind::Write { .. }) => len <= WRITE_ROOM,
        (WHOLE | WRITE, _) => false,
        (BESIDE, _) => !is_read && len <= PIECE,
        _ => !is_read && len > PIECE,
    };
    is_meant.then_some((head, inline))
}
