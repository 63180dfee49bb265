//! The statistics of all ranks of a run: whether the hook was in force in every one, and its work.

use netdyno_apparatus_fi::account::{Account, State, Word};
use netdyno_apparatus_fi::between::Between;
use netdyno_measure::show::Time;
use serde::Serialize;
use std::fmt::Write as _;

/// Advice for messages that do not go through libfabric.
const ROUTES: &str = "MPICH needs its ofi netmod (MPIR_CVAR_CH4_NETMOD=ofi MPIR_CVAR_NOLOCAL=1; Debian's has \
none), Open MPI --mca pml cm --mca mtl ofi and a provider (--provider)";

/// The statistics of one rank.
#[derive(Clone, Debug, Serialize)]
pub struct Rank {
    /// Rank number, if the launcher set it.
    pub rank: Option<u64>,
    pid: u64,
    state: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    failure: String,
    /// Carrier of the departure times.
    pub carrier: &'static str,
    /// Messages sent.
    pub sent: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Messages received.
    pub received: u64,
    received_bytes: u64,
    /// One-sided operations.
    pub one_sided: u64,
    /// Bytes of one-sided operations.
    pub one_sided_bytes: u64,
    /// Messages sent and one-sided operations that have no bytes.
    pub empty: u64,
    held: u64,
    held_ns: f64,
    held_ends: u64,
    send_overhead_ns: f64,
    recv_overhead_ns: f64,
    /// Delay between the due time and the release of held messages.
    released_late_ns: Lateness,
    late: u64,
    unstamped: u64,
    too_far_ahead: u64,
    refused: u64,
    spared: u64,
    /// Sends with `FI_DELIVERY_COMPLETE`: those completed at their departure, and those held until their
    /// delivery was known.
    ended_locally: u64,
    ended_delivered: u64,
    undialled_queues: u64,
    undialled_counters: u64,
    undialled_endpoints: u64,
}

/// Quantiles, as far as there are samples.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Lateness {
    p50: Option<f64>,
    p90: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
}

impl Lateness {
    fn of(counts: &[(f64, u64)]) -> Self {
        let all: u64 = counts.iter().map(|(_, count)| count).sum();
        let at = |share: f64| {
            let wanted = (share * all as f64).ceil().max(1.0) as u64;
            let mut so_far = 0;
            counts.iter().find(|(_, count)| {
                so_far += count;
                so_far >= wanted
            })
        };
        let value = |share| at(share).map(|(ns, _)| *ns);
        Self { p50: value(0.5), p90: value(0.9), p99: value(0.99), max: value(1.0) }
    }
}

impl Rank {
    /// Returns the bytes that it sent, but for the first of each message and operation.
    pub fn further_bytes(&self) -> u64 {
        let with_bytes = (self.sent + self.one_sided).saturating_sub(self.empty);
        (self.sent_bytes + self.one_sided_bytes).saturating_sub(with_bytes)
    }

    fn of(account: &Account) -> Self {
        let state = match account.state() {
            Some(State::Loaded) => "loaded",
            Some(State::Chosen) => "chosen",
            Some(State::InForce) => "in force",
            Some(State::Failed) | None => "failed",
        };
        Self {
            rank: account.said(Word::Rank),
            pid: account.get(Word::Pid),
            state,
            failure: account.failure(),
            carrier: if account.get(Word::Stamps) == 1 { "stamp" } else { "arrival" },
            sent: account.get(Word::Sent),
            sent_bytes: account.get(Word::SentBytes),
            received: account.get(Word::Received),
            received_bytes: account.get(Word::ReceivedBytes),
            one_sided: account.get(Word::OneSided),
            one_sided_bytes: account.get(Word::OneSidedBytes),
            empty: account.get(Word::Empty),
            held: account.get(Word::Held),
            held_ns: account.ns(Word::HeldTicks),
            held_ends: account.get(Word::HeldEnds),
            send_overhead_ns: account.ns(Word::SendOverheadTicks),
            recv_overhead_ns: account.ns(Word::RecvOverheadTicks),
            released_late_ns: Lateness::of(&account.lateness()),
            late: account.get(Word::Late),
            unstamped: account.get(Word::Unstamped),
            too_far_ahead: account.get(Word::TooFarAhead),
            refused: account.get(Word::Refused),
            spared: account.get(Word::Spared),
            ended_locally: account.get(Word::EndedLocally),
            ended_delivered: account.get(Word::EndedDelivered),
            undialled_queues: account.get(Word::BareQueues),
            undialled_counters: account.get(Word::Counters),
            undialled_endpoints: account.get(Word::OtherEndpoints),
        }
    }
}

/// The statistics of all ranks of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Ledger {
    /// Number of ranks according to the launcher, or 0 if it did not set that.
    expected: u64,
    /// The ranks that left statistics.
    pub ranks: Vec<Rank>,
}

impl Ledger {
    /// Collects the statistics that the ranks left.
    pub fn of(accounts: &[Account]) -> Self {
        let expected = accounts.iter().filter_map(|account| account.said(Word::Ranks)).max().unwrap_or(0);
        // If some processes have ranks, a process without one is a daemon of the launcher.
        let has_ranks = accounts.iter().any(|account| account.said(Word::Rank).is_some());
        let counted = accounts.iter().filter(|account| !has_ranks || account.said(Word::Rank).is_some());
        Self { expected, ranks: counted.map(Rank::of).collect() }
    }

    /// Returns the number of messages and one-sided operations of all ranks.
    pub fn messages(&self) -> u64 {
        self.ranks.iter().map(|rank| rank.sent + rank.one_sided).sum()
    }

    /// Returns the reason why the hook was not in force in every rank, with advice.
    pub fn failing(&self) -> Option<String> {
        if self.ranks.is_empty() {
            return Some(
                "no process of the program loaded the hook: run an MPI program over libfabric, with a launcher that \
passes on the environment (docs/apparatus.md)"
                    .into(),
            );
        }
        if let Some(rank) = self.ranks.iter().find(|rank| rank.state == "failed") {
            return Some(format!("the hook failed in {}: {}", rank.name(), rank.failure));
        }
        let in_force = self.ranks.iter().filter(|rank| rank.state == "in force").count() as u64;
        let all = self.expected.max(self.ranks.len() as u64);
        if in_force < all {
            let why = match self.ranks.iter().find(|rank| rank.state != "in force") {
                Some(rank) if rank.state == "loaded" => "libfabric was there and opened no fabric".to_owned(),
                Some(_) => "no endpoint of the kind that reaches all peers (FI_EP_RDM) was used".to_owned(),
                None => "the others were not heard of: is the folder of temporary files one for all hosts?"
                    .to_owned(),
            };
            return Some(format!("the hook was in force in {in_force} of {all} ranks ({why}): {ROUTES}"));
        }
        None
    }

    /// Reports whether a rank opened a fabric of libfabric.
    pub fn has_fabric(&self) -> bool {
        self.ranks.iter().any(|rank| rank.state != "loaded")
    }

    /// Returns an error text if no rank opened a fabric of the provider, although ranks loaded libfabric.
    pub fn without_provider(&self, provider: &str) -> Option<String> {
        (!self.ranks.is_empty() && !self.has_fabric()).then(|| {
            format!(
                "no rank opened the provider '{provider}' of libfabric: give --provider one that `fi_info -l` lists"
            )
        })
    }

    /// Returns an error text if several ranks ended without a message through the hook: they used another
    /// path.
    pub fn is_silent(&self) -> Option<String> {
        let is_silent = self.ranks.len() > 1 && self.messages() == 0;
        is_silent.then(|| format!("no message of any rank went through the hook: {ROUTES}"))
    }

    /// Returns the warnings about the figures. `between` are the groups of ranks, if only messages between
    /// two groups were dialled.
    pub fn doubts(&self, between: Option<&Between>) -> Vec<String> {
        let sum = |of: fn(&Rank) -> u64| self.ranks.iter().map(of).sum::<u64>();
        let mut doubts = Vec::new();
        let mut doubt = |count: u64, text: &str| {
            if count > 0 {
                doubts.push(format!("{} {text}", count));
            }
        };
        doubt(
            sum(|rank| rank.late),
            "messages arrived later than the dials asked for: the link is no faster",
        );
        doubt(sum(|rank| rank.unstamped), "messages could not bring a departure time: their arrival served");
        doubt(
            sum(|rank| rank.too_far_ahead),
            "messages departed too far ahead to be written down: less was waited for",
        );
        doubt(
            sum(|rank| rank.one_sided),
            "one-sided operations were dialled at their origin alone: memory changed early",
        );
        doubt(sum(|rank| rank.undialled_counters), "counters of what arrives were not dialled");
        doubt(sum(|rank| rank.undialled_queues), "completion queues say too little to dial what they bring");
        doubt(sum(|rank| rank.undialled_endpoints), "scalable endpoints were not dialled");
        if self.messages() > 0 && sum(|rank| rank.spared) == self.messages() {
            let ranks = self.ranks.len() as u64;
            doubts.push(match between.and_then(|between| Some((between, between.rank_beyond(ranks)?))) {
                Some((between, rank)) => format!(
                    "no message was dialled: --between {between} names rank {rank}, and the ranks are 0 to {}",
                    ranks - 1
                ),
                None => "no message was dialled: none went from one group of --between to the other".into(),
            });
        }
        doubts
    }

    /// Returns a table for the user, with a line for each rank.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7}\n",
            "rank", "sent", "received", "held", "held for", "o_s, o_r", "late p99", "carrier"
        );
        for rank in &self.ranks {
            let late = rank.released_late_ns.p99.map_or("-".to_owned(), |ns| Time(ns).to_string());
            let _ = writeln!(
                text,
                "{:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7}",
                rank.rank.map_or("?".to_owned(), |rank| rank.to_string()),
                rank.sent,
                rank.received,
                rank.held,
                Time(rank.held_ns).to_string(),
                Time(rank.send_overhead_ns + rank.recv_overhead_ns).to_string(),
                late,
                rank.carrier
            );
        }
        text
    }
}

impl Rank {
    fn name(&self) -> String {
        self.rank.map_or_else(|| format!("process {}", self.pid), |rank| format!("rank {rank}"))
    }
}
