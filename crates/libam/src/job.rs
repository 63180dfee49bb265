//! The job of this process: what its ranks have sent, and its end. `spmd` has what the program asks of it.

use crate::code::Code;
use crate::ending::{flush_output, kill};
use crate::lobby::{End, Notice};
use crate::lock::{Held, held};
use crate::message::Words;
use crate::name::Name;
use crate::objects::Endpoint;
use crate::refusal::{Refusal, refuse, say};
use netdyno_job::launching::LAUNCHER_TIME;
use netdyno_job::pmi::Pmi;
use netdyno_stack::am::{Loss, PeerId};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString, c_int};
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// Kinds of messages between ranks: the first word.
pub const BARRIER: u64 = 0;
pub const GATHER: u64 = 1;
pub const EXIT: u64 = 2;
pub const HELLO: u64 = 3;
/// Gatherings between two barriers. No rank gets further ahead of another one, which would have to keep what it is given.
pub const GATHERINGS_AHEAD: u64 = 64;
/// The most bytes that a rank gives.
pub const MOST_GIVEN: u64 = 1 << 30;
/// Rounds of a barrier among the most ranks.
pub const ROUNDS: usize = 16;
/// Interval between two looks of a rank that gives its launcher time to end it.
const LAUNCHER_STEP: Duration = Duration::from_millis(5);
/// Time that a rank which was told the end leaves the one that has told it to abort the job, behind its callback and
/// its last output. The launcher then ends all.
const FOLLOWING: Duration = Duration::from_secs(1);
/// Time between two ranks that say why the job ends, and the last rank that waits for it.
const TURN: Duration = Duration::from_millis(50);
const TURNS_AT_MOST: usize = 100;
/// Whether a rank has ended the job or left it: [`Job::ended`] and [`Job::left`] have more about it.
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// Reports whether a rank has ended the job or left it. Costs next to nothing.
#[inline]
pub fn has_ended() -> bool {
    HAS_ENDED.load(Ordering::Relaxed)
}

/// What a rank that has ended the job has told.
#[derive(Clone, Copy)]
pub struct Ended {
    pub code: c_int,
    /// When this rank learnt of it.
    pub when: Instant,
    /// The barriers and gatherings that it has taken part in: the fewest of all that have ended.
    pub barriers: u64,
    pub gatherings: u64,
}

/// A rank whose process has ended before the job.
#[derive(Clone, Copy)]
pub struct Left {
    pub rank: usize,
    /// When this rank learnt of it.
    pub when: Instant,
}

/// What a rank does together with all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Meeting {
    Nothing,
    Start,
    Barrier,
    Gathering,
}

/// What other threads than that of the job know of its end.
#[derive(Clone, Copy)]
pub struct Told {
    pub code: c_int,
    pub when: Instant,
    /// The rank that has left, if none has ended the job.
    pub left: Option<usize>,
}

/// The first end that was told, or the first rank that has left while none was.
pub static TOLD: Mutex<Option<Told>> = Mutex::new(None);

/// The job of this process.
pub struct Job {
    /// This process. A child of it is no rank.
    pub process: u32,
    pub rank: usize,
    pub ranks: usize,
    /// The same number at all ranks.
    pub id: u64,
    pub endpoint: &'static Endpoint,
    pub names: Vec<Name>,
    pub pmi: Mutex<Option<Pmi>>,
    /// Whether a program has started this rank. It does not see how the process ends.
    pub is_invited: bool,
    /// Messages of other ranks that have come.
    pub controls: Cell<u64>,
    /// Barriers that this rank has begun.
    pub barriers: Cell<u64>,
    /// Messages of barriers that have come, by round.
    pub arrived: [Cell<u64>; ROUNDS],
    /// Gatherings that this rank has begun.
    pub gatherings: Cell<u64>,
    /// The bytes that ranks have given, by gathering and rank.
    pub given: RefCell<HashMap<(u64, usize), Vec<u8>>>,
    /// The gatherings and ranks whose bytes have all come.
    pub complete: RefCell<HashSet<(u64, usize)>>,
    /// What the ranks have told that have ended.
    pub ended: Cell<Option<Ended>>,
    /// The first rank that has left the job.
    pub left: Cell<Option<Left>>,
    /// The ranks that have closed their endpoints and told no end of the job.
    pub closed: RefCell<HashSet<usize>>,
    /// A [`Meeting`]: whether this rank is in a barrier or gathering.
    pub meeting: AtomicU8,
    /// Whether this rank waits in it for a message of another one.
    pub is_waiting: Cell<bool>,
    /// Whether this rank tells the others that it ends the job, and with which code.
    pub is_telling: AtomicBool,
    pub code: Cell<c_int>,
    /// Whether this rank ends.
    pub is_ending: AtomicBool,
    pub callback: Cell<Option<unsafe extern "C" fn(c_int)>>,
    /// The variables of the environment of rank 0, as `NAME=VALUE`.
    pub environment: OnceLock<Vec<CString>>,
}

// SAFETY: the program uses the job's bundle, and with it the job, in one thread at a time.
unsafe impl Sync for Job {}
// SAFETY: as above.
unsafe impl Send for Job {}

pub static JOB: OnceLock<Job> = OnceLock::new();

/// Returns the job, once it has started.
pub fn job() -> Option<&'static Job> {
    JOB.get()
}

/// The job, whose bundle this thread uses now.
pub struct Started {
    job: &'static Job,
    /// The lock of the bundle, if the program has moved the endpoint of the job into one of `AM_PAR`.
    _held: Option<Held<'static>>,
}

impl Deref for Started {
    type Target = Job;

    fn deref(&self) -> &Job {
        self.job
    }
}

/// Returns the job, and holds its bundle.
///
/// # Errors
/// Returns `NotInit` before the start.
pub fn started() -> Result<Started, Refusal> {
    let job = begun()?;
    Ok(Started { job, _held: job.endpoint.hold()? })
}

/// Returns the job.
///
/// # Errors
/// Returns `NotInit` before the start.
pub fn begun() -> Result<&'static Job, Refusal> {
    job().ok_or_else(|| refuse(Code::NotInit, "the job has not started: call SPMDStartup first"))
}

impl Job {
    /// Sets the function that is called when the job ends.
    pub fn set_callback(&self, callback: Option<unsafe extern "C" fn(c_int)>) {
        self.callback.set(callback);
    }

    /// Returns a variable of the environment of rank 0, as `NAME=VALUE`, that begins so.
    pub fn variable(&self, begin: &[u8]) -> Option<&CStr> {
        let variables = self.environment.get()?.iter();
        variables.map(CString::as_c_str).find(|variable| variable.to_bytes().starts_with(begin))
    }

    /// Returns all ranks but this one.
    pub fn others(&self) -> impl Iterator<Item = usize> {
        let own = self.rank;
        (0..self.ranks).filter(move |rank| *rank != own)
    }

    /// Reports whether this rank does something together with all others now.
    pub fn is_meeting(&self) -> bool {
        self.meeting.load(Ordering::Relaxed) != Meeting::Nothing as u8
    }

    /// Returns what this rank tells of its end. A handler may end the job within a barrier or gathering, which this
    /// rank then has not taken part in.
    pub fn own_end(&self, code: c_int) -> End {
        let now = self.meeting.load(Ordering::Relaxed);
        let complete = |begun: &Cell<u64>, meeting| begun.get() - u64::from(now == meeting as u8);
        let barriers = complete(&self.barriers, Meeting::Barrier);
        [code as u64, barriers, complete(&self.gatherings, Meeting::Gathering)]
    }

    /// Returns whether a rank may give something for this gathering: the one under way, or one that may have begun
    /// elsewhere.
    fn may_give(&self, gathering: u64) -> bool {
        let begun = self.gatherings.get();
        (begun.saturating_sub(1)..=begun + GATHERINGS_AHEAD).contains(&gathering)
    }

    /// Takes the end of the job that a rank has told. A rank that tells an end of its own takes no other one.
    fn take_end(&self, [code, barriers, gatherings]: End) {
        if self.is_telling.load(Ordering::Relaxed) {
            return;
        }
        let now = Ended { code: code as c_int, when: Instant::now(), barriers, gatherings };
        let ended = self.ended.get().unwrap_or(now);
        let (barriers, gatherings) = (ended.barriers.min(barriers), ended.gatherings.min(gatherings));
        self.ended.set(Some(Ended { barriers, gatherings, ..ended }));
        *held(&TOLD) = Some(Told { code: ended.code, when: ended.when, left: None });
        HAS_ENDED.store(true, Ordering::Relaxed);
    }

    /// Takes the end of a rank's process.
    fn take_leave(&self, rank: usize) {
        let left = self.left.get().unwrap_or(Left { rank, when: Instant::now() });
        self.left.set(Some(left));
        let mut told = held(&TOLD);
        // This thread polls, so that no other one ends the rank before its time.
        if told.is_none_or(|told| told.left.is_some()) {
            *told = Some(Told { code: 1, when: left.when, left: Some(left.rank) });
        }
        drop(told);
        HAS_ENDED.store(true, Ordering::Relaxed);
    }

    /// Takes the connection to the launcher out. Dropped, it tells the launcher that this rank has ended.
    pub fn take_pmi(&self) -> Option<Pmi> {
        self.pmi.try_lock().ok()?.take()
    }

    /// Ends this rank: calls the callback, empties the output, and tells the launcher. A launcher names the rank that
    /// aborts first, which is the one that has ended the job.
    pub fn leave(&self, code: c_int) {
        if self.is_ending.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Some(callback) = self.callback.get() {
            // SAFETY: the program says that this is such a function.
            unsafe { callback(code) };
        }
        // A launcher that gets an abort may kill this process at once.
        flush_output();
        // A launcher that gets no abort is told the end of this rank, by the drop.
        if let Some(pmi) = self.take_pmi().filter(|_| code != 0) {
            if self.ended.get().is_some() {
                thread::sleep(FOLLOWING);
            }
            pmi.abort(code);
        }
    }
}

/// Returns the job whose endpoint this is.
pub fn job_of(endpoint: &Endpoint) -> Option<&'static Job> {
    job().filter(|job| ptr::eq(job.endpoint, endpoint))
}

/// Takes a message of another rank.
pub fn take_control(endpoint: &Endpoint, peer: PeerId, [kind, a, b, c]: Words, bytes: &[u8]) {
    let Some(job) = job_of(endpoint) else { return };
    let name = endpoint.peers.borrow()[peer.index()].name;
    let Some(rank) = job.names.iter().position(|other| *other == name) else { return };
    job.controls.set(job.controls.get() + 1);
    match kind {
        BARRIER => {
            if let Some(arrived) = usize::try_from(a).ok().and_then(|round| job.arrived.get(round)) {
                arrived.set(arrived.get() + 1);
            }
        }
        GATHER if b <= MOST_GIVEN && job.may_give(a) => {
            let mut given = job.given.borrow_mut();
            let given = given.entry((a, rank)).or_default();
            if given.len() as u64 + bytes.len() as u64 > b {
                return;
            }
            given.extend_from_slice(bytes);
            if given.len() as u64 >= b {
                job.complete.borrow_mut().insert((a, rank));
            }
        }
        EXIT => job.take_end([a, b, c]),
        _ => {}
    }
}

/// Takes what ranks have told without a message, if this is the endpoint of the job.
pub fn take_notices(endpoint: &Endpoint) {
    let Some(job) = job_of(endpoint) else { return };
    for (name, notice) in endpoint.inbox.take_notices() {
        let rank = job.names.iter().position(|other| *other == name);
        match (notice, rank) {
            (Notice::End(end), Some(_)) => job.take_end(end),
            (Notice::Left, Some(rank)) => job.take_leave(rank),
            // It is no rank of this job.
            (_, None) => {}
        }
    }
}

/// Lets all threads know at once what a rank has told by a call: the thread of the job may not poll its bundle.
pub fn hear(from: &Name, notice: Notice) {
    let Some(job) = job().filter(|job| !job.is_telling.load(Ordering::Relaxed)) else { return };
    let Some(rank) = job.names.iter().position(|other| other == from) else { return };
    let (mut told, when) = (held(&TOLD), Instant::now());
    match notice {
        Notice::End([code, ..]) if told.is_none_or(|told| told.left.is_some()) => {
            *told = Some(Told { code: code as c_int, when, left: None });
        }
        Notice::End(_) => {}
        Notice::Left => drop(told.get_or_insert(Told { code: 1, when, left: Some(rank) })),
    }
    HAS_ENDED.store(true, Ordering::Relaxed);
}

/// Ends this rank if the named endpoint is that of a rank, and the job has ended: a message that such a rank does not take
/// is no error.
pub fn end_if_rank_has_left(endpoint: &Endpoint, name: &Name) {
    if let Some(job) = job_of(endpoint).filter(|job| job.names.contains(name))
        && let Some(Ended { code, .. }) = job.ended.get()
    {
        job.leave(code);
        kill(code);
    }
}

/// Takes the loss of a named endpoint. Returns whether it is that of a rank that has ended the job. The loss of another
/// rank ends this one, unless that rank has closed its endpoint.
pub fn rank_is_lost(endpoint: &Endpoint, name: &Name, loss: Loss) -> bool {
    let Some(job) = job_of(endpoint) else { return false };
    let Some(rank) = job.names.iter().position(|other| other == name) else { return false };
    take_notices(endpoint);
    if job.is_telling.load(Ordering::Relaxed)
        || job.is_ending.load(Ordering::Relaxed)
        || job.ended.get().is_some()
    {
        return true;
    }
    if loss == Loss::Closed {
        // It is missed only where this rank waits for it. Then the message that it did not take is that of the barrier.
        job.closed.borrow_mut().insert(rank);
        return job.is_waiting.get();
    }
    await_launcher(job);
    fail(&format!("rank {rank} of {} is lost: {loss}", job.ranks))
}

/// Gives the launcher time to end this process: it sees the end of a rank, too, and names it. Ends this rank without a word
/// once another one has ended the job. The ranks take turns, so that the first one alone says why.
fn await_launcher(job: &Job) {
    let until = Instant::now() + LAUNCHER_TIME + TURN * job.rank.min(TURNS_AT_MOST) as u32;
    while Instant::now() < until {
        thread::sleep(LAUNCHER_STEP);
        take_notices(job.endpoint);
        if let Some(Ended { code, .. }) = job.ended.get() {
            job.leave(code);
            kill(code);
        }
    }
}

/// Ends the process, and with it the job, for the reason that is told.
pub fn fail(why: &str) -> ! {
    match job() {
        Some(job) => say(&format!("rank {}: {why}", job.rank)),
        None => say(why),
    }
    end_failed()
}

/// Ends the process, and with it the job, with exit code 1.
pub fn end_failed() -> ! {
    if let Some(job) = job() {
        // A rank may wait for this one, and the launcher need not end it.
        job.call_all_with(Notice::End(job.own_end(1)));
        job.leave(1);
    }
    kill(1)
}

/// Tells the others and the launcher that this process ends, when it returns from `main` or calls `exit`. After
/// `AM_Terminate` the others learn that the endpoint is closed, and take it for no failure.
pub fn at_exit() {
    // A child that the program has forked, and that ends, is not the rank.
    let Some(job) = job().filter(|job| job.process == std::process::id()) else { return };
    let has_terminated = job.endpoint.has_ended.load(Ordering::Relaxed);
    let leaves = !has_terminated && !job.is_ending.load(Ordering::Relaxed) && job.ended.get().is_none();
    if has_terminated {
        job.endpoint.close();
    } else if leaves {
        job.call_all_with(Notice::Left);
    }
    // A launcher sees the exit code, and is told by the drop that this rank has ended.
    if let Some(pmi) = job.take_pmi().filter(|_| leaves && job.is_invited) {
        pmi.desert();
    }
}
