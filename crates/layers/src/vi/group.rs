//! A group of processes: each has a VI to each other process, and one completion queue for all VIs. Of two
//! processes, the process of lower rank waits, and the other sends the connection request.

use super::WINDOW;
use super::descriptors::{filled, work};
use super::rendezvous::{DISCRIMINATOR_LEN, discriminator, parse_address, wait_until, write_address};
use crate::group::links::{Links, RealMember};
use crate::group::{Attendant, Gathering, Place, no_peer_of_itself};
use crate::options::LayerOptions;
use crate::payload::wrong_size;
use crate::peer_wait::{PEER_TIMEOUT, PeerWait};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use netdyno_stack::vi::{
    Consumer, CqHandle, Done, Finished, Operation, PieceId, Side, ViHandle, WaitHandle, WireKind,
};
use std::collections::VecDeque;
use std::time::Duration;

/// The descriptor of a message, to any peer.
const MESSAGE: usize = 0;
/// The first descriptor of a receive. The descriptors behind it are those of the other receives.
const FIRST_RECEIVE: usize = 1;

/// A VI that is not yet connected.
struct PendingVi {
    peer: usize,
    vi: ViHandle,
    discriminator: [u8; DISCRIMINATOR_LEN],
    /// The wait for the peer, if the peer sends the connection request.
    wait: Option<WaitHandle>,
}

/// One process of a group, not yet connected.
pub(crate) struct ViGathering {
    consumer: Consumer,
    cq: CqHandle,
    pending: Vec<PendingVi>,
    place: Place,
    window: usize,
    options: LayerOptions,
}

/// Returns the number of receives that are posted on each VI. It is larger than the window, because a receive
/// is posted again only after the reply.
fn receives(window: usize) -> usize {
    window + 1
}

impl ViGathering {
    /// Opens a provider on `wire`, a completion queue, and a VI for each peer.
    pub(crate) fn open(wire: WireKind, place: Place, options: LayerOptions) -> Result<Self, LayerError> {
        let window = place.window().min(WINDOW);
        let all = receives(window) * (place.procs - 1);
        let mut consumer = Consumer::open(wire, FIRST_RECEIVE + all).map_err(LayerError::new)?;
        let cq = consumer.create_cq(all).map_err(LayerError::new)?;
        describe(&mut consumer, all, options.size_bytes)?;
        let mut pending = Vec::new();
        for (nth, peer) in place.peers().enumerate() {
            let vi = consumer.create_vi(Some(cq)).map_err(LayerError::new)?;
            for receive in 0..receives(window) {
                let descriptor = FIRST_RECEIVE + nth * receives(window) + receive;
                consumer.post(vi, Side::Receive, descriptor).map_err(LayerError::new)?;
            }
            let discriminator = discriminator()?;
            let waits = place.rank < peer;
            let wait = waits.then(|| consumer.wait(&discriminator)).transpose().map_err(LayerError::new)?;
            pending.push(PendingVi { peer, vi, discriminator, wait });
        }
        Ok(Self { consumer, cq, pending, place, window, options })
    }
}

/// Lays out a message, and the receives for it, which all name the same memory.
fn describe(consumer: &mut Consumer, receives: usize, size_bytes: usize) -> Result<(), LayerError> {
    let [data, room] = [filled(consumer, size_bytes)?, filled(consumer, size_bytes)?];
    let on = |consumer: &Consumer, operation, piece: PieceId| {
        work(consumer, operation, (piece, 0, size_bytes), None)
    };
    let message = on(consumer, Operation::Send, data);
    consumer.describe(MESSAGE, &message);
    let receive = on(consumer, Operation::Receive, room);
    for descriptor in FIRST_RECEIVE..FIRST_RECEIVE + receives {
        consumer.describe(descriptor, &receive);
    }
    Ok(())
}

impl Gathering for ViGathering {
    fn addresses(&self) -> Vec<Vec<u8>> {
        let mut addresses = vec![Vec::new(); self.place.procs];
        for PendingVi { peer, discriminator, .. } in &self.pending {
            addresses[*peer] = write_address(*discriminator, &self.consumer);
        }
        addresses
    }

    /// Sends connection requests to the processes of lower rank, which wait since they were opened, and
    /// accepts those of higher rank.
    fn meet(self: Box<Self>, addresses: &[Vec<u8>]) -> Result<Box<dyn Attendant>, LayerError> {
        let Self { mut consumer, cq, pending, place, window, options } = *self;
        for PendingVi { peer, vi, discriminator, .. } in pending.iter().filter(|vi| vi.wait.is_none()) {
            let to = parse_address(&addresses[*peer])?;
            consumer.ask(*vi, discriminator, to, PEER_TIMEOUT).map_err(LayerError::new)?;
        }
        for PendingVi { vi, wait, .. } in &pending {
            wait_until(&mut consumer, |consumer| match wait {
                Some(wait) => consumer.accept(*wait, *vi).map_err(LayerError::new),
                None => consumer.is_answered(*vi).map_err(LayerError::new),
            })?;
        }
        let mut vis = vec![None; place.procs];
        pending.iter().for_each(|link| vis[link.peer] = Some(link.vi));
        let peers = pending.iter().map(|link| link.peer).collect();
        let LayerOptions { size_bytes, wait, .. } = options;
        let early = VecDeque::new();
        let links = ViLinks { consumer, cq, vis, peers, window, size_bytes, wait, early };
        Ok(Box::new(RealMember::new(links, wait, place.procs, window)))
    }
}

struct ViLinks {
    consumer: Consumer,
    cq: CqHandle,
    /// By rank; `None` for the own rank.
    vis: Vec<Option<ViHandle>>,
    /// The peers' ranks, in the order in which their receives are laid out.
    peers: Vec<usize>,
    window: usize,
    size_bytes: usize,
    wait: Wait,
    /// Completions of receives that came while a send was waited for.
    early: VecDeque<Done>,
}

impl ViLinks {
    /// Returns the VI that a message has come on, and the receive that it has used, if one has come.
    #[inline(always)]
    fn take_receive(&mut self) -> Result<Option<(ViHandle, usize)>, LayerError> {
        let done = match self.early.pop_front() {
            Some(done) => Some(done),
            None => self.consumer.cq_done(self.cq).map_err(LayerError::new)?,
        };
        let Some(Done { vi, side }) = done else { return Ok(None) };
        let done = self.consumer.done(vi, side).map_err(LayerError::new)?;
        let Some(Finished { descriptor, completion }) = done else { return Ok(None) };
        let (len, expected) = (completion.len as usize, self.size_bytes);
        if len != expected {
            return Err(wrong_size(len, expected));
        }
        Ok(Some((vi, descriptor)))
    }

    /// Posts a send and waits until the wire has it. It takes the completions of messages
    /// that come meanwhile, because processes that all send might wait for each other otherwise.
    #[inline(always)]
    fn send(&mut self, vi: ViHandle) -> Result<(), LayerError> {
        let Self { consumer, cq, early, wait, .. } = self;
        consumer.post(vi, Side::Send, MESSAGE).map_err(LayerError::new)?;
        let mut peer_wait = PeerWait::new(*wait);
        while consumer.done(vi, Side::Send).map_err(LayerError::new)?.is_none() {
            match consumer.cq_done(*cq).map_err(LayerError::new)? {
                Some(done) => early.push_back(done),
                None => peer_wait.after_empty_poll(|timeout| {
                    consumer.sleep(timeout);
                    Ok(())
                })?,
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn post_receive(&mut self, vi: ViHandle, descriptor: usize) -> Result<(), LayerError> {
        self.consumer.post(vi, Side::Receive, descriptor).map_err(LayerError::new)
    }
}

impl Links for ViLinks {
    /// Does nothing, because the completion queue has all peers.
    fn attend(&mut self, _: &[usize]) {}

    #[inline(always)]
    fn request(&mut self, peer: usize) -> Result<(), LayerError> {
        let Some(vi) = self.vis[peer] else { return Err(no_peer_of_itself()) };
        self.send(vi)
    }

    #[inline(always)]
    fn take(&mut self) -> Result<Option<usize>, LayerError> {
        let Some((vi, receive)) = self.take_receive()? else { return Ok(None) };
        self.post_receive(vi, receive)?;
        Ok(Some(self.peers[(receive - FIRST_RECEIVE) / receives(self.window)]))
    }

    /// Sends the reply before it posts the receive again.
    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        let Some((vi, receive)) = self.take_receive()? else { return Ok(false) };
        self.send(vi)?;
        self.post_receive(vi, receive)?;
        Ok(true)
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.consumer.sleep(timeout);
        Ok(())
    }
}
