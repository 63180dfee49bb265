//! The option of the verbs that measure a server of others.

use crate::options::bench::BenchArgs;
use crate::options::headings::HOSTS;
use crate::options::values::server;
use clap::Args;
use std::net::SocketAddr;

/// The server of others that is measured.
#[derive(Clone, Debug, Args)]
pub struct ConnectArgs {
    /// Measure the server at this address, which runs already
    ///
    /// For remote procedure calls alone. The server must have the program that docs/rpc.md describes. --cpus names
    /// the processor of the requester.
    #[arg(
        long,
        value_name = "HOST:PORT",
        value_parser = server,
        conflicts_with_all = ["peer", "launcher", "bind"],
        help_heading = HOSTS,
        hide_short_help = true
    )]
    pub connect: Option<SocketAddr>,
}

impl ConnectArgs {
    /// Returns the options of a measurement of this server, if there is one.
    pub fn of(&self, bench: &BenchArgs) -> BenchArgs {
        let mut bench = bench.clone();
        bench.measuring.server = self.connect;
        bench
    }
}
