//! The hosts of processes that others have started: their machines and processors.

use netdyno_clock::place;
use netdyno_host::machine;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The host of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Identifier of the machine.
    pub machine: String,
    /// The processors that the process may use.
    pub cpus: Vec<usize>,
    /// Two of these that are near each other; only the machine itself knows its topology.
    pub near: Option<(usize, usize)>,
}

impl Host {
    /// Returns the host of this process.
    pub fn of_this_process() -> Self {
        let cpus = place::allowed().unwrap_or_default();
        Self { machine: machine::name(), near: place::choose_pair(&cpus), cpus }
    }
}

/// The machines on which the processes of a launch run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machines {
    /// All processes run on this machine.
    This,
    /// All processes run on another machine.
    Another,
    /// The processes run on this many machines.
    Several(usize),
}

impl Machines {
    /// Returns the machines of these hosts.
    pub fn of(hosts: &[Host]) -> Self {
        let different: BTreeSet<&str> = hosts.iter().map(|host| &host.machine[..]).collect();
        match different.len() {
            0 => Self::This,
            1 if different.contains(&machine::name()[..]) => Self::This,
            1 => Self::Another,
            number => Self::Several(number),
        }
    }

    /// Returns their number.
    pub fn number(self) -> usize {
        match self {
            Self::This | Self::Another => 1,
            Self::Several(number) => number,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_told_apart() {
        let of = |machines: &[&str]| {
            let host = |machine: &&str| Host { machine: (*machine).into(), cpus: Vec::new(), near: None };
            Machines::of(&machines.iter().map(host).collect::<Vec<_>>())
        };
        let here = machine::name();
        assert_eq!(of(&[]), Machines::This);
        assert_eq!(of(&[&here, &here]), Machines::This);
        assert_eq!(of(&["another", "another"]), Machines::Another);
        assert_eq!(of(&[&here, "another", &here]), Machines::Several(2));
    }
}
