//! Loads layers written in C: shared libraries that implement `plugins/layer.h`.
//!
//! * `abi`: the structures of the header in Rust.
//! * `absent`: stubs for the functions that a layer may lack.
//! * [`plugin`]: loads a layer, and checks it before any of its functions is called.
//! * [`channel`]: an open layer, with its messages and requests.
//! * `channel/regions`: registered memory, put and get.
//! * `channel/ground`: memory that is registered only to measure the cost of registration.
//! * `row`: the message buffers of one direction, and their state.
//! * `memory`: the memory of all buffers.
//! * [`source`], [`site`]: the layers that come with netdyno, built by the compiler of this host.
//!
//! A layer is code of this process and is trusted like a linked library. The checks only detect mistakes:
//! another version of the interface, a missing function, or an invalid return value.

mod abi;
mod absent;
pub mod channel;
mod memory;
pub mod plugin;
mod row;
pub mod site;
pub mod source;

/// Reports why a layer could not be loaded or failed later. The text is one line for the user.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PluginError(pub(crate) String);

impl PluginError {
    pub(crate) fn new(text: impl std::fmt::Display) -> Self {
        Self(one_line(&text.to_string()))
    }
}

/// Joins the lines of a text into one.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
