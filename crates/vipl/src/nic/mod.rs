//! The NICs of this process. Each has a provider behind a lock, and a list of threads that sleep on it.
//!
//! A thread holds the lock for one call of the provider. It neither sleeps nor calls the program's
//! handlers meanwhile. Before it releases the lock, it wakes the sleepers that the call has done
//! something for. It also makes sure that the wire wakes them for later events.

pub mod callbacks;
pub mod id;
mod progress;

use crate::handle::{Handled, Opaque};
use crate::settings;
use crate::wakeup::Wakeup;
use callbacks::{Call, Callbacks, Kind};
use id::NicId;
use netdyno_stack::vi::{Provider, Ptag, ReturnCode, WireKind};
use progress::ProgressThread;
use std::mem;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

/// The maximum number of NICs that a process can have open: one bit each.
const MOST: usize = u64::BITS as usize;
/// How long the end of the process waits for a lock. A thread holds a lock for one call. But a signal
/// handler that ends the process may have interrupted its own thread inside a call; that lock is never
/// released.
const LONGEST_CALL: Duration = Duration::from_secs(2);
/// Longest wait for a handler of what is destroyed, and the time between two looks at it.
const LONGEST_HANDLER: Duration = Duration::from_secs(1);
const HANDLER_LOOK: Duration = Duration::from_micros(50);
/// A timer that falls due so shortly before a sleeper wakes is left to that sleeper.
const LATE: Duration = Duration::from_millis(1);

static SLOTS: [Mutex<Slot>; MOST] =
    [const { Mutex::new(Slot { generation: 0, nic: None, closing: None }) }; MOST];
/// The slots in use, one bit each.
static TAKEN: AtomicU64 = AtomicU64::new(0);
/// The slots that were in use when this process was forked. They are the parent's, and their locks may be
/// held for ever.
static FOREIGN: AtomicU64 = AtomicU64::new(0);

/// A slot for a NIC.
struct Slot {
    generation: u16,
    nic: Option<Nic>,
    /// A NIC that is being closed, until it is dropped. The end of the process finds it here.
    closing: Option<Nic>,
}

/// An open NIC.
pub struct Nic {
    pub id: NicId,
    /// The device name that it was opened with.
    device: String,
    pub provider: Provider,
    /// The wire.
    pub way: WireKind,
    /// This host's address. It is never freed, because programs may keep the pointer.
    pub address: &'static [u8],
    pub callbacks: Callbacks,
    /// The tag that stands for a NULL protection tag.
    default_tag: DefaultTag,
    /// Whether the name service is initialized.
    pub has_names: bool,
    pub progress_thread: Option<ProgressThread>,
    /// Becomes readable on an event for a provider that is prepared for sleep.
    wire: Arc<OwnedFd>,
    /// The number of calls by the program.
    calls: u64,
    /// The value of `Provider::changes` when the sleepers were last woken.
    told: u64,
    /// The threads of the program that sleep on this NIC.
    sleepers: Vec<Sleeper>,
    /// A call has panicked. Further calls are refused.
    has_failed: bool,
}

/// The protection tag that NULL stands for: the first tag of a NIC. There are programs that leave the tag
/// of a VI at zero and create one for their memory. They run on hardware whose first tag is zero.
#[derive(Clone, Copy, Default)]
struct DefaultTag {
    tag: Option<Ptag>,
    /// Whether `VipCreatePtag` has returned the tag to the program.
    is_given: bool,
}

/// How a thread is to sleep: on the wire, for at most `most`.
pub struct Sleep {
    pub wire: Arc<OwnedFd>,
    pub most: Duration,
}

impl Sleep {
    /// Returns when the sleep ends at the latest, if it begins now.
    pub fn until(&self) -> Option<Instant> {
        Instant::now().checked_add(self.most)
    }
}

/// A thread that sleeps on the wire.
struct Sleeper {
    wakeup: Arc<Wakeup>,
    until: Option<Instant>,
}

fn bit(slot: u8) -> u64 {
    1_u64.checked_shl(slot.into()).unwrap_or(0)
}

fn is_foreign(slot: u8) -> bool {
    FOREIGN.load(Ordering::Relaxed) & bit(slot) != 0
}

fn lock(id: NicId) -> Result<MutexGuard<'static, Slot>, ReturnCode> {
    let slot = SLOTS.get(usize::from(id.slot)).filter(|_| !is_foreign(id.slot));
    let slot = slot.ok_or(ReturnCode::InvalidParameter)?;
    let slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    if slot.generation == id.generation && slot.nic.is_some() {
        Ok(slot)
    } else {
        Err(ReturnCode::InvalidParameter)
    }
}

/// Puts a provider into a free slot.
///
/// # Errors
/// Returns `ErrorResource` if no slot is free, or if the system has no descriptor left.
pub fn open(device: &str, provider: Provider, way: WireKind) -> Result<NicId, ReturnCode> {
    let wire = provider.as_fd().try_clone_to_owned().map_err(|_| ReturnCode::ErrorResource)?;
    for (at, slot) in (0..).zip(&SLOTS) {
        if TAKEN.fetch_or(bit(at), Ordering::AcqRel) & bit(at) == 0 {
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            slot.generation = slot.generation.wrapping_add(1);
            let id = NicId { slot: at, generation: slot.generation };
            slot.nic = Some(Nic::new(id, device, provider, way, wire));
            return Ok(id);
        }
    }
    Err(ReturnCode::ErrorResource)
}

/// Returns the address of a device that this process has open. All NICs of that device name share it.
pub fn shared_address(device: &str) -> Option<SocketAddr> {
    let taken = TAKEN.load(Ordering::Acquire);
    let is_open = |at: u8| taken & bit(at) != 0 && !is_foreign(at);
    (0..).zip(&SLOTS).filter(|(at, _)| is_open(*at)).find_map(|(_, slot)| {
        let slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let nic = slot.nic.as_ref().filter(|nic| nic.device == device)?;
        nic.provider.shared_address()
    })
}

/// Closes a NIC. Its sleepers wake and find it closed. After the return no handler is called any more,
/// except where a handler closes the NIC.
///
/// # Errors
/// Returns `InvalidParameter` if there is no such NIC.
pub fn close(id: NicId) -> Result<(), ReturnCode> {
    let mut slot = lock(id)?;
    let nic = slot.nic.take();
    let progress_thread = nic.and_then(|mut nic| {
        nic.ring_sleepers();
        let thread = nic.progress_thread.take();
        slot.closing = Some(nic);
        thread
    });
    drop(slot);
    progress_thread.into_iter().for_each(ProgressThread::end);
    let slot = &SLOTS[usize::from(id.slot)];
    slot.lock().unwrap_or_else(PoisonError::into_inner).closing = None;
    TAKEN.fetch_and(!bit(id.slot), Ordering::AcqRel);
    Ok(())
}

/// Marks this process as forked: the open NICs are the parent's and are not used here.
pub fn disown() {
    FOREIGN.store(TAKEN.load(Ordering::Acquire), Ordering::Relaxed);
}

/// Closes all NICs at the end of the process: peers are told, and get what was sent to them. The locks
/// are not released, so other threads that still call wait until the process ends.
pub fn end_all() {
    for (at, slot) in (0..).zip(&SLOTS) {
        let is_ours = TAKEN.load(Ordering::Acquire) & bit(at) != 0 && !is_foreign(at);
        if is_ours && let Some(mut slot) = lock_in_time(slot) {
            let nic = (slot.nic.take(), slot.closing.take());
            // A panic cannot be reported any more.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(nic)));
            mem::forget(slot);
        }
    }
}

fn lock_in_time(slot: &Mutex<Slot>) -> Option<MutexGuard<'_, Slot>> {
    let began = Instant::now();
    loop {
        match slot.try_lock() {
            Ok(slot) => return Some(slot),
            Err(TryLockError::Poisoned(slot)) => return Some(slot.into_inner()),
            Err(TryLockError::WouldBlock) if began.elapsed() > LONGEST_CALL => return None,
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Runs a call of the program's on a NIC.
///
/// # Errors
/// Returns `InvalidParameter` if there is no such NIC, `ErrorResource` if it has failed, or the error of
/// `work`.
#[inline]
pub fn call<T>(id: NicId, work: impl FnOnce(&mut Nic) -> Result<T, ReturnCode>) -> Result<T, ReturnCode> {
    visit(id, |nic| {
        nic.calls = nic.calls.wrapping_add(1);
        nic.progress_thread.iter_mut().for_each(ProgressThread::look_up);
        work(nic)
    })
}

/// Runs a call of the library's own on a NIC. It does not count as a call of the program's.
///
/// # Errors
/// Returns `InvalidParameter` if there is no such NIC, `ErrorResource` if it has failed, or the error of
/// `work`.
#[inline]
pub fn visit<T>(id: NicId, work: impl FnOnce(&mut Nic) -> Result<T, ReturnCode>) -> Result<T, ReturnCode> {
    let mut slot = lock(id)?;
    let nic = slot.nic.as_mut().ok_or(ReturnCode::InvalidParameter)?;
    if nic.has_failed {
        return Err(ReturnCode::ErrorResource);
    }
    let result = catch_unwind(AssertUnwindSafe(|| {
        let result = work(nic);
        nic.share();
        result
    }));
    result.unwrap_or_else(|_| {
        nic.fail();
        Err(ReturnCode::ErrorResource)
    })
}

/// Returns the next handler call to make, also for a NIC that has failed.
pub fn next_callback(id: NicId) -> Option<Call> {
    lock(id).ok()?.nic.as_mut()?.callbacks.next(id)
}

/// Waits until no handler runs that was registered for what has just been destroyed, so that the program may free its
/// context. A handler may itself wait for this thread. So the wait has an end. A handler of the same NIC does not
/// wait: it is the one that runs.
pub fn await_handler(id: NicId, kind: Kind) {
    if progress::handler_of() == Some(id) {
        return;
    }
    let until = Instant::now() + LONGEST_HANDLER;
    let is_running =
        || lock(id).is_ok_and(|slot| slot.nic.as_ref().is_some_and(|nic| nic.callbacks.is_running(kind)));
    while is_running() && Instant::now() < until {
        thread::sleep(HANDLER_LOOK);
    }
}

impl Nic {
    fn new(id: NicId, device: &str, provider: Provider, way: WireKind, wire: OwnedFd) -> Self {
        Self {
            id,
            device: device.to_owned(),
            way,
            address: provider.host().leak(),
            provider,
            callbacks: Callbacks::default(),
            default_tag: DefaultTag::default(),
            has_names: false,
            progress_thread: None,
            wire: Arc::new(wire),
            calls: 0,
            told: 0,
            sleepers: Vec::new(),
            has_failed: false,
        }
    }

    /// Returns the number of calls by the program.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Returns whether threads of the program sleep on the NIC. They make progress when the wire wakes them.
    pub fn has_sleepers(&self) -> bool {
        !self.sleepers.is_empty()
    }

    /// Creates a protection tag for the program.
    ///
    /// # Errors
    /// Returns the error of the provider if there are too many.
    pub fn create_tag(&mut self) -> Result<Ptag, ReturnCode> {
        if self.default_tag.is_given {
            return Ok(self.provider.create_tag()?);
        }
        let tag = self.default_tag.tag.map_or_else(|| self.provider.create_tag(), Ok)?;
        self.default_tag = DefaultTag { tag: Some(tag), is_given: true };
        Ok(tag)
    }

    /// Destroys a protection tag.
    ///
    /// # Errors
    /// Returns `InvalidPtag` if there is no such tag, or the error of the provider if a VI or memory uses
    /// it.
    pub fn destroy_tag(&mut self, tag: Opaque) -> Result<(), ReturnCode> {
        let tag = Ptag::take_of(self.id, tag)?;
        self.provider.destroy_tag(tag)?;
        if self.default_tag.tag == Some(tag) {
            self.default_tag = DefaultTag::default();
        }
        Ok(())
    }

    /// Returns the tag for a handle of the program's. NULL stands for the default tag, unless
    /// `NETDYNO_VIPL_STRICT` is set.
    ///
    /// # Errors
    /// Returns `InvalidPtag` if there is no such tag, or if the handle is NULL and refused.
    pub fn tag(&mut self, given: Opaque) -> Result<Ptag, ReturnCode> {
        if !given.is_null() || settings::is_strict() {
            return Ptag::take_of(self.id, given);
        }
        if let Some(tag) = self.default_tag.tag {
            return Ok(tag);
        }
        let tag = self.provider.create_tag()?;
        self.default_tag = DefaultTag { tag: Some(tag), is_given: false };
        Ok(tag)
    }

    /// Starts the progress thread, unless it runs.
    ///
    /// # Errors
    /// Returns `ErrorResource` if the system has no descriptor or thread left.
    pub fn ensure_progress_thread(&mut self) -> Result<(), ReturnCode> {
        if self.progress_thread.is_none() {
            self.progress_thread =
                Some(ProgressThread::start(self.id).map_err(|_| ReturnCode::ErrorResource)?);
        }
        Ok(())
    }

    /// Prepares the provider for a sleep on the wire, and returns how to sleep.
    pub fn prepare_sleep(&mut self) -> Sleep {
        Sleep { wire: Arc::clone(&self.wire), most: self.provider.prepare_sleep() }
    }

    /// Records that a thread of the program sleeps from now on. The thread has checked for its
    /// completion.
    pub fn fall_asleep(&mut self, wakeup: &Arc<Wakeup>, sleep: &Sleep) {
        // This thread's check may have made progress for other sleepers; they are woken first.
        self.tell_sleepers();
        self.sleepers.push(Sleeper { wakeup: Arc::clone(wakeup), until: sleep.until() });
    }

    /// Records that a thread has woken. If it was the last sleeper, the progress thread takes over the
    /// wire, because the program may not call again.
    pub fn wake_up(&mut self, wakeup: &Arc<Wakeup>) {
        self.sleepers.retain(|other| !Arc::ptr_eq(&other.wakeup, wakeup));
        if self.sleepers.is_empty() {
            self.progress_thread.iter_mut().for_each(ProgressThread::look_up);
        }
    }

    /// Wakes the sleepers for which a call has done something, and makes sure that the wire wakes them
    /// later.
    #[inline]
    fn share(&mut self) {
        let is_watching =
            self.has_sleepers() || self.progress_thread.as_ref().is_some_and(ProgressThread::is_watching);
        if is_watching {
            let is_more = !self.provider.is_prepared() && self.provider.prepare_sleep().is_zero();
            let left = if is_more { Duration::ZERO } else { self.provider.until_due() };
            self.wake_in_time(left);
        }
        let mut is_news = false;
        while let Some(news) = self.provider.next_news() {
            self.callbacks.note(news);
            is_news = true;
        }
        if is_news {
            self.progress_thread.iter().for_each(ProgressThread::ring);
        }
        if self.has_sleepers() {
            self.tell_sleepers();
        }
    }

    /// Wakes one sleeper if a timer now falls due before any sleeper would wake. That sleeper then makes
    /// progress and sleeps until the timer at most.
    fn wake_in_time(&mut self, left: Duration) {
        // Over shared memory there are mostly no timers. Reading the clock would take longer than a poll.
        if left == Duration::MAX {
            return;
        }
        let Some(due) = Instant::now().checked_add(left) else { return };
        let is_in_time = |until: Option<Instant>| until.is_some_and(|until| until <= due + LATE);
        let watching = self.progress_thread.iter_mut().filter_map(ProgressThread::watching);
        let mut all =
            watching.chain(self.sleepers.iter_mut().map(|Sleeper { wakeup, until }| (&*wakeup, until)));
        let Some((wakeup, until)) = all.next() else { return };
        if !is_in_time(*until) && !all.any(|(_, until)| is_in_time(*until)) {
            *until = Some(due);
            wakeup.ring();
        }
    }

    fn tell_sleepers(&mut self) {
        let changes = self.provider.changes();
        if mem::replace(&mut self.told, changes) != changes {
            self.ring_sleepers();
        }
    }

    fn ring_sleepers(&self) {
        self.sleepers.iter().for_each(|sleeper| sleeper.wakeup.ring());
    }

    /// Fails the NIC after a panic: every VI breaks, and the error callback is called.
    fn fail(&mut self) {
        self.has_failed = true;
        // The provider may panic again.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            self.provider.fail();
            while let Some(news) = self.provider.next_news() {
                self.callbacks.note(news);
            }
        }));
        let _ = self.ensure_progress_thread();
        self.progress_thread.iter().for_each(ProgressThread::ring);
        self.ring_sleepers();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netdyno_stack::vi::{Address, Config, Level, UdpOptions, ViAttributes, ViHandle};

    fn opened() -> NicId {
        open("nic0", Provider::open(Config::default()).unwrap(), WireKind::Shm).unwrap()
    }

    /// Creates a VI. The thread of `wakeup` falls asleep afterwards.
    fn sleeping_beside_a_vi(nic: &mut Nic, wakeup: &Arc<Wakeup>) -> Result<ViHandle, ReturnCode> {
        let tag = nic.provider.create_tag()?;
        let attributes = ViAttributes {
            level: Level::Delivery,
            transfer_bytes: 1,
            qos: 0,
            tag,
            can_be_written: false,
            can_be_read: false,
        };
        let vi = nic.provider.create_vi(attributes, None, None)?;
        let sleep = nic.prepare_sleep();
        nic.fall_asleep(wakeup, &sleep);
        Ok(vi)
    }

    #[test]
    fn a_nic_that_was_closed_is_not_the_one_that_is_opened_in_its_place() {
        let first = opened();
        assert_eq!(call(first, |_| Ok(())), Ok(()));
        assert_eq!(close(first), Ok(()));
        let second = opened();
        assert_eq!(call(first, |_| Ok(())), Err(ReturnCode::InvalidParameter));
        assert_eq!(close(first), Err(ReturnCode::InvalidParameter));
        assert_eq!(close(second), Ok(()));
    }

    /// The last check of a thread may make progress for another thread.
    #[test]
    fn who_falls_asleep_wakes_those_for_whom_something_was_done() {
        let id = opened();
        let [first, second] = [(); 2].map(|()| Wakeup::new().unwrap());
        let vi = call(id, |nic| sleeping_beside_a_vi(nic, &first));
        let look = |nic: &mut Nic| {
            // Destroying the VI concerns each thread that waits for it.
            nic.provider.destroy_vi(vi?)?;
            let sleep = nic.prepare_sleep();
            nic.fall_asleep(&second, &sleep);
            Ok(())
        };
        assert_eq!(call(id, look), Ok(()));
        assert!(first.is_rung() && !second.is_rung());
        assert_eq!(close(id), Ok(()));
        assert!(second.is_rung());
    }

    /// A repetition that is due by the clock happens in time, whichever threads sleep.
    #[test]
    fn who_sleeps_is_woken_for_what_became_due_meanwhile() {
        let way = WireKind::Udp(UdpOptions::new().bind(SocketAddr::from(([127, 0, 0, 1], 0))));
        let provider = Provider::open(Config::new(way)).unwrap();
        let id = open("udp", provider, way).unwrap();
        let wakeup = Wakeup::new().unwrap();
        let vi = call(id, |nic| sleeping_beside_a_vi(nic, &wakeup));
        assert!(vi.is_ok() && !wakeup.is_rung());
        let ask = |nic: &mut Nic| {
            // There is no peer, so the request is repeated soon.
            let to = Address { host: nic.provider.host(), discriminator: b"nobody".to_vec() };
            Ok(nic.provider.ask(vi?, b"us", to, true, None)?)
        };
        assert_eq!(call(id, ask), Ok(()));
        assert!(wakeup.is_rung());
        assert_eq!(close(id), Ok(()));
    }

    #[test]
    fn a_panic_fails_its_nic_and_no_other() {
        let [broken, other] = [opened(), opened()];
        let panicked = call(broken, |_| -> Result<(), ReturnCode> { panic!("on purpose") });
        assert_eq!(panicked, Err(ReturnCode::ErrorResource));
        assert_eq!(call(broken, |_| Ok(())), Err(ReturnCode::ErrorResource));
        assert_eq!(call(other, |_| Ok(())), Ok(()));
        // The progress thread was started to call the error callback. It ends when the NIC is closed.
        assert_eq!([close(broken), close(other)], [Ok(()); 2]);
    }
}
