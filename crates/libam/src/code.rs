//! The numbers of the interface: return codes, statuses of returned messages, operation codes.

use std::ffi::c_int;
use std::fmt;

/// The reasons why a call fails: the return codes other than `AM_OK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    /// The library or the endpoint is not set up yet.
    NotInit = 1,
    /// An argument is not valid.
    BadArg = 2,
    /// The call is not possible now, or the system lacks something.
    Resource = 3,
    /// An asynchronous transfer was not sent.
    NotSent = 4,
    /// The object is in use.
    InUse = 5,
}

/// `AM_OK`.
pub const OK: c_int = 0;

/// The reasons why a message is returned to its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// `EBADTAG`: the message's tag is not that of the endpoint.
    BadTag = 3,
    /// `EBADHANDLER`: the endpoint has no such handler.
    BadHandler = 4,
    /// `EBADSEGOFF`: the offset is outside of the endpoint's segment, or it has none.
    BadSegmentOffset = 5,
    /// `EBADLENGTH`: the bytes go beyond the end of the segment.
    BadLength = 6,
    /// `EBADENDPOINT`: there is no endpoint with this name.
    BadEndpoint = 7,
    /// `EUNREACHABLE`: the endpoint cannot be reached, or is lost.
    Unreachable = 9,
}

impl Status {
    const ALL: [Self; 6] = [
        Self::BadTag,
        Self::BadHandler,
        Self::BadSegmentOffset,
        Self::BadLength,
        Self::BadEndpoint,
        Self::Unreachable,
    ];

    /// Returns the status with this number.
    pub fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|status| *status as u8 == number)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BadTag => "EBADTAG, its tag is not that of the endpoint",
            Self::BadHandler => "EBADHANDLER, the endpoint has no such handler",
            Self::BadSegmentOffset => "EBADSEGOFF, the offset is outside of the endpoint's segment",
            Self::BadLength => "EBADLENGTH, the bytes go beyond the end of the endpoint's segment",
            Self::BadEndpoint => "EBADENDPOINT, there is no such endpoint",
            Self::Unreachable => "EUNREACHABLE, the endpoint cannot be reached",
        })
    }
}

/// The three kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Category {
    /// Arguments alone.
    Short = 0,
    /// Arguments and bytes in a buffer of the receiver.
    Medium = 1,
    /// Arguments and bytes for the receiver's segment.
    Long = 2,
}

impl Category {
    /// Returns the category with this number.
    pub fn of(number: u8) -> Option<Self> {
        [Self::Short, Self::Medium, Self::Long].into_iter().find(|category| *category as u8 == number)
    }
}

/// Returns `AM_REQUEST_M` to `AM_REPLY_XFER_M`.
pub fn opcode(category: Category, is_request: bool) -> c_int {
    c_int::from(category as u8) + if is_request { 1 } else { 4 }
}

/// Returns the name of an operation code.
pub fn operation(category: Category, is_request: bool) -> &'static str {
    match (category, is_request) {
        (Category::Short, true) => "AM_REQUEST_M",
        (Category::Medium, true) => "AM_REQUEST_IM",
        (Category::Long, true) => "AM_REQUEST_XFER_M",
        (Category::Short, false) => "AM_REPLY_M",
        (Category::Medium, false) => "AM_REPLY_IM",
        (Category::Long, false) => "AM_REPLY_XFER_M",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_interface() {
        assert_eq!(
            [Code::NotInit, Code::BadArg, Code::Resource, Code::NotSent, Code::InUse].map(|code| code as i32),
            [1, 2, 3, 4, 5]
        );
        assert_eq!(Status::ALL.map(|status| status as u8), [3, 4, 5, 6, 7, 9]);
        for number in 0..=u8::MAX {
            assert_eq!(
                Status::of(number).map(|status| status as u8),
                Some(number).filter(|number| [3, 4, 5, 6, 7, 9].contains(number))
            );
        }
        let categories = [Category::Short, Category::Medium, Category::Long];
        assert_eq!(categories.map(|category| opcode(category, true)), [1, 2, 3]);
        assert_eq!(categories.map(|category| opcode(category, false)), [4, 5, 6]);
    }
}
