//! The dials of a program on the command line, and their checks against the link.

use crate::program::profiles;
use crate::terminal::fault::Fault;
use crate::terminal::voice::note;
use clap::Args;
use netdyno_apparatus_fi::between::Between;
use netdyno_apparatus_fi::page::{Carrier, Completion, GapAt};
use netdyno_protocol::dial::course::{Course, CourseError};
use netdyno_protocol::dial::profile::Profile;
use netdyno_protocol::dial::setting::Dial;
use netdyno_protocol::dial::spread::Turned;
use netdyno_protocol::dial::terms::{Dials, Own, TermsError};
use std::env;
use std::ffi::OsString;

/// Heading of the dials, in the place of [`SLOW`](crate::options::headings::SLOW).
pub const DIALS: &str = "A link made slow (+ adds to what the link has, = sets it)";
/// Heading of the options for the path of messages.
const ROUTE: &str = "How messages go";

/// Providers of libfabric up to version 2, without those that only hook others.
const PROVIDERS: &[&str] = &[
    "tcp",
    "shm",
    "udp",
    "sockets",
    "net",
    "verbs",
    "efa",
    "cxi",
    "opx",
    "psm",
    "psm2",
    "psm3",
    "ucx",
    "mlx",
    "lnx",
    "lpp",
    "sm2",
    "usnic",
    "gni",
    "bgq",
    "netdir",
    "mrail",
    "rstream",
    "ofi_rxm",
    "ofi_rxd",
    "ofi_mrail",
];

/// The dials.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = DIALS)]
pub struct DialArgs {
    /// Set or add to L, time on the way, as in +10us
    ///
    /// Or =50us, which sets it; +10us±2us:lognormal where it varies by chance.
    #[arg(long, value_name = "TIME", value_parser = setting(Dial::Latency), allow_hyphen_values = true)]
    latency: Option<Turned>,
    /// Set or add to o_s, processor time of a send
    #[arg(long, value_name = "TIME", value_parser = setting(Dial::SendOverhead), allow_hyphen_values = true)]
    send_overhead: Option<Turned>,
    /// Set or add to o_r, processor time of a receive
    #[arg(long, value_name = "TIME", value_parser = setting(Dial::RecvOverhead), allow_hyphen_values = true)]
    recv_overhead: Option<Turned>,
    /// Set or add to g_s, least time between sends
    #[arg(long, value_name = "TIME", value_parser = setting(Dial::SendGap), allow_hyphen_values = true)]
    send_gap: Option<Turned>,
    /// Set or add to g_r, least time between receives
    #[arg(long, value_name = "TIME", value_parser = setting(Dial::RecvGap), allow_hyphen_values = true)]
    recv_gap: Option<Turned>,
    /// Set or add to G, time of a byte, as in +1ns/B
    ///
    /// Each byte of a message but the first.
    #[arg(long, value_name = "TIME/B", value_parser = setting(Dial::GapPerByte), allow_hyphen_values = true)]
    gap_per_byte: Option<Turned>,
    /// Set G as a bandwidth, as in =1GB/s
    #[arg(
        long,
        value_name = "RATE",
        value_parser = setting(Dial::GapPerByte),
        conflicts_with = "gap_per_byte",
        allow_hyphen_values = true
    )]
    bandwidth: Option<Turned>,
    /// Let this many messages of a rank be on their way at once
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000),
        hide_short_help = true
    )]
    pub capacity: Option<u32>,
    /// Change them with time, by a file or a profile
    ///
    /// A file (docs/dials.md), or interrupt-coalescing, slow-start or congested-hour.
    #[arg(long, value_name = "FILE|NAME")]
    profile: Option<String>,
    /// Seed what varies by chance
    #[arg(long, value_name = "N", default_value = "1", hide_short_help = true)]
    pub seed: u64,
}

fn setting(dial: Dial) -> impl Fn(&str) -> Result<Turned, String> + Clone + Send + Sync + 'static {
    move |text| Turned::parse(dial, text).map_err(|error| error.to_string())
}

impl DialArgs {
    /// Returns the dial setting.
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

    /// Reports whether any dial option is given.
    pub fn are_turned(&self) -> bool {
        self.dials() != Dials::NONE || self.profile.is_some() || self.capacity.is_some()
    }

    /// Returns the time profile, if there is one.
    pub fn profile(&self) -> Result<Option<Profile>, Fault> {
        self.profile.as_deref().map(profiles::read).transpose()
    }
}

/// Parses the name of a provider, or several stacked with `;`. The check is here because every rank would
/// print libfabric's error, in many lines.
fn provider(text: &str) -> Result<String, String> {
    let is_known = |name: &str| PROVIDERS.contains(&name);
    // A user's folder of providers may have others.
    if text.split(';').all(is_known) || env::var_os("FI_PROVIDER_PATH").is_some() {
        return Ok(text.into());
    }
    let names = PROVIDERS[..8].join(", ");
    Err(format!(
        "libfabric has no provider of that name: use {names} … (`fi_info -l` lists those that are here)"
    ))
}

/// How messages go from rank to rank.
#[derive(Clone, Debug, Args)]
pub struct RouteArgs {
    /// Run over this provider of libfabric, as in tcp or shm
    ///
    /// By default the one that FI_PROVIDER names, or tcp where there is no network with one of its own. shm is
    /// for MPICH alone.
    #[arg(long, value_name = "NAME", value_parser = provider, help_heading = ROUTE, hide_short_help = true)]
    provider: Option<String>,

    /// Send departure times as stamps, or go by arrival
    ///
    /// Stamps travel in the data of completions; without them the time of arrival serves. By default stamps,
    /// where all ranks are on one host.
    #[arg(
        long,
        value_name = "HOW",
        default_value = "auto",
        value_parser = ["auto", "stamp", "arrival"],
        help_heading = ROUTE,
        hide_short_help = true
    )]
    carrier: String,

    /// End sends that ask for delivery here or there
    ///
    /// Those of endpoints that ask for delivery, as MPICH's do: with their departure (local), or when the
    /// receiver's answer would be back, 2 L later (delivered).
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "local",
        value_parser = ["local", "delivered"],
        help_heading = ROUTE,
        hide_short_help = true
    )]
    completion: String,

    /// Let a message wait for its gap here
    ///
    /// In the interface, so that the sender goes on at once, or at the sender, whose next send waits.
    #[arg(
        long,
        value_name = "WHERE",
        default_value = "interface",
        value_parser = ["interface", "sender"],
        help_heading = ROUTE,
        hide_short_help = true
    )]
    gap_at: String,

    /// Turn the dials between two groups of ranks alone, as in 0-3,4-7
    ///
    /// Groups of ranks or hosts, as in 0-3,4-7 for two racks, or node1+node2,node3. What stays within a group is
    /// left as it is.
    #[arg(long, value_name = "GROUP,GROUP", help_heading = ROUTE, hide_short_help = true)]
    between: Option<Between>,
}

impl RouteArgs {
    /// Returns the provider, if the user named one.
    pub fn provider(&self) -> Option<&str> {
        self.provider.as_deref()
    }

    /// Returns the options, each with its name.
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

    /// Returns the groups of ranks between which messages are dialled.
    pub fn between(&self) -> Option<Between> {
        self.between.clone()
    }

    /// Returns the event that completes sends with `FI_DELIVERY_COMPLETE`.
    pub fn completion(&self) -> Completion {
        let named = |completion: &Completion| completion.name() == self.completion;
        Completion::ALL.into_iter().find(named).unwrap_or_default()
    }

    /// Returns the place where a message waits for the gap after the previous one.
    pub fn gap_at(&self) -> GapAt {
        GapAt::ALL.into_iter().find(|gap_at| gap_at.name() == self.gap_at).unwrap_or_default()
    }

    /// Returns the carrier of departure times.
    pub fn carrier(&self) -> Carrier {
        Carrier::ALL.into_iter().find(|carrier| carrier.name() == self.carrier).unwrap_or_default()
    }
}

/// Rejects a dial option after the program, because the program would take it; if other dials are set, prints
/// only a warning. Rejects an unknown option in the program's place. Words after `--` belong to the program.
pub fn check_place(command: &[OsString], is_dialled: bool) -> Result<(), Fault> {
    let ahead = env::args_os().count().saturating_sub(command.len());
    if env::args_os().take(ahead).any(|word| word == "--") {
        return Ok(());
    }
    let program = command.first().map(|word| word.to_string_lossy()).unwrap_or_default();
    if program.starts_with('-') {
        return Err(Fault::BadInput(format!("'{program}' is neither an option nor a program (see --help)")));
    }
    let names: Vec<&str> = Dial::ALL.into_iter().map(Dial::name).chain(["bandwidth", "between"]).collect();
    let mut options = command.iter().skip(1).filter_map(|word| word.to_str()?.strip_prefix("--"));
    let dial = options.find_map(|option| names.iter().find(|&&name| option.split('=').next() == Some(name)));
    let Some(dial) = dial else { return Ok(()) };
    let text = format!(
        "--{dial} stands behind the program, which takes it for its own: put it before the program, as in \
         `--{dial} … -- {program}`"
    );
    if is_dialled {
        note(&format!("warning: {text}"));
        return Ok(());
    }
    Err(Fault::BadInput(text))
}

/// Rejects settings that no rank could apply: a value below the link's own, a value that needs an unknown
/// parameter of the link, or a dial that is set twice.
pub fn check(dials: &Dials, profile: Option<&Profile>, own: &Own) -> Result<(), Fault> {
    Course::new(dials, profile, own, 1.0).map(drop).map_err(|error| {
        let hint = match error {
            CourseError::Terms(TermsError::Unmeasured(_)) => ", or say what it has with --link",
            _ => "",
        };
        Fault::BadInput(format!("{error}{hint}"))
    })
}
