//! The segments of a rank, and their view by the bulk transfers of a connection.

use netdyno_protocol::frame::transfer::Range;
use netdyno_protocol::global::Segments;
use netdyno_protocol::reliability::Memories;
use std::collections::BTreeMap;

/// The segment that all ranks access.
pub const SHARED: u32 = 0;
/// The segment that receives the results of gets. Only its own rank uses it.
pub const LANDING: u32 = 1;
/// Length of the shared segment, in bytes.
pub const SHARED_LEN: u64 = 8192;
/// The value of the bytes around each result in the landing segment. No get may change them.
const GUARD: u8 = 0xee;

/// The shared segment and the landing segment.
pub struct Memory([Vec<u8>; 2]);

impl Memory {
    pub fn new() -> Self {
        Self([vec![0; SHARED_LEN as usize], Vec::new()])
    }

    /// Makes room for a result of `len` bytes in the landing segment. Returns its offset.
    pub fn make_room(&mut self, len: u64) -> u64 {
        let landing = &mut self.0[LANDING as usize];
        let offset = landing.len() + 1;
        landing.resize(offset + len as usize + 1, GUARD);
        offset as u64
    }

    /// Returns a result in the landing segment.
    pub fn landed(&self, offset: u64, len: u64) -> Vec<u8> {
        let room = &self.0[LANDING as usize][offset as usize - 1..][..len as usize + 2];
        let ([first, bytes @ .., last], guards) = (room, [GUARD; 2]) else { unreachable!() };
        assert_eq!([*first, *last], guards, "a get wrote outside of its range");
        bytes.to_vec()
    }

    /// Empties the landing segment. No get is outstanding.
    pub fn clear_landing(&mut self) {
        self.0[LANDING as usize].clear();
    }
}

impl Segments for Memory {
    fn len(&self, segment: u32) -> Option<u64> {
        self.0.get(segment as usize).map(|bytes| bytes.len() as u64)
    }
    fn read(&self, segment: u32, offset: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.0[segment as usize][offset as usize..][..into.len()]);
    }
    fn write(&mut self, segment: u32, offset: u64, from: &[u8]) {
        self.0[segment as usize][offset as usize..][..from.len()].copy_from_slice(from);
    }
}

/// The bulk transfers that one side of a connection has requested, by their numbers.
#[derive(Default)]
pub struct Transfers {
    /// The bytes of stores.
    pub sources: BTreeMap<u32, Vec<u8>>,
    /// The ticket of each get, and the offset of its result in the landing segment.
    pub gets: BTreeMap<u32, (u32, u64)>,
}

/// The memory of one rank, for the bulk transfers of one of its connections.
pub struct TransferMemory<'a> {
    pub memory: &'a mut Memory,
    pub transfers: &'a mut Transfers,
}

impl Memories for TransferMemory<'_> {
    fn source(&mut self, number: u32, at: u64, len: usize, out: &mut Vec<u8>) -> bool {
        out.extend_from_slice(&self.transfers.sources[&number][at as usize..][..len]);
        true
    }
    fn has(&mut self, _: &[u8]) -> bool {
        true
    }
    fn read(&mut self, range: &Range, at: u64, len: usize, out: &mut Vec<u8>) -> bool {
        let begin = out.len();
        out.resize(begin + len, 0);
        self.memory.read(range.memory as u32, range.offset + at, &mut out[begin..]);
        true
    }
    fn write(&mut self, range: &Range, at: u64, bytes: &[u8]) -> bool {
        self.memory.write(range.memory as u32, range.offset + at, bytes);
        true
    }
    fn fetched(&mut self, number: u32, at: u64, bytes: &[u8]) {
        let (_, offset) = self.transfers.gets[&number];
        self.memory.write(LANDING, offset + at, bytes);
    }
}
