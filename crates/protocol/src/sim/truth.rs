//! The model parameters of a simulated interface, and their spelling on the command line.
//!
//! For messages of one byte: `o_s=1us,o_r=2us,g=5us,L=7us[,capacity=64][,window=65536][,o_poll=0ns]`
//! `[,noise=0.05][,noise_shape=normal]`.
//!
//! For each further byte (LogGP, Alexandrov et al. 1995; LogGOPS, Hoefler et al. 2010):
//! `[,G=0.5ns/B][,O_s=0ns/B][,O_r=0ns/B]`.
//!
//! For a second protocol, which carries messages from some size on:
//! `[,change=8KiB][,change_G=0.25ns/B][,change_L=2us]`.
//!
//! For the part of the host that moves the data of messages ([`Messages`](super::Messages)):
//! `[,offload=on][,eager=8KiB][,steal=0ns/B][,helper=0ns/B]`.
//!
//! For the processor time of two processes: `[,spin=0][,softirq=0ns]`.
//!
//! For the registration of memory: see [`memory`](super::memory).

use super::memory::MemoryTruth;
use super::noise::{self, Noise};
use super::values::{
    Ps, TruthError, bytes, count, duration, error, per_byte, rounded, share_of_time, switch,
};

/// The model parameters of a simulated interface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Truth {
    /// Processor time to issue a message.
    pub o_s_ps: Ps,
    /// Processor time to receive a message.
    pub o_r_ps: Ps,
    /// Processor time of a poll that finds nothing.
    pub o_poll_ps: Ps,
    /// Time for which a message occupies the send stage, and the receive stage.
    pub g_ps: Ps,
    /// Time from the send stage to the receive stage.
    pub l_ps: Ps,
    /// Time for which each byte but the first occupies the send stage, and the receive stage.
    pub gap_per_byte_ps: f64,
    /// Processor time to issue each byte of a message but the first.
    pub o_s_per_byte_ps: f64,
    /// Processor time to receive each byte of a message but the first.
    pub o_r_per_byte_ps: f64,
    /// The protocol of large messages, if it differs.
    pub change: Option<Change>,
    /// Whether messages move while the processor is outside of any call.
    pub offload: bool,
    /// The largest message that moves by itself without `offload`.
    pub eager_bytes: usize,
    /// Processor time for each byte that arrives, taken from the running computation.
    pub steal_per_byte_ps: f64,
    /// Time of a spare core for each byte that arrives.
    pub helper_per_byte_ps: f64,
    /// Share of the time in which a process waits that it keeps its processor busy: 1 polls, and 0 blocks.
    pub spin: f64,
    /// Time for each message in soft interrupts, on a processor without a process.
    pub softirq_ps: Ps,
    /// Messages that can wait for the send stage before the issuer must wait.
    pub capacity: usize,
    /// Most requests without a reply.
    pub window: usize,
    /// The noise of every duration above.
    pub noise: Noise,
    /// The costs of registering memory.
    pub memory: MemoryTruth,
}

/// A second protocol, for large messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The smallest message that it carries, bytes.
    pub from_bytes: usize,
    /// Its gap per byte, ps.
    pub gap_per_byte_ps: f64,
    /// Its additional latency, such as the round trip of a rendezvous.
    pub extra_ps: Ps,
}

impl Truth {
    /// Returns the processor time to issue a message of `bytes`.
    pub fn o_s_of(&self, bytes: usize) -> Ps {
        self.o_s_ps + further_bytes(bytes, self.o_s_per_byte_ps)
    }

    /// Returns the processor time to receive a message of `bytes`.
    pub fn o_r_of(&self, bytes: usize) -> Ps {
        self.o_r_ps + further_bytes(bytes, self.o_r_per_byte_ps)
    }

    /// Returns the time from the first byte of a message of `bytes` to its last.
    pub fn data_of(&self, bytes: usize) -> Ps {
        let changed = self.change_of(bytes).map(|change| change.gap_per_byte_ps);
        further_bytes(bytes, changed.unwrap_or(self.gap_per_byte_ps))
    }

    /// Returns the time that each byte of a message of `bytes` takes from the send stage to the receive
    /// stage.
    pub fn l_of(&self, bytes: usize) -> Ps {
        self.l_ps + self.change_of(bytes).map_or(0, |change| change.extra_ps)
    }

    /// Returns the processor time that the arrival of a message of `bytes` takes from the running
    /// computation.
    pub fn steal_of(&self, bytes: usize) -> Ps {
        rounded(bytes as f64 * self.steal_per_byte_ps)
    }

    /// Returns the time that the arrival of a message of `bytes` takes on a spare core.
    pub fn helper_of(&self, bytes: usize) -> Ps {
        rounded(bytes as f64 * self.helper_per_byte_ps)
    }

    fn change_of(&self, bytes: usize) -> Option<Change> {
        self.change.filter(|change| bytes >= change.from_bytes)
    }
}

fn further_bytes(bytes: usize, per_byte_ps: f64) -> Ps {
    rounded(bytes.saturating_sub(1) as f64 * per_byte_ps)
}

/// Default length of the queue before the send stage, messages.
pub const DEFAULT_CAPACITY: usize = 64;
/// Default limit of requests without a reply, far more than the pipeline holds.
pub const DEFAULT_WINDOW: usize = 1 << 16;

impl core::str::FromStr for Truth {
    type Err = TruthError;

    fn from_str(text: &str) -> Result<Self, TruthError> {
        let (mut o_s, mut o_r, mut g, mut l, mut o_poll) = (None, None, None, None, None);
        let (mut capacity, mut window, mut share, mut shape) = (None, None, None, None);
        let (mut gap, mut o_s_byte, mut o_r_byte) = (None, None, None);
        let (mut change, mut change_gap, mut change_l) = (None, None, None);
        let (mut offload, mut eager, mut steal, mut helper) = (None, None, None, None);
        let (mut spin, mut softirq) = (None, None);
        let mut memory = MemoryTruth::default();
        for part in text.split(',') {
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| error(format_args!("'{part}' is not NAME=VALUE, as in o_s=1us")))?;
            let (name, value) = (name.trim(), value.trim());
            let fresh = match name {
                "o_s" => o_s.replace(duration(name, value)?).is_none(),
                "o_r" => o_r.replace(duration(name, value)?).is_none(),
                "o_poll" => o_poll.replace(duration(name, value)?).is_none(),
                "g" => g.replace(duration(name, value)?).is_none(),
                "L" => l.replace(duration(name, value)?).is_none(),
                "G" => gap.replace(per_byte(name, value)?).is_none(),
                "O_s" => o_s_byte.replace(per_byte(name, value)?).is_none(),
                "O_r" => o_r_byte.replace(per_byte(name, value)?).is_none(),
                "change" => change.replace(bytes(name, value)?).is_none(),
                "change_G" => change_gap.replace(per_byte(name, value)?).is_none(),
                "change_L" => change_l.replace(duration(name, value)?).is_none(),
                "offload" => offload.replace(switch(name, value)?).is_none(),
                "eager" => eager.replace(bytes(name, value)?).is_none(),
                "steal" => steal.replace(per_byte(name, value)?).is_none(),
                "helper" => helper.replace(per_byte(name, value)?).is_none(),
                "spin" => spin.replace(share_of_time(name, value)?).is_none(),
                "softirq" => softirq.replace(duration(name, value)?).is_none(),
                "capacity" => capacity.replace(count(name, value)?).is_none(),
                "window" => window.replace(count(name, value)?).is_none(),
                "noise" => share.replace(noise::share(value)?).is_none(),
                "noise_shape" => shape.replace(noise::shape(value)?).is_none(),
                _ => memory.take(name, value)?.ok_or_else(|| {
                    error(format_args!(
                        "'{name}' is not a parameter: use o_s, o_r, g, L, G, O_s, O_r, o_poll, \
                         change, change_G, change_L, offload, eager, steal, helper, spin, softirq, capacity, window, \
                         noise, noise_shape, register, fault, cached, kept, deregister, lock, unlock, lock_limit or create"
                    ))
                })?,
            };
            if !fresh {
                return Err(error(format_args!("'{name}' is given twice")));
            }
        }
        let need = |name: &str, value: Option<Ps>| {
            value.ok_or_else(|| error(format_args!("'{name}' is missing: o_s, o_r, g and L must be given")))
        };
        let change = match (change, change_gap, change_l) {
            (None, None, None) => None,
            (Some(from_bytes), change_gap, change_l) if change_gap.is_some() || change_l.is_some() => {
                Some(Change {
                    from_bytes,
                    gap_per_byte_ps: change_gap.or(gap).unwrap_or(0.0),
                    extra_ps: change_l.unwrap_or(0),
                })
            }
            _ => {
                return Err(error(format_args!(
                    "a change needs its size and what is different from there on, as in \
                     change=8KiB,change_G=0.25ns/B,change_L=2us"
                )));
            }
        };
        let truth = Self {
            gap_per_byte_ps: gap.unwrap_or(0.0),
            o_s_per_byte_ps: o_s_byte.unwrap_or(0.0),
            o_r_per_byte_ps: o_r_byte.unwrap_or(0.0),
            change,
            offload: offload.unwrap_or(true),
            eager_bytes: eager.unwrap_or(0),
            steal_per_byte_ps: steal.unwrap_or(0.0),
            helper_per_byte_ps: helper.unwrap_or(0.0),
            spin: spin.unwrap_or(0.0),
            softirq_ps: softirq.unwrap_or(0),
            o_s_ps: need("o_s", o_s)?,
            o_r_ps: need("o_r", o_r)?,
            g_ps: need("g", g)?,
            l_ps: need("L", l)?,
            o_poll_ps: o_poll.unwrap_or(0),
            capacity: capacity.unwrap_or(DEFAULT_CAPACITY),
            window: window.unwrap_or(DEFAULT_WINDOW),
            noise: Noise { share: share.unwrap_or(0.0), shape: shape.unwrap_or_default() },
            memory,
        };
        if truth.o_s_ps == 0 || truth.o_r_ps == 0 {
            return Err(error(format_args!("o_s and o_r must be above 0: a message takes processor time")));
        }
        Ok(truth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use proptest::prelude::*;

    #[test]
    fn the_spelling_of_the_manual_parses() {
        let truth: Truth =
            "o_s=1us,o_r=2us,g=5us,L=7us,capacity=8,noise=0.05,noise_shape=laplace".parse().unwrap();
        assert_eq!(
            (truth.o_s_ps, truth.o_r_ps, truth.g_ps, truth.l_ps),
            (1_000_000, 2_000_000, 5_000_000, 7_000_000)
        );
        assert_eq!(truth.noise, Noise { share: 0.05, shape: noise::Shape::Laplace });
        assert_eq!((truth.capacity, truth.window), (8, DEFAULT_WINDOW));
        assert_eq!("o_s=0.5us,o_r=1.5µs,g=0ns,L=0s".parse::<Truth>().unwrap().o_s_ps, 500_000);
    }

    #[test]
    fn what_a_byte_costs_and_where_that_changes() {
        let base = "o_s=1us,o_r=2us,g=5us,L=7us";
        let truth = |rest: &str| format!("{base}{rest}").parse::<Truth>().unwrap();
        let plain = truth("");
        assert_eq!((plain.o_s_of(4096), plain.data_of(4096), plain.l_of(4096)), (1_000_000, 0, 7_000_000));
        let grown = truth(",G=0.5ns/B,O_s=1ns/B,O_r=2ns/B");
        assert_eq!((grown.data_of(0), grown.data_of(1), grown.data_of(2)), (0, 0, 500));
        assert_eq!((grown.o_s_of(3), grown.o_r_of(3)), (1_002_000, 2_004_000));
        let changed = truth(",G=0.5ns/B,change=8KiB,change_G=0.25ns/B,change_L=2us");
        assert_eq!((changed.data_of(8191), changed.l_of(8191)), (4_095_000, 7_000_000));
        assert_eq!((changed.data_of(8193), changed.l_of(8192)), (2_048_000, 9_000_000));
        assert_eq!(truth(",G=1ns/B,change=100,change_L=1us").data_of(101), 100_000);
        assert_eq!(truth(",change=1MiB,change_L=1us").change.unwrap().from_bytes, 1 << 20);
    }

    #[test]
    fn who_moves_the_data() {
        let truth = |rest: &str| format!("o_s=1us,o_r=2us,g=5us,L=7us{rest}").parse::<Truth>().unwrap();
        let plain = truth("");
        assert_eq!((plain.offload, plain.steal_of(1000), plain.helper_of(1000)), (true, 0, 0));
        let moved = truth(",offload=off,eager=8KiB,steal=0.1ns/B,helper=0.2ns/B");
        assert_eq!((moved.offload, moved.eager_bytes), (false, 8192));
        assert_eq!((moved.steal_of(1000), moved.helper_of(1000)), (100_000, 200_000));
    }

    #[test]
    fn each_mistake_is_named() {
        for (text, names) in [
            ("G=1ns", "G=0.5ns/B"),
            ("G=1/B", "unit"),
            ("O_s=1s/B", "out of range"),
            ("change=0", "2B to"),
            ("change=8KB", "8KiB"),
            ("o_s=1us,o_r=1us,g=1us,L=1us,change=8KiB", "change_G"),
            ("o_s=1us,o_r=1us,g=1us,L=1us,change_L=1us", "change=8KiB"),
            ("", "NAME=VALUE"),
            ("o_s", "NAME=VALUE"),
            ("o_s=1", "unit"),
            ("o_s=1parsec", "unit"),
            ("o_s=us", "not a number"),
            ("o_s=-1us", "out of range"),
            ("o_s=NaNus", "unit"),
            ("o_s=1us,o_s=2us", "twice"),
            ("o_s=1us,o_r=1us,g=1us", "'L' is missing"),
            ("o_s=0ns,o_r=1us,g=1us,L=1us", "above 0"),
            ("os=1us", "not a parameter"),
            ("offload=yes", "offload=on"),
            ("steal=1ns", "steal=0.5ns/B"),
            ("eager=1", "2B to"),
            ("spin=2", "from 0 to 1"),
            ("softirq=1", "unit"),
            ("capacity=0", "whole number"),
            ("noise=0.5", "share"),
            ("noise_shape=flat", "exponential"),
        ] {
            let message = format!("{}", text.parse::<Truth>().unwrap_err());
            assert!(message.contains(names), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[a-zA-Z_0-9=,.µ+/-]{0,40}") {
            let _ = text.parse::<Truth>();
        }
    }
}
