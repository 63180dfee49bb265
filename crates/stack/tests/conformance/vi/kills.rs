//! Peers killed at random moments. The test has a process of its own, so that it can count what
//! the process holds before and after. `NETDYNO_KILLS` sets the number of kills.

use super::end::{End, spell, spelled, work};
use crate::common::process::{Child, argument, held, in_own_process, role};
use crate::common::{Deadline, TIMEOUT, Transport, seed};
use fastrand::Rng;
use netdyno_stack::vi::*;
use rustix::process::{Pid, Signal, kill_process};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};
use std::time::{Duration, Instant};

/// Over UDP the end of a peer is noticed after a silence of this length.
const PEER_TIMEOUT: Duration = Duration::from_millis(1500);
/// The survivor is told within this time, even on a busy machine.
const BOUND: Duration = PEER_TIMEOUT.saturating_add(Duration::from_secs(5));
const LEN: usize = 100_000;
const AT_ONCE: usize = 8;

/// The work that either side repeats until the VI breaks.
#[derive(Clone, Copy, Debug)]
enum Doing {
    /// Posts receives and waits for messages, which may never come.
    Receives,
    Sends,
    Writes,
    Reads,
}

const ALL: [Doing; 4] = [Doing::Receives, Doing::Sends, Doing::Writes, Doing::Reads];

/// Keeps the queues full until the VI breaks.
fn keep_doing(end: &mut End, vi: ViHandle, doing: Doing, remote: Remote, rng: &mut Rng) {
    let deadline = Deadline::after(TIMEOUT);
    while end.failures.is_empty() {
        deadline.check("the end of a killed peer");
        // The number is limited, because a broken VI completes every posted descriptor at once.
        for _ in 0..AT_ONCE {
            if end.provider.done(vi, Side::Receive).unwrap().is_some() {
                end.receive_into(vi, 0, LEN);
            }
            if end.provider.done(vi, Side::Send).unwrap().is_some() {
                do_one(end, vi, doing, remote, rng);
            }
        }
        if !end.progress() {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

fn do_one(end: &mut End, vi: ViHandle, doing: Doing, remote: Remote, rng: &mut Rng) {
    let len = [0, 64, 1000, LEN][rng.usize(..4)];
    let operation = match doing {
        Doing::Receives => return,
        Doing::Sends => Operation::Send,
        Doing::Writes => Operation::Write(remote),
        Doing::Reads => Operation::Read(remote),
    };
    let segment = end.segment(LEN, len);
    end.post(vi, Side::Send, &work(operation, &[segment]));
}

/// Waits for the connection, and then posts the first work. `remote` is the memory of the other side.
fn begin(end: &mut End, vi: ViHandle, doing: Doing, remote: Remote, rng: &mut Rng) {
    let deadline = Deadline::after(TIMEOUT);
    while end.provider.answer(vi).unwrap().is_none() {
        deadline.check("a connection");
        end.sleep(Duration::from_millis(10));
    }
    (0..AT_ONCE).for_each(|_| do_one(end, vi, doing, remote, rng));
}

fn address(text: &str) -> (Address, Remote) {
    let (host, place) = text.split_once(' ').unwrap();
    let (at, handle) = place.split_once(' ').unwrap();
    let remote = Remote { address: at.parse().unwrap(), handle: handle.parse().unwrap() };
    (spelled(host), remote)
}

fn card(end: &End) -> String {
    let Remote { address, handle } = end.remote(0);
    format!("{} {address} {handle}", spell(&end.address("killed")))
}

/// Returns a VI that requests a connection to its peer. It has more receives than messages can be in
/// flight.
fn asking(end: &mut End, level: Level, to: Address) -> ViHandle {
    let vi = end.vi(level);
    for _ in 0..500 {
        end.receive_into(vi, 0, LEN);
    }
    end.ask(vi, "killed", to, true, TIMEOUT);
    vi
}

fn open(transport: &Transport) -> End {
    match transport.vi_wire() {
        WireKind::Shm => End::open(transport),
        WireKind::Udp(options) => End::open_on(WireKind::Udp(options.peer_timeout(PEER_TIMEOUT))),
    }
}

pub fn child_process(transport: &Transport) {
    let Some((role, parent)) = role() else { return };
    let mut end = open(transport);
    let mut rng = Rng::with_seed(argument(&role, 3));
    parent.say(&card(&end));
    let (to, remote) = address(&parent.hear());
    let vi = asking(&mut end, Level::ALL[argument::<usize>(&role, 1)], to);
    let doing = ALL[argument::<usize>(&role, 2)];
    begin(&mut end, vi, doing, remote, &mut rng);
    parent.say("connected");
    keep_doing(&mut end, vi, doing, remote, &mut rng);
    panic!("killed before this: {:?}", end.failures);
}

/// Kills a peer once, and checks what the survivor is told.
fn kill_one(transport: &Transport, nth: usize, rng: &mut Rng) {
    let (level, ours, theirs) = (nth % 3, ALL[nth / 3 % 4], rng.usize(..4));
    let delay = Duration::from_micros(rng.u64(..30_000));
    println!("{:?}: {ours:?} against {:?}, killed after {delay:?}", Level::ALL[level], ALL[theirs]);
    let mut child =
        Child::start(&transport.path_of(module_path!()), &format!("peer {level} {theirs} {}", rng.u64(..)));
    let mut end = open(transport);
    let (to, remote) = address(&child.hear());
    child.tell(&card(&end));
    let vi = asking(&mut end, Level::ALL[level], to);
    begin(&mut end, vi, ours, remote, rng);
    assert_eq!(child.hear(), "connected");
    let pid = Pid::from_raw(child.pid() as i32).unwrap();
    let (killed, told) = std::thread::scope(|scope| {
        let killer = scope.spawn(move || {
            std::thread::sleep(delay);
            let killed = Instant::now();
            kill_process(pid, Signal::KILL).unwrap();
            killed
        });
        keep_doing(&mut end, vi, ours, remote, rng);
        let told = Instant::now();
        (killer.join().unwrap(), told)
    });
    assert_eq!(end.failures.len(), 1, "{:?}", end.failures);
    let told_after = told.checked_duration_since(killed);
    assert!(told_after.is_some_and(|after| after < BOUND), "{told_after:?} after: {:?}", end.failures);
    assert_eq!((end.failures[0].vi, end.state(vi)), (Some(vi), State::Error));
    // All posted descriptors have completed, and a new one completes at once.
    end.receive_into(vi, 0, LEN);
    let mut last = None;
    while let Some(completed) = end.done(vi, Side::Receive) {
        last = Some(completed.completion.status);
    }
    assert!(last.unwrap().has(Status::FLUSHED));
    while end.done(vi, Side::Send).is_some() {}
    let query = end.provider.query_vi(vi).unwrap();
    assert!(query.is_send_empty && query.is_receive_empty);
    end.provider.disconnect(vi).unwrap();
    end.provider.destroy_vi(vi).unwrap();
    child.kill();
}

/// Counts the allocated bytes.
struct Counting(AtomicIsize);

#[global_allocator]
static HEAP: Counting = Counting(AtomicIsize::new(0));

// SAFETY: the system's allocator does all the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.0.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller keeps to the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        self.0.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller keeps to the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

/// More bytes than the test harness keeps of the output for each kill.
const NOISE_BYTES: isize = 1024;

pub fn a_killed_peer_breaks_the_vi_and_leaves_nothing_behind(transport: &Transport) {
    if !in_own_process(transport, a_killed_peer_breaks_the_vi_and_leaves_nothing_behind) {
        return;
    }
    let kills: usize = std::env::var("NETDYNO_KILLS").map_or(12, |text| text.parse().unwrap());
    let mut rng = Rng::with_seed(seed());
    kill_one(transport, 4, &mut rng);
    let (before, heap) = (held(), HEAP.0.load(Ordering::Relaxed));
    (0..kills).for_each(|nth| kill_one(transport, nth, &mut rng));
    assert_eq!(held(), before, "descriptors and mappings");
    let more = HEAP.0.load(Ordering::Relaxed) - heap;
    assert!(more < NOISE_BYTES * (4 + kills as isize), "{more} bytes are not freed");
}
