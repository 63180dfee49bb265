//! The constants of loss recovery, congestion control and acknowledgement, as a configuration.
//!
//! The defaults are for a process on the same host or in the same machine room. RFC 9002 has other values for
//! some, because they are for the internet. `netdyno soak` and the tests of `sim::switch` show what a change does.

/// The configuration of loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// The reordering threshold (RFC 9002, section 6.1.1): a message counts as lost when a transmission this
    /// much later has arrived. Default 3.
    pub packet_threshold: u64,
    /// The number of tail loss probes before everything in flight counts as lost (RFC 8985, section 7).
    /// Default 1.
    pub tail_loss_probes: u32,
    /// The expected round trip before the first sample, ns. Default 200 µs.
    pub initial_rtt_ns: u64,
    /// The longest expected round trip, whatever the samples say, ns. A pause of either side can look like a
    /// round trip. A loss after it must be noticed well before the peer timeout. Default 500 ms.
    pub max_rtt_ns: u64,
    /// The shortest time until a tail loss probe, ns. Default 30 µs.
    pub min_probe_ns: u64,
    /// The shortest retransmission timeout, ns. A process that was descheduled usually runs again within this
    /// time. Default 200 µs.
    pub min_timeout_ns: u64,
    /// The longest retransmission timeout after backoff, ns. A network that recovers is noticed within this
    /// time. Default 50 ms.
    pub max_timeout_ns: u64,
    /// The initial congestion window, in messages. Default 16.
    pub initial_window: u32,
    /// After this many messages in order an acknowledgement is sent at once. Default 16.
    pub acknowledge_every: u32,
    /// A message that a goodbye has overtaken arrives within this time, or it counts as lost, ns. Default 1 ms.
    pub max_overtaken_ns: u64,
}

impl Default for Recovery {
    fn default() -> Self {
        Self {
            packet_threshold: 3,
            tail_loss_probes: 1,
            initial_rtt_ns: 200_000,
            max_rtt_ns: 500_000_000,
            min_probe_ns: 30_000,
            min_timeout_ns: 200_000,
            max_timeout_ns: 50_000_000,
            initial_window: 16,
            acknowledge_every: 16,
            max_overtaken_ns: 1_000_000,
        }
    }
}
