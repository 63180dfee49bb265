//! Calls to servers, and the replies that have come.

use super::engine::Engine;
use super::messages::{ECHO, Payload, TRANSFER, TransferArgs};
use crate::payload::{FILL, wrong_size};
use crate::peer_wait::PEER_TIMEOUT;
use crate::sized::Sizes;
use crate::socket::parse_address;
use http::uri::PathAndQuery;
use netdyno_measure::layer::LayerError;
use prost::bytes::Bytes;
use std::error::Error;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

/// The end of a call: the peer that was called, and the bytes of data in its reply.
type End = (usize, Result<usize, Status>);

/// A connection to a server.
pub(super) struct Connection {
    /// The rank of the server.
    peer: usize,
    grpc: Grpc<Channel>,
}

/// What every call asks for.
#[derive(Clone)]
enum Asked {
    Echo(Payload),
    Transfer(TransferArgs),
}

/// The calls of a process.
pub(super) struct Calls {
    asked: Asked,
    /// The bytes of data that every reply must have.
    reply_bytes: usize,
    to_ends: UnboundedSender<End>,
    ends: UnboundedReceiver<End>,
    /// An end that was taken while this process slept.
    early: Option<End>,
}

impl Connection {
    /// Connects to the server at this address.
    pub(super) fn open(engine: &Engine, server: &[u8], peer: usize) -> Result<Self, LayerError> {
        let address = parse_address(server)?;
        let failed = |error: tonic::transport::Error| {
            LayerError(format!("cannot connect to {address}: {}", cause(&error)))
        };
        let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(failed)?;
        let endpoint = endpoint.connect_timeout(PEER_TIMEOUT).tcp_nodelay(true);
        let channel = engine.run(endpoint.connect()).map_err(failed)?;
        Ok(Self { peer, grpc: Grpc::new(channel) })
    }
}

impl Calls {
    /// Returns calls of `size_bytes` of data, which the server sends back.
    pub(super) fn new(size_bytes: usize) -> Self {
        let (to_ends, ends) = unbounded_channel();
        let asked = Asked::Echo(Payload { data: filled(size_bytes) });
        Self { asked, reply_bytes: size_bytes, to_ends, ends, early: None }
    }

    /// Sets the bytes of data of the next calls and of their replies. No call is without a reply.
    pub(super) fn set_sizes(&mut self, Sizes { request, reply }: Sizes) {
        self.asked = Asked::Transfer(TransferArgs { reply_bytes: reply, data: filled(request as usize) });
        self.reply_bytes = reply as usize;
    }

    /// Makes a call, as far as the socket takes its bytes now.
    #[inline(always)]
    pub(super) fn make(&self, engine: &Engine, connection: &Connection) {
        let (mut grpc, asked, to_ends) = (connection.grpc.clone(), self.asked.clone(), self.to_ends.clone());
        let peer = connection.peer;
        engine.spawn(async move {
            // The receiver is gone only if the whole layer is.
            let _ = to_ends.send((peer, asked.ask(&mut grpc).await));
        });
        engine.turn();
    }

    /// Takes a reply, if one has come, and returns the rank of its server.
    #[inline(always)]
    pub(super) fn take(&mut self, engine: &Engine) -> Result<Option<usize>, LayerError> {
        if let Some(end) = self.taken() {
            return self.checked(end);
        }
        engine.turn();
        match self.taken() {
            Some(end) => self.checked(end),
            None => Ok(None),
        }
    }

    /// Sleeps until a reply has come, at most for `time`.
    pub(super) fn block(&mut self, engine: &Engine, time: Duration) {
        if self.early.is_none() {
            self.early = engine.wait_for(self.ends.recv(), time).flatten();
        }
    }

    #[inline(always)]
    fn taken(&mut self) -> Option<End> {
        self.early.take().or_else(|| self.ends.try_recv().ok())
    }

    #[inline(always)]
    fn checked(&self, (peer, reply): End) -> Result<Option<usize>, LayerError> {
        match reply {
            Ok(bytes) if bytes == self.reply_bytes => Ok(Some(peer)),
            Ok(bytes) => Err(wrong_size(bytes, self.reply_bytes)),
            Err(status) => Err(refused(&status)),
        }
    }
}

impl Asked {
    /// Calls, and returns the bytes of data in the reply.
    async fn ask(self, grpc: &mut Grpc<Channel>) -> Result<usize, Status> {
        grpc.ready().await.map_err(|error| Status::unavailable(cause(&error)))?;
        let reply = match self {
            Self::Echo(payload) => {
                let codec = ProstCodec::<Payload, Payload>::default();
                grpc.unary(Request::new(payload), PathAndQuery::from_static(ECHO), codec).await?
            }
            Self::Transfer(arguments) => {
                let codec = ProstCodec::<TransferArgs, Payload>::default();
                grpc.unary(Request::new(arguments), PathAndQuery::from_static(TRANSFER), codec).await?
            }
        };
        Ok(reply.into_inner().data.len())
    }
}

fn filled(bytes: usize) -> Bytes {
    vec![FILL; bytes].into()
}

/// Returns the error for a call that the server did not execute, or whose connection failed.
#[cold]
fn refused(status: &Status) -> LayerError {
    let text = match status.source() {
        Some(error) => cause(error),
        None => status.message().to_owned(),
    };
    // The text is the server's.
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
    let text = if text.is_empty() { text } else { format!(" ({text})") };
    match status.code() {
        Code::Unimplemented => LayerError(format!("the server does not have the service netdyno.Echo{text}")),
        code => LayerError(format!("the server did not execute a call: {code}{text}")),
    }
}

/// Returns the text of the innermost error, because those around it only say that something failed.
fn cause(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_failed_says_why_in_one_line() {
        let missing = refused(&Status::unimplemented("no\nsuch service")).0;
        assert_eq!(missing, "the server does not have the service netdyno.Echo (no such service)");
        let failed = refused(&Status::internal("")).0;
        assert!(
            failed.starts_with("the server did not execute a call: ") && !failed.contains('('),
            "{failed}"
        );
        let calls = Calls::new(5);
        assert_eq!(calls.checked((3, Ok(5))).ok(), Some(Some(3)));
        assert!(calls.checked((3, Ok(6))).unwrap_err().0.contains("6 bytes came, 5 were expected"));
    }
}
