//! The NICs of this process: each a provider behind a lock, and who sleeps on it.
//!
//! The rule of the lock: whoever has it has it for one call of the provider, and neither sleeps nor
//! calls the program meanwhile. When it is given back, whoever sleeps has been woken for what was
//! done, and is woken by the wire for what comes.

use crate::attendant::Attendant;
use crate::bell::Bell;
use crate::callbacks::{Call, Callbacks};
use crate::handle::{Handled, Opaque};
use crate::settings;
use netdyno_stack::vi::{Provider, Ptag, ReturnCode, WireKind};
use std::mem;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

/// NICs that a process can have open at once: a bit for each.
const MOST: usize = u64::BITS as usize;
/// How long the end of the process waits for a lock: whoever has it has it for one call. One who was
/// interrupted, and now ends the process, does not give it back.
const LONGEST_CALL: Duration = Duration::from_secs(1);
/// What is due by so much earlier than somebody wakes is waited for by that much.
const LATE: Duration = Duration::from_millis(1);

static SLOTS: [Mutex<Slot>; MOST] = [const { Mutex::new(Slot { generation: 0, nic: None }) }; MOST];
/// Slots that somebody has.
static TAKEN: AtomicU64 = AtomicU64::new(0);
/// Slots that were the parent's when this process was forked. Their locks may be held for ever.
static FOREIGN: AtomicU64 = AtomicU64::new(0);

/// Which NIC: a slot, and how often that was used before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicId {
    pub slot: u8,
    pub generation: u16,
}

/// A place for a NIC.
struct Slot {
    generation: u16,
    nic: Option<Nic>,
}

/// An open NIC.
pub struct Nic {
    pub id: NicId,
    /// The name that it was opened by.
    device: String,
    pub provider: Provider,
    /// The way down.
    pub way: WireKind,
    /// This host's address. Programs keep the pointer for as long as they like.
    pub address: &'static [u8],
    pub callbacks: Callbacks,
    /// What stands for a protection tag that was never set.
    default_tag: DefaultTag,
    /// Whether the name service is up.
    pub has_names: bool,
    pub attendant: Option<Attendant>,
    /// Becomes readable when there is something for a provider that is prepared for sleep.
    wire: Arc<OwnedFd>,
    /// Calls of the program so far.
    calls: u64,
    /// What had changed when the sleepers were last woken for it.
    told: u64,
    /// Threads of the program that sleep until something is done.
    sleepers: Vec<Sleeper>,
    /// Something of ours went wrong that must not.
    has_failed: bool,
}

/// The tag of what has none: the first one of a NIC. Programs that leave the tag of a VI at zero, and make
/// one for their memory, have run on hardware whose first tag is zero.
#[derive(Clone, Copy, Default)]
struct DefaultTag {
    tag: Option<Ptag>,
    /// The program has it from `VipCreatePtag`.
    is_given: bool,
}

/// How a thread is to sleep: on the wire, for so long at most.
pub struct Sleep {
    pub wire: Arc<OwnedFd>,
    pub most: Duration,
}

impl Sleep {
    /// When it ends at the latest, if it begins now.
    pub fn until(&self) -> Option<Instant> {
        Instant::now().checked_add(self.most)
    }
}

/// A thread that sleeps on the wire.
struct Sleeper {
    bell: Arc<Bell>,
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

/// Gives a provider a place.
///
/// # Errors
/// There is none, or the system refuses what a NIC needs.
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

/// Returns the address of a device that this process has opened, which all its NICs of that name share.
pub fn shared_address(device: &str) -> Option<SocketAddr> {
    let taken = TAKEN.load(Ordering::Acquire);
    let is_open = |at: u8| taken & bit(at) != 0 && !is_foreign(at);
    (0..).zip(&SLOTS).filter(|(at, _)| is_open(*at)).find_map(|(_, slot)| {
        let slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let nic = slot.nic.as_ref().filter(|nic| nic.device == device)?;
        nic.provider.shared_address()
    })
}

/// Closes a NIC. Whoever sleeps on it wakes and finds none; no handler is called any more when this
/// returns, unless it is a handler that closes.
///
/// # Errors
/// There is no such NIC.
pub fn close(id: NicId) -> Result<(), ReturnCode> {
    let nic = lock(id)?.nic.take();
    if let Some(mut nic) = nic {
        nic.ring_sleepers();
        nic.attendant.take().into_iter().for_each(Attendant::end);
        TAKEN.fetch_and(!bit(id.slot), Ordering::AcqRel);
    }
    Ok(())
}

/// This process was forked: what was open is its parent's, and is not touched.
pub fn disown() {
    FOREIGN.store(TAKEN.load(Ordering::Acquire), Ordering::Relaxed);
}

/// The process ends: peers are told, and get what was sent to them. Whoever still calls waits for the
/// end, and so no lock is given back.
pub fn end_all() {
    for (at, slot) in (0..).zip(&SLOTS) {
        let is_ours = TAKEN.load(Ordering::Acquire) & bit(at) != 0 && !is_foreign(at);
        if is_ours && let Some(mut slot) = lock_in_time(slot) {
            let nic = slot.nic.take();
            // What goes wrong now is nobody's business any more.
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

/// A call of the program's.
///
/// # Errors
/// There is no such NIC, it has failed, or what the call says.
#[inline]
pub fn call<T>(id: NicId, work: impl FnOnce(&mut Nic) -> Result<T, ReturnCode>) -> Result<T, ReturnCode> {
    visit(id, |nic| {
        nic.calls = nic.calls.wrapping_add(1);
        nic.attendant.iter_mut().for_each(Attendant::look_up);
        work(nic)
    })
}

/// A call of ours that is not to count as one of the program's.
///
/// # Errors
/// There is no such NIC, it has failed, or what the call says.
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

/// The next call of a handler that is to be made, also of a NIC that has failed.
pub fn next_callback(id: NicId) -> Option<Call> {
    lock(id).ok()?.nic.as_mut()?.callbacks.next(id)
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
            attendant: None,
            wire: Arc::new(wire),
            calls: 0,
            told: 0,
            sleepers: Vec::new(),
            has_failed: false,
        }
    }

    /// Calls of the program so far.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Whether threads of the program sleep on it, and so look when the wire wakes them.
    pub fn has_sleepers(&self) -> bool {
        !self.sleepers.is_empty()
    }

    /// A tag for the program.
    ///
    /// # Errors
    /// There are too many.
    pub fn create_tag(&mut self) -> Result<Ptag, ReturnCode> {
        if self.default_tag.is_given {
            return Ok(self.provider.create_tag()?);
        }
        let tag = self.default_tag.tag.map_or_else(|| self.provider.create_tag(), Ok)?;
        self.default_tag = DefaultTag { tag: Some(tag), is_given: true };
        Ok(tag)
    }

    /// Does away with a tag.
    ///
    /// # Errors
    /// There is none, or somebody has it.
    pub fn destroy_tag(&mut self, tag: Opaque) -> Result<(), ReturnCode> {
        let tag = Ptag::take_of(self.id, tag)?;
        self.provider.destroy_tag(tag)?;
        if self.default_tag.tag == Some(tag) {
            self.default_tag = DefaultTag::default();
        }
        Ok(())
    }

    /// The tag that a program means, which may have left it at NULL.
    ///
    /// # Errors
    /// There is no such tag, or NULL is none.
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

    /// Has the attendant come, if it is not there yet.
    ///
    /// # Errors
    /// The system does not give what it needs.
    pub fn ensure_attendant(&mut self) -> Result<(), ReturnCode> {
        if self.attendant.is_none() {
            self.attendant = Some(Attendant::start(self.id).map_err(|_| ReturnCode::ErrorResource)?);
        }
        Ok(())
    }

    /// How to sleep until there is something on the wire.
    pub fn prepare_sleep(&mut self) -> Sleep {
        Sleep { wire: Arc::clone(&self.wire), most: self.provider.prepare_sleep() }
    }

    /// A thread of the program is about to sleep so, having looked.
    pub fn fall_asleep(&mut self, bell: &Arc<Bell>, sleep: &Sleep) {
        // What its look has done for others who sleep they are still to be told.
        self.tell_sleepers();
        self.sleepers.push(Sleeper { bell: Arc::clone(bell), until: sleep.until() });
    }

    /// It has woken. The attendant may have left the wire to it, and the program may not call again.
    pub fn wake_up(&mut self, bell: &Arc<Bell>) {
        self.sleepers.retain(|other| !Arc::ptr_eq(&other.bell, bell));
        if self.sleepers.is_empty() {
            self.attendant.iter_mut().for_each(Attendant::look_up);
        }
    }

    /// Tells others what a call has done for them, and sees to it that the wire wakes those who sleep.
    #[inline]
    fn share(&mut self) {
        let is_watching = self.has_sleepers() || self.attendant.as_ref().is_some_and(Attendant::is_watching);
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
            self.attendant.iter().for_each(Attendant::ring);
        }
        if self.has_sleepers() {
            self.tell_sleepers();
        }
    }

    /// What a call has left may be due before anybody who sleeps would look: then one of them looks now, and
    /// sleeps for as long as is right.
    fn wake_in_time(&mut self, left: Duration) {
        // Over shared memory nothing is due by the clock, mostly, and reading that takes longer than a look.
        if left == Duration::MAX {
            return;
        }
        let Some(due) = Instant::now().checked_add(left) else { return };
        let is_in_time = |until: Option<Instant>| until.is_some_and(|until| until <= due + LATE);
        let watching = self.attendant.iter_mut().filter_map(Attendant::watching);
        let mut all = watching.chain(self.sleepers.iter_mut().map(|Sleeper { bell, until }| (&*bell, until)));
        let Some((bell, until)) = all.next() else { return };
        if !is_in_time(*until) && !all.any(|(_, until)| is_in_time(*until)) {
            *until = Some(due);
            bell.ring();
        }
    }

    fn tell_sleepers(&mut self) {
        let changes = self.provider.changes();
        if mem::replace(&mut self.told, changes) != changes {
            self.ring_sleepers();
        }
    }

    fn ring_sleepers(&self) {
        self.sleepers.iter().for_each(|sleeper| sleeper.bell.ring());
    }

    /// It can not go on: every VI breaks, and the error callback is told.
    fn fail(&mut self) {
        self.has_failed = true;
        // What went wrong once may do so again.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            self.provider.fail();
            while let Some(news) = self.provider.next_news() {
                self.callbacks.note(news);
            }
        }));
        let _ = self.ensure_attendant();
        self.attendant.iter().for_each(Attendant::ring);
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

    /// A new VI, and somebody who has fallen asleep since.
    fn sleeping_beside_a_vi(nic: &mut Nic, bell: &Arc<Bell>) -> Result<ViHandle, ReturnCode> {
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
        nic.fall_asleep(bell, &sleep);
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

    /// What a thread finds in its last look may be another one's.
    #[test]
    fn who_falls_asleep_wakes_those_for_whom_something_was_done() {
        let id = opened();
        let [first, second] = [(); 2].map(|()| Bell::new().unwrap());
        let vi = call(id, |nic| sleeping_beside_a_vi(nic, &first));
        let look = |nic: &mut Nic| {
            // Whoever waits for something of this VI is to know.
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

    /// What is said again by the clock is so in time, whoever sleeps.
    #[test]
    fn who_sleeps_is_woken_for_what_became_due_meanwhile() {
        let way =
            WireKind::Udp(UdpOptions { bind: Some(([127, 0, 0, 1], 0).into()), ..UdpOptions::default() });
        let provider = Provider::open(Config { wire: way, ..Config::default() }).unwrap();
        let id = open("udp", provider, way).unwrap();
        let bell = Bell::new().unwrap();
        let vi = call(id, |nic| sleeping_beside_a_vi(nic, &bell));
        assert!(vi.is_ok() && !bell.is_rung());
        let ask = |nic: &mut Nic| {
            // Nobody is there, and so it is asked again soon.
            let to = Address { host: nic.provider.host(), discriminator: b"nobody".to_vec() };
            Ok(nic.provider.ask(vi?, b"us", to, true, None)?)
        };
        assert_eq!(call(id, ask), Ok(()));
        assert!(bell.is_rung());
        assert_eq!(close(id), Ok(()));
    }

    #[test]
    fn a_panic_fails_its_nic_and_no_other() {
        let [broken, other] = [opened(), opened()];
        let panicked = call(broken, |_| -> Result<(), ReturnCode> { panic!("on purpose") });
        assert_eq!(panicked, Err(ReturnCode::ErrorResource));
        assert_eq!(call(broken, |_| Ok(())), Err(ReturnCode::ErrorResource));
        assert_eq!(call(other, |_| Ok(())), Ok(()));
        // The attendant has come to tell the error callback, and goes when the NIC is closed.
        assert_eq!([close(broken), close(other)], [Ok(()); 2]);
    }
}
