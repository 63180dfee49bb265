//! RDMA: the target's engine accesses its memory, when its process makes progress.

use super::endpoint::{Arrival, Body};
use super::peer::Origin;
use super::{
    Completion, Copied, Engine, Failure, Landing, Links, Op, PAYLOAD, Payload, PeerNo, Pending, Refused,
    Role, Target, Transfer, Until, Wants,
};
use crate::abi;
use crate::frame::{Header, Kind, encode_segments, parse_segments};
use crate::memory::Memory;

/// What peers may do with a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// They may read it.
    pub can_be_read: bool,
    /// They may write it.
    pub can_be_written: bool,
}

impl Access {
    const READ: Self = Self { can_be_read: true, can_be_written: false };
    const WRITE: Self = Self { can_be_read: false, can_be_written: true };

    /// Returns whether all that an access needs is allowed.
    const fn allows(self, needs: Self) -> bool {
        (self.can_be_read || !needs.can_be_read) && (self.can_be_written || !needs.can_be_written)
    }
}

/// Memory that peers may access.
#[derive(Clone, Debug)]
pub struct Region {
    /// The memory.
    pub memory: Memory,
    /// What peers may do.
    pub access: Access,
    /// The counter of peers' reads, and that of their writes.
    pub counters: [Option<usize>; 2],
}

/// Memory of a peer: the key of its region, and an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The key.
    pub key: u64,
    /// The offset in bytes.
    pub offset: u64,
}

impl<L: Links> Engine<L> {
    /// Writes memory of a peer.
    ///
    /// # Errors
    /// Returns an error if the operation was not begun.
    pub fn write(
        &mut self,
        endpoint: u16,
        to: Target,
        place: Place,
        memory: Memory,
        data: Option<u64>,
        (context, wants): (usize, Wants),
    ) -> Result<(), Refused> {
        self.check(to.peer)?;
        let header = Header {
            to: to.endpoint,
            from: endpoint,
            len: memory.len() as u64,
            tag: place.key,
            offset: place.offset,
            ..Header::new(Kind::Write)
        };
        let completion = Completion::new(context, abi::RMA | abi::WRITE);
        let pending = Pending { op: Op::Write, completion, is_reported: wants.is_reported };
        // The target checks the key, so its answer alone says whether the write was done.
        let wants = Wants { until: Until::Delivered, ..wants };
        self.transmit(to.peer, header.with_data(data), Kind::WriteOffer, memory, (pending, wants))
    }

    /// Reads memory of a peer.
    ///
    /// # Errors
    /// Returns an error if the operation was not begun.
    pub fn read(
        &mut self,
        endpoint: u16,
        from: Target,
        place: Place,
        memory: Memory,
        (context, is_reported): (usize, bool),
    ) -> Result<(), Refused> {
        self.check(from.peer)?;
        let segments = encode_segments(memory.segments());
        let header = Header {
            to: from.endpoint,
            from: endpoint,
            len: memory.len() as u64,
            tag: place.key,
            offset: place.offset,
            ..Header::new(Kind::Read)
        };
        let completion = Completion::new(context, abi::RMA | abi::READ);
        let pending = Pending { op: Op::Read, completion, is_reported };
        let wanted = memory.len();
        let role = Role::Reading { pending, memory, got: 0, wanted };
        self.begin(from.peer, header, Payload::Bytes(&segments), role);
        Ok(())
    }

    /// Returns the memory that a peer wants to access.
    pub(super) fn region(&self, header: &Header, needs: Access) -> Option<Memory> {
        let region = self.regions.get(&header.tag)?;
        let is_allowed = region.access.allows(needs);
        let (offset, len) = (usize::try_from(header.offset).ok()?, usize::try_from(header.len).ok()?);
        let is_inside = offset.checked_add(len).is_some_and(|end| end <= region.memory.len());
        (is_allowed && is_inside).then(|| region.memory.part(offset, len))
    }

    pub(super) fn on_write(&mut self, peer: PeerNo, header: &Header, payload: &[u8]) {
        let header = Header { len: payload.len() as u64, ..*header };
        let Some(memory) = self.region(&header, Access::WRITE) else {
            return self.answer_done(peer, header.transfer, Some(Failure::NoMemory));
        };
        let len = memory.write(0, payload);
        self.answer_done(peer, header.transfer, None);
        self.written(header.to, Some(header.tag), &Arrival::of(peer, &header), len, None);
    }

    pub(super) fn on_write_offer(&mut self, peer: PeerNo, header: &Header, payload: &[u8]) -> bool {
        let Some(segments) = parse_segments(payload) else { return false };
        match self.region(header, Access::WRITE) {
            None => self.answer_done(peer, header.transfer, Some(Failure::NoMemory)),
            Some(memory) => {
                let landing =
                    Landing::Write { arrival: Arrival::of(peer, header), memory, key: Some(header.tag) };
                self.bring(header.to, landing, Body::Offered { transfer: header.transfer, segments });
            }
        }
        true
    }

    pub(super) fn on_read(&mut self, peer: PeerNo, header: &Header, payload: &[u8]) -> bool {
        let Some(segments) = parse_segments(payload) else { return false };
        let Some(memory) = self.region(header, Access::READ) else {
            self.answer_done(peer, header.transfer, Some(Failure::NoMemory));
            return true;
        };
        let copied = if memory.len() == 0 {
            Copied::Whole
        } else if memory.len() <= PAYLOAD {
            Copied::NotHere
        } else {
            self.links.push(peer, &memory, &segments)
        };
        match copied {
            Copied::Whole => {
                self.answer_done(peer, header.transfer, None);
                self.was_read(header.to, header.tag);
            }
            Copied::Failed | Copied::Ended => {
                self.answer_done(peer, header.transfer, Some(Failure::NotCopied))
            }
            Copied::NotHere => {
                let origin = Origin::Region { key: header.tag, endpoint: header.to };
                self.stream(peer, memory, header.transfer, origin, None);
            }
        }
        true
    }

    /// Reports a read of a peer from the region of this key.
    pub(super) fn was_read(&mut self, endpoint: u16, key: u64) {
        if let Some(&Region { counters: [Some(counter), _], .. }) = self.regions.get(&key) {
            self.completions.count(counter, false);
        }
        self.report(endpoint, Op::RemoteRead, Completion::new(0, abi::RMA | abi::REMOTE_READ), false);
    }

    /// Ends the access to a region. Peers that still read or write it get an error.
    pub fn withdraw(&mut self, key: u64) {
        self.pull_all();
        self.regions.remove(&key);
        let is_from_region = |origin| matches!(origin, Origin::Region { key: other, .. } if other == key);
        self.end_streams(Failure::NoMemory, is_from_region);
        let is_of_region = |transfer: &Transfer| match &transfer.role {
            Role::Landing { landing: Landing::Write { key: other, .. }, .. } => *other == Some(key),
            _ => false,
        };
        self.sink(Failure::NoMemory, is_of_region);
        // Another region may get the key.
        for (_, transfer) in &mut self.transfers {
            if let Role::Landing { landing: Landing::Write { key: other, .. }, .. } = &mut transfer.role
                && *other == Some(key)
            {
                *other = None;
            }
        }
    }

    /// Reports a write of a peer to the region of this key.
    pub(super) fn written(
        &mut self,
        endpoint: u16,
        key: Option<u64>,
        arrival: &Arrival,
        len: usize,
        failure: Option<Failure>,
    ) {
        let region = key.and_then(|key| self.regions.get(&key));
        if let Some(&Region { counters: [_, Some(counter)], .. }) = region {
            self.completions.count(counter, failure.is_some());
        }
        let completion = Completion {
            len,
            source: arrival.source,
            failure: failure.map(|failure| (failure, 0)),
            ..Completion::new(0, abi::RMA | abi::REMOTE_WRITE).with_data(arrival.data)
        };
        self.report(endpoint, Op::RemoteWrite, completion, arrival.data.is_some());
    }
}
