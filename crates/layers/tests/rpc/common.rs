//! Helpers: words of RPC messages, and a server of the layers that serves while a test calls it.

use netdyno_host::wait::Wait;
use netdyno_layers::catalogue::{Layer, half};
use netdyno_layers::half::Role;
use netdyno_layers::options::{DialOptions, LayerOptions};
use netdyno_measure::layer::Face;
use netdyno_measure::onesided::data::Access;
use netdyno_measure::overlap::data::ProgressBy;
use netdyno_protocol::faults::Faults;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

/// The number of the program, as docs/rpc.md states it.
pub const PROGRAM: u32 = 0x2064_796e;
/// The most bytes of data that the server of a test takes.
pub const LARGEST: usize = 2000;

/// Returns the options for data of up to `size_bytes`.
pub fn options(size_bytes: usize, face: Face) -> LayerOptions {
    LayerOptions {
        size_bytes,
        face,
        access: Access::default(),
        progress_by: ProgressBy::default(),
        wait: Wait::Block,
        faults: Faults::NONE,
        dials: DialOptions::default(),
        seed: 1,
        bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    }
}

/// Returns the bytes of big-endian words.
pub fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Tells a server to end, even if the test fails.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` while a server of the layer serves. `client` is the address that the server knows as that of its
/// client. `work` gets the server's address.
pub fn with_server<T>(layer: Layer, client: SocketAddr, work: impl FnOnce(SocketAddr) -> T) -> T {
    let over = AtomicBool::new(false);
    let (say_address, address) = mpsc::channel();
    thread::scope(|scope| {
        let _ending = Ending(&over);
        let over = &over;
        scope.spawn(move || {
            let half = half::open(layer, Role::Replier, options(LARGEST, Face::Sized)).unwrap();
            say_address.send(half.address()).unwrap();
            half.replier(client.to_string().as_bytes()).unwrap().serve(over).unwrap();
        });
        work(String::from_utf8(address.recv().unwrap()).unwrap().parse().unwrap())
    })
}
