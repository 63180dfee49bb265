//! Why a provider could not be opened.

use netdyno_host::datagram::{SocketError, XdpError};
use netdyno_host::segment::SegmentError;
use thiserror::Error;

/// Reasons why a provider could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The system refused a request.
    #[error("the system refused to {what}: {error}")]
    System {
        /// The request.
        what: &'static str,
        /// The error of the system.
        #[source]
        error: std::io::Error,
    },
    /// The shared memory could not be created.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// The socket could not be opened.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The AF_XDP sockets could not be opened.
    #[error(transparent)]
    Xdp(#[from] XdpError),
}
