//! `netdyno report`: draws saved records.

use crate::args::{Format, ReportArgs};
use crate::fault::{Fault, say};
use crate::output::{check_writable, format_of, render, write_stdout, write_whole};
use crate::saved::read;
use std::path::Path;

/// Reads the records and writes the report.
pub fn run(args: &ReportArgs) -> Result<(), Fault> {
    let to_stdout = args.out == Path::new("-");
    if !to_stdout {
        check_writable(&args.out)?;
    }
    let records = args.files.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
    let format = args.format.or_else(|| format_of(&args.out)).unwrap_or(Format::Html);
    let text = render(&records, format)?;
    if to_stdout {
        return write_stdout(&text);
    }
    write_whole(&args.out, &text)?;
    say(&format!("wrote {}", args.out.display()));
    Ok(())
}
