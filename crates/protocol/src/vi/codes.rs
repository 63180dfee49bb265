//! The numbers of the VIPL interface (VIA 1.0, `vipl.h`): asynchronous errors, resources, levels, status.

/// An asynchronous error: the error callback reports it, because no descriptor can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum AsyncError {
    /// A posted send can not be processed, and broke the VI.
    PostDesc = 0,
    /// The connection ended: the peer ended it, or a receive failed and its status has the reason.
    ConnLost = 1,
    /// A message arrived and no receive was posted.
    RecvqEmpty = 2,
    /// A completion queue overflowed.
    ViOverrun = 3,
    /// The peer's RDMA write was denied.
    RdmawProt = 4,
    /// The data of the peer's RDMA write arrived damaged.
    RdmawData = 5,
    /// The peer was lost during its RDMA write.
    RdmawAbort = 6,
    /// The peer's RDMA read was denied.
    RdmarProt = 7,
    /// The memory of a descriptor itself was deregistered before it completed.
    CompProt = 8,
    /// The transport failed while an RDMA of this side was in progress.
    RdmaTransport = 9,
    /// The provider failed as a whole.
    Catastrophic = 10,
}

/// The kind of resource that an asynchronous error concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Resource {
    /// The provider.
    Nic = 0,
    /// A VI.
    Vi = 1,
    /// A completion queue.
    Cq = 2,
    /// A descriptor.
    Descriptor = 3,
}

/// The reliability level of a VI. The numbers are bits, so that a provider can report the set that it
/// supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub enum Level {
    /// Messages arrive at most once.
    Unreliable = 1,
    /// Messages arrive exactly once and in order. A send completes when the wire has taken it.
    Delivery = 2,
    /// Messages arrive exactly once and in order. A send completes when the data are in the target's
    /// memory.
    Reception = 4,
}

impl Level {
    /// All levels.
    pub const ALL: [Self; 3] = [Self::Unreliable, Self::Delivery, Self::Reception];

    /// Returns the level with this number.
    pub fn of(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|level| *level as u16 == number)
    }

    /// Reports whether an error breaks the connection.
    pub const fn is_reliable(self) -> bool {
        !matches!(self, Self::Unreliable)
    }
}

/// The status word of a descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status(pub u32);

impl Status {
    /// The descriptor is complete, successfully or with an error.
    pub const DONE: Self = Self(1);
    /// The descriptor is malformed.
    pub const FORMAT_ERROR: Self = Self(2);
    /// The descriptor names memory that the VI may not use.
    pub const PROTECTION_ERROR: Self = Self(4);
    /// The descriptor is longer than a transfer may be, or the message is longer than the receive.
    pub const LENGTH_ERROR: Self = Self(8);
    /// Only a part of the message arrived.
    pub const PARTIAL_ERROR: Self = Self(0x10);
    /// The descriptor was not processed, because the VI was not, or no longer, connected.
    pub const FLUSHED: Self = Self(0x20);
    /// The transport failed while the descriptor was processed.
    pub const TRANSPORT_ERROR: Self = Self(0x40);
    /// The peer denied access to its memory.
    pub const RDMA_PROT_ERROR: Self = Self(0x80);
    /// The peer's receive is missing, too short or malformed.
    pub const REMOTE_DESC_ERROR: Self = Self(0x100);
    /// All error bits.
    pub const ERRORS: Self = Self(0x1fe);
    /// The operation was a send.
    pub const OP_SEND: Self = Self(0);
    /// The operation was a receive.
    pub const OP_RECEIVE: Self = Self(1 << 16);
    /// The operation was an RDMA write of this side.
    pub const OP_WRITE: Self = Self(2 << 16);
    /// The operation was a receive, consumed by the peer's RDMA write.
    pub const OP_REMOTE_WRITE: Self = Self(3 << 16);
    /// The operation was an RDMA read.
    pub const OP_READ: Self = Self(4 << 16);
    /// The message had immediate data.
    pub const IMMEDIATE: Self = Self(0x8_0000);

    /// Returns the union of both sets of bits.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Reports whether all bits of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Reports whether any error bit is set.
    pub const fn is_error(self) -> bool {
        self.0 & Self::ERRORS.0 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::state::State;
    use super::*;

    #[test]
    fn asynchronous_errors_have_the_numbers_of_the_interface() {
        let in_order = [
            AsyncError::PostDesc,
            AsyncError::ConnLost,
            AsyncError::RecvqEmpty,
            AsyncError::ViOverrun,
            AsyncError::RdmawProt,
            AsyncError::RdmawData,
            AsyncError::RdmawAbort,
            AsyncError::RdmarProt,
            AsyncError::CompProt,
            AsyncError::RdmaTransport,
            AsyncError::Catastrophic,
        ];
        for (number, code) in in_order.into_iter().enumerate() {
            assert_eq!(code as usize, number, "{code:?}");
        }
        let resources = [Resource::Nic, Resource::Vi, Resource::Cq, Resource::Descriptor];
        assert_eq!(resources.map(|resource| resource as u32), [0, 1, 2, 3]);
    }

    #[test]
    fn status_bits_are_those_of_the_interface() {
        let table = [
            (Status::DONE, 0x1),
            (Status::FORMAT_ERROR, 0x2),
            (Status::PROTECTION_ERROR, 0x4),
            (Status::LENGTH_ERROR, 0x8),
            (Status::PARTIAL_ERROR, 0x10),
            (Status::FLUSHED, 0x20),
            (Status::TRANSPORT_ERROR, 0x40),
            (Status::RDMA_PROT_ERROR, 0x80),
            (Status::REMOTE_DESC_ERROR, 0x100),
            (Status::OP_SEND, 0),
            (Status::OP_RECEIVE, 0x1_0000),
            (Status::OP_WRITE, 0x2_0000),
            (Status::OP_REMOTE_WRITE, 0x3_0000),
            (Status::OP_READ, 0x4_0000),
            (Status::IMMEDIATE, 0x8_0000),
        ];
        for (status, bits) in table {
            assert_eq!(status.0, bits);
            assert_eq!(status.is_error(), (2..=0x100).contains(&bits), "{bits:#x}");
        }
    }

    #[test]
    fn levels_and_states_have_the_numbers_of_the_interface() {
        assert_eq!(Level::ALL.map(|level| level as u16), [1, 2, 4]);
        for number in 0..=u16::MAX {
            assert!(Level::of(number).is_none_or(|level| level as u16 == number));
        }
        let states = [State::Idle, State::Connected, State::ConnectPending, State::Error];
        assert_eq!(states.map(|state| state as u32), [0, 1, 2, 3]);
    }
}
