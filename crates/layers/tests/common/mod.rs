//! What the tests of messages share: a worker with a support at the other end.

#![allow(dead_code, reason = "each test file uses its part")]

use netdyno_host::wait::Wait;
use netdyno_layers::catalogue::{Layer, half};
use netdyno_layers::half::{Half, Replier, Role};
use netdyno_layers::options::{DialOptions, LayerOptions};
use netdyno_measure::layer::{Face, LayerError, Messenger};
use netdyno_measure::order::Order;
use netdyno_protocol::faults::Faults;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Barrier, mpsc};
use std::thread;

/// The layers with processes.
pub const LAYERS: [Layer; 6] =
    [Layer::AmShm, Layer::AmUdp, Layer::ViShm, Layer::ViUdp, Layer::Udp, Layer::Tcp];

/// Messages up to `size_bytes`. There may be more processes than processors.
pub fn options(size_bytes: usize) -> LayerOptions {
    LayerOptions {
        size_bytes,
        face: Face::Messages,
        wait: Wait::Yield,
        faults: Faults::NONE,
        dials: DialOptions::default(),
        seed: 1,
        bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    }
}

/// Connects two halves. The support's end goes to `support`, on a thread of its own, what comes
/// of that is returned; the worker's goes to `work`, as what `connect` makes of it.
pub fn between<W, T: Send + 'static>(
    layer: Layer,
    options: LayerOptions,
    support: impl FnOnce(Box<dyn Replier>) -> T + Send + 'static,
    connect: impl FnOnce(Box<dyn Half>, &[u8]) -> Result<W, LayerError>,
    work: impl FnOnce(W),
) -> T {
    let (to_support, at_support) = mpsc::channel::<Vec<u8>>();
    let (to_worker, at_worker) = mpsc::channel();
    // Nobody goes before both are connected.
    let are_connected = Arc::new(Barrier::new(2));
    let is_connected = Arc::clone(&are_connected);
    let same = options.clone();
    let thread = thread::spawn(move || {
        let half = open(layer, Role::Replier, same);
        to_worker.send(half.address()).unwrap();
        let replier = half.replier(&at_support.recv().unwrap()).unwrap();
        is_connected.wait();
        support(replier)
    });
    let half = open(layer, Role::Requester, options);
    to_support.send(half.address()).unwrap();
    let worker = connect(half, &at_worker.recv().unwrap()).unwrap();
    are_connected.wait();
    work(worker);
    thread.join().unwrap()
}

/// The same with the face itself for the worker.
pub fn with_support<T: Send + 'static>(
    layer: Layer,
    options: LayerOptions,
    support: impl FnOnce(Box<dyn Replier>) -> T + Send + 'static,
    work: impl FnOnce(&mut dyn Messenger),
) -> T {
    let connect = |half: Box<dyn Half>, address: &[u8]| half.messenger(address);
    between(layer, options, support, connect, |mut worker| work(&mut *worker))
}

fn open(layer: Layer, role: Role, options: LayerOptions) -> Box<dyn Half> {
    half::open(layer, role, options).unwrap_or_else(|error| panic!("{layer}: {error}"))
}

/// Runs `work` with a support that serves, and returns why that ended.
pub fn run(layer: Layer, options: LayerOptions, work: impl FnOnce(&mut dyn Messenger)) -> String {
    with_support(layer, options, |mut support| support.serve(&AtomicBool::new(false)).unwrap_err().0, work)
}

/// So many answers of `bytes`.
pub fn answers(answers: u8, bytes: usize) -> Order {
    Order { answers, bytes: bytes as u32 }
}

/// One message there and, if one is ordered, one back.
pub fn round_trip(worker: &mut dyn Messenger, bytes: usize, order: Order) -> Result<(), LayerError> {
    for slot in 0..usize::from(order.answers) {
        worker.post_receive(slot, order.bytes as usize)?;
    }
    worker.post_send(0, bytes, order)?;
    for slot in 0..usize::from(order.answers) {
        worker.wait_receive(slot)?;
    }
    worker.wait_send(0)
}
