//! A network between two endpoints that a test controls. Each endpoint takes it for the other one.

use fastrand::Rng;
use netdyno_protocol::frame::udp_port::UdpPortAddress;
use netdyno_stack::am::{Endpoint, PeerId, Wire};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// The sender of a direction.
pub const A: usize = 0;
pub const B: usize = 1;

/// What the network does. Tests change it while it runs.
#[derive(Default)]
pub struct Control {
    /// Datagrams of this sender are lost.
    pub is_cut: [AtomicBool; 2],
    /// The network sends attacks at full speed.
    pub is_hostile: AtomicBool,
    /// The number of attacks.
    pub attacks: AtomicU64,
    is_over: AtomicBool,
}

pub struct Relay {
    pub control: Arc<Control>,
    thread: Option<JoinHandle<()>>,
}

/// Connects two endpoints through a network.
pub fn connect<S>(a: &mut Endpoint<S>, b: &mut Endpoint<S>, seed: u64) -> (PeerId, PeerId, Relay) {
    let (port_a, port_b) = (a.open_port(Wire::Udp).unwrap(), b.open_port(Wire::Udp).unwrap());
    let [at_a, at_b] = [&port_a, &port_b].map(|port| UdpPortAddress::parse(&port.address()).unwrap());
    // Endpoint a sends to the first socket as if it were b, and b to the second.
    let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let through = |address: UdpPortAddress, side: usize| {
        UdpPortAddress { socket: sockets[side].local_addr().unwrap(), ..address }.encode()
    };
    let to_b = a.connect(port_a, &through(at_b, A)).unwrap();
    let to_a = b.connect(port_b, &through(at_a, B)).unwrap();
    let control = Arc::new(Control::default());
    let shared = Arc::clone(&control);
    let ends = [at_a.socket, at_b.socket];
    let thread = std::thread::spawn(move || carry(&sockets, ends, &shared, seed));
    (to_b, to_a, Relay { control, thread: Some(thread) })
}

impl Relay {
    /// Cuts the directions of these senders, or restores them.
    pub fn cut(&self, senders: &[usize], is_cut: bool) {
        for &side in senders {
            self.control.is_cut[side].store(is_cut, Ordering::Relaxed);
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.control.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// The number of datagrams kept for replay.
const KEPT: usize = 1000;

fn carry(sockets: &[UdpSocket; 2], ends: [SocketAddr; 2], control: &Control, seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let mut room = [0; 2048];
    let mut kept: [Vec<Vec<u8>>; 2] = Default::default();
    for socket in sockets {
        socket.set_nonblocking(true).unwrap();
    }
    while !control.is_over.load(Ordering::Relaxed) {
        let mut is_idle = true;
        for sender in [A, B] {
            // The receiver may be gone.
            let Ok((len, _)) = sockets[sender].recv_from(&mut room) else { continue };
            is_idle = false;
            if kept[sender].len() < KEPT {
                kept[sender].push(room[..len].to_vec());
            }
            if !control.is_cut[sender].load(Ordering::Relaxed) {
                let _ = sockets[1 - sender].send_to(&room[..len], ends[1 - sender]);
            }
        }
        if control.is_hostile.load(Ordering::Relaxed) {
            let sender = rng.usize(..2);
            let attack = attack(&kept[sender], &mut rng);
            let _ = sockets[1 - sender].send_to(&attack, ends[1 - sender]);
            control.attacks.fetch_add(1, Ordering::Relaxed);
        } else if is_idle {
            std::thread::yield_now();
        }
    }
}

/// Returns random bytes, or an earlier datagram: unchanged, truncated or changed.
pub fn attack(kept: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let old = if kept.is_empty() { Vec::new() } else { kept[rng.usize(..kept.len())].clone() };
    match rng.u32(..4) {
        0 => (0..rng.usize(..2000)).map(|_| rng.u8(..)).collect(),
        1 => old,
        2 => old[..rng.usize(..=old.len())].to_vec(),
        _ => {
            let mut forged = old;
            for _ in 0..rng.usize(1..20) {
                if !forged.is_empty() {
                    let at = rng.usize(..forged.len());
                    forged[at] = rng.u8(..);
                }
            }
            forged
        }
    }
}
