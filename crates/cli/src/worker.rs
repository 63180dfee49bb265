//! One process of a launch, on the far side of the control connection.

use crate::args::WorkerArgs;
use crate::attendant::{self, CrowdAnswer, CrowdOrder};
use crate::dialled;
use crate::fault::Fault;
use crate::secret;
use netdyno_clock::place;
use netdyno_host::wait::{Wait, lost_turns, nap_beside_others};
use netdyno_job::frame::FrameError;
use netdyno_job::lobby;
use netdyno_job::member::{Control, MemberError};
use netdyno_job::place::Place;
use netdyno_job::shared_files::SharedFiles;
use netdyno_layers::catalogue::Layer;
use netdyno_layers::half::{self, DialOptions, LayerOptions, Role};
use netdyno_layers::registrar;
use netdyno_measure::layer::{Face, LayerError};
use netdyno_measure::task::{Data, Subject, Task};
use netdyno_protocol::dial::profile::{Profile, ProfileError};
use netdyno_protocol::dial::setting::SettingError;
use netdyno_protocol::dial::terms::Dials;
use netdyno_protocol::faults::Faults;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// Patience with the launching side.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Least change of the share that is done that is worth waking the launching side, which
/// takes a processor from somebody.
const PROGRESS_STEP: f64 = 0.1;
/// Time after which it is told all the same, so that it knows that this side goes on: on a busy machine
/// a share may take long, and what is left behind when the time is up has none.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

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

/// Why a worker ends early.
pub enum End {
    /// The layer failed; the launching side is told.
    Layer(String),
    /// The launching side is gone or silent.
    Control(MemberError),
}

impl From<MemberError> for End {
    fn from(error: MemberError) -> Self {
        Self::Control(error)
    }
}

impl From<LayerError> for End {
    fn from(error: LayerError) -> Self {
        Self::Layer(error.0)
    }
}

/// What starts a worker: this command again, with more in its environment.
pub fn command(variables: &[(&'static str, OsString)]) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    // It has its connection and needs no key.
    command.arg("worker").env_remove(secret::VARIABLE);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    Ok(command)
}

/// Runs this process's part of a launch.
pub fn run(args: &WorkerArgs) -> Result<(), Fault> {
    let control = match args.dial {
        None => Control::from_stdin(),
        Some(address) => Control::on(enter(address)?.into()),
    };
    let mut control = control.map_err(|error| Fault::BadInput(error.to_string()))?;
    let silent = |error: MemberError| Fault::Failed(error.to_string());
    match work(&mut control) {
        Ok(()) => Ok(()),
        // There is nobody left to report to.
        Err(End::Control(MemberError::Over | MemberError::Control(FrameError::Closed))) => {
            Err(Fault::Quiet(1))
        }
        Err(End::Control(error)) => Err(silent(error)),
        // Told to the launching side, which tells the user.
        Err(End::Layer(text)) => match control.send(&Answer::Failed(text)) {
            Err(MemberError::Control(FrameError::Closed)) => Err(Fault::Quiet(1)),
            sent => sent.map_err(silent),
        },
    }
}

/// Runs the part of a launch that is this process's in a process that goes on afterwards.
pub fn run_within(connection: TcpStream) -> Result<(), LayerError> {
    let mut control = Control::within(connection).map_err(LayerError::new)?;
    if let Err(End::Layer(text)) = work(&mut control) {
        // The launching side closes the connection when it needs no more, and sees it closed
        // when this side does.
        let _ = control.send(&Answer::Failed(text));
    }
    Ok(())
}

fn enter(address: SocketAddr) -> Result<TcpStream, Fault> {
    let key = secret::given(None)?.ok_or_else(|| {
        Fault::BadInput(format!(
            "{0} is not set: have the launcher pass it on, as in -x {0}",
            secret::VARIABLE
        ))
    })?;
    lobby::enter(address, &key, Place::of_this_process())
        .map_err(|error| Fault::Failed(format!("the launching side at {address}: {error}")))
}

/// Where a socket is to be: where nothing is said of the host, where the control connection is.
pub fn bound<T: DeserializeOwned + Send + 'static>(bind: SocketAddr, control: &Control<T>) -> SocketAddr {
    let here = control.local_ip().filter(|_| bind.ip().is_unspecified());
    SocketAddr::new(here.unwrap_or(bind.ip()), bind.port())
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
    pub fn read(self) -> Result<DialOptions, End> {
        let turns = self.turns.iter().map(|text| text.parse()).collect::<Result<_, SettingError>>();
        let profile = self.profile.map(|text| text.parse()).transpose();
        Ok(DialOptions {
            turns: turns.map_err(|error| End::Layer(error.to_string()))?,
            word: self.word,
            profile: profile.map_err(|error: ProfileError| End::Layer(error.to_string()))?,
        })
    }
}

/// What is said of an order that makes no sense.
pub fn unexpected(order: &Order) -> End {
    End::Layer(format!("the order {order:?} came out of turn"))
}

/// Runs on this processor from now on, where one is named.
pub fn pin(cpu: Option<usize>) -> Result<(), End> {
    match cpu.map(|cpu| (cpu, place::pin(cpu))) {
        Some((cpu, Err(error))) => Err(End::Layer(format!("cannot run on processor {cpu}: {error}"))),
        _ => Ok(()),
    }
}

fn work(control: &mut Control<Order>) -> Result<(), End> {
    let (layer, role, cpu, options) = match control.receive(PATIENCE)? {
        Order::Open {
            layer,
            is_requester,
            size_bytes,
            face,
            wait,
            faults,
            dials,
            bind,
            seed,
            cpu,
            has_own_cpu,
        } => {
            if has_own_cpu {
                nap_beside_others();
            }
            let role = if is_requester { Role::Requester } else { Role::Replier };
            let wait = wait.parse().map_err(End::Layer)?;
            let faults = faults.map_or(Ok(Faults::NONE), |faults| faults.parse());
            let faults = faults.map_err(|error| End::Layer(error.to_string()))?;
            let bind = bound(bind, control);
            let options = LayerOptions { size_bytes, face, wait, faults, dials: dials.read()?, seed, bind };
            (layer.parse::<Layer>().map_err(End::Layer)?, role, cpu, options)
        }
        Order::Alone { layer, cpu } => {
            pin(cpu)?;
            return measure_alone(control, layer.parse().map_err(End::Layer)?);
        }
        Order::Crowd(order) => return attendant::work(control, order),
        other => return Err(unexpected(&other)),
    };
    pin(cpu)?;
    let wait = options.wait;
    let half = half::open(layer, role, options)?;
    let library = half.library().map(str::to_owned);
    let shared = control.shared_files();
    control.send(&Answer::Opened { address: half.address(), library, shared })?;
    let peer = match control.receive(PATIENCE)? {
        Order::Connect(peer) => peer,
        other => return Err(unexpected(&other)),
    };
    match role {
        Role::Requester => {
            let subject = half.requester(&peer)?;
            control.send(&Answer::Connected)?;
            measure(control, subject, wait)
        }
        Role::Replier => {
            let mut replier = half.replier(&peer)?;
            control.send(&Answer::Connected)?;
            Ok(replier.serve(control.over())?)
        }
    }
}

fn measure_alone(control: &mut Control<Order>, layer: Layer) -> Result<(), End> {
    let registrar = registrar::open(layer)?;
    let shared = control.shared_files();
    control.send(&Answer::Opened { address: Vec::new(), library: registrar.library, shared })?;
    // It never waits.
    measure(control, registrar.subject, Wait::Spin)
}

/// Does what it is told to measure.
fn measure(control: &mut Control<Order>, mut subject: Box<dyn Subject>, wait: Wait) -> Result<(), End> {
    let task = match control.receive(PATIENCE)? {
        Order::Measure(task) => task,
        other => return Err(unexpected(&other)),
    };
    let preempted_before = preemptions(wait);
    let (mut told, mut told_at) = (0.0, Instant::now());
    let mut progress = |share| {
        control.end_if_over();
        if share - told >= PROGRESS_STEP || told_at.elapsed() >= PROGRESS_EVERY {
            (told, told_at) = (share, Instant::now());
            // Where nobody listens any more, the next look ends the process.
            let _ = control.send(&Answer::Progress(share));
        }
    };
    let mut data = match &*task {
        Task::Dialled(planned) => dialled::measure(&mut *subject, planned, &mut progress)?,
        task => subject.measure(task, &mut progress)?,
    };
    data.set_preemptions(preemptions(wait).zip(preempted_before).map(|(after, before)| after - before));
    Ok(control.send(&Answer::Measured(Box::new(data)))?)
}

/// Times that the system took the processor from this thread, where it says. One that yields gives its
/// processor away itself, which the system counts the same: then, times that others kept it, where that is known.
pub fn preemptions(wait: Wait) -> Option<u64> {
    if wait == Wait::Yield {
        return lost_turns();
    }
    let status = std::fs::read_to_string("/proc/thread-self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"))?.trim().parse().ok()
}
