//! The replier's process tells its accounts to the requester's. The connection is not that of the layer, so that
//! it works with every layer. A thread serves it, and sleeps in the kernel meanwhile.

use super::process::{ProcessAccount, threads};
use crate::peer_wait::PEER_TIMEOUT;
use crate::tcp::connection::{Listener, connect};
use netdyno_clock::place;
use netdyno_measure::layer::{LayerError, Meter};
use netdyno_measure::processor_time::{Accounts, COUNTERS, Counters, ProcessTimes, SideAccount};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Instant;

/// The question of the requester's process.
const QUESTION: u8 = b'?';
/// The longest answer, in bytes: a machine with thousands of processors.
const LONGEST_ANSWER: u64 = 1 << 22;

/// Answers questions about this process, in which `replier` communicates, until the requester's process closes
/// the connection.
///
/// # Errors
/// Returns an error if the system refuses a thread.
pub(super) fn serve(listener: Listener, replier: Pid) -> Result<(), LayerError> {
    let work = move || {
        leave_processor();
        let Ok(Some((_, stream))) = listener.accept(Instant::now() + PEER_TIMEOUT) else { return };
        // The requester's process reports a connection that has failed.
        let _ = answer(stream, replier);
    };
    let refused = |error| LayerError(format!("cannot start a thread: {error}"));
    thread::Builder::new().name("accounts".into()).spawn(work).map(drop).map_err(refused)
}

fn answer(mut stream: TcpStream, replier: Pid) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    // Long messages make long windows without a question.
    stream.set_read_timeout(None)?;
    let mut account = ProcessAccount::new(replier);
    let mut question = [0];
    loop {
        stream.read_exact(&mut question)?;
        let told = account.read().map_err(|error| error.0);
        let mut line = serde_json::to_vec(&told)?;
        line.push(b'\n');
        stream.write_all(&line)?;
    }
}

/// Allows this thread all processors of the process. The thread that communicates may be pinned, and spins there.
fn leave_processor() {
    let sets = threads().filter_map(|thread| sched_getaffinity(Some(thread)).ok());
    let sets: Vec<CpuSet> = sets.collect();
    let all: Vec<usize> =
        (0..CpuSet::MAX_CPU).filter(|&cpu| sets.iter().any(|set| set.is_set(cpu))).collect();
    // A thread that stays where it is answers later.
    let _ = place::keep_to(&all);
}

/// Reads the accounts of this process, which is the requester's, and asks the replier's for its own.
pub(super) struct PairMeter {
    own: ProcessAccount,
    peer: BufReader<TcpStream>,
    /// What this process has spent on questions. It is not part of its accounts.
    asked: (ProcessTimes, Counters),
    /// True if both processes read the accounts of one machine. The first answer decides.
    one_machine: Option<bool>,
}

impl PairMeter {
    /// Connects to the replier's process at this address. This thread is the one that communicates.
    pub(super) fn connect(peer: &[u8]) -> Result<Self, LayerError> {
        let stream = connect(peer)?;
        let prepared =
            stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(PEER_TIMEOUT)));
        prepared.map_err(unheard)?;
        let own = ProcessAccount::new(rustix::thread::gettid());
        let asked = (ProcessTimes::default(), Counters::of([Some(0.0); COUNTERS.len()]));
        Ok(Self { own, peer: BufReader::new(stream), asked, one_machine: None })
    }

    fn ask(&mut self) -> Result<SideAccount, LayerError> {
        self.peer.get_mut().write_all(&[QUESTION]).map_err(unheard)?;
        let mut line = String::new();
        let read = (&mut self.peer).take(LONGEST_ANSWER).read_line(&mut line).map_err(unheard)?;
        if read == 0 {
            return Err(LayerError::new("the other process has closed the connection for its accounts"));
        }
        parse(&line)
    }
}

/// Parses an answer: the accounts, or why there are none.
fn parse(line: &str) -> Result<SideAccount, LayerError> {
    let told: Result<SideAccount, String> = serde_json::from_str(line).map_err(|error| {
        LayerError(format!("the other process told accounts that cannot be read: {error}"))
    })?;
    told.map_err(LayerError)
}

impl Meter for PairMeter {
    fn accounts(&mut self) -> Result<Accounts, LayerError> {
        let before = self.own.read()?;
        let replier = self.ask()?;
        let after = self.own.read()?;
        let (process, counters) = (before.process - self.asked.0, before.counters - self.asked.1);
        // The readings are a part of the question.
        let (spent, counted) = self.own.spent()?;
        self.asked.0 = self.asked.0 + (spent - before.process);
        self.asked.1 = self.asked.1 + (counted - before.counters);
        let both = Accounts::between(&before, replier, SideAccount { process, counters, ..after });
        let one_machine = *self.one_machine.get_or_insert(both.one_machine);
        Ok(Accounts { one_machine, ..both })
    }
}

#[cold]
fn unheard(error: io::Error) -> LayerError {
    LayerError(format!("the accounts of the other process cannot be had: {error}"))
}

#[cfg(test)]
mod tests {
    use super::super::clocks::thread_ns;
    use super::*;
    use proptest::prelude::*;
    use std::net::{Ipv4Addr, SocketAddr};
    use std::time::Duration;

    #[test]
    fn the_other_process_tells_its_accounts_and_questions_cost_nothing() {
        let listener = Listener::open(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 1).unwrap();
        let address = listener.addresses().concat();
        serve(listener, rustix::thread::gettid()).unwrap();
        let mut meter = PairMeter::connect(&address).unwrap();
        let before = meter.accounts().unwrap();
        thread::sleep(Duration::from_millis(20));
        let after = meter.accounts().unwrap();
        assert!(before.one_machine && after.replier.machine.is_some());
        let requester = after.requester.process - before.requester.process;
        let replier = after.replier.process - before.replier.process;
        for side in [requester, replier] {
            assert!(side.elapsed_ns >= 20e6, "{side:?}");
        }
        // This thread slept, but its process also runs other tests.
        assert!(requester.user_ns + requester.system_ns < 20e6, "{requester:?}");
        let began = thread_ns(rustix::thread::gettid()).unwrap();
        let accounts: Vec<_> = (0..100).map(|_| meter.accounts().unwrap().requester).collect();
        let asking_ns = thread_ns(rustix::thread::gettid()).unwrap() - began;
        let charged = accounts[99].process - accounts[0].process;
        let charged_ns = charged.user_ns + charged.system_ns;
        assert!(charged_ns < asking_ns / 4.0, "{charged_ns} of {asking_ns}");
    }

    proptest! {
        #[test]
        fn no_answer_panics(line in "[ -~]{0,60}") {
            prop_assert!(parse(&line).is_err());
        }
    }
}
