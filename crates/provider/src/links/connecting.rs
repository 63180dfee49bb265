//! How connections are made: a process asks a peer, accepts those that ask it, and looks for the answers.
//!
//! Two processes may ask each other at the same time. The one with the smaller nonce then refuses the other's request,
//! and the other one gives its request up when it has accepted. So one VI has the messages of both ways, and each carries
//! acknowledgements of the other way.

use super::nic::Accepted;
use super::settings::Wire;
use super::{Asking, Link, PeerNo, Process, UNKNOWN_TIMEOUT, ViLinks};
use netdyno_stack::vi::{Address, ConnectError};
use std::time::{Duration, Instant};

/// Time between a refused request and the next one.
pub const ASK_PERIOD: Duration = Duration::from_millis(1);
/// Time in which the last messages of a peer are taken that has ended one of two connections.
const END_TIMEOUT: Duration = Duration::from_secs(10);

impl ViLinks {
    /// Asks a peer for a connection.
    pub(super) fn ask(&mut self, peer: PeerNo) {
        // The peer learns the full name of this process.
        self.links[peer].is_by_service.get_or_insert(false);
        let wire = self.links[peer].wire;
        match self.nic(wire).create_vi() {
            Some(vi) => {
                self.links[peer].asking = Some(Asking { vi, refused: None, again_at: None });
                self.asking.push(peer);
                self.request(peer);
            }
            None => self.lost.push(peer),
        }
    }

    /// Sends the request of a peer that is being asked.
    fn request(&mut self, peer: PeerNo) {
        let Link { process, wire, asking: Some(Asking { vi, .. }), .. } = self.links[peer] else { return };
        let host = match wire {
            Wire::Shm => self.shm.host(),
            Wire::Udp => process.udp_host(),
        };
        let to = Address { host, discriminator: process.discriminator() };
        let from = self.process.encode();
        // An error is the answer.
        let _ = self.nic(wire).ask(vi, &from, to);
    }

    /// Looks for answers to requests, for requests, and for lost peers.
    pub(super) fn maintain(&mut self) {
        self.calls = 0;
        for wire in [Wire::Shm, Wire::Udp] {
            self.nic(wire).maintain();
            let own = self.process;
            let Self { shm, udp, links, peers, .. } = self;
            // A requester comes over the wire that leads to the process it says it is. So a process of another host
            // does not pass for one of this host, whose memory the system copies.
            let is_welcome = |name: &[u8], is_by_service: bool| {
                let Some(process) = Process::parse(name) else { return false };
                let link = peers.get(&process.nonce).map(|peer| &links[*peer]);
                let known = link.map_or(&process, |link| &link.process);
                let is_somebody = process.nonce != own.nonce && process.service().is_none();
                // A peer that knows this process by its port needs a connection for that.
                let has_another =
                    !is_by_service && own.nonce < process.nonce && link.is_some_and(Link::is_connecting);
                is_somebody && own.wire_to(&process) == wire && known.host == process.host && !has_another
            };
            let nic = if wire == Wire::Shm { shm } else { udp };
            for Accepted { vi, name, is_by_service } in nic.accept(is_welcome) {
                self.has_news = true;
                let Some(process) = Process::parse(&name) else { continue };
                let mut peer = self.peer(&process);
                if self.links[peer].is_ended {
                    self.nic(wire).destroy(vi);
                    continue;
                }
                // A process that knows this one by two names has two peers here, as there: so answers and credits go
                // back to where they belong.
                if *self.links[peer].is_by_service.get_or_insert(is_by_service) != is_by_service {
                    peer = self.add(process);
                    self.links[peer].is_by_service = Some(is_by_service);
                }
                self.by_vi.insert((wire, vi), peer);
                self.links[peer].vi.get_or_insert(vi);
                self.strangers.extend(is_by_service.then_some(peer));
            }
        }
        for place in (0..self.asking.len()).rev() {
            self.look_for_answer(place);
        }
        for (peer, link) in self.links.iter_mut().enumerate() {
            if link.ending.is_some_and(|ending| ending.elapsed() > END_TIMEOUT) && !link.is_ended {
                link.ending = None;
                self.lost.push(peer);
            }
        }
    }

    /// Looks for the answer of one of the peers that are asked.
    fn look_for_answer(&mut self, place: usize) {
        let peer = self.asking[place];
        let Link { process, wire, vi: other, asking: Some(Asking { vi, refused, again_at }), .. } =
            self.links[peer]
        else {
            return;
        };
        let mut is_over = true;
        let answer = match again_at {
            // The peer has asked as well, and that connection is used.
            Some(_) if other.is_some() => Err(ConnectError::Rejected),
            Some(again_at) => {
                if Instant::now() >= again_at {
                    self.links[peer].asking = Some(Asking { vi, refused, again_at: None });
                    self.request(peer);
                }
                return;
            }
            None => self.nic(wire).is_answered(vi),
        };
        match answer {
            Ok(false) => is_over = false,
            Ok(true) => {
                self.has_news = true;
                self.by_vi.insert((wire, vi), peer);
                // A process that has sent over another VI goes on there.
                self.links[peer].vi.get_or_insert(vi);
            }
            Err(_) if other.is_some() => self.nic(wire).destroy(vi),
            // A process that exists will wait for requests again. A lack of room, here or there, may last.
            Err(why @ (ConnectError::NoMatch | ConnectError::TooMany | ConnectError::Rejected))
                if why == ConnectError::NoMatch && wire == Wire::Shm && process.may_exist()
                    || refused.is_none_or(|refused| refused.elapsed() < self.refusal_timeout(wire)) =>
            {
                let refused = refused.or(Some(Instant::now()));
                let again_at = Some(Instant::now() + ASK_PERIOD);
                self.links[peer].asking = Some(Asking { vi, refused, again_at });
                is_over = false;
            }
            Err(_) => {
                self.nic(wire).destroy(vi);
                self.lost.push(peer);
            }
        }
        if is_over {
            self.links[peer].asking = None;
            self.asking.swap_remove(place);
        }
    }

    /// Returns the time for which a process that refuses is asked again. Over UDP a refusal says that it is there.
    fn refusal_timeout(&self, wire: Wire) -> Duration {
        if wire == Wire::Shm { UNKNOWN_TIMEOUT } else { self.timeout }
    }
}
