//! The program that `run`, `sweep` and `launch` start.

use clap::Args;
use std::ffi::OsString;

/// Heading of the program's options.
pub const WHAT_TO_RUN: &str = "What to run";

/// What to run.
#[derive(Debug, Args)]
pub struct ProgramArgs {
    /// Run this program, with what starts its ranks
    #[arg(
        value_name = "COMMAND",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        help_heading = WHAT_TO_RUN,
        hide_short_help = true
    )]
    pub command: Vec<OsString>,
}
