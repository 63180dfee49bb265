//! `netdyno layers`.

use crate::records::output::write_stdout;
use crate::terminal::fault::Fault;
use crate::verbs::Examples;
use clap::Args;
use netdyno_host::wait::Wait;
use netdyno_layers::catalogue::{ALL, Layer};

/// The examples of the help.
pub const EXAMPLES: &[Examples] = &[(
    "layers",
    [
        ("netdyno layers", "list the layers"),
        ("NETDYNO_MPICC=/opt/mpi/bin/mpicc netdyno layers", "look for another MPI"),
        ("NETDYNO_PLUGIN=./mine.so netdyno layers", "look at a layer of your own"),
    ],
)];

/// List the layers, what each can do, and why one is not available
#[derive(Debug, Args)]
pub struct LayersArgs {}

/// Lists the layers.
pub fn run() -> Result<(), Fault> {
    let mut text = format!("{:<10} {:<17} {:>9}  {}\n", "layer", "wait", "largest", "what it is");
    for layer in ALL {
        text.push_str(&line(layer));
    }
    write_stdout(&text)
}

fn line(layer: Layer) -> String {
    let waits: Vec<String> = layer.waits().iter().map(Wait::to_string).collect();
    let waits = if waits.is_empty() { "virtual time".to_owned() } else { waits.join(" ") };
    let largest = match layer.max_size() {
        usize::MAX => "any".to_owned(),
        size => format!("{size} B"),
    };
    let mut line = format!("{:<10} {waits:<17} {largest:>9}  {}\n", layer.to_string(), layer.summary());
    if let Some(why) = layer.unavailable() {
        line.push_str(&format!("{:<10} not available here: {why}\n", ""));
    }
    line
}
