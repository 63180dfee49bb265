//! `netdyno serve`: offers this host to the measurements of other hosts, one at a time.

use crate::hosts::calls;
use crate::hosts::machine;
use crate::hosts::secret;
use crate::hosts::session::{Ask, PORT, Reply, Reserved};
use crate::launch::orders::Answer;
use crate::launch::worker;
use crate::options::headings::{HOSTS, WHAT};
use crate::options::values::peer;
use crate::records::output::write_stdout;
use crate::terminal::fault::Fault;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::voice::say;
use crate::verbs::Examples;
use clap::Args;
use netdyno_clock::place;
use netdyno_host::random;
use netdyno_job::connection::Connection;
use netdyno_job::frame;
use netdyno_job::key::Key;
use netdyno_job::remote::{self, SHAKING};
use netdyno_job::workers;
use netdyno_layers::catalogue::Layer;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{Shutdown, shutdown};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The examples of the help.
pub const EXAMPLES: &[Examples] = &[(
    "serve",
    [
        ("netdyno serve", "serve at all addresses"),
        ("netdyno serve --bind 10.0.0.1 --key-file key", "choose address and key"),
        ("netdyno serve --bind 127.0.0.1 --one-off", "serve this host once"),
    ],
)];

/// Serve this host to --peer of another one, until Ctrl-C
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Listen at this address [default: all of this host]
    ///
    /// At a loopback address no key is needed.
    #[arg(long, value_name = "HOST[:PORT]", value_parser = peer, help_heading = HOSTS)]
    pub bind: Option<SocketAddr>,

    /// Read the key from this file; clients need the same one
    ///
    /// Without it the key is looked for in NETDYNO_KEY, or made and printed.
    #[arg(long, value_name = "FILE", help_heading = HOSTS)]
    pub key_file: Option<PathBuf>,

    /// Answer calls of any client over this layer, instead of --peer
    ///
    /// Over oncrpc+udp, oncrpc+tcp and grpc, with the program that docs/rpc.md describes. There is no key. By default at
    /// 127.0.0.1.
    #[arg(
        long,
        value_name = "LAYER",
        conflicts_with_all = ["key_file", "one_off"],
        help_heading = WHAT,
        hide_short_help = true
    )]
    pub over: Option<Layer>,

    /// End after one measurement
    #[arg(long, short = '1', help_heading = HOSTS)]
    pub one_off: bool,
}

/// Interval between two checks for a signal.
const LOOK: Duration = Duration::from_millis(100);
/// Maximum number of connections that have not authenticated. Each may take a few seconds at most.
const KNOCKING_AT_MOST: usize = 64;
/// Maximum number of concurrent workers of one measurement.
const WORKERS_AT_MOST: usize = 256;

/// Serves until a signal arrives or, with `--one-off`, one measurement is over.
pub fn run(args: &ServeArgs) -> Result<(), Fault> {
    if let Some(layer) = args.over {
        return calls::serve(layer, args.bind.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))));
    }
    let listener = listen(args.bind)?;
    let address = listener.local_addr().map_err(|error| Fault::Failed(error.to_string()))?;
    let given = secret::given(args.key_file.as_deref())?;
    let made = match &given {
        None if !address.ip().to_canonical().is_loopback() => {
            Some(Key::random_text().map_err(|error| Fault::Failed(format!("cannot make a key: {error}")))?)
        }
        _ => None,
    };
    let key = match &made {
        Some(text) => Some(Key::new(text).map_err(|error| Fault::Failed(error.to_string()))?),
        None => given,
    };
    let interrupt = Interrupt::catch()?;
    write_stdout(&announcement(address, args, made.as_deref(), key.is_some()))?;
    let server = Arc::new(Server {
        key,
        session: Mutex::new(None),
        knocking: AtomicUsize::new(0),
        has_served: AtomicBool::new(false),
    });
    while !(args.one_off && server.has_served.load(Ordering::Acquire)) {
        interrupt.check().map_err(Fault::stopped)?;
        if let Some((stream, from)) = accept(&listener)? {
            server.admit(stream, from.ip().to_canonical());
        }
    }
    Ok(())
}

fn listen(bind: Option<SocketAddr>) -> Result<TcpListener, Fault> {
    let bad = |address: SocketAddr| {
        move |error: io::Error| {
            Fault::BadInput(format!(
                "cannot listen at {address}: {error}; choose another one with --bind HOST:PORT"
            ))
        }
    };
    let listener = match bind {
        Some(address) => TcpListener::bind(address).map_err(bad(address)),
        None => {
            // The unspecified IPv6 address includes IPv4.
            let [all, all_of_ipv4] = [IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::UNSPECIFIED)]
                .map(|ip| SocketAddr::new(ip, PORT));
            TcpListener::bind(all).or_else(|_| TcpListener::bind(all_of_ipv4)).map_err(bad(all_of_ipv4))
        }
    }?;
    listener.set_nonblocking(true).map_err(|error| Fault::Failed(error.to_string()))?;
    Ok(listener)
}

/// Returns the text that tells the user what to do on the other host.
fn announcement(address: SocketAddr, args: &ServeArgs, made: Option<&str>, has_key: bool) -> String {
    let ip = address.ip();
    let host = if ip.is_unspecified() {
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    } else {
        ip.to_string()
    };
    let peer = match address.port() {
        PORT => host,
        port if ip.is_ipv6() && !ip.is_unspecified() => format!("[{host}]:{port}"),
        port => format!("{host}:{port}"),
    };
    let place = if has_key { "On the other host" } else { "Without a key, for this host alone" };
    let command = match (made, &args.key_file) {
        (Some(text), _) => format!("{}={text} netdyno --peer {peer}", secret::VARIABLE),
        (None, Some(_)) => format!("netdyno --peer {peer} --key-file FILE"),
        (None, None) => format!("netdyno --peer {peer}"),
    };
    format!(
        "netdyno {} serves at port {}. {place}:\n\n    {command}\n\nCtrl-C ends it.\n",
        env!("CARGO_PKG_VERSION"),
        address.port()
    )
}

/// Returns the next connection, if one arrives within the interval.
fn accept(listener: &TcpListener) -> Result<Option<(TcpStream, SocketAddr)>, Fault> {
    let timeout = Timespec::try_from(LOOK).ok();
    // If the call is interrupted or times out, `accept` finds no connection.
    let _ = poll(&mut [PollFd::new(listener, PollFlags::IN)], timeout.as_ref());
    match listener.accept() {
        Ok(accepted) => Ok(Some(accepted)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => {
            // The connection is gone already, or too many files are open: both conditions pass.
            say(&format!("cannot accept a connection: {error}"));
            thread::sleep(LOOK);
            Ok(None)
        }
    }
}

struct Server {
    key: Option<Key>,
    session: Mutex<Option<Session>>,
    knocking: AtomicUsize,
    has_served: AtomicBool,
}

/// A measurement of a client.
struct Session {
    id: u64,
    client: IpAddr,
    launches: usize,
    /// The control connections of the workers.
    controls: BTreeMap<usize, Connection>,
}

impl Server {
    /// Handles a connection on a thread of its own, because an unknown peer must not delay others.
    fn admit(self: &Arc<Self>, stream: TcpStream, from: IpAddr) {
        if self.knocking.fetch_add(1, Ordering::AcqRel) >= KNOCKING_AT_MOST {
            self.knocking.fetch_sub(1, Ordering::AcqRel);
            return say(&format!("{from}: turned away: too many are knocking"));
        }
        let server = Arc::clone(self);
        // The kernel ends a worker when the thread that started it ends, so this thread waits for its
        // worker.
        if let Err(error) = thread::Builder::new().spawn(move || server.hear(stream, from)) {
            self.knocking.fetch_sub(1, Ordering::AcqRel);
            say(&format!("{from}: turned away: {error}"));
        }
    }

    fn hear(&self, stream: TcpStream, from: IpAddr) {
        let asked = self.asked(stream);
        self.knocking.fetch_sub(1, Ordering::AcqRel);
        match asked {
            Ok((connection, Ask::Reserve { cpu })) => self.serve(connection, from, cpu),
            Ok((connection, Ask::Launch { session })) => self.launch(connection, from, session),
            Err(text) => say(&format!("{from}: refused: {text}")),
        }
    }

    fn asked(&self, stream: TcpStream) -> Result<(Connection, Ask), String> {
        let mut connection = remote::welcome(stream, self.key.as_ref()).map_err(|error| error.to_string())?;
        let ask = connection.receive_within(SHAKING).map_err(|error| error.to_string())?;
        Ok((connection, ask))
    }

    /// Reserves the host for a client until the client's connection ends.
    fn serve(&self, mut connection: Connection, client: IpAddr, cpu: Option<usize>) {
        let taken = match self.take(&connection, client, cpu) {
            Ok(taken) => taken,
            Err(text) => {
                say(&format!("{client}: refused: {text}"));
                // A client that is gone needs no answer.
                let _ = frame::send(&mut connection, &Reply::Refused(text));
                return;
            }
        };
        say(&format!("{client}: measuring, on processor {}", taken.reserved.cpu));
        let reply = Reply::Reserved(Box::new(taken.reserved.clone()));
        if frame::send(&mut connection, &reply).is_ok() {
            // The client sends nothing more, so the read returns when its connection ends.
            let _ = connection.read(&mut [0]);
        }
    }

    fn take(&self, connection: &Connection, client: IpAddr, cpu: Option<usize>) -> Result<Taken<'_>, String> {
        let cpu = choose_cpu(cpu)?;
        let ip = connection.local_addr().map_err(|error| error.to_string())?.ip().to_canonical();
        let id = u64::from_ne_bytes(random::bytes().map_err(|error| error.to_string())?);
        let mut session = self.session();
        if let Some(Session { client, .. }) = &*session {
            return Err(format!("busy: {client} is measuring; try again later"));
        }
        *session = Some(Session { id, client, launches: 0, controls: BTreeMap::new() });
        drop(session);
        let mut taken = Taken {
            server: self,
            reserved: Reserved { session: id, ip, cpu, environment: Default::default() },
        };
        taken.reserved.environment = machine::environment(Some(cpu));
        Ok(taken)
    }

    /// Makes a connection the control connection of a fresh worker, and waits for the end of the worker.
    fn launch(&self, mut connection: Connection, from: IpAddr, id: u64) {
        let nth = match self.enter(&connection, id) {
            Ok(nth) => nth,
            Err(text) => {
                // A client that is gone needs no answer.
                let _ = frame::send(&mut connection, &Answer::Failed(text));
                return;
            }
        };
        let ended = worker::command(&[]).and_then(|command| workers::run(command, connection));
        match ended.map(|status| status.signal()) {
            Ok(None) => {}
            Ok(Some(signal)) => say(&format!("{from}: its worker was killed by signal {signal}")),
            Err(error) => say(&format!("{from}: cannot start a worker: {error}")),
        }
        if let Some(session) = self.session().as_mut().filter(|session| session.id == id) {
            session.controls.remove(&nth);
        }
    }

    /// Adds a control connection to a measurement.
    fn enter(&self, connection: &Connection, id: u64) -> Result<usize, String> {
        let mut session = self.session();
        let session = session
            .as_mut()
            .filter(|session| session.id == id)
            .ok_or("was refused: its measurement is over")?;
        if session.controls.len() >= WORKERS_AT_MOST {
            return Err("was refused: too many workers".into());
        }
        let control = connection.try_clone().map_err(|error| format!("was refused: {error}"))?;
        session.launches += 1;
        session.controls.insert(session.launches, control);
        Ok(session.launches)
    }

    fn session(&self) -> MutexGuard<'_, Option<Session>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the processor of a worker: the client's choice, or one other than the first processor, which often
/// has the most to do.
fn choose_cpu(asked: Option<usize>) -> Result<usize, String> {
    let allowed = place::allowed().map_err(|error| error.to_string())?;
    match asked {
        None => place::choose_pair(&allowed).map(|(_, cpu)| cpu).ok_or("no processor may be used".into()),
        Some(cpu) if allowed.contains(&cpu) => Ok(cpu),
        Some(cpu) => Err(format!("processor {cpu} of --cpus cannot be used there: choose from {allowed:?}")),
    }
}

/// The reservation of the server by a client.
struct Taken<'a> {
    server: &'a Server,
    reserved: Reserved,
}

impl Drop for Taken<'_> {
    /// Ends the measurement, with all workers that are left.
    fn drop(&mut self) {
        let Some(session) = self.server.session().take() else { return };
        for control in session.controls.values() {
            // A closed connection needs no shutdown.
            let _ = shutdown(control, Shutdown::Both);
        }
        let launches = session.launches;
        say(&format!(
            "{}: done, {launches} {}",
            session.client,
            if launches == 1 { "launch" } else { "launches" }
        ));
        self.server.has_served.store(true, Ordering::Release);
    }
}
