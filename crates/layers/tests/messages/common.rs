//! Helpers for tests of messages: a worker, and the support at the other end, as in `overlap`.

use netdyno_host::wait::Wait;
use netdyno_layers::catalogue::{Layer, half};
use netdyno_layers::half::{Half, Replier, Role};
use netdyno_layers::options::{DialOptions, LayerOptions};
use netdyno_measure::layer::{Face, LayerError, Messenger};
use netdyno_measure::onesided::data::Access;
use netdyno_measure::order::Order;
use netdyno_measure::overlap::data::ProgressBy;
use netdyno_protocol::faults::Faults;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Barrier, mpsc};
use std::thread;

/// netdyno's own layers between processes.
pub const LAYERS: [Layer; 6] =
    [Layer::AmShm, Layer::AmUdp, Layer::ViShm, Layer::ViUdp, Layer::Udp, Layer::Tcp];

/// Returns the options for messages of up to `size_bytes`. Waiting yields, because there may be more
/// processes than processors.
pub fn options(size_bytes: usize) -> LayerOptions {
    LayerOptions {
        size_bytes,
        face: Face::Messages,
        access: Access::default(),
        progress_by: ProgressBy::default(),
        wait: Wait::Yield,
        faults: Faults::NONE,
        dials: DialOptions::default(),
        seed: 1,
        bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    }
}

/// Returns the layers with the options of messages of up to `size_bytes`; with a progress thread as well, where
/// there is one.
pub fn cases(size_bytes: usize) -> Vec<(Layer, LayerOptions)> {
    let of = |layer, progress_by| (layer, LayerOptions { progress_by, ..options(size_bytes) });
    let by_calls = LAYERS.into_iter().map(|layer| of(layer, ProgressBy::Calls));
    let threaded = LAYERS.into_iter().filter(|layer| layer.has_progress_thread());
    by_calls.chain(threaded.map(|layer| of(layer, ProgressBy::Thread))).collect()
}

/// Connects two halves. Passes the support's half to `support`, on a thread of its own, and the worker's
/// half, as `connect` makes it, to `work`. Returns the result of `support`.
pub fn between<W, T: Send + 'static>(
    layer: Layer,
    options: LayerOptions,
    support: impl FnOnce(Box<dyn Replier>) -> T + Send + 'static,
    connect: impl FnOnce(Box<dyn Half>, &[u8]) -> Result<W, LayerError>,
    work: impl FnOnce(W),
) -> T {
    let (to_support, at_support) = mpsc::channel::<Vec<u8>>();
    let (to_worker, at_worker) = mpsc::channel();
    // Neither side leaves before both are connected.
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

/// Does the same as [`between`] with a [`Messenger`] for the worker.
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

/// Runs `work` against a support that serves. Returns the error that ended the support.
pub fn run(layer: Layer, options: LayerOptions, work: impl FnOnce(&mut dyn Messenger)) -> String {
    with_support(layer, options, |mut support| support.serve(&AtomicBool::new(false)).unwrap_err().0, work)
}

/// Returns an order for `answers` answers of `bytes` each.
pub fn answers(answers: u8, bytes: usize) -> Order {
    Order { answers, bytes: bytes as u32 }
}

/// Sends a message and receives the answers that it orders.
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
