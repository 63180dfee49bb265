//! Opening of a layer in one process, to register memory.

use super::Layer;
use crate::plugin::extension::Extension;
use crate::plugin::memory::PluginMemory;
use crate::registrar::Opened;
use crate::vi;
use crate::vi::memory::ViMemory;
use netdyno_measure::layer::LayerError;
use netdyno_stack::vi::WireKind;
use std::net::{Ipv4Addr, SocketAddr};

/// Opens a layer to register memory with it.
///
/// # Errors
/// The layer has no memory to register, or cannot be opened.
pub fn open(layer: Layer) -> Result<Opened, LayerError> {
    match layer {
        Layer::ViShm => over_vi(WireKind::Shm),
        // The wire has no part in it.
        Layer::ViUdp | Layer::ViXdp => {
            over_vi(WireKind::Udp(vi::at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))))
        }
        Layer::Ofi(provider) => over_plugin(&Extension::ofi(provider)?),
        Layer::Ucx(transports) => over_plugin(&Extension::ucx(transports)?),
        Layer::Plugin => over_plugin(&Extension::own()?),
        _ => Err(LayerError(format!("{layer} has no memory to register"))),
    }
}

fn over_plugin(extension: &Extension) -> Result<Opened, LayerError> {
    let memory = PluginMemory::open(extension)?;
    let library = memory.library();
    Ok(Opened::new(memory, Some(library)))
}

fn over_vi(wire: WireKind) -> Result<Opened, LayerError> {
    Ok(Opened::new(ViMemory::open(wire)?, None))
}
