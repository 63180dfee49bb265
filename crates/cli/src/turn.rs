//! The dials of a program on the command line, and what has to be known of the link to turn them.

use crate::fault::Fault;
use crate::profiles;
use clap::Args;
use netdyno_apparatus_fi::between::Between;
use netdyno_apparatus_fi::page::{Carrier, Completion, GapAt};
use netdyno_protocol::dial::course::{Course, CourseError};
use netdyno_protocol::dial::profile::Profile;
use netdyno_protocol::dial::setting::Dial;
use netdyno_protocol::dial::spread::Turned;
use netdyno_protocol::dial::terms::{Dials, Own, TermsError};

/// The dials.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Dials (+ adds to what the link has, = sets it)")]
pub struct DialArgs {
    /// L: time on the way, as in +10us or =50us, or +10us±2us:lognormal where it varies
    #[arg(long, value_name = "TIME", value_parser = setting(Dial::Latency), allow_hyphen_values = true)]
    latency: Option<Turned>,
    /// o_s: processor time for each message sent
    #[arg(long, value_name = "TIME", value_parser = setting(Dial::SendOverhead), allow_hyphen_values = true)]
    send_overhead: Option<Turned>,
    /// o_r: processor time for each message received
    #[arg(long, value_name = "TIME", value_parser = setting(Dial::RecvOverhead), allow_hyphen_values = true)]
    recv_overhead: Option<Turned>,
    /// g_s: least time between two messages that a rank sends
    #[arg(long, value_name = "TIME", value_parser = setting(Dial::SendGap), allow_hyphen_values = true)]
    send_gap: Option<Turned>,
    /// g_r: least time between two messages that a rank receives
    #[arg(long, value_name = "TIME", value_parser = setting(Dial::RecvGap), allow_hyphen_values = true)]
    recv_gap: Option<Turned>,
    /// G: time for each byte but the first, as in +1ns/B
    #[arg(long, value_name = "TIME/B", value_parser = setting(Dial::GapPerByte), allow_hyphen_values = true)]
    gap_per_byte: Option<Turned>,
    /// The same as a bandwidth, as in =1GB/s
    #[arg(long, value_name = "RATE", value_parser = setting(Dial::GapPerByte), conflicts_with = "gap_per_byte", allow_hyphen_values = true)]
    bandwidth: Option<Turned>,
    /// Messages of a rank that may be on their way at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub capacity: Option<u32>,
    /// Dials that change with time: a file (docs/dials.md), or interrupt-coalescing, slow-start or
    /// congested-hour
    #[arg(long, value_name = "FILE|NAME")]
    profile: Option<String>,
    /// Seed of what varies by chance
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
}

fn setting(dial: Dial) -> impl Fn(&str) -> Result<Turned, String> + Clone + Send + Sync + 'static {
    move |text| Turned::parse(dial, text).map_err(|error| error.to_string())
}

impl DialArgs {
    /// How they are turned.
    pub fn dials(&self) -> Dials {
        let settings = [
            (Dial::Latency, self.latency),
            (Dial::SendOverhead, self.send_overhead),
            (Dial::RecvOverhead, self.recv_overhead),
            (Dial::SendGap, self.send_gap),
            (Dial::RecvGap, self.recv_gap),
            (Dial::GapPerByte, self.gap_per_byte.or(self.bandwidth)),
        ];
        let turned = settings.into_iter().filter_map(|(dial, setting)| Some((dial, setting?)));
        turned.fold(Dials::NONE, |dials, (dial, turned)| dials.with_turned(dial, turned))
    }

    /// How they change with time.
    pub fn profile(&self) -> Result<Option<Profile>, Fault> {
        self.profile.as_deref().map(profiles::read).transpose()
    }
}

/// How messages go from rank to rank.
#[derive(Clone, Debug, Args)]
pub struct RouteArgs {
    /// Provider of libfabric to run over, as in tcp or shm (MPICH alone); by default the one that
    /// FI_PROVIDER names, or tcp where there is no network with one of its own
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,

    /// How departure times travel: as stamps in the data of completions, or not at all, so that the
    /// time of arrival serves; by default stamps, where all ranks are on one host
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = ["auto", "stamp", "arrival"])]
    carrier: String,

    /// When a send ends whose endpoint asks for delivery, as those of MPICH do: with its departure
    /// (local), or when the receiver's answer would be back, 2 L later (delivered)
    #[arg(long, value_name = "WHEN", default_value = "local", value_parser = ["local", "delivered"])]
    completion: String,

    /// Where a message waits for the gap of the one before it: in the interface, so that the sender
    /// goes on at once, or at the sender, whose next send waits
    #[arg(long, value_name = "WHERE", default_value = "interface", value_parser = ["interface", "sender"])]
    gap_at: String,

    /// Turn the dials between two groups of ranks or hosts alone, as in 0-3,4-7 for two racks, or
    /// node1+node2,node3; what stays within a group is left as it is
    #[arg(long, value_name = "GROUP,GROUP")]
    between: Option<Between>,
}

impl RouteArgs {
    /// The provider, where it was named.
    pub fn provider(&self) -> Option<&str> {
        self.provider.as_deref()
    }

    /// Everything, by the names of its options.
    pub fn spelled(&self) -> [(&'static str, String); 5] {
        let between = self.between.as_ref().map_or("all ranks".into(), Between::to_string);
        [
            ("--provider", self.provider.clone().unwrap_or_else(|| "none".into())),
            ("--carrier", self.carrier.clone()),
            ("--completion", self.completion.clone()),
            ("--gap-at", self.gap_at.clone()),
            ("--between", between),
        ]
    }

    /// Between which ranks dials are turned.
    pub fn between(&self) -> Option<Between> {
        self.between.clone()
    }

    /// When sends end whose endpoint asks for delivery.
    pub fn completion(&self) -> Completion {
        let named = |completion: &Completion| completion.name() == self.completion;
        Completion::ALL.into_iter().find(named).unwrap_or_default()
    }

    /// Where a message waits for the gap of the one before it.
    pub fn gap_at(&self) -> GapAt {
        GapAt::ALL.into_iter().find(|gap_at| gap_at.name() == self.gap_at).unwrap_or_default()
    }

    /// How departure times travel.
    pub fn carrier(&self) -> Carrier {
        Carrier::ALL.into_iter().find(|carrier| carrier.name() == self.carrier).unwrap_or_default()
    }
}

/// Says now what no rank could do: a value below the link's own, one that needs the link's, or a dial
/// that is turned twice.
pub fn check(dials: &Dials, profile: Option<&Profile>, own: &Own) -> Result<(), Fault> {
    Course::new(dials, profile, own, 1.0).map(drop).map_err(|error| {
        let hint = match error {
            CourseError::Terms(TermsError::Unmeasured(_)) => ", or say what it has with --link",
            _ => "",
        };
        Fault::BadInput(format!("{error}{hint}"))
    })
}
