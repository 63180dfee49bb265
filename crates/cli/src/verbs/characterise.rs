//! The bare command: measures the layers that need only this machine, or those of `--over`.

use crate::campaign::ending::conclude;
use crate::campaign::method::{Method, Signature, Terms};
use crate::campaign::{Campaign, Conditions};
use crate::command::Cli;
use crate::hosts::host::Machines;
use crate::job::ranks::Ranks;
use crate::options::output::Format;
use crate::records::output::{Sink, check_writable, make_new, render, write_whole};
use crate::terminal::fault::Fault;
use crate::terminal::voice::note;
use crate::verbs::Examples;
use netdyno_layers::catalogue::{EMBEDDED, Layer};
use netdyno_measure::reading::Reading;
use netdyno_measure::record::{Found, Record};
use netdyno_measure::task::{Data, Task};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;

/// Default folder of the results.
const RESULTS: &str = "netdyno-results";

/// The examples of the help.
pub const EXAMPLES: &[Examples] = &[(
    "",
    [
        ("netdyno", "characterise this machine in two minutes"),
        ("netdyno logp --over am+shm,tcp", "measure the LogP parameters of two layers"),
        ("netdyno help logp", "explain a command"),
    ],
)];

/// Measures and writes the result. Without a place or form from the user, prints the table and keeps the
/// record and the report in files.
pub fn run(cli: &Cli, ranks: Option<Rc<Ranks>>) -> Result<(), Fault> {
    let layers = layers(cli, ranks.as_deref())?;
    let is_left_open = cli.over.is_empty() && cli.measuring.launcher.is_some();
    let method = Embedded { is_left_open };
    let sink = Sink::open(&cli.output)?;
    // A launcher may wait in a queue, so that the places are checked before. Without one, bad options leave no folder.
    let kept_early = cli.measuring.launcher.as_ref().map(|_| kept(cli)).transpose()?;
    let campaign = Campaign::new(Box::new(method), &layers, &Conditions::default(), &cli.measuring, ranks)?;
    let kept = kept_early.map_or_else(|| kept(cli), Ok)?;
    let record = campaign.run()?;
    conclude(&record, write(&record, kept.as_ref(), &sink, cli.dir.is_some()))
}

/// Writes the result to the files that keep it and to the place of the user's choice. Another run of the same second
/// keeps its files.
fn write(record: &Record, kept: Option<&[PathBuf; 2]>, sink: &Sink, is_named: bool) -> Result<(), Fault> {
    let kept = kept.map(|files| if is_named { Ok(files.clone()) } else { make_new(files) }).transpose()?;
    if let Some([record_file, report_file]) = &kept {
        let records = std::slice::from_ref(record);
        write_whole(record_file, &render(records, Format::Json)?)?;
        write_whole(report_file, &render(records, Format::Html)?)?;
    }
    sink.write(record)?;
    if let Some([record_file, report_file]) = kept.filter(|_| record.failed.is_none()) {
        note(&format!("wrote {} and {}", record_file.display(), report_file.display()));
    }
    Ok(())
}

/// Returns the layers that the user named. By default these are the layers that need only this machine;
/// between hosts they exclude the layers of one host.
fn layers(cli: &Cli, ranks: Option<&Ranks>) -> Result<Vec<Layer>, Fault> {
    if cli.over.contains(&Layer::Sim) {
        let text =
            "sim has parameters of its own: say netdyno logp --over sim --truth o_s=1us,o_r=2us,g=5us,L=7us";
        return Err(Fault::BadInput(text.into()));
    }
    if !cli.over.is_empty() {
        return Ok(cli.over.clone());
    }
    // A launcher may reach other hosts, too, which only its first launch tells.
    let reaches_others = cli.measuring.launcher.is_some()
        || cli.measuring.peer.is_some()
        || ranks.is_some_and(|ranks| ranks.machines().number() > 1);
    Ok(EMBEDDED.into_iter().filter(|layer| !(reaches_others && layer.is_of_one_host())).collect())
}

/// The LogP signature of the layers that need only this machine.
struct Embedded {
    /// Whether the layers of one host are measured as well if all processes run on one.
    is_left_open: bool,
}

impl Method for Embedded {
    fn also_measures(&mut self, machines: Machines) -> Vec<Layer> {
        let is_wanted = |layer: &Layer| self.is_left_open && machines.number() == 1 && layer.is_of_one_host();
        EMBEDDED.into_iter().filter(is_wanted).collect()
    }

    fn task(&self, terms: &Terms, before: &[Data]) -> Task {
        Signature.task(terms, before)
    }

    fn read(&self, launches: &[Data], terms: &Terms) -> Option<Reading<Found>> {
        Signature.read(launches, terms)
    }
}

/// Returns the files for record and report, checked to be writable. They are in the user's folder, or in
/// netdyno's own folder with the time in their names. Returns `None` if the user chose another place or form.
fn kept(cli: &Cli) -> Result<Option<[PathBuf; 2]>, Fault> {
    let files = match &cli.dir {
        Some(folder) => [folder.join("netdyno.json"), folder.join("netdyno-report.html")],
        None if cli.output.out.is_some() || cli.output.format.is_some() => return Ok(None),
        None => {
            let folder = Path::new(RESULTS);
            fs::create_dir_all(folder).map_err(|error| {
                Fault::BadInput(format!(
                    "cannot keep the result in ./{RESULTS}: {error}; name a file with --out"
                ))
            })?;
            // Colons are special to many tools.
            let time = humantime::format_rfc3339_seconds(SystemTime::now()).to_string().replace(':', "-");
            ["json", "html"].map(|ending| folder.join(format!("{time}.{ending}")))
        }
    };
    files.iter().try_for_each(|file| check_writable(file))?;
    Ok(Some(files))
}
