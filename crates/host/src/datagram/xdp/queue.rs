//! An AF_XDP socket with its rings: it serves one queue of an interface.

use super::area::{Area, FRAME_LEN, FrameAt};
use super::rings::{Consumer, Producer};
use rustix::io::Errno;
use rustix::net::sockopt::{
    set_xdp_rx_ring_size, set_xdp_tx_ring_size, set_xdp_umem_completion_ring_size,
    set_xdp_umem_fill_ring_size, set_xdp_umem_reg, xdp_mmap_offsets, xdp_options,
};
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, SocketAddrXdpWithSharedUmem, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING,
    XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpDescOptions, XdpOptionsFlags,
    XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{Ordering, fence};

/// Frames of each queue that the kernel receives into.
pub const RECEIVES: u32 = 1024;
/// Entries of the rings of received frames. The kernel tells only now and then how many free frames it has taken, up to
/// all that it was given, so that the ring has to hold twice as many.
const RECEIVE_RING: u32 = 2 * RECEIVES;
/// Frames that may be on their way out in each queue.
pub const SENDS: u32 = 1024;

/// Calls in a row that make the kernel send: it sends 32 frames for each.
const KICKS_AT_MOST: u32 = 2 * SENDS / 32;

/// A socket that is bound to a queue.
#[derive(Debug)]
pub struct Queue {
    socket: OwnedFd,
    /// Free frames for the kernel to receive into.
    fill: Producer<FrameAt>,
    received: Consumer<XdpDesc>,
    sends: Producer<XdpDesc>,
    /// Frames that the kernel has sent.
    sent: Consumer<FrameAt>,
}

impl Queue {
    /// Binds a socket to a queue of an interface, and gives it frames to receive into. The first socket of an area
    /// registers the area; `first` is that socket for all others.
    ///
    /// # Errors
    /// Returns an error if this process may not, or if another socket serves the queue.
    pub fn bind(area: &mut Area, interface: u32, queue: u32, first: Option<&Self>) -> io::Result<Self> {
        let socket = socket_with(AddressFamily::XDP, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        if first.is_none() {
            let registration = XdpUmemReg {
                addr: area.address(),
                len: area.len(),
                chunk_size: FRAME_LEN,
                headroom: 0,
                flags: XdpUmemRegFlags::empty(),
                tx_metadata_len: 0,
            };
            set_xdp_umem_reg(&socket, registration)?;
        }
        set_xdp_umem_fill_ring_size(&socket, RECEIVE_RING)?;
        set_xdp_umem_completion_ring_size(&socket, SENDS)?;
        set_xdp_rx_ring_size(&socket, RECEIVE_RING)?;
        set_xdp_tx_ring_size(&socket, SENDS)?;
        let offsets = xdp_mmap_offsets(&socket)?;
        let mut fill = Producer::map(&socket, XDP_UMEM_PGOFF_FILL_RING, offsets.fr, RECEIVE_RING)?;
        let received = Consumer::map(&socket, XDP_PGOFF_RX_RING, offsets.rx, RECEIVE_RING)?;
        let sends = Producer::map(&socket, XDP_PGOFF_TX_RING, offsets.tx, SENDS)?;
        let sent = Consumer::map(&socket, XDP_UMEM_PGOFF_COMPLETION_RING, offsets.cr, SENDS)?;
        for frame in (0..RECEIVES).map_while(|_| area.take()) {
            fill.push(frame);
        }
        // Without a flag for the mode, the kernel takes zero copy where the driver has it, and else copies.
        let flags = if first.is_none() {
            SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP
        } else {
            SocketAddrXdpFlags::XDP_SHARED_UMEM
        };
        let addr = SocketAddrXdp::new(flags, interface, queue);
        match first {
            None => bind(&socket, &addr)?,
            Some(first) => {
                bind(&socket, &SocketAddrXdpWithSharedUmem { addr, shared_umem_fd: first.socket.as_fd() })?
            }
        }
        Ok(Self { socket, fill, received, sends, sent })
    }

    /// Reports whether the driver reads and writes the frames themselves.
    pub fn is_zero_copy(&self) -> bool {
        xdp_options(&self.socket).is_ok_and(|options| options.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY))
    }

    /// Takes the next received frame. Give it back by [`Queue::refill`].
    #[inline]
    pub fn receive(&mut self) -> Option<XdpDesc> {
        self.received.pop()
    }

    /// Gives a frame to the kernel to receive into. There is room, because it has given one before.
    #[inline]
    pub fn refill(&mut self, frame: FrameAt) {
        let has_room = self.fill.push(frame);
        debug_assert!(has_room, "a frame more than the fill ring has");
        self.wake_if_asleep();
    }

    /// Wakes the kernel if it waits for frames to receive into.
    #[inline]
    pub fn wake_if_asleep(&self) {
        if self.fill.needs_wakeup() {
            self.wake_receiving();
        }
    }

    #[cold]
    fn wake_receiving(&self) {
        // The call itself is what counts; the socket has nothing to read by it.
        let _ = recv(&self.socket, &mut [0_u8; 0], RecvFlags::DONTWAIT);
    }

    /// Puts a frame of `len` bytes into the ring of sends. Returns `false` if the ring is full. The frame leaves
    /// with the next [`Queue::kick`].
    #[inline]
    pub fn put(&mut self, frame: FrameAt, len: u32) -> bool {
        self.sends.push(XdpDesc { addr: frame, len, options: XdpDescOptions::empty() })
    }

    /// Makes the kernel send what is in the ring, unless it does so anyway. Returns false if some may be left for the next
    /// kick.
    ///
    /// # Errors
    /// Returns an error if the interface is gone or down.
    #[inline]
    pub fn kick(&self) -> Result<bool, Errno> {
        // Orders the entries before the look at the flag. The kernel sets the flag and then looks for entries, so that one
        // of both sees what the other wrote.
        fence(Ordering::SeqCst);
        if !self.sends.needs_wakeup() {
            return Ok(self.sends.is_taken());
        }
        for _ in 0..KICKS_AT_MOST {
            match send(&self.socket, &[], SendFlags::DONTWAIT) {
                Ok(_) => return Ok(true),
                // The kernel sends some frames for each call, and has only so much memory for those on their way.
                Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS | Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Takes the next frame that the kernel has sent.
    #[inline]
    pub fn sent(&mut self) -> Option<FrameAt> {
        self.sent.pop()
    }
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
