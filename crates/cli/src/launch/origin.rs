//! Where the processes of a launch come from.

use crate::hosts::peer::Peer;
use crate::job::ranks::Ranks;
use netdyno_job::launcher::Launcher;
use std::rc::Rc;
use std::sync::Arc;

/// Where the processes of a launch come from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// They are children of this command.
    Children,
    /// The replier is on a served host.
    Peer(Arc<Peer>),
    /// A launcher starts them, wherever it does.
    Launcher(Launcher),
    /// They belong to the job in which this command runs.
    Job(Rc<Ranks>),
}

impl Origin {
    /// What started them, where this command did not.
    pub fn launcher(&self) -> Option<String> {
        match self {
            Self::Children | Self::Peer(_) => None,
            Self::Launcher(launcher) => Some(launcher.to_string()),
            Self::Job(ranks) => Some(format!("in a job of {} processes", ranks.hosts().len())),
        }
    }
}
