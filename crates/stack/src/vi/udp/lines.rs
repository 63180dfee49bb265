//! The connections of a provider over UDP: found by the number that a datagram carries, and by the
//! VI that has one.

use super::Means;
use super::pieces::Pieces;
use super::reliable::Reliable;
use crate::statistics::PeerStatistics;
use netdyno_protocol::vi::{Parting, ViHandle};
use std::collections::HashMap;
use std::net::SocketAddr;

/// One connection, for as long as anything is to be said on it.
pub enum Line {
    /// That of a VI that promises something.
    Reliable(Box<Reliable>),
    /// That of one that does not.
    Pieces(Pieces),
}

impl Line {
    /// Where the peer is.
    pub fn to(&self) -> SocketAddr {
        match self {
            Self::Reliable(line) => line.to(),
            Self::Pieces(line) => line.to(),
        }
    }

    /// Sends all that can be sent now.
    #[inline]
    pub fn pump(&mut self, means: &mut Means<'_>) {
        match self {
            Self::Reliable(line) => line.pump(means),
            Self::Pieces(line) => line.pump(means),
        }
    }

    /// Takes a datagram. Whether it is one.
    #[inline]
    pub fn take(&mut self, bytes: &[u8], means: &mut Means<'_>) -> bool {
        match self {
            Self::Reliable(line) => line.take(bytes, means),
            Self::Pieces(line) => line.take(bytes, means),
        }
    }

    /// What happened on it, where that is counted.
    pub fn statistics(&self) -> Option<PeerStatistics> {
        match self {
            Self::Reliable(line) => Some(line.statistics()),
            Self::Pieces(_) => None,
        }
    }

    /// When to come back, at the latest.
    #[inline]
    pub fn deadline(&self) -> u64 {
        match self {
            Self::Reliable(line) => line.deadline(),
            Self::Pieces(line) => line.deadline(),
        }
    }

    /// What is due.
    pub fn on_time(&mut self, means: &mut Means<'_>) {
        match self {
            Self::Reliable(line) => line.on_time(means),
            Self::Pieces(line) => line.on_time(means),
        }
        self.pump(means);
    }

    /// The VI is no longer connected.
    pub fn part(&mut self, parting: Parting, means: &mut Means<'_>) {
        match self {
            Self::Reliable(line) => line.part(parting, means.now_ns),
            Self::Pieces(line) => line.part(parting, means),
        }
    }

    /// Says goodbye if nothing else is to be said any more. Whether it is so.
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
    /// Until the VI is no longer connected.
    vi: Option<ViHandle>,
    line: Line,
}

/// All of them, in no order.
#[derive(Default)]
pub struct Lines {
    places: Vec<Place>,
    by_number: HashMap<u64, usize>,
    by_vi: HashMap<ViHandle, usize>,
    /// What was found last: most often, the next one is the same.
    last: usize,
}

impl Lines {
    /// A VI has a connection, of that number.
    pub fn insert(&mut self, number: u64, vi: ViHandle, line: Line) -> usize {
        let at = self.places.len();
        self.places.push(Place { number, vi: Some(vi), line });
        self.by_number.insert(number, at);
        self.by_vi.insert(vi, at);
        at
    }

    /// Where the connection of a number is.
    #[inline]
    pub fn of_number(&mut self, number: u64) -> Option<usize> {
        if self.places.get(self.last).is_none_or(|place| place.number != number) {
            self.last = *self.by_number.get(&number)?;
        }
        Some(self.last)
    }

    /// Where that of a VI is.
    #[inline]
    pub fn of_vi(&mut self, vi: ViHandle) -> Option<usize> {
        if self.places.get(self.last).is_none_or(|place| place.vi != Some(vi)) {
            self.last = *self.by_vi.get(&vi)?;
        }
        Some(self.last)
    }

    /// That of a VI.
    pub fn get(&self, vi: ViHandle) -> Option<&Line> {
        self.by_vi.get(&vi).map(|at| &self.places[*at].line)
    }

    /// The VI is no longer connected: where its connection is, that nobody has.
    pub fn part(&mut self, vi: ViHandle) -> Option<usize> {
        let at = self.by_vi.remove(&vi)?;
        self.places[at].vi = None;
        Some(at)
    }

    /// How many there are: their places are those below.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// The one at a place.
    #[inline]
    pub fn at(&mut self, at: usize) -> &mut Line {
        &mut self.places[at].line
    }

    /// Nothing more is said on it. The last one takes its place.
    pub fn remove(&mut self, at: usize) {
        let gone = self.places.swap_remove(at);
        self.by_number.remove(&gone.number);
        if let Some(vi) = gone.vi {
            self.by_vi.remove(&vi);
        }
        if let Some(moved) = self.places.get(at) {
            self.by_number.insert(moved.number, at);
            if let Some(vi) = moved.vi {
                self.by_vi.insert(vi, at);
            }
        }
    }
}
