//! The served host of a measurement, from the client's side.

use crate::hosts::session::{Ask, Reply, Reserved};
use crate::terminal::fault::Fault;
use crate::terminal::interrupt::Interrupt;
use netdyno_job::connection::Connection;
use netdyno_job::frame::{self, FrameError};
use netdyno_job::handshake::HandshakeError;
use netdyno_job::key::Key;
use netdyno_job::remote::{self, DialError};
use netdyno_measure::record::Environment;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

/// Timeout for the first connection to the host.
const REACHING: Duration = Duration::from_secs(5);
/// Timeout for the host's answer; it calibrates its clock first.
const GETTING_READY: Duration = Duration::from_secs(10);
/// Timeout for a connection once measuring has begun. It is longer, because a link may be down for a while.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Timeout of one connection attempt. A lost packet delays the connection by no more than that.
const ATTEMPT: Duration = Duration::from_secs(1);
/// Pause between two attempts.
const REST: Duration = Duration::from_millis(100);

/// A served host that is reserved for this measurement.
#[derive(Debug)]
pub struct Peer {
    address: SocketAddr,
    key: Option<Key>,
    local_ip: IpAddr,
    reserved: Reserved,
    /// The host stays reserved while this connection is open.
    _reservation: Connection,
}

/// The reason why there is no worker.
pub enum LaunchError {
    /// The command must end.
    Fault(Fault),
    /// The host has not started a worker.
    Failed(String),
}

impl Peer {
    /// Reserves the host for this measurement; `cpu` is the processor of its worker.
    pub fn reserve(address: SocketAddr, key: Option<Key>, cpu: Option<usize>) -> Result<Self, Fault> {
        let bad = |text: String| Fault::BadInput(format!("--peer {address}: {text}"));
        if is_link_local(address.ip()) {
            // A link-local address has another meaning on the other host, so it could not be sent there.
            return Err(bad("an address of one link only: name one that both hosts understand".into()));
        }
        let mut connection =
            dial_for(REACHING, address, key.as_ref(), &|| Ok(()))?.map_err(|error| bad(advised(&error)))?;
        let reply = frame::send(&mut connection, &Ask::Reserve { cpu })
            .and_then(|()| connection.receive_within(GETTING_READY));
        let reserved = match reply {
            Ok(Reply::Reserved(reserved)) => *reserved,
            Ok(Reply::Refused(text)) => return Err(bad(text)),
            Err(FrameError::Closed) => return Err(bad("the other side has closed the connection".into())),
            Err(error) => return Err(bad(error.to_string())),
        };
        let local_ip = connection.local_addr().map_err(|error| bad(error.to_string()))?.ip().to_canonical();
        Ok(Self { address, key, local_ip, reserved, _reservation: connection })
    }

    /// Opens a control connection to a fresh worker on the host.
    pub fn launch(&self, interrupt: &Interrupt) -> Result<Connection, LaunchError> {
        let failed = |error: &dyn std::fmt::Display| {
            LaunchError::Failed(format!("no worker on {}: {error}", self.address.ip()))
        };
        let mut connection = dial_for(TIMEOUT, self.address, self.key.as_ref(), &|| interrupt.check())
            .map_err(LaunchError::Fault)?
            .map_err(|error| failed(&error))?;
        let ask = Ask::Launch { session: self.reserved.session };
        frame::send(&mut connection, &ask).map_err(|error| failed(&error))?;
        Ok(connection)
    }

    /// Returns the address of this host that reaches the other one.
    pub fn local_ip(&self) -> IpAddr {
        self.local_ip
    }

    /// Reports whether the peer is this host: both ends of the connection have the same address, or are on
    /// the loopback interface.
    pub fn is_this_host(&self) -> bool {
        let ip = self.address.ip().to_canonical();
        ip.is_loopback() || ip == self.local_ip
    }

    /// Returns the address of the other host, as that host sees it.
    pub fn ip(&self) -> IpAddr {
        self.reserved.ip
    }

    /// Returns the processor of the worker on the other host.
    pub fn cpu(&self) -> usize {
        self.reserved.cpu
    }

    /// Returns the description of the other host.
    pub fn environment(&self) -> &Environment {
        &self.reserved.environment
    }
}

/// Repeats the connection attempt for up to `timeout`, while it fails as on a link that is down or has just
/// come back. `look` is called before each attempt, and its error ends the attempts.
fn dial_for(
    timeout: Duration,
    address: SocketAddr,
    key: Option<&Key>,
    look: &dyn Fn() -> Result<(), Fault>,
) -> Result<Result<Connection, DialError>, Fault> {
    let until = Instant::now() + timeout;
    loop {
        look()?;
        match remote::dial(address, key, ATTEMPT) {
            Err(error) if may_pass(&error) && Instant::now() < until => thread::sleep(REST),
            dialled => return Ok(dialled),
        }
    }
}

/// Reports whether a link that is down would explain the error.
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

/// Returns the error, with advice if there is any.
fn advised(error: &DialError) -> String {
    let advice = match error {
        DialError::Connect(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            ": run `netdyno serve` on that host"
        }
        DialError::Handshake(HandshakeError::OnlyTheyHaveKey) => ": give it by --key-file or NETDYNO_KEY",
        DialError::Handshake(HandshakeError::OnlyWeHaveKey) => ": leave --key-file and NETDYNO_KEY away",
        DialError::Handshake(HandshakeError::WrongKey) => {
            ": give the one that `netdyno serve` has, by --key-file or NETDYNO_KEY"
        }
        _ => "",
    };
    format!("{error}{advice}")
}
