//! The errors of the command and their exit codes: 1 if measuring failed, 2 for bad input.

use crate::terminal::voice::say;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use netdyno_host::standard::output_was_closed;
use std::env;
use std::error::Error as _;
use std::ffi::OsString;
use std::io;
use std::num::ParseIntError;
use std::process::ExitCode;

/// Exit code of `run`, `sweep` and `launch` for an error of netdyno itself, not of the program.
pub const RUNNER: u8 = 125;

/// Exit code after a signal ended the run and the result so far was written.
const CUT_SHORT: u8 = 130;

/// The reason why the command ends without its result, in one line.
#[derive(Debug)]
pub enum Fault {
    /// The request is invalid or cannot be satisfied: exit code 2.
    BadInput(String),
    /// Measuring failed: exit code 1.
    Failed(String),
    /// A signal ended the run without a result: exit code 128 plus its number.
    Interrupted(i32),
    /// A signal ended the run early, and the result of its launches is written: exit code 130 for every
    /// signal.
    CutShort {
        /// The launches of each layer in the result.
        launches: usize,
    },
    /// A signal ended a command that runs until a signal arrives: exit code 128 plus its number.
    Stopped(i32),
    /// No error: clap's help or version, which the user asked for.
    Help(clap::Error),
    /// An error with another exit code: `run`, `sweep` and `launch` use those of `timeout`(1).
    Ended(u8, String),
    /// An error that this process or another process of the job has reported already, with its exit code.
    Quiet(u8),
}

impl Fault {
    /// Turns clap's error into one line. `example_of` returns an example of a verb.
    pub fn of_command_line(error: clap::Error, example_of: fn(&str) -> Option<&'static str>) -> Self {
        match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Self::Help(error),
            _ => Self::BadInput(one_line(&error, example_of)),
        }
    }

    /// Turns an interruption into [`Fault::Stopped`], for a command that has no result to lose.
    pub fn stopped(self) -> Self {
        match self {
            Self::Interrupted(signal) => Self::Stopped(signal),
            other => other,
        }
    }

    /// Turns an error of netdyno into exit code 125, for verbs that pass on a program's status.
    pub fn of_runner(self) -> Self {
        match self {
            Self::BadInput(text) | Self::Failed(text) => Self::Ended(RUNNER, text),
            other => other,
        }
    }

    /// Prints the message and returns the exit code.
    pub fn exit(self) -> ExitCode {
        ExitCode::from(self.told().code())
    }

    /// Returns the exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Help(_) => 0,
            Self::Failed(_) => 1,
            Self::BadInput(_) => 2,
            Self::Interrupted(signal) | Self::Stopped(signal) => u8::try_from(128 + signal).unwrap_or(1),
            Self::CutShort { .. } => CUT_SHORT,
            Self::Ended(code, _) | Self::Quiet(code) => *code,
        }
    }

    /// Prints the message. The returned error keeps only the exit code.
    pub fn told(self) -> Self {
        match &self {
            Self::BadInput(text) | Self::Failed(text) | Self::Ended(_, text) => {
                // Some are of another process.
                say(&format!("error: {}", clean(text)))
            }
            Self::Interrupted(_) => say("interrupted: nothing was written"),
            Self::CutShort { launches } => {
                say(&format!("interrupted: wrote the result of {launches} launches"));
            }
            Self::Stopped(_) => say("stopped"),
            Self::Quiet(_) => {}
            Self::Help(_) if output_was_closed() => {
                return Self::Failed("cannot write to standard output: it is closed".into()).told();
            }
            Self::Help(help) => {
                if let Err(error) = help.print()
                    && error.kind() != io::ErrorKind::BrokenPipe
                {
                    return Self::Failed(format!("cannot write to standard output: {error}")).told();
                }
            }
        }
        Self::Quiet(self.code())
    }
}

/// Replaces the control characters of a foreign text, so that it cannot control the terminal.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Returns the verb on the command line: its first word that `is_verb`, or else its first word that is no option. A
/// word before the verb may be the value of an option.
pub fn verb_asked_for(is_verb: impl Fn(&str) -> bool) -> Option<OsString> {
    let words = || env::args_os().skip(1).filter(|word| !word.as_encoded_bytes().starts_with(b"-"));
    words().find(|word| word.to_str().is_some_and(&is_verb)).or_else(|| words().next())
}

/// Shortens clap's message of several lines to one line.
fn one_line(error: &clap::Error, example_of: fn(&str) -> Option<&'static str>) -> String {
    let verb = verb_asked_for(|word| example_of(word).is_some()).and_then(|verb| verb.into_string().ok());
    let known = verb.as_deref().and_then(|verb| Some((verb, example_of(verb)?)));
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    let mut line = first.strip_prefix("error: ").unwrap_or(first).trim_end_matches(':').to_owned();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        line = "a command is missing".into();
        if let Some((_, example)) = known {
            line = format!("{line}, as in `{example}`");
        }
    }
    if let Some((option, value, why)) = bad_value(error) {
        line = format!("{option} '{value}': {why}");
    }
    if error.kind() == ErrorKind::MissingRequiredArgument {
        let missing: Vec<&str> =
            text.lines().skip(1).take_while(|l| l.starts_with("  ")).map(str::trim).collect();
        line = format!("required arguments are missing: {}", missing.join(", "));
        if let Some((_, example)) = known {
            line = format!("{line}; as in `{example}`");
        }
    }
    if let Some(ContextValue::Strings(valid)) = error.get(ContextKind::ValidValue)
        && !valid.is_empty()
    {
        line = format!("{line}: use {}", valid.join(", "));
    }
    for kind in [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue] {
        let nearest = match error.get(kind) {
            Some(ContextValue::String(nearest)) => Some(nearest),
            Some(ContextValue::Strings(all)) => all.first(),
            _ => None,
        };
        if let Some(nearest) = nearest {
            line = format!("{line}; did you mean '{nearest}'?");
        }
    }
    match known {
        Some((verb, _)) => format!("{line} (see `netdyno {verb} --help`)"),
        None => format!("{line} (see `netdyno --help`)"),
    }
}

/// Returns the option, the value that its parser rejects, and the reason.
fn bad_value(error: &clap::Error) -> Option<(&str, &str, String)> {
    if error.kind() != ErrorKind::ValueValidation {
        return None;
    }
    let (Some(ContextValue::String(option)), Some(ContextValue::String(value))) =
        (error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidValue))
    else {
        return None;
    };
    // clap puts the placeholder of the value behind the name of the option.
    let why = error.source()?;
    let why = match why.downcast_ref::<ParseIntError>() {
        Some(_) => "invalid number: use a whole one, as in 7".to_owned(),
        None => why.to_string(),
    };
    Some((option.split(' ').next()?, value, why))
}
