//! How a run can fail, and its exit code: 1 once measuring has begun, 2 for bad input.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::io::Write;
use std::process::ExitCode;

/// The exit code of a command that runs another where it fails itself.
pub const RUNNER: u8 = 125;

/// The exit code where a signal ended the run and what it had was written.
const CUT_SHORT: u8 = 130;

/// Why the command ends without its result. One line each.
#[derive(Debug)]
pub enum Fault {
    /// What was asked for cannot be done: exit code 2.
    BadInput(String),
    /// Measuring failed: exit code 1.
    Failed(String),
    /// A signal ended it: exit code 128 and its number.
    Interrupted(i32),
    /// A signal ended it after so many launches of each layer, whose result is written: exit code 130,
    /// whichever signal it was.
    CutShort {
        /// The launches.
        launches: usize,
    },
    /// A signal ended what goes on until one comes: exit code 128 and its number.
    Stopped(i32),
    /// Not a fault: help or version, printed as asked for.
    Help(clap::Error),
    /// The exit code is not one of these: of `run` and `sweep`, as `timeout` has them.
    Ended(u8, String),
    /// Said already, here or by another process of the job: the exit code.
    Quiet(u8),
}

impl Fault {
    /// An interruption of what leaves no result.
    pub fn stopped(self) -> Self {
        match self {
            Self::Interrupted(signal) => Self::Stopped(signal),
            other => other,
        }
    }

    /// As a command that runs another says it: what is not the other's status is 125, 126 or 127.
    pub fn of_runner(self) -> Self {
        match self {
            Self::BadInput(text) | Self::Failed(text) => Self::Ended(RUNNER, text),
            other => other,
        }
    }

    /// Prints what is to be said and gives the exit code.
    pub fn exit(self) -> ExitCode {
        ExitCode::from(self.told().code())
    }

    /// The exit code.
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

    /// Prints what is to be said; the code is left.
    pub fn told(self) -> Self {
        match &self {
            Self::BadInput(text) | Self::Failed(text) | Self::Ended(_, text) => {
                say(&format!("error: {text}"))
            }
            Self::Interrupted(_) => say("interrupted: nothing was written"),
            Self::CutShort { launches } => {
                say(&format!("interrupted: wrote the result of {launches} launches"));
            }
            Self::Stopped(_) => say("stopped"),
            Self::Quiet(_) => {}
            Self::Help(help) => {
                if help.print().is_err() {
                    return Self::Quiet(1);
                }
            }
        }
        Self::Quiet(self.code())
    }
}

/// Says something on standard error. Where that is closed there is nobody to tell.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// What a program or a file says must not steer the terminal.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

impl From<clap::Error> for Fault {
    fn from(error: clap::Error) -> Self {
        match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Self::Help(error),
            _ => Self::BadInput(one_line(&error)),
        }
    }
}

/// What clap says in a paragraph, on one line.
fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    let mut line = first.strip_prefix("error: ").unwrap_or(first).trim_end_matches(':').to_owned();
    if error.kind() == ErrorKind::MissingRequiredArgument {
        let missing: Vec<&str> =
            text.lines().skip(1).take_while(|l| l.starts_with("  ")).map(str::trim).collect();
        line = format!("{line}: {}", missing.join(", "));
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
    format!("{line} (see `netdyno --help`)")
}
