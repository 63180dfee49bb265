//! Other processes: the test binary is started again, with a role. Each test file that uses them has a
//! test `child_process`, which plays the role. It does nothing where no role is set.

use super::{TIMEOUT, Transport};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write, stdin, stdout};
use std::process::{ChildStdin, Command, Stdio};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

const ROLE: &str = "NETDYNO_TEST_ROLE";
/// The prefix of all messages of a child, because the test harness writes to the same pipe.
const SAYS: &str = "netdyno says ";
/// A child ends itself after this time if its parent has not ended it.
const LIFE_OF_A_CHILD: Duration = Duration::from_secs(200);

/// A child process, as its parent uses it. It is killed and reaped when dropped.
pub struct Child {
    process: std::process::Child,
    stdin: Option<ChildStdin>,
    said: Receiver<String>,
    listener: Option<JoinHandle<()>>,
}

impl Child {
    /// Starts a child that plays a role in the test `child_process` of a module. The role and its
    /// arguments are separated by spaces.
    pub fn start(module: &str, role: &str) -> Self {
        Self::start_under(&[], module, role)
    }

    /// Starts a child by a launcher, which becomes the child or its parent.
    pub fn start_under(launcher: &[&str], module: &str, role: &str) -> Self {
        let mut process = harness(launcher, &format!("{module}::child_process"))
            .env(ROLE, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = process.stdin.take();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let (tell, said) = channel();
        let listener = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some((_, says)) = line.split_once(SAYS) {
                    // The parent may have dropped the receiver.
                    let _ = tell.send(says.to_owned());
                }
            }
        });
        Self { process, stdin, said, listener: Some(listener) }
    }

    /// Returns the next message of the child.
    pub fn hear(&self) -> String {
        self.said.recv_timeout(TIMEOUT).expect("the child says nothing")
    }

    /// Returns the next message of the child, if there is one already.
    pub fn try_hear(&self) -> Option<String> {
        self.said.try_recv().ok()
    }

    /// Sends the child a line.
    pub fn tell(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Kills and reaps the child, so that no zombie remains.
    pub fn kill(&mut self) {
        // The child may have ended by itself.
        let _ = self.process.kill();
        self.process.wait().unwrap();
    }

    /// Waits until the child ends by itself.
    pub fn join(mut self) {
        drop(self.stdin.take());
        super::until("a child ends", || match self.process.try_wait().unwrap() {
            Some(status) => {
                assert!(status.success(), "a child failed: {status}");
                true
            }
            None => {
                std::thread::sleep(Duration::from_millis(5));
                false
            }
        });
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
        if let Some(listener) = self.listener.take() {
            listener.join().unwrap();
        }
    }
}

/// Returns whether this process runs the given test alone. If it does not, starts such a process and waits
/// for it.
pub fn in_own_process<F: Fn(&Transport)>(transport: &Transport, _test: F) -> bool {
    const IS_ALONE: &str = "NETDYNO_TEST_IS_ALONE";
    if std::env::var_os(IS_ALONE).is_some() {
        return true;
    }
    let path = transport.path_of(std::any::type_name::<F>());
    let output = harness(&[], &path).env(IS_ALONE, "1").output().unwrap();
    let [said, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    print!("{said}{errors}");
    assert!(output.status.success() && said.contains("1 passed"), "{path}: {}", output.status);
    false
}

/// Returns the command that runs one test of this binary, by its path. If the binary is of another architecture,
/// `NETDYNO_TEST_EMULATOR` has the command that runs it.
fn harness(launcher: &[&str], path: &str) -> Command {
    let (_, test) = path.split_once("::").unwrap();
    let exe = std::env::current_exe().unwrap();
    let emulator = std::env::var("NETDYNO_TEST_EMULATOR").unwrap_or_default();
    let before = launcher.iter().copied().chain(emulator.split_whitespace()).map(OsStr::new);
    let words = before.chain([exe.as_os_str()]).collect::<Vec<_>>();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command
}

/// Returns the number of descriptors of this process, and of its mappings that belong to this crate.
pub fn held() -> (usize, usize) {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().count();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    (descriptors, maps.lines().filter(|line| line.contains("netdyno")).count())
}

/// The parent process, as its child uses it.
pub struct Parent {
    lines: Receiver<String>,
    is_gone: Arc<AtomicBool>,
}

/// Returns whether this process is a child.
pub fn is_child() -> bool {
    std::env::var_os(ROLE).is_some()
}

/// Returns the role of this process and its parent, or `None` if this process is not a child.
pub fn role() -> Option<(Vec<String>, Parent)> {
    let role = std::env::var(ROLE).ok()?;
    std::thread::spawn(|| {
        std::thread::sleep(LIFE_OF_A_CHILD);
        std::process::exit(3);
    });
    let (tell, lines) = channel();
    let is_gone = Arc::new(AtomicBool::new(false));
    let gone = Arc::clone(&is_gone);
    std::thread::spawn(move || {
        for line in stdin().lines().map_while(Result::ok) {
            let _ = tell.send(line);
        }
        gone.store(true, Ordering::Relaxed);
    });
    Some((role.split(' ').map(str::to_owned).collect(), Parent { lines, is_gone }))
}

/// Returns an argument of a role.
pub fn argument<T: FromStr<Err: std::fmt::Debug>>(role: &[String], at: usize) -> T {
    role[at].parse().unwrap()
}

impl Parent {
    pub fn say(&self, what: &str) {
        println!("{SAYS}{what}");
        stdout().flush().unwrap();
    }

    pub fn hear(&self) -> String {
        self.lines.recv_timeout(TIMEOUT).expect("the parent says nothing")
    }

    /// Returns whether the parent has closed the pipe or ended, so that the child must end, too.
    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }
}

pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn from_hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}
