//! One launch: a fresh pair of processes that measures a layer once, or a process by itself, or, for
//! a simulated layer, a fresh interface.

use crate::fault::Fault;
use crate::gathering;
use crate::interrupt::Interrupt;
use crate::launching::{self, Origin, Started};
use crate::peer::LaunchError;
use crate::worker::{Answer, Order};
use netdyno_host::wait::Wait;
use netdyno_job::crew::{Crew, CrewError, Event};
use netdyno_layers::catalogue::Layer;
use netdyno_layers::crowd;
use netdyno_layers::half::DialOptions;
use netdyno_layers::sim::{SimMessenger, SimRegistrar, SimRequester};
use netdyno_measure::layer::{Face, SizedRequester};
use netdyno_measure::task::{AnySize, Data, Memory, Messages, Subject, Task};
use netdyno_protocol::faults::Faults;
use netdyno_protocol::sim::Truth;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

/// How often a signal is looked for while a launch runs.
pub const LOOK: Duration = Duration::from_millis(100);
/// A launch that says nothing for this long has hung.
pub const SILENCE: Duration = Duration::from_secs(60);
/// When one process fails, the other has this long to say what it saw.
pub const AFTERMATH: Duration = Duration::from_secs(1);

const REQUESTER: usize = 0;
/// The replier's rank.
pub const REPLIER: usize = 1;

/// A layer, and how it is launched.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The layer.
    pub layer: Layer,
    /// What a report calls it besides.
    pub label: Option<String>,
    /// Bytes of a message.
    pub size_bytes: usize,
    /// How its processes wait.
    pub wait: Wait,
    /// Where its processes run, by rank: requester and replier first. None where it has none.
    pub cpus: Vec<usize>,
    /// How many different processors these are, on whatever machines.
    pub processors: usize,
    /// The parameters of a simulated layer.
    pub truth: Option<Truth>,
    /// Where sockets are on this host; the port is the replier's.
    pub bind: SocketAddr,
    /// Where its processes come from.
    pub origin: Origin,
    /// What goes wrong with what is sent, on purpose.
    pub faults: Option<Faults>,
    /// What the link is made to be like, on purpose.
    pub dials: DialOptions,
    /// What its processes have in their environment besides.
    pub variables: Vec<(&'static str, OsString)>,
}

impl Bench {
    /// Where workers on this side have their sockets. What this command has not started may be
    /// anywhere, and knows how it has reached this host.
    pub fn worker_ip(&self) -> IpAddr {
        match self.origin {
            Origin::Children | Origin::Peer(_) => self.bind.ip(),
            Origin::Launcher(_) | Origin::Job(_) => Ipv4Addr::UNSPECIFIED.into(),
        }
    }

    /// Whether all its processes are on this host, as far as is known before they are started.
    pub fn is_of_one_host(&self) -> bool {
        match &self.origin {
            Origin::Children | Origin::Launcher(_) => true,
            Origin::Peer(_) => false,
            Origin::Job(ranks) => ranks.machines() == 1,
        }
    }

    /// Measures once. `progress` is told the share that is done.
    pub fn launch(
        &self,
        task: &Task,
        interrupt: &Interrupt,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Launched, Fault> {
        let context =
            |text: String| Fault::Failed(format!("{}, launch {}: {text}", self.layer, task.launch() + 1));
        match (self.truth, task) {
            (Some(truth), Task::Contention(plan)) => {
                interrupt.check()?;
                crowd::launch(truth, self.size_bytes, plan, progress)
                    .map(|data| Data::Contention(data).into())
                    .map_err(|error| context(error.0))
            }
            (None, Task::Contention(plan)) => {
                gathering::launch(self, plan, interrupt, progress).map_err(|end| match end {
                    End::Fault(fault) => fault,
                    End::Failed(text) => context(text),
                })
            }
            (Some(truth), Task::Overlap(_)) => {
                interrupt.check()?;
                Messages(SimMessenger::new(truth, task.seed()))
                    .measure(task, progress)
                    .map(Launched::from)
                    .map_err(|error| context(error.0))
            }
            (Some(truth), Task::Registration(_)) => {
                interrupt.check()?;
                Memory(SimRegistrar::new(truth, task.seed()))
                    .measure(task, progress)
                    .map(Launched::from)
                    .map_err(|error| context(error.0))
            }
            (Some(truth), _) => {
                interrupt.check()?;
                let mut requester = SimRequester::new(truth, task.seed());
                requester
                    .set_sizes(self.size_bytes, self.size_bytes)
                    .and_then(|()| AnySize(requester).measure(task, progress))
                    .map(Launched::from)
                    .map_err(|error| context(error.0))
            }
            (None, _) => Team::launch(self, task, interrupt)
                .and_then(|team| team.measure(self, task, progress))
                .map_err(|end| match end {
                    End::Fault(fault) => fault,
                    End::Failed(text) => context(text),
                }),
        }
    }
}

/// What a launch measured.
pub struct Launched {
    /// The data.
    pub data: Data,
    /// Which library is behind the layer, where one is.
    pub library: Option<String>,
    /// How many machines its processes were on.
    pub machines: usize,
}

impl From<Data> for Launched {
    /// By no library but netdyno's own, in this process.
    fn from(data: Data) -> Self {
        Self { data, library: None, machines: 1 }
    }
}

/// Why a launch did not measure.
pub enum End {
    /// The run ends, whatever the launch says.
    Fault(Fault),
    /// Processes failed.
    Failed(String),
}

impl From<CrewError> for End {
    fn from(error: CrewError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<LaunchError> for End {
    fn from(error: LaunchError) -> Self {
        match error {
            LaunchError::Fault(fault) => Self::Fault(fault),
            LaunchError::Failed(text) => Self::Failed(text),
        }
    }
}

/// Requester and replier, or the one process of a layer that measures without another.
struct Team<'a> {
    crew: Crew,
    /// Ends after the crew.
    started: Started,
    interrupt: &'a Interrupt,
    procs: usize,
}

impl<'a> Team<'a> {
    fn launch(bench: &Bench, task: &Task, interrupt: &'a Interrupt) -> Result<Self, End> {
        let procs = if task.face().is_some() { 2 } else { 1 };
        let mut crew = Crew::new();
        let started = launching::launch(bench, procs, &mut crew, interrupt)?;
        Ok(Self { crew, started, interrupt, procs })
    }

    fn measure(mut self, bench: &Bench, task: &Task, progress: &mut dyn FnMut(f64)) -> Result<Launched, End> {
        for rank in 0..self.procs {
            let order = match task.face() {
                Some(face) => open_order(bench, rank, task, face),
                None => alone_order(bench),
            };
            self.crew.send(rank, &order)?;
        }
        let measure = Order::Measure(Box::new(task.clone()));
        let (mut addresses, mut connected, mut library) = (vec![None; self.procs], 0, None);
        loop {
            match self.next()? {
                (rank, Answer::Opened { address, library: behind, shared }) => {
                    self.started.leftovers.note(shared);
                    addresses[rank] = Some(address);
                    library = library.or(behind);
                    match &addresses[..] {
                        // There is nobody to connect to.
                        [Some(_)] => self.crew.send(REQUESTER, &measure)?,
                        [Some(requester), Some(replier)] => {
                            self.crew.send(REQUESTER, &Order::Connect(replier.clone()))?;
                            self.crew.send(REPLIER, &Order::Connect(requester.clone()))?;
                        }
                        _ => {}
                    }
                }
                (_, Answer::Connected) => {
                    connected += 1;
                    if connected == self.procs {
                        self.crew.send(REQUESTER, &measure)?;
                    }
                }
                (_, Answer::Progress(share)) => progress(share),
                // The replier serves until its crew is gone.
                (_, Answer::Measured(data)) => {
                    if bench.layer.is_of_library() {
                        self.crew.dismiss();
                    }
                    return Ok(Launched { data: *data, library, machines: self.started.machines });
                }
                (_, Answer::Crowd(_)) => return Err(End::Failed("a pair was answered as a crowd".into())),
                (rank, Answer::Failed(text)) => return Err(self.aftermath(rank, text)),
            }
        }
    }

    /// The next answer. That a process ends before the launch does is a failure.
    fn next(&mut self) -> Result<(usize, Answer), End> {
        let silent_at = Instant::now() + SILENCE;
        loop {
            self.interrupt.check().map_err(End::Fault)?;
            match self.crew.next(LOOK)? {
                Some((rank, Event::Message(answer))) => return Ok((rank, answer)),
                Some((rank, Event::Ended(end))) => return Err(self.aftermath(rank, end.to_string())),
                None if Instant::now() > silent_at => {
                    return Err(End::Failed(format!("nothing was heard for {SILENCE:?}; stopped")));
                }
                None => {}
            }
        }
    }

    /// One process has failed: adds what the other one saw, where there is one that says so soon.
    fn aftermath(&mut self, rank: usize, text: String) -> End {
        let procs = self.procs;
        let name = |rank: usize| match rank {
            REQUESTER if procs == 1 => "process",
            REQUESTER => "requester",
            _ => "replier",
        };
        let mut lines = vec![format!("the {} ({}) {text}", name(rank), self.crew.place(rank))];
        let mut texts = vec![text];
        let until = Instant::now() + AFTERMATH;
        while lines.len() < procs
            && let Some(left) = until.checked_duration_since(Instant::now())
        {
            let (other, text) = match self.crew.next(left) {
                Ok(Some((other, Event::Message(Answer::Failed(text))))) => (other, text),
                Ok(Some((other, Event::Ended(end)))) if other != rank => (other, end.to_string()),
                Ok(_) => continue,
                Err(_) => break,
            };
            if other != rank {
                lines.push(format!("the {} ({}) {text}", name(other), self.crew.place(other)));
                texts.push(text);
            }
        }
        if let [one, other] = &texts[..]
            && one == other
        {
            lines = vec![format!("both processes: {one}")];
        }
        lines.extend(launching::parting_words(self.started.job.as_mut()));
        End::Failed(lines.join("; "))
    }
}

fn alone_order(bench: &Bench) -> Order {
    Order::Alone { layer: bench.layer.to_string(), cpu: bench.cpus.first().copied() }
}

fn open_order(bench: &Bench, rank: usize, task: &Task, face: Face) -> Order {
    let size_bytes = match task {
        Task::Bulk(plan) => plan.largest_bytes.min(bench.layer.max_transfer()),
        Task::Overlap(plan) => plan.sizes.last().copied().unwrap_or(0).min(bench.layer.max_message()),
        Task::Dialled(planned) => planned.size_bytes,
        _ => bench.size_bytes,
    };
    let is_requester = rank == REQUESTER;
    let ip = match &bench.origin {
        Origin::Peer(peer) if !is_requester => peer.ip(),
        _ => bench.worker_ip(),
    };
    Order::Open {
        layer: bench.layer.to_string(),
        is_requester,
        size_bytes,
        face,
        wait: bench.wait.name().into(),
        faults: bench.faults.map(|faults| faults.to_string()),
        dials: (&bench.dials).into(),
        bind: SocketAddr::new(ip, if is_requester { 0 } else { bench.bind.port() }),
        // Other faults in the other direction.
        seed: task.seed() ^ rank as u64,
        cpu: bench.cpus.get(rank).copied(),
        has_own_cpu: bench.cpus.first() != bench.cpus.get(1) || bench.cpus.is_empty(),
    }
}
