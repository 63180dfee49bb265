//! `netdyno report`: draws saved records.

use crate::options::headings::OUTPUT;
use crate::options::output::Format;
use crate::records::output::{check_writable, format_of, render, render_sweep, write_stdout, write_whole};
use crate::records::saved::{read, read_sweep};
use crate::terminal::fault::Fault;
use crate::terminal::voice::note;
use crate::verbs::Examples;
use clap::Args;
use std::path::{Path, PathBuf};

/// The examples of the help.
pub const EXAMPLES: &[Examples] = &[(
    "report",
    [
        ("netdyno report run.json", "draw netdyno-report.html"),
        ("netdyno report old.json new.json --out both.html", "draw two records"),
        ("netdyno report run.json --format table --out -", "print the table"),
    ],
)];

/// Draw the report of saved records
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Read these records, or one sweep, as written by --format json
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// Write html, or a table, json or csv
    ///
    /// By default the form of the file's ending, or html.
    #[arg(long, value_enum, help_heading = OUTPUT, hide_possible_values = true)]
    pub format: Option<Format>,

    /// Write the report to this file; - is standard output
    #[arg(long, value_name = "FILE", default_value = "netdyno-report.html", help_heading = OUTPUT)]
    pub out: PathBuf,
}

/// Reads the records and writes the report.
pub fn run(args: &ReportArgs) -> Result<(), Fault> {
    let to_stdout = args.out == Path::new("-");
    if !to_stdout {
        check_writable(&args.out)?;
    }
    let format = match args.format {
        None if !to_stdout => format_of(&args.out)?,
        format => format,
    };
    let format = format.unwrap_or(Format::Html);
    let text = text(&args.files, format)?;
    if to_stdout {
        return write_stdout(&text);
    }
    write_whole(&args.out, &text)?;
    note(&format!("wrote {}", args.out.display()));
    Ok(())
}

/// Renders a sweep, which has a page of its own, or several records on one page.
fn text(files: &[PathBuf], format: Format) -> Result<String, Fault> {
    if let [file] = files
        && let Some(sweep) = read_sweep(file)?
    {
        return render_sweep(&sweep, format);
    }
    let records = files.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
    render(&records, format)
}
