//! The path of a program's messages on the command line.

use crate::program::apparatus::grain_shift;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use netdyno_apparatus_fi::between::Between;
use netdyno_apparatus_fi::page::{Carrier, Completion, DialSetting, GapAt, Plan};
use std::env;

/// Heading of the options for the path of messages.
const ROUTE: &str = "How messages go";

/// Providers of libfabric up to version 2, without those that only hook others, and netdyno's own.
const PROVIDERS: &[&str] = &[
    "tcp",
    "shm",
    "netdyno",
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

/// Returns a parser of the values in `all`, each of which is spelled as its `name`.
fn named<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [T; N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let value = move |text| all.into_iter().find(|value| name(*value) == text);
    let admitted = PossibleValuesParser::new(all.map(name));
    admitted.map(move |text: String| value(text).expect("the parser admits no other name"))
}

/// How messages go from rank to rank.
#[derive(Clone, Debug, Args)]
pub struct RouteArgs {
    /// Run over this provider of libfabric, as in tcp or shm
    ///
    /// By default the one that FI_PROVIDER names, or tcp where there is no network with one of its own. shm is
    /// for MPICH alone. netdyno is this project's own, over Virtual Interfaces.
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
        value_parser = named(Carrier::ALL, Carrier::name),
        help_heading = ROUTE,
        hide_short_help = true
    )]
    carrier: Carrier,

    /// End sends that ask for delivery here or there
    ///
    /// Those of endpoints that ask for delivery, as MPICH's do: with their departure (local), or when the
    /// receiver's answer would be back, 2 L later (delivered).
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "local",
        value_parser = named(Completion::ALL, Completion::name),
        help_heading = ROUTE,
        hide_short_help = true
    )]
    completion: Completion,

    /// Let a message wait for its gap here
    ///
    /// In the interface, so that the sender goes on at once, or at the sender, whose next send waits.
    #[arg(
        long,
        value_name = "WHERE",
        default_value = "interface",
        value_parser = named(GapAt::ALL, GapAt::name),
        help_heading = ROUTE,
        hide_short_help = true
    )]
    gap_at: GapAt,

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
            ("--carrier", self.carrier.name().into()),
            ("--completion", self.completion.name().into()),
            ("--gap-at", self.gap_at.name().into()),
            ("--between", between),
        ]
    }

    /// Returns the first option that the user has set to another value than its default.
    pub fn first_chosen(&self) -> Option<&'static str> {
        let chosen = [
            self.provider.is_some(),
            self.carrier != Carrier::default(),
            self.completion != Completion::default(),
            self.gap_at != GapAt::default(),
            self.between.is_some(),
        ];
        let options = self.spelled().into_iter().zip(chosen);
        options.into_iter().find(|(_, is_chosen)| *is_chosen).map(|((option, _), _)| option)
    }

    /// Returns the groups of ranks between which messages are dialled.
    pub fn between(&self) -> Option<&Between> {
        self.between.as_ref()
    }

    /// Returns the plan of a run with these dial settings.
    pub fn plan(&self, settings: Vec<DialSetting>) -> Plan {
        Plan {
            carrier: self.carrier,
            settings,
            grain_shift: grain_shift(),
            between: self.between.clone(),
            completion: self.completion,
            gap_at: self.gap_at,
            ..Plan::default()
        }
    }
}
