//! Opening of a layer between many processes.

use super::Layer;
use crate::am::group::AmGathering;
use crate::group::{Gathering, Place};
use crate::grpc;
use crate::oncrpc::group::{RpcTcpGathering, RpcUdpGathering};
use crate::options::LayerOptions;
use crate::plugin::extension::Extension;
use crate::plugin::group::PluginGathering;
use crate::tcp::group::TcpGathering;
use crate::udp::group::UdpGathering;
use crate::vi;
use crate::vi::group::ViGathering;
use crate::xdp;
use netdyno_measure::layer::LayerError;
use netdyno_stack::am::Wire;
use netdyno_stack::vi::WireKind;

/// Opens this process's part of a layer between `place.procs` processes, of which there are at least 2.
///
/// # Errors
/// The layer cannot be opened.
pub fn open(layer: Layer, place: Place, options: LayerOptions) -> Result<Box<dyn Gathering>, LayerError> {
    let over_plugin =
        |extension: &Extension, options: LayerOptions| -> Result<Box<dyn Gathering>, LayerError> {
            Ok(Box::new(PluginGathering::open(extension, place, options)?))
        };
    Ok(match layer {
        Layer::AmShm => Box::new(AmGathering::open(Wire::Shm, place, options)?),
        Layer::AmUdp => Box::new(AmGathering::open(Wire::Udp, place, options)?),
        Layer::AmXdp => Box::new(AmGathering::open(Wire::Xdp, place, xdp::at_an_interface(options))?),
        Layer::ViShm => Box::new(ViGathering::open(WireKind::Shm, place, options)?),
        Layer::ViUdp => Box::new(ViGathering::open(vi::over_udp(&options), place, options)?),
        Layer::ViXdp => Box::new(ViGathering::open(vi::over_xdp(&options), place, options)?),
        Layer::Udp => Box::new(UdpGathering::open(place, options)?),
        Layer::Tcp => Box::new(TcpGathering::open(place, options)?),
        Layer::OncRpcUdp => Box::new(RpcUdpGathering::open(place, options)?),
        Layer::OncRpcTcp => Box::new(RpcTcpGathering::open(place, options)?),
        Layer::Grpc => grpc::gathering(place, options)?,
        Layer::Mpi => over_plugin(&Extension::mpi()?, options)?,
        Layer::Ofi(provider) => over_plugin(&Extension::ofi(provider)?, options)?,
        Layer::Ucx(transports) => over_plugin(&Extension::ucx(transports)?, options)?,
        Layer::Plugin => over_plugin(&Extension::own()?, options)?,
        Layer::GlobalShm | Layer::GlobalUdp | Layer::GlobalXdp => {
            return Err(LayerError(format!("{layer} has one-sided operations alone")));
        }
        Layer::Sim => return Err(LayerError::new("a simulated layer has no processes")),
    })
}
