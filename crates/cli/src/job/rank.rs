//! One process of a job in which this command runs, as in `mpiexec -n 2 netdyno logp --over mpi`.
//!
//! They find each other through MPI ([`crate::job::meeting`]). The first of them leads: it measures and
//! writes the result, on a thread of its own, as MPI belongs to the thread that has started it.
//! All of them, the first too, do what it asks ([`crate::job::ranks`]): they start fresh workers or, for
//! MPI, are workers themselves.

use crate::hosts::machine;
use crate::hosts::secret;
use crate::job::meeting::{Deadline, Door, meet};
use crate::job::ranks::{Call, Ranks, Word};
use crate::launch::worker;
use crate::options::bench::Measuring;
use crate::terminal::fault::Fault;
use crate::terminal::interrupt::Interrupt;
use netdyno_clock::place as processors;
use netdyno_job::lobby::Lobby;
use netdyno_job::member::{Control, MemberError};
use netdyno_job::place::{Place, has_elder_here};
use netdyno_layers::catalogue::Layer;
use netdyno_layers::plugin::bootstrap::Bootstrap;
use netdyno_measure::layer::LayerError;
use std::process::{Child, Stdio};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

/// Time for all processes to come together.
const MEETING: Duration = Duration::from_secs(90);
/// Time for a worker to close its layer.
const GRACE: Duration = Duration::from_secs(3);
/// Time for MPI to end.
const ENDING: Duration = Duration::from_secs(5);

/// This process's place in a job of several, where it is in one.
pub fn place() -> Option<Place> {
    Place::of_this_process().filter(|place| place.procs > 1)
}

/// What all processes of a job find wrong alike, the first of them says.
pub fn said_once(fault: Fault) -> Fault {
    if place().is_some_and(|place| place.rank > 0) { Fault::Quiet(fault.code()) } else { fault }
}

/// What all processes of a host find wrong alike, the first of those says.
fn said_by_the_elder(fault: Fault) -> Fault {
    if has_elder_here() { Fault::Quiet(fault.code()) } else { fault }
}

/// Leads the job as `lead` does, or follows.
pub fn run<F>(place: Place, measuring: &Measuring, lead: F) -> Result<(), Fault>
where
    F: FnOnce(Rc<Ranks>) -> Result<(), Fault> + Send,
{
    if measuring.peer.is_some() {
        let text = "a job measures between its own processes: leave --peer away";
        return Err(said_once(Fault::BadInput(text.into())));
    }
    let Place { rank, procs } = place;
    let late = format!("the {procs} processes of the job did not come together within {MEETING:?}");
    let deadline = Deadline::of(MEETING, (rank == 0).then_some(late), 1);
    let about = |why: String| format!("process {rank} of {procs} finds the others through MPI: {why}");
    if let Some(why) = Layer::Mpi.unavailable() {
        return Err(said_by_the_elder(Fault::BadInput(about(why))));
    }
    let mut bootstrap =
        Bootstrap::open().map_err(|error| said_by_the_elder(Fault::Failed(about(error.0))))?;
    let (door, lobby) = meet(&mut bootstrap, measuring.bind.map(|bind| bind.ip()))?;
    drop(deadline);
    let result = lead_or_follow(&door, lobby, lead);
    // Said before MPI ends, which may take for ever.
    let result = result.map_err(Fault::told);
    let _deadline = Deadline::of(ENDING, None, code_of(&result));
    drop(bootstrap);
    result
}

fn lead_or_follow<F>(door: &Door, lobby: Option<Lobby>, lead: F) -> Result<(), Fault>
where
    F: FnOnce(Rc<Ranks>) -> Result<(), Fault> + Send,
{
    thread::scope(|scope| {
        let leading = lobby.map(|lobby| scope.spawn(|| lead_all(lobby, door.place.procs, lead)));
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

fn lead_all<F>(lobby: Lobby, procs: usize, lead: F) -> Result<(), Fault>
where
    F: FnOnce(Rc<Ranks>) -> Result<(), Fault>,
{
    let ranks = Rc::new(Ranks::gather(lobby, procs, &Interrupt::catch()?)?);
    let result = lead(Rc::clone(&ranks));
    ranks.end(code_of(&result));
    result
}

fn code_of(result: &Result<(), Fault>) -> u8 {
    result.as_ref().err().map_or(0, Fault::code)
}

/// Does what is asked for until the end; its exit code.
fn follow(door: &Door) -> Result<u8, Fault> {
    let gone = |error: MemberError| Fault::Failed(format!("the first process of the job: {error}"));
    let connection = door.enter().map_err(|error| Fault::Failed(error.0))?;
    let mut control = Control::within(connection).map_err(gone)?;
    let cpus = processors::allowed().unwrap_or_default();
    control.send(&Word::Here { cpus: cpus.clone() }).map_err(gone)?;
    let mut last: Option<Child> = None;
    loop {
        let call = control.wait().map_err(gone)?;
        // Its launch is over.
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
        command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()
    };
    start().map_err(|error| LayerError(format!("cannot start a worker: {error}")))
}

/// Waits for a worker to close its layer, which it does when its connection is closed; one that does not is killed.
fn end_worker(mut worker: Child) {
    let until = Instant::now() + GRACE;
    while Instant::now() < until && matches!(worker.try_wait(), Ok(None)) {
        thread::sleep(Duration::from_millis(1));
    }
    let _ = worker.kill();
    let _ = worker.wait();
}

/// Is a worker for one launch. Afterwards this thread may run where it might before.
fn be_worker(door: &Door, cpus: &[usize]) -> Result<(), LayerError> {
    worker::run_within(door.enter()?)?;
    processors::keep_to(cpus).map_err(|error| LayerError(format!("cannot run on {cpus:?} any more: {error}")))
}
