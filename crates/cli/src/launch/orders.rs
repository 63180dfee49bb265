//! The messages between the command and its workers, over a control connection.

use crate::hosts::host::Host;
use netdyno_job::shared_files::SharedFiles;
use netdyno_layers::options::DialOptions;
use netdyno_measure::contention::step::{Assignment, Counted, Cue};
use netdyno_measure::layer::Face;
use netdyno_measure::onesided::data::Access;
use netdyno_measure::overlap::data::ProgressBy;
use netdyno_measure::record::Environment;
use netdyno_measure::task::{Data, Task};
use netdyno_protocol::dial::parameters::Dials;
use netdyno_protocol::dial::profile::{Profile, ProfileError};
use netdyno_protocol::dial::setting::SettingError;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;

/// A message from the launching side to a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Open one side of the layer.
    Open {
        /// The layer's name.
        layer: String,
        /// Whether the worker is the requester; otherwise it is the replier.
        is_requester: bool,
        /// Size of a message, in bytes; the maximum if the sizes differ.
        size_bytes: usize,
        /// The interface of the layer that the task uses.
        face: Face,
        /// How one-sided operations reach memory.
        access: Access,
        /// Where messages make progress that are posted.
        progress_by: ProgressBy,
        /// The wait policy.
        wait: String,
        /// Injected faults of datagrams.
        faults: Option<String>,
        /// Dials of the link.
        dials: DialOrder,
        /// Address of the socket, if the layer has one.
        bind: SocketAddr,
        /// Seed of the random numbers.
        seed: u64,
        /// Processor of the worker.
        cpu: Option<usize>,
        /// Whether the processes tell their processor time.
        has_accounts: bool,
        /// Whether the other process runs on another processor.
        has_own_cpu: bool,
    },
    /// Open a layer that needs no other process.
    Alone {
        /// The layer's name.
        layer: String,
        /// Processor of the worker.
        cpu: Option<usize>,
    },
    /// Open both ends of a layer, to break its operations down.
    Parts {
        /// The layer's name.
        layer: String,
        /// Bytes of a message.
        size_bytes: usize,
        /// Processor of the worker.
        cpu: Option<usize>,
        /// Processor of its thread that answers, if that has one of its own.
        partner_cpu: Option<usize>,
    },
    /// Tell on which host the process runs.
    Tell,
    /// Describe the machine, and watch this processor for interruptions.
    Describe(Option<usize>),
    /// Open a layer for processes that wait in this way, and close it.
    Try {
        /// The layer's name.
        layer: String,
        /// The wait policy.
        wait: String,
    },
    /// Connect to the other side at this address and, as the replier, serve.
    Connect(Vec<u8>),
    /// As the requester, measure.
    Measure(Box<Task>),
    /// An order to one process of many.
    Crowd(CrowdOrder),
}

/// A message from a worker to the launching side.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// The worker's side of the layer is open.
    Opened {
        /// Address of this side.
        address: Vec<u8>,
        /// Name of the library behind the layer, if any.
        library: Option<String>,
        /// The worker's files in shared memory.
        #[serde(default)]
        shared: SharedFiles,
    },
    /// The host of the process.
    Here(Host),
    /// The description of the machine.
    Environment(Box<Environment>),
    /// The layer can be opened.
    Tried,
    /// The worker is connected.
    Connected,
    /// Progress of the measurement, as a share.
    Progress(f64),
    /// The measured data.
    Measured(Box<Data>),
    /// An answer of one process of many.
    Crowd(CrowdAnswer),
    /// The worker has failed.
    Failed(String),
}

/// The dials of a link, as text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DialOrder {
    turns: Vec<String>,
    word: Option<(PathBuf, usize)>,
    profile: Option<String>,
}

impl From<&DialOptions> for DialOrder {
    fn from(DialOptions { settings, word, profile }: &DialOptions) -> Self {
        Self {
            turns: settings.iter().map(Dials::to_string).collect(),
            word: word.clone(),
            profile: profile.as_ref().map(Profile::to_string),
        }
    }
}

impl DialOrder {
    /// Parses the dials.
    pub fn read(self) -> Result<DialOptions, String> {
        let settings = self.turns.iter().map(|text| text.parse()).collect::<Result<_, SettingError>>();
        let profile = self.profile.map(|text| text.parse()).transpose();
        Ok(DialOptions {
            settings: settings.map_err(|error| error.to_string())?,
            word: self.word,
            profile: profile.map_err(|error: ProfileError| error.to_string())?,
        })
    }
}

/// An order to one process of many.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum CrowdOrder {
    /// Open a port for each other process.
    Gather(Box<Opening>),
    /// Connect to all other processes, at these addresses by rank.
    Meet(Vec<Vec<u8>>),
    /// Act as a requester.
    Perform(Box<Assignment>),
    /// Act as the replier of these requesters.
    Serve(Vec<usize>),
    /// Go on to this phase of the step.
    Cue(Cue),
}

/// The opening of one process of many.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Opening {
    /// The layer's name.
    pub layer: String,
    /// Rank of the process.
    pub rank: usize,
    /// Number of processes.
    pub procs: usize,
    /// Size of a message, in bytes.
    pub size_bytes: usize,
    /// The wait policy.
    pub wait: String,
    /// Injected faults of datagrams.
    pub faults: Option<String>,
    /// Dials of the link.
    pub dials: DialOrder,
    /// Address of the socket, if the layer has one.
    pub bind: SocketAddr,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Processor of the process.
    pub cpu: Option<usize>,
}

/// An answer of one process of many.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum CrowdAnswer {
    /// The ports are open.
    Gathered {
        /// Addresses of the ports, by rank.
        addresses: Vec<Vec<u8>>,
        /// The process's files in shared memory.
        shared: SharedFiles,
    },
    /// The process is connected to all others.
    Met,
    /// The process has warmed up for its assignment.
    Warm,
    /// The process has counted.
    Counted(Counted),
    /// The process has carried out its order. The number counts its preemptions, if the system reports them.
    Done(Option<u64>),
}
