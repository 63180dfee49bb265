//! Two processes: this process's half.

use super::address::{connect, own_address};
use super::epochs::{self, EpochInitiator, Exposer};
use super::extension::{Extension, Room, Use, check_size};
use super::messages::{self, PluginMessages};
use super::one_sided::{self, PluginInitiator, Port, Registered};
use super::own_requests::OwnWire;
use super::requests::{self, PluginWire};
use crate::half::{Half, Replier, Role, no_one_sided};
use crate::messages::slots::DEPTH;
use crate::messages::support::Support;
use crate::messages::worker::RealMessenger;
use crate::options::LayerOptions;
use crate::requests::{RealReplier, RealRequester};
use netdyno_measure::layer::{Face, LayerError, Messenger};
use netdyno_measure::onesided::data::{Access, Synchronisation};
use netdyno_measure::task::{AnySize, Messages, OneSided, Subject};
use netdyno_plugin::channel::{Channel, Place, Uses};

/// This process's half.
pub struct PluginHalf {
    channel: Channel,
    address: Vec<u8>,
    library: String,
    /// The memory of one-sided operations.
    memory: Option<Registered>,
    options: LayerOptions,
}

impl PluginHalf {
    /// Opens the layer.
    ///
    /// # Errors
    /// The layer cannot be opened, has no messages where it is asked for them, or carries smaller messages
    /// only.
    pub fn open(extension: &Extension, role: Role, options: LayerOptions) -> Result<Self, LayerError> {
        let place = Place { rank: usize::from(role == Role::Replier), ranks: 2 };
        let largest = options.size_bytes;
        let uses = uses(&options);
        let room = match options.face {
            Face::Messages => Room { slots: DEPTH, largest, memory: messages::memory(largest, DEPTH) },
            Face::OneSided if uses.has_epochs() => epochs::room(),
            Face::OneSided => one_sided::room(),
            _ => Room { slots: requests::SLOTS, largest, memory: requests::memory(largest) },
        };
        let memory = options.access.memory;
        let mut channel =
            extension.open_among_others(room, place, Use { uses, memory, wait: options.wait })?;
        if options.face == Face::Messages && !channel.plugin().messages() {
            let name = channel.plugin().name();
            return Err(LayerError(format!(
                "{name} has requests and replies only: there is no overlap to measure"
            )));
        }
        if options.face == Face::Requests {
            check_size(&channel, options.size_bytes)?;
        }
        let (mut address, library) = (own_address(&mut channel)?, channel.description());
        let mut memory = None;
        if options.face == Face::OneSided {
            let registered = Registered::new(&mut channel, largest)?;
            address = registered.address(&mut channel, &address)?;
            memory = Some(registered);
        }
        Ok(Self { channel, address, library, memory, options })
    }

    /// Connects for requests and replies over messages. Their size is fixed, or one byte until it is set.
    fn wire(mut self, peer: &[u8], is_requester: bool) -> Result<PluginWire, LayerError> {
        let peer = self.connect(peer)?;
        let size = (self.options.face == Face::Requests).then_some(self.options.size_bytes);
        PluginWire::new(self.channel, peer, self.options.wait, is_requester, size)
    }

    /// Connects for requests and replies of a layer with requests of its own.
    fn own_wire(mut self, peer: &[u8]) -> Result<OwnWire, LayerError> {
        let peer = self.connect(peer)?;
        let size = (self.options.face == Face::Requests).then_some(self.options.size_bytes);
        OwnWire::new(self.channel, peer, size)
    }

    /// Connects for messages.
    fn messages(mut self, peer: &[u8]) -> Result<PluginMessages, LayerError> {
        let peer = self.connect(peer)?;
        PluginMessages::new(self.channel, peer, self.options.wait)
    }

    /// Connects for one-sided operations on the target's memory.
    fn port(mut self, peer: &[u8]) -> Result<Port, LayerError> {
        let (key, address) = one_sided::take_key(peer)?;
        let target = self.connect(address)?;
        let memory = self.memory.ok_or_else(no_one_sided)?;
        Ok(Port::new(self.channel, memory, target, key.to_vec()))
    }

    /// Connects for operations in epochs on the memory of this process.
    fn exposer(mut self, peer: &[u8]) -> Result<Exposer, LayerError> {
        let (_, address) = one_sided::take_key(peer)?;
        let initiator = self.connect(address)?;
        Ok(Exposer::new(self.channel, initiator, self.options.wait))
    }

    fn connect(&mut self, peer: &[u8]) -> Result<usize, LayerError> {
        connect(&mut self.channel, &[peer]).map(|ranks| ranks[0])
    }
}

/// Returns what the channel is used for.
fn uses(options: &LayerOptions) -> Uses {
    match (options.face, options.access.synchronisation) {
        (Face::OneSided, Synchronisation::Lock) => Uses::OneSided,
        (Face::OneSided, Synchronisation::Fence) => Uses::Fence,
        (Face::OneSided, Synchronisation::Post) => Uses::Post,
        _ => Uses::Messages,
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
        let LayerOptions { size_bytes, face, access: Access { synchronisation, .. }, wait, .. } =
            self.options;
        let asks = self.channel.plugin().requests();
        let window = requests::window(size_bytes);
        Ok(match face {
            Face::Requests if asks => Box::new(RealRequester::new(self.own_wire(peer)?, wait, window)),
            Face::Requests => Box::new(RealRequester::new(self.wire(peer, true)?, wait, window)),
            Face::Sized if asks => {
                Box::new(AnySize(RealRequester::new(self.own_wire(peer)?, wait, requests::SLOTS)))
            }
            Face::Sized => {
                Box::new(AnySize(RealRequester::new(self.wire(peer, true)?, wait, requests::SLOTS)))
            }
            Face::Messages => Box::new(Messages(RealMessenger::new(self.messages(peer)?))),
            Face::OneSided => match synchronisation {
                Synchronisation::Lock => Box::new(OneSided(PluginInitiator::new(self.port(peer)?, wait))),
                epochs => Box::new(OneSided(EpochInitiator::new(self.port(peer)?, epochs))),
            },
        })
    }

    fn replier(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Replier>, LayerError> {
        let LayerOptions { face, access: Access { synchronisation, .. }, wait, .. } = self.options;
        Ok(match face {
            Face::Messages => Box::new(Support::new(self.messages(peer)?)),
            Face::OneSided if synchronisation != Synchronisation::Lock => Box::new(self.exposer(peer)?),
            Face::OneSided => {
                let (_, address) = one_sided::take_key(peer)?;
                Box::new(Support::new(self.messages(address)?))
            }
            _ if self.channel.plugin().requests() => Box::new(RealReplier::new(self.own_wire(peer)?, wait)),
            _ => Box::new(RealReplier::new(self.wire(peer, false)?, wait)),
        })
    }

    fn messenger(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Messenger>, LayerError> {
        Ok(Box::new(RealMessenger::new(self.messages(peer)?)))
    }
}
