//! Opening of a layer in one process, to break its operations down.

use super::Layer;
use crate::parts::{PartsOptions, am, tcp, udp, vi};
use netdyno_measure::layer::LayerError;
use netdyno_measure::task::Subject;
use netdyno_stack::am::Wire;

impl Layer {
    /// Returns the largest message whose operations can be made in parts, in bytes.
    pub fn longest_in_parts(self) -> usize {
        match self {
            Self::ViShm => vi::LONGEST_OVER_SHM,
            Self::ViUdp | Self::ViXdp => vi::LONGEST_OVER_UDP,
            _ => usize::MAX,
        }
    }
}

/// Opens both ends of a layer in this process.
///
/// # Errors
/// The operations of the layer cannot be made in parts, or it cannot be opened.
pub fn open(layer: Layer, options: PartsOptions) -> Result<Box<dyn Subject>, LayerError> {
    match layer {
        Layer::AmShm => am::over_shm(options),
        Layer::AmUdp => am::over_datagrams(Wire::Udp, options),
        Layer::AmXdp => am::over_datagrams(Wire::Xdp, options).map_err(need_pairs),
        Layer::ViShm => vi::over_shm(options),
        Layer::ViUdp => vi::over_datagrams(Wire::Udp, options),
        Layer::ViXdp => vi::over_datagrams(Wire::Xdp, options).map_err(need_pairs),
        Layer::Udp => udp::open(options),
        Layer::Tcp => tcp::open(options),
        _ => Err(LayerError(format!("the operations of {layer} cannot be made in parts"))),
    }
}

/// Says what both ends of a layer over AF_XDP need in one process.
fn need_pairs(LayerError(error): LayerError) -> LayerError {
    LayerError(format!("{error}; a breakdown over AF_XDP needs four pairs of interfaces (docs/breakdown.md)"))
}
