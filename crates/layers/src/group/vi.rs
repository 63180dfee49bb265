//! Virtual Interfaces: a VI to each other process, and one completion queue that says where a message
//! has come. Of two processes the one of lower rank waits, and the other asks.

use super::member::{Links, RealMember};
use super::{Attendant, Gathering, Place};
use crate::half::{LayerOptions, PEER_TIMEOUT};
use crate::real::Patience;
use crate::vi::meeting::{DISCRIMINATOR_LEN, discriminator, parse_address, wait_until, write_address};
use crate::vi::requests::{filled, work};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use netdyno_stack::vi::{
    Consumer, CqHandle, Done, Finished, Operation, PieceId, Side, ViHandle, WaitHandle, WireKind,
};
use std::collections::VecDeque;
use std::time::Duration;

/// Descriptors: of what is sent, whoever it is for, and from there on of receives.
const MESSAGE: usize = 0;
const FIRST_RECEIVE: usize = 1;

/// One connection, about to be.
struct Link {
    peer: usize,
    vi: ViHandle,
    discriminator: [u8; DISCRIMINATOR_LEN],
    /// Where the other one asks.
    wait: Option<WaitHandle>,
}

pub(super) struct ViGathering {
    consumer: Consumer,
    cq: CqHandle,
    links: Vec<Link>,
    place: Place,
    window: usize,
    options: LayerOptions,
}

/// Receives that are posted on each VI: one is posted again only when its reply is gone.
fn receives(window: usize) -> usize {
    window + 1
}

impl ViGathering {
    pub(super) fn open(wire: WireKind, place: Place, options: LayerOptions) -> Result<Self, LayerError> {
        let window = place.window().min(crate::vi::WINDOW);
        let all = receives(window) * (place.procs - 1);
        let mut consumer = Consumer::open(wire, FIRST_RECEIVE + all).map_err(LayerError::new)?;
        let cq = consumer.create_cq(all).map_err(LayerError::new)?;
        describe(&mut consumer, all, options.size_bytes)?;
        let mut links = Vec::new();
        for (nth, peer) in place.peers().enumerate() {
            let vi = consumer.create_vi(Some(cq)).map_err(LayerError::new)?;
            for receive in 0..receives(window) {
                let descriptor = FIRST_RECEIVE + nth * receives(window) + receive;
                consumer.post(vi, Side::Receive, descriptor).map_err(LayerError::new)?;
            }
            let discriminator = discriminator()?;
            let waits = place.rank < peer;
            let wait = waits.then(|| consumer.wait(&discriminator)).transpose().map_err(LayerError::new)?;
            links.push(Link { peer, vi, discriminator, wait });
        }
        Ok(Self { consumer, cq, links, place, window, options })
    }
}

/// Lays out a message, and receives for it: all of them name the same memory.
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
        for Link { peer, discriminator, .. } in &self.links {
            addresses[*peer] = write_address(*discriminator, &self.consumer);
        }
        addresses
    }

    /// Asks those of lower rank, who wait since they were opened, and takes those of higher rank as
    /// they come.
    fn meet(self: Box<Self>, addresses: &[Vec<u8>]) -> Result<Box<dyn Attendant>, LayerError> {
        let Self { mut consumer, cq, links, place, window, options } = *self;
        for Link { peer, vi, discriminator, .. } in links.iter().filter(|link| link.wait.is_none()) {
            let to = parse_address(&addresses[*peer])?;
            consumer.ask(*vi, discriminator, to, PEER_TIMEOUT).map_err(LayerError::new)?;
        }
        for Link { vi, wait, .. } in &links {
            wait_until(&mut consumer, |consumer| match wait {
                Some(wait) => consumer.accept(*wait, *vi).map_err(LayerError::new),
                None => consumer.is_answered(*vi).map_err(LayerError::new),
            })?;
        }
        let mut vis = vec![None; place.procs];
        links.iter().for_each(|link| vis[link.peer] = Some(link.vi));
        let peers = links.iter().map(|link| link.peer).collect();
        let LayerOptions { size_bytes, wait, .. } = options;
        let come = VecDeque::new();
        let links = ViLinks { consumer, cq, vis, peers, window, size_bytes, wait, come };
        Ok(Box::new(RealMember::new(links, wait, place.procs, window)))
    }
}

struct ViLinks {
    consumer: Consumer,
    cq: CqHandle,
    /// By rank; none for the own.
    vis: Vec<Option<ViHandle>>,
    /// Ranks by the order in which receives are laid out.
    peers: Vec<usize>,
    window: usize,
    size_bytes: usize,
    wait: Wait,
    /// Where messages have come while something was sent.
    come: VecDeque<Done>,
}

impl ViLinks {
    /// The peer whose message has come, and the receive that it has taken.
    #[inline(always)]
    fn come(&mut self) -> Result<Option<(ViHandle, usize)>, LayerError> {
        let done = match self.come.pop_front() {
            Some(done) => Some(done),
            None => self.consumer.cq_done(self.cq).map_err(LayerError::new)?,
        };
        let Some(Done { vi, side }) = done else { return Ok(None) };
        let done = self.consumer.done(vi, side).map_err(LayerError::new)?;
        let Some(Finished { descriptor, completion }) = done else { return Ok(None) };
        let (len, expected) = (completion.len as usize, self.size_bytes);
        if len != expected {
            return Err(LayerError(format!("a message of {len} bytes came, {expected} were expected")));
        }
        Ok(Some((vi, descriptor)))
    }

    /// Posts a send and waits until the wire has it. What comes meanwhile, from whomever, finds its
    /// receives, or processes that all send might wait for each other.
    #[inline(always)]
    fn send(&mut self, vi: ViHandle) -> Result<(), LayerError> {
        let Self { consumer, cq, come, wait, .. } = self;
        consumer.post(vi, Side::Send, MESSAGE).map_err(LayerError::new)?;
        let mut patience = Patience::new(*wait);
        while consumer.done(vi, Side::Send).map_err(LayerError::new)?.is_none() {
            match consumer.cq_done(*cq).map_err(LayerError::new)? {
                Some(done) => come.push_back(done),
                None => patience.in_vain(|timeout| {
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
    /// The completion queue has all of them.
    fn attend(&mut self, _: &[usize]) {}

    #[inline(always)]
    fn request(&mut self, peer: usize) -> Result<(), LayerError> {
        let Some(vi) = self.vis[peer] else { return Err(LayerError::new("a process is no peer of itself")) };
        self.send(vi)
    }

    #[inline(always)]
    fn take(&mut self) -> Result<Option<usize>, LayerError> {
        let Some((vi, receive)) = self.come()? else { return Ok(None) };
        self.post_receive(vi, receive)?;
        Ok(Some(self.peers[(receive - FIRST_RECEIVE) / receives(self.window)]))
    }

    /// The reply goes first.
    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        let Some((vi, receive)) = self.come()? else { return Ok(false) };
        self.send(vi)?;
        self.post_receive(vi, receive)?;
        Ok(true)
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.consumer.sleep(timeout);
        Ok(())
    }
}
