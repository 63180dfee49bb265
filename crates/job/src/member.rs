//! The side that is launched: its control connection, listened to by a thread of its
//! own that sleeps in the kernel, so that it disturbs no measurement.

use crate::frame::{self, FrameError};
use crate::shared_files::SharedFiles;
use rustix::net::{Shutdown, shutdown};
use rustix::process::{Signal, getpid, kill_process, set_parent_process_death_signal};
use serde::Serialize;
use serde::de::DeserializeOwned;
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;
use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, SystemTime};
use thiserror::Error;

/// How long a process whose launching side is gone may take to close its layer and to end.
const LEAVING: Duration = Duration::from_secs(2);

/// Why a member cannot go on.
#[derive(Debug, Error)]
pub enum MemberError {
    /// Its standard input is not a control connection.
    #[error("this process was not launched by netdyno: its standard input is no control connection ({0})")]
    NotLaunched(#[source] io::Error),
    /// The launching side is silent.
    #[error("the launching process is silent")]
    Silent,
    /// The launching side has closed the connection.
    #[error("the launching process is gone")]
    Over,
    /// The connection broke.
    #[error("the launching process cannot be talked to: {0}")]
    Control(#[from] FrameError),
}

/// The connection to the process that launched this one.
pub struct Control<T> {
    /// A stream socket, of the host or between hosts.
    stream: File,
    messages: Receiver<T>,
    /// Set when the launching side is gone.
    is_over: Arc<AtomicBool>,
    loss: Loss,
    began: SystemTime,
}

/// What becomes of a process whose launching side is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    /// It closes its layer and ends: it was started for this connection.
    Ends,
    /// It is told, and goes on.
    IsTold,
}

impl<T: DeserializeOwned + Send + 'static> Control<T> {
    /// Takes the connection that is this process's standard input, and starts to listen.
    /// When the launching side is gone, or this process is asked to end (SIGTERM), it is told, and has
    /// two seconds to end.
    pub fn from_stdin() -> Result<Self, MemberError> {
        let stdin = io::stdin().as_fd().try_clone_to_owned().map_err(MemberError::NotLaunched)?;
        Self::on(stdin)
    }

    /// The same on a connection that this process has made.
    pub fn on(connection: OwnedFd) -> Result<Self, MemberError> {
        let not_launched = |error: rustix::io::Errno| MemberError::NotLaunched(error.into());
        rustix::net::sockopt::socket_domain(&connection).map_err(not_launched)?;
        hang_up_on_signal(connection.try_clone().map_err(MemberError::NotLaunched)?)?;
        set_parent_process_death_signal(Some(Signal::TERM)).map_err(not_launched)?;
        Self::listen(connection, Loss::Ends)
    }

    /// The same in a process that does not end with the connection: it is told.
    pub fn within(connection: TcpStream) -> Result<Self, MemberError> {
        Self::listen(connection.into(), Loss::IsTold)
    }

    fn listen(connection: OwnedFd, loss: Loss) -> Result<Self, MemberError> {
        let stream = File::from(connection);
        let mut listening = stream.try_clone().map_err(MemberError::NotLaunched)?;
        let (sender, messages) = mpsc::channel();
        let began = SystemTime::now();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let hear = move || {
            while let Ok(message) = frame::receive::<T>(&mut listening) {
                // Nobody is waiting any more only when its connection is about to be closed.
                let _ = sender.send(message);
            }
            over.store(true, Ordering::Relaxed);
            // A thread that waits for a message learns that none will come.
            drop(sender);
            if loss == Loss::Ends {
                std::thread::sleep(LEAVING);
                // A layer that hangs, or hangs while it is closed, ends no other way.
                SharedFiles::of_this_process(began).remove();
                let _ = kill_process(getpid(), Signal::KILL);
            }
        };
        std::thread::Builder::new().spawn(hear).map_err(MemberError::NotLaunched)?;
        Ok(Self { stream, messages, is_over, loss, began })
    }

    /// Ends this process where the launching side, for which it was started, is gone: for a process in
    /// the middle of what nobody wants any more.
    pub fn end_if_over(&self) {
        if self.loss == Loss::Ends && self.is_over.load(Ordering::Relaxed) {
            self.shared_files().remove();
            std::process::exit(1);
        }
    }

    /// The files in shared memory that this process has mapped since it has the connection.
    pub fn shared_files(&self) -> SharedFiles {
        SharedFiles::of_this_process(self.began)
    }

    /// Is set when the launching side is gone.
    pub fn over(&self) -> &AtomicBool {
        &self.is_over
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

    /// The next message, if it comes in time.
    pub fn receive(&mut self, timeout: Duration) -> Result<T, MemberError> {
        self.messages.recv_timeout(timeout).map_err(|error| match error {
            RecvTimeoutError::Timeout => MemberError::Silent,
            RecvTimeoutError::Disconnected => MemberError::Over,
        })
    }

    /// The next message, however long that takes.
    pub fn wait(&mut self) -> Result<T, MemberError> {
        self.messages.recv().map_err(|_| MemberError::Over)
    }
}

impl<T> Drop for Control<T> {
    /// A layer that could not be closed has left its files mapped.
    fn drop(&mut self) {
        if self.loss == Loss::Ends {
            SharedFiles::of_this_process(self.began).remove();
        }
    }
}

/// Closes the connection when this process is asked to end, which the listening thread notices.
fn hang_up_on_signal(connection: OwnedFd) -> Result<(), MemberError> {
    let mut signals = Signals::new([SIGTERM]).map_err(MemberError::NotLaunched)?;
    let wait = move || {
        for _ in &mut signals.forever() {
            // A connection that is closed already needs no closing.
            let _ = shutdown(&connection, Shutdown::Both);
        }
    };
    std::thread::Builder::new().spawn(wait).map(drop).map_err(MemberError::NotLaunched)
}
