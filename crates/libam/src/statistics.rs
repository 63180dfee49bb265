//! The counts of an endpoint, `amx_stats_t`.

use crate::code::Category;

/// The counts of an endpoint, in the form of `am2.h`. Counts of three are by category.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Statistics {
    pub requests_sent: [u64; 3],
    pub replies_sent: [u64; 3],
    /// The transport repeats datagrams and shows nothing of it here, so that these three stay 0.
    requests_retransmitted: [u64; 3],
    replies_retransmitted: [u64; 3],
    replies_squashed: [u64; 3],
    pub requests_received: [u64; 3],
    pub replies_received: [u64; 3],
    pub returned_messages: u64,
    out_of_order_requests: u64,
    out_of_order_replies: u64,
    request_min_latency: u64,
    request_max_latency: u64,
    request_sum_latency: u64,
    request_data_bytes_sent: [u64; 3],
    reply_data_bytes_sent: [u64; 3],
    request_total_bytes_sent: [u64; 3],
    reply_total_bytes_sent: [u64; 3],
    total_bytes_sent: u64,
}

/// Bytes of the four words that each message carries.
const WORDS_BYTES: u64 = 32;

impl Statistics {
    /// The counts of a new endpoint.
    pub const INITIAL: Self = Self {
        requests_sent: [0; 3],
        replies_sent: [0; 3],
        requests_retransmitted: [0; 3],
        replies_retransmitted: [0; 3],
        replies_squashed: [0; 3],
        requests_received: [0; 3],
        replies_received: [0; 3],
        returned_messages: 0,
        out_of_order_requests: 0,
        out_of_order_replies: 0,
        // The smallest of no latencies.
        request_min_latency: u64::MAX,
        request_max_latency: 0,
        request_sum_latency: 0,
        request_data_bytes_sent: [0; 3],
        reply_data_bytes_sent: [0; 3],
        request_total_bytes_sent: [0; 3],
        reply_total_bytes_sent: [0; 3],
        total_bytes_sent: 0,
    };

    /// Counts a message that was sent, with `count` arguments and `len` bytes.
    #[inline]
    pub fn count_sent(&mut self, is_request: bool, category: Category, count: u8, len: usize) {
        let at = category as usize;
        let data = 4 * u64::from(count) + len as u64;
        let total = data + WORDS_BYTES;
        if is_request {
            self.requests_sent[at] += 1;
            self.request_data_bytes_sent[at] += data;
            self.request_total_bytes_sent[at] += total;
        } else {
            self.replies_sent[at] += 1;
            self.reply_data_bytes_sent[at] += data;
            self.reply_total_bytes_sent[at] += total;
        }
        self.total_bytes_sent += total;
    }

    /// Adds the counts of another endpoint.
    pub fn add(&mut self, other: &Self) {
        let add = |to: &mut [u64; 3], from: &[u64; 3]| {
            for (to, from) in to.iter_mut().zip(from) {
                *to = to.wrapping_add(*from);
            }
        };
        add(&mut self.requests_sent, &other.requests_sent);
        add(&mut self.replies_sent, &other.replies_sent);
        add(&mut self.requests_retransmitted, &other.requests_retransmitted);
        add(&mut self.replies_retransmitted, &other.replies_retransmitted);
        add(&mut self.replies_squashed, &other.replies_squashed);
        add(&mut self.requests_received, &other.requests_received);
        add(&mut self.replies_received, &other.replies_received);
        add(&mut self.request_data_bytes_sent, &other.request_data_bytes_sent);
        add(&mut self.reply_data_bytes_sent, &other.reply_data_bytes_sent);
        add(&mut self.request_total_bytes_sent, &other.request_total_bytes_sent);
        add(&mut self.reply_total_bytes_sent, &other.reply_total_bytes_sent);
        for (to, from) in [
            (&mut self.returned_messages, other.returned_messages),
            (&mut self.total_bytes_sent, other.total_bytes_sent),
        ] {
            *to = to.wrapping_add(from);
        }
    }

    /// Returns the counts as text of a few lines.
    pub fn text(&self, is_of_all: bool) -> String {
        let whose = if is_of_all { "all endpoints" } else { "this endpoint" };
        let mut lines = format!("Active Messages of {whose}    short   medium     long\n");
        for (what, counts) in [
            ("requests sent", &self.requests_sent),
            ("requests received", &self.requests_received),
            ("replies sent", &self.replies_sent),
            ("replies received", &self.replies_received),
            ("request bytes sent", &self.request_data_bytes_sent),
            ("reply bytes sent", &self.reply_data_bytes_sent),
        ] {
            let [short, medium, long] = counts;
            lines.push_str(&format!("{what:<20} {short:>12} {medium:>12} {long:>12}\n"));
        }
        lines.push_str(&format!("{:<20} {:>12}\n", "messages returned", self.returned_messages));
        lines.push_str(&format!("{:<20} {:>12}\n", "total bytes sent", self.total_bytes_sent));
        lines
    }
}
