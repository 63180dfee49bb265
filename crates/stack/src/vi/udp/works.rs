//! What of a connection belongs to which work of the VI, and how its bytes are reached.

use super::Means;
use super::memory::{gather, place};
use netdyno_protocol::frame::transfer::Range;
use netdyno_protocol::frame::vi_message::{Head, Kind, number_of};
use netdyno_protocol::reliability::Memories;
use netdyno_protocol::vi::{Arrival, Nic, Remote, Segment, ViHandle};
use std::collections::VecDeque;

/// The peer's message whose bytes come in a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Announced {
    #[default]
    Nothing,
    Message(Head),
    /// A message was refused, and with it all that comes behind it.
    Refused,
}

/// The works of one connection.
#[derive(Debug, Default)]
pub struct Works {
    /// The last one that was sent.
    pub last_sent: u64,
    /// Our store whose bytes are still to be taken, by the connection's number, and its work.
    pub store: Option<(u32, u64)>,
    /// The same of our gets, in their order.
    pub gets: VecDeque<(u32, u64)>,
    pub announced: Announced,
}

impl Works {
    pub fn has_refused(&self) -> bool {
        self.announced == Announced::Refused
    }

    /// The work of which the peer knows the last 32 bits, if it was sent.
    pub fn sent(&self, number: u32) -> Option<u64> {
        number_of(self.last_sent, number)
    }

    /// All bytes of a store have come: the message that was announced, if they are all of it.
    pub fn stored(&mut self, len: u64) -> Option<Head> {
        let Announced::Message(head) = self.announced else { return None };
        self.announced = Announced::Nothing;
        (u64::from(head.len) == len).then_some(head)
    }

    /// The first get is answered: its work.
    pub fn fetched(&mut self, get: u32) -> Option<u64> {
        self.gets.pop_front().filter(|(first, _)| *first == get).map(|(_, work)| work)
    }

    /// Nothing more becomes of any of them.
    pub fn forget(&mut self) {
        self.store = None;
        self.gets.clear();
    }
}

/// The memory of the program, for a connection that moves its bytes.
pub struct Reach<'a> {
    vi: Option<ViHandle>,
    works: &'a mut Works,
    nic: &'a mut Nic,
    segments: &'a mut Vec<Segment>,
    /// The peer sent what no provider sends.
    pub is_astray: bool,
}

impl<'a> Reach<'a> {
    #[inline]
    pub fn new(vi: Option<ViHandle>, works: &'a mut Works, means: &'a mut Means<'_>) -> Self {
        Self { vi, works, nic: means.nic, segments: means.scratch.cleared().0, is_astray: false }
    }

    /// The VI, if it takes anything.
    fn taking(&self) -> Option<ViHandle> {
        self.vi.filter(|_| !self.works.has_refused())
    }

    /// A message of the peer's goes no further.
    fn refuse(&mut self) -> bool {
        self.works.announced = Announced::Refused;
        false
    }
}

/// What the peer reads, by its get. `None` where that is too long to be read.
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
        // A message is no longer than 32 bits say.
        if self.nic.bytes_of(vi, work, at as u32, len as u32, self.segments).is_err() {
            return false;
        }
        // SAFETY: the rules have just found them in registered memory, which stays until it is
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
                // SAFETY: the rules have just found it in registered memory, which stays until it
                // is deregistered.
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
        // SAFETY: the rules have just found them in registered memory, which stays until it is
        // deregistered.
        unsafe { place(self.segments, bytes) };
        true
    }

    fn fetched(&mut self, number: u32, at: u64, bytes: &[u8]) {
        let get = self.works.gets.front().filter(|(get, _)| *get == number);
        let (Some(vi), Some((_, work))) = (self.vi, get) else { return };
        self.segments.clear();
        if self.nic.bytes_of(vi, *work, at as u32, bytes.len() as u32, self.segments).is_ok() {
            // SAFETY: the rules have just found them in registered memory, which stays until it is
            // deregistered.
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
        // Those before are of the numbers before.
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
