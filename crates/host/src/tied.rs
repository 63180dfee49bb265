//! Child processes that inherit a descriptor, and that end with the thread that has started them.

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// Starts a process that inherits `descriptor` under its present number. The kernel kills the process when the calling
/// thread ends, in whatever way. The processes that it starts itself are not killed.
///
/// # Errors
/// Returns an I/O error if the system refuses the process, or if the caller ends meanwhile.
pub fn spawn(mut command: Command, descriptor: OwnedFd) -> io::Result<Child> {
    let (number, parent) = (descriptor.as_raw_fd(), getpid());
    let prepare = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // A parent that has ended before the call above sends no signal.
        if getppid() != Some(parent) {
            return Err(Errno::SRCH.into());
        }
        // SAFETY: the caller of `spawn` holds the descriptor until the process has been started.
        fcntl_setfd(unsafe { BorrowedFd::borrow_raw(number) }, FdFlags::empty())?;
        Ok(())
    };
    // SAFETY: the closure makes system calls only, and allocates nothing.
    unsafe { command.pre_exec(prepare) };
    let child = command.spawn();
    drop(descriptor);
    child
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::life::Life;
    use std::os::unix::net::UnixStream;
    use std::time::{Duration, Instant};

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_child_has_the_descriptor_and_no_other_child_has() {
        let (_here, there) = UnixStream::pair().unwrap();
        let there = OwnedFd::from(there);
        let mut test = shell(&format!("test -S /proc/self/fd/{}", there.as_raw_fd()));
        assert!(!test.status().unwrap().success());
        assert!(spawn(test, there).unwrap().wait().unwrap().success());
    }

    #[test]
    fn a_child_ends_with_the_thread_that_has_started_it() {
        let start = || {
            let (_, there) = UnixStream::pair().unwrap();
            spawn(shell("exec sleep 1000"), there.into()).unwrap()
        };
        let mut child = std::thread::spawn(start).join().unwrap();
        let life = Life::of(child.id()).unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        while !life.has_ended() {
            assert!(Instant::now() < until, "the child lives on");
            std::thread::sleep(Duration::from_millis(5));
        }
        child.wait().unwrap();
    }
}
