//! The options for the place and the form of a result.

use crate::options::headings::OUTPUT;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Where and in which form a result goes.
#[derive(Clone, Debug, Args)]
pub struct OutputArgs {
    /// Print a table, json, csv or html
    ///
    /// json is the record (schema netdyno/1), csv has one row for each layer and parameter, html is one
    /// self-contained page with plots. By default the form of the file's ending (.json, .csv, .html, .txt), or a
    /// table.
    #[arg(long, value_enum, help_heading = OUTPUT, hide_possible_values = true)]
    pub format: Option<Format>,

    /// Write to this file, not to standard output
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub out: Option<PathBuf>,
}

/// The forms of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people, on a terminal
    Table,
    /// The record, schema netdyno/1
    Json,
    /// One row per layer and parameter
    Csv,
    /// One self-contained page with plots
    Html,
}
