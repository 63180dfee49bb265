//! The work requests of a connection, and access to their bytes.

use super::Means;
use super::memory::{gather, place};
use netdyno_protocol::frame::transfer::Range;
use netdyno_protocol::frame::vi_message::{Head, Kind, number_of};
use netdyno_protocol::reliability::Memories;
use netdyno_protocol::vi::{Arrival, Nic, Remote, Segment, ViHandle};
use std::collections::VecDeque;

/// The state of the peer's message whose bytes arrive in a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Announced {
    #[default]
    Nothing,
    Message(Head),
    /// A message was refused, and with it all messages that come later.
    Refused,
}

/// The work requests of one connection.
#[derive(Debug, Default)]
pub struct Works {
    /// The number of the last work request that was sent.
    pub last_sent: u64,
    /// This side's store whose bytes are not all copied: its number on the connection, and its work
    /// request.
    pub store: Option<(u32, u64)>,
    /// This side's gets, in order: number on the connection, and work request.
    pub gets: VecDeque<(u32, u64)>,
    pub announced: Announced,
}

impl Works {
    pub fn has_refused(&self) -> bool {
        self.announced == Announced::Refused
    }

    /// Returns the work request whose number has these last 32 bits, if it was sent.
    pub fn sent(&self, number: u32) -> Option<u64> {
        number_of(self.last_sent, number)
    }

    /// All bytes of a store have arrived. Returns the announced message, if `len` is its length.
    pub fn stored(&mut self, len: u64) -> Option<Head> {
        let Announced::Message(head) = self.announced else { return None };
        self.announced = Announced::Nothing;
        (u64::from(head.len) == len).then_some(head)
    }

    /// The first get is answered. Returns its work request.
    pub fn fetched(&mut self, get: u32) -> Option<u64> {
        self.gets.pop_front().filter(|(first, _)| *first == get).map(|(_, work)| work)
    }

    /// Discards the pending work requests.
    pub fn forget(&mut self) {
        self.store = None;
        self.gets.clear();
    }
}

/// The memory of the program, as the connection accesses it.
pub struct Reach<'a> {
    vi: Option<ViHandle>,
    works: &'a mut Works,
    nic: &'a mut Nic,
    segments: &'a mut Vec<Segment>,
    /// The peer broke the protocol.
    pub is_astray: bool,
}

impl<'a> Reach<'a> {
    #[inline]
    pub fn new(vi: Option<ViHandle>, works: &'a mut Works, means: &'a mut Means<'_>) -> Self {
        Self { vi, works, nic: means.nic, segments: means.scratch.cleared().0, is_astray: false }
    }

    /// Returns the VI, if it still takes messages.
    fn taking(&self) -> Option<ViHandle> {
        self.vi.filter(|_| !self.works.has_refused())
    }

    /// Refuses a message of the peer.
    fn refuse(&mut self) -> bool {
        self.works.announced = Announced::Refused;
        false
    }
}

/// Returns the RDMA read that a get of the peer stands for; `None` if the get is out of range.
fn read_of(range: &Range) -> Option<Head> {
    let handle = u32::try_from(range.memory).ok()?;
    let remote = Remote { address: range.offset, handle };
    Some(Head { number: range.number, len: u32::try_from(range.len).ok()?, kind: Kind::Read { remote } })
}

impl Memories for Reach<'_> {
    fn source(&mut self, number: u32, at: u64, len: usize, out: &mut Vec<u8>) -> bool {
        let store = self.works.store.filter(|(store, _)| *store == number);
        let (Some(vi), Some((_, work))) = (self.vi, store) else { return false };
        self.segments.clear();
        // The length of a message has 32 bits, so the casts lose nothing.
        if self.nic.bytes_of(vi, work, at as u32, len as u32, self.segments).is_err() {
            return false;
        }
        // SAFETY: the rules have just found the segments in registered memory, which stays until it is
        // deregistered.
        unsafe { gather(self.segments, out) };
        true
    }

    fn has(&mut self, _: &[u8]) -> bool {
        false
    }

    fn read(&mut self, range: &Range, at: u64, len: usize, out: &mut Vec<u8>) -> bool {
        let Some(vi) = self.taking() else { return false };
        let Some(head) = read_of(range) else {
            self.is_astray = true;
            return false;
        };
        if at == 0 && self.nic.arrive(vi, &head) != Arrival::Serve {
            return self.refuse();
        }
        match self.nic.serves(vi, &head, at as u32, len as u32) {
            Ok(segment) => {
                // SAFETY: the rules have just found the segment in registered memory, which stays until
                // it is deregistered.
                unsafe { gather(&[segment], out) };
                true
            }
            Err(_) => self.refuse(),
        }
    }

    fn write(&mut self, range: &Range, at: u64, bytes: &[u8]) -> bool {
        let Some(vi) = self.taking() else { return false };
        match self.works.announced {
            Announced::Message(head) if u64::from(head.len) == range.len => {}
            _ => {
                self.is_astray = true;
                return false;
            }
        }
        self.segments.clear();
        if self.nic.places(vi, at as u32, bytes.len() as u32, self.segments).is_err() {
            return self.refuse();
        }
        // SAFETY: the rules have just found the segments in registered memory, which stays until it is
        // deregistered.
        unsafe { place(self.segments, bytes) };
        true
    }

    fn fetched(&mut self, number: u32, at: u64, bytes: &[u8]) {
        let get = self.works.gets.front().filter(|(get, _)| *get == number);
        let (Some(vi), Some((_, work))) = (self.vi, get) else { return };
        self.segments.clear();
        if self.nic.bytes_of(vi, *work, at as u32, bytes.len() as u32, self.segments).is_ok() {
            // SAFETY: the rules have just found the segments in registered memory, which stays until it
            // is deregistered.
            unsafe { place(self.segments, bytes) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_work_is_known_by_its_last_bits_once_it_was_sent() {
        let mut works = Works::default();
        assert_eq!((works.sent(0), works.sent(1)), (Some(0), None));
        works.last_sent = (1 << 32) + 2;
        assert_eq!((works.sent(2), works.sent(0)), (Some((1 << 32) + 2), Some(1 << 32)));
        // Numbers whose last 32 bits are above 2 are among the first 2^32.
        assert_eq!((works.sent(u32::MAX), works.sent(3)), (Some(u32::MAX.into()), Some(3)));
    }

    #[test]
    fn what_no_read_can_be_is_none() {
        let range = Range { number: 1, memory: 2, offset: 3, len: 4 };
        assert_eq!(read_of(&range).unwrap().len, 4);
        assert_eq!(read_of(&Range { memory: 1 << 32, ..range }), None);
        assert_eq!(read_of(&Range { len: 1 << 32, ..range }), None);
    }
}
