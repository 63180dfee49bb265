//! A layer between two processes: each process opens its half, hands an address of opaque bytes to the
//! other process, and connects to the address that it got, as requester or as replier.

use crate::socket::write_server_of_others;
use netdyno_measure::layer::{LayerError, Messenger};
use netdyno_measure::task::Subject;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

/// Returns the error of a layer that has no one-sided operations.
pub(crate) fn no_one_sided() -> LayerError {
    LayerError::new("the layer has no one-sided operations")
}

/// The address to hand to a replier whose clients are not known. Only layers whose server takes calls from any
/// client accept it.
pub const ANY_CLIENT: &[u8] = &[];

/// Returns the bytes that stand for a server at this address, for layers that connect to servers of others.
pub fn server_at(address: SocketAddr) -> Vec<u8> {
    write_server_of_others(address)
}

/// Which side of a connection a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The process issues requests and measures.
    Requester,
    /// The process answers requests.
    Replier,
}

/// The replier's side of a layer.
pub trait Replier {
    /// Answers requests until `over` is set.
    ///
    /// # Errors
    /// The layer failed.
    fn serve(&mut self, over: &AtomicBool) -> Result<(), LayerError>;
}

/// One process's half of a layer, not yet connected.
pub trait Half {
    /// Returns the bytes to hand to the other half.
    fn address(&self) -> Vec<u8>;

    /// Returns what is behind the layer, if that differs from machine to machine: a library with its version, or an
    /// interface with what its driver can do.
    fn library(&self) -> Option<&str> {
        None
    }

    /// Connects as the side that measures.
    ///
    /// # Errors
    /// The peer's address is malformed, or the connection failed.
    fn requester(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Subject>, LayerError>;

    /// Connects as the side that answers.
    ///
    /// # Errors
    /// The peer's address is malformed, or the connection failed.
    fn replier(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Replier>, LayerError>;

    /// Connects as the side that measures, for a caller with a message pattern of its own.
    ///
    /// # Errors
    /// The half was not opened for messages, or the connection failed.
    fn messenger(self: Box<Self>, _peer: &[u8]) -> Result<Box<dyn Messenger>, LayerError> {
        Err(LayerError::new("the layer was not opened for messages"))
    }
}
