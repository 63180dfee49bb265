//! Measures simulated layers, prints their table and writes their report, to look at.
//!
//! `cargo run -p netdyno-report --example simulated -- DIRECTORY`

#[path = "../tests/support/mod.rs"]
mod support;

use std::path::Path;

fn main() -> std::io::Result<()> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    let record = support::various();
    print!("{}", netdyno_report::table::render(&record, 80));
    let file = |name: &str| Path::new(&directory).join(name);
    std::fs::write(file("report.csv"), netdyno_report::csv::render(&record))?;
    std::fs::write(file("report.html"), netdyno_report::html::render(&[record]))
}
