//! Active Messages: one endpoint with all others as peers, over shared memory or over UDP.

use super::member::{Links, RealMember};
use super::{Attendant, Gathering, Place};
use crate::half::{LayerOptions, PEER_TIMEOUT};
use netdyno_measure::layer::LayerError;
use netdyno_stack::am::{Config, Endpoint, Handlers, PeerId, Port, Reply, Request, Wire};
use std::collections::VecDeque;
use std::time::Duration;

/// Requests to one peer over UDP: what may be on the wire at once.
const UDP_WINDOW: usize = 64;
/// Payloads that the rings to one peer hold at most, in bytes.
const PAYLOADS: usize = 16 << 20;
const SHORT_AT_MOST: usize = 32;
const WORD: usize = 8;
/// Handler index, the same for requests and replies.
const ECHO: u8 = 0;

/// Replies that have come and were not taken yet: whose they are, by the order of connecting.
type Replies = VecDeque<usize>;

fn echo(_: &mut Replies, request: Request<'_>) {
    let words = request.words();
    match request.payload() {
        [] => request.reply(ECHO, words),
        // What fitted this way fits that way: all processes take the same size.
        payload => drop(request.reply_medium(ECHO, [], payload)),
    }
}

fn note(replies: &mut Replies, reply: Reply<'_>) {
    replies.push_back(reply.peer().index());
}

pub(super) struct AmGathering {
    endpoint: Endpoint<Replies>,
    /// By rank; none for the own.
    ports: Vec<Option<Port>>,
    place: Place,
    window: usize,
    options: LayerOptions,
}

impl AmGathering {
    pub(super) fn open(way: Wire, place: Place, options: LayerOptions) -> Result<Self, LayerError> {
        let mut handlers = Handlers::new();
        handlers.on_request(ECHO, echo);
        handlers.on_reply(ECHO, note);
        let medium_bytes =
            if options.size_bytes > SHORT_AT_MOST { options.size_bytes.next_multiple_of(64) } else { 64 };
        let window = match way {
            Wire::Udp => place.window().min(UDP_WINDOW),
            Wire::Shm => {
                let room = (PAYLOADS / medium_bytes / (place.procs - 1)).max(1);
                place.window().min(1 << room.ilog2())
            }
        };
        let config = Config {
            window: u32::try_from(window).map_err(LayerError::new)?,
            medium_bytes: u32::try_from(medium_bytes).map_err(LayerError::new)?,
            peer_timeout: PEER_TIMEOUT,
            wait: options.wait,
            bind: options.bind,
            faults: options.faults,
            seed: options.seed,
            ..Config::default()
        };
        let mut endpoint = crate::am::dialled(handlers, config, &options)?;
        let mut ports: Vec<Option<Port>> = (0..place.procs).map(|_| None).collect();
        for peer in place.peers() {
            ports[peer] = Some(endpoint.open_port(way).map_err(LayerError::new)?);
        }
        Ok(Self { endpoint, ports, place, window, options })
    }
}

impl Gathering for AmGathering {
    fn addresses(&self) -> Vec<Vec<u8>> {
        self.ports.iter().map(|port| port.as_ref().map(Port::address).unwrap_or_default()).collect()
    }

    fn meet(mut self: Box<Self>, addresses: &[Vec<u8>]) -> Result<Box<dyn Attendant>, LayerError> {
        let mut ids = vec![None; self.place.procs];
        // Connecting numbers the peers from 0.
        let mut ranks = Vec::new();
        for (rank, port) in std::mem::take(&mut self.ports).into_iter().enumerate() {
            let Some(port) = port else { continue };
            ids[rank] = Some(self.endpoint.connect(port, &addresses[rank]).map_err(LayerError::new)?);
            ranks.push(rank);
        }
        let size_bytes = self.options.size_bytes;
        let message = if size_bytes > SHORT_AT_MOST {
            Message::Medium(vec![0x5a; size_bytes])
        } else {
            Message::Short { words: size_bytes.div_ceil(WORD) }
        };
        let links = AmLinks { endpoint: self.endpoint, ids, ranks, replies: Replies::new(), message };
        Ok(Box::new(RealMember::new(links, self.options.wait, self.place.procs, self.window)))
    }
}

enum Message {
    Short { words: usize },
    Medium(Vec<u8>),
}

struct AmLinks {
    endpoint: Endpoint<Replies>,
    /// By rank.
    ids: Vec<Option<PeerId>>,
    /// By the order of connecting.
    ranks: Vec<usize>,
    replies: Replies,
    message: Message,
}

impl Links for AmLinks {
    /// An endpoint looks after all its peers.
    fn attend(&mut self, _: &[usize]) {}

    #[inline(always)]
    fn request(&mut self, peer: usize) -> Result<(), LayerError> {
        let Self { endpoint, ids, replies, message, .. } = self;
        let Some(peer) = ids[peer] else { return Err(LayerError::new("a process is no peer of itself")) };
        match message {
            Message::Short { words: 4 } => endpoint.request(replies, peer, ECHO, [1, 2, 3, 4]),
            Message::Short { words: 3 } => endpoint.request(replies, peer, ECHO, [1, 2, 3]),
            Message::Short { words: 2 } => endpoint.request(replies, peer, ECHO, [1, 2]),
            Message::Short { words: 1 } => endpoint.request(replies, peer, ECHO, [1]),
            Message::Short { .. } => endpoint.request(replies, peer, ECHO, []),
            Message::Medium(payload) => {
                return endpoint.request_medium(replies, peer, ECHO, [], payload).map_err(LayerError::new);
            }
        }
        .map_err(LayerError::new)
    }

    #[inline(always)]
    fn take(&mut self) -> Result<Option<usize>, LayerError> {
        if self.replies.is_empty() {
            self.endpoint.poll(&mut self.replies).map_err(LayerError::new)?;
        }
        Ok(self.replies.pop_front().map(|nth| self.ranks[nth]))
    }

    /// The handler answers.
    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        Ok(self.endpoint.poll(&mut self.replies).map_err(LayerError::new)? > 0)
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.endpoint.idle(timeout);
        Ok(())
    }
}
