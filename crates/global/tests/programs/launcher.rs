//! A launcher of processes that speaks PMI version 1, so that programs run as under `mpiexec` without an MPI.

use rustix::io::{FdFlags, fcntl_setfd};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Only a program that never ends takes this long.
const TOO_LONG: Duration = Duration::from_secs(300);

/// The values that the processes of a job have put, and their barrier.
struct Exchange {
    values: Mutex<HashMap<String, String>>,
    barrier: Barrier,
}

/// Runs each command as a rank of one job, and returns their outputs by rank.
pub fn run(commands: Vec<Command>) -> Vec<Output> {
    let ranks = commands.len();
    let exchange = Arc::new(Exchange { values: Mutex::default(), barrier: Barrier::new(ranks) });
    let start = |(rank, mut command): (usize, Command)| {
        let (here, there) = UnixStream::pair().unwrap();
        // The rank inherits its end.
        fcntl_setfd(there.as_fd(), FdFlags::empty()).unwrap();
        let variables = [
            ("PMI_FD", there.as_raw_fd().to_string()),
            ("PMI_RANK", rank.to_string()),
            ("PMI_SIZE", ranks.to_string()),
            ("MPI_LOCALRANKID", rank.to_string()),
        ];
        command.envs(variables).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let exchange = Arc::clone(&exchange);
        // A rank that ends early leaves the others in the barrier, and this thread with them.
        thread::spawn(move || exchange.serve(here));
        child
    };
    let children: Vec<Child> = commands.into_iter().enumerate().map(start).collect();
    let waiting = children.into_iter().map(|child| thread::spawn(|| end(child)));
    let waiting: Vec<_> = waiting.collect();
    waiting.into_iter().map(|thread| thread.join().unwrap()).collect()
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
    /// Serves a process until it closes the connection.
    fn serve(&self, socket: UnixStream) {
        let mut lines = BufReader::new(socket);
        let mut line = String::new();
        while matches!(lines.read_line(&mut line), Ok(1..)) {
            let answer = self.answer(line.trim_end());
            line.clear();
            if lines.get_mut().write_all(format!("{answer}\n").as_bytes()).is_err() {
                return;
            }
        }
    }

    fn answer(&self, line: &str) -> String {
        let of = |name: &str| {
            let word = line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            word.unwrap_or_default().to_owned()
        };
        match &of("cmd")[..] {
            "init" => "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0".into(),
            "get_my_kvsname" => "cmd=my_kvsname kvsname=kvs".into(),
            "put" => {
                self.values.lock().unwrap().insert(of("key"), of("value"));
                "cmd=put_result rc=0 msg=success".into()
            }
            "barrier_in" => {
                self.barrier.wait();
                "cmd=barrier_out".into()
            }
            "get" => match self.values.lock().unwrap().get(&of("key")) {
                Some(value) => format!("cmd=get_result rc=0 msg=success value={value}"),
                None => "cmd=get_result rc=-1 msg=key_not_found".into(),
            },
            _ => "cmd=finalize_ack".into(),
        }
    }
}
