//! The output of a result. A file is checked before measuring, and written completely or not at all.

use crate::options::output::{Format, OutputArgs};
use crate::terminal::fault::Fault;
use crate::terminal::interrupt::while_writing;
use crate::terminal::voice;
use anstream::{AutoStream, ColorChoice};
use netdyno_host::standard::output_was_closed;
use netdyno_measure::record::Record;
use netdyno_measure::sweep::Sweep;
use netdyno_report::{csv, html, sweep, table};
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Links that a name may lead over, as in the system.
const MOST_LINKS: usize = 40;

/// Columns of a table. It does not use the width of a wider terminal.
pub const COLUMNS: usize = 80;

/// The form and the place of a result, checked to be writable.
#[derive(Debug)]
pub struct Sink {
    format: Format,
    file: Option<PathBuf>,
}

impl Sink {
    /// Chooses the form and checks the place.
    pub fn open(args: &OutputArgs) -> Result<Self, Fault> {
        let format = form_of(args)?.unwrap_or(Format::Table);
        match &args.out {
            Some(file) => check_writable(file)?,
            None if output_was_closed() => {
                return Err(Fault::BadInput("standard output is closed: name a file with --out".into()));
            }
            None => {}
        }
        Ok(Self { format, file: args.out.clone() })
    }

    /// Writes the record.
    pub fn write(&self, record: &Record) -> Result<(), Fault> {
        let text = render(std::slice::from_ref(record), self.format)?;
        match &self.file {
            Some(file) => write_whole(file, &text),
            None if self.format == Format::Table && has_colours(&io::stdout()) => {
                write_stdout(&voice::painted(&text))
            }
            None => write_stdout(&text),
        }
    }
}

/// Reports whether standard output takes colours: it is a terminal, and NO_COLOR is not set.
fn has_colours(stdout: &io::Stdout) -> bool {
    AutoStream::choice(stdout) != ColorChoice::Never
}

/// Returns the form that the user named, or the form of the file's extension.
pub fn form_of(args: &OutputArgs) -> Result<Option<Format>, Fault> {
    match (args.format, &args.out) {
        (None, Some(file)) => format_of(file),
        (format, _) => Ok(format),
    }
}

/// Returns the form that a file's extension names, or `None` for a file without one.
///
/// # Errors
/// Returns `BadInput` if the extension names no form.
pub fn format_of(file: &Path) -> Result<Option<Format>, Fault> {
    let Some(ending) = file.extension() else { return Ok(None) };
    match ending.to_str() {
        Some("json") => Ok(Some(Format::Json)),
        Some("csv") => Ok(Some(Format::Csv)),
        Some("html" | "htm") => Ok(Some(Format::Html)),
        Some("txt") => Ok(Some(Format::Table)),
        _ => Err(Fault::BadInput(format!(
            "--out {}: the ending .{} names no form: use .json, .csv, .html or .txt, or say --format",
            file.display(),
            ending.to_string_lossy()
        ))),
    }
}

/// Renders records in a form.
pub fn render(records: &[Record], format: Format) -> Result<String, Fault> {
    let each = |one: fn(&Record) -> String| records.iter().map(one).collect::<Vec<_>>().join("\n");
    let the_only = |form: &str| match records {
        [record] => Ok(record),
        _ => Err(Fault::BadInput(format!("several records do not make one {form}: name one file"))),
    };
    Ok(match format {
        Format::Table => each(|record| table::render(record, COLUMNS)),
        Format::Csv => csv::render(the_only("CSV table")?),
        Format::Html => html::render(records),
        Format::Json => {
            let record = the_only("JSON record")?;
            let mut text = serde_json::to_string(record)
                .map_err(|error| Fault::Failed(format!("cannot write the record as JSON: {error}")))?;
            text.push('\n');
            text
        }
    })
}

/// Renders a sweep in a form.
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

/// Writes text to standard output. A closed pipe is no error.
pub fn write_stdout(text: &str) -> Result<(), Fault> {
    write_to_reader(text).map(|_| ())
}

/// Writes text to standard output. Returns whether it is written: false if it is a pipe whose reader has ended.
pub fn write_to_reader(text: &str) -> Result<bool, Fault> {
    if output_was_closed() {
        return Err(Fault::Failed("cannot write to standard output: it is closed".into()));
    }
    let mut out = io::stdout().lock();
    match while_writing(|| out.write_all(text.as_bytes()).and_then(|()| out.flush())) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Fault::Failed(format!("cannot write to standard output: {error}"))),
    }
}

fn folder(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Returns the file that a name leads to, so that a result does not replace a link. The file need not exist.
fn behind_links(file: &Path) -> PathBuf {
    let mut found = file.to_path_buf();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&found) {
            Ok(target) => found = folder(&found).join(target),
            Err(_) => break,
        }
    }
    found
}

/// Reports whether the file exists but is not a regular one, such as a pipe. The result is written into it
/// and does not replace it.
fn is_special(file: &Path) -> bool {
    file.metadata().is_ok_and(|meta| !meta.is_file())
}

/// Returns the number of the open descriptor that a name leads to, as /dev/stdout does. Its file is not replaced: it
/// may hold other output already.
fn descriptor(file: &Path) -> Option<OsString> {
    let links = std::iter::successors(Some(file.to_path_buf()), |at| {
        fs::read_link(at).ok().map(|target| folder(at).join(target))
    });
    // The folders may be links, too, as /dev/fd and /proc/self are.
    let in_process = |at: PathBuf| {
        let folder = folder(&at).canonicalize().ok()?;
        (folder.starts_with("/proc") && folder.ends_with("fd")).then(|| at.file_name().map(OsString::from))?
    };
    links.take(MOST_LINKS).find_map(in_process)
}

/// Writes behind what a descriptor's file holds. Standard output is not opened anew, so that what follows comes behind the
/// text.
fn write_behind(file: &Path, descriptor: &OsStr, text: &str) -> io::Result<()> {
    let is_standard = |at: u32| *descriptor == *at.to_string() && is_of_this_process(file);
    match () {
        () if is_standard(1) => {
            io::stdout().lock().write_all(text.as_bytes()).and_then(|()| io::stdout().flush())
        }
        () if is_standard(2) => io::stderr().lock().write_all(text.as_bytes()),
        () => OpenOptions::new().append(true).open(file)?.write_all(text.as_bytes()),
    }
}

/// Reports whether a name of a descriptor is one of this process, and not of another one in /proc.
fn is_of_this_process(file: &Path) -> bool {
    let own = Path::new("/proc").join(std::process::id().to_string());
    !file.starts_with("/proc") || file.starts_with("/proc/self") || file.starts_with(own)
}

/// Reports before measuring an error that would otherwise prevent the output after it.
pub fn check_writable(file: &Path) -> Result<(), Fault> {
    let bad =
        |error: &dyn std::fmt::Display| Fault::BadInput(format!("cannot write {}: {error}", file.display()));
    if file.is_dir() {
        return Err(bad(&"it is a folder; name a file in it"));
    }
    if is_special(file) {
        // To open a pipe would wait for its reader, and to close it would end the reader's input.
        return Ok(());
    }
    let is_descriptor = descriptor(file).is_some();
    if is_descriptor || file.exists() {
        // A file without write permission must not be replaced either.
        OpenOptions::new().append(true).open(file).map_err(|error| bad(&error))?;
    }
    if is_descriptor {
        return Ok(());
    }
    let file = behind_links(file);
    let folder = folder(&file);
    if !folder.is_dir() {
        return Err(bad(&format!("there is no folder {}: create it, or name another one", folder.display())));
    }
    // The temporary file's name is left out of the error, because the user does not know it.
    NamedTempFile::new_in(folder).map_err(|error| bad(&plain(&error)))?;
    Ok(())
}

/// Returns the system's error without the text that a library has added.
fn plain(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// Makes the first of two files, which did not exist. If it did, both get a number behind their names. Returns their names.
pub fn make_new(files: &[PathBuf; 2]) -> Result<[PathBuf; 2], Fault> {
    let numbered = |number: u32| {
        files.each_ref().map(|file| {
            let (stem, ending) = (file.file_stem().unwrap_or_default(), file.extension().unwrap_or_default());
            file.with_file_name(format!("{}-{number}.{}", stem.display(), ending.display()))
        })
    };
    let mut named = files.clone();
    for number in 2.. {
        match OpenOptions::new().write(true).create_new(true).open(&named[0]) {
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => named = numbered(number),
            Err(error) => {
                return Err(Fault::Failed(format!("cannot write {}: {error}", named[0].display())));
            }
        }
    }
    Ok(named)
}

/// Writes a file completely: under a temporary name first, then renamed to its own.
pub fn write_whole(file: &Path, text: &str) -> Result<(), Fault> {
    let write = || -> io::Result<()> {
        if let Some(descriptor) = descriptor(file) {
            return while_writing(|| write_behind(file, &descriptor, text));
        }
        if is_special(file) {
            let write = || OpenOptions::new().write(true).open(file)?.write_all(text.as_bytes());
            return while_writing(write);
        }
        let target = behind_links(file);
        let mut temporary = tempfile::Builder::new()
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
            .tempfile_in(folder(&target))?;
        if let Ok(replaced) = target.metadata() {
            temporary.as_file().set_permissions(replaced.permissions())?;
        }
        temporary.write_all(text.as_bytes())?;
        temporary.persist(&target)?;
        Ok(())
    };
    write().map_err(|error| Fault::Failed(format!("cannot write {}: {}", file.display(), plain(&error))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_result_of_a_second_has_files_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["12-30Z.json", "12-30Z.html"].map(|name| folder.path().join(name));
        let names = |_| make_new(&files).unwrap().map(|file| file.file_name().unwrap().to_owned());
        let made = [(); 3].map(names);
        assert_eq!(made[0], ["12-30Z.json", "12-30Z.html"]);
        assert_eq!(made[1], ["12-30Z-2.json", "12-30Z-2.html"]);
        assert_eq!(made[2], ["12-30Z-3.json", "12-30Z-3.html"]);
        assert!(make_new(&["/nowhere/a", "/nowhere/b"].map(PathBuf::from)).is_err());
    }

    #[test]
    fn descriptors_are_told_from_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("fd");
        fs::write(&file, "").unwrap();
        for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
            assert_eq!(descriptor(Path::new(name)).unwrap(), "1", "{name}");
        }
        assert!(descriptor(&file).is_none() && descriptor(Path::new("none.json")).is_none());
        assert!(check_writable(Path::new("/dev/fd/999")).is_err());
        assert!(!is_of_this_process(Path::new("/proc/1/fd/1")) && is_of_this_process(Path::new("/dev/fd/1")));
    }
}
