//! The exchange of bytes through the program that has started the processes, by PMI version 1: lines over an
//! inherited socket. Hydra (MPICH, Intel MPI), Slurm (`srun --mpi=pmi2`) and Flux speak it. No MPI is needed.
//!
//! A line has a command and its arguments, as in `cmd=put kvsname=NAME key=KEY value=VALUE`. Each is answered by a
//! line. The values that processes put can be read by all processes of the job after a barrier.

use crate::hex;
use crate::place::Place;
use netdyno_host::inherited;
use rustix::net::{SendFlags, send};
use std::fmt::Debug;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use thiserror::Error;

/// What a launcher says before it closes the connection because the job is over.
pub(crate) const ABORTED: &str = "cmd=abort\n";
/// Environment variable with the number of the inherited socket.
pub(crate) const DESCRIPTOR: &str = "PMI_FD";
/// The longest answer, in bytes.
const LONGEST_LINE: u64 = 4096;
/// Bytes in a value. Two digits each fit into the 1024 characters of all launchers.
const PIECE: usize = 400;
/// The most values of a process in an exchange.
const PIECES_AT_MOST: usize = 64;

/// The reason why bytes cannot be exchanged.
#[derive(Debug, Error)]
pub enum PmiError {
    /// The socket cannot be used.
    #[error("its socket ({DESCRIPTOR}) fails: {0}")]
    Io(#[from] io::Error),
    /// The variable does not have the number of a socket.
    #[error("{DESCRIPTOR}={0} is no number of a socket")]
    Descriptor(String),
    /// The launcher has ended.
    #[error("the launcher has closed the connection")]
    Closed,
    /// The launcher has ended the job.
    #[error("the launcher has ended the job")]
    Over,
    /// The launcher refuses a command, or speaks another protocol.
    #[error("the launcher answers '{answer}' to cmd={command}")]
    Answer {
        /// The command.
        command: &'static str,
        /// The answer.
        answer: String,
    },
    /// More bytes than an exchange carries.
    #[error("{0} bytes are too many for an exchange")]
    TooMuch(usize),
    /// Another process put a value that is not as this module writes it.
    #[error("process {0} has put a value that cannot be read")]
    Value(usize),
}

/// A connection that carries the lines.
trait Stream: Read + Write + Debug + Send {}

impl<T: Read + Write + Debug + Send> Stream for T {}

/// The socket to the launcher. A write to one that is gone is an error and no signal, which would end a program in C. A
/// file that is no socket gets nothing.
#[derive(Debug)]
struct Launcher(File);

impl Read for Launcher {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.0.read(room)
    }
}

impl Write for Launcher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(&self.0, bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The connection of this process to its launcher. When it is dropped, it tells the launcher that the process will
/// end.
#[derive(Debug)]
pub struct Pmi {
    socket: BufReader<Box<dyn Stream>>,
    place: Place,
    /// The name of the job's values.
    space: String,
    exchanges: usize,
    /// Whether the launcher has answered the last command.
    is_working: bool,
}

impl Pmi {
    /// Reports whether the launcher offers PMI to this process.
    pub fn is_offered() -> bool {
        std::env::var_os(DESCRIPTOR).is_some()
    }

    /// Connects to the launcher of this process, which has this place in its job.
    ///
    /// # Errors
    /// Returns `PmiError` if the launcher offers no PMI version 1.
    pub fn open(place: Place) -> Result<Self, PmiError> {
        let number = std::env::var(DESCRIPTOR).unwrap_or_default();
        let socket = match number.parse() {
            Ok(number) => Launcher(inherited::descriptor(number)?),
            Err(_) => return Err(PmiError::Descriptor(number)),
        };
        Self::over(socket, place)
    }

    /// Speaks with the launcher over any connection.
    ///
    /// # Errors
    /// As of [`Pmi::open`].
    pub fn over(socket: impl Read + Write + Debug + Send + 'static, place: Place) -> Result<Self, PmiError> {
        let mut pmi = Self {
            socket: BufReader::new(Box::new(socket)),
            place,
            space: String::new(),
            exchanges: 0,
            is_working: false,
        };
        pmi.ask("init", "pmi_version=1 pmi_subversion=1", "response_to_init")?;
        let answer = pmi.ask("get_my_kvsname", "", "my_kvsname")?;
        let space = argument(&answer, "kvsname").filter(|name| !name.is_empty());
        pmi.space = space.ok_or_else(|| refusal("get_my_kvsname", &answer))?.to_owned();
        Ok(pmi)
    }

    /// Returns the place of this process.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Gives `mine` to all processes, and returns the bytes of all processes, by rank. They wait for each other
    /// without a timeout.
    ///
    /// # Errors
    /// Returns `PmiError` if the launcher fails, or if `mine` is too long.
    pub fn gather(&mut self, mine: &[u8]) -> Result<Vec<Vec<u8>>, PmiError> {
        let pieces = mine.len().div_ceil(PIECE).max(1);
        if pieces > PIECES_AT_MOST {
            return Err(PmiError::TooMuch(mine.len()));
        }
        for nth in 0..pieces {
            let piece = &mine[nth * PIECE..mine.len().min((nth + 1) * PIECE)];
            let (space, key) = (&self.space, self.key(self.place.rank, nth));
            let put = format!("kvsname={space} key={key} value={}", written(pieces, piece));
            self.ask("put", &put, "put_result")?;
        }
        self.ask("barrier_in", "", "barrier_out")?;
        let all = (0..self.place.procs).map(|rank| self.of_process(rank)).collect();
        self.exchanges += 1;
        all
    }

    /// Returns the bytes that a process has put in this exchange.
    fn of_process(&mut self, rank: usize) -> Result<Vec<u8>, PmiError> {
        let (mut bytes, mut nth) = (Vec::new(), 0);
        loop {
            let get = format!("kvsname={} key={}", self.space, self.key(rank, nth));
            let answer = self.ask("get", &get, "get_result")?;
            let value = argument(&answer, "value").and_then(read);
            let (pieces, piece) = value.ok_or(PmiError::Value(rank))?;
            bytes.extend(piece);
            nth += 1;
            if nth >= pieces {
                return Ok(bytes);
            }
        }
    }

    /// Asks the launcher to end all processes of the job, with this exit code. The launcher may end this process before
    /// the call returns.
    pub fn abort(mut self, code: i32) {
        self.is_working = false;
        // A launcher that is gone ends nothing, and needs no answer.
        let _ = self.socket.get_mut().write_all(format!("cmd=abort exitcode={code}\n").as_bytes());
    }

    /// Closes the connection without a word, as a process that is killed does.
    pub fn desert(mut self) {
        self.is_working = false;
    }

    fn key(&self, rank: usize, nth: usize) -> String {
        format!("netdyno-{}-{rank}-{nth}", self.exchanges)
    }

    /// Sends a command and returns the answer, which must be `expected`.
    fn ask(&mut self, command: &'static str, arguments: &str, expected: &str) -> Result<String, PmiError> {
        let gap = if arguments.is_empty() { "" } else { " " };
        self.socket.get_mut().write_all(format!("cmd={command}{gap}{arguments}\n").as_bytes())?;
        // A launcher that fails now is told nothing more: it may not answer.
        self.is_working = false;
        let mut line = Vec::new();
        (&mut self.socket).take(LONGEST_LINE).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Err(PmiError::Closed);
        }
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        let is_done = argument(&line, "rc").is_none_or(|code| code == "0");
        if argument(&line, "cmd") == Some(expected) && is_done {
            self.is_working = true;
            Ok(line)
        } else if line == ABORTED.trim_end() {
            Err(PmiError::Over)
        } else {
            Err(refusal(command, &line))
        }
    }
}

impl Drop for Pmi {
    fn drop(&mut self) {
        if self.is_working {
            // A launcher that is gone needs to be told nothing.
            let _ = self.ask("finalize", "", "finalize_ack");
        }
    }
}

#[cold]
fn refusal(command: &'static str, answer: &str) -> PmiError {
    PmiError::Answer { command, answer: answer.escape_debug().to_string() }
}

/// Returns an argument of a line.
pub(crate) fn argument<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

/// Returns a value: the number of values of the process, and some of its bytes.
fn written(pieces: usize, bytes: &[u8]) -> String {
    format!("{pieces}.{}", hex::digits(bytes))
}

/// Reads a value.
fn read(value: &str) -> Option<(usize, Vec<u8>)> {
    let (pieces, digits) = value.split_once('.')?;
    let pieces = pieces.parse().ok().filter(|pieces| (1..=PIECES_AT_MOST).contains(pieces))?;
    Some((pieces, hex::bytes(digits)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;
    use std::os::unix::net::UnixStream;
    use std::sync::{Barrier, Mutex};
    use std::thread;

    /// The values of all processes, and their barrier.
    struct Launcher {
        values: Mutex<HashMap<String, String>>,
        barrier: Barrier,
    }

    impl Launcher {
        /// Serves a process until its end, and returns its last command.
        fn serve(&self, socket: UnixStream) -> String {
            let mut lines = BufReader::new(socket);
            let mut last = String::new();
            loop {
                let mut line = String::new();
                if lines.read_line(&mut line).unwrap() == 0 {
                    return last;
                }
                let line = line.trim_end();
                let of = |name| argument(line, name).unwrap_or_default().to_owned();
                last = of("cmd");
                let answer = match &last[..] {
                    "init" => "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0".into(),
                    "get_my_kvsname" => "cmd=my_kvsname kvsname=kvs_1".into(),
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
                };
                lines.get_mut().write_all(format!("{answer}\n").as_bytes()).unwrap();
            }
        }
    }

    fn over(socket: UnixStream, place: Place) -> Result<Pmi, PmiError> {
        Pmi::over(socket, place)
    }

    #[test]
    fn a_launcher_that_refuses_is_asked_nothing_more() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(b"cmd=response_to_init rc=-1\n").unwrap();
        let refused = over(ours, Place { rank: 0, procs: 2 });
        assert!(matches!(refused, Err(PmiError::Answer { command: "init", .. })), "{refused:?}");
        let mut heard = String::new();
        theirs.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "cmd=init pmi_version=1 pmi_subversion=1\n");
    }

    #[test]
    fn all_processes_get_the_bytes_of_all() {
        let procs = 3;
        let launcher = Launcher { values: Mutex::default(), barrier: Barrier::new(procs) };
        // In the second exchange one process gives nothing, and one more than a value holds.
        let given = |rank: usize, nth: usize| vec![rank as u8 + 1; [10, 1000 * rank][nth]];
        thread::scope(|scope| {
            for rank in 0..procs {
                let (here, there) = UnixStream::pair().unwrap();
                let launcher = &launcher;
                let serving = scope.spawn(move || launcher.serve(there));
                scope.spawn(move || {
                    let mut pmi = over(here, Place { rank, procs }).unwrap();
                    for nth in 0..2 {
                        let all: Vec<Vec<u8>> = (0..procs).map(|rank| given(rank, nth)).collect();
                        assert_eq!(pmi.gather(&given(rank, nth)).unwrap(), all);
                    }
                    assert!(pmi.gather(&[0; PIECE * PIECES_AT_MOST + 1]).is_err());
                    drop(pmi);
                    assert_eq!(serving.join().unwrap(), "finalize");
                });
            }
        });
    }

    #[test]
    fn a_launcher_that_refuses_ends_the_exchange() {
        for (says, error) in [
            ("cmd=response_to_init rc=-1\n", "answers 'cmd=response_to_init rc=-1' to cmd=init"),
            ("nonsense\n", "answers 'nonsense'"),
            (ABORTED, "the launcher has ended the job"),
            ("", "has closed the connection"),
        ] {
            let (here, mut there) = UnixStream::pair().unwrap();
            there.write_all(says.as_bytes()).unwrap();
            there.shutdown(std::net::Shutdown::Write).unwrap();
            let found = over(here, Place { rank: 0, procs: 2 }).unwrap_err().to_string();
            assert!(found.contains(error), "{found}");
        }
    }

    proptest! {
        #[test]
        fn a_value_comes_back(pieces in 1..=PIECES_AT_MOST, bytes: Vec<u8>) {
            prop_assert_eq!(read(&written(pieces, &bytes)), Some((pieces, bytes)));
        }

        #[test]
        fn no_value_panics(value: String) {
            let _ = read(&value);
        }
    }
}
