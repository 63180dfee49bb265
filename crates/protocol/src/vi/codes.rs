//! The numbers of the VIPL interface (VIA 1.0, `vipl.h`) and the errors that they stand for.
//!
//! Each kind of operation has its own small error enum. Only this module maps these errors to the
//! numbers that a C program sees.

use super::attributes::{Conflict, Unsupported};
use super::completion::CqError;
use super::connecting::ConnectError;
use super::memory::MemoryError;
use super::nic::ResourceError;
use super::posting::PostError;

/// The return value of a VIPL function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ReturnCode {
    /// The call succeeded.
    Success = 0,
    /// There is no completion, or no connection event, yet.
    NotDone = 1,
    /// A handle, an address or a number is invalid.
    InvalidParameter = 2,
    /// There is no room, or the resource to be destroyed is in use.
    ErrorResource = 3,
    /// The time limit has passed.
    Timeout = 4,
    /// The other side rejected the connection.
    Reject = 5,
    /// The reliability levels differ, or the level is not supported.
    InvalidReliabilityLevel = 6,
    /// The longest transfers differ, or such a long transfer is not supported.
    InvalidMtu = 7,
    /// The qualities of service differ, or this one is not supported.
    InvalidQos = 8,
    /// The protection tag does not exist.
    InvalidPtag = 9,
    /// RDMA reads are requested where they are not supported.
    InvalidRdmaRead = 10,
    /// The descriptor completed with an error.
    DescriptorError = 11,
    /// The VI is in a state in which the call is not allowed.
    InvalidState = 12,
    /// The name service did not answer.
    ErrorNameService = 13,
    /// The other side has no wait for this connection.
    NoMatch = 14,
    /// The other host can not be reached (Giganet).
    NotReachable = 15,
    /// This provider does not support the call (Giganet).
    ErrorNotSupported = 16,
}

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

impl From<Conflict> for ReturnCode {
    fn from(conflict: Conflict) -> Self {
        match conflict {
            Conflict::Level => Self::InvalidReliabilityLevel,
            Conflict::Transfer => Self::InvalidMtu,
            Conflict::Qos => Self::InvalidQos,
            Conflict::RdmaRead => Self::InvalidRdmaRead,
        }
    }
}

impl From<Unsupported> for ReturnCode {
    fn from(unsupported: Unsupported) -> Self {
        match unsupported {
            Unsupported::Level => Self::InvalidReliabilityLevel,
            Unsupported::Transfer => Self::InvalidMtu,
            Unsupported::Qos => Self::InvalidQos,
            Unsupported::RdmaRead => Self::InvalidRdmaRead,
        }
    }
}

impl From<MemoryError> for ReturnCode {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::NoSuchTag => Self::InvalidPtag,
            MemoryError::ReadNotSupported => Self::InvalidRdmaRead,
            MemoryError::NoSuchRegion | MemoryError::NoRange => Self::InvalidParameter,
            MemoryError::TooMuch | MemoryError::TagInUse => Self::ErrorResource,
        }
    }
}

impl From<CqError> for ReturnCode {
    fn from(error: CqError) -> Self {
        match error {
            CqError::NoSuchQueue | CqError::NoSuchSize => Self::InvalidParameter,
            CqError::TooMany | CqError::InUse | CqError::TooSmall => Self::ErrorResource,
        }
    }
}

impl From<ResourceError> for ReturnCode {
    fn from(error: ResourceError) -> Self {
        match error {
            ResourceError::NoSuchVi | ResourceError::NoSuchQueue => Self::InvalidParameter,
            ResourceError::NoSuchTag => Self::InvalidPtag,
            ResourceError::TooMany => Self::ErrorResource,
            ResourceError::State => Self::InvalidState,
            ResourceError::Unsupported(what) => what.into(),
        }
    }
}

impl From<PostError> for ReturnCode {
    fn from(error: PostError) -> Self {
        match error {
            PostError::NoSuchVi | PostError::Misaligned | PostError::NotRegistered => Self::InvalidParameter,
            PostError::Full => Self::ErrorResource,
        }
    }
}

impl From<ConnectError> for ReturnCode {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::NoSuchVi | ConnectError::NoSuchRequest | ConnectError::NoAddress => {
                Self::InvalidParameter
            }
            ConnectError::Taken | ConnectError::TooMany | ConnectError::Foreign => Self::ErrorResource,
            ConnectError::State => Self::InvalidState,
            ConnectError::Timeout => Self::Timeout,
            ConnectError::Rejected => Self::Reject,
            ConnectError::NoMatch => Self::NoMatch,
            ConnectError::Conflict(conflict) => conflict.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::state::State;
    use super::*;

    #[test]
    fn return_codes_have_the_numbers_of_the_interface() {
        let in_order = [
            ReturnCode::Success,
            ReturnCode::NotDone,
            ReturnCode::InvalidParameter,
            ReturnCode::ErrorResource,
            ReturnCode::Timeout,
            ReturnCode::Reject,
            ReturnCode::InvalidReliabilityLevel,
            ReturnCode::InvalidMtu,
            ReturnCode::InvalidQos,
            ReturnCode::InvalidPtag,
            ReturnCode::InvalidRdmaRead,
            ReturnCode::DescriptorError,
            ReturnCode::InvalidState,
            ReturnCode::ErrorNameService,
            ReturnCode::NoMatch,
            ReturnCode::NotReachable,
            ReturnCode::ErrorNotSupported,
        ];
        for (number, code) in in_order.into_iter().enumerate() {
            assert_eq!(code as usize, number, "{code:?}");
        }
    }

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

    #[test]
    fn every_error_has_its_code() {
        let table: [(ReturnCode, u32); 33] = [
            (Conflict::Level.into(), 6),
            (Conflict::Transfer.into(), 7),
            (Conflict::Qos.into(), 8),
            (Conflict::RdmaRead.into(), 10),
            (Unsupported::Level.into(), 6),
            (Unsupported::Transfer.into(), 7),
            (Unsupported::Qos.into(), 8),
            (Unsupported::RdmaRead.into(), 10),
            (MemoryError::NoSuchTag.into(), 9),
            (MemoryError::NoSuchRegion.into(), 2),
            (MemoryError::NoRange.into(), 2),
            (MemoryError::TooMuch.into(), 3),
            (MemoryError::TagInUse.into(), 3),
            (MemoryError::ReadNotSupported.into(), 10),
            (CqError::NoSuchQueue.into(), 2),
            (CqError::NoSuchSize.into(), 2),
            (CqError::TooMany.into(), 3),
            (CqError::InUse.into(), 3),
            (CqError::TooSmall.into(), 3),
            (ResourceError::NoSuchVi.into(), 2),
            (ResourceError::NoSuchTag.into(), 9),
            (ResourceError::State.into(), 12),
            (ResourceError::Unsupported(Unsupported::Transfer).into(), 7),
            (PostError::Misaligned.into(), 2),
            (PostError::NotRegistered.into(), 2),
            (PostError::Full.into(), 3),
            (ConnectError::NoSuchRequest.into(), 2),
            (ConnectError::State.into(), 12),
            (ConnectError::Timeout.into(), 4),
            (ConnectError::Rejected.into(), 5),
            (ConnectError::NoMatch.into(), 14),
            (ConnectError::Foreign.into(), 3),
            (ConnectError::Conflict(Conflict::Transfer).into(), 7),
        ];
        for (code, number) in table {
            assert_eq!(code as u32, number, "{code:?}");
        }
    }
}
