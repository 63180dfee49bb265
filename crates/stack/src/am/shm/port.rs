//! The memory that one side of a connection creates, and its layout.
//!
//! ```text
//! 0      nonce
//! 64     closed by the peer, a word
//! 128    taken: a peer has connected, a word
//! 192    number of the endpoint in its process, a word, written by the owner
//! 200    descriptor of the endpoint's wake-up plus 1, or 0 if it never sleeps, a word, written by the owner
//! 256    the owner sleeps, a word: the owner sets it, the peer clears it
//! 4096   ring of the peer's requests: slots, then payload cells
//! ...    ring of the peer's replies: slots, then payload cells
//! ...    bounce buffer of the peer's stores
//! ...    bounce buffer of gets from the peer
//! ```
//!
//! The reading side creates the memory. Only the peer writes to everything that is not the owner's.

use crate::am::error::OpenError;
use netdyno_host::bounce;
use netdyno_host::region::{CONTROL_BYTES, Region};
use netdyno_host::ring::{LINE, Place};
use netdyno_host::segment::Segment;
use netdyno_host::wakeup::Wakeup;
use netdyno_protocol::frame::port::PortAddress;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Offset of the word by which the peer says that it has closed.
pub(super) const CLOSED: usize = LINE;
/// Offset of the word by which the peer claims this memory as its writer.
pub(super) const TAKEN: usize = 2 * LINE;

/// Alignment of rings and bounce buffers. Only the ring of replies begins half way between two
/// multiples, so that its first slots fall into other cache sets than those of requests.
const SPACING: usize = 4096;

/// Offset of the number of the endpoint that owns this memory.
pub(super) const ENDPOINT: usize = 3 * LINE;
/// Offset of the word that names the wake-up of that endpoint. It shares the line of `ENDPOINT`, because the
/// peer reads both only when it connects.
const WAKEUP: usize = ENDPOINT + 8;
/// Offset of the word by which the owner says that it sleeps.
pub(super) const ASLEEP: usize = 4 * LINE;

/// Memory that the peer will write to.
#[derive(Debug)]
pub(in crate::am) struct ShmPort {
    pub(super) layout: Layout,
    address: PortAddress,
    pub(super) region: Arc<Region>,
    /// Kept open, because the peer opens the segment through this descriptor.
    pub(super) segment: Segment,
}

/// The sizes that determine the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub window: u32,
    pub medium_bytes: u32,
}

impl Layout {
    pub(super) fn requests(self) -> Place {
        Place { offset: CONTROL_BYTES, slots: self.window as usize, cell: self.medium_bytes as usize }
    }

    pub(super) fn replies(self) -> Place {
        let requests = self.requests();
        let end = requests.offset + requests.len();
        Place { offset: end.next_multiple_of(SPACING) + SPACING / 2, ..requests }
    }

    /// Returns the offset of the bounce buffer of stores. Its pages take no memory until they are used.
    pub(super) fn stored(self) -> usize {
        (self.replies().offset + self.replies().len()).next_multiple_of(SPACING)
    }

    pub(super) fn fetched(self) -> usize {
        self.stored() + bounce::LEN
    }

    pub(super) fn len(self) -> usize {
        self.fetched() + bounce::LEN
    }
}

impl ShmPort {
    /// Creates the memory. The caller has checked the sizes. The peer rings `wakeup`, if there is one.
    pub(in crate::am) fn open(
        window: u32,
        medium_bytes: u32,
        endpoint: u64,
        wakeup: Option<&Wakeup>,
    ) -> Result<Self, OpenError> {
        let layout = Layout { window, medium_bytes };
        let segment = Segment::create(layout.len())?;
        segment.region.word(ENDPOINT).store(endpoint, Ordering::Relaxed);
        let name = wakeup.map_or(0, |wakeup| u64::from(wakeup.descriptor()) + 1);
        segment.region.word(WAKEUP).store(name, Ordering::Relaxed);
        let address = PortAddress {
            pid: std::process::id(),
            fd: segment.descriptor(),
            window,
            medium_bytes,
            nonce: segment.nonce(),
        };
        Ok(Self { layout, address, region: Arc::clone(&segment.region), segment })
    }

    pub(in crate::am) fn address(&self) -> PortAddress {
        self.address
    }
}

/// Returns the descriptor of the wake-up that the owner of `inbox` names; `None` if the owner never sleeps.
pub(super) fn wakeup_of(inbox: &Region) -> Option<u32> {
    let name = inbox.word(WAKEUP).load(Ordering::Relaxed).checked_sub(1)?;
    // A number that is no descriptor is refused like one of no file.
    Some(u32::try_from(name).unwrap_or(u32::MAX))
}
