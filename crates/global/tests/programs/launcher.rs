//! A launcher of processes that speaks PMI version 1, so that programs run as under `mpiexec` without an MPI.

use netdyno_host::tied;
use netdyno_job::launching::server::Server;
use netdyno_job::place::{self, Place};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Only a program that never ends takes this long.
const TOO_LONG: Duration = Duration::from_secs(300);

/// The server of a job, and its end of each connection.
struct Exchange {
    server: Mutex<Server>,
    sockets: Vec<UnixStream>,
}

/// A job that runs. Its ranks are killed when the thread that has started it ends.
pub struct Job {
    children: Vec<Child>,
}

/// Runs each command as a rank of one job, and returns their outputs by rank. A rank that fails does not end the others.
pub fn run(commands: Vec<Command>) -> Vec<Output> {
    start(commands).wait()
}

/// Starts each command as a rank of one job.
pub fn start(commands: Vec<Command>) -> Job {
    let procs = commands.len();
    let (sockets, theirs): (Vec<_>, Vec<_>) = commands.iter().map(|_| UnixStream::pair().unwrap()).unzip();
    let exchange = Arc::new(Exchange { server: Mutex::new(Server::new("test".into(), procs)), sockets });
    let start = |(rank, (mut command, there)): (usize, (Command, UnixStream))| {
        place::set(&mut command, Place { rank, procs }).env("PMI_FD", there.as_raw_fd().to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = tied::spawn(command, there.into()).unwrap();
        let exchange = Arc::clone(&exchange);
        // A rank that ends early leaves the others in the barrier.
        thread::spawn(move || exchange.serve(rank));
        child
    };
    Job { children: commands.into_iter().zip(theirs).enumerate().map(start).collect() }
}

impl Job {
    /// Returns the process of each rank.
    pub fn processes(&self) -> Vec<u32> {
        self.children.iter().map(Child::id).collect()
    }

    /// Kills a rank by SIGKILL.
    pub fn kill(&mut self, rank: usize) {
        self.children[rank].kill().unwrap();
    }

    /// Waits for the end of each rank, and returns their outputs by rank.
    pub fn wait(self) -> Vec<Output> {
        let waiting: Vec<_> = self.children.into_iter().map(|child| thread::spawn(|| end(child))).collect();
        waiting.into_iter().map(|thread| thread.join().unwrap()).collect()
    }
}

/// Waits for a process whose output is short.
fn end(mut child: Child) -> Output {
    let until = Instant::now() + TOO_LONG;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
            panic!("a rank does not end: {:?}", child.wait_with_output().unwrap());
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

impl Exchange {
    /// Serves a rank until it closes the connection.
    fn serve(&self, rank: usize) {
        let mut bytes = [0; 4096];
        while let Ok(len @ 1..) = (&self.sockets[rank]).read(&mut bytes) {
            let mut server = self.server.lock().unwrap();
            let Ok(answers) = server.hear(rank, &bytes[..len]) else { return };
            for answer in answers {
                // A rank that has ended needs no answer.
                let _ = (&self.sockets[answer.to]).write_all(answer.line.as_bytes());
            }
        }
    }
}
