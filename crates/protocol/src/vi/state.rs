//! The states of a VI (VIA 1.0, "VI states"), and what leads from one to another.
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

/// The state of a VI, with its number in the interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// It has no connection. Receives may be posted.
    #[default]
    Idle = 0,
    /// It has one.
    Connected = 1,
    /// It has asked for one.
    ConnectPending = 2,
    /// It had one, or was about to, and something went wrong. What is posted is flushed.
    Error = 3,
}

/// What changes the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// This side asks for a connection.
    Asked,
    /// This side accepts one.
    Accepted,
    /// The other side has agreed.
    Connected,
    /// The other side has not, or not in time.
    GaveUp,
    /// Something went wrong: an error on a reliable VI, the end of the connection by the peer or
    /// by the network.
    Fault,
    /// The program disconnects.
    Disconnected,
}

impl State {
    /// The state behind `change`. `None` where it can not happen in this state.
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

    /// The picture above, as a table: rows are states, columns changes.
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
