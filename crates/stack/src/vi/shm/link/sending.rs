//! What a VI sends, and what its peer reads.

use super::*;
use crate::vi::shm::MOST_LENT;

/// From so many bytes on the peer reads them where they are, if it may.
const LENT_FROM: usize = 16 * 1024;

impl Link {
    /// Carries what the VI sends, as far as there is room. Whether the peer is to be woken.
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
            // What the peer reads, and what this side sends, take turns.
            self.is_turn_of_reads = true;
        }
        self.writer.written() != before && self.is_peer_asleep()
    }

    /// Posts a send that fits into a line, where nothing stands before it, and writes that line. Whether
    /// the peer is to be woken; `None` where it takes the long way.
    #[inline]
    pub(in crate::vi::shm) fn send_at_once(&mut self, nic: &mut Nic, at: DescriptorAt) -> Option<bool> {
        if !self.is_idle() {
            return None;
        }
        let Self { writer, last_number, .. } = self;
        let line = writer.room()?;
        // SAFETY: so many bytes are registered there: they are memory, which stays until it is deregistered.
        let read = |room| unsafe { local::read_short(at, room) };
        let sent = nic.send_at_once(self.vi, at, read, |number, head, part| {
            // SAFETY: the rules have found it in registered memory, which stays until it is deregistered.
            let is_carried = write_whole(line, head, &[unsafe { local::stretch(part) }]);
            if is_carried {
                *last_number = number;
            }
            is_carried
        });
        let Completed { at, completion } = sent?;
        // SAFETY: the rules have found it in registered memory; it is aligned, or it would not have been
        // sent.
        unsafe { local::complete(at, &completion) };
        Some(self.is_peer_asleep())
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

    /// Writes a line, for which `go_on` has found room.
    fn write(&mut self, code: u8, words: &[u64; lane::WORDS]) {
        match self.writer.room() {
            Some(line) => line.write(code, words),
            None => self.find_no_room(),
        }
    }

    /// The same with a piece of the bytes that were gathered.
    fn write_piece(&mut self, code: u8, words: &[u64; lane::WORDS]) {
        match self.writer.room() {
            Some(line) => line.write_piece(code, words, &self.stretches),
            None => self.find_no_room(),
        }
    }

    /// There is no room, where `go_on` had found some: a fault of this side's, which ends the connection before the
    /// peer misses a line.
    #[cold]
    fn find_no_room(&mut self) {
        debug_assert!(false, "a line is written without room for it");
        self.is_broken = true;
    }

    /// Looks how much the peer has taken.
    pub(super) fn find_room(&mut self) {
        // Acquire: what the peer has copied out of the lane is copied before it says so.
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

    /// Lets the peer read the bytes that were gathered: the memory that they are in, its name, and
    /// where in it they begin. `None` where they are not in one stretch of such memory, or the peer
    /// cannot be told now.
    fn lend(&mut self, lender: Lender<'_>) -> Option<(Arc<Loan>, [u64; 2])> {
        let [part] = self.parts[..] else { return None };
        if !self.level.is_reliable() {
            // It could not be told that a message is not to be read any more.
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

    /// Memory that is gone here is not needed by the peer either.
    fn take_back(&mut self, lender: Lender<'_>) {
        let (conn, local) = (self.conn, self.local);
        self.lent.retain(|id| lender.lent.has(*id) || !lender.take_back(conn, local, *id));
    }

    /// Memory is not registered any more. A message that the peer reads from there breaks the VI, as
    /// the rules have it, and with that the peer learns not to believe what it reads.
    pub(in crate::vi::shm) fn withdraw(&mut self, nic: &mut Nic) {
        let unconfirmed = std::mem::take(&mut self.unconfirmed);
        for message in &unconfirmed {
            if let Some((_, len)) = message.lent {
                self.gather(nic, message.number, 0, len);
            }
        }
        self.unconfirmed = unconfirmed;
    }

    /// All of a message is in the lane.
    #[inline]
    fn sent(&mut self, nic: &mut Nic, number: u64) {
        // What is behind a message that is not complete could still be cut off.
        if self.level == Level::Reception || !self.unconfirmed.is_empty() {
            let lines = self.writer.written();
            self.unconfirmed.push_back(Unconfirmed { number, lines, lent: None });
        } else {
            nic.progress(self.vi, number, Progress::Accepted);
        }
    }

    /// Finds the bytes of a message of ours. False where they may not be used any more.
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

    /// What the peer has confirmed is complete. Whether anything is.
    #[inline]
    pub(super) fn confirm(&mut self, nic: &mut Nic) -> bool {
        if self.unconfirmed.is_empty() {
            return false;
        }
        let mut is_any = false;
        self.find_room();
        let taken = self.writer.taken();
        while let Some(message) = self.unconfirmed.front().filter(|message| message.lines <= taken) {
            let number = message.number;
            self.unconfirmed.pop_front();
            (self.is_further, is_any) = (true, true);
            nic.progress(self.vi, number, Progress::Received);
        }
        is_any
    }
}
