//! What the command and its workers say to each other over a control connection.

use netdyno_job::shared_files::SharedFiles;
use netdyno_layers::half::DialOptions;
use netdyno_measure::contention::step::{Assignment, Counted, Cue};
use netdyno_measure::layer::Face;
use netdyno_measure::task::{Data, Task};
use netdyno_protocol::dial::profile::{Profile, ProfileError};
use netdyno_protocol::dial::setting::SettingError;
use netdyno_protocol::dial::terms::Dials;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;

/// What the launching side says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Open your half.
    Open {
        /// The layer's name.
        layer: String,
        /// Whether to issue requests or to answer them.
        is_requester: bool,
        /// Bytes of a message; the most of them where messages differ.
        size_bytes: usize,
        /// What is to be shared of the layer.
        face: Face,
        /// How to wait.
        wait: String,
        /// What goes wrong with what is sent, on purpose.
        faults: Option<String>,
        /// What the link is made to be like, on purpose.
        dials: DialOrder,
        /// Where its socket is, if it has one.
        bind: SocketAddr,
        /// Seed of what is random.
        seed: u64,
        /// Where to run.
        cpu: Option<usize>,
        /// Whether the other process runs elsewhere.
        has_own_cpu: bool,
    },
    /// Open the layer, without another process.
    Alone {
        /// The layer's name.
        layer: String,
        /// Where to run.
        cpu: Option<usize>,
    },
    /// Connect to the half with this address and, as a replier, serve.
    Connect(Vec<u8>),
    /// As a requester, measure.
    Measure(Box<Task>),
    /// What one process of many is told.
    Crowd(CrowdOrder),
}

/// What a worker says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// Its half is open.
    Opened {
        /// Where it is reached.
        address: Vec<u8>,
        /// Which library is behind the layer, where one is.
        library: Option<String>,
        /// The files in shared memory that it has.
        #[serde(default)]
        shared: SharedFiles,
    },
    /// It is connected.
    Connected,
    /// The share that is done.
    Progress(f64),
    /// All that was measured.
    Measured(Box<Data>),
    /// What one process of many says.
    Crowd(CrowdAnswer),
    /// It cannot go on.
    Failed(String),
}

/// How a link is to be dialled, as it is spelled.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DialOrder {
    turns: Vec<String>,
    word: Option<(PathBuf, usize)>,
    profile: Option<String>,
}

impl From<&DialOptions> for DialOrder {
    fn from(DialOptions { turns, word, profile }: &DialOptions) -> Self {
        Self {
            turns: turns.iter().map(Dials::to_string).collect(),
            word: word.clone(),
            profile: profile.as_ref().map(Profile::to_string),
        }
    }
}

impl DialOrder {
    /// What it says.
    pub fn read(self) -> Result<DialOptions, String> {
        let turns = self.turns.iter().map(|text| text.parse()).collect::<Result<_, SettingError>>();
        let profile = self.profile.map(|text| text.parse()).transpose();
        Ok(DialOptions {
            turns: turns.map_err(|error| error.to_string())?,
            word: self.word,
            profile: profile.map_err(|error: ProfileError| error.to_string())?,
        })
    }
}

/// What the launching side says to one process of many.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum CrowdOrder {
    /// Open a port for each other process.
    Gather(Box<Opening>),
    /// Connect to all others, at these addresses by rank.
    Meet(Vec<Vec<u8>>),
    /// Be a requester.
    Perform(Box<Assignment>),
    /// Answer these.
    Serve(Vec<usize>),
    /// What comes next in the step.
    Cue(Cue),
}

/// How a process takes its place.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Opening {
    /// The layer's name.
    pub layer: String,
    /// Its rank.
    pub rank: usize,
    /// How many there are.
    pub procs: usize,
    /// Bytes of a message.
    pub size_bytes: usize,
    /// How to wait.
    pub wait: String,
    /// What goes wrong with what is sent, on purpose.
    pub faults: Option<String>,
    /// What the link is made to be like, on purpose.
    pub dials: DialOrder,
    /// Where its socket is, if it has one.
    pub bind: SocketAddr,
    /// Seed of what is random.
    pub seed: u64,
    /// Where to run.
    pub cpu: Option<usize>,
}

/// What one process of many says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum CrowdAnswer {
    /// Its ports are open.
    Gathered {
        /// Where they are reached, by rank.
        addresses: Vec<Vec<u8>>,
        /// The files in shared memory that they have.
        shared: SharedFiles,
    },
    /// It is connected to all others.
    Met,
    /// It does what it is asked to.
    Warm,
    /// It has counted.
    Counted(Counted),
    /// It has done what it was asked to, and lost its processor so many times, where that is
    /// known.
    Done(Option<u64>),
}
