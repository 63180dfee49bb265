//! A VI between two processes: this process's half of it.

use super::WINDOW;
use super::key;
use super::messages::ViMessages;
use super::one_sided::{ViInitiator, ViOneSided, ViTarget};
use super::rendezvous::Rendezvous;
use super::requests::ViRequests;
use crate::half::{Half, Replier, Role};
use crate::messages::exchange::Exchange;
use crate::messages::support::Support;
use crate::messages::worker::RealMessenger;
use crate::options::LayerOptions;
use crate::requests::{RealReplier, RealRequester};
use netdyno_measure::layer::{Face, LayerError, Messenger};
use netdyno_measure::task::{AnySize, Messages, OneSided, Subject};
use netdyno_stack::vi::{Remote, WireKind};

/// This process's half.
pub(crate) struct ViHalf {
    rendezvous: Rendezvous,
    side: Side,
    options: LayerOptions,
}

/// The use of the VI.
enum Side {
    Requests(ViRequests),
    Messages(ViMessages),
    OneSided(ViOneSided),
}

impl ViHalf {
    /// Opens a provider on `wire`, and a VI with all memory that its use needs.
    pub(crate) fn open(wire: WireKind, role: Role, options: LayerOptions) -> Result<Self, LayerError> {
        let is_requester = role == Role::Requester;
        let mut side = match options.face {
            Face::Requests => Side::Requests(ViRequests::of_one_size(wire, is_requester, &options)?),
            Face::Sized => Side::Requests(ViRequests::of_any_size(wire, is_requester, &options)?),
            Face::Messages => Side::Messages(ViMessages::open(wire, options.size_bytes)?),
            Face::OneSided => Side::OneSided(ViOneSided::open(wire, &options)?),
        };
        let rendezvous = match &mut side {
            Side::Requests(wire) => Rendezvous::open(&mut wire.link.consumer, role)?,
            Side::Messages(wire) => Rendezvous::open(&mut wire.link.consumer, role)?,
            Side::OneSided(end) => Rendezvous::open(&mut end.link.consumer, role)?,
        };
        Ok(Self { rendezvous, side, options })
    }

    fn connect(self, peer: &[u8]) -> Result<ConnectedVi, LayerError> {
        let LayerOptions { wait, size_bytes, .. } = self.options;
        Ok(match self.side {
            Side::Requests(mut wire) => {
                self.rendezvous.connect(&mut wire.link, peer)?;
                ConnectedVi::Requests(wire)
            }
            Side::Messages(mut wire) => {
                let peer = wire.take_key(peer)?;
                self.rendezvous.connect(&mut wire.link, peer)?;
                ConnectedVi::Messages(Exchange::new(wire, wait, size_bytes))
            }
            Side::OneSided(mut end) => {
                let (remote, peer) = key::take(peer)?;
                self.rendezvous.connect(&mut end.link, peer)?;
                ConnectedVi::OneSided(end, remote)
            }
        })
    }
}

/// The connected VI, by its use.
enum ConnectedVi {
    Requests(ViRequests),
    Messages(Exchange<ViMessages>),
    OneSided(ViOneSided, Remote),
}

impl Half for ViHalf {
    fn address(&self) -> Vec<u8> {
        match &self.side {
            Side::Requests(wire) => self.rendezvous.address(&wire.link.consumer),
            Side::Messages(wire) => [wire.key(), self.rendezvous.address(&wire.link.consumer)].concat(),
            Side::OneSided(end) => [end.key(), self.rendezvous.address(&end.link.consumer)].concat(),
        }
    }

    fn requester(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Subject>, LayerError> {
        let LayerOptions { wait, face, .. } = self.options;
        Ok(match self.connect(peer)? {
            ConnectedVi::Requests(wire) if face == Face::Sized => {
                Box::new(AnySize(RealRequester::new(wire, wait, WINDOW)))
            }
            ConnectedVi::Requests(wire) => Box::new(RealRequester::new(wire, wait, WINDOW)),
            ConnectedVi::Messages(exchange) => Box::new(Messages(RealMessenger::new(exchange))),
            ConnectedVi::OneSided(end, remote) => Box::new(OneSided(ViInitiator::new(end, remote))),
        })
    }

    fn replier(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Replier>, LayerError> {
        let wait = self.options.wait;
        Ok(match self.connect(peer)? {
            ConnectedVi::Requests(wire) => Box::new(RealReplier::new(wire, wait)),
            ConnectedVi::Messages(exchange) => Box::new(Support::new(exchange)),
            ConnectedVi::OneSided(end, _) => Box::new(RealReplier::new(ViTarget(end), wait)),
        })
    }

    fn messenger(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Messenger>, LayerError> {
        match self.connect(peer)? {
            ConnectedVi::Messages(exchange) => Ok(Box::new(RealMessenger::new(exchange))),
            ConnectedVi::Requests(_) | ConnectedVi::OneSided(..) => {
                Err(LayerError::new("the layer was not opened for messages"))
            }
        }
    }
}
