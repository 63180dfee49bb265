//! The connection requests of a provider: those that it waits for, has received, and has sent.

use super::attributes::Conflict;
use super::handles::ViHandle;
use super::settled::Settled;
use super::table::{Table, handle};
use crate::frame::vi_signal::{Address, Request, Signal, Why};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

handle! {
    /// A handle for a program's wait for one connection request.
    WaitHandle
}

handle! {
    /// A handle for a request that a wait received, to be accepted or rejected.
    ConnHandle
}

/// The reasons why a connection is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// The VI does not exist.
    NoSuchVi,
    /// The request or the wait does not exist.
    NoSuchRequest,
    /// An address is too long.
    NoAddress,
    /// Another VI already asks the same peer with the same pair of addresses.
    Taken,
    /// This host or the other has no room for another wait or request.
    TooMany,
    /// The VI is in a state in which it can not connect.
    State,
    /// This side's time limit has passed, or the other side has withdrawn its request.
    Timeout,
    /// The other side rejected the request.
    Rejected,
    /// The other side has no wait for this address.
    NoMatch,
    /// A process of another user on this host owns the name.
    Foreign,
    /// The attributes of the VIs conflict.
    Conflict(Conflict),
}

impl From<Why> for ConnectError {
    fn from(why: Why) -> Self {
        match why {
            Why::NoMatch => Self::NoMatch,
            Why::Rejected => Self::Rejected,
            Why::NoRoom => Self::TooMany,
            Why::Conflict(conflict) => Self::Conflict(conflict),
        }
    }
}

/// A connection request of a VI, not yet answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asking {
    pub(super) request: Request,
    /// Time at which the request times out; `None`: never.
    pub(super) until_ns: Option<u64>,
    pub(super) again_ns: u64,
    /// The number of the request by which the peer asks for this VI, once one has come.
    pub(super) met: Option<u64>,
}

#[derive(Clone, Debug)]
pub(super) struct Wait {
    pub(super) local: Address,
    pub(super) until_ns: Option<u64>,
    pub(super) found: Option<ConnHandle>,
}

#[derive(Clone, Debug)]
pub(super) struct Incoming {
    pub(super) request: Request,
    pub(super) is_given_up: bool,
}

/// The waits, the received requests and the signals to be sent.
#[derive(Clone, Debug)]
pub(super) struct Meeting {
    pub(super) waits: Table<WaitHandle, Wait>,
    pub(super) incoming: Table<ConnHandle, Incoming>,
    /// VIs with a pending request.
    pub(super) asking: Vec<ViHandle>,
    pub(super) settled: Settled,
    pub(super) signals: VecDeque<(Vec<u8>, Signal)>,
    pub(super) answers: u64,
}

impl Meeting {
    pub fn new(most: u32) -> Self {
        Self {
            waits: Table::new(most),
            incoming: Table::new(most),
            asking: Vec::new(),
            settled: Settled::default(),
            signals: VecDeque::new(),
            answers: 0,
        }
    }
}
