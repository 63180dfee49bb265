//! The sending side: messages of the VI, and answers to RDMA reads by its peer.

use super::*;
use crate::vi::shm::MOST_LENT;

/// Minimum length, in bytes, of a message that the peer copies directly out of the sender's memory.
const LENT_FROM: usize = 16 * 1024;

impl Link {
    /// Sends the messages of the VI, as far as there is room. Returns whether the peer has to be woken.
    #[inline]
    pub(in crate::vi::shm) fn send(&mut self, nic: &mut Nic, lender: Lender<'_>) -> bool {
        let before = self.writer.written();
        (self.is_blocked, self.is_further) = (false, false);
        while self.go_on(nic) {
            match nic.next(self.vi) {
                Some(outgoing) => self.begin(nic, lender, outgoing),
                None if self.serving.is_empty() => break,
                None => {}
            }
            // Answers to the peer's RDMA reads and messages of this side alternate.
            self.is_turn_of_reads = true;
        }
        self.writer.written() != before && self.is_peer_asleep()
    }

    /// Sends a message by the fast path: posts it and writes its slot, if nothing precedes it and one
    /// slot holds it. Returns whether the peer has to be woken; `None` if the message needs the slow
    /// path.
    #[inline]
    pub(in crate::vi::shm) fn send_at_once(&mut self, nic: &mut Nic, at: DescriptorAt) -> Option<bool> {
        if !self.is_idle() {
            return None;
        }
        let Self { writer, last_number, .. } = self;
        let line = writer.room()?;
        // SAFETY: `room` bytes are registered there; they are memory that stays until it is
        // deregistered.
        let read = |room| unsafe { local::read_short(at, room) };
        let sent = nic.send_at_once(self.vi, at, read, |number, head, part| {
            // SAFETY: the rules have found the part in registered memory, which stays until it is
            // deregistered.
            let is_carried = write_whole(line, head, &[unsafe { local::stretch(part) }]);
            if is_carried {
                *last_number = number;
            }
            is_carried
        });
        let Completed { at, completion } = sent?;
        // SAFETY: the rules have found the descriptor in registered memory. It is aligned, or it would
        // not have been sent.
        unsafe { local::complete(at, &completion) };
        Some(self.is_peer_asleep())
    }

    /// Continues messages that were begun. Returns whether there is room for a new message.
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

    /// Writes a slot, for which `go_on` has found room.
    fn write(&mut self, code: u8, words: &[u64; lane::WORDS]) {
        match self.writer.room() {
            Some(line) => line.write(code, words),
            None => self.find_no_room(),
        }
    }

    /// Writes a slot and a piece of the gathered bytes.
    fn write_piece(&mut self, code: u8, words: &[u64; lane::WORDS]) {
        match self.writer.room() {
            Some(line) => line.write_piece(code, words, &self.stretches),
            None => self.find_no_room(),
        }
    }

    /// Breaks the connection, because there is no room although `go_on` had found some. That is a fault
    /// of this side; the connection ends before the peer misses a slot.
    #[cold]
    fn find_no_room(&mut self) {
        debug_assert!(false, "a line is written without room for it");
        self.is_broken = true;
    }

    /// Reads how many slots the peer has taken.
    pub(super) fn find_room(&mut self) {
        // Acquire: the peer has copied the bytes out of the buffer before it reports the slots as taken.
        let taken = self.theirs.word(TAKEN).load(Ordering::Acquire);
        if let Err(Lied) = self.writer.free(taken) {
            self.is_broken = true;
        }
    }

    #[inline]
    fn begin(&mut self, nic: &mut Nic, lender: Lender<'_>, Outgoing { number, head }: Outgoing) {
        self.last_number = number;
        let (mut words, count) = words_of(&head);
        if let Kind::Read { .. } = head.kind {
            self.reads.push_back((number, head.len));
            return self.write(WHOLE, &words);
        }
        if !self.gather(nic, number, 0, head.len) {
            return;
        }
        let len = head.len as usize;
        let Some(line) = self.writer.room() else { return self.find_no_room() };
        if write_whole(line, &head, &self.stretches) {
            return self.sent(nic, number);
        }
        if len >= LENT_FROM
            && let Some((memory, place)) = self.lend(lender)
        {
            words[count..count + 2].copy_from_slice(&place);
            self.write(LENT, &words);
            let lines = self.writer.written();
            let lent = Some((memory, head.len));
            return self.unconfirmed.push_back(Unconfirmed { number, lines, lent });
        } else if len <= PIECE {
            self.write_piece(BESIDE, &words);
        } else {
            self.write(BEGINS, &words);
            self.sending = Some(Sending { number, head, at: 0 });
            return;
        }
        self.sent(nic, number);
    }

    /// Lets the peer copy the gathered bytes directly out of this side's memory. Returns that memory,
    /// its identifier, and the offset of the bytes. Returns `None` if the bytes are not one segment of
    /// such memory, or if the peer cannot be told now.
    fn lend(&mut self, lender: Lender<'_>) -> Option<(Arc<Loan>, [u64; 2])> {
        let [part] = self.parts[..] else { return None };
        if !self.level.is_reliable() {
            // On an unreliable VI the peer could not be told to stop reading a message.
            return None;
        }
        let (id, memory) = lender.lent.find(&part)?;
        if !self.lent.contains(&id) {
            self.take_back(lender);
            if self.lent.len() >= MOST_LENT || !lender.lend(self.conn, self.local, id, &memory) {
                return None;
            }
            self.lent.push(id);
        }
        let offset = part.address - memory.base().addr().get() as u64;
        Some((memory, [id, offset]))
    }

    /// Tells the peer to unmap memory that no longer exists here.
    fn take_back(&mut self, lender: Lender<'_>) {
        let (conn, local) = (self.conn, self.local);
        self.lent.retain(|id| lender.lent.has(*id) || !lender.take_back(conn, local, *id));
    }

    /// Memory was deregistered. A message that the peer is copying from there breaks the VI, by the
    /// rules. The end of the connection tells the peer to discard the copy.
    pub(in crate::vi::shm) fn withdraw(&mut self, nic: &mut Nic) {
        let unconfirmed = std::mem::take(&mut self.unconfirmed);
        for message in &unconfirmed {
            if let Some((_, len)) = message.lent {
                self.gather(nic, message.number, 0, len);
            }
        }
        self.unconfirmed = unconfirmed;
    }

    /// The whole message is in the ring.
    #[inline]
    fn sent(&mut self, nic: &mut Nic, number: u64) {
        // A message behind one whose send is not complete could still be cut off, so it is not complete
        // either.
        if self.level == Level::Reception || !self.unconfirmed.is_empty() {
            let lines = self.writer.written();
            self.unconfirmed.push_back(Unconfirmed { number, lines, lent: None });
        } else {
            nic.progress(self.vi, number, Progress::Accepted);
        }
    }

    /// Finds the bytes of a message of this side. Returns false if they may no longer be used.
    #[inline]
    pub(super) fn gather(&mut self, nic: &mut Nic, number: u64, at: u32, len: u32) -> bool {
        self.parts.clear();
        let is_there = nic.bytes_of(self.vi, number, at, len, &mut self.parts).is_ok();
        self.spread();
        is_there
    }

    fn send_piece(&mut self, nic: &mut Nic, Sending { number, head, at }: Sending) {
        let len = (head.len - at).min(PIECE as u32);
        if !self.gather(nic, number, at, len) {
            return self.write(ABANDONED, &[0; lane::WORDS]);
        }
        self.write_piece(OF_MESSAGE, &piece_words(head.number, len));
        if at + len == head.len {
            self.sent(nic, number);
        } else {
            self.sending = Some(Sending { number, head, at: at + len });
        }
    }

    /// Sends one piece of the answer to an RDMA read by the peer.
    fn serve(&mut self, nic: &mut Nic) {
        let Some((head, at)) = self.serving.front().copied() else { return };
        if at == 0 {
            match nic.arrive(self.vi, &head) {
                Arrival::Serve => {}
                Arrival::Refuse(refusal) => return self.refuse(head.number, refusal),
                Arrival::Drop | Arrival::Place => {
                    self.serving.pop_front();
                    return;
                }
            }
        }
        let len = (head.len - at).min(PIECE as u32);
        match nic.serves(self.vi, &head, at, len) {
            Err(refusal) => self.refuse(head.number, refusal),
            Ok(part) => {
                self.parts.clear();
                self.parts.push(part);
                self.spread();
                self.write_piece(SERVED, &piece_words(head.number, len));
                if let Some((_, served)) = self.serving.front_mut() {
                    *served += len;
                }
                if at + len == head.len {
                    self.serving.pop_front();
                }
            }
        }
    }

    /// Completes the sends that the peer has confirmed. Returns whether there were any.
    #[inline]
    pub(super) fn confirm(&mut self, nic: &mut Nic) -> bool {
        if self.unconfirmed.is_empty() {
            return false;
        }
        let mut is_any = false;
        self.find_room();
        let taken = self.writer.taken();
        // Only a lent message can be cut off, and with it those behind it. So these are complete once it is taken.
        let is_complete = |message: &&Unconfirmed| {
            message.lines <= taken || self.level != Level::Reception && message.lent.is_none()
        };
        while let Some(message) = self.unconfirmed.front().filter(is_complete) {
            let number = message.number;
            self.unconfirmed.pop_front();
            (self.is_further, is_any) = (true, true);
            nic.progress(self.vi, number, Progress::Received);
        }
        is_any
    }
}
