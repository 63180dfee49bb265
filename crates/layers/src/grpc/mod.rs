//! gRPC: unary calls by the library tonic, over HTTP/2. docs/rpc.md describes the service that is called.
//!
//! * `half`: two processes. * `group`: many processes.
//!
//! `calls` makes calls and keeps their replies, and `client` is the requester over them. `service` answers calls.
//! `engine` is the runtime of tonic. `messages` are the messages of the service.
//!
//! Tonic brings some forty crates along. So the layer is a feature of the build, and this module alone is always
//! part of it.

#[cfg(feature = "grpc")]
mod calls;
#[cfg(feature = "grpc")]
mod client;
#[cfg(feature = "grpc")]
mod engine;
#[cfg(feature = "grpc")]
mod group;
#[cfg(feature = "grpc")]
mod half;
#[cfg(feature = "grpc")]
mod messages;
#[cfg(feature = "grpc")]
mod service;

use crate::group::{Gathering, Place};
use crate::half::{Half, Role};
use crate::options::LayerOptions;
use crate::tcp;
use netdyno_measure::layer::LayerError;

/// The largest data of a fixed size, in bytes.
pub(crate) const MAX_SIZE: usize = tcp::MAX_SIZE;
/// The largest data of a size that can be set, in bytes. By default, libraries of gRPC refuse messages of more
/// than 4 MiB. The data have a few bytes of Protocol Buffers in front of them.
pub(crate) const MAX_TRANSFER: usize = (4 << 20) - 64;

/// Returns why gRPC cannot be measured here, if it cannot.
#[cfg(feature = "grpc")]
pub(crate) fn is_missing() -> Option<String> {
    crate::socket::is_missing()
}

/// Opens this process's half of the layer.
#[cfg(feature = "grpc")]
pub(crate) fn half(role: Role, options: LayerOptions) -> Result<Box<dyn Half>, LayerError> {
    Ok(Box::new(half::GrpcHalf::open(role, options)?))
}

/// Opens this process's part of the layer between many processes.
#[cfg(feature = "grpc")]
pub(crate) fn gathering(place: Place, options: LayerOptions) -> Result<Box<dyn Gathering>, LayerError> {
    Ok(Box::new(group::GrpcGathering::open(place, options)?))
}

#[cfg(not(feature = "grpc"))]
const NOT_BUILT: &str =
    "netdyno was built without grpc: build it with `cargo build --release --features grpc`";

/// Returns why gRPC cannot be measured here.
#[cfg(not(feature = "grpc"))]
pub(crate) fn is_missing() -> Option<String> {
    Some(NOT_BUILT.into())
}

/// Returns the error of a layer that was not built.
#[cfg(not(feature = "grpc"))]
pub(crate) fn half(_: Role, _: LayerOptions) -> Result<Box<dyn Half>, LayerError> {
    Err(LayerError::new(NOT_BUILT))
}

/// Returns the error of a layer that was not built.
#[cfg(not(feature = "grpc"))]
pub(crate) fn gathering(_: Place, _: LayerOptions) -> Result<Box<dyn Gathering>, LayerError> {
    Err(LayerError::new(NOT_BUILT))
}
