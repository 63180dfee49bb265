//! The server of the service: it answers calls of any client.

use super::engine::Engine;
use super::messages::{ECHO, Payload, TRANSFER, TransferArgs};
use crate::payload::FILL;
use crate::requests::Responder;
use crate::tcp::connection::listen;
use http::{Request as HttpRequest, Response as HttpResponse};
use netdyno_measure::layer::LayerError;
use prost::bytes::Bytes;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tonic::body::Body;
use tonic::server::{Grpc, UnaryService};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower_service::Service;

/// The methods of the service.
#[derive(Clone)]
struct Echo {
    /// Data of the largest size, of which results are parts.
    filled: Bytes,
    /// The calls that were answered.
    answered: Arc<AtomicUsize>,
}

impl UnaryService<Payload> for Echo {
    type Response = Payload;
    type Future = Ready<Result<Response<Payload>, Status>>;

    fn call(&mut self, request: Request<Payload>) -> Self::Future {
        self.answered.fetch_add(1, Ordering::Relaxed);
        ready(Ok(Response::new(request.into_inner())))
    }
}

impl UnaryService<TransferArgs> for Echo {
    type Response = Payload;
    type Future = Ready<Result<Response<Payload>, Status>>;

    fn call(&mut self, request: Request<TransferArgs>) -> Self::Future {
        self.answered.fetch_add(1, Ordering::Relaxed);
        let (bytes, largest) = (request.get_ref().reply_bytes as usize, self.filled.len());
        ready(if bytes <= largest {
            Ok(Response::new(Payload { data: self.filled.slice(..bytes) }))
        } else {
            Err(Status::invalid_argument(format!("a reply has at most {largest} bytes of data")))
        })
    }
}

impl Service<HttpRequest<Body>> for Echo {
    type Response = HttpResponse<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequest<Body>) -> Self::Future {
        let echo = self.clone();
        match request.uri().path() {
            ECHO => Box::pin(async move {
                Ok(Grpc::new(ProstCodec::<Payload, Payload>::default()).unary(echo, request).await)
            }),
            TRANSFER => Box::pin(async move {
                Ok(Grpc::new(ProstCodec::<Payload, TransferArgs>::default()).unary(echo, request).await)
            }),
            _ => Box::pin(ready(Ok(Status::unimplemented("there is no such method").into_http()))),
        }
    }
}

/// A server.
pub(super) struct GrpcServer {
    engine: Engine,
    address: SocketAddr,
    answered: Arc<AtomicUsize>,
    /// The calls that were answered until the last look.
    seen: usize,
}

impl GrpcServer {
    /// Listens at `bind`, for calls and replies with up to `largest` bytes of data.
    pub(super) fn open(bind: SocketAddr, largest: usize) -> Result<Self, LayerError> {
        let engine = Engine::start()?;
        let (listener, address) = listen(bind)?;
        let failed = |error: io::Error| LayerError(format!("cannot serve at {address}: {error}"));
        let listener = engine.run(async { tokio::net::TcpListener::from_std(listener) }).map_err(failed)?;
        let answered = Arc::new(AtomicUsize::new(0));
        let echo = Echo { filled: vec![FILL; largest].into(), answered: Arc::clone(&answered) };
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        engine.spawn(async move {
            // The server ends with the runtime. Connections that fail do not end it.
            let _ = Server::builder().serve_with_incoming(echo, incoming).await;
        });
        Ok(Self { engine, address, answered, seen: 0 })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the runtime, on which a process of a group also makes calls.
    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }
}

impl Responder for GrpcServer {
    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        self.engine.turn();
        let answered = self.answered.load(Ordering::Relaxed);
        let has_answered = answered != self.seen;
        self.seen = answered;
        Ok(has_answered)
    }

    /// Answers calls meanwhile: the runtime wakes up for each.
    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.engine.sleep(timeout);
        Ok(())
    }
}
