//! A worker: one process of a launch, at the other end of the control connection.

mod dialled;
mod member;
mod setup;

use crate::hosts::host::Host;
use crate::hosts::machine;
use crate::hosts::secret;
use crate::launch::orders::{Answer, Order};
use crate::launch::peak::of_link;
use crate::terminal::fault::Fault;
use clap::Args;
use netdyno_host::wait::{Wait, nap_beside_others};
use netdyno_job::connection::Connection;
use netdyno_job::frame::FrameError;
use netdyno_job::member::{Control, MemberError};
use netdyno_job::place::Place;
use netdyno_job::rendezvous;
use netdyno_layers::accounts::with_accounts;
use netdyno_layers::catalogue::Layer;
use netdyno_layers::catalogue::half;
use netdyno_layers::catalogue::trial;
use netdyno_layers::catalogue::{parts, registrar};
use netdyno_layers::half::Role;
use netdyno_layers::options::LayerOptions;
use netdyno_layers::parts::PartsOptions;
use netdyno_measure::layer::LayerError;
use netdyno_measure::task::{Subject, Task};
use netdyno_protocol::faults::Faults;
use setup::{End, TIMEOUT, bound, pin, preemptions, unexpected};
use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::time::{Duration, Instant};

/// Be one process of a launch; started by netdyno itself
#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// Connect to the launching side at one of these addresses; without them, standard input is the connection
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    pub dial: Vec<SocketAddr>,
}

/// Minimum progress between two reports. A report wakes the launching side, which may take a processor from a
/// measuring process.
const PROGRESS_STEP: f64 = 0.1;
/// Maximum time between two reports, so that the launching side knows that the worker is alive. On a busy
/// machine a step may take long, and the work after the time is up adds no progress.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// Returns the command that starts a worker: this program, with additional environment variables.
pub fn command(variables: &[(&'static str, OsString)]) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    // A worker has its connection already and needs no key.
    command.arg("worker").env_remove(secret::VARIABLE);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    Ok(command)
}

/// Runs a worker in this process.
pub fn run(args: &WorkerArgs) -> Result<(), Fault> {
    let control = match &args.dial[..] {
        [] => Control::from_stdin(),
        addresses => Control::on(enter(addresses)?),
    };
    let mut control = control.map_err(|error| Fault::BadInput(error.to_string()))?;
    let silent = |error: MemberError| Fault::Failed(error.to_string());
    match work(&mut control) {
        Ok(()) => Ok(()),
        // The launching side is gone, so nobody reads an error.
        Err(End::Control(MemberError::Over | MemberError::Control(FrameError::Closed))) => {
            Err(Fault::Quiet(1))
        }
        Err(End::Control(error)) => Err(silent(error)),
        // The launching side reports the error to the user.
        Err(End::Layer(text)) => match control.send(&Answer::Failed(text)) {
            Err(MemberError::Control(FrameError::Closed)) => Err(Fault::Quiet(1)),
            sent => sent.map_err(silent),
        },
    }
}

/// Runs a worker in a process that continues afterwards.
pub fn run_within(connection: Connection) -> Result<(), LayerError> {
    let mut control = Control::within(connection).map_err(LayerError::new)?;
    if let Err(End::Layer(text)) = work(&mut control) {
        // The launching side closes the connection when it needs no more data. A closed connection also tells
        // it that this side has ended.
        let _ = control.send(&Answer::Failed(text));
    }
    Ok(())
}

fn enter(addresses: &[SocketAddr]) -> Result<Connection, Fault> {
    let key = secret::given(None)?.ok_or_else(|| {
        Fault::BadInput(format!(
            "{0} is not set: have the launcher pass it on, as in -x {0}",
            secret::VARIABLE
        ))
    })?;
    let place = Place::of_this_process().map_err(|error| Fault::BadInput(error.to_string()))?;
    let address = match addresses {
        [only] => *only,
        several => several.iter().copied().find(|&address| rendezvous::is_at(address, &key)).ok_or_else(|| {
            let tried: Vec<String> = several.iter().map(|address| address.ip().to_string()).collect();
            Fault::Failed(format!(
                "the launching side is at none of its addresses, {}: name one that all hosts reach by --bind",
                tried.join(", ")
            ))
        })?,
    };
    rendezvous::enter(address, &key, place)
        .map_err(|error| Fault::Failed(format!("the launching side at {address}: {error}")))
}

fn work(control: &mut Control<Order>) -> Result<(), End> {
    let (layer, role, cpu, has_accounts, options) = match control.receive(TIMEOUT)? {
        Order::Open {
            layer,
            is_requester,
            size_bytes,
            face,
            access,
            progress_by,
            wait,
            faults,
            dials,
            bind,
            seed,
            cpu,
            has_accounts,
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
            let options = LayerOptions {
                size_bytes,
                face,
                access,
                progress_by,
                wait,
                faults,
                dials: dials.read().map_err(End::Layer)?,
                seed,
                bind,
            };
            (layer.parse::<Layer>().map_err(End::Layer)?, role, cpu, has_accounts, options)
        }
        Order::Alone { layer, cpu } => {
            pin(cpu)?;
            let registrar = registrar::open(layer.parse().map_err(End::Layer)?)?;
            return measure_alone(control, registrar.subject, registrar.library);
        }
        Order::Parts { layer, size_bytes, cpu, partner_cpu } => {
            pin(cpu)?;
            let options = PartsOptions { size_bytes, partner_cpu };
            let subject = parts::open(layer.parse().map_err(End::Layer)?, options)?;
            return measure_alone(control, subject, None);
        }
        Order::Tell => return tell(control),
        Order::Try { layer, wait } => {
            trial::open(layer.parse().map_err(End::Layer)?, wait.parse().map_err(End::Layer)?)?;
            return Ok(control.send(&Answer::Tried)?);
        }
        Order::Crowd(order) => return member::work(control, order),
        other => return Err(unexpected(&other)),
    };
    pin(cpu)?;
    let (wait, ip) = (options.wait, options.bind.ip());
    let mut half = half::open(layer, role, options)?;
    if has_accounts {
        half = with_accounts(half, role, ip)?;
    }
    let library = half.library().map(str::to_owned);
    let shared = control.shared_files();
    control.send(&Answer::Opened { address: half.address(), library, shared })?;
    let peer = match control.receive(TIMEOUT)? {
        Order::Connect(peer) => peer,
        other => return Err(unexpected(&other)),
    };
    match role {
        Role::Requester => {
            let subject = half.requester(&peer)?;
            control.send(&Answer::Connected)?;
            measure(control, subject, wait, Some(ip))
        }
        Role::Replier => {
            let mut replier = half.replier(&peer)?;
            control.send(&Answer::Connected)?;
            Ok(replier.serve(control.over())?)
        }
    }
}

/// Tells on which host this process runs, and describes its machine if it is asked to.
fn tell(control: &mut Control<Order>) -> Result<(), End> {
    control.send(&Answer::Here(Host::of_this_process()))?;
    loop {
        match control.receive(TIMEOUT) {
            Ok(Order::Describe(cpu)) => {
                control.send(&Answer::Environment(Box::new(machine::environment(cpu))))?;
            }
            Ok(other) => return Err(unexpected(&other)),
            // The launching side knows enough.
            Err(MemberError::Over) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Measures with a layer that is open in this process alone. `library` is the one behind the layer.
fn measure_alone(
    control: &mut Control<Order>,
    subject: Box<dyn Subject>,
    library: Option<String>,
) -> Result<(), End> {
    let shared = control.shared_files();
    control.send(&Answer::Opened { address: Vec::new(), library, shared })?;
    // A process without a peer never waits.
    measure(control, subject, Wait::Spin, None)
}

/// Carries out the measuring order. `ip` is the address of this process's sockets.
fn measure(
    control: &mut Control<Order>,
    mut subject: Box<dyn Subject>,
    wait: Wait,
    ip: Option<IpAddr>,
) -> Result<(), End> {
    let mut task = match control.receive(TIMEOUT)? {
        Order::Measure(task) => task,
        other => return Err(unexpected(&other)),
    };
    if let (Task::Completion(plan), Some(ip)) = (&mut *task, ip)
        && plan.peak.is_left_to_requester()
    {
        plan.peak = of_link(ip);
    }
    let preempted_before = preemptions(wait);
    let (mut told, mut told_at) = (0.0, Instant::now());
    let mut progress = |share| {
        control.end_if_over();
        if share - told >= PROGRESS_STEP || told_at.elapsed() >= PROGRESS_EVERY {
            (told, told_at) = (share, Instant::now());
            // If the launching side is gone, the next call of `end_if_over` ends the process.
            let _ = control.send(&Answer::Progress(share));
        }
    };
    let mut data = match &*task {
        Task::Validate(planned) => dialled::measure(&mut *subject, planned, &mut progress)?,
        task => subject.measure(task, &mut progress)?,
    };
    data.set_preemptions(preemptions(wait).zip(preempted_before).map(|(after, before)| after - before));
    Ok(control.send(&Answer::Measured(Box::new(data)))?)
}
