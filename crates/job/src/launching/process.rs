//! A process that this one has started, and that ends with the thread that has started it.

use netdyno_host::life::Life;
use netdyno_host::tied;
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};

/// A child. A drop kills it.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// A handle of the process until its exit status is taken.
    life: Option<Life>,
}

impl Process {
    /// Starts a process, which inherits a descriptor.
    ///
    /// # Errors
    /// Returns an I/O error if the command cannot be run, or if the process is gone already and nobody can wait for it.
    pub fn start(command: Command, inherited: OwnedFd) -> io::Result<Self> {
        let mut process = Self { child: tied::spawn(command, inherited)?, life: None };
        process.life = Some(Life::of(process.child.id())?);
        Ok(process)
    }

    /// Returns the handle, which is readable once the process has ended. There is none once its exit status is taken.
    pub fn life(&self) -> Option<&Life> {
        self.life.as_ref()
    }

    pub fn is_running(&self) -> bool {
        self.life.is_some()
    }

    /// Sends a signal, unless the exit status is taken.
    pub fn signal(&self, signal: Signal) {
        if self.is_running() {
            // A process that has ended is not yet waited for, so that its number is not another one's.
            let _ = kill_process(Pid::from_child(&self.child), signal);
        }
    }

    /// Takes the exit status of a process that has ended.
    ///
    /// # Errors
    /// Returns an I/O error if there is no status: somebody else has waited for the process.
    pub fn reap(&mut self) -> io::Result<ExitStatus> {
        self.life = None;
        self.child.wait()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail if the process was waited for already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
