//! Options that only some layers are able to follow.

use crate::terminal::fault::Fault;
use netdyno_layers::catalogue::{Layer, able};

/// Checks that all layers are able to do something. The error says that a layer has no `lacking`, and after `advice`
/// it names the layers that are able.
///
/// # Errors
/// A layer is not able.
pub fn all_able(
    over: &[Layer],
    is_able: fn(Layer) -> bool,
    lacking: &str,
    advice: &str,
) -> Result<(), Fault> {
    match over.iter().find(|layer| !is_able(**layer)) {
        None => Ok(()),
        Some(layer) => Err(Fault::BadInput(format!("{layer} has no {lacking}: {advice} {}", able(is_able)))),
    }
}
