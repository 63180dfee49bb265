//! The oracle of rules 1 to 3: the values that a read may return, byte by byte.

use netdyno_protocol::global::GlobalPointer;

/// The begin or the end of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub rank: u32,
    /// The number of barriers that the rank has left.
    pub barriers: usize,
    /// The number of the event among those of all ranks.
    pub event: u64,
}

impl Moment {
    /// Reports whether an operation that ends now is ordered before one that begins at `begin`: they are of one rank
    /// (rule 1), or a barrier is between them (rule 2).
    fn is_before(self, begin: Self) -> bool {
        self.barriers < begin.barriers || self.rank == begin.rank && self.event < begin.event
    }
}

#[derive(Debug)]
struct Write {
    at: GlobalPointer,
    bytes: Vec<u8>,
    begin: Moment,
    /// The sync that completed it.
    end: Option<Moment>,
}

impl Write {
    /// Returns the byte that it writes to `offset`.
    fn byte(&self, offset: u64) -> Option<u8> {
        self.bytes.get(offset.checked_sub(self.at.offset)? as usize).copied()
    }

    fn is_before(&self, begin: Moment) -> bool {
        self.end.is_some_and(|end| end.is_before(begin))
    }
}

/// All writes of a run to shared segments, which are zero at first.
#[derive(Default)]
pub struct Writes {
    writes: Vec<Write>,
    /// The bytes read that had one permitted value, and those that had several.
    pub read: [u64; 2],
}

impl Writes {
    /// Adds a write. Returns its number.
    pub fn begin(&mut self, at: GlobalPointer, bytes: Vec<u8>, begin: Moment) -> usize {
        self.writes.push(Write { at, bytes, begin, end: None });
        self.writes.len() - 1
    }

    pub fn end(&mut self, number: usize, end: Moment) {
        self.writes[number].end = Some(end);
    }

    /// Checks the result of a read that began at `begin` and ends now.
    ///
    /// A byte has the value of a write, unless another write is ordered after that write and before the read. It has
    /// its first value, unless any write is ordered before the read.
    pub fn check(&mut self, at: GlobalPointer, bytes: &[u8], begin: Moment) -> Result<(), String> {
        let end = at.offset + bytes.len() as u64;
        let is_near = |write: &&Write| {
            let written_end = write.at.offset + write.bytes.len() as u64;
            write.at.rank == at.rank && write.at.offset < end && at.offset < written_end
        };
        let near: Vec<&Write> = self.writes.iter().filter(is_near).collect();
        for (offset, &seen) in (at.offset..).zip(bytes) {
            let here = || near.iter().filter_map(|write| Some((*write, write.byte(offset)?)));
            let is_hidden =
                |old: &Write| here().any(|(new, _)| old.is_before(new.begin) && new.is_before(begin));
            let first = (!here().any(|(write, _)| write.is_before(begin))).then_some(0);
            let written = here().filter(|(write, _)| !is_hidden(write)).map(|(_, byte)| byte);
            let permitted: Vec<u8> = first.into_iter().chain(written).collect();
            if !permitted.contains(&seen) {
                let place = GlobalPointer { offset, ..at };
                return Err(format!("a read of {place:?} returned {seen}, permitted are {permitted:?}"));
            }
            self.read[usize::from(permitted.len() > 1)] += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: GlobalPointer = GlobalPointer { rank: 0, segment: 0, offset: 3 };

    fn moment(rank: u32, barriers: usize, event: u64) -> Moment {
        Moment { rank, barriers, event }
    }

    #[test]
    fn a_read_after_the_sync_sees_the_write_alone() {
        let mut writes = Writes::default();
        let number = writes.begin(AT, vec![7; 4], moment(1, 0, 1));
        // Before the sync either value is permitted, byte by byte.
        writes.check(AT, &[7, 0, 7, 0, 0], moment(1, 0, 2)).unwrap();
        writes.end(number, moment(1, 0, 3));
        writes.check(AT, &[7, 7, 7, 7, 0], moment(1, 0, 4)).unwrap();
        writes.check(AT, &[7, 7, 7, 0], moment(1, 0, 4)).unwrap_err();
        // Another rank sees it for certain after a barrier only.
        writes.check(AT, &[0, 7], moment(2, 0, 4)).unwrap();
        writes.check(AT, &[0, 7], moment(2, 1, 4)).unwrap_err();
    }

    #[test]
    fn a_synced_write_hides_earlier_ones_and_not_concurrent_ones() {
        let mut writes = Writes::default();
        for (value, rank, event) in [(1, 1, 1), (2, 1, 3), (3, 2, 3)] {
            let number = writes.begin(AT, vec![value], moment(rank, 0, event));
            writes.end(number, moment(rank, 0, event + 1));
        }
        for (value, is_permitted) in [(0, false), (1, false), (2, true), (3, true), (4, false)] {
            assert_eq!(writes.check(AT, &[value], moment(3, 1, 9)).is_ok(), is_permitted, "{value}");
        }
    }
}
