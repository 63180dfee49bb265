//! A provider: the rules of VIA, and a transport under them.

mod connecting;
mod posting;
mod resources;

use super::config::{Config, WireKind};
use super::error::OpenError;
use super::local;
use super::shm;
use super::udp::UdpWire;
use super::wire::Wire;
use crate::statistics::{PeerStatistics, Strays};
use netdyno_protocol::vi::*;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// An event that no call of the program reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// A descriptor with a requested notification is done, and was taken from its queue.
    Done {
        /// The VI.
        vi: ViHandle,
        /// The queue of the VI.
        side: Side,
        /// The descriptor.
        at: DescriptorAt,
    },
    /// A completion queue with a requested notification has an entry, which was taken from it.
    CqDone {
        /// The completion queue.
        cq: CqHandle,
        /// The queue whose descriptor is done.
        done: Done,
    },
    /// An asynchronous error has occurred.
    Failed(Failure),
}

/// A provider of Virtual Interfaces.
pub struct Provider {
    nic: Nic,
    wire: Box<dyn Wire>,
    news: VecDeque<News>,
    /// The discriminators at which this provider waits for requests, and those that it requests as a
    /// peer.
    waits: HashMap<WaitHandle, Vec<u8>>,
    asks: HashMap<ViHandle, Vec<u8>>,
    /// Calls that looked for completions since the last check for signals.
    looks: u32,
    /// Number of events that a thread may wait for.
    changes: u64,
    /// Whether the descriptor becomes readable when something arrives.
    is_prepared: bool,
    /// The provider is dropped.
    is_closing: bool,
}

impl Provider {
    /// Opens a provider.
    ///
    /// # Errors
    /// Returns an error if the system refuses memory, a socket or another resource.
    pub fn open(config: Config) -> Result<Self, OpenError> {
        let wire: Box<dyn Wire> = match config.wire {
            WireKind::Shm => Box::new(shm::ShmWire::open()?),
            WireKind::Udp(options) => Box::new(UdpWire::open(&options)?),
        };
        let attributes = NicAttributes { host_bytes: wire.host().len() as u8, ..config.attributes };
        Ok(Self {
            nic: Nic::new(attributes),
            wire,
            news: VecDeque::new(),
            waits: HashMap::new(),
            asks: HashMap::new(),
            looks: 0,
            changes: 0,
            is_prepared: false,
            is_closing: false,
        })
    }

    /// Returns the attributes of the NIC.
    pub fn attributes(&self) -> &NicAttributes {
        self.nic.attributes()
    }

    /// Returns the address of this host, as peers name it.
    pub fn host(&self) -> Vec<u8> {
        self.wire.host()
    }

    /// Returns the address that this provider shares with others of this host, if it does
    /// ([`is_shared`](super::UdpOptions::is_shared)).
    pub fn shared_address(&self) -> Option<SocketAddr> {
        self.wire.shared_address()
    }

    /// Returns the statistics of a connected reliable VI over UDP; `None` for any other VI.
    pub fn statistics(&self, vi: ViHandle) -> Option<PeerStatistics> {
        self.wire.statistics(vi)
    }

    /// Returns whether the peer of a VI has all that was sent, or takes it without this process. Otherwise a message may be
    /// lost when the provider is dropped, although its send is complete.
    pub fn is_delivered(&self, vi: ViHandle) -> bool {
        self.wire.is_delivered(vi)
    }

    /// Returns counts of received datagrams that belong to no peer, and of own datagrams that were never
    /// sent.
    pub fn strays(&self) -> Strays {
        self.wire.strays()
    }

    /// Returns the next event that no call has reported.
    pub fn next_news(&mut self) -> Option<News> {
        self.news.pop_front()
    }

    /// Checks everything once: messages, signals and timers. Returns whether any message was received or
    /// sent.
    pub fn progress(&mut self) -> bool {
        self.looks = 0;
        self.is_prepared = false;
        self.wire.hear(&mut self.nic);
        let now_ns = self.wire.now_ns();
        if self.nic.deadline().is_some_and(|at_ns| at_ns <= now_ns) {
            self.nic.on_time(now_ns);
        }
        let is_any = self.wire.receive_all(&mut self.nic);
        self.settle();
        is_any
    }

    /// Prepares for a sleep: from now on a peer that sends something makes the provider's descriptor
    /// readable ([`AsFd`]), until the next [`Provider::progress`]. Returns the longest permitted sleep,
    /// which is zero if messages have already arrived. The caller must check once more before it sleeps,
    /// and make progress when it wakes.
    pub fn prepare_sleep(&mut self) -> Duration {
        let most = self.wire.prepare_sleep();
        self.is_prepared = true;
        let is_any = self.wire.receive_all(&mut self.nic);
        self.settle();
        if is_any { Duration::ZERO } else { self.until_due().min(most) }
    }

    /// Returns the time until the next timer is due. A thread that sleeps since before a call may have
    /// to be woken earlier for it.
    pub fn until_due(&mut self) -> Duration {
        let left = |at_ns: u64| Duration::from_nanos(at_ns.saturating_sub(self.wire.now_ns()));
        let due = self.nic.deadline().map_or(Duration::MAX, left);
        due.min(self.wire.until_due())
    }

    /// Returns whether the last [`Provider::prepare_sleep`] is still in force.
    pub fn is_prepared(&self) -> bool {
        self.is_prepared
    }

    /// Returns a number that changes with every event that a thread may wait for. A program that shares
    /// a provider between threads wakes the other threads when the number changes.
    pub fn changes(&self) -> u64 {
        self.changes.wrapping_add(self.nic.answers()).wrapping_add(self.nic.at_once())
    }

    /// Breaks every VI, as on a failure of the NIC.
    pub fn fail(&mut self) {
        self.nic.fail();
        self.settle();
    }

    /// Carries out the decisions of the rules, and writes completions into descriptors.
    #[inline]
    fn settle(&mut self) {
        loop {
            while let Some(event) = self.nic.next_event() {
                self.changes += 1;
                self.attend(event);
            }
            let Some((host, signal)) = self.nic.next_signal() else { break };
            self.wire.say(&mut self.nic, &host, &signal);
        }
    }

    #[inline]
    fn attend(&mut self, event: Event) {
        match event {
            // SAFETY: the event names a descriptor in registered memory, which is valid and writable.
            // Its first byte is aligned, or it would not have been posted.
            Event::Completed { at, completion, .. } if !self.is_closing => unsafe {
                local::complete(at, &completion);
            },
            Event::Completed { .. } => {}
            Event::Callback { vi, side, at } => self.news.push_back(News::Done { vi, side, at }),
            Event::CqCallback { cq, done } => self.news.push_back(News::CqDone { cq, done }),
            Event::Failed(failure) => self.news.push_back(News::Failed(failure)),
            Event::Linked { vi, link } => {
                self.wire.link(&mut self.nic, vi, &link);
                // The peer of the new link does not know that it has to wake this process.
                self.is_prepared = false;
            }
            Event::Unlinked { vi, link, parting } => self.wire.unlink(&mut self.nic, vi, &link, parting),
        }
    }
}

impl AsFd for Provider {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.descriptor()
    }
}

impl Drop for Provider {
    /// Nobody takes completions any more. Descriptors stay as they are: their memory may be gone.
    fn drop(&mut self) {
        self.is_closing = true;
        self.nic.reject_all();
        for vi in self.nic.vis() {
            // The VI exists, so this cannot fail.
            let _ = self.nic.disconnect(vi);
        }
        self.settle();
        self.wire.linger(&mut self.nic);
    }
}
