//! `netdyno report`: draws saved records.

use crate::args::{Format, ReportArgs};
use crate::fault::Fault;
use crate::output::{check_writable, format_of, render, render_sweep, write_stdout, write_whole};
use crate::saved::{read, read_sweep};
use crate::voice::note;
use std::path::{Path, PathBuf};

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

/// A sweep has a page of its own; records share one.
fn text(files: &[PathBuf], format: Format) -> Result<String, Fault> {
    if let [file] = files
        && let Some(sweep) = read_sweep(file)?
    {
        return render_sweep(&sweep, format);
    }
    let records = files.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
    render(&records, format)
}
