//! The workers of a launch: children, a worker on a served host, or what a launcher such as
//! mpiexec starts.

use crate::fault::Fault;
use crate::interrupt::Interrupt;
use crate::launch::{AFTERMATH, Bench, End, LOOK, REPLIER};
use crate::{secret, worker};
use netdyno_job::crew::{Crew, CrewError};
use netdyno_job::launcher::{Job, Launcher};
use netdyno_job::lobby::{Guest, Lobby};
use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Time for all workers to come: a launcher reaches other hosts first.
const COMING: Duration = Duration::from_secs(60);

/// Starts `procs` workers and takes them into the crew, by rank.
pub fn launch(
    bench: &Bench,
    procs: usize,
    crew: &mut Crew,
    interrupt: &Interrupt,
) -> Result<Option<Job>, End> {
    if let Some(launcher) = &bench.launcher {
        return by_launcher(launcher, procs, bench.bind.ip(), crew, interrupt).map(Some);
    }
    for rank in 0..procs {
        match bench.peer.as_ref().filter(|_| rank == REPLIER) {
            Some(peer) => crew.enlist(peer.launch(interrupt)?)?,
            None => crew.launch(worker::command().map_err(CrewError::Spawn)?)?,
        };
    }
    Ok(None)
}

/// `ip` is the address of this host that the workers reach.
fn by_launcher(
    launcher: &Launcher,
    procs: usize,
    ip: IpAddr,
    crew: &mut Crew,
    interrupt: &Interrupt,
) -> Result<Job, End> {
    let lobby = Lobby::open(ip).map_err(|error| End::Failed(format!("cannot listen at {ip}: {error}")))?;
    let mut command = worker::command().map_err(CrewError::Spawn)?;
    command.arg("--dial").arg(lobby.address().to_string());
    let key = (secret::VARIABLE, lobby.key_text());
    let mut job = launcher.start(procs, &command, &[key]).map_err(|error| unstarted(launcher, &error))?;
    let mut guests = gather(&lobby, &mut job, launcher, procs, interrupt)?;
    // Where no place was told the order is that of coming.
    guests.sort_by_key(|guest| guest.place.map_or(0, |place| place.rank));
    for guest in guests {
        crew.enlist(guest.control)?;
    }
    Ok(job)
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

fn gather(
    lobby: &Lobby,
    job: &mut Job,
    launcher: &Launcher,
    procs: usize,
    interrupt: &Interrupt,
) -> Result<Vec<Guest>, End> {
    let program = launcher.program();
    let until = Instant::now() + COMING;
    let mut guests = Vec::new();
    while guests.len() < procs {
        interrupt.check().map_err(End::Fault)?;
        match lobby.next(LOOK) {
            Some(Guest { place: Some(place), .. }) if place.procs != procs => {
                return Err(End::Fault(Fault::BadInput(format!(
                    "--launcher: '{program}' has started {} processes, and {procs} are wanted: say -n {{n}}",
                    place.procs
                ))));
            }
            Some(guest) => guests.push(guest),
            None => {
                if let Some((status, words)) = job.ended().map_err(CrewError::Wait)? {
                    return Err(End::Failed(format!(
                        "'{program}' ended ({status}) before its {procs} processes had come: {words}"
                    )));
                }
            }
        }
        if Instant::now() > until {
            return Err(End::Failed(format!(
                "of {procs} processes {} came within {COMING:?}: is {} an address that all hosts reach \
                 (--bind), and does '{program}' pass {} on?",
                guests.len(),
                lobby.address().ip(),
                secret::VARIABLE
            )));
        }
    }
    Ok(guests)
}
