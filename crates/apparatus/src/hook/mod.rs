//! The hook of this process: its control block, statistics and clock, and the emulated interface that all
//! messages of the process pass through.

pub mod force;

use crate::account::{self, State, Word, failure_words, lateness_at};
use crate::between::{Between, Who};
use crate::fault::{Entry, InjectedFault, Side};
use crate::hook::force::{Draft, Force};
use crate::page::{self, Carrier, Completion, GapAt, NO_SETTING, PageError, Plan};
use netdyno_clock::calibrate::Clock;
use netdyno_clock::ticks;
use netdyno_protocol::dial::link::{SIZES, Usual, size_class};
use netdyno_protocol::dial::parameters::EffectiveParameters;
use netdyno_protocol::dial::stamp::Grain;
use netdyno_protocol::dial::timing::{Capacity, Departures, Gate};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::any::Any;
use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64,
    Ordering::{Relaxed, Release},
};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The sending and the receiving side of the process's emulated interface.
#[derive(Debug)]
pub struct Sides {
    pub departures: Departures,
    pub gate: Gate,
    /// The limit on messages in flight, with the maximum that it was made for.
    capacity: Option<(usize, Capacity)>,
    /// Times of recent sends: in the provider, by message size; in the hook; and in the hook before it calls
    /// the provider.
    sending: [Usual; SIZES],
    own: Usual,
    before: Usual,
}

/// The hook of this process.
pub struct Hook {
    current: &'static AtomicU32,
    /// An upper bound, in ticks, on the departures of all messages of this host. A process raises it by
    /// more than it needs, so that the shared word is written rarely.
    furthest: &'static AtomicU64,
    ahead: u64,
    skew: u64,
    /// A program that does not poll for longer than this, in ticks, counts as absent.
    pub away: u64,
    account: &'static [AtomicU64],
    /// By number of the dial setting; `None` where the setting dials nothing.
    forces: Vec<Option<Force>>,
    ever_dials: bool,
    /// The resolution of stamps.
    pub grain: Grain,
    /// Departure times travel as stamps.
    pub stamps: bool,
    /// Messages may carry a word of the hook's.
    marks: bool,
    /// The groups of ranks between which messages are dialled.
    pub between: Option<Between>,
    pub who: Who,
    pub folder: &'static Path,
    sides: Mutex<Sides>,
    /// The usual time of a send in the provider, by size, in ticks. A message departs when the provider
    /// has taken it. These are copies of `Sides::sending`, read without the lock.
    sending: [AtomicU64; SIZES],
    /// The least of these times: the part of a send that does not depend on its size.
    sending_least: AtomicU64,
    /// The usual time of the hook in a send, in ticks. It counts towards a dialled send overhead.
    own: AtomicU64,
    /// The part of that time before the hook calls the provider. It counts towards an added latency.
    before: AtomicU64,
    /// When a send completes whose endpoint has delivery-complete semantics by default.
    pub completion: Completion,
    /// Where a message waits for the gap of the one before it.
    gap_at: GapAt,
    /// The receive gap is dialled in some setting: a message may wait for the release of the one before
    /// it.
    pub has_gate: bool,
    /// A send whose gap lasts longer than this, in ticks, returns `FI_EAGAIN` instead of waiting.
    short_wait: u64,
    failed: AtomicBool,
    fault: Option<InjectedFault>,
}

/// How far a process raises the upper bound on departures beyond what it needs.
const AHEAD_NS: f64 = 1e6;

/// More than the difference between the clocks of two processors of a host.
const SKEW_NS: f64 = 10e3;
/// Many times the interval between polls of a program that polls in a loop.
const AWAY_NS: f64 = 20e3;
/// A send that waits for its gap at the sender returns `FI_EAGAIN` until so long before the gap ends. So
/// the program can make progress meanwhile. The value is several times what a program takes to retry.
const SHORT_WAIT_NS: f64 = 20e3;

/// Gives each rank a seed of its own: the rank times this odd number is XORed into the common seed.
const RANKS_APART: u64 = 0x9e37_79b9_7f4a_7c15;

static HOOK: OnceLock<Option<Hook>> = OnceLock::new();
static ACCOUNT: OnceLock<Option<(PathBuf, &'static [AtomicU64])>> = OnceLock::new();

/// Creates the statistics file as soon as libfabric loads the library, which records that it was loaded.
pub fn load() {
    ACCOUNT.get_or_init(|| {
        // The hook records its panics in the statistics file, and the command shows them. It writes
        // nothing to the program's terminal.
        std::panic::set_hook(Box::new(|_| {}));
        let folder = PathBuf::from(std::env::var_os(page::FOLDER)?);
        let account = open_account(&folder).ok()?;
        Some((folder, account))
    });
}

/// Returns the hook, if the command started this process and its control block can be read.
pub fn hook() -> Option<&'static Hook> {
    HOOK.get_or_init(|| {
        let (folder, account) = ACCOUNT.get()?.as_ref()?;
        match catch_unwind(|| Hook::open(folder, account)) {
            Ok(Ok(hook)) => Some(hook),
            Ok(Err(error)) => {
                note_failure(account, &error.to_string());
                None
            }
            Err(_) => {
                note_failure(account, "the hook could not be set up");
                None
            }
        }
    })
    .as_ref()
}

/// A word of memory that other processes change at any time.
///
/// # Safety
/// The type is an atomic integer: it may change behind a shared reference, and every bit pattern is
/// valid.
unsafe trait SharedWord: Sync + 'static {}

// SAFETY: the type is an atomic integer.
unsafe impl SharedWord for AtomicU32 {}
// SAFETY: the type is an atomic integer.
unsafe impl SharedWord for AtomicU64 {}

/// Maps the first `count` words of a file for as long as the process lives.
fn map<T: SharedWord>(file: &File, count: usize) -> Result<&'static [T], rustix::io::Errno> {
    let length = count * size_of::<T>();
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses the address of the mapping, so the mapping replaces no existing one.
    let start = unsafe { mmap(ptr::null_mut(), length, protection, MapFlags::SHARED, file.as_fd(), 0)? };
    // SAFETY: the mapping has `length` bytes, is page-aligned and is never removed. Every bit pattern is
    // a valid `T`, and a `T` may change while other processes write to it.
    Ok(unsafe { std::slice::from_raw_parts(start.cast(), count) })
}

fn open_account(folder: &Path) -> std::io::Result<&'static [AtomicU64]> {
    let path = folder.join(format!("{}{}-{}", account::PREFIX, host(), std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    reserve(&file, account::BYTES as u64)?;
    let words: &[AtomicU64] = map(&file, account::WORDS)?;
    let set = |word: Word, value: u64| words[word as usize].store(value, Relaxed);
    set(Word::Pid, u64::from(std::process::id()));
    for (word, names) in [(Word::Rank, RANK), (Word::Ranks, RANKS), (Word::LocalRanks, LOCAL_RANKS)] {
        set(word, environment(names).map_or(0, |value| value + 1));
    }
    set(Word::State, State::Loaded as u64);
    // Last: a reader leaves out a file without it.
    words[Word::Magic as usize].store(account::MAGIC, Release);
    Ok(words)
}

/// Gives a file its length, and room for it: a store to mapped memory without room on the disk would kill the rank.
fn reserve(file: &File, bytes: u64) -> std::io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        // Some file systems cannot reserve.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => file.set_len(bytes),
        result => Ok(result?),
    }
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Variables in which launchers pass the rank: Hydra, Open MPI, PMIx and Slurm.
const RANK: &[&str] = &["PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"];
/// Variables in which launchers pass the number of ranks.
const RANKS: &[&str] = &["PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"];
/// Variables in which launchers pass the number of ranks on this host.
const LOCAL_RANKS: &[&str] = &["MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_TASKS_ON_NODE"];

fn environment(names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}

fn note_failure(account: &[AtomicU64], text: &str) {
    let (bytes, words) = failure_words(text);
    words.for_each(|(at, word)| account[at].store(word, Relaxed));
    account[Word::FailureBytes as usize].store(bytes, Relaxed);
    account[Word::State as usize].store(State::Failed as u64, Relaxed);
}

/// The words of the control block that all ranks of the host share.
pub struct Shared {
    /// The number of the dial setting in force.
    pub current: &'static AtomicU32,
    /// The upper bound on departures, in ticks.
    pub furthest: &'static AtomicU64,
}

impl Hook {
    fn open(folder: &'static Path, account: &'static [AtomicU64]) -> Result<Self, PageError> {
        let path = folder.join(page::NAME);
        let broken = |error: &dyn std::fmt::Display| PageError(format!("{}: {error}", path.display()));
        let file = OpenOptions::new().read(true).write(true).open(&path).map_err(|error| broken(&error))?;
        let bytes = std::fs::read(&path).map_err(|error| broken(&error))?;
        let plan = Plan::read(&bytes)?;
        let words: &[AtomicU32] = map(&file, page::TEXT / 4).map_err(|error| broken(&error))?;
        let longs: &[AtomicU64] = map(&file, page::TEXT / 8).map_err(|error| broken(&error))?;
        let shared = Shared { current: &words[page::CURRENT / 4], furthest: &longs[page::FURTHEST / 8] };
        let who = Who { rank: environment(RANK), host: host() };
        Self::new(plan, &Clock::calibrate(), shared, account, who, folder)
    }

    /// Returns the hook of the process `who`, which follows `plan`.
    pub fn new(
        plan: Plan,
        clock: &Clock,
        shared: Shared,
        account: &'static [AtomicU64],
        who: Who,
        folder: &'static Path,
    ) -> Result<Self, PageError> {
        let seed = plan.seed ^ who.rank.unwrap_or(u64::MAX).wrapping_mul(RANKS_APART);
        let forces = plan
            .settings
            .iter()
            .map(|setting| Force::of(setting, plan.profile.as_ref(), clock.tick_ns, seed));
        let forces = forces.collect::<Result<Vec<_>, PageError>>()?;
        let is_alone =
            matches!((environment(RANKS), environment(LOCAL_RANKS)), (Some(all), Some(here)) if all == here);
        let stamps = match plan.carrier {
            Carrier::Auto => is_alone,
            Carrier::Stamp => true,
            Carrier::Arrival => false,
        };
        let hook = Self {
            current: shared.current,
            furthest: shared.furthest,
            ahead: clock.ticks(AHEAD_NS),
            skew: clock.ticks(SKEW_NS),
            away: clock.ticks(AWAY_NS),
            short_wait: clock.ticks(SHORT_WAIT_NS),
            completion: plan.completion,
            gap_at: plan.gap_at,
            has_gate: forces.iter().flatten().any(|force| force.changes_recv_gap),
            account,
            ever_dials: forces.iter().any(Option::is_some),
            forces,
            grain: Grain::of_shift(plan.grain_shift),
            stamps,
            // A program may spawn ranks whose choice is another one.
            marks: plan.carrier != Carrier::Arrival || plan.between.is_some(),
            between: plan.between,
            who,
            folder,
            sides: Mutex::new(Sides {
                departures: Departures::default(),
                gate: Gate::default(),
                capacity: None,
                sending: [const { Usual::UNKNOWN }; SIZES],
                own: Usual::UNKNOWN,
                before: Usual::UNKNOWN,
            }),
            sending: [const { AtomicU64::new(0) }; SIZES],
            sending_least: AtomicU64::new(0),
            own: AtomicU64::new(0),
            before: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            fault: plan.fail_at,
        };
        hook.set(Word::TickNs, clock.tick_ns.to_bits());
        hook.set(Word::Stamps, u64::from(stamps));
        hook.reach(State::Chosen);
        Ok(hook)
    }

    /// Returns the dial setting in force, if it dials anything.
    #[inline]
    pub fn force(&self) -> Option<&Force> {
        let setting = self.current.load(Relaxed) as usize;
        self.forces.get(setting)?.as_ref().filter(|_| !self.failed.load(Relaxed))
    }

    /// Returns whether any setting dials anything, so that messages may be dialled or carry stamps.
    #[inline]
    pub fn ever_dials(&self) -> bool {
        self.ever_dials
    }

    /// Adds to a count of the statistics.
    #[inline]
    pub fn count(&self, word: Word, more: u64) {
        // A load and a store instead of an atomic add: two threads that use one endpoint may lose a
        // count, and neither waits for the other.
        let word = &self.account[word as usize];
        word.store(word.load(Relaxed).wrapping_add(more), Relaxed);
    }

    /// Stores a value in the statistics.
    pub fn set(&self, word: Word, value: u64) {
        self.account[word as usize].store(value, Relaxed);
    }

    /// Records that the hook has reached a state.
    pub fn reach(&self, state: State) {
        self.account[Word::State as usize].fetch_max(state as u64, Relaxed);
    }

    /// Announces that a message departs at `departs`, maybe in the future, so that receivers accept its
    /// stamp.
    pub fn announce(&self, departs: u64, now: u64) {
        if departs > self.latest(now) {
            self.furthest.fetch_max(departs.saturating_add(self.ahead), Relaxed);
        }
    }

    /// Returns the latest time that a stamp can mean.
    pub fn latest(&self, now: u64) -> u64 {
        self.furthest.load(Relaxed).max(now.saturating_add(self.skew))
    }

    /// Returns whether messages that arrive may carry a word of the hook's.
    #[inline]
    pub fn marks(&self) -> bool {
        self.marks
    }

    /// Records how late, in ticks, a message was released.
    pub fn note_lateness(&self, ticks: u64) {
        self.account[lateness_at(ticks)].fetch_add(1, Relaxed);
    }

    /// Locks the emulated interface of the process.
    pub fn sides(&self) -> MutexGuard<'_, Sides> {
        self.sides.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Undoes the departure of a message that the provider has refused.
    pub fn recall(&self, draft: Draft) {
        if let Some(change) = draft.change {
            self.sides().recall(change);
        }
    }

    /// Records the times of a send of `bytes`: `took` in the provider, and `before` and `after` it in the
    /// hook.
    pub fn note_send(&self, bytes: usize, took: u64, [before, after]: [u64; 2]) {
        let mut sides = self.sides();
        let size = size_class(bytes);
        sides.sending[size].note(took);
        sides.before.note(before);
        sides.own.note(before + after);
        self.sending[size].store(sides.sending[size].get().unwrap_or(0), Relaxed);
        let least = sides.sending.iter().filter_map(Usual::get).min();
        self.sending_least.store(least.unwrap_or(0), Relaxed);
        self.own.store(sides.own.get().unwrap_or(0), Relaxed);
        self.before.store(sides.before.get().unwrap_or(0), Relaxed);
    }

    /// Returns the usual time that a message spends in the hook of its sender before the provider gets
    /// it, where no send overhead is dialled. The times of this rank's sends stand for those of its
    /// peers.
    pub fn before(&self, parameters: &EffectiveParameters) -> u64 {
        if parameters.send_overhead > 0 { 0 } else { self.before.load(Relaxed) }
    }

    /// Returns the usual time of the hook in a send, which counts towards a dialled send overhead.
    pub fn own(&self) -> u64 {
        self.own.load(Relaxed)
    }

    /// Runs a part of a function whose failure must not affect the other parts. After the first failure
    /// nothing is dialled any more, in all ranks of the host.
    pub fn guarded<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        catch_unwind(AssertUnwindSafe(work)).map_err(|panic| self.fail_by(&*panic)).ok()
    }

    /// Turns all dialling off for the rest of the run.
    pub fn fail(&self, text: &str) {
        if !self.failed.swap(true, Relaxed) {
            note_failure(self.account, text);
        }
        self.current.store(NO_SETTING, Relaxed);
    }

    /// Turns all dialling off after a panic.
    #[cold]
    pub fn fail_by(&self, panic: &(dyn Any + Send)) {
        self.fail(words_of(panic));
    }

    pub fn has_failed(&self) -> bool {
        self.failed.load(Relaxed)
    }

    /// Panics once where the plan injects a fault.
    #[inline]
    pub fn panic_if_asked(&self, entry: Entry, side: Side) {
        if let Some(fault) = self.fault
            && (fault.entry, fault.side) == (entry, side)
            && self.account[Word::Sent as usize].load(Relaxed) >= fault.sent
            && !self.has_failed()
        {
            panic!("the hook has failed, as it was asked to");
        }
    }
}

/// Returns the message of a panic.
fn words_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("the hook has failed")
}

/// Turns all dialling off after a panic, also where the hook does not exist yet.
#[cold]
pub fn fail_by(panic: &(dyn Any + Send)) {
    if let Some(Some(hook)) = HOOK.get() {
        hook.fail_by(panic);
    } else if let Some(Some((_, account))) = ACCOUNT.get() {
        note_failure(account, words_of(panic));
    }
}

impl Sides {
    /// Undoes the departure of a message that the provider has refused, unless another has departed
    /// since.
    fn recall(&mut self, (before, after): (Departures, Departures)) {
        if self.departures == after {
            self.departures = before;
        }
    }

    /// Returns the capacity with room for `most` messages. It is new, and so empty, if `most` has
    /// changed.
    fn capacity(&mut self, most: usize) -> &mut Capacity {
        if self.capacity.as_ref().is_none_or(|(of, _)| *of != most) {
            self.capacity = Some((most, Capacity::new(most)));
        }
        &mut self.capacity.get_or_insert_with(|| (most, Capacity::new(most))).1
    }
}

thread_local! {
    /// Whether this thread is inside a function of the provider that a hooked function has called.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Calls the provider. A provider may call its own functions through the object's table, which leads back
/// to the hook. The hook does not dial such nested calls.
#[inline]
pub fn inside<T>(call: impl FnOnce() -> T) -> T {
    /// Restores the previous value, also when the call panics.
    struct Leave(bool);
    impl Drop for Leave {
        fn drop(&mut self) {
            INSIDE.set(self.0);
        }
    }
    let _leave = Leave(INSIDE.replace(true));
    call()
}

/// Returns whether the caller is a provider, not the program.
#[inline]
pub fn is_inside() -> bool {
    INSIDE.get()
}

/// Spins until `end`. Returns the time.
pub fn spin_until(end: u64) -> u64 {
    loop {
        let now = ticks::glance();
        if now >= end {
            return now;
        }
        std::hint::spin_loop();
    }
}
