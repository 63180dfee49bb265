//! The objects that programs hold: bundles and endpoints. Their functions are in `translations`, `exchange` and `polling`.

pub mod token;

use crate::calling::Function;
use crate::code::Code;
use crate::lobby::{self, Inbox, Lobby};
use crate::lock::{Held, Lock, NONE, held, this_thread};
use crate::message::Words;
use crate::name::Name;
use crate::refusal::{Refusal, failed, refuse};
use crate::statistics::Counts;
use netdyno_stack::am::{self, PeerId};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use token::Place;

/// `AM_NONE`: an endpoint with this tag takes no message.
pub const TAG_NONE: u64 = 0;
/// `AM_ALL`: an endpoint with this tag takes all messages.
pub const TAG_ALL: u64 = 1;

/// Says that a pointer of the program is a bundle.
const BUNDLE_MAGIC: u64 = 0x6e64_616d_2d65_6230;
/// Says that a pointer of the program is an endpoint.
const MAGIC: u64 = 0x6e64_616d_2d65_7030;
/// Handlers of an endpoint: `AM_MaxNumHandlers()`.
pub const HANDLERS: usize = 256;
/// Translations of a new endpoint, and the fewest of any.
pub const FEWEST_TRANSLATIONS: usize = 256;
/// The most translations of an endpoint: `AM_MaxNumTranslations()`.
pub const MOST_TRANSLATIONS: usize = 1 << 16;

/// The event that wakes a thread that waits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mask {
    /// `AM_NOEVENTS`.
    NoEvents,
    /// `AM_NOTEMPTY`.
    NotEmpty,
}

/// A bundle, `eb_t`. The memory of a bundle is never given back, so that a handle of a freed one can be checked.
pub struct Bundle {
    magic: u64,
    /// The lock of `AM_PAR`; `None` of `AM_SEQ`.
    lock: Option<Lock>,
    pub mask: Cell<Mask>,
    pub endpoints: RefCell<Vec<&'static Endpoint>>,
    pub has_ended: AtomicBool,
    /// The token of the handler that runs.
    pub place: Place,
    /// What endpoints had handled that have left, less what others had handled that have come, so that the sum with
    /// the endpoints' own counts changes with messages alone.
    pub delivered_elsewhere: Cell<u64>,
    /// The thread that has used the bundle of AM_SEQ last; no thread of AM_PAR.
    user: AtomicU64,
}

/// Held by a thread that becomes the user of a bundle of AM_SEQ, and in [`for_each_unshared`].
static USERS: Mutex<()> = Mutex::new(());

/// Calls `work` with each bundle that no other thread uses now: this thread has used the bundle of AM_SEQ last, or the
/// lock of the bundle of AM_PAR is free or its own. `work` calls no function of the program.
pub fn for_each_unshared(work: impl Fn(&'static Bundle)) {
    let _users = held(&USERS);
    let bundles = held(&BUNDLES).clone();
    for bundle in bundles {
        let held = bundle.lock.as_ref().map(Lock::try_take);
        let is_unshared = match &held {
            Some(held) => held.is_some(),
            None => bundle.user.load(Ordering::Relaxed) == this_thread(),
        };
        if is_unshared {
            work(bundle);
        }
    }
}

/// Closes the endpoints of the stack of all endpoints that no other thread uses now, because the process ends. Datagrams
/// that are not acknowledged are sent again for a while. An endpoint whose handler runs stays open.
pub fn close_all() {
    for_each_unshared(|bundle| {
        for endpoint in bundle.endpoints.borrow().iter() {
            endpoint.close();
        }
    });
}

// SAFETY: a bundle of AM_SEQ is used by one thread at a time, as the interface demands of programs. The functions of a
// bundle of AM_PAR take its lock first.
unsafe impl Sync for Bundle {}

/// All bundles that live.
pub static BUNDLES: Mutex<Vec<&'static Bundle>> = Mutex::new(Vec::new());

impl Bundle {
    /// Makes a bundle; `is_concurrent` says that several threads use it at once.
    pub fn allocate(is_concurrent: bool) -> &'static Self {
        let bundle: &'static Self = Box::leak(Box::new(Self {
            magic: BUNDLE_MAGIC,
            lock: is_concurrent.then(Lock::default),
            mask: Cell::new(Mask::NoEvents),
            endpoints: RefCell::default(),
            has_ended: AtomicBool::new(false),
            place: Place::default(),
            delivered_elsewhere: Cell::new(0),
            user: AtomicU64::new(if is_concurrent { NONE } else { this_thread() }),
        }));
        let mut bundles = held(&BUNDLES);
        if !bundles.is_empty() {
            token::count_handlers();
        }
        bundles.push(bundle);
        bundle
    }

    /// Returns the bundle that the program names.
    ///
    /// # Errors
    /// Returns `BadArg` if there is none.
    ///
    /// # Safety
    /// The pointer is NULL or one that [`Bundle::allocate`] has given.
    pub unsafe fn of<'a>(pointer: *const Self) -> Result<&'a Self, Refusal> {
        // SAFETY: the caller says so. The memory of bundles stays.
        let bundle = unsafe { pointer.as_ref() }.ok_or_else(|| refuse(Code::BadArg, "the bundle is NULL"))?;
        let lives = bundle.magic == BUNDLE_MAGIC && !bundle.has_ended.load(Ordering::Relaxed);
        if lives { Ok(bundle) } else { Err(refuse(Code::BadArg, "the bundle was freed")) }
    }

    /// Reports whether a handler of one of its endpoints runs.
    #[inline]
    pub fn is_in_handler(&self) -> bool {
        self.place.is_taken()
    }

    /// Reports whether this thread runs a handler, of this bundle or of another one. It may not send requests, poll or wait
    /// then.
    #[inline]
    pub fn is_barred(&self) -> bool {
        self.is_in_handler() || token::runs_a_handler()
    }

    /// Reports whether the bundle is of AM_SEQ and this thread has used it last.
    #[inline]
    pub fn is_used_by_this_thread(&self) -> bool {
        self.user.load(Ordering::Relaxed) == this_thread()
    }

    /// Reports whether this thread uses the bundle now: it holds the lock, or has used the bundle of AM_SEQ last.
    pub fn is_held_by_this_thread(&self) -> bool {
        self.lock.as_ref().map_or_else(|| self.is_used_by_this_thread(), Lock::is_held_by_this_thread)
    }

    /// Takes the lock, if several threads use the bundle; else notes that this thread uses it.
    ///
    /// # Errors
    /// Returns `Resource` if this thread holds the lock of another bundle.
    #[inline]
    pub fn hold(&self) -> Result<Option<Held<'_>>, Refusal> {
        // Only this thread writes its own number here.
        if self.is_used_by_this_thread() {
            return Ok(None);
        }
        self.check_lock()?;
        Ok(self.take_lock())
    }

    /// Checks that this thread may take the lock. A handler may not take that of another bundle: a handler of the other one
    /// may wait for that of this one.
    #[cold]
    fn check_lock(&self) -> Result<(), Refusal> {
        if self.lock.as_ref().is_none_or(Lock::is_safe_to_take) {
            Ok(())
        } else {
            Err(refuse(Code::Resource, "a handler may not use another bundle of AM_PAR"))
        }
    }

    #[cold]
    fn take_lock(&self) -> Option<Held<'_>> {
        match &self.lock {
            Some(lock) => Some(lock.take()),
            None => {
                self.change_user();
                None
            }
        }
    }

    /// Takes the lock as [`Bundle::take_lock`] does, unless another thread holds it.
    pub fn try_take_lock(&self) -> Option<Option<Held<'_>>> {
        match &self.lock {
            Some(lock) => lock.try_take().map(Some),
            None => {
                self.change_user();
                Some(None)
            }
        }
    }

    fn change_user(&self) {
        // The last user may be in `for_each_unshared`.
        let _users = held(&USERS);
        self.user.store(this_thread(), Ordering::Relaxed);
    }

    /// Adds an endpoint.
    pub fn insert(&'static self, endpoint: &'static Endpoint) {
        self.endpoints.borrow_mut().push(endpoint);
        self.delivered_elsewhere.set(self.delivered_elsewhere.get().wrapping_sub(endpoint.delivered.get()));
        endpoint.bundle.store(ptr::from_ref(self).cast_mut(), Ordering::Relaxed);
    }

    /// Removes an endpoint.
    pub fn remove(&self, endpoint: &Endpoint) {
        self.endpoints.borrow_mut().retain(|other| !ptr::eq(*other, endpoint));
        self.delivered_elsewhere.set(self.delivered_elsewhere.get().wrapping_add(endpoint.delivered.get()));
    }
}

/// An entry of the translation table.
#[derive(Clone, Copy)]
pub struct Translation {
    pub name: Name,
    pub tag: u64,
    /// The connection, once there is one.
    pub peer: Option<PeerId>,
}

/// The memory that long messages write to.
#[derive(Clone, Copy)]
pub struct Segment {
    pub address: *mut u8,
    pub len: usize,
}

/// An endpoint, `ep_t`. The memory of an endpoint is never given back, so that a handle of a freed one can be checked.
pub struct Endpoint {
    magic: u64,
    pub has_ended: AtomicBool,
    bundle: AtomicPtr<Bundle>,
    pub name: Name,
    pub lobby: Arc<Lobby>,
    pub inbox: Arc<Inbox>,
    /// Ranks on this host, which share its processors.
    pub here: usize,
    pub tag: Cell<u64>,
    pub segment: Cell<Segment>,
    pub handlers: [Cell<Option<Function>>; HANDLERS],
    pub translations: RefCell<Vec<Option<Translation>>>,
    pub counts: Counts,
    /// The messages that have been given to handlers.
    pub delivered: Cell<u64>,
    /// Called before and after each handler, if there are any.
    pub callbacks: Cell<Option<[Option<Function>; 2]>>,
    pub peers: RefCell<Vec<Peer>>,
    /// Answers in pieces that all peers owe.
    pub promised: Cell<i64>,
    /// Messages that found no room yet.
    pub outgoing: RefCell<VecDeque<Outgoing>>,
    /// The endpoint of the stack. `None` before `AM_SetExpectedResources`, and once freed.
    pub link: RefCell<Option<am::Endpoint<State>>>,
    /// Requests since the last poll.
    pub unpolled: Cell<u32>,
    /// Polls without a message.
    pub vain: Cell<u32>,
}

// SAFETY: an endpoint is used by one thread at a time, as of its bundle.
unsafe impl Sync for Endpoint {}

impl Endpoint {
    /// Makes an endpoint in a bundle. It shares the processors of its host with `here` ranks.
    ///
    /// # Errors
    /// Returns `Resource` if the process cannot listen for connections.
    pub fn allocate(bundle: &'static Bundle, here: usize) -> Result<&'static Self, Refusal> {
        let lobby = lobby::open().map_err(failed)?;
        let (inbox, name) = lobby.add().map_err(failed)?;
        let endpoint: &'static Self = Box::leak(Box::new(Self {
            magic: MAGIC,
            has_ended: AtomicBool::new(false),
            bundle: AtomicPtr::new(ptr::from_ref(bundle).cast_mut()),
            name,
            lobby,
            inbox,
            here,
            tag: Cell::new(TAG_NONE),
            segment: Cell::new(Segment { address: ptr::null_mut(), len: 0 }),
            handlers: [const { Cell::new(None) }; HANDLERS],
            translations: RefCell::new(vec![None; FEWEST_TRANSLATIONS]),
            counts: Counts::default(),
            delivered: Cell::new(0),
            callbacks: Cell::new(None),
            peers: RefCell::default(),
            promised: Cell::new(0),
            outgoing: RefCell::default(),
            link: RefCell::new(None),
            unpolled: Cell::new(0),
            vain: Cell::new(0),
        }));
        bundle.insert(endpoint);
        Ok(endpoint)
    }

    /// Returns the endpoint that the program names.
    ///
    /// # Errors
    /// Returns `BadArg` if there is none.
    ///
    /// # Safety
    /// The pointer is NULL or one that [`Endpoint::allocate`] has given.
    pub unsafe fn of(pointer: *const Self) -> Result<&'static Self, Refusal> {
        // SAFETY: the caller says so.
        unsafe { Self::find(pointer) }.ok_or_else(|| {
            refuse(
                Code::BadArg,
                if pointer.is_null() { "the endpoint is NULL" } else { "the endpoint was freed" },
            )
        })
    }

    /// Returns the endpoint that the program names, if there is one.
    ///
    /// # Safety
    /// As of [`Endpoint::of`].
    #[inline]
    pub unsafe fn find(pointer: *const Self) -> Option<&'static Self> {
        // SAFETY: the caller says so. The memory of endpoints stays.
        let endpoint = unsafe { pointer.as_ref() }?;
        (endpoint.magic == MAGIC && !endpoint.has_ended.load(Ordering::Relaxed)).then_some(endpoint)
    }

    /// Returns the bundle of the endpoint.
    pub fn bundle(&self) -> &'static Bundle {
        // SAFETY: it is the address of a bundle, whose memory stays.
        unsafe { &*self.bundle.load(Ordering::Relaxed) }
    }

    /// Reports whether the endpoint lives and is in the bundle.
    pub fn is_in(&self, bundle: &Bundle) -> bool {
        ptr::eq(self.bundle(), bundle) && !self.has_ended.load(Ordering::Relaxed)
    }

    /// Holds the bundle of the endpoint.
    ///
    /// # Errors
    /// As of [`Bundle::hold`].
    #[inline]
    pub fn hold(&self) -> Result<Option<Held<'static>>, Refusal> {
        loop {
            let bundle = self.bundle();
            let held = bundle.hold()?;
            // Another thread may have moved the endpoint meanwhile.
            if ptr::eq(bundle, self.bundle()) {
                return Ok(held);
            }
        }
    }

    /// Moves the endpoint into another bundle.
    ///
    /// # Errors
    /// Returns `Resource` if it is not in `from`, or if a handler of another bundle moves it, and `InUse` if one of its
    /// handlers runs.
    pub fn change_bundle(&'static self, from: &'static Bundle, to: &'static Bundle) -> Result<(), Refusal> {
        from.check_lock()?;
        // A handler of `from` may not take the lock of `to`. `InUse` is the reason if it is a handler of this endpoint.
        to.check_lock().or_else(|refusal| self.check_movable(from).and(Err(refusal)))?;
        // No wait for one bundle while the other is held: a request that connects holds its own bundle, and waits for an
        // answer that may have to come from the other one. Nor do two moves in opposite directions wait for each other.
        let _held = loop {
            let held = from.take_lock();
            if let Some(other) = to.try_take_lock() {
                break (held, other);
            }
            drop(held);
            std::thread::yield_now();
        };
        // Another thread may have freed one of them while this one waited for the locks.
        if [&self.has_ended, &from.has_ended, &to.has_ended].iter().any(|ended| ended.load(Ordering::Relaxed))
        {
            return Err(refuse(Code::BadArg, "the endpoint or a bundle was freed"));
        }
        self.check_movable(from)?;
        from.remove(self);
        to.insert(self);
        Ok(())
    }

    /// Checks that the endpoint may be moved out of a bundle, which this thread holds.
    ///
    /// # Errors
    /// Returns `Resource` if it is not in the bundle, and `InUse` if one of its handlers runs.
    fn check_movable(&self, from: &Bundle) -> Result<(), Refusal> {
        // First, because another thread may use an endpoint of another bundle.
        if !ptr::eq(self.bundle(), from) {
            return Err(refuse(Code::Resource, "the endpoint is not in that bundle"));
        }
        self.check_unused()
    }

    /// Closes the endpoint of the stack. A handler keeps it.
    pub fn close(&self) {
        if let Ok(mut link) = self.link.try_borrow_mut() {
            *link = None;
        }
    }

    /// Reports whether the endpoint is open for messages.
    pub fn is_open(&self) -> bool {
        // While a handler runs, it is.
        self.link.try_borrow().map_or(true, |link| link.is_some())
    }

    /// Returns the handler at an index. Index 0 has that of returned messages.
    #[inline]
    pub fn handler(&self, index: u8) -> Option<Function> {
        self.handlers[usize::from(index)].get()
    }

    /// Returns the place of a long message in the segment.
    pub fn place(&self, offset: u64) -> *mut c_void {
        // The offset was checked.
        self.segment.get().address.wrapping_add(offset as usize).cast()
    }
}

/// The state that the stack gives its handlers.
pub struct State(pub &'static Endpoint);

/// A connected endpoint, by the index of its [`PeerId`].
pub struct Peer {
    pub name: Name,
    pub id: PeerId,
    /// The index of its translation.
    pub translation: Option<usize>,
    /// The tag of its translation.
    pub tag: Option<u64>,
    pub is_lost: bool,
    /// Answers in pieces that it owes; fewer than none if they came before their promises.
    pub promised: i64,
    /// The pieces of a request, and of a reply, that have arrived.
    pub pieces: [Buffer; 2],
}

impl Peer {
    pub fn new(name: Name, id: PeerId, translation: Option<usize>, tag: Option<u64>) -> Self {
        Self { name, id, translation, tag, is_lost: false, promised: 0, pieces: Default::default() }
    }
}

/// Bytes that a handler may write to, aligned as it expects.
#[derive(Default)]
pub struct Buffer {
    words: Vec<u64>,
    pub len: usize,
}

impl Buffer {
    /// Appends bytes.
    pub fn append(&mut self, bytes: &[u8]) {
        let at = self.len;
        self.len += bytes.len();
        self.words.resize(self.words.len().max(self.len.div_ceil(8)), 0);
        // SAFETY: the words have room for that many bytes, and `bytes` is not part of them.
        unsafe { self.pointer().add(at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    /// Returns the address of the bytes.
    pub fn pointer(&mut self) -> *mut u8 {
        self.words.as_mut_ptr().cast()
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the words hold at least that many bytes, and all were written.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.len) }
    }
}

/// A message that found no room yet, or that a handler sends in pieces.
pub struct Outgoing {
    pub peer: PeerId,
    /// Indices of the handlers of its pieces.
    pub piece: u8,
    pub last: u8,
    pub words: Words,
    pub payload: Vec<u8>,
    /// Bytes that were sent.
    pub sent: usize,
}
