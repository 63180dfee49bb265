//! The launched side of a control connection. A thread listens on it and sleeps in the kernel, so that it
//! does not disturb measurements.

use crate::connection::Connection;
use crate::frame::{self, FrameError};
use crate::shared_files::SharedFiles;
use rustix::net::{Shutdown, shutdown};
use rustix::process::{Signal, getpid, kill_process, set_parent_process_death_signal};
use serde::Serialize;
use serde::de::DeserializeOwned;
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, SystemTime};
use thiserror::Error;

/// Time in which a process must close its layer and end after the launching side has ended.
const LEAVING: Duration = Duration::from_secs(2);

/// Reports why a worker cannot continue.
#[derive(Debug, Error)]
pub enum MemberError {
    /// The standard input is not a control connection.
    #[error("this process was not launched by netdyno: its standard input is no control connection ({0})")]
    NotLaunched(#[source] io::Error),
    /// The launching side has sent nothing within the timeout.
    #[error("the launching process is silent")]
    Silent,
    /// The launching side has closed the connection.
    #[error("the launching process is gone")]
    Over,
    /// The connection failed.
    #[error("the launching process cannot be talked to: {0}")]
    Control(#[from] FrameError),
}

/// The connection to the process that launched this one.
pub struct Control<T> {
    connection: Connection,
    messages: Receiver<T>,
    /// Becomes true when the launching side has ended.
    is_over: Arc<AtomicBool>,
    loss: Loss,
    began: SystemTime,
}

/// The reaction of a process to the end of its launching side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    /// The process closes its layer and ends, because it was started for this connection.
    Ends,
    /// The process sets a flag and continues.
    IsTold,
}

impl<T: DeserializeOwned + Send + 'static> Control<T> {
    /// Takes the connection on standard input and starts to listen on it. The process must end within two
    /// seconds after the launching side ends, or after it gets SIGTERM. Both set the flag that
    /// [`Control::over`] returns.
    pub fn from_stdin() -> Result<Self, MemberError> {
        let stdin = io::stdin().as_fd().try_clone_to_owned().map_err(MemberError::NotLaunched)?;
        Self::on(Connection::plain(stdin))
    }

    /// Does the same on a connection that this process has opened.
    pub fn on(connection: Connection) -> Result<Self, MemberError> {
        let not_launched = |error: rustix::io::Errno| MemberError::NotLaunched(error.into());
        rustix::net::sockopt::socket_domain(&connection).map_err(not_launched)?;
        hang_up_on_signal(connection.as_fd().try_clone_to_owned().map_err(MemberError::NotLaunched)?)?;
        set_parent_process_death_signal(Some(Signal::TERM)).map_err(not_launched)?;
        Self::listen(connection, Loss::Ends)
    }

    /// Listens on a connection of a process that outlives it. The end of the connection only sets the flag.
    pub fn within(connection: Connection) -> Result<Self, MemberError> {
        Self::listen(connection, Loss::IsTold)
    }

    fn listen(mut listening: Connection, loss: Loss) -> Result<Self, MemberError> {
        let connection = listening.try_clone().map_err(MemberError::NotLaunched)?;
        let (sender, messages) = mpsc::channel();
        let began = SystemTime::now();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let hear = move || {
            while let Ok(message) = frame::receive::<T>(&mut listening) {
                // The receiver is dropped only shortly before the connection is closed.
                let _ = sender.send(message);
            }
            over.store(true, Ordering::Relaxed);
            // A thread that waits for a message learns that no more will arrive.
            drop(sender);
            if loss == Loss::Ends {
                std::thread::sleep(LEAVING);
                // A layer that hangs, even while it is closed, can be ended only by SIGKILL.
                SharedFiles::of_this_process(began).remove();
                let _ = kill_process(getpid(), Signal::KILL);
            }
        };
        std::thread::Builder::new().spawn(hear).map_err(MemberError::NotLaunched)?;
        Ok(Self { connection, messages, is_over, loss, began })
    }

    /// Ends this process if its launching side has ended and it was started for this connection. It serves
    /// processes that are in the middle of work that is no longer needed.
    pub fn end_if_over(&self) {
        if self.loss == Loss::Ends && self.is_over.load(Ordering::Relaxed) {
            self.shared_files().remove();
            std::process::exit(1);
        }
    }

    /// Returns the shared-memory files that this process has created and mapped since the connection began.
    pub fn shared_files(&self) -> SharedFiles {
        SharedFiles::of_this_process(self.began)
    }

    /// Returns the flag that becomes true when the launching side has ended.
    pub fn over(&self) -> &AtomicBool {
        &self.is_over
    }

    /// Returns the address of this host on the connection, or `None` if the connection is local.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.connection.local_addr().ok().map(|address| address.ip().to_canonical())
    }

    /// Sends a message to the launching side.
    pub fn send<M: Serialize>(&mut self, message: &M) -> Result<(), MemberError> {
        Ok(frame::send(&mut self.connection, message)?)
    }

    /// Returns the next message if one has arrived.
    pub fn try_receive(&mut self) -> Option<T> {
        self.messages.try_recv().ok()
    }

    /// Returns the next message, which must arrive within `timeout`.
    pub fn receive(&mut self, timeout: Duration) -> Result<T, MemberError> {
        self.messages.recv_timeout(timeout).map_err(|error| match error {
            RecvTimeoutError::Timeout => MemberError::Silent,
            RecvTimeoutError::Disconnected => MemberError::Over,
        })
    }

    /// Waits for the next message without a timeout.
    pub fn wait(&mut self) -> Result<T, MemberError> {
        self.messages.recv().map_err(|_| MemberError::Over)
    }
}

impl<T> Drop for Control<T> {
    /// Removes the files of a layer that could not be closed, because it left them mapped.
    fn drop(&mut self) {
        if self.loss == Loss::Ends {
            SharedFiles::of_this_process(self.began).remove();
        }
    }
}

/// Closes the connection on SIGTERM. The listening thread then sees the end of the connection.
fn hang_up_on_signal(connection: OwnedFd) -> Result<(), MemberError> {
    let mut signals = Signals::new([SIGTERM]).map_err(MemberError::NotLaunched)?;
    let wait = move || {
        for _ in &mut signals.forever() {
            // Fails if the connection is already closed, which is harmless.
            let _ = shutdown(&connection, Shutdown::Both);
        }
    };
    std::thread::Builder::new().spawn(wait).map(drop).map_err(MemberError::NotLaunched)
}
