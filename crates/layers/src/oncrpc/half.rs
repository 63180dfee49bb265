//! Two processes: this process's half. The requester is the client, and the replier the server.

use super::client::{Channel, Client};
use super::tcp::{TcpChannel, TcpServer};
use super::udp::{UdpChannel, UdpServer};
use crate::half::{ANY_CLIENT, Half, Replier, Role, no_one_sided};
use crate::options::LayerOptions;
use crate::requests::{RealReplier, RealRequester};
use crate::socket::{parse_address, write_address};
use crate::tcp::connection::{connect_and_send, listen};
use crate::tcp::stream::widen;
use crate::udp::port::UdpPort;
use netdyno_measure::layer::{Face, LayerError};
use netdyno_measure::task::{AnySize, Subject};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// This process's half over UDP.
pub(crate) struct RpcUdpHalf {
    port: UdpPort,
    options: LayerOptions,
}

impl RpcUdpHalf {
    /// Opens a socket.
    pub(crate) fn open(options: LayerOptions) -> Result<Self, LayerError> {
        Ok(Self { port: UdpPort::open(options.bind)?, options })
    }
}

impl Half for RpcUdpHalf {
    fn address(&self) -> Vec<u8> {
        self.port.address()
    }

    fn requester(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Subject>, LayerError> {
        let channel = UdpChannel::connect(self.port, peer, 1, self.options.size_bytes)?;
        subject(channel, &self.options)
    }

    fn replier(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Replier>, LayerError> {
        let client = if peer == ANY_CLIENT { None } else { Some(parse_address(peer)?) };
        let server = UdpServer::new(self.port, client, self.options.size_bytes);
        Ok(Box::new(RealReplier::new(server, self.options.wait)))
    }
}

/// This process's half over TCP.
pub(crate) struct RpcTcpHalf {
    /// The server's listening socket and its address; `None` at the client.
    listener: Option<(TcpListener, SocketAddr)>,
    options: LayerOptions,
}

impl RpcTcpHalf {
    /// Opens a listening socket for the replier, and no socket for the requester.
    pub(crate) fn open(role: Role, options: LayerOptions) -> Result<Self, LayerError> {
        let listener = match role {
            Role::Requester => None,
            Role::Replier => Some(listen(options.bind)?),
        };
        Ok(Self { listener, options })
    }

    /// Returns the way in which each end sets up its connection. Calls of one size get the buffers of the layer
    /// `tcp`, so that both compare. For other sizes the system sizes the buffers.
    fn set_up(&self) -> fn(&TcpStream) -> Result<(), LayerError> {
        match self.options.face {
            Face::Requests => widen,
            Face::Sized | Face::Messages | Face::OneSided => |_| Ok(()),
        }
    }
}

impl Half for RpcTcpHalf {
    fn address(&self) -> Vec<u8> {
        self.listener.as_ref().map(|(_, address)| write_address(*address)).unwrap_or_default()
    }

    fn requester(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Subject>, LayerError> {
        let stream = connect_and_send(parse_address(peer)?, &[])?;
        self.set_up()(&stream)?;
        subject(TcpChannel::new(stream, self.options.size_bytes), &self.options)
    }

    fn replier(self: Box<Self>, _: &[u8]) -> Result<Box<dyn Replier>, LayerError> {
        let set_up = self.set_up();
        let Some((listener, _)) = self.listener else {
            return Err(LayerError::new("opened as a requester, used as a replier"));
        };
        let server = TcpServer::new(listener, 1, self.options.size_bytes, set_up);
        Ok(Box::new(RealReplier::new(server, self.options.wait)))
    }
}

/// Returns the client on a channel, for the options' face.
fn subject<C: Channel + 'static>(channel: C, options: &LayerOptions) -> Result<Box<dyn Subject>, LayerError> {
    let &LayerOptions { size_bytes, wait, face, .. } = options;
    let client = Client::new(channel, wait, size_bytes)?;
    let window = client.window();
    let requester = RealRequester::new(client, wait, window);
    match face {
        Face::Requests => Ok(Box::new(requester)),
        Face::Sized => Ok(Box::new(AnySize(requester))),
        Face::Messages => Err(LayerError::new("remote procedure calls are no messages that can be posted")),
        Face::OneSided => Err(no_one_sided()),
    }
}
