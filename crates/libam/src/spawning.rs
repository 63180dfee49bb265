//! The start of ranks by the program itself, as AMUDP does: the first process starts the others, and ends when they have
//! ended.

pub mod commands;
pub mod ways;

use crate::arguments::INVITATION;
use crate::code::Code;
use crate::refusal::{Refusal, failed, refuse, say};
use crate::settings;
use netdyno_job::launching::entrance::Entrance;
use netdyno_job::launching::{self, End, LaunchError, PROCS_AT_MOST, remote};
use std::ffi::{OsString, c_int};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use ways::Spawn;

/// The setting that chooses the way where the program has no letter.
const WAY: &str = "SPAWNFN";

/// Starts the ranks and waits for their end. Returns the exit code of the job.
///
/// `arguments` are those of `main`. The number of ranks and the way to start them are the first two, unless the program
/// gives them as `ranks` and `spawn`.
///
/// # Errors
/// Returns `BadArg` if there is no number of ranks, and `Resource` if they cannot be started that way.
pub fn spawn(arguments: &[OsString], ranks: c_int, spawn: Option<Spawn>) -> Result<c_int, Refusal> {
    let (program, mut rest) =
        arguments.split_first().ok_or_else(|| refuse(Code::BadArg, "the arguments of main are empty"))?;
    let ranks = match ranks {
        0 => {
            let number = rest.first().and_then(|first| first.to_str()?.parse().ok());
            rest = rest.get(1..).unwrap_or_default();
            number
        }
        ranks => usize::try_from(ranks).ok(),
    };
    let ranks = ranks.filter(|ranks| *ranks > 0).ok_or_else(|| {
        refuse(
            Code::BadArg,
            "the number of ranks is not above 0: give it as the first argument of the program",
        )
    })?;
    let spawn = match (spawn, rest.first().and_then(|letter| ways::of(letter.as_bytes()))) {
        (Some(spawn), _) => spawn,
        (None, Some(spawn)) => {
            rest = &rest[1..];
            spawn
        }
        (None, None) => preset()?,
    };
    let command: Vec<OsString> = std::iter::once(program).chain(rest).cloned().collect();
    if ways::is_local(spawn) { run(&command, ranks) } else { elsewhere(command, ranks, spawn) }
}

/// Returns the way that the environment names, or that on this host.
fn preset() -> Result<Spawn, Refusal> {
    let Some(name) = settings::of_amudp(WAY) else { return Ok(ways::AMUDP_SPMDLocalSpawn) };
    ways::of(name.as_bytes())
        .ok_or_else(|| failed(format!("{WAY}='{}' is no way to start ranks: use S, L or C", name.display())))
}

/// Starts the ranks on this host.
fn run(command: &[OsString], ranks: usize) -> Result<c_int, Refusal> {
    let [name, arguments @ ..] = command else {
        return Err(refuse(Code::BadArg, "the arguments of main are empty"));
    };
    // The name may be found through PATH, or be relative to a folder that the program has left.
    let program = std::env::current_exe().map_err(failed)?;
    let rank = |_| {
        let mut command = Command::new(&program);
        command.arg0(name).args(arguments);
        command
    };
    // A signal that ends this process ends the ranks, too.
    let end = launching::run(ranks, rank, || None).map_err(failed)?;
    Ok(told(end))
}

/// Has a function start the ranks, and serves those that come.
fn elsewhere(mut command: Vec<OsString>, ranks: usize, spawn: Spawn) -> Result<c_int, Refusal> {
    if ranks > PROCS_AT_MOST {
        return Err(failed(LaunchError::Procs(ranks)));
    }
    let within = settings::peer_timeout().map_err(failed)?;
    let address = settings::address().map_err(failed)?;
    let entrance = Entrance::open(address.into())
        .map_err(|error| failed(format!("this process cannot listen at {address}: {error}")))?;
    if !command[0].as_bytes().contains(&b'/') {
        // The name was found through PATH.
        command[0] = std::env::current_exe().map_err(failed)?.into();
    }
    command.insert(1, format!("{INVITATION}{}", entrance.invitation()).into());
    let starters = ways::call(spawn, ranks, &command)?;
    // From here on ranks may run: an error is that of the job.
    Ok(match remote::serve(entrance, ranks, starters, within) {
        Ok(end) => told(end),
        Err(error) => {
            say(&error.to_string());
            error.code().into()
        }
    })
}

/// Says how a job has ended, if not well, and returns its exit code.
fn told(end: End) -> c_int {
    if end != End::Done {
        say(&end.to_string());
    }
    end.code().into()
}
