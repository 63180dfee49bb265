//! The workers of a launch: children, a worker on a served host, what a launcher such as mpiexec
//! starts, or those of the job in which this command runs.

use crate::fault::Fault;
use crate::interrupt::Interrupt;
use crate::launch::{AFTERMATH, Bench, End, LOOK, REPLIER};
use crate::peer::Peer;
use crate::ranks::Ranks;
use crate::{secret, worker};
use netdyno_job::crew::{Crew, CrewError};
use netdyno_job::launcher::{Job, Launcher};
use netdyno_job::lobby::{Guest, Lobby};
use netdyno_job::shared_files::SharedFiles;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time for all workers to come: a launcher reaches other hosts first.
const COMING: Duration = Duration::from_secs(60);

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

/// What was started besides the crew.
pub struct Started {
    /// What the launcher has started.
    pub job: Option<Job>,
    /// How many machines the workers are on.
    pub machines: usize,
    /// Removed once everything above has ended.
    pub leftovers: Leftovers,
}

impl Started {
    fn new(job: Option<Job>, machines: usize) -> Self {
        Self { job, machines, leftovers: Leftovers::default() }
    }
}

/// Files in shared memory of the workers on this machine. Those that outlive their workers are removed
/// when this is dropped.
#[derive(Default)]
pub struct Leftovers(SharedFiles);

impl Leftovers {
    /// Notes those of a worker.
    pub fn note(&mut self, files: SharedFiles) {
        self.0.add(files);
    }
}

impl Drop for Leftovers {
    fn drop(&mut self) {
        std::mem::take(&mut self.0).remove_unused();
    }
}

/// Starts `procs` workers and takes them into the crew, by rank.
pub fn launch(bench: &Bench, procs: usize, crew: &mut Crew, interrupt: &Interrupt) -> Result<Started, End> {
    let machines = match &bench.origin {
        Origin::Launcher(launcher) => {
            return by_launcher(launcher, procs, bench, crew, interrupt);
        }
        Origin::Job(ranks) => {
            ranks.launch(bench.layer, crew, interrupt)?;
            ranks.machines()
        }
        Origin::Peer(peer) => {
            for rank in 0..procs {
                match rank {
                    REPLIER => crew.enlist(peer.launch(interrupt)?)?,
                    _ => crew.launch(worker::command(&bench.variables).map_err(CrewError::Spawn)?)?,
                };
            }
            if peer.is_this_host() { 1 } else { 2 }
        }
        Origin::Children => {
            for _ in 0..procs {
                crew.launch(worker::command(&bench.variables).map_err(CrewError::Spawn)?)?;
            }
            1
        }
    };
    Ok(Started::new(None, machines))
}

/// How many different texts there are.
pub fn distinct<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.collect::<BTreeSet<_>>().len()
}

fn by_launcher(
    launcher: &Launcher,
    procs: usize,
    bench: &Bench,
    crew: &mut Crew,
    interrupt: &Interrupt,
) -> Result<Started, End> {
    // The address of this host that the workers reach.
    let ip = bench.bind.ip();
    let lobby = Lobby::open(ip).map_err(|error| End::Failed(format!("cannot listen at {ip}: {error}")))?;
    let mut command = worker::command(&[]).map_err(CrewError::Spawn)?;
    command.arg("--dial").arg(lobby.address().to_string());
    let mut variables: Vec<(&str, &OsStr)> = vec![(secret::VARIABLE, lobby.key_text().as_ref())];
    variables.extend(bench.variables.iter().map(|(name, value)| (*name, value.as_os_str())));
    let mut job = launcher.start(procs, &command, &variables).map_err(|error| unstarted(launcher, &error))?;
    let program = launcher.program();
    let guests = gather(&lobby, procs, interrupt, &mut || match job.ended().map_err(CrewError::Wait)? {
        None => Ok(()),
        Some((status, words)) if words.is_empty() => Err(End::Failed(format!(
            "'{program}' ended ({status}) before its {procs} processes had come, and said nothing: does \
             --launcher start processes, as 'mpiexec -n {{n}}' does?"
        ))),
        Some((status, words)) => Err(End::Failed(format!(
            "'{program}' ended ({status}) before its {procs} processes had come: {words}"
        ))),
    })?;
    let machines = distinct(guests.iter().map(|guest| &guest.machine[..]));
    for guest in guests {
        crew.enlist(guest.control)?;
    }
    Ok(Started::new(Some(job), machines))
}

/// What a launcher says of why its processes have failed.
pub fn parting_words(job: Option<&mut Job>) -> Option<String> {
    let words = job?.parting_words(AFTERMATH)?;
    Some(format!("their launcher says: {words}"))
}

fn unstarted(launcher: &Launcher, error: &io::Error) -> End {
    let program = launcher.program();
    End::Fault(Fault::BadInput(match error.kind() {
        io::ErrorKind::NotFound => {
            format!("--launcher: there is no program '{program}': install it, or name its path")
        }
        _ => format!("--launcher: cannot start '{program}': {error}"),
    }))
}

/// Waits for `procs` workers, and gives them by rank; where no place was told, in the order of
/// coming. An error of `look`, which is asked while nobody comes, ends it.
pub fn gather(
    lobby: &Lobby,
    procs: usize,
    interrupt: &Interrupt,
    look: &mut dyn FnMut() -> Result<(), End>,
) -> Result<Vec<Guest>, End> {
    let until = Instant::now() + COMING;
    let mut guests = Vec::new();
    while guests.len() < procs {
        interrupt.check().map_err(End::Fault)?;
        match lobby.next(LOOK) {
            Some(Guest { place: Some(place), .. }) if place.procs != procs => {
                return Err(End::Fault(Fault::BadInput(format!(
                    "{} processes were started, and {procs} are wanted: say -n {{n}} to --launcher",
                    place.procs
                ))));
            }
            Some(guest) => guests.push(guest),
            None => look()?,
        }
        if Instant::now() > until {
            return Err(End::Failed(format!(
                "of {procs} processes {} came within {COMING:?}: is {} an address that all hosts reach \
                 (--bind), and is {} passed on by what starts them?",
                guests.len(),
                lobby.address().ip(),
                secret::VARIABLE
            )));
        }
    }
    guests.sort_by_key(|guest| guest.place.map_or(0, |place| place.rank));
    Ok(guests)
}
