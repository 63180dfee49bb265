//! The connection of an unreliable VI: it sends its messages in fragments, without acknowledgements. It
//! still checks whether the peer is there: it sends a probe without a message, as in
//! [`netdyno_protocol::frame::datagram`], and the peer acknowledges that.

use super::Means;
use super::memory::{gather, place};
use super::presence::{Due, Presence};
use crate::udp;
use netdyno_host::datagram::DatagramWire;
use netdyno_protocol::frame::datagram::{self, Arrived, Header, Kind};
use netdyno_protocol::frame::vi_fragment::{self, LONGEST_PIECE, piece_len};
use netdyno_protocol::frame::vi_signal::Signal;
use netdyno_protocol::vi::{Link, Outgoing, Parting, Progress, ViHandle};
use std::net::SocketAddr;

/// Fragments of long messages in one GSO batch: as many as one system call takes.
const TRAIN: u32 = 44;
/// Time between two GSO batches. There is no flow control, so a batch must not come faster than a
/// processor can empty the peer's socket: 64 KiB in this time are 10 Gbit/s.
const BETWEEN_TRAINS_NS: u64 = 50_000;

/// The pace of the fragments of long messages.
#[derive(Debug, Default)]
struct Pace {
    /// Number of fragments sent in this batch, and when the last of them was sent.
    train: u32,
    sent_ns: u64,
    /// The time of the next batch.
    next_ns: u64,
}

impl Pace {
    /// Returns whether the next fragment may be sent now. It is counted then.
    fn may_send(&mut self, now_ns: u64) -> bool {
        if now_ns < self.next_ns {
            return false;
        }
        // After a pause without fragments another batch begins.
        if now_ns >= self.sent_ns + BETWEEN_TRAINS_NS {
            self.train = 0;
        }
        self.sent_ns = now_ns;
        self.train += 1;
        if self.train == TRAIN {
            self.train = 0;
            self.next_ns = now_ns + BETWEEN_TRAINS_NS;
        }
        true
    }
}

/// One unreliable connection.
pub struct Pieces {
    vi: ViHandle,
    local: u64,
    remote: u64,
    to: SocketAddr,
    /// The message that is being sent, and how many of its bytes were sent.
    sending: Option<(Outgoing, u32)>,
    pace: Pace,
    presence: Presence,
    is_parted: bool,
}

impl Pieces {
    pub fn new(vi: ViHandle, link: &Link, to: SocketAddr, timeout_ns: u64, now_ns: u64) -> Self {
        Self {
            vi,
            local: link.local,
            remote: link.remote,
            to,
            sending: None,
            pace: Pace::default(),
            presence: Presence::new(timeout_ns, now_ns),
            is_parted: false,
        }
    }

    /// Returns the address of the peer.
    pub fn to(&self) -> SocketAddr {
        self.to
    }

    /// Returns when the next batch or the next probe is due.
    #[inline]
    pub fn deadline(&self) -> u64 {
        self.sending.map_or(u64::MAX, |_| self.pace.next_ns).min(self.presence.deadline())
    }

    /// Probes the peer or reports its loss, if that is due.
    pub fn on_time(&mut self, means: &mut Means<'_>) {
        match self.presence.on_time(means.now_ns) {
            Due::Nothing => {}
            Due::Question => self.say(Kind::Probe, means),
            Due::Loss => means.nic.lost(self.vi),
        }
    }

    /// Sends a datagram that is not a message.
    fn say(&self, kind: Kind, means: &mut Means<'_>) {
        let header = Header {
            kind,
            handler: 0,
            connection: self.remote,
            sequence: 0,
            transmission: 0,
            arrived: Arrived::default(),
            completed: 0,
            departed: None,
        };
        means.socket.send(self.to, &datagram::alone(&header), means.now_ns);
    }

    /// Sends the messages of the VI, as far as the batches allow.
    pub fn pump(&mut self, means: &mut Means<'_>) {
        while let Some((outgoing, at)) = self.take_next(means)
            && self.may_send(&outgoing, means.now_ns)
        {
            self.send_piece(outgoing, at, means);
        }
        means.socket.flush();
    }

    /// Returns the message that is being sent, or the VI's next one.
    fn take_next(&mut self, means: &mut Means<'_>) -> Option<(Outgoing, u32)> {
        if self.sending.is_none() {
            self.sending = means.nic.next(self.vi).map(|outgoing| (outgoing, 0));
        }
        self.sending
    }

    /// Returns whether the next fragment may be sent now. A message of one fragment need not wait.
    fn may_send(&mut self, outgoing: &Outgoing, now_ns: u64) -> bool {
        outgoing.head.len as usize <= LONGEST_PIECE || self.pace.may_send(now_ns)
    }

    fn send_piece(&mut self, outgoing: Outgoing, at: u32, means: &mut Means<'_>) {
        let Outgoing { number, head } = outgoing;
        let (segments, bytes) = means.scratch.cleared();
        let len = piece_len(&head, at) as u32;
        if means.nic.bytes_of(self.vi, number, at, len, segments).is_err() {
            // The peer discards the fragments that have arrived when the next message arrives.
            self.sending = None;
            return;
        }
        vi_fragment::write(self.remote, &head, at, bytes);
        // SAFETY: the rules have just found the segments in registered memory, which stays until it is
        // deregistered.
        unsafe { gather(segments, bytes) };
        vi_fragment::seal(bytes);
        means.socket.join(self.to, bytes, means.now_ns);
        self.sending = (at + len < head.len).then_some((outgoing, at + len));
        if self.sending.is_none() {
            means.nic.progress(self.vi, number, Progress::Accepted);
        }
    }

    /// Takes a datagram. Returns whether it is valid on an unreliable connection.
    pub fn take(&mut self, bytes: &[u8], means: &mut Means<'_>) -> bool {
        let is_sound = self.take_piece(bytes, means) || self.take_word(bytes, means);
        if is_sound {
            self.presence.heard(means.now_ns);
        }
        is_sound
    }

    /// Takes a probe or an acknowledgement.
    fn take_word(&self, bytes: &[u8], means: &mut Means<'_>) -> bool {
        match datagram::parse(bytes).map(|datagram| datagram.header.kind) {
            Ok(Kind::Probe) => {
                self.say(Kind::Acknowledgement, means);
                true
            }
            Ok(Kind::Acknowledgement) => true,
            Ok(_) | Err(_) => false,
        }
    }

    fn take_piece(&self, bytes: &[u8], means: &mut Means<'_>) -> bool {
        let Ok(piece) = vi_fragment::parse(bytes) else { return false };
        let (segments, _) = means.scratch.cleared();
        if let Some(is_whole) = means.nic.arrive_in_pieces(self.vi, &piece, segments) {
            // SAFETY: the rules have just found the segments in registered memory, which stays until it
            // is deregistered.
            unsafe { place(segments, piece.payload) };
            if is_whole {
                means.nic.arrived(self.vi);
            }
        }
        true
    }

    /// Returns whether the VI is no longer connected.
    pub fn is_parted(&self) -> bool {
        self.is_parted
    }

    /// Ends the connection. Sends goodbyes, unless the peer has ended it.
    pub fn part(&mut self, parting: Parting, means: &mut Means<'_>) {
        self.is_parted = true;
        if parting == Parting::Peers {
            return;
        }
        let goodbye = Signal::Disconnect { to: self.remote, number: self.local }.encode();
        udp::send_goodbyes(means.socket, self.to, &goodbye, means.now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_pauses_between_batches_and_messages_far_apart_do_not() {
        let mut pace = Pace::default();
        let sent =
            |pace: &mut Pace, count: u32, now_ns: u64| (0..count).filter(|_| pace.may_send(now_ns)).count();
        assert_eq!(sent(&mut pace, 100, 1_000), 44);
        assert_eq!(sent(&mut pace, 1, 1_000 + BETWEEN_TRAINS_NS - 1), 0);
        assert_eq!(sent(&mut pace, 100, 1_000 + BETWEEN_TRAINS_NS), 44);
        // Messages of 7 fragments, one a millisecond.
        assert!((1..=50).all(|nth| sent(&mut pace, 7, nth * 1_000_000) == 7));
    }
}
