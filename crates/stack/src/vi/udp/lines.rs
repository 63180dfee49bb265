//! The connections of a provider over UDP, found by connection number or by VI.

use super::Means;
use super::pieces::Pieces;
use super::reliable::Reliable;
use crate::statistics::PeerStatistics;
use crate::udp::Lookup;
use netdyno_protocol::vi::{Parting, ViHandle};
use std::net::SocketAddr;

/// One connection, kept until its last datagram is sent.
pub enum Line {
    /// The connection of a reliable VI.
    Reliable(Box<Reliable>),
    /// The connection of an unreliable VI.
    Pieces(Pieces),
}

impl Line {
    /// Returns the address of the peer.
    pub fn to(&self) -> SocketAddr {
        match self {
            Self::Reliable(line) => line.to(),
            Self::Pieces(line) => line.to(),
        }
    }

    /// Sends everything that can be sent now.
    #[inline]
    pub fn pump(&mut self, means: &mut Means<'_>) {
        match self {
            Self::Reliable(line) => line.pump(means),
            Self::Pieces(line) => line.pump(means),
        }
    }

    /// Takes a datagram. Returns whether it is valid.
    #[inline]
    pub fn take(&mut self, bytes: &[u8], means: &mut Means<'_>) -> bool {
        match self {
            Self::Reliable(line) => line.take(bytes, means),
            Self::Pieces(line) => line.take(bytes, means),
        }
    }

    /// Returns the statistics of the connection, if they are counted.
    pub fn statistics(&self) -> Option<PeerStatistics> {
        match self {
            Self::Reliable(line) => Some(line.statistics()),
            Self::Pieces(_) => None,
        }
    }

    /// Returns whether the peer has all that was sent. An unreliable connection does not know, and promises nothing.
    pub fn is_delivered(&self) -> bool {
        match self {
            Self::Reliable(line) => line.is_delivered(),
            Self::Pieces(_) => true,
        }
    }

    /// Returns the time of the next timer.
    #[inline]
    pub fn deadline(&self) -> u64 {
        match self {
            Self::Reliable(line) => line.deadline(),
            Self::Pieces(line) => line.deadline(),
        }
    }

    /// Runs the timers that are due.
    pub fn on_time(&mut self, means: &mut Means<'_>) {
        match self {
            Self::Reliable(line) => line.on_time(means),
            Self::Pieces(line) => line.on_time(means),
        }
        self.pump(means);
    }

    /// Ends the connection, because its VI is no longer connected.
    pub fn part(&mut self, parting: Parting, means: &mut Means<'_>) {
        match self {
            Self::Reliable(line) => line.part(parting, means.now_ns),
            Self::Pieces(line) => line.part(parting, means),
        }
    }

    /// Sends a goodbye if nothing else is to be sent. Returns whether the connection can be removed.
    pub fn end(&mut self, means: &mut Means<'_>) -> bool {
        match self {
            Self::Reliable(line) if line.is_over(means.now_ns) => line.say_goodbye(means),
            Self::Reliable(_) => return false,
            Self::Pieces(line) => return line.is_parted(),
        }
        true
    }
}

struct Place {
    number: u64,
    /// `None` once the VI is no longer connected.
    vi: Option<ViHandle>,
    line: Line,
}

/// All connections, in no order.
#[derive(Default)]
pub struct Lines {
    places: Vec<Place>,
    by_number: Lookup<u64>,
    by_vi: Lookup<ViHandle>,
}

impl Lines {
    /// Adds the connection of a VI, with its number. Returns its index.
    pub fn insert(&mut self, number: u64, vi: ViHandle, line: Line) -> usize {
        let at = self.places.len();
        self.places.push(Place { number, vi: Some(vi), line });
        self.by_number.insert(number, at);
        self.by_vi.insert(vi, at);
        at
    }

    /// Returns the index of the connection with this number.
    #[inline]
    pub fn of_number(&mut self, number: u64) -> Option<usize> {
        self.by_number.find(number)
    }

    /// Returns the index of a VI's connection.
    #[inline]
    pub fn of_vi(&mut self, vi: ViHandle) -> Option<usize> {
        self.by_vi.find(vi)
    }

    /// Returns the connection of a VI.
    pub fn get(&self, vi: ViHandle) -> Option<&Line> {
        self.by_vi.get(vi).map(|at| &self.places[at].line)
    }

    /// Separates a VI from its connection, because it is no longer connected. Returns the connection's
    /// index.
    pub fn part(&mut self, vi: ViHandle) -> Option<usize> {
        let at = self.by_vi.remove(vi)?;
        self.places[at].vi = None;
        Some(at)
    }

    /// Returns the number of connections, which is also the end of their indices.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns the connection at an index.
    #[inline]
    pub fn at(&mut self, at: usize) -> &mut Line {
        &mut self.places[at].line
    }

    /// Removes a connection. The last connection moves to its index.
    pub fn remove(&mut self, at: usize) {
        let gone = self.places.swap_remove(at);
        self.by_number.remove(gone.number);
        if let Some(vi) = gone.vi {
            self.by_vi.remove(vi);
        }
        if let Some(moved) = self.places.get(at) {
            self.by_number.insert(moved.number, at);
            if let Some(vi) = moved.vi {
                self.by_vi.insert(vi, at);
            }
        }
    }
}
