//! The dials of a program on the command line, and their checks against the link.

use crate::program::profiles;
use crate::terminal::fault::Fault;
use crate::terminal::voice::note;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use netdyno_protocol::dial::parameters::{Dials, DialsError, Own};
use netdyno_protocol::dial::profile::Profile;
use netdyno_protocol::dial::spread::VaryingSetting;
use netdyno_protocol::dial::table::Dial;
use netdyno_protocol::dial::time_profile::{TimeProfile, TimeProfileError};
use std::env;
use std::ffi::OsString;

/// Heading of the dials, in the place of [`SLOW`](crate::options::headings::SLOW).
pub const DIALS: &str = "A link made slow (+ adds to what the link has, = sets it)";

/// The value of a dial's option.
pub trait DialValue: Clone + Send + Sync + 'static {
    /// The beginning of the help.
    const VERB: &'static str;

    /// Returns the name of the value, an example of it, and the rest of the long help.
    fn describe(is_per_byte: bool) -> [&'static str; 3];

    /// Parses the value of the option of a dial.
    fn read(dial: Dial, text: &str) -> Result<Self, String>;
}

/// An option for each dial, with the values of those that are given.
#[derive(Clone, Debug)]
pub struct EachDial<T>(pub Vec<(Dial, T)>);

impl<T: DialValue> Args for EachDial<T> {
    fn augment_args(command: Command) -> Command {
        command.args(Dial::ALL.map(option::<T>))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<T: DialValue> FromArgMatches for EachDial<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |dial: Dial| Some((dial, matches.get_one::<T>(dial.name())?.clone()));
        Ok(Self(Dial::ALL.into_iter().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns the option of a dial. The first dial with a unit has the example.
fn option<T: DialValue>(dial: Dial) -> Arg {
    let [value_name, example, more] = T::describe(dial.is_per_byte());
    let help = format!("{} {}, {}", T::VERB, dial.symbol(), dial.meaning());
    let arg = Arg::new(dial.name())
        .long(dial.name())
        .help_heading(DIALS)
        .value_name(value_name)
        .value_parser(move |text: &str| T::read(dial, text))
        .allow_hyphen_values(true);
    let mut same_unit = Dial::ALL.into_iter().filter(|other| other.is_per_byte() == dial.is_per_byte());
    if same_unit.next() != Some(dial) {
        return arg.help(help);
    }
    let help = format!("{help}, as in {example}");
    arg.long_help(format!("{help}\n\n{more}")).help(help)
}

impl DialValue for VaryingSetting {
    const VERB: &'static str = "Set or add to";

    fn describe(is_per_byte: bool) -> [&'static str; 3] {
        match is_per_byte {
            true => ["TIME/B", "+1ns/B", "Each byte of a message but the first."],
            false => {
                ["TIME", "+10us", "Or =50us, which sets it; +10us±2us:lognormal where it varies by chance."]
            }
        }
    }

    fn read(dial: Dial, text: &str) -> Result<Self, String> {
        Self::parse(dial, text).map_err(|error| error.to_string())
    }
}

fn bandwidth(text: &str) -> Result<VaryingSetting, String> {
    VaryingSetting::read(Dial::GapPerByte, text)
}

/// The dials.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = DIALS)]
pub struct DialArgs {
    /// The dial settings.
    #[command(flatten)]
    settings: EachDial<VaryingSetting>,
    /// Set G as a bandwidth, as in =1GB/s
    #[arg(
        long,
        value_name = "RATE",
        value_parser = bandwidth,
        conflicts_with = Dial::GapPerByte.name(),
        allow_hyphen_values = true
    )]
    bandwidth: Option<VaryingSetting>,
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

impl DialArgs {
    /// Returns the dial setting.
    pub fn dials(&self) -> Dials {
        let bandwidth = self.bandwidth.map(|setting| (Dial::GapPerByte, setting));
        let settings = self.settings.0.iter().copied().chain(bandwidth);
        settings.fold(Dials::NONE, |dials, (dial, setting)| dials.with_varying(dial, setting))
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
    TimeProfile::new(dials, profile, own, 1.0).map(drop).map_err(|error| {
        let hint = match error {
            TimeProfileError::Dials(DialsError::Unmeasured(_)) => ", or say what it has with --link",
            _ => "",
        };
        Fault::BadInput(format!("{error}{hint}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::bench::BenchArgs;

    /// The table is the only place of a dial. These texts have more to say than the table.
    #[test]
    fn the_documents_and_the_help_name_every_dial() {
        let bench = BenchArgs::augment_args(Command::new("logp"));
        let dials = bench.get_arguments().find(|arg| arg.get_id() == "dials").unwrap();
        let help = dials.get_long_help().unwrap().to_string();
        for dial in Dial::ALL {
            assert!(help.contains(dial.name()), "{dial}: {help}");
            for text in
                [include_str!("../../../../docs/dials.md"), include_str!("../../../../docs/apparatus.md")]
            {
                assert!(text.contains(&format!("{dial}`")), "{dial}");
            }
        }
    }
}
