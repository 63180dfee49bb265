//! What a provider can do, what a VI is made for, and whether two VIs can be connected (VIA 1.0,
//! "attributes").

use super::codes::Level;
use super::memory::{Limits, Ptag};

/// A set of levels of reliability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels(pub u16);

impl Levels {
    /// Every level.
    pub const ALL: Self = Self(7);
    /// The levels at which there can be RDMA reads: without an order there is nothing to say that
    /// the bytes that come are those that were asked for.
    pub const RELIABLE: Self = Self(6);

    /// Whether `level` is one of them.
    pub const fn has(self, level: Level) -> bool {
        self.0 & level as u16 != 0
    }
}

/// What a provider can do. Name and versions are the business of whoever has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicAttributes {
    /// Tags and registered memory.
    pub memory: Limits,
    /// VIs.
    pub vis: u32,
    /// Descriptors in a queue of a VI, those that are complete and not yet taken among them.
    pub descriptors: u32,
    /// Segments of a descriptor.
    pub segments: u16,
    /// Completion queues.
    pub cqs: u32,
    /// Entries of a completion queue.
    pub cq_entries: u32,
    /// Bytes of one message or RDMA.
    pub transfer_bytes: u32,
    /// Bytes that travel in one piece.
    pub mtu_bytes: u32,
    /// Levels that a VI can have.
    pub levels: Levels,
    /// Those of them that have RDMA reads.
    pub read_levels: Levels,
    /// Bytes of a host's address.
    pub host_bytes: u8,
    /// Bytes of a discriminator, at most.
    pub discriminator_bytes: u8,
}

impl Default for NicAttributes {
    fn default() -> Self {
        Self {
            memory: Limits { tags: 1024, regions: 1 << 16, region_bytes: 1 << 40, bytes: 1 << 44 },
            vis: 1024,
            descriptors: 1024,
            segments: super::descriptor::MOST_SEGMENTS as u16,
            cqs: 1024,
            cq_entries: 1 << 16,
            transfer_bytes: 1 << 20,
            mtu_bytes: crate::frame::vi_fragment::LONGEST_PIECE as u32,
            levels: Levels::ALL,
            read_levels: Levels::RELIABLE,
            host_bytes: 18,
            discriminator_bytes: 64,
        }
    }
}

/// What a VI is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViAttributes {
    /// What it promises.
    pub level: Level,
    /// Bytes of one message or RDMA, at most.
    pub transfer_bytes: u32,
    /// Quality of service: there is one, of number 0.
    pub qos: u64,
    /// Its protection tag.
    pub tag: Ptag,
    /// Whether its peer may write into memory of this side.
    pub can_be_written: bool,
    /// Whether its peer may read from it.
    pub can_be_read: bool,
}

/// What a provider does not have that a VI is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// That level of reliability.
    Level,
    /// Such long transfers, or such of no bytes.
    Transfer,
    /// That quality of service.
    Qos,
    /// RDMA reads at that level.
    RdmaRead,
}

impl NicAttributes {
    /// Whether VIs can be made so.
    ///
    /// # Errors
    /// They can not.
    pub fn check(&self, vi: &ViAttributes) -> Result<(), Unsupported> {
        if !self.levels.has(vi.level) {
            return Err(Unsupported::Level);
        }
        if vi.transfer_bytes == 0 || vi.transfer_bytes > self.transfer_bytes {
            return Err(Unsupported::Transfer);
        }
        if vi.qos != 0 {
            return Err(Unsupported::Qos);
        }
        if vi.can_be_read && !self.can_read(vi.level) {
            return Err(Unsupported::RdmaRead);
        }
        Ok(())
    }

    /// Whether VIs of that level have RDMA reads.
    pub const fn can_read(&self, level: Level) -> bool {
        level.is_reliable() && self.read_levels.has(level)
    }

    /// What a VI of this provider tells about itself when it connects.
    pub const fn offer(&self, vi: &ViAttributes) -> Offer {
        let ViAttributes { level, transfer_bytes, qos, can_be_written, can_be_read, .. } = *vi;
        Offer { level, transfer_bytes, qos, can_be_written, can_be_read, can_read: self.can_read(level) }
    }
}

/// What one side of a connection tells the other about its VI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// What it promises.
    pub level: Level,
    /// Bytes of one message or RDMA, at most.
    pub transfer_bytes: u32,
    /// Quality of service.
    pub qos: u64,
    /// Whether the other side may write.
    pub can_be_written: bool,
    /// Whether the other side may read.
    pub can_be_read: bool,
    /// Whether it can read itself.
    pub can_read: bool,
}

/// Why two VIs can not be connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// They promise different things.
    Level,
    /// Their longest transfers differ.
    Transfer,
    /// Their qualities of service differ.
    Qos,
    /// One lets the other read, which can not.
    RdmaRead,
}

impl Offer {
    /// What stands between two VIs, the same from both sides.
    pub fn conflict(&self, other: &Self) -> Option<Conflict> {
        if self.level != other.level {
            Some(Conflict::Level)
        } else if self.transfer_bytes != other.transfer_bytes {
            Some(Conflict::Transfer)
        } else if self.qos != other.qos {
            Some(Conflict::Qos)
        } else if self.can_be_read && !other.can_read || other.can_be_read && !self.can_read {
            Some(Conflict::RdmaRead)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VI: ViAttributes = ViAttributes {
        level: Level::Delivery,
        transfer_bytes: 1000,
        qos: 0,
        tag: Ptag(1),
        can_be_written: true,
        can_be_read: true,
    };

    #[test]
    fn a_provider_makes_no_vi_that_it_can_not_serve() {
        let nic = NicAttributes { levels: Levels(3), ..NicAttributes::default() };
        assert_eq!(nic.check(&VI), Ok(()));
        for (vi, what) in [
            (ViAttributes { level: Level::Reception, ..VI }, Unsupported::Level),
            (ViAttributes { transfer_bytes: 0, ..VI }, Unsupported::Transfer),
            (ViAttributes { transfer_bytes: (1 << 20) + 1, ..VI }, Unsupported::Transfer),
            (ViAttributes { qos: 1, ..VI }, Unsupported::Qos),
            (ViAttributes { level: Level::Unreliable, ..VI }, Unsupported::RdmaRead),
        ] {
            assert_eq!(nic.check(&vi), Err(what));
        }
        // Also where the provider says so: there are no reads without an order.
        let careless = NicAttributes { read_levels: Levels::ALL, ..nic };
        assert!(!careless.can_read(Level::Unreliable) && careless.can_read(Level::Delivery));
    }

    #[test]
    fn a_conflict_is_the_same_from_both_sides() {
        let ours = NicAttributes::default().offer(&VI);
        assert_eq!(ours.conflict(&ours), None);
        // Who may be written or read is each side's own business.
        assert_eq!(ours.conflict(&Offer { can_be_written: false, can_be_read: false, ..ours }), None);
        for (theirs, conflict) in [
            (Offer { level: Level::Reception, ..ours }, Conflict::Level),
            (Offer { transfer_bytes: 999, ..ours }, Conflict::Transfer),
            (Offer { qos: 1, ..ours }, Conflict::Qos),
            (Offer { can_read: false, can_be_read: false, ..ours }, Conflict::RdmaRead),
        ] {
            assert_eq!([ours.conflict(&theirs), theirs.conflict(&ours)], [Some(conflict); 2]);
        }
    }
}
