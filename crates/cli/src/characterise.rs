//! The main job: the layers that need nothing but this machine.

use crate::args::{Format, Measuring};
use crate::campaign::{Campaign, Conditions, conclude};
use crate::fault::{Fault, say};
use crate::method::Signature;
use crate::output::{check_writable, render, write_stdout, write_whole};
use crate::ranks::Ranks;
use netdyno_layers::catalogue::EMBEDDED;
use std::path::Path;
use std::rc::Rc;

/// Measures, prints the table, writes record and report into `dir`.
pub fn run(measuring: &Measuring, dir: &Path, ranks: Option<Rc<Ranks>>) -> Result<(), Fault> {
    // What needs no more than this machine does not reach another one.
    let reaches_others = measuring.peer.is_some() || ranks.as_ref().is_some_and(|ranks| ranks.machines() > 1);
    let layers: Vec<_> =
        EMBEDDED.into_iter().filter(|layer| !(reaches_others && layer.is_of_one_host())).collect();
    let campaign = Campaign::new(Box::new(Signature), &layers, &Conditions::default(), measuring, ranks)?;
    let (record_file, report_file) = (dir.join("netdyno.json"), dir.join("netdyno-report.html"));
    check_writable(&record_file)?;
    check_writable(&report_file)?;
    let records = [campaign.run()?];
    write_whole(&record_file, &render(&records, Format::Json)?)?;
    write_whole(&report_file, &render(&records, Format::Html)?)?;
    write_stdout(&render(&records, Format::Table)?)?;
    say(&format!("wrote {} and {}", record_file.display(), report_file.display()));
    conclude(&records[0])
}
