//! The messages between a client and a served host. The connection of a granted [`Ask::Reserve`] reserves the
//! host for its client as long as it is open. The connection of an [`Ask::Launch`] becomes the control
//! connection of a fresh worker.

use netdyno_measure::record::Environment;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Default port of a served host: LOGP on the keys of a telephone.
pub const PORT: u16 = 5647;

/// A request of a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Ask {
    /// Reserve the host for one measurement.
    Reserve {
        /// Processor of the replier, if the user chose one.
        cpu: Option<usize>,
    },
    /// Start a worker.
    Launch {
        /// The measurement of the worker.
        session: u64,
    },
}

/// The reply to [`Ask::Reserve`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Reply {
    /// The host is reserved for the client.
    Reserved(Box<Reserved>),
    /// The host is reserved for another client, or cannot do what is asked. The text is one line for the
    /// user.
    Refused(String),
}

/// The reservation of a host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reserved {
    /// Identifier of the measurement, random so that others cannot guess it.
    pub session: u64,
    /// Address of the host, as the host sees it.
    pub ip: IpAddr,
    /// Processor of the replier.
    pub cpu: usize,
    /// Description of the host.
    pub environment: Environment,
}
