//! Tests of the hook over a fake provider. They need neither libfabric nor files, so Miri can interpret
//! them.
//!
//! Every function of a fake table records its call and returns 0. The fake completion queue returns the
//! entries that a test has put into it.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::abi::{
    self, AtomicMsg, AtomicOps, Cntr, CntrOps, Cq, CqAttr, CqOps, Domain, DomainAttr, DomainOps, Entry, Ep,
    EpAttr, ErrEntry, Fabric, FabricOps, Fid, Info, Msg, MsgOps, Ops, RmaMsg, RmaOps, TaggedMsg, TaggedOps,
};
use crate::account::{self, Word};
use crate::between::Who;
use crate::counter::Counter;
use crate::endpoint::Endpoint;
use crate::fabric::{Known, hook_fabric};
use crate::fake_calls::{CALLS, Call, SAMPLES, Sample, Table, called};
use crate::fault::{self, InjectedFault, Side};
use crate::hook::{Hook, Shared};
use crate::page::{Carrier, DialSetting, Plan};
use crate::patch;
use crate::queue::Queue;
use core::ffi::{c_int, c_void};
use netdyno_clock::calibrate::Clock;
use netdyno_clock::ticks;
use std::any::TypeId;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::mem::zeroed;
use std::path::Path;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64};

thread_local! {
    /// Completions that the provider holds.
    static FED: RefCell<VecDeque<Entry>> = const { RefCell::new(VecDeque::new()) };
    /// The data of the last send.
    static SENT_DATA: RefCell<Option<u64>> = const { RefCell::new(None) };
}

fn calls_of(name: &str) -> usize {
    CALLS.with_borrow(|calls| calls.iter().filter(|call| **call == name).count())
}

unsafe extern "C" fn read_fed(_: *mut Cq, out: *mut c_void, count: usize) -> isize {
    called::<isize>("CqOps.read");
    FED.with_borrow_mut(|fed| {
        let got = fed.len().min(count);
        for (nth, entry) in fed.drain(..got).enumerate() {
            // SAFETY: the hook has room for `count` entries.
            unsafe { out.cast::<Entry>().add(nth).write(entry) };
        }
        if got == 0 { -abi::EAGAIN } else { got as isize }
    })
}

unsafe extern "C" fn send_data(
    _: *mut Ep,
    _: *const c_void,
    _: usize,
    _: *mut c_void,
    data: u64,
    _: u64,
    _: u64,
    _: *mut c_void,
) -> isize {
    SENT_DATA.set(Some(data));
    called("TaggedOps.senddata")
}

/// Allocations that only C would hold. They are freed with the world.
struct Kept(Vec<Box<dyn FnOnce()>>);

impl Kept {
    /// Allocates a value that only raw pointers lead to.
    fn keep<T: 'static>(&mut self, value: T) -> *mut T {
        let place = Box::into_raw(Box::new(value));
        // SAFETY: it came from a box, and the world is not used any more when this is called.
        self.0.push(Box::new(move || drop(unsafe { Box::from_raw(place) })));
        place
    }

    /// Does the same, and uses the value as the sample of its type.
    fn sample<T: 'static>(&mut self, value: T) -> *mut T {
        let place = self.keep(value);
        SAMPLES.with_borrow_mut(|samples| samples.insert(TypeId::of::<T>(), place.cast()));
        place
    }
}

/// The hooks of all tests. They live as long as the process, like the hook of a rank.
static HOOKS: Mutex<Vec<&'static Hook>> = Mutex::new(Vec::new());

fn hook(plan: Plan) -> &'static Hook {
    let words = (0..account::WORDS).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
    let shared = Shared {
        current: Box::leak(Box::new(AtomicU32::new(0))),
        furthest: Box::leak(Box::new(AtomicU64::new(0))),
    };
    // A tick of one nanosecond, which is right under Miri. Elsewhere times have another unit.
    let clock = Clock { tick_ns: 1.0, cost_ns: 1.0, resolution_ns: 1.0 };
    let who = Who { rank: Some(0), host: "here".into() };
    let hook = Hook::new(plan, &clock, shared, Vec::leak(words), who, Path::new("/nowhere")).unwrap();
    let hook: &'static Hook = Box::leak(Box::new(hook));
    HOOKS.lock().unwrap().push(hook);
    hook
}

fn plan(dials: &str) -> Plan {
    let setting = DialSetting { dials: dials.parse().unwrap(), ..DialSetting::default() };
    Plan { carrier: Carrier::Stamp, settings: vec![setting], grain_shift: 4, ..Plan::default() }
}

/// The number of sent messages at which a fault strikes. Tests set the count themselves.
const ARMED: u64 = 1000;

fn faulty(entry: fault::Entry, side: Side) -> Plan {
    Plan { fail_at: Some(InjectedFault { entry, side, sent: ARMED }), ..plan("latency=1us") }
}

/// A fabric and all objects that a program opens, each with a hook.
struct World {
    hook: &'static Hook,
    fabric: *mut Fabric,
    domain: *mut Domain,
    cq: *mut Cq,
    cntr: *mut Cntr,
    ep: *mut Ep,
    kept: Kept,
}

fn fid(kept: &mut Kept, fclass: usize) -> Fid {
    Fid { fclass, context: ptr::null_mut(), ops: kept.keep(Ops::fake()) }
}

impl World {
    /// One completion queue serves sends and receives.
    fn new(plan: Plan) -> Self {
        Self::bound(plan, abi::RECV | abi::TRANSMIT)
    }

    /// The endpoint is bound to the completion queue with these flags.
    fn bound(plan: Plan, cq_flags: u64) -> Self {
        let hook = hook(plan);
        let mut kept = Kept(Vec::new());
        let ops = kept.keep(FabricOps::fake());
        let fabric = Fabric { fid: fid(&mut kept, 0), ops, api_version: 0 };
        let fabric = kept.sample(fabric);
        let ops = kept.keep(DomainOps::fake());
        let domain = Domain { fid: fid(&mut kept, 0), ops, mr: ptr::null_mut() };
        let domain = kept.sample(domain);
        let ops = kept.keep(CqOps { read: Some(read_fed), ..CqOps::fake() });
        let cq = Cq { fid: fid(&mut kept, abi::CLASS_CQ), ops };
        let cq = kept.sample(cq);
        let ops = kept.keep(CntrOps::fake());
        let cntr = Cntr { fid: fid(&mut kept, abi::CLASS_CNTR), ops };
        let cntr = kept.sample(cntr);
        let ep = Ep {
            fid: fid(&mut kept, 0),
            ops: ptr::null_mut(),
            cm: ptr::null_mut(),
            msg: kept.keep(MsgOps::fake()),
            rma: kept.keep(RmaOps::fake()),
            tagged: kept.keep(TaggedOps { senddata: Some(send_data), ..TaggedOps::fake() }),
            atomic: kept.keep(AtomicOps::fake()),
            collective: ptr::null_mut(),
        };
        let ep = kept.sample(ep);
        kept.sample(domain);
        kept.sample(cq);
        kept.sample(cntr);
        kept.sample(ep);
        Self::sample_arguments(&mut kept);
        // SAFETY: the fabric is live and new.
        unsafe { hook_fabric(hook, fabric) };
        let world = Self { hook, fabric, domain, cq, cntr, ep, kept };
        world.open(cq_flags);
        CALLS.take();
        FED.take();
        world
    }

    fn sample_arguments(kept: &mut Kept) {
        // SAFETY: numbers and pointers may be zero.
        unsafe {
            kept.sample::<Msg>(zeroed());
            kept.sample::<TaggedMsg>(zeroed());
            kept.sample::<RmaMsg>(zeroed());
            kept.sample::<AtomicMsg>(zeroed());
            kept.sample::<ErrEntry>(zeroed());
            kept.sample(CqAttr { format: abi::CQ_FORMAT_TAGGED, ..zeroed() });
            let tx_attr = kept.keep(zeroed());
            let ep_attr = kept.keep(EpAttr { type_: abi::EP_RDM, ..zeroed() });
            let domain_attr = kept.keep(DomainAttr { cq_data_size: 8, ..zeroed() });
            kept.sample(Info { caps: abi::TAGGED, tx_attr, ep_attr, domain_attr, ..zeroed() });
        }
        // Reads write to a buffer with room for one completion.
        let buffer = kept.keep(no_entry()).cast::<c_void>();
        SAMPLES.with_borrow_mut(|samples| samples.insert(TypeId::of::<c_void>(), buffer.cast()));
    }

    /// Opens everything through the hooked tables, as a program does.
    fn open(&self, cq_flags: u64) {
        // SAFETY: all objects and arguments live as long as the world.
        unsafe {
            let (info, attr, none) = (<*mut Info>::sample(), <*mut CqAttr>::sample(), ptr::null_mut());
            let domain = (*(*self.fabric).ops).domain.unwrap();
            assert_eq!(domain(self.fabric, info, Sample::sample(), none), 0);
            let DomainOps { cq_open, cntr_open, endpoint, .. } = *(*self.domain).ops;
            assert_eq!(cq_open.unwrap()(self.domain, attr, Sample::sample(), none), 0);
            assert_eq!(cntr_open.unwrap()(self.domain, ptr::null_mut(), Sample::sample(), none), 0);
            assert_eq!(endpoint.unwrap()(self.domain, info, Sample::sample(), none), 0);
            let Ops { bind, control, .. } = *(*self.ep).fid.ops;
            assert_eq!(bind.unwrap()(self.ep.cast(), self.cq.cast(), cq_flags), 0);
            assert_eq!(bind.unwrap()(self.ep.cast(), self.cntr.cast(), abi::TRANSMIT | abi::WRITE), 0);
            assert_eq!(control.unwrap()(self.ep.cast(), abi::ENABLE, none), 0);
        }
    }

    /// Returns all functions of all tables, each with its object. The functions of an object's own table,
    /// such as `close`, are called with the object itself.
    fn functions(&self) -> Vec<(Call, *mut Fid)> {
        // SAFETY: all objects live as long as the world.
        unsafe {
            let of = |calls: Vec<Call>, fid: *mut Fid| calls.into_iter().map(move |call| (call, fid));
            let (ep, cq, cntr) = (self.ep.cast(), self.cq.cast(), self.cntr.cast());
            of(FabricOps::calls((*self.fabric).ops), self.fabric.cast())
                .chain(of(DomainOps::calls((*self.domain).ops), self.domain.cast()))
                .chain(of(CqOps::calls((*self.cq).ops), cq))
                .chain(of(CntrOps::calls((*self.cntr).ops), cntr))
                .chain(of(MsgOps::calls((*self.ep).msg), ep))
                .chain(of(TaggedOps::calls((*self.ep).tagged), ep))
                .chain(of(RmaOps::calls((*self.ep).rma), ep))
                .chain(of(AtomicOps::calls((*self.ep).atomic), ep))
                .chain(of(Ops::calls((*self.ep).fid.ops), ep))
                .chain(of(Ops::calls((*self.cq).fid.ops), cq))
                .chain(of(Ops::calls((*self.cntr).fid.ops), cntr))
                .collect()
        }
    }

    /// Lets the injected fault strike from here on.
    fn arm(&self) {
        self.hook.set(Word::Sent, ARMED);
    }

    fn read(&self, out: &mut Entry) -> isize {
        // SAFETY: the queue is live, and there is room for one entry.
        unsafe { (*(*self.cq).ops).read.unwrap()(self.cq, ptr::from_mut(out).cast(), 1) }
    }

    /// Reads until there is a completion.
    fn await_entry(&self) -> Entry {
        let mut entry = no_entry();
        loop {
            match self.read(&mut entry) {
                1 => return entry,
                answer => assert_eq!(answer, -abi::EAGAIN),
            }
        }
    }

    fn send(&self) -> isize {
        // SAFETY: the endpoint is live, and nothing follows the arguments.
        unsafe { (*(*self.ep).tagged).send.unwrap()(self.ep, ptr::null(), 8, ptr::null_mut(), 0, 5, CONTEXT) }
    }

    fn close(fid: *mut Fid) -> c_int {
        // SAFETY: the object is live.
        unsafe { (*(*fid).ops).close.unwrap()(fid) }
    }
}

impl Drop for World {
    /// Closes the objects that are still open, and frees the hook's state of the fabric and the domain.
    fn drop(&mut self) {
        // SAFETY: nothing is used any more; tables of ours lead to states that came from boxes.
        unsafe {
            for fid in [self.ep.cast::<Fid>(), self.cq.cast(), self.cntr.cast()] {
                if patch::is_ours((*fid).ops) {
                    Self::close(fid);
                }
            }
            let (fabric, domain) = ((*self.fabric).ops, (*self.domain).ops);
            drop(Box::from_raw(patch::state::<_, Known<FabricOps>>(fabric).as_ptr()));
            drop(Box::from_raw(patch::state::<_, Known<DomainOps>>(domain).as_ptr()));
            patch::free(fabric);
            patch::free(domain);
        }
        SAMPLES.take();
        self.kept.0.drain(..).for_each(|free| free());
    }
}

/// The context of the tests' sends.
const CONTEXT: *mut c_void = ptr::without_provenance_mut(0x40);

fn no_entry() -> Entry {
    Entry { op_context: ptr::null_mut(), flags: 0, len: 0, buf: ptr::null_mut(), data: 0, tag: 0 }
}

/// Returns a received message with the data of its sender.
fn arrived(data: Option<u64>) -> Entry {
    let flags = abi::TAGGED | abi::RECV | data.map_or(0, |_| abi::REMOTE_CQ_DATA);
    Entry {
        op_context: ptr::without_provenance_mut(1),
        flags,
        len: 8,
        data: data.unwrap_or(0),
        tag: 5,
        ..no_entry()
    }
}

/// Returns the kind of function that a name belongs to.
fn entry_of(name: &str) -> fault::Entry {
    use fault::Entry::{Close, Counter, Endpoint, OneSided, Open, Queue, Receive, Send, Wait};
    let (table, member) = name.split_once('.').unwrap();
    match (table, member) {
        (_, "trywait") => Wait,
        ("FabricOps" | "DomainOps", _) => Open,
        ("CqOps", _) => Queue,
        ("CntrOps", _) => Counter,
        ("MsgOps" | "TaggedOps", member) if member.starts_with("recv") => Receive,
        ("MsgOps" | "TaggedOps", _) => Send,
        ("RmaOps" | "AtomicOps", _) => OneSided,
        (_, "close") => Close,
        _ => Endpoint,
    }
}

/// Functions that the hook does not replace.
const LEFT_ALONE: &[&str] = &[
    "FabricOps.passive_ep",
    "FabricOps.eq_open",
    "FabricOps.wait_open",
    "DomainOps.av_open",
    "DomainOps.poll_open",
    "DomainOps.stx_ctx",
    "DomainOps.srx_ctx",
    "DomainOps.query_atomic",
    "DomainOps.query_collective",
    "CqOps.strerror",
    "CntrOps.readerr",
    "Ops.ops_open",
];

/// Reads: after a panic they return `FI_EAGAIN`, because completions of the provider are kept for later.
const READS: &[&str] = &["CqOps.read", "CqOps.readfrom", "CqOps.sread", "CqOps.sreadfrom"];

/// Calls function number `nth` of a new world, in which the function panics. Checks that the program does
/// not notice.
fn panic_in(nth: usize, name: &str, side: Side) {
    let is_read = READS.contains(&name);
    if is_read && side == Side::After {
        // `what_the_provider_has_handed_over_is_not_lost` covers this case.
        return;
    }
    let world = World::new(faulty(entry_of(name), side));
    let ((_, call), fid) = world.functions().swap_remove(nth);
    SAMPLES.with_borrow_mut(|samples| samples.insert(TypeId::of::<Fid>(), fid.cast()));
    world.arm();
    let left = Left::of(&world);
    let answer = call();
    let is_hooked = !is_left_alone(&world, name, fid);
    assert_eq!(world.hook.has_failed(), is_hooked, "{name} {side:?}");
    let is_held_back = is_read && is_hooked;
    assert_eq!(answer, if is_held_back { -abi::EAGAIN as i64 } else { 0 }, "{name} {side:?}");
    // The provider was called exactly once. A stamped message is sent with the function for data.
    let stamped = name.replace("send", "senddata").replace("inject", "injectdata");
    let calls = calls_of(name) + if stamped == name { 0 } else { calls_of(&stamped) };
    assert_eq!(calls, usize::from(!is_held_back), "{name} {side:?}");
    left.free(&world);
}

/// The tables and states of the objects, to free those of an object that was closed in spite of a panic.
struct Left([(*mut Ops, Vec<*mut c_void>); 3]);

impl Left {
    fn of(world: &World) -> Self {
        // SAFETY: the objects are live.
        unsafe {
            let World { ep, cq, cntr, .. } = *world;
            let tables = vec![(*ep).msg.cast(), (*ep).tagged.cast(), (*ep).rma.cast(), (*ep).atomic.cast()];
            Self([
                ((*ep).fid.ops, tables),
                ((*cq).fid.ops, vec![(*cq).ops.cast()]),
                ((*cntr).fid.ops, vec![(*cntr).ops.cast()]),
            ])
        }
    }

    /// Frees the tables and states of closed objects that the hook has not freed.
    fn free(self, world: &World) {
        let closed = [world.ep.cast::<Fid>(), world.cq.cast(), world.cntr.cast()];
        for (nth, (ops, tables)) in self.0.into_iter().enumerate() {
            // SAFETY: the objects still exist. The tables of a closed object are not used any more, and
            // lead to a state that came from a box.
            unsafe {
                if (*closed[nth]).ops == ops || !patch::is_ours(ops) {
                    continue;
                }
                match nth {
                    0 => drop(Box::from_raw(patch::state::<_, Endpoint>(ops).as_ptr())),
                    1 => drop(Box::from_raw(patch::state::<_, Queue>(ops).as_ptr())),
                    _ => drop(Box::from_raw(patch::state::<_, Counter>(ops).as_ptr())),
                }
                patch::free(ops);
                tables.into_iter().for_each(|table| patch::free(table));
            }
        }
    }
}

/// Returns whether the function stays the provider's. Of a queue's or counter's own table only `close` is
/// replaced.
fn is_left_alone(world: &World, name: &str, fid: *mut Fid) -> bool {
    let is_own = name.starts_with("Ops.") && name != "Ops.close" && fid != world.ep.cast();
    LEFT_ALONE.contains(&name) || is_own
}

#[test]
fn a_panic_in_any_function_leaves_the_providers_answer() {
    for side in [Side::Before, Side::After] {
        let functions = World::new(plan("latency=1us")).functions();
        let mut interpreted = Vec::new();
        for (nth, ((name, _), _)) in functions.iter().enumerate() {
            // Under Miri all functions would take minutes, so it interprets one of each kind and table.
            let kind = (entry_of(name), name.split('.').next());
            if !(cfg!(miri) && (interpreted.contains(&kind) || LEFT_ALONE.contains(name))) {
                interpreted.push(kind);
                panic_in(nth, name, side);
            }
        }
    }
}

/// When the hook fails over a received message, its stamp is still removed and no message is lost.
#[test]
fn what_the_provider_has_handed_over_is_not_lost() {
    let world = World::new(faulty(fault::Entry::Queue, Side::After));
    assert_eq!(world.send(), 0);
    let stamp = SENT_DATA.take().unwrap();
    assert_ne!(stamp, 0);
    world.arm();
    FED.with_borrow_mut(|fed| fed.extend([arrived(Some(stamp)), arrived(None), arrived(Some(7))]));
    let got = [0; 3].map(|_| world.await_entry());
    assert!(world.hook.has_failed());
    assert_eq!(got.map(|entry| entry.data), [0, 0, 7]);
    assert_eq!(got.map(|entry| entry.flags & abi::REMOTE_CQ_DATA != 0), [false, false, true]);
}

#[test]
fn a_message_is_held_for_its_latency_and_then_freed_with_its_queue() {
    let world = World::new(plan("latency=20us,send-overhead+1us"));
    let began = ticks::now();
    assert_eq!(world.send(), 0);
    let stamp = SENT_DATA.take().unwrap();
    FED.with_borrow_mut(|fed| fed.push_back(arrived(Some(stamp))));
    let got = world.await_entry();
    // A tick of the test's clock is a nanosecond.
    assert!(ticks::now() - began >= 21_000);
    assert_eq!((got.data, got.tag, got.flags), (0, 5, abi::TAGGED | abi::RECV));
    // A closed queue frees the messages that it holds.
    FED.with_borrow_mut(|fed| fed.push_back(arrived(Some(stamp))));
    world.read(&mut no_entry());
    for fid in [world.ep.cast::<Fid>(), world.cq.cast(), world.cntr.cast()] {
        assert_eq!(World::close(fid), 0);
        // SAFETY: the fake provider has not freed the object.
        assert!(!patch::is_ours(unsafe { (*fid).ops }));
    }
    assert_eq!(calls_of("Ops.close"), 3);
}

/// Completions are identified by their contexts, and operations are counted when they complete.
#[test]
fn ends_are_held_for_queues_and_counters() {
    for cq_flags in [abi::RECV | abi::TRANSMIT, abi::TRANSMIT] {
        let world = World::bound(plan("latency=20us"), cq_flags);
        // SAFETY: the objects are live, and nothing follows the arguments.
        let (write, count) =
            unsafe { ((*(*world.ep).rma).write.unwrap(), (*(*world.cntr).ops).read.unwrap()) };
        let began = ticks::now();
        // SAFETY: the objects are live, and nothing follows the arguments.
        assert_eq!(unsafe { write(world.ep, ptr::null(), 8, ptr::null_mut(), 0, 0, 0, CONTEXT) }, 0);
        // SAFETY: the counter is live.
        assert_eq!(unsafe { count(world.cntr) }, 0);
        let end = Entry { op_context: CONTEXT, flags: abi::RMA | abi::WRITE, ..no_entry() };
        FED.with_borrow_mut(|fed| fed.push_back(end));
        assert_eq!(world.await_entry().op_context, CONTEXT);
        assert!(ticks::now() - began >= 20_000);
    }
}

/// An added latency comes on top of the time that the provider takes.
#[test]
#[cfg_attr(miri, ignore = "polls often enough to know when nothing was there")]
fn an_added_latency_is_added_to_the_end_of_an_operation() {
    let world = World::new(plan("latency+20us"));
    let began = ticks::now();
    // SAFETY: the objects are live, and nothing follows the arguments.
    let result = unsafe {
        (*(*world.ep).rma).write.unwrap()(world.ep, ptr::null(), 8, ptr::null_mut(), 0, 0, 0, CONTEXT)
    };
    assert_eq!(result, 0);
    // Only polls that follow each other closely tell when nothing was there.
    let (mut last, mut in_a_row) = (began, 0);
    while in_a_row < 5 || last - began < 30_000 {
        let now = ticks::now();
        in_a_row = if now - last < 5_000 { in_a_row + 1 } else { 0 };
        last = now;
        assert_eq!(world.read(&mut no_entry()), -abi::EAGAIN);
    }
    let end = Entry { op_context: CONTEXT, flags: abi::RMA | abi::WRITE, ..no_entry() };
    FED.with_borrow_mut(|fed| fed.push_back(end));
    assert_eq!(world.await_entry().op_context, CONTEXT);
    assert!(ticks::now() - last >= 20_000);
}

/// Each table leads to the state of its object.
#[test]
fn tables_lead_to_their_objects() {
    let world = World::new(plan("latency=1us"));
    // SAFETY: the objects are live.
    unsafe {
        let queue = Queue::of(world.cq).unwrap();
        assert!(!queue.as_ref().holds());
        assert!(!Counter::of(world.cntr).unwrap().as_ref().holds());
        let state = patch::state::<_, Endpoint>((*world.ep).msg);
        assert_eq!(state, patch::state::<_, Endpoint>((*world.ep).fid.ops));
        assert!(ptr::eq(state.as_ref().hook, world.hook));
    }
}
