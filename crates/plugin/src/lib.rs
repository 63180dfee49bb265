//! Layers written in C: a shared library that fits `plugins/layer.h`.
//!
//! * `abi`: the header's structures, as Rust sees them. * `absent`: what a layer may lack.
//! * [`plugin`]: loading a layer, and checking it before anything of it is called.
//! * [`channel`]: an open layer: messages, requests; `channel/regions`: registered memory, put and
//!   get; `channel/ground`: memory that is registered to see what that costs. * `row`: the buffers of what is under way. * `memory`: what they lie in.
//! * [`source`], [`site`]: the layers that come with netdyno, built by the compiler at hand.
//!
//! A layer is code of this process: it is trusted like a library that is linked. What is checked
//! is what goes wrong by mistake: another version, a function that is missing, an answer that
//! makes no sense.

mod abi;
mod absent;
pub mod channel;
mod memory;
pub mod plugin;
mod row;
pub mod site;
pub mod source;

/// Why a layer could not be loaded, or could not go on. One line, for the user.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PluginError(pub(crate) String);

impl PluginError {
    pub(crate) fn new(text: impl std::fmt::Display) -> Self {
        Self(one_line(&text.to_string()))
    }
}

/// What others say in several lines, in one.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
