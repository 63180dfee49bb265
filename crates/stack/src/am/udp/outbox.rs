//! The sending side of a connection over UDP that replies go to, and how its messages depart on a dialled link.

use crate::am::call::Call;
use crate::am::dial::{Interface, answered, take_send_overhead};
use crate::am::handlers::Replies;
use netdyno_protocol::dial::link::Usual;
use netdyno_protocol::dial::timing::Departed;
use netdyno_protocol::reliability::{Connection, Stored};
use std::sync::Arc;

/// The sending side that replies of handlers go to.
pub(in crate::am) struct UdpOutbox {
    pub(super) connection: Connection,
    /// Longest payload that the peer accepts, in bytes.
    pub(super) medium_bytes: usize,
    /// The time at which requests are handled.
    pub(super) now_ns: u64,
    /// Present if dials are set.
    pub(super) departing: Option<Box<Departing>>,
}

impl Replies for UdpOutbox {
    fn medium_bytes(&self) -> usize {
        self.medium_bytes
    }

    fn reply(&mut self, call: &Call, payload: &[u8]) {
        if self.departing.is_some() {
            self.depart(size_of_val(call.words()) + payload.len());
        }
        self.connection.reply(call.handler, call.words(), payload, self.now_ns);
    }
}

impl UdpOutbox {
    /// Refuses a store whose memory is no longer registered.
    pub(super) fn refuse(&mut self, stored: &Stored, now_ns: u64) {
        if self.departing.is_some() {
            self.depart(size_of_val(stored.words_sent()));
        }
        self.connection.refuse_stored(stored, now_ns);
    }

    /// Stamps the next reply, of `bytes`, as the dials say.
    #[cold]
    pub(super) fn depart(&mut self, bytes: usize) {
        if let Some(departing) = &mut self.departing {
            let departed = departing.reply(bytes);
            self.connection.depart(departed);
        }
    }

    /// Stamps the next request, of `bytes`, as the dials say. Its answer carries `answer_bytes` of data.
    /// Returns the time at which the send began.
    #[cold]
    pub(super) fn depart_request(&mut self, bytes: usize, answer_bytes: usize, now_ns: u64) -> u64 {
        let Some(departing) = &mut self.departing else { return 0 };
        let Sending { began, departed, answered } = departing.request(bytes, answer_bytes);
        self.connection.depart(departed);
        self.connection.expect_answer(now_ns.saturating_add(departing.interface.ns_until(answered)));
        began
    }
}

/// The sending side of a dialled peer.
pub(super) struct Departing {
    pub(super) interface: Arc<Interface>,
    /// The usual time from reading the clock until the datagram has left, for requests and for replies.
    /// This time is overhead of the sender, not latency.
    pub(super) request_takes: Usual,
    pub(super) reply_takes: Usual,
    /// When the last reply was written; `None` if it has left.
    pub(super) replied_at: Option<u64>,
}

impl Departing {
    pub(super) fn new(interface: &Arc<Interface>) -> Self {
        Self {
            interface: Arc::clone(interface),
            request_takes: Usual::UNKNOWN,
            reply_takes: Usual::UNKNOWN,
            replied_at: None,
        }
    }

    /// Spends the send overhead. Returns how a request of `bytes` departs after that.
    fn request(&mut self, bytes: usize, answer_bytes: usize) -> Sending {
        let parameters = self.interface.parameters();
        let began = take_send_overhead(&parameters);
        let sent = began.saturating_add(self.request_takes.get().unwrap_or(0));
        let departed = self.interface.depart(sent, bytes, &parameters);
        Sending { began, departed, answered: answered(departed.at, answer_bytes, &parameters) }
    }

    /// Spends the send overhead. Returns how a reply of `bytes` departs after that.
    pub(super) fn reply(&mut self, bytes: usize) -> Departed {
        let parameters = self.interface.parameters();
        let began = take_send_overhead(&parameters);
        self.replied_at = Some(began);
        let sent = began.saturating_add(self.reply_takes.get().unwrap_or(0));
        self.interface.depart(sent, bytes, &parameters)
    }
}

/// A request that is being sent.
struct Sending {
    /// The time at the end of the send overhead.
    began: u64,
    departed: Departed,
    /// The earliest time at which its answer is due.
    answered: u64,
}
