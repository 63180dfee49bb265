//! Two processes: this process's half.

use super::messages::UdpMessages;
use super::port::{UdpPort, window};
use super::requests::UdpWire;
use super::sized::SizedUdp;
use crate::half::{Half, Replier, no_one_sided};
use crate::messages::exchange::Exchange;
use crate::messages::support::Support;
use crate::messages::worker::RealMessenger;
use crate::options::LayerOptions;
use crate::requests::{RealReplier, RealRequester};
use netdyno_measure::layer::{Face, LayerError, Messenger};
use netdyno_measure::task::{AnySize, Messages, Subject};

/// This process's half.
pub(crate) struct UdpHalf {
    port: UdpPort,
    options: LayerOptions,
}

impl UdpHalf {
    /// Opens a socket.
    pub(crate) fn open(options: LayerOptions) -> Result<Self, LayerError> {
        Ok(Self { port: UdpPort::open(options.bind)?, options })
    }

    fn messages(self) -> Exchange<UdpMessages> {
        let LayerOptions { size_bytes, wait, .. } = self.options;
        let UdpPort { socket, buffer, .. } = self.port;
        Exchange::new(UdpMessages::new(socket, buffer, size_bytes), wait, size_bytes)
    }

    fn sized(self, is_requester: bool) -> SizedUdp {
        let UdpPort { socket, buffer, .. } = self.port;
        SizedUdp::new(socket, buffer, self.options.size_bytes, is_requester)
    }

    fn wire(self) -> UdpWire {
        UdpWire::new(self.port.socket, self.options.size_bytes)
    }
}

impl Half for UdpHalf {
    fn address(&self) -> Vec<u8> {
        self.port.address()
    }

    fn requester(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Subject>, LayerError> {
        self.port.connect(peer)?;
        let LayerOptions { size_bytes, wait, face, .. } = self.options;
        let window = window(self.port.buffer, size_bytes);
        Ok(match face {
            Face::Requests => Box::new(RealRequester::new(self.wire(), wait, window)),
            Face::Sized => Box::new(AnySize(RealRequester::new(self.sized(true), wait, window))),
            Face::Messages => Box::new(Messages(RealMessenger::new(self.messages()))),
            Face::OneSided => return Err(no_one_sided()),
        })
    }

    fn replier(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Replier>, LayerError> {
        self.port.connect(peer)?;
        let LayerOptions { wait, face, .. } = self.options;
        Ok(match face {
            Face::Requests => Box::new(RealReplier::new(self.wire(), wait)),
            Face::Sized => Box::new(RealReplier::new(self.sized(false), wait)),
            Face::Messages => Box::new(Support::new(self.messages())),
            Face::OneSided => return Err(no_one_sided()),
        })
    }

    fn messenger(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Messenger>, LayerError> {
        self.port.connect(peer)?;
        Ok(Box::new(RealMessenger::new(self.messages())))
    }
}
