//! Two processes: this process's half.

use super::WINDOW;
use super::connection::{Listener, connect};
use super::messages::TcpMessages;
use super::sized::SizedTcp;
use super::stream::TcpWire;
use crate::half::{Half, Replier, Role, no_one_sided};
use crate::messages::exchange::Exchange;
use crate::messages::support::Support;
use crate::messages::worker::RealMessenger;
use crate::options::LayerOptions;
use crate::peer_wait::PEER_TIMEOUT;
use crate::requests::{RealReplier, RealRequester};
use netdyno_measure::layer::{Face, LayerError, Messenger};
use netdyno_measure::task::{AnySize, Messages, Subject};
use std::net::TcpStream;
use std::time::Instant;

/// This process's half.
pub(crate) struct TcpHalf {
    /// The replier's listening socket; `None` at the requester.
    listener: Option<Listener>,
    options: LayerOptions,
}

impl TcpHalf {
    /// Opens a listening socket for the replier, and no socket for the requester.
    pub(crate) fn open(role: Role, options: LayerOptions) -> Result<Self, LayerError> {
        let listener = match role {
            Role::Requester => None,
            Role::Replier => Some(Listener::open(options.bind, 1)?),
        };
        Ok(Self { listener, options })
    }

    fn messages(&self, stream: TcpStream) -> Exchange<TcpMessages> {
        let largest = self.options.size_bytes;
        Exchange::new(TcpMessages::new(stream, largest), self.options.wait, largest)
    }

    fn sized(&self, stream: TcpStream, is_requester: bool) -> SizedTcp {
        SizedTcp::new(stream, self.options.wait, self.options.size_bytes, is_requester)
    }

    fn wire(&self, stream: TcpStream) -> Result<TcpWire, LayerError> {
        TcpWire::new(stream, self.options.size_bytes)
    }
}

impl Half for TcpHalf {
    fn address(&self) -> Vec<u8> {
        self.listener.as_ref().map(|listener| listener.addresses().concat()).unwrap_or_default()
    }

    fn requester(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Subject>, LayerError> {
        let stream = connect(peer)?;
        let wait = self.options.wait;
        Ok(match self.options.face {
            Face::Requests => Box::new(RealRequester::new(self.wire(stream)?, wait, WINDOW)),
            Face::Sized => Box::new(AnySize(RealRequester::new(self.sized(stream, true), wait, WINDOW))),
            Face::Messages => Box::new(Messages(RealMessenger::new(self.messages(stream)))),
            Face::OneSided => return Err(no_one_sided()),
        })
    }

    fn replier(self: Box<Self>, _: &[u8]) -> Result<Box<dyn Replier>, LayerError> {
        let Some(listener) = &self.listener else {
            return Err(LayerError::new("opened as a requester, used as a replier"));
        };
        let accepted = listener.accept(Instant::now() + PEER_TIMEOUT)?;
        let late = || LayerError(format!("the requester has not connected within {PEER_TIMEOUT:?}"));
        let (_, stream) = accepted.ok_or_else(late)?;
        let wait = self.options.wait;
        Ok(match self.options.face {
            Face::Requests => Box::new(RealReplier::new(self.wire(stream)?, wait)),
            Face::Sized => Box::new(RealReplier::new(self.sized(stream, false), wait)),
            Face::Messages => Box::new(Support::new(self.messages(stream))),
            Face::OneSided => return Err(no_one_sided()),
        })
    }

    fn messenger(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Messenger>, LayerError> {
        Ok(Box::new(RealMessenger::new(self.messages(connect(peer)?))))
    }
}
