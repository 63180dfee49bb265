//! A trial of a layer: only the library behind a layer knows what it can do on this host.

use super::Layer;
use crate::plugin::extension::Extension;
use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;

/// Opens a layer in this process for processes that wait in this way, and closes it. Layers without a library can
/// always be opened, and MPI only by its launcher.
///
/// # Errors
/// The layer cannot be opened here, or cannot wait in this way.
pub fn open(layer: Layer, wait: Wait) -> Result<(), LayerError> {
    match layer {
        Layer::Ofi(provider) => Extension::ofi(provider)?.try_to_open(wait),
        Layer::Ucx(transports) => Extension::ucx(transports)?.try_to_open(wait),
        Layer::Plugin => Extension::own()?.try_to_open(wait),
        _ => Ok(()),
    }
}
