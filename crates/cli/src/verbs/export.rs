//! `netdyno export`: measured parameters in the input formats of simulators.

use crate::options::headings::OUTPUT;
use crate::records::output::{check_writable, write_stdout, write_whole};
use crate::records::saved::Saved;
use crate::terminal::fault::Fault;
use crate::terminal::voice::note;
use crate::verbs::Examples;
use clap::{Args, ValueEnum};
use netdyno_measure::record::LayerResult;
use netdyno_report::export::curve::Curve;
use netdyno_report::export::loggopsim::{self, TimeUnit};
use netdyno_report::export::{ExportError, Exported, csv, simgrid};
use std::path::PathBuf;

/// The examples of the help.
pub const EXAMPLES: &[Examples] = &[(
    "export",
    [
        ("netdyno export run.json --to loggopsim", "print options"),
        ("netdyno export bulk.json:tcp --to simgrid --out host.xml", "choose tcp"),
        ("netdyno export run.json --to csv", "print a table"),
    ],
)];

/// Write parameters for LogGOPSim, for SimGrid, or as CSV
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Read these records; FILE:LAYER names one layer of a record
    ///
    /// Records are written by --format json. Several of one layer, of different sizes, make one curve.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,

    /// Write for this reader
    #[arg(long, value_enum, help_heading = OUTPUT)]
    to: Reader,

    /// Use this unit for LogGOPSim, which reads integers
    #[arg(long, value_enum, default_value = "ns", help_heading = OUTPUT)]
    time_unit: Unit,

    /// Write to this file, not to standard output
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    out: Option<PathBuf>,
}

/// Who is to read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Reader {
    /// Options of its command line: -L -o -g -G -O -S
    Loggopsim,
    /// A platform of two hosts with SMPI's overheads, in XML
    Simgrid,
    /// Any program: one row for each layer and size
    Csv,
}

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Unit {
    /// Nanoseconds
    Ns,
    /// Picoseconds: then every time of the simulation is in ps
    Ps,
}

/// Reads the records and writes the simulator's input. Notes go to standard error.
pub fn run(args: &ExportArgs) -> Result<(), Fault> {
    if let Some(file) = &args.out {
        check_writable(file)?;
    }
    let all = args.files.iter().map(|named| Saved::read(named)).collect::<Result<Vec<_>, _>>()?;
    let mut results = Vec::new();
    for saved in &all {
        // A simulator takes one layer, so the lean layer beside a library's is left out.
        let is_wanted = |result: &&LayerResult| args.to == Reader::Csv || !saved.is_reference(result);
        results.extend(saved.results()?.into_iter().filter(is_wanted));
    }
    let bad = |error: ExportError| Fault::BadInput(error.to_string());
    let Exported { text, notes } = match args.to {
        Reader::Csv => Exported { text: csv::render(&results).map_err(bad)?, notes: Vec::new() },
        Reader::Simgrid => simgrid::render(&Curve::of(&results).map_err(bad)?),
        Reader::Loggopsim => {
            let unit = if args.time_unit == Unit::Ps { TimeUnit::Ps } else { TimeUnit::Ns };
            loggopsim::render(&Curve::of(&results).map_err(bad)?, unit).map_err(bad)?
        }
    };
    notes.iter().for_each(|text| note(&format!("note: {text}")));
    match &args.out {
        Some(file) => write_whole(file, &text),
        None => write_stdout(&text),
    }
}
