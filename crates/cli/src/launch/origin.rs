//! The origin of the processes of a launch.

use crate::hosts::peer::Peer;
use crate::job::ranks::Ranks;
use crate::launch::placed::Placed;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// The origin of the processes of a launch: the party that starts them.
#[derive(Clone, Debug)]
pub enum Origin {
    /// This command starts them as children.
    Children,
    /// A served host starts the replier, and this command the requester.
    Peer(Arc<Peer>),
    /// The replier is a server that runs already, and this command starts the requester.
    Server(SocketAddr),
    /// A launcher starts them, on any hosts.
    Launcher(Arc<Placed>),
    /// The processes of the job in which this command runs start them.
    Job(Rc<Ranks>),
}

impl Origin {
    /// Returns the launcher or the job for the record, unless this command started the processes itself.
    pub fn launcher(&self) -> Option<String> {
        match self {
            Self::Children | Self::Peer(_) | Self::Server(_) => None,
            Self::Launcher(placed) => Some(placed.launcher.to_string()),
            Self::Job(ranks) => Some(format!("in a job of {} processes", ranks.hosts().len())),
        }
    }

    /// Returns the address of a server that runs already, if it is the replier.
    pub fn server(&self) -> Option<SocketAddr> {
        match self {
            Self::Server(address) => Some(*address),
            _ => None,
        }
    }
}
