//! The counts of an endpoint, `amx_stats_t`.

use crate::code::Category;
use std::cell::Cell;

/// The counts of an endpoint, in the form of `am2.h`. Counts of three are by category.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Statistics {
    requests_sent: [u64; 3],
    replies_sent: [u64; 3],
    /// The transport repeats datagrams and shows nothing of it here, so that these three stay 0.
    requests_retransmitted: [u64; 3],
    replies_retransmitted: [u64; 3],
    replies_squashed: [u64; 3],
    requests_received: [u64; 3],
    replies_received: [u64; 3],
    returned_messages: u64,
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

/// The counts while they grow: by requests and replies, and by category. One store counts a message that has come, and two
/// one that was sent.
#[derive(Default)]
pub struct Counts {
    received: [[Cell<u64>; 3]; 2],
    sent: [[Cell<u64>; 3]; 2],
    /// Bytes of arguments and data.
    data_bytes: [[Cell<u64>; 3]; 2],
    returned: Cell<u64>,
}

fn add(to: &Cell<u64>, more: u64) {
    to.set(to.get().wrapping_add(more));
}

impl Counts {
    /// Counts a message that has come.
    #[inline]
    pub fn count_received(&self, is_request: bool, category: Category) {
        add(&self.received[usize::from(!is_request)][category as usize], 1);
    }

    /// Counts a message that was sent, with `count` arguments and `len` bytes.
    #[inline]
    pub fn count_sent(&self, is_request: bool, category: Category, count: u8, len: usize) {
        let (which, category) = (usize::from(!is_request), category as usize);
        add(&self.sent[which][category], 1);
        add(&self.data_bytes[which][category], 4 * u64::from(count) + len as u64);
    }

    /// Counts a message that has come back.
    pub fn count_returned(&self) {
        add(&self.returned, 1);
    }

    /// Sets all counts to 0.
    pub fn reset(&self) {
        let cells = [&self.received, &self.sent, &self.data_bytes];
        cells.into_iter().flatten().flatten().for_each(|cell| cell.set(0));
        self.returned.set(0);
    }

    /// Returns the counts for the program.
    pub fn read(&self) -> Statistics {
        let values = |cells: &[Cell<u64>; 3]| std::array::from_fn(|at| cells[at].get());
        let total = |which: usize| -> [u64; 3] {
            std::array::from_fn(|at| {
                self.data_bytes[which][at].get() + WORDS_BYTES * self.sent[which][at].get()
            })
        };
        Statistics {
            requests_sent: values(&self.sent[0]),
            replies_sent: values(&self.sent[1]),
            requests_received: values(&self.received[0]),
            replies_received: values(&self.received[1]),
            returned_messages: self.returned.get(),
            request_data_bytes_sent: values(&self.data_bytes[0]),
            reply_data_bytes_sent: values(&self.data_bytes[1]),
            request_total_bytes_sent: total(0),
            reply_total_bytes_sent: total(1),
            total_bytes_sent: [total(0), total(1)].iter().flatten().sum(),
            ..Statistics::INITIAL
        }
    }
}

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
