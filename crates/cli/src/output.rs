//! Where a result goes. A file is looked at before measuring and written whole or not
//! at all.

use crate::args::{Format, OutputArgs};
use crate::fault::Fault;
use netdyno_measure::record::Record;
use netdyno_measure::sweep::Sweep;
use netdyno_report::{csv, html, sweep, table};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Columns of a table that does not go to a terminal, or to a wider one.
pub const COLUMNS: usize = 80;

/// A form and a place for a result, known to be writable.
#[derive(Debug)]
pub struct Sink {
    format: Format,
    file: Option<PathBuf>,
}

impl Sink {
    /// Chooses the form and checks the place.
    pub fn open(args: &OutputArgs) -> Result<Self, Fault> {
        let format = args.format.or_else(|| args.out.as_deref().and_then(format_of)).unwrap_or(Format::Table);
        if let Some(file) = &args.out {
            check_writable(file)?;
        }
        Ok(Self { format, file: args.out.clone() })
    }

    /// Writes the result.
    pub fn write(&self, record: &Record) -> Result<(), Fault> {
        let text = render(std::slice::from_ref(record), self.format)?;
        match &self.file {
            Some(file) => write_whole(file, &text),
            None => write_stdout(&text),
        }
    }
}

/// The form that a file's ending names.
pub fn format_of(file: &Path) -> Option<Format> {
    match file.extension()?.to_str()? {
        "json" => Some(Format::Json),
        "csv" => Some(Format::Csv),
        "html" | "htm" => Some(Format::Html),
        "txt" => Some(Format::Table),
        _ => None,
    }
}

/// Records in a form.
pub fn render(records: &[Record], format: Format) -> Result<String, Fault> {
    let each = |one: fn(&Record) -> String| records.iter().map(one).collect::<Vec<_>>().join("\n");
    Ok(match format {
        Format::Table => each(|record| table::render(record, COLUMNS)),
        Format::Csv => each(csv::render),
        Format::Html => html::render(records),
        Format::Json => {
            let [record] = records else {
                return Err(Fault::BadInput(
                    "several records do not make one JSON record: name one file".into(),
                ));
            };
            let mut text = serde_json::to_string(record)
                .map_err(|error| Fault::Failed(format!("cannot write the record as JSON: {error}")))?;
            text.push('\n');
            text
        }
    })
}

/// A sweep in a form.
pub fn render_sweep(sweep: &Sweep, format: Format) -> Result<String, Fault> {
    Ok(match format {
        Format::Table => sweep::table(sweep, COLUMNS),
        Format::Csv => sweep::csv(sweep),
        Format::Html => html::of_sweep(sweep),
        Format::Json => {
            let text = serde_json::to_string(sweep);
            text.map_err(|error| Fault::Failed(format!("cannot write the sweep as JSON: {error}")))? + "\n"
        }
    })
}

/// Writes text to standard output. A reader that went away is no fault.
pub fn write_stdout(text: &str) -> Result<(), Fault> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Fault::Failed(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

fn folder(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Whether something is there that is not replaced but written into, such as a pipe.
fn is_special(file: &Path) -> bool {
    file.metadata().is_ok_and(|meta| !meta.is_file())
}

/// Says now what would go wrong after measuring.
pub fn check_writable(file: &Path) -> Result<(), Fault> {
    let bad =
        |error: &dyn std::fmt::Display| Fault::BadInput(format!("cannot write {}: {error}", file.display()));
    if file.is_dir() {
        return Err(bad(&"it is a folder; name a file in it"));
    }
    if is_special(file) {
        // Opening a pipe would wait for its reader, and closing it end the reader's file.
        return Ok(());
    }
    if file.exists() {
        // What may not be written may not be replaced either.
        OpenOptions::new().append(true).open(file).map_err(|error| bad(&error))?;
    }
    NamedTempFile::new_in(folder(file)).map_err(|error| bad(&error))?;
    Ok(())
}

/// Writes a file whole: under another name first, then in its place.
pub fn write_whole(file: &Path, text: &str) -> Result<(), Fault> {
    let write = || -> io::Result<()> {
        if is_special(file) {
            return OpenOptions::new().write(true).open(file)?.write_all(text.as_bytes());
        }
        let mut temporary = tempfile::Builder::new()
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
            .tempfile_in(folder(file))?;
        temporary.write_all(text.as_bytes())?;
        temporary.persist(file)?;
        Ok(())
    };
    write().map_err(|error| Fault::Failed(format!("cannot write {}: {error}", file.display())))
}
