//! `netdyno compare`: compares two records, or two layers of one record.

use crate::options::headings::{HOW_PRECISELY, OUTPUT};
use crate::options::output::Format;
use crate::options::values::confidence;
use crate::records::output::{COLUMNS, check_writable, format_of, write_stdout, write_whole};
use crate::records::saved::Saved;
use crate::terminal::fault::Fault;
use crate::terminal::voice::note;
use crate::verbs::Examples;
use clap::{Args, ValueEnum};
use netdyno_measure::show::Percent;
use netdyno_report::compare::{Comparison, Side, Terms, Verdict, compare, csv, table};
use netdyno_report::html;
use std::path::PathBuf;

/// Maximum limit: a thousandfold.
const LIMIT_AT_MOST: f64 = 1000.0;

/// The examples of the help.
pub const EXAMPLES: &[Examples] = &[(
    "compare",
    [
        ("netdyno compare old.json new.json", "compare two runs"),
        ("netdyno compare old.json new.json --fail-on 5%", "fail if B is slower"),
        ("netdyno compare run.json:tcp run.json:udp", "compare two layers"),
    ],
)];

/// Compare two records or two layers: ratios with intervals
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Compare with this record; FILE:LAYER names one layer of it
    #[arg(value_name = "A")]
    a: String,

    /// Compare this record; two layers of one file are paired by launch
    #[arg(value_name = "B")]
    b: String,

    /// Exit with 1 where B is larger by more than this, as in 5%
    ///
    /// A parameter that is measured in both fails with its whole interval. Where the interval holds the limit,
    /// the parameter is shown as undecided and is no failure.
    #[arg(long, value_name = "PERCENT", value_parser = limit, allow_hyphen_values = true, help_heading = HOW_PRECISELY)]
    fail_on: Option<f64>,

    /// Set the confidence of the intervals of ratios
    #[arg(long, value_name = "SHARE", default_value = "0.95", value_parser = confidence, help_heading = HOW_PRECISELY, hide_short_help = true)]
    confidence: f64,

    /// Write a table, json, csv or html
    ///
    /// json has the schema netdyno-compare/1, csv one row for each layer and parameter, html is a page with plots. By
    /// default that of the file's ending (.json, .csv, .txt, .html), or a table.
    #[arg(long, value_enum, help_heading = OUTPUT, hide_possible_values = true)]
    format: Option<Form>,

    /// Write to this file, not to standard output
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    out: Option<PathBuf>,
}

/// The forms of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people, on a terminal
    Table,
    /// Schema netdyno-compare/1
    Json,
    /// One row per layer and parameter
    Csv,
    /// One self-contained page with plots
    Html,
}

/// Compares the records, writes the comparison, and applies the limit.
pub fn run(args: &CompareArgs) -> Result<(), Fault> {
    let form = form(args)?;
    if let Some(file) = &args.out {
        check_writable(file)?;
    }
    let (a, b) = (Saved::read(&args.a)?, Saved::read(&args.b)?);
    let terms = Terms { confidence: args.confidence, fail_on: args.fail_on };
    let comparison =
        compare(side(&a), side(&b), terms).map_err(|error| Fault::BadInput(error.to_string()))?;
    let text = render(&comparison, form)?;
    match &args.out {
        Some(file) => write_whole(file, &text)?,
        None => write_stdout(&text)?,
    }
    for doubt in comparison.doubts.iter().filter(|doubt| doubt.name == "nothing_judged") {
        note(&format!("warning: {}", doubt.text));
    }
    judge(&comparison)
}

fn side(saved: &Saved) -> Side<'_> {
    Side { name: &saved.name, record: &saved.record, layer: saved.layer.as_deref() }
}

fn form(args: &CompareArgs) -> Result<Form, Fault> {
    if let Some(form) = args.format {
        return Ok(form);
    }
    Ok(match args.out.as_deref().map_or(Ok(None), format_of)? {
        None | Some(Format::Table) => Form::Table,
        Some(Format::Json) => Form::Json,
        Some(Format::Csv) => Form::Csv,
        Some(Format::Html) => Form::Html,
    })
}

fn render(comparison: &Comparison, form: Form) -> Result<String, Fault> {
    match form {
        Form::Table => Ok(table::render(comparison, COLUMNS)),
        Form::Csv => Ok(csv::render(comparison)),
        Form::Html => Ok(html::of_comparison(comparison)),
        Form::Json => serde_json::to_string(comparison)
            .map(|text| text + "\n")
            .map_err(|error| Fault::Failed(format!("cannot write the comparison as JSON: {error}"))),
    }
}

/// Returns an error if a parameter exceeds the limit.
fn judge(comparison: &Comparison) -> Result<(), Fault> {
    let worse: Vec<String> = comparison
        .with(Verdict::Fail)
        .map(|(pair, compared)| {
            let (name, size, layer) = (&compared.parameter, compared.size_bytes, &pair.b.layer);
            format!("{name} of {layer} at {size} B {}", compared.in_words())
        })
        .collect();
    match comparison.fail_on {
        Some(limit) if !worse.is_empty() => {
            Err(Fault::Failed(format!("larger by more than {}: {}", Percent(limit), worse.join(", "))))
        }
        _ => Ok(()),
    }
}

fn limit(text: &str) -> Result<f64, String> {
    let bad = || "must be a percentage from 0% up, as in 5%".to_owned();
    let number = text.strip_suffix('%').ok_or_else(bad)?;
    let percent: f64 = number.trim_end().parse().map_err(|_| bad())?;
    let share = percent / 100.0;
    if (0.0..=LIMIT_AT_MOST).contains(&share) { Ok(share) } else { Err(bad()) }
}
