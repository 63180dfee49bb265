//! Two processes: this process's half. The requester is the client, and the replier the server.

use super::client::{Client, WINDOW};
use super::service::GrpcServer;
use crate::half::{Half, Replier, Role, no_one_sided};
use crate::options::LayerOptions;
use crate::requests::{RealReplier, RealRequester};
use crate::socket::write_address;
use netdyno_measure::layer::{Face, LayerError};
use netdyno_measure::task::{AnySize, Subject};

/// This process's half.
pub(crate) struct GrpcHalf {
    /// `None` at the client.
    server: Option<GrpcServer>,
    options: LayerOptions,
}

impl GrpcHalf {
    /// Opens a server for the replier, and no socket for the requester.
    pub(crate) fn open(role: Role, options: LayerOptions) -> Result<Self, LayerError> {
        let server = match role {
            Role::Requester => None,
            Role::Replier => Some(GrpcServer::open(options.bind, options.size_bytes)?),
        };
        Ok(Self { server, options })
    }
}

impl Half for GrpcHalf {
    fn address(&self) -> Vec<u8> {
        self.server.as_ref().map(|server| write_address(server.address())).unwrap_or_default()
    }

    fn requester(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Subject>, LayerError> {
        let LayerOptions { size_bytes, wait, face, .. } = self.options;
        let requester = RealRequester::new(Client::connect(peer, size_bytes)?, wait, WINDOW);
        match face {
            Face::Requests => Ok(Box::new(requester)),
            Face::Sized => Ok(Box::new(AnySize(requester))),
            Face::Messages => {
                Err(LayerError::new("remote procedure calls are no messages that can be posted"))
            }
            Face::OneSided => Err(no_one_sided()),
        }
    }

    fn replier(self: Box<Self>, _: &[u8]) -> Result<Box<dyn Replier>, LayerError> {
        let used = || LayerError::new("opened as a requester, used as a replier");
        Ok(Box::new(RealReplier::new(self.server.ok_or_else(used)?, self.options.wait)))
    }
}
