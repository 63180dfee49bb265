//! Layers written in C, MPI first: `netdyno_plugin` behind the faces of `netdyno_measure`.
//!
//! * `memory`: one process that has its layer know memory.
//! * `lanes`: receives that are posted in advance, sends in turn. * `wire`: two processes.
//! * `links`: many. * `requests`: both, over requests of the layer's own. * `messages`: two that
//!   exchange messages.
//!
//! Receives are posted before what they receive is sent, as programs do that know what is coming;
//! each is posted again when its message is taken, which belongs to the overhead of receiving.
//! A send is completed when its slot is needed again, which belongs to that of sending.

pub mod bootstrap;
mod lanes;
mod links;
pub(crate) mod memory;
mod messages;
mod requests;
mod wire;

use crate::half::{Half, LayerOptions, Replier, Role};
use crate::messages::support::Support;
use crate::messages::{DEPTH, RealMessenger};
use crate::parameter::Parameter;
use crate::real::{RealReplier, RealRequester};
pub use links::PluginGathering;
use messages::Ends;
use netdyno_host::wait::Wait;
use netdyno_measure::layer::{Face, LayerError, Messenger};
use netdyno_measure::task::{AnySize, Messages, Subject};
use netdyno_plugin::channel::{Channel, Opening, Place, Uses};
use netdyno_plugin::plugin::Plugin;
use netdyno_plugin::site::{build, find};
use netdyno_plugin::source::Source;
use requests::OwnWire;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use wire::PluginWire;

/// The largest message of a fixed size.
pub const MAX_SIZE: usize = 1 << 20;
/// Names the built layer `mpi`; without it, it is built.
pub const MPI_PLUGIN: &str = "NETDYNO_PLUGIN_MPI";
/// Names the level of thread support that MPI is asked for.
pub const MPI_THREAD: &str = "NETDYNO_MPI_THREAD";
/// Name the built layers `ofi` and `ucx`; without them, they are built.
pub const OFI_PLUGIN: &str = "NETDYNO_PLUGIN_OFI";
/// The same of `ucx`.
pub const UCX_PLUGIN: &str = "NETDYNO_PLUGIN_UCX";
/// Names the file of a user's own layer.
pub const OWN_PLUGIN: &str = "NETDYNO_PLUGIN";
/// Its settings, name=value, with commas between them.
pub const OWN_SETTINGS: &str = "NETDYNO_PLUGIN_SETTINGS";
/// In an address, before what the layer says: the rank.
const RANK_LEN: usize = 4;

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// A layer in C, and how it is set up.
#[derive(Clone, Debug)]
pub struct Extension {
    /// The built layer.
    pub file: PathBuf,
    /// `name=value`, as it knows them.
    pub settings: Vec<String>,
}

impl Extension {
    /// MPI as this process's environment says; built first, where it does not name what is built.
    pub fn mpi() -> Result<Self, LayerError> {
        let file = Self::file(MPI_PLUGIN, &Source::mpi())?;
        let thread = variable(MPI_THREAD).map(|level| format!("thread={}", level.to_string_lossy()));
        Ok(Self { file, settings: thread.into_iter().collect() })
    }

    /// libfabric by a provider.
    pub fn ofi(provider: Parameter) -> Result<Self, LayerError> {
        let file = Self::file(OFI_PLUGIN, &Source::ofi())?;
        Ok(Self { file, settings: vec![format!("provider={provider}")] })
    }

    /// UCX over transports, with + between them.
    pub fn ucx(transports: Parameter) -> Result<Self, LayerError> {
        let file = Self::file(UCX_PLUGIN, &Source::ucx())?;
        Ok(Self { file, settings: vec![format!("transports={transports}")] })
    }

    /// The file that the variable names; built first, where it names none.
    fn file(name: &str, source: &Source) -> Result<PathBuf, LayerError> {
        match variable(name) {
            Some(file) => Ok(file.into()),
            None => build(source, None).map_err(LayerError::new),
        }
    }

    /// The user's own layer, as this process's environment says.
    pub fn own() -> Result<Self, LayerError> {
        let file = variable(OWN_PLUGIN).map(PathBuf::from).ok_or_else(|| {
            LayerError(format!("{OWN_PLUGIN} names no built layer: `netdyno plugin build FILE.c` builds one"))
        })?;
        let settings = variable(OWN_SETTINGS).unwrap_or_default().to_string_lossy().into_owned();
        let settings = settings.split(',').filter(|setting| !setting.is_empty()).map(str::to_owned);
        Ok(Self { file, settings: settings.collect() })
    }

    /// Opens it. `place` is for a layer that has no launcher to say who is who.
    fn open(&self, room: Room, place: Place, uses: Uses, wait: Wait) -> Result<Channel, LayerError> {
        let Room { slots, largest, memory } = room;
        let plugin = Plugin::load(&self.file).map_err(LayerError::new)?;
        if wait == Wait::Block && !plugin.blocks() {
            return Err(LayerError(format!("{} cannot sleep: use --wait spin or yield", plugin.name())));
        }
        if uses != Uses::Messages && !plugin.registers() {
            return Err(LayerError(format!("{} has no memory to register", plugin.name())));
        }
        let opening = Opening { place, slots, largest, memory, uses, settings: &self.settings };
        Channel::open(plugin, &opening).map_err(LayerError::new)
    }

    /// Opens it for messages between processes.
    fn open_among_others(&self, room: Room, place: Place, wait: Wait) -> Result<Channel, LayerError> {
        let channel = self.open(room, place, Uses::Messages, wait)?;
        if channel.place().ranks < 2 {
            return Err(LayerError(format!(
                "{} sees one process alone: start processes by the launcher of the same library, as in mpiexec -n 2",
                channel.plugin().name()
            )));
        }
        Ok(channel)
    }
}

/// What a channel is to hold.
struct Room {
    slots: usize,
    largest: usize,
    memory: (usize, usize),
}

/// Why there is no MPI here, as far as can be told without starting it.
pub(crate) fn mpi_is_missing() -> Option<String> {
    is_missing(MPI_PLUGIN, &Source::mpi())
}

/// Why there is no libfabric here.
pub(crate) fn ofi_is_missing() -> Option<String> {
    is_missing(OFI_PLUGIN, &Source::ofi())
}

/// Why there is no UCX here.
pub(crate) fn ucx_is_missing() -> Option<String> {
    is_missing(UCX_PLUGIN, &Source::ucx())
}

fn is_missing(name: &str, source: &Source) -> Option<String> {
    match variable(name) {
        Some(file) => Plugin::load(Path::new(&file)).err(),
        None => find(source, None).err(),
    }
    .map(|error| error.to_string())
}

/// Why there is no layer of the user's own.
pub(crate) fn own_is_missing() -> Option<String> {
    let loaded = Extension::own().and_then(|own| Plugin::load(&own.file).map_err(LayerError::new));
    loaded.err().map(|error| error.0)
}

/// That a layer carries less than a message of fixed size needs.
fn check_size(channel: &Channel, size_bytes: usize) -> Result<(), LayerError> {
    if channel.largest() >= size_bytes {
        return Ok(());
    }
    let name = channel.plugin().name();
    Err(LayerError(format!(
        "{size_bytes} bytes are more than the {} that {name} carries in a message",
        channel.largest()
    )))
}

/// What the other process is told: this one's rank, and what the layer says.
fn own_address(channel: &mut Channel) -> Result<Vec<u8>, LayerError> {
    let rank = u32::try_from(channel.place().rank).map_err(LayerError::new)?;
    let rest = channel.address().map_err(LayerError::new)?;
    Ok([&rank.to_le_bytes()[..], &rest].concat())
}

/// Connects to the processes that gave these addresses, and says their ranks in that order.
fn connect(channel: &mut Channel, addresses: &[&[u8]]) -> Result<Vec<usize>, LayerError> {
    let mut by_rank = vec![Vec::new(); channel.place().ranks];
    let mut ranks = Vec::with_capacity(addresses.len());
    for address in addresses {
        let (rank, rest) = address
            .split_first_chunk::<RANK_LEN>()
            .ok_or_else(|| LayerError::new("the address of a process is too short"))?;
        let rank = u32::from_le_bytes(*rank) as usize;
        let is_own = rank == channel.place().rank;
        let place = by_rank.get_mut(rank).filter(|_| !is_own && !ranks.contains(&rank));
        *place.ok_or_else(|| {
            LayerError(format!("two processes say that they have rank {rank}, or it is none"))
        })? = rest.to_vec();
        ranks.push(rank);
    }
    channel.connect(&by_rank).map_err(LayerError::new)?;
    Ok(ranks)
}

/// This process's half.
pub struct PluginHalf {
    channel: Channel,
    address: Vec<u8>,
    library: String,
    options: LayerOptions,
}

impl PluginHalf {
    /// Opens the layer.
    pub fn open(extension: &Extension, role: Role, options: LayerOptions) -> Result<Self, LayerError> {
        let place = Place { rank: usize::from(role == Role::Replier), ranks: 2 };
        let largest = options.size_bytes;
        let room = match options.face {
            Face::Messages => Room { slots: DEPTH, largest, memory: messages::memory(largest) },
            _ => Room { slots: wire::SLOTS, largest, memory: wire::memory(largest) },
        };
        let mut channel = extension.open_among_others(room, place, options.wait)?;
        if options.face == Face::Messages && !channel.plugin().messages() {
            let name = channel.plugin().name();
            return Err(LayerError(format!(
                "{name} has requests and replies only: there is no overlap to measure"
            )));
        }
        if options.face == Face::Requests {
            check_size(&channel, options.size_bytes)?;
        }
        let (address, library) = (own_address(&mut channel)?, channel.description());
        Ok(Self { channel, address, library, options })
    }

    /// Connects for requests and replies. Their size is fixed, or one byte until it is set.
    fn wire(mut self, peer: &[u8], is_requester: bool) -> Result<PluginWire, LayerError> {
        let peer = self.connect(peer)?;
        let size = (self.options.face == Face::Requests).then_some(self.options.size_bytes);
        PluginWire::new(self.channel, peer, self.options.wait, is_requester, size)
    }

    /// Connects for requests and replies of the layer's own.
    fn own_wire(mut self, peer: &[u8]) -> Result<OwnWire, LayerError> {
        let peer = self.connect(peer)?;
        let size = (self.options.face == Face::Requests).then_some(self.options.size_bytes);
        OwnWire::new(self.channel, peer, size)
    }

    /// Connects for messages.
    fn ends(mut self, peer: &[u8]) -> Result<Ends, LayerError> {
        let peer = self.connect(peer)?;
        Ends::new(self.channel, peer, self.options.wait)
    }

    fn connect(&mut self, peer: &[u8]) -> Result<usize, LayerError> {
        connect(&mut self.channel, &[peer]).map(|ranks| ranks[0])
    }
}

impl Half for PluginHalf {
    fn address(&self) -> Vec<u8> {
        self.address.clone()
    }

    fn library(&self) -> Option<&str> {
        Some(&self.library)
    }

    fn requester(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Subject>, LayerError> {
        let LayerOptions { size_bytes, face, wait, .. } = self.options;
        let asks = self.channel.plugin().requests();
        let window = wire::window(size_bytes);
        Ok(match face {
            Face::Requests if asks => Box::new(RealRequester::new(self.own_wire(peer)?, wait, window)),
            Face::Requests => Box::new(RealRequester::new(self.wire(peer, true)?, wait, window)),
            Face::Sized if asks => {
                Box::new(AnySize(RealRequester::new(self.own_wire(peer)?, wait, wire::SLOTS)))
            }
            Face::Sized => Box::new(AnySize(RealRequester::new(self.wire(peer, true)?, wait, wire::SLOTS))),
            Face::Messages => Box::new(Messages(RealMessenger::new(self.ends(peer)?))),
        })
    }

    fn replier(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Replier>, LayerError> {
        let LayerOptions { face, wait, .. } = self.options;
        Ok(match face {
            Face::Messages => Box::new(Support::new(self.ends(peer)?)),
            _ if self.channel.plugin().requests() => Box::new(RealReplier::new(self.own_wire(peer)?, wait)),
            _ => Box::new(RealReplier::new(self.wire(peer, false)?, wait)),
        })
    }

    fn messenger(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Messenger>, LayerError> {
        Ok(Box::new(RealMessenger::new(self.ends(peer)?)))
    }
}
