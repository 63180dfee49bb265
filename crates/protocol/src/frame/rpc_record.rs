//! Record marking: the way in which remote procedure calls use a byte stream (RFC 5531, section 11). A record
//! is a message. It travels in one or more fragments, each behind a mark of four bytes.
//!
//! ```text
//! 0   mark                 u32, big endian: the highest bit says that the fragment is the record's last, the
//!                          other 31 bits are the fragment's length in bytes
//! 4   fragment
//! ```

use alloc::vec::Vec;

/// Bytes of a mark.
pub const MARK_LEN: usize = 4;
/// The longest fragment, in bytes.
pub const LONGEST_FRAGMENT: usize = (1 << 31) - 1;

const LAST: u32 = 1 << 31;
/// Bytes that may be read beyond the record that arrives. Many short records then need one read together.
const READ_AHEAD: usize = 64 << 10;

/// Returns the mark of a record in one fragment of `len` bytes, at most [`LONGEST_FRAGMENT`].
pub fn whole(len: usize) -> [u8; MARK_LEN] {
    (LAST | len as u32).to_be_bytes()
}

/// A record is longer than the receiver takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// The bytes of the record, as far as its fragments are known.
    pub bytes: usize,
}

/// The records that arrive on a stream. The caller reads bytes into [`Records::spare`], and advances from record to record.
///
/// The memory grows with the bytes that have arrived, not with the lengths that marks announce.
#[derive(Debug)]
pub struct Records {
    room: Vec<u8>,
    /// The most bytes of a record.
    most: usize,
    /// Where the current record begins in `room`: its fragments so far are `begin..assembled`.
    begin: usize,
    assembled: usize,
    /// Where the next mark begins.
    next: usize,
    /// Where the bytes that have arrived end.
    end: usize,
    /// Whether the current record is complete.
    is_complete: bool,
}

impl Records {
    /// Returns a receiver of records of at most `most` bytes.
    pub fn new(most: usize) -> Self {
        Self { room: Vec::new(), most, begin: 0, assembled: 0, next: 0, end: 0, is_complete: false }
    }

    /// Moves on to the next record. Returns whether all of it has arrived.
    ///
    /// # Errors
    /// Returns [`TooLong`] if the record is longer than this receiver takes. The stream is then of no use.
    #[inline]
    pub fn advance(&mut self) -> Result<bool, TooLong> {
        self.leave_record();
        while let Some((mark, arrived)) = self.room[self.next..self.end].split_first_chunk::<MARK_LEN>() {
            let mark = u32::from_be_bytes(*mark);
            let len = (mark & !LAST) as usize;
            let bytes = (self.assembled - self.begin).saturating_add(len);
            if bytes > self.most {
                return Err(TooLong { bytes });
            }
            if len > arrived.len() {
                return Ok(false);
            }
            let fragment = self.next + MARK_LEN;
            if self.begin == self.assembled {
                (self.begin, self.assembled) = (fragment, fragment);
            } else {
                self.room.copy_within(fragment..fragment + len, self.assembled);
            }
            self.assembled += len;
            self.next = fragment + len;
            if mark & LAST != 0 {
                self.is_complete = true;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the record that [`Records::advance`] has moved on to. It is empty if none is complete.
    #[inline]
    pub fn record(&self) -> &[u8] {
        if self.is_complete { &self.room[self.begin..self.assembled] } else { &[] }
    }

    /// Returns memory for the next bytes of the stream. It is not empty. The caller has made sure that
    /// [`Records::advance`] finds no further record.
    pub fn spare(&mut self) -> &mut [u8] {
        self.move_to_front();
        if self.room.len() < self.end + READ_AHEAD {
            self.room.resize(2 * (self.end + READ_AHEAD), 0);
        }
        let most = self.missing() + READ_AHEAD;
        let until = self.room.len().min(self.end.saturating_add(most));
        &mut self.room[self.end..until]
    }

    /// Takes note of `bytes` bytes that were read into the memory of [`Records::spare`].
    pub fn note_read(&mut self, bytes: usize) {
        self.end = self.room.len().min(self.end + bytes);
    }

    /// Leaves the current record if it is complete.
    fn leave_record(&mut self) {
        if core::mem::take(&mut self.is_complete) {
            (self.begin, self.assembled) = (self.next, self.next);
        }
    }

    /// Moves the current record, and the bytes behind its fragments, to the front of the memory.
    fn move_to_front(&mut self) {
        self.leave_record();
        let record = self.assembled - self.begin;
        if self.next > record {
            self.room.copy_within(self.begin..self.assembled, 0);
            self.room.copy_within(self.next..self.end, record);
            self.end -= self.next - record;
            (self.begin, self.assembled, self.next) = (0, record, record);
        }
    }

    /// Returns the bytes of the current fragment that have not arrived, if its mark has.
    fn missing(&self) -> usize {
        let Some((mark, arrived)) = self.room[self.next..self.end].split_first_chunk() else { return 0 };
        ((u32::from_be_bytes(*mark) & !LAST) as usize).saturating_sub(arrived.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    /// Feeds the stream in pieces of these lengths, and returns the records.
    fn records(stream: &[u8], pieces: &[usize], most: usize) -> Result<Vec<Vec<u8>>, TooLong> {
        let mut records = Records::new(most);
        let (mut taken, mut rest, mut nth) = (Vec::new(), stream, 0);
        loop {
            while records.advance()? {
                taken.push(records.record().to_vec());
            }
            if rest.is_empty() {
                return Ok(taken);
            }
            let spare = records.spare();
            let len = pieces[nth % pieces.len()].min(spare.len()).min(rest.len());
            spare[..len].copy_from_slice(&rest[..len]);
            records.note_read(len);
            (rest, nth) = (&rest[len..], nth + 1);
        }
    }

    #[test]
    fn a_record_of_two_fragments_is_one_message() {
        let stream = b"\0\0\0\x03abc\x80\0\0\x02de\x80\0\0\x01f";
        for piece in 1..=stream.len() {
            assert_eq!(records(stream, &[piece], 5), Ok(vec![b"abcde".to_vec(), b"f".to_vec()]));
        }
        assert_eq!(records(stream, &[99], 4), Err(TooLong { bytes: 5 }));
        assert_eq!(whole(2), *b"\x80\0\0\x02");
    }

    #[test]
    fn memory_does_not_grow_with_what_a_mark_announces() {
        let mut records = Records::new(LONGEST_FRAGMENT);
        let spare = records.spare();
        spare[..MARK_LEN].copy_from_slice(&u32::MAX.to_be_bytes());
        records.note_read(MARK_LEN);
        assert_eq!(records.advance(), Ok(false));
        assert!(records.spare().len() <= 4 * READ_AHEAD);
    }

    proptest! {
        #[test]
        fn records_come_as_they_were_sent(
            sent in proptest::collection::vec(
                proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9), 1..4), 0..9,
            ),
            pieces in proptest::collection::vec(1usize..20, 1..5),
        ) {
            let mut stream = Vec::new();
            for record in &sent {
                for (nth, fragment) in record.iter().enumerate() {
                    let last = if nth + 1 == record.len() { LAST } else { 0 };
                    stream.extend((last | fragment.len() as u32).to_be_bytes());
                    stream.extend(fragment);
                }
            }
            let expected: Vec<Vec<u8>> = sent.iter().map(|record| record.concat()).collect();
            prop_assert_eq!(records(&stream, &pieces, 24), Ok(expected));
        }

        #[test]
        fn no_bytes_panic(
            stream in proptest::collection::vec(prop_oneof![Just(0), Just(128), any::<u8>()], 0..200),
            pieces in proptest::collection::vec(1usize..20, 1..5), most in 0usize..100,
        ) {
            let _ = records(&stream, &pieces, most);
        }
    }
}
