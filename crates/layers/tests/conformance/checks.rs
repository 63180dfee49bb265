//! The checks: the promises of every layer.

mod requests;

use crate::grounds::{Ground, options};
use crate::has_messages;
use netdyno_host::wait::Wait;
use netdyno_layers::catalogue::Layer;
use netdyno_layers::options::LayerOptions;
use netdyno_measure::layer::{Face, Messenger};
use netdyno_measure::onesided::data::{Access, Level, Memory, Operation, Synchronisation};
use netdyno_measure::onesided::pattern::OnesidedPlan;
use netdyno_measure::order::Order;
use netdyno_measure::overlap::data::ProgressBy;
use netdyno_measure::overlap::plan::{METHODS, OverlapPlan};
use netdyno_measure::task::{Data, Task};
use std::thread;
use std::time::Duration;

/// A promise and its test.
pub struct Check {
    pub name: &'static str,
    /// Fails with the name of a capability that the check needs and the layer lacks.
    pub asks_for: fn(Layer) -> Result<(), &'static str>,
    pub run: fn(&dyn Ground),
}

pub const CHECKS: &[Check] = &[
    Check {
        name: "requests of every size are measured",
        asks_for: requests_at_all,
        run: requests::every_size,
    },
    Check { name: "sizes can be set", asks_for: requests_at_all, run: requests::sized },
    Check {
        name: "completion is measured by every way to wait",
        asks_for: requests_at_all,
        run: requests::completion,
    },
    Check {
        name: "both sides tell their processor time",
        asks_for: requests_at_all,
        run: requests::utilisation,
    },
    Check { name: "overlap is measured by all methods", asks_for: messages_at_all, run: overlap },
    Check { name: "as many answers come as are ordered", asks_for: messages_at_all, run: answered },
    Check { name: "one-sided operations complete in their order", asks_for: one_sided, run: transfers },
    Check { name: "any way of waiting will do", asks_for: both, run: waits },
    Check { name: "receives are filled in their order", asks_for: messages_at_all, run: in_order },
    Check { name: "a queue is kept full each way", asks_for: messages_at_all, run: full_queue },
    Check { name: "what does not fit is sent by later calls", asks_for: messages_at_all, run: overfull },
    Check { name: "messages wait for a worker that works", asks_for: messages_at_all, run: at_work },
    Check { name: "a progress thread receives behind work", asks_for: thread_of_datagrams, run: behind_work },
    Check { name: "a row of messages is ended by an answer", asks_for: messages_at_all, run: row },
    Check { name: "what cannot be is refused", asks_for: both, run: refused },
    Check { name: "many processes: one streams to another", asks_for: many, run: crowd },
    Check { name: "what a bad network spoils is mended", asks_for: faults, run: bad_network },
];

fn requests_at_all(layer: Layer) -> Result<(), &'static str> {
    if layer.has_requests() { Ok(()) } else { Err("requests") }
}

fn processes(layer: Layer) -> Result<(), &'static str> {
    if layer.waits().is_empty() { Err("processes") } else { Ok(()) }
}

fn many(layer: Layer) -> Result<(), &'static str> {
    processes(layer).and_then(|()| requests_at_all(layer))
}

fn messages_at_all(layer: Layer) -> Result<(), &'static str> {
    if layer.has_messages() && has_messages() { Ok(()) } else { Err("messages") }
}

/// In shared memory the peer itself stores a message into its receive.
fn thread_of_datagrams(layer: Layer) -> Result<(), &'static str> {
    let is_one = layer.has_progress_thread() && layer != Layer::AmShm;
    if is_one { Ok(()) } else { Err("progress thread that receives datagrams") }
}

fn one_sided(layer: Layer) -> Result<(), &'static str> {
    if layer.has_one_sided() && has_messages() { Ok(()) } else { Err("one-sided operations") }
}

fn both(layer: Layer) -> Result<(), &'static str> {
    processes(layer).and_then(|()| messages_at_all(layer))
}

fn faults(layer: Layer) -> Result<(), &'static str> {
    if layer.takes_faults() { Ok(()) } else { Err("faults to be put under it") }
}

/// The largest tested size, if the layer carries more.
const LARGE: usize = 64 << 10;

/// Returns the ways to wait of a layer, among them spinning before blocking.
fn ways_to_wait(layer: Layer) -> impl Iterator<Item = Wait> {
    // libfabric's provider for shared memory cannot sleep.
    let sleeps = layer.to_string() != "ofi:shm";
    let spins_before = Wait::SpinFor(Duration::from_micros(20));
    let waits = layer.waits().iter().copied().chain([spins_before]);
    waits.filter(move |&wait| layer.can_wait(wait) && (sleeps || !wait.sleeps()))
}

/// Measures with one message in a cycle, and with as many as the layer has slots; with a progress thread as
/// well, if the layer has one.
fn overlap(ground: &dyn Ground) {
    overlap_of(ground, 1, ProgressBy::Calls);
    overlap_of(ground, usize::MAX, ProgressBy::Calls);
    if ground.layer().has_progress_thread() {
        overlap_of(ground, 1, ProgressBy::Thread);
        overlap_of(ground, usize::MAX, ProgressBy::Thread);
    }
}

fn overlap_of(ground: &dyn Ground, batch: usize, progress_by: ProgressBy) {
    let task = Task::Overlap(OverlapPlan {
        launch: 0,
        shape: None,
        sizes: vec![100, 5000],
        queue: 4,
        batch,
        methods: METHODS.to_vec(),
        budget_ns: 1e6,
        progress_by,
        precision: 0.1,
        seed: 1,
    });
    let options = LayerOptions { progress_by, ..messages(5000) };
    let Some(data) = ground.measure(options, &task) else { return };
    let Data::Overlap(data) = data else { panic!("{data:?}") };
    let sizes: Vec<usize> = data.sizes.iter().map(|size| size.size_bytes).collect();
    assert_eq!(sizes, [100, 5000]);
    for size in &data.sizes {
        assert!(size.polling.iter().all(|batches| !batches.is_empty()), "{size:?}");
        assert!(size.pww.iter().all(|batches| !batches.is_empty()), "{size:?}");
        assert!(size.knee.is_some(), "{size:?}");
    }
}

/// Returns all ways in which a layer reaches memory.
fn accesses(layer: Layer) -> Vec<Access> {
    // The example plugins allocate no memory, and have no epochs.
    let allocates = layer.allocates() && layer != Layer::Plugin;
    let has_synchronisations = layer.has_synchronisations() && layer != Layer::Plugin;
    let levels = [Level::Unreliable, Level::Delivery, Level::Reception];
    let levels = if layer.has_levels() { levels.to_vec() } else { vec![Level::default()] };
    let synchronisations = [Synchronisation::Lock, Synchronisation::Fence, Synchronisation::Post];
    let synchronisations = &synchronisations[..if has_synchronisations { 3 } else { 1 }];
    let memories = &[Memory::Registered, Memory::Allocated][..if allocates { 2 } else { 1 }];
    let mut all = Vec::new();
    for level in levels {
        for &synchronisation in synchronisations {
            all.extend(memories.iter().map(|&memory| Access { level, synchronisation, memory }));
        }
    }
    all
}

/// With every way to reach memory, an operation starts before it is complete here, and is complete here
/// before it is there.
fn transfers(ground: &dyn Ground) {
    let layer = ground.layer();
    for access in accesses(layer) {
        let largest_bytes = LARGE + 1;
        let task = Task::Onesided(OnesidedPlan {
            launch: 0,
            shape: None,
            access,
            largest_bytes,
            budget_ns: 1e8,
            seed: 1,
        });
        let chosen = LayerOptions { access, ..options(largest_bytes, Face::OneSided) };
        let Some(data) = ground.measure(chosen, &task) else { continue };
        let Data::Onesided(data) = data else { panic!("{data:?}") };
        let Access { level, synchronisation, memory } = access;
        assert_eq!(data.level, layer.has_levels().then_some(level), "{layer}");
        let has_synchronisations = layer.has_synchronisations() && layer != Layer::Plugin;
        assert_eq!(data.synchronisation, has_synchronisations.then_some(synchronisation), "{layer}");
        assert_eq!(data.memory.unwrap_or_default(), memory, "{layer}");
        let has = |operation| data.shape.transfers.iter().any(|shape| shape.operation == operation);
        assert!(has(Operation::Put), "{layer} {access:?}");
        assert_eq!(has(Operation::Get), data.level != Some(Level::Unreliable), "{layer} {access:?}");
        for (shape, times) in data.shape.transfers.iter().zip(&data.transfers) {
            let first = |batches: &[f64]| batches.first().copied().unwrap();
            let has_local = shape.operation.shows_local(data.synchronisation);
            assert_eq!(times.local_ns.is_empty(), !has_local, "{layer} {access:?}: {shape:?}");
            let complete_ns = times.local_ns.first().or(times.remote_ns.first()).copied().unwrap();
            // Each reading of the clock is taken off, and takes sometimes less.
            let slack_ns = 3.0 * data.timer_ns;
            assert!(
                first(&times.start_ns) <= complete_ns + slack_ns,
                "{layer} {access:?}: {shape:?} {times:?}"
            );
            assert_eq!(
                times.remote_ns.is_empty(),
                shape.operation.fetches(),
                "{layer} {access:?}: {shape:?}"
            );
            let is_later = times.remote_ns.first().is_none_or(|&ns| ns + slack_ns >= complete_ns);
            assert!(
                is_later && times.gap_ns.len() == times.start_ns.len(),
                "{layer} {access:?}: {shape:?} {times:?}"
            );
        }
        let largest = data.shape.transfers.iter().map(|shape| shape.size_bytes).max();
        assert_eq!(largest, Some(largest_bytes));
    }
}

fn messages(size_bytes: usize) -> LayerOptions {
    options(size_bytes, Face::Messages)
}

/// Returns the size of the largest tested message: 4 MiB if the layer carries more, because of the buffers.
fn largest(ground: &dyn Ground) -> usize {
    ground.layer().max_message().min(4 << 20)
}

/// Returns the largest size for checks that send many messages.
fn large(ground: &dyn Ground) -> usize {
    largest(ground).min(100_000)
}

/// Runs `work` on the worker's side. Passes it the size `wanted`, or the worker's largest size if that is
/// smaller.
fn exchange(ground: &dyn Ground, wanted: usize, work: &mut dyn FnMut(&mut dyn Messenger, usize)) {
    ground.exchange(messages(wanted), &mut |worker| {
        let largest = wanted.min(worker.largest());
        work(worker, largest);
    });
}

fn answers(answers: u8, bytes: usize) -> Order {
    Order { answers, bytes: bytes as u32 }
}

/// Returns sizes around every size at which a layer changes its protocol, up to `largest`.
fn sizes(largest: usize) -> Vec<usize> {
    let all = [8, 9, 31, 64, 1000, 5000, 65_499, 65_536, 100_000, 1 << 20, largest];
    all.into_iter().filter(|&size| size <= largest).collect()
}

/// Sends a message and receives the answers that it orders.
fn round_trip(worker: &mut dyn Messenger, bytes: usize, order: Order) {
    for slot in 0..usize::from(order.answers) {
        worker.post_receive(slot, order.bytes as usize).unwrap();
    }
    worker.post_send(0, bytes, order).unwrap();
    for slot in 0..usize::from(order.answers) {
        worker.wait_receive(slot).unwrap();
    }
    worker.wait_send(0).unwrap();
}

fn answered(ground: &dyn Ground) {
    exchange(ground, largest(ground), &mut |worker, largest| {
        for bytes in sizes(largest) {
            for count in 0..=2 {
                round_trip(worker, bytes, answers(count, bytes));
                round_trip(worker, 8, answers(count, bytes));
                round_trip(worker, bytes, answers(count, 8));
            }
        }
        // No answer is left over: the next message to arrive answers the next message sent.
        worker.post_receive(0, 8).unwrap();
        assert!((0..1000).all(|_| !worker.test_receive(0).unwrap()));
        worker.post_send(0, 8, answers(1, 8)).unwrap();
        worker.wait_receive(0).unwrap();
        assert!(worker.other_threads_ns().is_none_or(|ns| ns >= 0.0));
    });
}

fn waits(ground: &dyn Ground) {
    for wait in ways_to_wait(ground.layer()) {
        ground.exchange(LayerOptions { wait, ..messages(large(ground)) }, &mut |worker| {
            for bytes in sizes(worker.largest().min(LARGE)) {
                round_trip(worker, bytes, answers(2, bytes));
            }
            for slot in 0..worker.depth() {
                worker.post_send(slot, 5000, Order::NOTHING).unwrap();
            }
            for slot in 0..worker.depth() {
                worker.wait_send(slot).unwrap();
            }
        });
    }
}

/// The receives and the answers have the same random sizes. A message that is longer than its receive fails,
/// so only the right order passes.
fn in_order(ground: &dyn Ground) {
    let seed = std::env::var("NETDYNO_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("NETDYNO_SEED={seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    exchange(ground, largest(ground).min(200_000), &mut |worker, largest| {
        for _ in 0..20 {
            let mut slots: Vec<usize> = (0..worker.depth()).collect();
            rng.shuffle(&mut slots);
            let sizes: Vec<usize> = slots.iter().map(|_| rng.usize(8..=largest)).collect();
            for (&slot, &bytes) in slots.iter().zip(&sizes) {
                worker.post_receive(slot, bytes).unwrap();
            }
            for (&slot, &bytes) in slots.iter().zip(&sizes) {
                worker.post_send(slot, rng.usize(8..=largest), answers(1, bytes)).unwrap();
            }
            // The completions are waited for in another order.
            rng.shuffle(&mut slots);
            for &slot in &slots {
                worker.wait_receive(slot).unwrap();
                worker.wait_send(slot).unwrap();
            }
        }
    });
}

/// Plays ping-pong with `depth` messages in flight: after each arrival, posts a receive and a send again.
fn ping_pong(worker: &mut dyn Messenger, depth: usize, bytes: usize, messages: usize) {
    for slot in 0..depth {
        worker.post_receive(slot, bytes).unwrap();
    }
    for slot in 0..depth {
        worker.post_send(slot, bytes, answers(1, bytes)).unwrap();
    }
    let (mut came, mut slot) = (0, 0);
    while came < messages {
        if !worker.test_receive(slot).unwrap() {
            thread::yield_now();
            continue;
        }
        came += 1;
        worker.wait_send(slot).unwrap();
        if came + depth <= messages {
            worker.post_receive(slot, bytes).unwrap();
            worker.post_send(slot, bytes, answers(1, bytes)).unwrap();
        }
        slot = (slot + 1) % depth;
    }
}

fn full_queue(ground: &dyn Ground) {
    exchange(ground, largest(ground), &mut |worker, largest| {
        assert!(worker.depth() >= 8);
        for depth in [1, 3, worker.depth()] {
            for (bytes, messages) in [(8, 500), (5000, 500), (65_499, 200)] {
                ping_pong(worker, depth, bytes, messages);
            }
        }
        ping_pong(worker, 4, largest, 16);
    });
}

/// Both ends send more than the buffers between them hold. Neither may block until the other receives.
fn overfull(ground: &dyn Ground) {
    exchange(ground, largest(ground), &mut |worker, largest| {
        let depth = worker.depth();
        ping_pong(worker, depth, largest, depth);
    });
}

/// Runs cycles of post, work and wait, in which calls are rare. The first message orders two answers, so that
/// one is ahead in each cycle. The last message orders none.
fn at_work(ground: &dyn Ground) {
    exchange(ground, large(ground), &mut |worker, bytes| {
        let work = worker.work(2e6);
        let mut cycle = |order| {
            worker.post_receive(0, bytes).unwrap();
            worker.post_send(0, bytes, order).unwrap();
            worker.compute(work);
            worker.wait_receive(0).unwrap();
            worker.wait_send(0).unwrap();
        };
        cycle(answers(2, bytes));
        for _ in 0..50 {
            cycle(answers(1, bytes));
        }
        cycle(Order::NOTHING);
        round_trip(worker, 8, answers(1, 8));
    });
}

/// The size of a message that needs many calls to arrive.
const MANY_CALLS: usize = 1 << 20;
/// The lengths of the work. On a busy machine the progress thread needs a longer one.
const WORKS_NS: [f64; 3] = [20e6, 100e6, 300e6];
/// A progress thread leaves at most this part of the tests in vain.
const SHOWS: u64 = 4;

/// Returns the tests in vain until a large message is received that was ordered before work: the median over several
/// messages.
fn tests_after_work(ground: &dyn Ground, progress_by: ProgressBy, work_ns: f64) -> u64 {
    let mut found = 0;
    ground.exchange(LayerOptions { progress_by, ..messages(MANY_CALLS) }, &mut |worker| {
        round_trip(worker, 8, answers(1, MANY_CALLS));
        let work = worker.work(work_ns);
        let mut all = [0; 5];
        for in_vain in &mut all {
            worker.post_receive(0, MANY_CALLS).unwrap();
            worker.post_send(0, 8, answers(1, MANY_CALLS)).unwrap();
            worker.compute(work);
            while !worker.test_receive(0).unwrap() {
                *in_vain += 1;
                thread::yield_now();
            }
            worker.wait_send(0).unwrap();
        }
        println!("{}: {progress_by:?}: {all:?}", ground.layer());
        all.sort_unstable();
        found = all[all.len() / 2];
    });
    found
}

/// A message that arrives during work is received by the progress thread. Without that thread it is received by the
/// calls after the work.
fn behind_work(ground: &dyn Ground) {
    let shows = |&work_ns: &f64| {
        let by_calls = tests_after_work(ground, ProgressBy::Calls, work_ns);
        SHOWS * tests_after_work(ground, ProgressBy::Thread, work_ns) < by_calls
    };
    // A busy moment may hide it once.
    assert!(
        WORKS_NS.iter().chain(&WORKS_NS).any(shows),
        "{}: the thread receives nothing behind work",
        ground.layer()
    );
}

/// Sends more messages one way than the receiver has room for.
fn row(ground: &dyn Ground) {
    exchange(ground, large(ground), &mut |worker, largest| {
        for bytes in [8, 5000, 40_000, largest] {
            worker.post_receive(0, 8).unwrap();
            for message in 0..400 {
                let slot = message % worker.depth();
                worker.wait_send(slot).unwrap();
                worker.post_send(slot, bytes, Order::NOTHING).unwrap();
            }
            worker.wait_send(0).unwrap();
            worker.post_send(0, bytes, answers(1, 8)).unwrap();
            worker.wait_receive(0).unwrap();
            for slot in 0..worker.depth() {
                worker.wait_send(slot).unwrap();
            }
        }
    });
}

fn refused(ground: &dyn Ground) {
    let layer = ground.layer();
    ground.exchange(messages(1000), &mut |worker| {
        for bytes in [0, 7, 1001, usize::MAX] {
            assert!(worker.post_receive(0, bytes).is_err());
            assert!(worker.post_send(0, bytes, Order::NOTHING).is_err());
        }
        let error = worker.post_receive(worker.depth(), 8).unwrap_err();
        assert!(error.0.contains("slot"), "{error}");
        worker.post_receive(0, 8).unwrap();
        let error = worker.post_receive(0, 8).unwrap_err();
        assert!(error.0.contains("not complete"), "{error}");
        // The refused calls have changed nothing.
        worker.post_send(0, 1000, answers(1, 8)).unwrap();
        worker.wait_receive(0).unwrap();
    });
    for size in [0, 7, layer.max_message() + 1] {
        let error = ground.refusal(messages(size));
        assert!(error.contains("use a size of 8 to"), "{error}");
    }
    for size in [0, layer.max_size() + 1] {
        let error = ground.refusal(options(size, Face::Requests));
        assert!(error.contains("use a size of 1 to"), "{error}");
    }
}

fn crowd(ground: &dyn Ground) {
    let Some(counted) = ground.stream(options(32, Face::Requests)) else { return };
    assert!(counted.times.iter().any(|timed| timed.ns > 0.0), "{counted:?}");
}

fn bad_network(ground: &dyn Ground) {
    let faults = "loss=0.05,dup=0.05".parse().unwrap();
    if !ground.layer().has_requests() {
        let task = Task::Onesided(OnesidedPlan {
            launch: 0,
            shape: None,
            access: Access::default(),
            largest_bytes: LARGE,
            budget_ns: 1e8,
            seed: 1,
        });
        let data = ground.measure(LayerOptions { faults, ..options(LARGE, Face::OneSided) }, &task);
        let Some(Data::Onesided(data)) = data else { panic!("{data:?}") };
        let transport = data.transport.unwrap();
        return assert!(transport.retransmitted > 0, "{transport:?}");
    }
    ground.exchange(LayerOptions { faults, ..messages(100_000) }, &mut |worker| {
        ping_pong(worker, 8, 5000, 200);
        ping_pong(worker, 2, 100_000, 20);
        let transport = worker.transport().unwrap();
        assert!(transport.retransmitted > 0, "{transport:?}");
    });
}
