//! A group of processes: each has one endpoint, with all others as peers.

use super::echo::{ECHO, EchoMessage, echo, echo_config, medium_bytes};
use super::endpoint::{self, UDP_WINDOW};
use crate::group::links::{Links, RealMember};
use crate::group::{Attendant, Gathering, Place, no_peer_of_itself};
use crate::options::LayerOptions;
use netdyno_measure::layer::LayerError;
use netdyno_stack::am::{Endpoint, Handlers, PeerId, PeerLost, Port, Reply, RequestError, Wire as Way};
use std::collections::VecDeque;
use std::time::Duration;

/// Most bytes of payloads in the rings to one peer.
const PAYLOADS: usize = 16 << 20;

/// The repliers whose replies have arrived and were not taken, by the order of connecting.
type Replies = VecDeque<usize>;

fn note(replies: &mut Replies, reply: Reply<'_>) {
    replies.push_back(reply.peer().index());
}

/// One process of a group, not yet connected.
pub(crate) struct AmGathering {
    endpoint: Endpoint<Replies>,
    /// The port for each peer, by rank; `None` for the own rank.
    ports: Vec<Option<Port>>,
    place: Place,
    window: usize,
    options: LayerOptions,
}

impl AmGathering {
    /// Opens an endpoint, and a port on `way` for each peer.
    pub(crate) fn open(way: Way, place: Place, options: LayerOptions) -> Result<Self, LayerError> {
        let mut handlers = Handlers::new();
        handlers.on_request(ECHO, echo);
        handlers.on_reply(ECHO, note);
        let window = match way {
            Way::Shm => {
                let room = (PAYLOADS / medium_bytes(options.size_bytes) / (place.procs - 1)).max(1);
                place.window().min(1 << room.ilog2())
            }
            _ => place.window().min(UDP_WINDOW as usize),
        };
        let mut endpoint = endpoint::open(handlers, echo_config(&options, window)?, &options)?;
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
        // The endpoint numbers its peers from 0, in the order of connecting.
        let mut ranks = Vec::new();
        for (rank, port) in std::mem::take(&mut self.ports).into_iter().enumerate() {
            let Some(port) = port else { continue };
            ids[rank] = Some(self.endpoint.connect(port, &addresses[rank]).map_err(LayerError::new)?);
            ranks.push(rank);
        }
        let message = EchoMessage::new(self.options.size_bytes);
        let links = AmLinks { endpoint: self.endpoint, ids, ranks, replies: Replies::new(), message };
        Ok(Box::new(RealMember::new(links, self.options.wait, self.place.procs, self.window)))
    }
}

struct AmLinks {
    endpoint: Endpoint<Replies>,
    /// By rank.
    ids: Vec<Option<PeerId>>,
    /// By the order of connecting.
    ranks: Vec<usize>,
    replies: Replies,
    message: EchoMessage,
}

/// Names a lost peer by its rank.
#[cold]
fn lost_rank(ids: &[Option<PeerId>], lost: PeerLost) -> LayerError {
    let rank = ids.iter().position(|id| *id == Some(lost.peer));
    LayerError(lost.named(&rank.map_or_else(|| "a rank".into(), |rank| format!("rank {rank}"))))
}

impl Links for AmLinks {
    /// Does nothing, because an endpoint polls all its peers.
    fn attend(&mut self, _: &[usize]) {}

    #[inline(always)]
    fn request(&mut self, peer: usize) -> Result<(), LayerError> {
        let Self { endpoint, ids, replies, message, .. } = self;
        let Some(peer) = ids[peer] else { return Err(no_peer_of_itself()) };
        message.request(endpoint, replies, peer, ECHO).map_err(|error| match error {
            RequestError::Lost(lost) => lost_rank(ids, lost),
            other => LayerError::new(other),
        })
    }

    #[inline(always)]
    fn take(&mut self) -> Result<Option<usize>, LayerError> {
        if self.replies.is_empty() {
            let Self { endpoint, replies, ids, .. } = self;
            endpoint.poll(replies).map_err(|lost| lost_rank(ids, lost))?;
        }
        Ok(self.replies.pop_front().map(|nth| self.ranks[nth]))
    }

    /// Polls: the handler answers.
    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        let Self { endpoint, replies, ids, .. } = self;
        Ok(endpoint.poll(replies).map_err(|lost| lost_rank(ids, lost))? > 0)
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.endpoint.idle(timeout);
        Ok(())
    }
}
