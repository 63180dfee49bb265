//! Opening of a layer between two processes.

use super::Layer;
use crate::am::messages::AmMessagesHalf;
use crate::am::one_sided::OneSidedAmHalf;
use crate::am::requests::AmHalf;
use crate::am::sized::SizedAmHalf;
use crate::global::GlobalHalf;
use crate::grpc;
use crate::half::{Half, Role};
use crate::oncrpc::half::{RpcTcpHalf, RpcUdpHalf};
use crate::options::LayerOptions;
use crate::plugin::extension::Extension;
use crate::plugin::half::PluginHalf;
use crate::tcp::half::TcpHalf;
use crate::udp::half::UdpHalf;
use crate::vi;
use crate::vi::half::ViHalf;
use crate::xdp;
use netdyno_measure::layer::{Face, LayerError};
use netdyno_measure::order::Order;
use netdyno_measure::overlap::data::ProgressBy;
use netdyno_stack::am::Wire;
use netdyno_stack::vi::WireKind;

/// Opens this process's half of a layer between two processes.
///
/// # Errors
/// The layer has no messages of the options' size, cannot wait as the options say, or cannot be opened.
pub fn open(layer: Layer, role: Role, options: LayerOptions) -> Result<Box<dyn Half>, LayerError> {
    check(layer, &options)?;
    Ok(match layer {
        Layer::AmShm => over_am(Wire::Shm, options)?,
        Layer::AmUdp => over_am(Wire::Udp, options)?,
        Layer::AmXdp => over_am(Wire::Xdp, xdp::at_an_interface(options))?,
        Layer::ViShm => Box::new(ViHalf::open(WireKind::Shm, role, options)?),
        Layer::ViUdp => Box::new(ViHalf::open(vi::over_udp(&options), role, options)?),
        Layer::ViXdp => Box::new(ViHalf::open(vi::over_xdp(&options), role, options)?),
        Layer::GlobalShm => Box::new(GlobalHalf::open(Wire::Shm, role, options)?),
        Layer::GlobalUdp => Box::new(GlobalHalf::open(Wire::Udp, role, options)?),
        Layer::GlobalXdp => Box::new(GlobalHalf::open(Wire::Xdp, role, xdp::at_an_interface(options))?),
        Layer::Udp => Box::new(UdpHalf::open(options)?),
        Layer::Tcp => Box::new(TcpHalf::open(role, options)?),
        Layer::OncRpcUdp => Box::new(RpcUdpHalf::open(options)?),
        Layer::OncRpcTcp => Box::new(RpcTcpHalf::open(role, options)?),
        Layer::Grpc => grpc::half(role, options)?,
        Layer::Mpi => Box::new(PluginHalf::open(&Extension::mpi()?, role, options)?),
        Layer::Ofi(provider) => Box::new(PluginHalf::open(&Extension::ofi(provider)?, role, options)?),
        Layer::Ucx(transports) => Box::new(PluginHalf::open(&Extension::ucx(transports)?, role, options)?),
        Layer::Plugin => Box::new(PluginHalf::open(&Extension::own()?, role, options)?),
        Layer::Sim => return Err(LayerError::new("a simulated layer has no halves")),
    })
}

fn over_am(way: Wire, options: LayerOptions) -> Result<Box<dyn Half>, LayerError> {
    Ok(match options.face {
        Face::Requests => Box::new(AmHalf::open(way, options)?),
        Face::Sized => Box::new(SizedAmHalf::open(way, options)?),
        Face::Messages => Box::new(AmMessagesHalf::open(way, options)?),
        Face::OneSided => Box::new(OneSidedAmHalf::open(way, options)?),
    })
}

/// Checks the options against what the layer can do.
fn check(layer: Layer, options: &LayerOptions) -> Result<(), LayerError> {
    let &LayerOptions { size_bytes, face, wait, progress_by, .. } = options;
    if face == Face::Messages && !layer.has_messages() {
        return Err(LayerError(format!("{layer} has no messages that can be posted")));
    }
    if progress_by == ProgressBy::Thread && !layer.has_progress_thread() {
        return Err(LayerError(format!("{layer} has no progress thread")));
    }
    let (least, most) = match face {
        Face::Requests if options.dials.are_none() => (1, layer.max_size()),
        Face::Requests => (1, layer.max_dialled_size()),
        Face::Sized | Face::OneSided => (1, layer.max_transfer()),
        Face::Messages => (Order::LEN, layer.max_message()),
    };
    if !(least..=most).contains(&size_bytes) {
        return Err(LayerError(format!(
            "{layer} has no messages of {size_bytes} bytes: use a size of {least} to {most}"
        )));
    }
    if layer != Layer::Sim && !layer.can_wait(wait) {
        return Err(LayerError(format!("{layer} cannot {wait}")));
    }
    Ok(())
}
