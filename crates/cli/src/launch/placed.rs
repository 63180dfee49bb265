//! A launcher, and where it puts the processes of a launch.

use crate::hosts::host::{Host, Machines};
use netdyno_job::launcher::Launcher;
use netdyno_measure::record::Environment;

/// A launcher, and where it has put the processes of a launch.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The launcher.
    pub launcher: Launcher,
    /// The host of each process, by rank.
    pub hosts: Vec<Host>,
    /// The machine of the requester, if it is not this one.
    pub requester: Option<Environment>,
    /// Another machine, if the processes run on several.
    pub other: Option<Environment>,
}

impl Placed {
    /// Returns the machines of the processes.
    pub fn machines(&self) -> Machines {
        Machines::of(&self.hosts)
    }
}
