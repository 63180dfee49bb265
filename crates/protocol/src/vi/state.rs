//! The states of a VI and their transitions (VIA 1.0, "VI states").
//!
//! ```text
//!            asked                connected
//!    IDLE ----------> PENDING ----------------> CONNECTED
//!     ^ |  accepted      |                       |  |
//!     | +----------------)---------------------->+  |  fault
//!     |    gave up       |                       |  v
//!     +------------------+ <-- disconnected -----+ ERROR
//!     ^                                              |
//!     +------------------ disconnected --------------+
//! ```

/// The state of a VI. The values are those of `vipl.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// The VI has no connection. Receives may be posted.
    #[default]
    Idle = 0,
    /// The VI is connected.
    Connected = 1,
    /// The VI has requested a connection.
    ConnectPending = 2,
    /// The VI was connected or about to be, and failed. Posted descriptors are flushed.
    Error = 3,
}

/// The changes that lead from one state to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// This side requested a connection.
    Asked,
    /// This side accepted a request.
    Accepted,
    /// The other side accepted this side's request.
    Connected,
    /// The other side refused the request, or it timed out.
    GaveUp,
    /// An error broke a reliable VI, or the peer or the network ended the connection.
    Fault,
    /// The program disconnected the VI.
    Disconnected,
}

impl State {
    /// Returns the state after `change`, or `None` if it can not happen in this state.
    pub const fn after(self, change: Change) -> Option<Self> {
        match (self, change) {
            (Self::Idle, Change::Asked) => Some(Self::ConnectPending),
            (Self::Idle, Change::Accepted) | (Self::ConnectPending, Change::Connected) => {
                Some(Self::Connected)
            }
            (Self::ConnectPending, Change::GaveUp) | (_, Change::Disconnected) => Some(Self::Idle),
            (Self::ConnectPending | Self::Connected | Self::Error, Change::Fault) => Some(Self::Error),
            (Self::Idle, Change::Connected | Change::GaveUp | Change::Fault)
            | (Self::ConnectPending, Change::Asked | Change::Accepted)
            | (
                Self::Connected | Self::Error,
                Change::Asked | Change::Accepted | Change::Connected | Change::GaveUp,
            ) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the diagram above as a table: one row a state, one column a change.
    #[test]
    fn the_table_of_states() {
        use State::{ConnectPending as Pending, Connected, Error, Idle};
        let changes = [
            Change::Asked,
            Change::Accepted,
            Change::Connected,
            Change::GaveUp,
            Change::Fault,
            Change::Disconnected,
        ];
        let table = [
            (Idle, [Some(Pending), Some(Connected), None, None, None, Some(Idle)]),
            (Pending, [None, None, Some(Connected), Some(Idle), Some(Error), Some(Idle)]),
            (Connected, [None, None, None, None, Some(Error), Some(Idle)]),
            (Error, [None, None, None, None, Some(Error), Some(Idle)]),
        ];
        for (state, row) in table {
            assert_eq!(changes.map(|change| state.after(change)), row, "{state:?}");
        }
    }
}
