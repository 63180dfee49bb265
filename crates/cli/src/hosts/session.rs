//! What a client and a served host say to each other once they have come together. A
//! connection on which [`Ask::Reserve`] was granted keeps the host for its client for as
//! long as it is open; one on which [`Ask::Launch`] was said becomes the control connection
//! of a fresh worker.

use netdyno_measure::record::Environment;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Where a host is served: LOGP on the keys of a telephone.
pub const PORT: u16 = 5647;

/// What a client asks for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Ask {
    /// The host, for one measurement.
    Reserve {
        /// Where the replier is to run, if that was said.
        cpu: Option<usize>,
    },
    /// A worker.
    Launch {
        /// The measurement that it belongs to.
        session: u64,
    },
}

/// What is said to [`Ask::Reserve`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Reply {
    /// The host is the client's.
    Reserved(Box<Reserved>),
    /// It is another client's, or cannot do what is asked. A line for the user.
    Refused(String),
}

/// A host that is taken for a measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reserved {
    /// Names the measurement, unguessably.
    pub session: u64,
    /// Where the host has been reached, as it sees it.
    pub ip: IpAddr,
    /// Where the replier runs.
    pub cpu: usize,
    /// The host.
    pub environment: Environment,
}
