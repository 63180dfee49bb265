//! The hook of this process: its page, its account, its clock, and the one interface that all
//! messages of the process go through.

use crate::account::{self, State, Word, failure_words, lateness_at};
use crate::between::{Between, Who};
use crate::fault::{Entry, InjectedFault, Side};
use crate::page::{self, Carrier, Completion, GapAt, NO_TURN, PageError, Plan, Turn};
use netdyno_clock::calibrate::Clock;
use netdyno_clock::ticks;
use netdyno_protocol::dial::course::Course;
use netdyno_protocol::dial::link::{SIZES, Usual, size_class};
use netdyno_protocol::dial::profile::Profile;
use netdyno_protocol::dial::setting::Dial;
use netdyno_protocol::dial::stamp::Grain;
use netdyno_protocol::dial::terms::Terms;
use netdyno_protocol::dial::timing::{Capacity, Departed, Departures, Gate};
use netdyno_protocol::dial::variation::Variation;
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::any::Any;
use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// What the dials of a turn come to here.
#[derive(Debug)]
pub struct Force {
    course: Course,
    /// Where messages are put under different things: what decides.
    variation: Mutex<Variation>,
    capacity: usize,
    /// A message departs when it is sent, whatever was sent before.
    departs_at_once: bool,
    /// A message may have to wait for the one released before it.
    turns_recv_gap: bool,
}

/// Both sides of the process's interface.
#[derive(Debug)]
pub struct Sides {
    pub departures: Departures,
    pub gate: Gate,
    /// Of the messages that depart, and the turn that it was made for.
    capacity: Option<(usize, Capacity)>,
    /// What the provider's part of sends has taken, by size, the hook's own, and of that the part
    /// before the provider's.
    sending: [Usual; SIZES],
    own: Usual,
    before: Usual,
}

/// The hook of this process.
pub struct Hook {
    current: &'static AtomicU32,
    /// No message of this host departs later, in ticks: written ahead, so that it is written rarely.
    furthest: &'static AtomicU64,
    ahead: u64,
    skew: u64,
    /// Who does not look for longer was away, in ticks.
    pub away: u64,
    account: &'static [AtomicU64],
    /// By turn; `None` where nothing is turned.
    forces: Vec<Option<Force>>,
    ever_dials: bool,
    /// How a stamp is read and written.
    pub grain: Grain,
    /// Departure times travel as stamps.
    pub stamps: bool,
    /// Between whom dials are turned, and who this is.
    pub between: Option<Between>,
    pub who: Who,
    pub folder: &'static Path,
    sides: Mutex<Sides>,
    /// What the provider's part of a send usually takes, by size, in ticks: a message departs at its
    /// end. As it was last found out.
    sending: [AtomicU64; SIZES],
    /// Of the size that takes least: what there is to a send beside its bytes.
    sending_least: AtomicU64,
    /// What the hook's own part takes beside a send overhead, of which it is a part.
    own: AtomicU64,
    /// Of that, what passes before the provider has the message: part of an added latency.
    before: AtomicU64,
    /// When sends end whose endpoint asks for delivery.
    pub completion: Completion,
    /// Where a message waits for the gap of the one before it.
    gap_at: GapAt,
    /// A message may have to wait for the one released before it.
    pub has_gate: bool,
    /// A wait for the gap that is longer is the program's to pass, in ticks.
    short_wait: u64,
    failed: AtomicBool,
    fault: Option<InjectedFault>,
}

/// How far ahead of what has to be known the furthest departure is written.
const AHEAD_NS: f64 = 1e6;

/// What the clocks of two processors of a host may differ by, and more.
const SKEW_NS: f64 = 10e3;
/// Many times what looks in a row take.
const AWAY_NS: f64 = 20e3;
/// A send that waits for its gap at the sender is refused until so long before, so that the program
/// makes progress meanwhile: several times what a program takes to send again.
const SHORT_WAIT_NS: f64 = 20e3;

/// Ranks draw different numbers of one seed: an odd number, which makes another of each rank's.
const RANKS_APART: u64 = 0x9e37_79b9_7f4a_7c15;

static HOOK: OnceLock<Option<Hook>> = OnceLock::new();
static ACCOUNT: OnceLock<Option<(PathBuf, &'static [AtomicU64])>> = OnceLock::new();

/// Opens the account, as soon as the library is loaded: it says that it was.
pub fn load() {
    ACCOUNT.get_or_init(|| {
        // What goes wrong is noted, and shown by the command; the program's terminal is its own.
        std::panic::set_hook(Box::new(|_| {}));
        let folder = PathBuf::from(std::env::var_os(page::FOLDER)?);
        let account = open_account(&folder).ok()?;
        Some((folder, account))
    });
}

/// The hook, if this process runs under the command and its page can be read.
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
/// It is an atomic: it may change behind a shared reference, and any bits are a value of it.
unsafe trait SharedWord: Sync + 'static {}

// SAFETY: the type is an atomic integer.
unsafe impl SharedWord for AtomicU32 {}
// SAFETY: the type is an atomic integer.
unsafe impl SharedWord for AtomicU64 {}

/// Maps the first `count` words of a file for as long as the process lives.
fn map<T: SharedWord>(file: &File, count: usize) -> Result<&'static [T], rustix::io::Errno> {
    let length = count * size_of::<T>();
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the system chooses where the mapping lies, so that it touches nothing that exists.
    let start = unsafe { mmap(ptr::null_mut(), length, protection, MapFlags::SHARED, file.as_fd(), 0)? };
    // SAFETY: the mapping has so many bytes, is never undone, and begins at a page; any bits are words,
    // which other processes may change.
    Ok(unsafe { std::slice::from_raw_parts(start.cast(), count) })
}

fn open_account(folder: &Path) -> std::io::Result<&'static [AtomicU64]> {
    let path = folder.join(format!("{}{}-{}", account::PREFIX, host(), std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    file.set_len(account::BYTES as u64)?;
    let words: &[AtomicU64] = map(&file, account::WORDS)?;
    let set = |word: Word, value: u64| words[word as usize].store(value, Relaxed);
    set(Word::Pid, u64::from(std::process::id()));
    for (word, names) in [(Word::Rank, RANK), (Word::Ranks, RANKS), (Word::LocalRanks, LOCAL_RANKS)] {
        set(word, environment(names).map_or(0, |value| value + 1));
    }
    set(Word::State, State::Loaded as u64);
    set(Word::Magic, account::MAGIC);
    Ok(words)
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Where launchers say which rank this is: Hydra, Open MPI, PMIx and Slurm.
const RANK: &[&str] = &["PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"];
/// Of how many.
const RANKS: &[&str] = &["PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"];
/// And of how many on this host.
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

/// The words of the page that all ranks of the host share.
pub struct Shared {
    /// The turn in force.
    pub current: &'static AtomicU32,
    /// The furthest departure.
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

    /// The hook of a process that is `who`, under `plan`.
    pub fn new(
        plan: Plan,
        clock: &Clock,
        shared: Shared,
        account: &'static [AtomicU64],
        who: Who,
        folder: &'static Path,
    ) -> Result<Self, PageError> {
        let seed = plan.seed ^ who.rank.unwrap_or(u64::MAX).wrapping_mul(RANKS_APART);
        let forces =
            plan.turns.iter().map(|turn| Force::of(turn, plan.profile.as_ref(), clock.tick_ns, seed));
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
            has_gate: forces.iter().flatten().any(|force| force.turns_recv_gap),
            account,
            ever_dials: forces.iter().any(Option::is_some),
            forces,
            grain: Grain::of_shift(plan.grain_shift),
            stamps,
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

    /// What is in force now, if anything is.
    #[inline]
    pub fn force(&self) -> Option<&Force> {
        let turn = self.current.load(Relaxed) as usize;
        self.forces.get(turn)?.as_ref().filter(|_| !self.failed.load(Relaxed))
    }

    /// Whether a message could be dialled now or later, or bring a stamp.
    #[inline]
    pub fn ever_dials(&self) -> bool {
        self.ever_dials
    }

    /// Counts something.
    #[inline]
    pub fn count(&self, word: Word, more: u64) {
        // Read and written apart: two threads in one endpoint may lose a count, and none waits.
        let word = &self.account[word as usize];
        word.store(word.load(Relaxed).wrapping_add(more), Relaxed);
    }

    /// Notes a figure.
    pub fn set(&self, word: Word, value: u64) {
        self.account[word as usize].store(value, Relaxed);
    }

    /// The hook has come so far.
    pub fn reach(&self, state: State) {
        self.account[Word::State as usize].fetch_max(state as u64, Relaxed);
    }

    /// A message departs then, maybe in the future: all who read its stamp are to know that it may.
    pub fn announce(&self, departs: u64, now: u64) {
        if departs > self.latest(now) {
            self.furthest.fetch_max(departs.saturating_add(self.ahead), Relaxed);
        }
    }

    /// The latest time that a stamp can mean.
    pub fn latest(&self, now: u64) -> u64 {
        self.furthest.load(Relaxed).max(now.saturating_add(self.skew))
    }

    /// Whether messages may bring a word of the hook's.
    #[inline]
    pub fn marks(&self) -> bool {
        self.stamps || self.between.is_some()
    }

    /// Notes how late a message was released.
    pub fn note_lateness(&self, ticks: u64) {
        self.account[lateness_at(ticks)].fetch_add(1, Relaxed);
    }

    /// The interface of the process.
    pub fn sides(&self) -> MutexGuard<'_, Sides> {
        self.sides.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The provider has refused a message.
    pub fn recall(&self, draft: Draft) {
        if let Some(change) = draft.change {
            self.sides().recall(change);
        }
    }

    /// Notes what a send of `bytes` has taken, and what the hook has taken before and after it.
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

    /// What a message usually passes in the hook of its sender before the provider has it, beside a
    /// send overhead. This rank's sends stand for those of its peers.
    pub fn before(&self, terms: &Terms) -> u64 {
        if terms.send_overhead > 0 { 0 } else { self.before.load(Relaxed) }
    }

    /// What the hook usually takes beside a send overhead.
    pub fn own(&self) -> u64 {
        self.own.load(Relaxed)
    }

    /// Does a part of what a function is for, whose failure must not lose the other parts. From the
    /// first failure on everything passes, in all ranks of the host.
    pub fn guarded<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        catch_unwind(AssertUnwindSafe(work)).map_err(|panic| self.fail_by(&*panic)).ok()
    }

    /// Lets everything pass from now on.
    pub fn fail(&self, text: &str) {
        if !self.failed.swap(true, Relaxed) {
            note_failure(self.account, text);
        }
        self.current.store(NO_TURN, Relaxed);
    }

    /// Lets everything pass after a panic.
    #[cold]
    pub fn fail_by(&self, panic: &(dyn Any + Send)) {
        self.fail(words_of(panic));
    }

    pub fn has_failed(&self) -> bool {
        self.failed.load(Relaxed)
    }

    /// Panics where the plan injects a fault, once.
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

/// What a panic says.
fn words_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("the hook has failed")
}

/// Lets everything pass after a panic, whether there is a hook yet or not.
#[cold]
pub fn fail_by(panic: &(dyn Any + Send)) {
    if let Some(Some(hook)) = HOOK.get() {
        hook.fail_by(panic);
    } else if let Some(Some((_, account))) = ACCOUNT.get() {
        note_failure(account, words_of(panic));
    }
}

/// A message that is being sent.
pub struct Draft {
    /// What it is put under.
    pub terms: Terms,
    /// When its overhead was over.
    pub began: u64,
    /// When the provider was given it.
    pub given: u64,
    /// When the provider had taken it; 0 where nobody looked at the clock.
    pub taken: u64,
    /// When its send will be over, by what sends usually take: until then it is overhead.
    pub sent: u64,
    /// When it departs.
    pub departs: Departed,
    /// The interface before and after it, where it has to be taken back if it is refused.
    change: Option<(Departures, Departures)>,
}

impl Force {
    /// What a turn comes to; `None` where it turns nothing.
    fn of(
        turn: &Turn,
        profile: Option<&Profile>,
        tick_ns: f64,
        seed: u64,
    ) -> Result<Option<Self>, PageError> {
        let Turn { dials, own, capacity } = turn;
        if dials.are_none() && profile.is_none() && *capacity == 0 {
            return Ok(None);
        }
        let course = Course::new(dials, profile, own, tick_ns);
        let course = course.map_err(|error| PageError(error.to_string()))?;
        let turns = |dial| dials.get(dial).is_some() || profile.is_some_and(|profile| profile.turns(dial));
        Ok(Some(Self {
            variation: Mutex::new(Variation::new(&course, seed)),
            course,
            capacity: *capacity as usize,
            turns_recv_gap: turns(Dial::RecvGap),
            departs_at_once: !turns(Dial::SendGap) && !turns(Dial::GapPerByte) && *capacity == 0,
        }))
    }

    /// What a message is put under that is sent at `now`, and can depart when its sender's interface
    /// is `free` of those before it.
    pub fn terms(&self, now: u64, free: impl FnOnce() -> u64) -> Terms {
        self.terms_of(|variation| variation.departing(&self.course, now, free()))
    }

    /// What a message is put under that is seen at `now`, and says when it departed.
    pub fn terms_seen(&self, now: u64, departed: u64) -> Terms {
        self.terms_of(|variation| variation.seen(&self.course, now, Some(departed)))
    }

    /// What a message is put under that is released then.
    pub fn terms_released(&self, at: u64) -> Terms {
        self.terms_of(|variation| variation.released(&self.course, at))
    }

    #[inline]
    fn terms_of(&self, vary: impl FnOnce(&mut Variation) -> Terms) -> Terms {
        if self.course.is_steady() {
            return *self.course.steady();
        }
        vary(&mut self.variation())
    }

    /// The latency of a message that is here at that time.
    pub fn latency(&self, here: u64) -> u64 {
        if self.course.is_steady() {
            return self.course.steady().latency.ticks();
        }
        self.variation().latency(&self.course, here)
    }

    fn variation(&self) -> MutexGuard<'_, Variation> {
        self.variation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits at the sender for the gap of the message before, where that is to be so. Returns when it is
    /// over; `None` where it is too long for the program to make no progress meanwhile.
    pub fn wait_for_gap(&self, hook: &Hook, began: u64) -> Option<u64> {
        if hook.gap_at == GapAt::Interface || self.departs_at_once {
            return Some(began);
        }
        let free = hook.sides().departures.free();
        if free > began.saturating_add(hook.short_wait) {
            return None;
        }
        Some(if free > began { spin_until(free) } else { began })
    }

    /// Has a message of `bytes` depart, if the capacity allows it.
    pub fn depart(&self, hook: &Hook, began: u64, bytes: usize, terms: Terms) -> Option<Draft> {
        let sent = began.saturating_add(hook.sending[size_class(bytes)].load(Relaxed));
        if self.departs_at_once {
            let departs = Departed { at: sent, at_once: true };
            return Some(Draft { terms, began, given: began, taken: 0, sent, departs, change: None });
        }
        let mut sides = hook.sides();
        if self.capacity > 0 && !sides.capacity(self.capacity).has_room(began) {
            return None;
        }
        let before = sides.departures.clone();
        let first = began.saturating_add(hook.sending_least.load(Relaxed)).min(sent);
        let departs = sides.departures.depart_over(first, sent, bytes, &terms);
        let change = Some((before, sides.departures.clone()));
        Some(Draft { terms, began, given: began, taken: 0, sent, departs, change })
    }

    /// The provider has taken it.
    pub fn sent(&self, sides: &mut Sides, draft: &Draft) {
        if self.capacity > 0 {
            let arrival = draft.departs.at.saturating_add(draft.terms.latency.ticks());
            sides.capacity(self.capacity).depart(arrival);
        }
    }

    /// Whether [`Force::sent`] has anything to do.
    pub fn has_capacity(&self) -> bool {
        self.capacity > 0
    }
}

impl Sides {
    /// The provider has refused it: what it left behind is taken back, if nobody has departed since.
    fn recall(&mut self, (before, after): (Departures, Departures)) {
        if self.departures == after {
            self.departures = before;
        }
    }

    /// Of that size; it begins empty whenever another turn asks for another.
    fn capacity(&mut self, most: usize) -> &mut Capacity {
        if self.capacity.as_ref().is_none_or(|(of, _)| *of != most) {
            self.capacity = Some((most, Capacity::new(most)));
        }
        &mut self.capacity.get_or_insert_with(|| (most, Capacity::new(most))).1
    }
}

thread_local! {
    /// This thread is in a function of the provider's that a hooked one has called.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Calls the provider. A provider may call functions of its own by the object's table, which leads
/// here again: such a call is not the program's.
#[inline]
pub fn inside<T>(call: impl FnOnce() -> T) -> T {
    /// Says again what was so before, also where the call ends by a panic.
    struct Leave(bool);
    impl Drop for Leave {
        fn drop(&mut self) {
            INSIDE.set(self.0);
        }
    }
    let _leave = Leave(INSIDE.replace(true));
    call()
}

/// Whether it is a provider that calls.
#[inline]
pub fn is_inside() -> bool {
    INSIDE.get()
}

/// Keeps the processor busy until then. Returns the time.
pub fn spin_until(end: u64) -> u64 {
    loop {
        let now = ticks::glance();
        if now >= end {
            return now;
        }
        std::hint::spin_loop();
    }
}
