//! A process of a group in real time, over the wires to its peers.

use super::Attendant;
use crate::idle::Idle;
use crate::peer_wait::PeerWait;
use crate::time::{RealTime, in_real_time};
use netdyno_host::wait::Wait;
use netdyno_measure::contention::cues::{Cues, perform};
use netdyno_measure::contention::member::Member;
use netdyno_measure::contention::step::{Assignment, Cue};
use netdyno_measure::layer::LayerError;
use std::time::Duration;

/// Longest sleep in the kernel, so that a process sees its cues.
const BLOCK_AT_MOST: Duration = Duration::from_millis(1);
/// Polls for requests between two polls for cues.
const POLLS_PER_CUE: usize = 64;

/// One process's ends of the wires to all other processes. They do not count requests in flight.
pub(crate) trait Links {
    /// Selects the peers that this process exchanges messages with from now on.
    fn attend(&mut self, peers: &[usize]);

    /// Sends a request to `peer`. The caller has made sure that there is room for it.
    fn request(&mut self, peer: usize) -> Result<(), LayerError>;

    /// Takes a reply, if one has arrived, and returns the replier's rank.
    fn take(&mut self) -> Result<Option<usize>, LayerError>;

    /// Answers a request, if one has arrived, with a message like it. Returns whether one had.
    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        let Some(peer) = self.take()? else { return Ok(false) };
        self.request(peer)?;
        Ok(true)
    }

    /// Sleeps until something may have arrived, at most for `timeout`.
    fn block(&mut self, timeout: Duration) -> Result<(), LayerError>;

    /// Sleeps until a request may have arrived, at most for `timeout`.
    fn block_on_requests(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.block(timeout)
    }
}

/// One process of a group in real time, over any wire.
pub(crate) struct RealMember<L> {
    links: L,
    wait: Wait,
    time: RealTime,
    peer_wait: PeerWait,
    /// Requests in flight, by peer.
    in_flight: Vec<usize>,
    window: usize,
    max_window: usize,
}

impl<L: Links> RealMember<L> {
    /// Returns a process with at most `max_window` requests in flight to each of its peers. Calibrates the
    /// clock.
    pub(crate) fn new(links: L, wait: Wait, procs: usize, max_window: usize) -> Self {
        Self {
            links,
            wait,
            time: RealTime::calibrate(),
            peer_wait: PeerWait::new(wait),
            in_flight: vec![0; procs],
            window: max_window,
            max_window,
        }
    }
}

in_real_time!(RealMember<L: Links>);

impl<L: Links> Member for RealMember<L> {
    #[inline(always)]
    fn issue(&mut self, peer: usize) -> Result<bool, LayerError> {
        if self.in_flight[peer] >= self.window {
            return Ok(false);
        }
        self.links.request(peer)?;
        self.in_flight[peer] += 1;
        Ok(true)
    }

    #[inline(always)]
    fn poll(&mut self) -> Result<Option<usize>, LayerError> {
        let found = self.links.take()?;
        if let Some(peer) = found {
            self.peer_wait = PeerWait::new(self.wait);
            self.in_flight[peer] = self.in_flight[peer]
                .checked_sub(1)
                .ok_or_else(|| LayerError(format!("rank {peer} has answered what was not asked")))?;
        }
        Ok(found)
    }

    #[inline(always)]
    fn idle(&mut self) -> Result<bool, LayerError> {
        let Self { links, peer_wait, .. } = self;
        peer_wait.after_empty_poll(|_| links.block(BLOCK_AT_MOST))?;
        Ok(self.wait != Wait::Spin)
    }

    fn max_window(&self) -> usize {
        self.max_window
    }

    fn set_window(&mut self, window: usize) {
        self.window = window;
    }
}

impl<L: Links> Attendant for RealMember<L> {
    fn perform(&mut self, assignment: &Assignment, cues: &mut dyn Cues) -> Result<(), LayerError> {
        if let Some(peer) = assignment.peers.iter().find(|&&peer| peer >= self.in_flight.len()) {
            return Err(LayerError(format!("there is no rank {peer}")));
        }
        self.links.attend(&assignment.peers);
        self.peer_wait = PeerWait::new(self.wait);
        perform(self, assignment, cues)
    }

    fn serve(&mut self, requesters: &[usize], cues: &mut dyn Cues) -> Result<(), LayerError> {
        self.links.attend(requesters);
        let mut idle = Idle::new(self.wait);
        loop {
            for _ in 0..POLLS_PER_CUE {
                if self.links.answer()? {
                    idle.found();
                } else if idle.pass(|| self.links.block_on_requests(BLOCK_AT_MOST))? {
                    break;
                }
            }
            if cues.look()? == Some(Cue::Stop) {
                return Ok(());
            }
        }
    }
}
