//! The attributes of a provider and of a VI, and the check whether two VIs can be connected (VIA 1.0,
//! "attributes").

use super::codes::Level;
use super::memory::{Limits, Ptag};

/// A set of reliability levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels(pub u16);

impl Levels {
    /// All levels.
    pub const ALL: Self = Self(7);
    /// The levels that allow RDMA reads. An unreliable VI has no order, so it can not tell whether
    /// arriving bytes are those of its read.
    pub const RELIABLE: Self = Self(6);

    /// Reports whether the set contains `level`.
    pub const fn has(self, level: Level) -> bool {
        self.0 & level as u16 != 0
    }
}

/// The attributes of a provider: its capabilities and limits. The name and the versions are kept by the
/// caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicAttributes {
    /// Limits of protection tags and registered memory.
    pub memory: Limits,
    /// Most VIs.
    pub vis: u32,
    /// Most descriptors in a queue of a VI, completed ones that the program has not taken included.
    pub descriptors: u32,
    /// Most segments of a descriptor.
    pub segments: u16,
    /// Most completion queues.
    pub cqs: u32,
    /// Most entries of a completion queue.
    pub cq_entries: u32,
    /// Longest message or RDMA, bytes.
    pub transfer_bytes: u32,
    /// Longest piece that travels in one frame, bytes.
    pub mtu_bytes: u32,
    /// The supported reliability levels.
    pub levels: Levels,
    /// The levels that support RDMA reads.
    pub read_levels: Levels,
    /// Length of a host's address, bytes.
    pub host_bytes: u8,
    /// Longest discriminator, bytes.
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

/// The attributes of a VI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViAttributes {
    /// Its reliability level.
    pub level: Level,
    /// Longest message or RDMA, bytes.
    pub transfer_bytes: u32,
    /// Quality of service. Only 0 exists.
    pub qos: u64,
    /// Its protection tag.
    pub tag: Ptag,
    /// Whether the peer may write into this side's memory (RDMA write).
    pub can_be_written: bool,
    /// Whether the peer may read from this side's memory (RDMA read).
    pub can_be_read: bool,
}

/// The attributes of a VI that a provider does not support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// The reliability level.
    Level,
    /// The longest transfer: it is 0, or longer than the provider allows.
    Transfer,
    /// The quality of service.
    Qos,
    /// RDMA reads at this level.
    RdmaRead,
}

impl NicAttributes {
    /// Checks whether this provider supports the attributes `vi`.
    ///
    /// # Errors
    /// Returns the first attribute that it does not support.
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

    /// Reports whether VIs of this level support RDMA reads.
    pub const fn can_read(&self, level: Level) -> bool {
        level.is_reliable() && self.read_levels.has(level)
    }

    /// Returns the attributes of a VI as sent to the other side when it connects.
    pub const fn offer(&self, vi: &ViAttributes) -> Offer {
        let ViAttributes { level, transfer_bytes, qos, can_be_written, can_be_read, .. } = *vi;
        Offer { level, transfer_bytes, qos, can_be_written, can_be_read, can_read: self.can_read(level) }
    }
}

/// The attributes of a VI, as one side of a connection sends them to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The reliability level.
    pub level: Level,
    /// Longest message or RDMA, bytes.
    pub transfer_bytes: u32,
    /// Quality of service.
    pub qos: u64,
    /// Whether the other side may write into its memory.
    pub can_be_written: bool,
    /// Whether the other side may read from its memory.
    pub can_be_read: bool,
    /// Whether its provider can issue RDMA reads.
    pub can_read: bool,
}

/// The reasons why two VIs can not be connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// Their reliability levels differ.
    Level,
    /// Their longest transfers differ.
    Transfer,
    /// Their qualities of service differ.
    Qos,
    /// One VI allows RDMA reads that the other's provider does not support.
    RdmaRead,
}

impl Offer {
    /// Returns the first conflict between two VIs. Both sides find the same one.
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
        // An unreliable level allows no reads, even if the provider claims them.
        let careless = NicAttributes { read_levels: Levels::ALL, ..nic };
        assert!(!careless.can_read(Level::Unreliable) && careless.can_read(Level::Delivery));
    }

    #[test]
    fn a_conflict_is_the_same_from_both_sides() {
        let ours = NicAttributes::default().offer(&VI);
        assert_eq!(ours.conflict(&ours), None);
        // Each side decides by itself whether its memory may be written or read.
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
