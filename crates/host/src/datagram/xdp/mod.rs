//! A wire over AF_XDP: the kernel and this process share the rings and the memory of the frames, so that a datagram
//! passes neither through the kernel's protocols nor through a socket's buffer.
//!
//! The frames are those that a UDP socket sends. So the other end may be such a socket.
//!
//! ```text
//!              XdpWire
//!     ┌──────────┴──────────┐
//!   Queue, one for each    DatagramSocket
//!   queue of the interface  holds the port, and carries what AF_XDP cannot
//!   Area: the frames        (before a hardware address is known, other interfaces, fragments)
//!   Program: steers datagrams for the port to the queues
//! ```

mod area;
mod neighbours;
mod path;
mod program;
mod queue;
mod rings;
mod route;

use super::{DatagramSocket, DatagramWire, Datagrams, SocketError};
use crate::ethernet::Ethernet;
use crate::interface;
use area::{Area, start_of};
use neighbours::Neighbours;
use netdyno_protocol::frame::ethernet::{self, HEADERS_LEN, LinkEnd};
use path::PathProbe;
use program::{Mode, Program};
use queue::{Queue, RECEIVES, SENDS};
use route::Routes;
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Looks at the rings for each look at the socket, whatever they find: frames of one peer must not hide the datagrams of
/// another one. Few datagrams come to the socket, and a look takes as long as a system call.
const RING_LOOKS: u32 = 64;
/// Queues of an interface that are served at most. Datagrams of further queues come to the socket.
const QUEUES_AT_MOST: u32 = 64;
/// The operation that finds a queue in use.
const OPEN_SOCKET: &str = "open an AF_XDP socket";
/// Longest time for which the queues of an ended process are awaited, and the time between two attempts.
const RELEASED_AFTER: Duration = Duration::from_secs(1);
const RETRY: Duration = Duration::from_millis(5);
/// Longest time for which the last datagrams of a wire are awaited.
const LAST_LEFT_AFTER: Duration = Duration::from_millis(20);

/// Reports why an AF_XDP wire could not be opened.
#[derive(Debug, Error)]
pub enum XdpError {
    /// The socket that holds the port could not be opened.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The address is not one of IPv4.
    #[error("AF_XDP carries IPv4 only: use an IPv4 address instead of {0}")]
    Family(SocketAddr),
    /// No interface with hardware addresses has the address.
    #[error("{0} is not the address of an Ethernet interface: use that of one, as `ip address` lists them")]
    NoInterface(SocketAddr),
    /// No interface is left to choose.
    #[error(
        "AF_XDP needs an Ethernet interface for each process, and none is left but that of the default route: \
         name an address of one, or make a pair (docs/xdp.md)"
    )]
    NoneFree,
    /// The system refused an operation.
    #[error("the system refused to {what} on {interface}: {error}; {}", advice(.error))]
    System {
        /// The operation.
        what: &'static str,
        /// The interface.
        interface: String,
        /// The system's error.
        #[source]
        error: io::Error,
    },
}

impl XdpError {
    /// Reports whether another interface may do.
    fn is_of_interface(&self) -> bool {
        match self {
            Self::NoInterface(_) | Self::NoneFree => true,
            Self::System { .. } => self.is_of_use(),
            Self::Socket(_) | Self::Family(_) => false,
        }
    }

    /// Reports whether the interface is in use: it has a program, or its queues have sockets.
    fn is_of_use(&self) -> bool {
        matches!(self, Self::System { error, .. } if Errno::from_io_error(error) == Some(Errno::BUSY))
    }

    /// Reports whether a queue belongs to another socket.
    fn is_of_queue_in_use(&self) -> bool {
        self.is_of_use() && matches!(self, Self::System { what, .. } if *what == OPEN_SOCKET)
    }
}

fn advice(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::PERM | Errno::ACCESS) => {
            "run as root, or with the capabilities NET_ADMIN, NET_RAW and BPF"
        }
        Some(Errno::BUSY) => "another program uses XDP there: end it, or use another interface",
        Some(Errno::NOTSUP | Errno::INVAL | Errno::NOSYS | Errno::AFNOSUPPORT) => {
            "the kernel or the driver lacks it: use Linux 5.10 or newer"
        }
        Some(Errno::NOMEM | Errno::NOBUFS) => "raise the limit of locked memory (ulimit -l)",
        _ => "use another interface",
    }
}

/// Tries whether this process may use AF_XDP, without touching an interface.
///
/// # Errors
/// Returns the error of the system.
pub fn try_permission() -> io::Result<()> {
    let socket = socket_with(AddressFamily::XDP, SocketType::RAW, SocketFlags::CLOEXEC, None);
    socket.map_err(io::Error::from)?;
    program::try_map()
}

/// A wire over the AF_XDP sockets of one interface.
#[derive(Debug)]
pub struct XdpWire {
    /// Holds the port, and carries what AF_XDP cannot.
    socket: DatagramSocket,
    local: SocketAddrV4,
    program: Program,
    /// At least one.
    queues: Vec<Queue>,
    area: Area,
    routes: Routes,
    /// Becomes readable when a datagram arrives, whichever way.
    watch: OwnedFd,
    /// The queue that is looked at first, so that each has its turn.
    next: usize,
    /// Looks at the rings since the last one at the socket.
    ring_looks: u32,
    /// Frames have been put into the ring of sends since the last kick.
    must_kick: bool,
    /// Datagrams that the socket has sent.
    by_kernel: u64,
    refused: u64,
}

impl XdpWire {
    /// Opens a wire at an IPv4 address of an Ethernet interface. Port 0 chooses a free port. The address 0.0.0.0 chooses
    /// an interface on which no program uses XDP and over which no default route leads, because some drivers interrupt
    /// their traffic for a moment when a program is attached.
    ///
    /// # Errors
    /// Returns an error if the address is of no such interface, if another program uses XDP there, or if this
    /// process may not.
    pub fn bind(address: SocketAddr) -> Result<Self, XdpError> {
        if address.is_ipv6() {
            return Err(XdpError::Family(address));
        }
        if !address.ip().is_unspecified() {
            return Self::bind_when_released(address, XdpError::is_of_use);
        }
        let neighbours = Neighbours::open().ok();
        let is_default = |ip: &IpAddr| {
            let name = interface::name_of(*ip).unwrap_or_default();
            neighbours.as_ref().is_some_and(|neighbours| neighbours.is_default(&name))
        };
        let all = interface::addresses().unwrap_or_default().into_iter();
        let mut outcome = Err(XdpError::NoneFree);
        for ip in all.filter(|ip| ip.is_ipv4() && !is_default(ip)) {
            // A program is one of another process that uses the interface. The next interface may have none.
            let address = SocketAddr::new(ip, address.port());
            outcome = Self::bind_when_released(address, XdpError::is_of_queue_in_use);
            if !matches!(&outcome, Err(error) if error.is_of_interface()) {
                break;
            }
        }
        outcome
    }

    /// Binds at an address. The kernel releases the program and the queues of a process only a moment after its end, so
    /// that the next process may find them in use. `may_pass` says which errors that may be.
    fn bind_when_released(address: SocketAddr, may_pass: fn(&XdpError) -> bool) -> Result<Self, XdpError> {
        let until = Instant::now() + RELEASED_AFTER;
        loop {
            match Self::bind_at(address) {
                Err(error) if may_pass(&error) && Instant::now() < until => thread::sleep(RETRY),
                outcome => return outcome,
            }
        }
    }

    fn bind_at(address: SocketAddr) -> Result<Self, XdpError> {
        let socket = DatagramSocket::bind(address)?;
        let SocketAddr::V4(local) = socket.local() else { return Err(XdpError::Family(address)) };
        let device = Ethernet::at(*local.ip()).ok_or(XdpError::NoInterface(address))?;
        let refused = |what| {
            let interface = device.name.clone();
            move |error| XdpError::System { what, interface, error }
        };
        let count = device.queues.min(QUEUES_AT_MOST);
        let program =
            Program::attach(device.index, count, local).map_err(refused("attach an XDP program"))?;
        let frames = count as usize * RECEIVES as usize + SENDS as usize;
        let mut area = Area::new(frames).map_err(refused("map memory for frames"))?;
        let mut queues: Vec<Queue> = Vec::new();
        for queue in 0..count {
            let bound = Queue::bind(&mut area, device.index, queue, queues.first());
            let bound = bound.map_err(refused(OPEN_SOCKET))?;
            program.steer(queue, bound.as_fd()).map_err(refused("steer to an AF_XDP socket"))?;
            queues.push(bound);
        }
        let watch = watch(&socket, &queues).map_err(|error| refused("watch a socket")(error.into()))?;
        let neighbours = Neighbours::open().map_err(refused("show its neighbours"))?;
        let here = LinkEnd { hardware: device.hardware, socket: local };
        let paths = PathProbe::open(*local.ip(), &device.name).map_err(refused("look for ways"))?;
        let routes = Routes::new(here, (device.name.clone(), device.mtu), neighbours, paths);
        Ok(Self {
            socket,
            local,
            program,
            queues,
            area,
            routes,
            watch,
            next: 0,
            ring_looks: 0,
            must_kick: false,
            by_kernel: 0,
            refused: 0,
        })
    }

    /// Makes frames free that the kernel has sent.
    #[inline]
    fn reclaim(&mut self) {
        while let Some(frame) = self.queues[0].sent() {
            self.area.give_back(frame);
        }
    }

    /// Sends what is in the ring.
    #[inline]
    fn kick(&mut self) {
        match self.queues[0].kick() {
            Ok(is_done) => self.must_kick = !is_done,
            Err(_) => (self.must_kick, self.refused) = (false, self.refused + 1),
        }
    }

    /// Puts a datagram into the ring of sends. Returns `false` if there is no room.
    #[inline]
    fn put(&mut self, headers: &[u8; HEADERS_LEN], datagram: &[u8]) -> bool {
        let Some(frame) = self.area.take() else { return false };
        let len = (HEADERS_LEN + datagram.len()) as u32;
        let is_put = match self.area.bytes_mut(frame, len) {
            Some(bytes) => {
                bytes[..HEADERS_LEN].copy_from_slice(headers);
                bytes[HEADERS_LEN..].copy_from_slice(datagram);
                self.queues[0].put(frame, len)
            }
            None => false,
        };
        if !is_put {
            self.area.give_back(frame);
        }
        is_put
    }

    /// Copies the next datagram of the rings to `room`.
    #[inline]
    fn receive_frame(&mut self, room: &mut [u8]) -> Option<Datagrams> {
        let count = self.queues.len();
        for turn in 0..count {
            let index = (self.next + turn) % count;
            // Frames that are no datagrams for this wire could arrive as fast as they are taken.
            for _ in 0..RECEIVES {
                let Some(frame) = self.queues[index].receive() else { break };
                let taken = self.area.bytes(frame.addr, frame.len).and_then(|bytes| {
                    let carried = ethernet::parse(bytes).ok().filter(|carried| carried.to == self.local)?;
                    let len = carried.payload.len().min(room.len());
                    room[..len].copy_from_slice(&carried.payload[..len]);
                    Some(Datagrams::from((len, carried.from.into())))
                });
                self.queues[index].refill(start_of(frame.addr));
                if taken.is_some() {
                    self.next = index + 1;
                    return taken;
                }
            }
        }
        None
    }
}

impl Drop for XdpWire {
    /// Waits until the kernel has the last datagrams, which tell the peers that this end closes: a driver may forget what
    /// is in the rings of a socket that closes.
    fn drop(&mut self) {
        let until = Instant::now() + LAST_LEFT_AFTER;
        self.flush();
        self.reclaim();
        while self.area.free() < SENDS as usize && Instant::now() < until {
            thread::yield_now();
            self.flush();
            self.reclaim();
        }
    }
}

/// Returns a descriptor that is readable while any of the sockets is.
fn watch(socket: &DatagramSocket, queues: &[Queue]) -> Result<OwnedFd, Errno> {
    let watch = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let add =
        |fd: BorrowedFd<'_>| epoll::add(&watch, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN);
    add(socket.as_fd())?;
    queues.iter().try_for_each(|queue| add(queue.as_fd()))?;
    Ok(watch)
}

impl DatagramWire for XdpWire {
    fn local(&self) -> SocketAddr {
        self.local.into()
    }

    fn refused(&self) -> u64 {
        self.refused + self.socket.refused()
    }

    fn by_kernel(&self) -> u64 {
        self.by_kernel
    }

    /// Names the interface, where the program runs, how frames are handed over, and the queues.
    fn description(&self) -> Option<String> {
        let mode = match self.program.mode() {
            Mode::Native => "native",
            Mode::Generic => "generic",
        };
        let copies = if self.queues.iter().all(Queue::is_zero_copy) { "zero copy" } else { "copies" };
        let queues = self.queues.len();
        let many = if queues == 1 { "queue" } else { "queues" };
        Some(format!("AF_XDP on {}, {mode}, {copies}, {queues} {many}", self.routes.interface()))
    }

    /// Does nothing: the program steers by the local address alone.
    fn set_only_peer(&mut self, _peer: Option<SocketAddr>) {}

    /// Sends the datagram by the socket while no hardware address is known, which makes the kernel ask for it.
    #[inline]
    fn join(&mut self, to: SocketAddr, datagram: &[u8], now_ns: u64) {
        let Some(headers) = self.routes.headers(to, datagram.len(), now_ns) else {
            self.ring_looks = RING_LOOKS;
            self.by_kernel += 1;
            return self.socket.join(to, datagram, now_ns);
        };
        self.reclaim();
        if !self.put(&headers, datagram) {
            self.kick();
            self.reclaim();
            // The peer sees a datagram without room as one more loss.
            if !self.put(&headers, datagram) {
                self.refused += 1;
                return;
            }
        }
        self.must_kick = true;
    }

    #[inline]
    fn flush(&mut self) {
        if self.must_kick {
            self.kick();
        }
        self.socket.flush();
    }

    #[inline]
    fn receive(&mut self, room: &mut [u8]) -> Option<Datagrams> {
        self.ring_looks += 1;
        if self.ring_looks < RING_LOOKS
            && let Some(datagrams) = self.receive_frame(room)
        {
            return Some(datagrams);
        }
        if self.must_kick {
            self.kick();
        }
        // The kernel may have gone to sleep while it was given frames, and then nothing arrives.
        self.queues.iter().for_each(Queue::wake_if_asleep);
        if self.ring_looks < RING_LOOKS && self.routes.are_known() {
            return None;
        }
        self.ring_looks = 0;
        match self.socket.receive(room) {
            // More may have come there.
            Some(datagrams) => {
                self.ring_looks = RING_LOOKS / 2;
                Some(datagrams)
            }
            None => self.receive_frame(room),
        }
    }
}

impl AsFd for XdpWire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }
}
