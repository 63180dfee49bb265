//! The other host of a measurement, as its client sees it.

use crate::hosts::session::{Ask, Reply, Reserved};
use crate::terminal::fault::Fault;
use crate::terminal::interrupt::Interrupt;
use netdyno_job::frame::{self, FrameError};
use netdyno_job::handshake::HandshakeError;
use netdyno_job::key::Key;
use netdyno_job::remote::{self, DialError, Hurried};
use netdyno_measure::record::Environment;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Time for the host to be reached at first.
const REACHING: Duration = Duration::from_secs(5);
/// Time for it to get ready; it looks at its clock first.
const GETTING_READY: Duration = Duration::from_secs(10);
/// Patience with a host that cannot be reached once measuring has begun: a link may be down
/// for a while.
const PATIENCE: Duration = Duration::from_secs(15);
/// Time for one attempt of these. What was lost is not missed for longer than that.
const ATTEMPT: Duration = Duration::from_secs(1);
/// Rest between two attempts.
const REST: Duration = Duration::from_millis(100);

/// A served host that is taken for this measurement.
#[derive(Debug)]
pub struct Peer {
    address: SocketAddr,
    key: Option<Key>,
    local_ip: IpAddr,
    reserved: Reserved,
    /// While it is open, the host is ours.
    _reservation: TcpStream,
}

/// Why there is no worker.
pub enum LaunchError {
    /// The command is to end.
    Fault(Fault),
    /// The host gives none.
    Failed(String),
}

impl Peer {
    /// Takes the host for this measurement; `cpu` is where its worker is to run.
    pub fn reserve(address: SocketAddr, key: Option<Key>, cpu: Option<usize>) -> Result<Self, Fault> {
        let bad = |text: String| Fault::BadInput(format!("--peer {address}: {text}"));
        if is_link_local(address.ip()) {
            // It means something else on the other host, and could not be passed across.
            return Err(bad("an address of one link only: name one that both hosts understand".into()));
        }
        let mut stream =
            dial_for(REACHING, address, key.as_ref(), &|| Ok(()))?.map_err(|error| bad(advised(&error)))?;
        let reply = frame::send(&mut stream, &Ask::Reserve { cpu })
            .and_then(|()| frame::receive(&mut Hurried::new(&stream, GETTING_READY)));
        let reserved = match reply {
            Ok(Reply::Reserved(reserved)) => *reserved,
            Ok(Reply::Refused(text)) => return Err(bad(text)),
            Err(FrameError::Closed) => return Err(bad("the other side has closed the connection".into())),
            Err(error) => return Err(bad(error.to_string())),
        };
        let local = stream.local_addr().map_err(|error| bad(error.to_string()))?;
        Ok(Self { address, key, local_ip: local.ip().to_canonical(), reserved, _reservation: stream })
    }

    /// A control connection to a fresh worker there.
    pub fn launch(&self, interrupt: &Interrupt) -> Result<TcpStream, LaunchError> {
        let failed = |error: &dyn std::fmt::Display| {
            LaunchError::Failed(format!("no worker on {}: {error}", self.address.ip()))
        };
        let mut stream = dial_for(PATIENCE, self.address, self.key.as_ref(), &|| interrupt.check())
            .map_err(LaunchError::Fault)?
            .map_err(|error| failed(&error))?;
        let ask = Ask::Launch { session: self.reserved.session };
        frame::send(&mut stream, &ask).map_err(|error| failed(&error))?;
        Ok(stream)
    }

    /// The address of this host that reaches the other one.
    pub fn local_ip(&self) -> IpAddr {
        self.local_ip
    }

    /// Whether it is this host: both ends of the connection have one address, or are on the loopback.
    pub fn is_this_host(&self) -> bool {
        let ip = self.address.ip().to_canonical();
        ip.is_loopback() || ip == self.local_ip
    }

    /// The address of the other host, as it sees it.
    pub fn ip(&self) -> IpAddr {
        self.reserved.ip
    }

    /// Where the worker runs there.
    pub fn cpu(&self) -> usize {
        self.reserved.cpu
    }

    /// The other host.
    pub fn environment(&self) -> &Environment {
        &self.reserved.environment
    }
}

/// Dials again while that fails as it does on a link that is down, or has just come back, for
/// `patience`. A fault of `look`, which is asked before each attempt, ends it.
fn dial_for(
    patience: Duration,
    address: SocketAddr,
    key: Option<&Key>,
    look: &dyn Fn() -> Result<(), Fault>,
) -> Result<Result<TcpStream, DialError>, Fault> {
    let until = Instant::now() + patience;
    loop {
        look()?;
        match remote::dial(address, key, ATTEMPT) {
            Err(error) if may_pass(&error) && Instant::now() < until => thread::sleep(REST),
            dialled => return Ok(dialled),
        }
    }
}

/// Whether a link that is down would be the reason.
fn may_pass(error: &DialError) -> bool {
    let DialError::Connect(error) = error else { return false };
    matches!(
        error.kind(),
        io::ErrorKind::TimedOut | io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable
    )
}

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(_) => false,
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

/// The error, with what to do about it where that is known here.
fn advised(error: &DialError) -> String {
    let advice = match error {
        DialError::Handshake(HandshakeError::OnlyTheyHaveKey) => ": give it by --key-file or NETDYNO_KEY",
        DialError::Handshake(HandshakeError::OnlyWeHaveKey) => ": leave --key-file and NETDYNO_KEY away",
        DialError::Handshake(HandshakeError::WrongKey) => {
            ": give the one that `netdyno serve` has, by --key-file or NETDYNO_KEY"
        }
        _ => "",
    };
    format!("{error}{advice}")
}
