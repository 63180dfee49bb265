//! `netdyno plugin`: layers written in C.

use crate::records::output::write_stdout;
use crate::terminal::fault::Fault;
use crate::verbs::Examples;
use clap::{Args, Subcommand};
use netdyno_plugin::plugin::Plugin;
use netdyno_plugin::site;
use netdyno_plugin::source::{HEADER, Source};
use std::path::PathBuf;

/// The examples of the help.
pub const EXAMPLES: &[Examples] = &[
    (
        "plugin",
        [
            ("netdyno plugin show skeleton", "print the shortest layer"),
            ("netdyno plugin build mine.c", "build a layer of your own"),
            ("netdyno plugin build mpi --cc /opt/mpi/bin/mpicc", "build mpi"),
        ],
    ),
    (
        "plugin build",
        [
            ("netdyno plugin build mine.c", "build a layer of your own"),
            ("netdyno plugin build ofi", "build the layer ofi"),
            ("netdyno plugin build mpi --cc /opt/mpi/bin/mpicc", "build mpi"),
        ],
    ),
    (
        "plugin show",
        [
            ("netdyno plugin show skeleton", "print the shortest layer"),
            ("netdyno plugin show layer.h", "print the interface"),
            ("netdyno plugin show mpi", "print the layer mpi"),
        ],
    ),
];

/// Build layers written in C, or print their sources
#[derive(Debug, Args)]
pub struct PluginArgs {
    /// What to do.
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Build a layer, unless it is built already, and print its file
    Build {
        /// Build mpi, ofi, ucx, skeleton, requests, or a file of your own (.c)
        #[arg(value_name = "NAME")]
        name: String,

        /// Build by this compiler
        ///
        /// By default $NETDYNO_MPICC or mpicc for mpi, $CC or cc for others.
        #[arg(long, value_name = "CC", help_heading = "How to build")]
        cc: Option<PathBuf>,
    },
    /// Print the source of a layer, or the interface, layer.h
    Show {
        /// Print this source
        #[arg(value_name = "NAME", value_parser = ["mpi", "ofi", "ucx", "skeleton", "requests", "layer.h"])]
        name: String,
    },
}

/// Builds a layer or prints a source.
pub fn run(args: &PluginArgs) -> Result<(), Fault> {
    let bad = |error: netdyno_plugin::PluginError| Fault::BadInput(error.to_string());
    match &args.action {
        Action::Build { name, cc } => {
            let source = Source::named(name).map_err(bad)?;
            let file = site::build(&source, cc.as_deref()).map_err(bad)?;
            Plugin::load(&file).map_err(bad)?;
            write_stdout(&format!("{}\n", file.display()))
        }
        Action::Show { name } if name == "layer.h" => write_stdout(HEADER),
        Action::Show { name } => {
            write_stdout(&String::from_utf8_lossy(Source::named(name).map_err(bad)?.text()))
        }
    }
}
