//! The return values of VIPL functions (VIA 1.0, `vipl.h`) and the errors that they stand for.
//!
//! Each kind of operation has its own small error enum. Only this module maps these errors to the
//! numbers that a C program sees.

use super::attributes::{Conflict, Unsupported};
use super::completion::CqError;
use super::connections::ConnectError;
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
