//! One process of a job in which this command runs, as in `mpiexec -n 2 netdyno logp --over mpi`.
//!
//! The processes find each other through their launcher, a folder or MPI ([`crate::job::meeting`]). Rank 0 leads: it
//! measures and writes the result on a second thread, because MPI belongs to the thread that initialised it. All
//! processes, rank 0 included, follow its calls ([`crate::job::ranks`]): they start fresh workers or, for MPI,
//! are workers themselves.

use crate::hosts::host::Host;
use crate::hosts::machine;
use crate::hosts::secret;
use crate::job::exchange::{Exchange, Kind};
use crate::job::meeting::{Deadline, Door, meet};
use crate::job::ranks::{Call, Ranks, Word};
use crate::launch::worker;
use crate::options::bench::Measuring;
use crate::terminal::fault::Fault;
use crate::terminal::interrupt::Interrupt;
use netdyno_clock::place as processors;
use netdyno_job::member::{Control, MemberError};
use netdyno_job::place::{Place, has_elder_here};
use netdyno_job::rendezvous::Rendezvous;
use netdyno_layers::catalogue::Layer;
use netdyno_measure::layer::LayerError;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

/// Timeout for the rendezvous of all processes.
const MEETING: Duration = Duration::from_secs(90);
/// Timeout for a worker to close its layer.
const GRACE: Duration = Duration::from_secs(3);
/// The time in which the process that tells an error does so. A launcher ends all processes once one has failed.
const TELLING: Duration = Duration::from_secs(1);
/// Timeout for MPI to finalise.
const ENDING: Duration = Duration::from_secs(5);

/// Returns the place of this process, if it is in a job of several.
pub fn place() -> Result<Option<Place>, Fault> {
    let place = Place::of_this_process().map_err(|error| Fault::BadInput(error.to_string()))?;
    Ok(place.filter(|place| place.procs > 1))
}

/// Silences an error on every rank but 0, because all processes of the job find the same one.
pub fn said_once(fault: Fault) -> Fault {
    let is_another = |place: Option<Place>| place.is_some_and(|place| place.rank > 0);
    if place().is_ok_and(is_another) { silenced(&fault) } else { fault }
}

/// Silences an error on all processes of a host but the first, because all of them find the same one.
fn said_by_the_elder(fault: Fault) -> Fault {
    if has_elder_here() { silenced(&fault) } else { fault }
}

/// Leaves an error to another process to tell, and time to do so.
fn silenced(fault: &Fault) -> Fault {
    thread::sleep(TELLING);
    Fault::Quiet(fault.code())
}

/// Runs this process of the job, which measures the layers `over`: rank 0 leads it by `lead`, and every process
/// follows.
pub fn run<F>(place: Place, measuring: &Measuring, over: &[Layer], lead: F) -> Result<(), Fault>
where
    F: FnOnce(Rc<Ranks>) -> Result<(), Fault> + Send,
{
    if measuring.peer.is_some() {
        let text = "a job measures between its own processes: leave --peer away";
        return Err(said_once(Fault::BadInput(text.into())));
    }
    let Place { rank, procs } = place;
    let kind = Kind::of(over);
    let late = format!(
        "the {procs} processes of the job did not come together within {MEETING:?} through {}",
        kind.name()
    );
    // The first process tells why, before the others end.
    let deadline = match rank {
        0 => Deadline::of(MEETING, Some(late), 1),
        _ => Deadline::of(MEETING + TELLING, None, 1),
    };
    let about =
        |why: String| format!("process {rank} of {procs} finds the others through {}: {why}", kind.name());
    if let Some(why) = kind.unavailable() {
        return Err(said_by_the_elder(Fault::BadInput(about(why))));
    }
    // The user names the folder, and nobody the others.
    let fault = if kind == Kind::Folder { Fault::BadInput } else { Fault::Failed };
    let mut exchange =
        Exchange::open(kind, place).map_err(|error| said_by_the_elder(fault(about(error.0))))?;
    // The processes of a host find the same wrong with a folder.
    let told = |fault| if kind == Kind::Folder { said_by_the_elder(fault) } else { fault };
    let (door, rendezvous) = meet(&mut exchange, measuring.bind.map(|bind| bind.ip())).map_err(told)?;
    let exchange = exchange.kept();
    drop(deadline);
    let result = lead_or_follow(&door, rendezvous, lead);
    // The result is reported before MPI finalises, because that may never return.
    let result = result.map_err(Fault::told);
    let _deadline = Deadline::of(ENDING, None, code_of(&result));
    drop(exchange);
    result
}

fn lead_or_follow<F>(door: &Door, rendezvous: Option<Rendezvous>, lead: F) -> Result<(), Fault>
where
    F: FnOnce(Rc<Ranks>) -> Result<(), Fault> + Send,
{
    thread::scope(|scope| {
        let leading =
            rendezvous.map(|rendezvous| scope.spawn(|| lead_all(rendezvous, door.place.procs, lead)));
        let followed = follow(door);
        match leading.map(|leading| leading.join()) {
            Some(Ok(led)) => led,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => match followed? {
                0 => Ok(()),
                code => Err(Fault::Quiet(code)),
            },
        }
    })
}

fn lead_all<F>(rendezvous: Rendezvous, procs: usize, lead: F) -> Result<(), Fault>
where
    F: FnOnce(Rc<Ranks>) -> Result<(), Fault>,
{
    let ranks = Rc::new(Ranks::gather(rendezvous, procs, &Interrupt::catch()?)?);
    let result = lead(Rc::clone(&ranks));
    ranks.end(code_of(&result));
    result
}

fn code_of(result: &Result<(), Fault>) -> u8 {
    result.as_ref().err().map_or(0, Fault::code)
}

/// Follows the leader's calls until the end, and returns the exit code.
fn follow(door: &Door) -> Result<u8, Fault> {
    // A launcher gives a signal to all processes of a job. The leader decides then, and the others end with it.
    let _interrupt = Interrupt::catch()?;
    let gone = |error: MemberError| Fault::Failed(format!("the first process of the job: {error}"));
    let connection = door.enter().map_err(|error| Fault::Failed(error.0))?;
    let mut control = Control::within(connection).map_err(gone)?;
    let host = Host::of_this_process();
    let cpus = host.cpus.clone();
    control.send(&Word::Here(host)).map_err(gone)?;
    let mut last: Option<Child> = None;
    loop {
        let call = control.wait().map_err(gone)?;
        // The next call means that the last launch is over.
        if let Some(worker) = last.take() {
            end_worker(worker);
        }
        let done = match call {
            Call::Environment(cpu) => {
                let environment = Box::new(machine::environment(Some(cpu)));
                control.send(&Word::Environment(environment)).map_err(gone)?;
                Ok(())
            }
            Call::Worker => start_worker(door).map(|worker| last = Some(worker)),
            Call::Itself => be_worker(door, &cpus),
            Call::End(code) => return Ok(code),
        };
        if let Err(error) = done {
            control.send(&Word::Failed(error.0)).map_err(gone)?;
        }
    }
}

fn start_worker(door: &Door) -> Result<Child, LayerError> {
    let start = || {
        let mut command = worker::command(&[])?;
        command.arg("--dial").arg(door.address.to_string()).env(secret::VARIABLE, &door.key_text);
        // Signals to the group of this process are for this process, as on a host without a launcher.
        command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0).spawn()
    };
    start().map_err(|error| LayerError(format!("cannot start a worker: {error}")))
}

/// Waits for a worker to close its layer, which it does when its connection is closed. Kills the worker after
/// a timeout.
fn end_worker(mut worker: Child) {
    let until = Instant::now() + GRACE;
    while Instant::now() < until && matches!(worker.try_wait(), Ok(None)) {
        thread::sleep(Duration::from_millis(1));
    }
    let _ = worker.kill();
    let _ = worker.wait();
}

/// Serves one launch as a worker, and then restores the CPU affinity of this thread.
fn be_worker(door: &Door, cpus: &[usize]) -> Result<(), LayerError> {
    worker::run_within(door.enter()?)?;
    processors::keep_to(cpus).map_err(|error| LayerError(format!("cannot run on {cpus:?} any more: {error}")))
}
