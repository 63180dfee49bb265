//! A switch with finite output queues between many hosts, each with a link of its own. This is the
//! question that the ATM paper left open. Loss is the only sign of congestion.
//!
//! A datagram takes `service_ns` on the link of its sender and again on the link of its receiver. At
//! most `queue` datagrams wait for the receiver's link; the switch drops the others. Every flow issues
//! requests or stores as fast as its connection accepts them, and each one is answered. The receiving ends at a
//! host share its grants.

use super::events::Events;
use crate::frame::datagram::{self, Datagram, Kind};
use crate::frame::transfer::Range;
use crate::reliability::{Config, Connection, Delivery, Event as Outcome, Grants, Memories};
use alloc::vec;
use alloc::vec::Vec;

/// The parameters of a switch and its links.
#[derive(Clone, Copy, Debug)]
pub struct Switch {
    /// Number of hosts.
    pub hosts: usize,
    /// Most datagrams that wait for a host's link.
    pub queue: usize,
    /// Time of a datagram on a link, ns.
    pub service_ns: u64,
    /// Time from one link through the switch to the next, ns.
    pub through_ns: u64,
    /// Whether the receiving ends at a host share its grants. Otherwise each grants a whole window.
    pub shares_grants: bool,
}

/// The pairs of hosts between which requests flow.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// Hosts 1 to K send to host 0.
    ManyToOne(usize),
    /// Every host sends to the next one.
    Permutation,
    /// Every host sends to every other one.
    AllToAll,
}

/// The traffic of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Requests, each of one datagram.
    Requests,
    /// Stores of this many bytes.
    Stores(u64),
}

/// A flow from one host to another.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    /// The host that sends.
    pub from: usize,
    /// The host that receives.
    pub to: usize,
    /// The requests of the sender.
    pub traffic: Traffic,
    /// The time of its first request, ns.
    pub starts_ns: u64,
}

/// The measured result of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// Requests handled, or datagrams of stores placed, as a share of the capacity of the busiest link.
    pub goodput: f64,
    /// Retransmissions, as a share of all transmissions of messages.
    pub retransmitted: f64,
    /// Datagrams dropped by the switch.
    pub dropped: u64,
    /// Requests of the slowest flow, as a share of the mean of all flows.
    pub slowest: f64,
    /// Jain's index of the requests of all flows: the square of their sum over their number times the sum of their
    /// squares (Jain, Chiu and Hawe 1984). It is 1 if all flows are equal.
    pub jain: f64,
}

/// An event: the progress of a datagram, or the time to call an end.
enum Event {
    /// A datagram reaches the switch's queue for its receiver's link.
    Queue { to: usize, end: usize, bytes: Vec<u8> },
    /// A datagram reaches its receiver.
    Arrive { end: usize, bytes: Vec<u8> },
    /// A datagram has left the queue of a host's link.
    Left { host: usize },
    /// An end wants to be called.
    Wake { end: usize },
}

/// Counts the datagrams whose request was handled or whose bytes were placed. It stands for unlimited
/// memory and stores no bytes.
#[derive(Default)]
pub(crate) struct Placed(u64);

impl Memories for Placed {
    fn source(&mut self, _: u32, _: u64, len: usize, out: &mut Vec<u8>) -> bool {
        out.resize(out.len() + len, 0);
        true
    }

    fn has(&mut self, _: &[u8]) -> bool {
        true
    }

    fn read(&mut self, _: &Range, _: u64, len: usize, out: &mut Vec<u8>) -> bool {
        out.resize(out.len() + len, 0);
        true
    }

    fn write(&mut self, _: &Range, _: u64, _: &[u8]) -> bool {
        self.0 += 1;
        true
    }

    fn fetched(&mut self, _: u32, _: u64, _: &[u8]) {}
}

/// One end of a flow. The ends 2f and 2f + 1 are the requester and the replier of flow f.
struct End {
    connection: Connection,
    host: usize,
    placed: Placed,
    traffic: Traffic,
    starts_ns: u64,
    /// The earliest time for which a wake-up is scheduled, ns.
    wake_ns: u64,
}

struct World {
    switch: Switch,
    events: Events<Event>,
    ends: Vec<End>,
    /// The grants of each host.
    grants: Vec<Grants>,
    uplink_free_ns: Vec<u64>,
    downlink_free_ns: Vec<u64>,
    queued: Vec<usize>,
    dropped: u64,
}

/// Runs a pattern for `duration_ns` and measures its second half.
pub fn run(switch: Switch, pattern: &Pattern, traffic: Traffic, duration_ns: u64) -> Flow {
    let pairs: Vec<(usize, usize)> = match *pattern {
        Pattern::ManyToOne(k) => (1..=k).map(|host| (host, 0)).collect(),
        Pattern::Permutation => (0..switch.hosts).map(|host| (host, (host + 1) % switch.hosts)).collect(),
        Pattern::AllToAll => {
            let all = |from: usize| (0..switch.hosts).filter(move |&to| to != from).map(move |to| (from, to));
            (0..switch.hosts).flat_map(all).collect()
        }
    };
    let senders: Vec<Sender> =
        pairs.iter().map(|&(from, to)| Sender { from, to, traffic, starts_ns: 0 }).collect();
    run_senders(switch, &senders, duration_ns)
}

/// Runs flows for `duration_ns` and measures the second half.
pub fn run_senders(switch: Switch, senders: &[Sender], duration_ns: u64) -> Flow {
    let mut world = World::new(switch, senders);
    world.run_until(duration_ns / 2);
    let before: Vec<u64> = world.requests_handled();
    world.run_until(duration_ns);
    let handled: Vec<u64> =
        world.requests_handled().iter().zip(&before).map(|(after, before)| after - before).collect();
    // The busiest link to a host bounds the throughput. It also carries the replies to that host's own
    // requests.
    let mut load = vec![0_u64; switch.hosts];
    // The answer to a store is a small share of its datagrams.
    let answers = |sender: &Sender| u64::from(sender.traffic == Traffic::Requests);
    for sender in senders {
        load[sender.to] += 1;
        load[sender.from] += answers(sender);
    }
    let busiest = load.iter().copied().max().unwrap_or(1).max(1);
    let could = (duration_ns - duration_ns / 2) as f64 / switch.service_ns as f64;
    let busiest_host = load.iter().position(|&l| l == busiest).unwrap_or(0);
    let carried: u64 = senders
        .iter()
        .zip(&handled)
        .map(|(sender, &handled)| {
            let answered = answers(sender) * u64::from(sender.from == busiest_host);
            handled * (u64::from(sender.to == busiest_host) + answered)
        })
        .sum();
    let counters: Vec<_> = world.ends.iter().map(|end| end.connection.counters()).collect();
    let again: u64 = counters.iter().map(|c| c.retransmitted).sum();
    let once: u64 = counters.iter().map(|c| c.sent).sum();
    let (flows, sum) = (handled.len().max(1) as f64, handled.iter().sum::<u64>() as f64);
    let squares: f64 = handled.iter().map(|&handled| (handled as f64) * (handled as f64)).sum();
    Flow {
        goodput: carried as f64 / could,
        retransmitted: again as f64 / (again + once).max(1) as f64,
        dropped: world.dropped,
        slowest: handled.iter().copied().min().unwrap_or(0) as f64 * flows / sum,
        jain: sum * sum / (flows * squares),
    }
}

impl World {
    fn new(switch: Switch, senders: &[Sender]) -> Self {
        let mut ends = Vec::new();
        for (flow, &Sender { from, to, traffic, starts_ns }) in senders.iter().enumerate() {
            let (a, b) = (2 * flow as u64 + 1, 2 * flow as u64 + 2);
            let end = |local, remote, host| End {
                connection: Connection::new(Config::default(), local, remote, 0),
                host,
                placed: Placed::default(),
                traffic,
                starts_ns,
                wake_ns: u64::MAX,
            };
            ends.push(end(a, b, from));
            ends.push(end(b, a, to));
        }
        let mut world = Self {
            switch,
            events: Events::new(),
            ends,
            grants: (0..switch.hosts).map(|_| Grants::default()).collect(),
            uplink_free_ns: vec![0; switch.hosts],
            downlink_free_ns: vec![0; switch.hosts],
            queued: vec![0; switch.hosts],
            dropped: 0,
        };
        for (flow, sender) in senders.iter().enumerate() {
            world.wake_at(2 * flow, sender.starts_ns);
        }
        world
    }

    fn requests_handled(&self) -> Vec<u64> {
        self.ends.iter().skip(1).step_by(2).map(|end| end.placed.0).collect()
    }

    fn wake_at(&mut self, end: usize, at_ns: u64) {
        if at_ns < self.ends[end].wake_ns {
            self.ends[end].wake_ns = at_ns;
            self.events.schedule(at_ns, Event::Wake { end });
        }
    }

    fn run_until(&mut self, end_ns: u64) {
        while self.events.next_at().is_some_and(|at_ns| at_ns < end_ns)
            && let Some(event) = self.events.take()
        {
            match event {
                Event::Queue { to, end, bytes } => self.queue(to, end, bytes),
                Event::Left { host } => self.queued[host] -= 1,
                Event::Arrive { end, bytes } => self.arrive(end, &bytes),
                Event::Wake { end } => self.wake(end),
            }
        }
    }

    fn queue(&mut self, to: usize, end: usize, bytes: Vec<u8>) {
        if self.queued[to] >= self.switch.queue {
            self.dropped += 1;
            return;
        }
        self.queued[to] += 1;
        let left_ns = self.events.now().max(self.downlink_free_ns[to]) + self.switch.service_ns;
        self.downlink_free_ns[to] = left_ns;
        self.events.schedule(left_ns, Event::Left { host: to });
        self.events.schedule(left_ns, Event::Arrive { end, bytes });
    }

    fn arrive(&mut self, end: usize, bytes: &[u8]) {
        let now_ns = self.events.now();
        let Ok(datagram) = datagram::parse(bytes) else { return };
        let this = &mut self.ends[end];
        if this.connection.receive(&datagram, now_ns) == Delivery::Now {
            this.handle(&datagram, now_ns);
            while let Some(bytes) = this.connection.buffered() {
                if let Ok(datagram) = datagram::parse(&bytes) {
                    this.handle(&datagram, now_ns);
                }
                this.connection.recycle(bytes);
            }
        }
        self.grants[this.host].note(&mut this.connection);
        self.wake(end);
    }

    fn wake(&mut self, end: usize) {
        let now_ns = self.events.now();
        let this = &mut self.ends[end];
        if this.wake_ns <= now_ns {
            this.wake_ns = u64::MAX;
        }
        if this.connection.deadline().is_some_and(|at_ns| at_ns <= now_ns) {
            this.connection.on_time(now_ns);
        }
        let is_requester = end.is_multiple_of(2);
        while is_requester && now_ns >= this.starts_ns && this.issue(now_ns) {}
        let host = this.host;
        if self.switch.shares_grants {
            self.grants[host].grant(&mut this.connection);
        }
        let to = self.ends[end ^ 1].host;
        loop {
            while let Some(bytes) = self.ends[end].connection.transmit(now_ns) {
                let sent_ns = now_ns.max(self.uplink_free_ns[host]) + self.switch.service_ns;
                self.uplink_free_ns[host] = sent_ns;
                let event = Event::Queue { to, end: end ^ 1, bytes: bytes.to_vec() };
                self.events.schedule(sent_ns + self.switch.through_ns, event);
            }
            let this = &mut self.ends[end];
            if !this.connection.feed(&mut this.placed, now_ns) {
                break;
            }
        }
        if let Some(at_ns) = self.ends[end].connection.deadline() {
            self.wake_at(end, at_ns.max(now_ns + 1));
        }
    }
}

impl End {
    /// Issues a request or a store. Returns whether the connection had room for it.
    fn issue(&mut self, now_ns: u64) -> bool {
        match self.traffic {
            Traffic::Requests => self.connection.request(0, &[1, 2, 3, 4], &[], now_ns).is_ok(),
            Traffic::Stores(len) => self.connection.store(0, &[1], [0, 0, len], now_ns).is_ok(),
        }
    }

    fn handle(&mut self, datagram: &Datagram<'_>, now_ns: u64) {
        let kind = datagram.header.kind;
        if kind.is_of_transfer() {
            if let Outcome::Stored(_) = self.connection.transfer(datagram, &mut self.placed) {
                self.connection.reply(0, &[1], &[], now_ns);
            }
        } else if kind == Kind::Request {
            self.placed.0 += 1;
            self.connection.reply(0, &[1, 2, 3, 4], &[], now_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;

    const SWITCH: Switch =
        Switch { hosts: 65, queue: 64, service_ns: 1_000, through_ns: 2_000, shares_grants: true };

    const STORES: Traffic = Traffic::Stores(1 << 20);

    #[test]
    fn many_to_one_does_not_collapse() {
        for (k, traffic) in
            [2, 3, 4, 8, 16, 32, 48, 64].into_iter().flat_map(|k| [(k, Traffic::Requests), (k, STORES)])
        {
            let flow = run(SWITCH, &Pattern::ManyToOne(k), traffic, 40_000_000);
            std::println!("{k:2} to one, {traffic:?}: {flow:?}");
            assert!(flow.goodput >= 0.9, "{k}, {traffic:?}: {flow:?}");
        }
    }

    /// Long stores to one receiver share its link fairly, and fewer messages are lost than without grants.
    #[test]
    fn many_long_stores_to_one_are_fair() {
        for k in [2, 3, 4, 8, 16, 32, 48, 64] {
            let pattern = &Pattern::ManyToOne(k);
            let flow = run(SWITCH, pattern, STORES, 40_000_000);
            assert!(flow.jain >= 0.95 && flow.slowest >= 0.75, "{k}: {flow:?}");
            let alone = run(Switch { shares_grants: false, ..SWITCH }, pattern, STORES, 40_000_000);
            std::println!("{k:2} to one without shared grants: {alone:?}");
            assert!(alone.jain < 0.95 && alone.retransmitted > 2.0 * flow.retransmitted, "{k}: {alone:?}");
        }
    }

    /// Senders that begin one after the other, or whose stores have other lengths, get the same share.
    #[test]
    fn unequal_senders_are_fair() {
        for k in [2, 3, 4, 8, 16, 32] {
            let sender = |nth: usize| Sender { from: nth + 1, to: 0, traffic: STORES, starts_ns: 0 };
            let later = (0..k).map(|nth| Sender { starts_ns: nth as u64 * 300_000, ..sender(nth) });
            let others = (0..k).map(|nth| Sender {
                traffic: Traffic::Stores([1 << 16, 1 << 18, 10 << 20][nth % 3]),
                ..sender(nth)
            });
            for senders in [later.collect::<Vec<_>>(), others.collect()] {
                let flow = run_senders(SWITCH, &senders, 40_000_000);
                std::println!("{k:2} to one, unequal: {flow:?}");
                assert!(flow.jain >= 0.95 && flow.goodput >= 0.9, "{k}: {flow:?}");
            }
        }
    }

    #[test]
    fn permutation_and_all_to_all_do_not_collapse() {
        let switch = Switch { hosts: 16, ..SWITCH };
        for (pattern, traffic) in [
            (Pattern::Permutation, Traffic::Requests),
            (Pattern::AllToAll, Traffic::Requests),
            (Pattern::Permutation, STORES),
            (Pattern::AllToAll, STORES),
        ] {
            let flow = run(switch, &pattern, traffic, 40_000_000);
            std::println!("{pattern:?}, {traffic:?}: {flow:?}");
            assert!(flow.goodput >= 0.6, "{pattern:?}, {traffic:?}: {flow:?}");
        }
    }
}
