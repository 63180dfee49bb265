//! The side that is launched: its control connection, listened to by a thread of its
//! own that sleeps in the kernel, so that it disturbs no measurement.

use crate::frame::{self, FrameError};
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;
use thiserror::Error;

/// Why a member cannot go on.
#[derive(Debug, Error)]
pub enum MemberError {
    /// Its standard input is not a control connection.
    #[error("this process was not launched by netdyno: its standard input is no control connection ({0})")]
    NotLaunched(#[source] io::Error),
    /// The launching side is silent or gone.
    #[error("the launching process is silent")]
    Silent,
    /// The connection broke.
    #[error("the launching process cannot be talked to: {0}")]
    Control(#[from] FrameError),
}

/// The connection to the process that launched this one.
pub struct Control<T> {
    /// A stream socket, of the host or between hosts.
    stream: File,
    messages: Receiver<T>,
}

impl<T: DeserializeOwned + Send + 'static> Control<T> {
    /// Takes the connection that is this process's standard input, and starts to listen.
    /// When the launching side is gone, so is this process.
    pub fn from_stdin() -> Result<Self, MemberError> {
        let stdin = io::stdin().as_fd().try_clone_to_owned().map_err(MemberError::NotLaunched)?;
        Self::over(stdin)
    }

    /// The same over a connection that this process has made.
    pub fn over(connection: OwnedFd) -> Result<Self, MemberError> {
        let not_launched = |error: rustix::io::Errno| MemberError::NotLaunched(error.into());
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(not_launched)?;
        rustix::net::sockopt::socket_domain(&connection).map_err(not_launched)?;
        let stream = File::from(connection);
        let mut listening = stream.try_clone().map_err(MemberError::NotLaunched)?;
        let (sender, messages) = mpsc::channel();
        std::thread::spawn(move || {
            loop {
                match frame::receive::<T>(&mut listening) {
                    // Nobody is waiting any more only when the process is about to end.
                    Ok(message) => drop(sender.send(message)),
                    // There is nobody left to report to.
                    Err(_) => std::process::exit(1),
                }
            }
        });
        Ok(Self { stream, messages })
    }

    /// The address of this host on the connection, where it is one between hosts.
    pub fn local_ip(&self) -> Option<IpAddr> {
        let address = rustix::net::getsockname(&self.stream).ok()?;
        SocketAddr::try_from(address).ok().map(|address| address.ip().to_canonical())
    }

    /// Sends a message to the launching side.
    pub fn send<M: Serialize>(&mut self, message: &M) -> Result<(), MemberError> {
        Ok(frame::send(&mut self.stream, message)?)
    }

    /// The next message, if one has come.
    pub fn try_receive(&mut self) -> Option<T> {
        self.messages.try_recv().ok()
    }

    /// The next message.
    pub fn receive(&mut self, timeout: Duration) -> Result<T, MemberError> {
        self.messages.recv_timeout(timeout).map_err(|error| match error {
            RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected => MemberError::Silent,
        })
    }
}
