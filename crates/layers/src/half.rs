//! How two processes come to share a layer: each opens its half, hands an address of
//! opaque bytes to the other, and turns into a requester or a replier with the address
//! that it got.

use crate::am::AmHalf;
use crate::catalogue::Layer;
use crate::messages::am::MessagesHalf;
use crate::plugin::{Extension, PluginHalf};
use crate::sized::am::SizedHalf;
use crate::tcp::TcpHalf;
use crate::udp::UdpHalf;
use crate::vi::{self, ViHalf};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::{Face, LayerError, Messenger};
use netdyno_measure::order::Order;
use netdyno_measure::task::Subject;
use netdyno_protocol::dial::profile::Profile;
use netdyno_protocol::dial::terms::Dials;
use netdyno_protocol::faults::Faults;
use netdyno_stack::am::Wire;
use netdyno_stack::vi::WireKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Patience with a peer that does not answer. A link may be down for 3 s, and TCP then tries
/// again after up to twice that time.
pub const PEER_TIMEOUT: Duration = Duration::from_secs(10);

/// How a layer is to be measured.
#[derive(Clone, Debug)]
pub struct LayerOptions {
    /// Bytes of user data in a message; the most of them where messages differ.
    pub size_bytes: usize,
    /// What is to be shared of the layer.
    pub face: Face,
    /// What to do while nothing arrives.
    pub wait: Wait,
    /// What goes wrong with what is sent, on purpose, where the layer takes faults.
    pub faults: Faults,
    /// What the link is made to be like, on purpose, where the layer has dials.
    pub dials: DialOptions,
    /// The seed of what is random.
    pub seed: u64,
    /// The socket of a layer that has one: an address of this host, and a port, 0 for any.
    pub bind: SocketAddr,
}

/// How a link is dialled.
#[derive(Clone, Debug, Default)]
pub struct DialOptions {
    /// The turns of which one is in force at a time.
    pub turns: Vec<Dials>,
    /// The file, and the byte of it, where a word says which turn that is; without it, the first.
    pub word: Option<(PathBuf, usize)>,
    /// How the dials change with time.
    pub profile: Option<Profile>,
}

impl DialOptions {
    /// Whether the link is left as it is.
    pub fn are_none(&self) -> bool {
        self.turns.iter().all(Dials::are_none) && self.profile.is_none()
    }
}

/// Which side a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It issues requests and measures.
    Requester,
    /// It answers them.
    Replier,
}

/// The replier's side of a layer.
pub trait Replier {
    /// Answers requests until it is over.
    fn serve(&mut self, over: &AtomicBool) -> Result<(), LayerError>;
}

/// One process's half of a layer, not yet connected.
pub trait Half {
    /// The bytes to hand to the other half.
    fn address(&self) -> Vec<u8>;

    /// Which library of which version is behind the layer, where one is that is not netdyno's.
    fn library(&self) -> Option<&str> {
        None
    }

    /// Connects as the side that measures.
    fn requester(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Subject>, LayerError>;

    /// Connects as the side that answers.
    fn replier(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Replier>, LayerError>;

    /// Connects as the side that measures, for a pattern of the caller's own over messages.
    fn messenger(self: Box<Self>, _peer: &[u8]) -> Result<Box<dyn Messenger>, LayerError> {
        Err(LayerError::new("the layer was not opened for messages"))
    }
}

/// Opens this process's half of a layer between processes.
pub fn open(layer: Layer, role: Role, options: LayerOptions) -> Result<Box<dyn Half>, LayerError> {
    check(layer, &options)?;
    let over_am = |way, options: LayerOptions| -> Result<Box<dyn Half>, LayerError> {
        Ok(match options.face {
            Face::Requests => Box::new(AmHalf::open(way, options)?),
            Face::Sized => Box::new(SizedHalf::open(way, options)?),
            Face::Messages => Box::new(MessagesHalf::open(way, options)?),
        })
    };
    Ok(match layer {
        Layer::AmShm => over_am(Wire::Shm, options)?,
        Layer::AmUdp => over_am(Wire::Udp, options)?,
        Layer::ViShm => Box::new(ViHalf::open(WireKind::Shm, role, options)?),
        Layer::ViUdp => Box::new(ViHalf::open(vi::over_udp(&options), role, options)?),
        Layer::Udp => Box::new(UdpHalf::open(options)?),
        Layer::Tcp => Box::new(TcpHalf::open(role, options)?),
        Layer::Mpi => Box::new(PluginHalf::open(&Extension::mpi()?, role, options)?),
        Layer::Ofi(provider) => Box::new(PluginHalf::open(&Extension::ofi(provider)?, role, options)?),
        Layer::Ucx(transports) => Box::new(PluginHalf::open(&Extension::ucx(transports)?, role, options)?),
        Layer::Plugin => Box::new(PluginHalf::open(&Extension::own()?, role, options)?),
        Layer::Sim => return Err(LayerError::new("a simulated layer has no halves")),
    })
}

/// Against what the layer says it can.
fn check(layer: Layer, options: &LayerOptions) -> Result<(), LayerError> {
    let &LayerOptions { size_bytes, face, wait, .. } = options;
    let (least, most) = match face {
        Face::Requests if options.dials.are_none() => (1, layer.max_size()),
        Face::Requests => (1, layer.max_dialled_size()),
        Face::Sized => (1, layer.max_transfer()),
        Face::Messages => (Order::LEN, layer.max_message()),
    };
    if !(least..=most).contains(&size_bytes) {
        return Err(LayerError(format!(
            "{layer} has no messages of {size_bytes} bytes: use a size of {least} to {most}"
        )));
    }
    if layer != Layer::Sim && !layer.waits().contains(&wait) {
        return Err(LayerError(format!("{layer} cannot {wait}")));
    }
    Ok(())
}
