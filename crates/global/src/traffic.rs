//! The messages of a rank, counted.

/// What a rank has sent, received and waited for since it joined its job. A difference of two readings belongs to the
/// part of a program between them: counts predict what a parameter of the link costs it (Martin et al. 1997).
///
/// The credits and acknowledgements of a transport do not count, nor do the messages that ask whether a rank lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Requests and replies that the rank sent. A bulk transfer is one request; its answer is one reply. The owner of
    /// the memory does not see a bulk get, so that its answer counts nowhere.
    pub sent: u64,
    /// The bytes of these messages: words and payload.
    pub sent_bytes: u64,
    /// Requests and replies that the rank received.
    pub received: u64,
    /// The bytes that bulk gets of the rank asked for.
    pub got_bytes: u64,
    /// Calls that waited for operations of the rank: each takes a round trip or, if the answers come early, a part of
    /// one.
    pub round_trips: u64,
    /// Collective operations of at most 1024 bytes: each takes the way up the tree of the ranks and down again.
    pub collectives: u64,
}

impl Traffic {
    /// Returns what was counted since an earlier reading of the same rank.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            sent: self.sent - earlier.sent,
            sent_bytes: self.sent_bytes - earlier.sent_bytes,
            received: self.received - earlier.received,
            got_bytes: self.got_bytes - earlier.got_bytes,
            round_trips: self.round_trips - earlier.round_trips,
            collectives: self.collectives - earlier.collectives,
        }
    }

    /// Counts a message that is sent, of this many words.
    pub(crate) const fn send(&mut self, words: usize, payload: usize) {
        self.sent += 1;
        self.sent_bytes += (size_of::<u64>() * words + payload) as u64;
    }

    /// Counts a message that has arrived.
    pub(crate) const fn receive(&mut self) {
        self.received += 1;
    }
}
