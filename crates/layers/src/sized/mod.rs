//! Layers whose messages can have any size, agreed upon by both ends between measurements:
//! the requester announces the sizes of requests and replies to come, the replier confirms.
//!
//! * [`am`]: Active Messages. * [`tcp`], [`udp`]: bare sockets.

pub(crate) mod am;
pub(crate) mod tcp;
pub(crate) mod udp;

use crate::real::{Patience, RealRequester, Wire};
use netdyno_measure::layer::{LayerError, SizedRequester};

/// The largest message where the layer knows no limit: both ends keep room for it.
pub(crate) const MAX_SIZE: usize = 1 << 30;
/// What every byte of a message is.
pub(crate) const FILL: u8 = 0x5a;
/// With what an announcement begins; no message does.
const ANNOUNCEMENT: u8 = 0xc5;
/// Bytes of an announcement, and of its confirmation.
pub(crate) const ANNOUNCEMENT_LEN: usize = 9;

/// Bytes of the messages of each way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) request: u32,
    pub(crate) reply: u32,
}

impl Sizes {
    /// What holds until sizes are announced.
    pub(crate) const SMALLEST: Self = Self { request: 1, reply: 1 };

    pub(crate) fn new(request: usize, reply: usize) -> Result<Self, LayerError> {
        let size = |bytes: usize| u32::try_from(bytes).map_err(LayerError::new);
        Ok(Self { request: size(request)?, reply: size(reply)? })
    }

    pub(crate) fn announcement(self) -> [u8; ANNOUNCEMENT_LEN] {
        let mut bytes = [ANNOUNCEMENT; ANNOUNCEMENT_LEN];
        bytes[1..5].copy_from_slice(&self.request.to_le_bytes());
        bytes[5..9].copy_from_slice(&self.reply.to_le_bytes());
        bytes
    }

    /// The sizes in `bytes`, where those are an announcement of sizes from 1 to `largest`.
    pub(crate) fn parse(bytes: &[u8], largest: usize) -> Option<Self> {
        let [ANNOUNCEMENT, request @ .., _, _, _, _] = bytes else { return None };
        let request = u32::from_le_bytes(request.try_into().ok()?);
        let reply = u32::from_le_bytes(bytes.last_chunk().copied()?);
        let fits = |size: u32| (1..=largest).contains(&(size as usize));
        (fits(request) && fits(reply)).then_some(Self { request, reply })
    }
}

/// Whether a message that begins with `byte` is an announcement.
pub(crate) fn is_announcement(byte: u8) -> bool {
    byte == ANNOUNCEMENT
}

/// Which end of a wire, and so which size goes out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    is_requester: bool,
    sizes: Sizes,
    /// Whether the other end has the sizes, on the requester's side.
    is_confirmed: bool,
}

impl End {
    pub(crate) fn new(is_requester: bool) -> Self {
        Self { is_requester, sizes: Sizes::SMALLEST, is_confirmed: false }
    }

    /// An end of which both know the sizes.
    pub(crate) fn agreed(is_requester: bool, sizes: Sizes) -> Self {
        Self { is_requester, sizes, is_confirmed: true }
    }

    pub(crate) fn outgoing(&self) -> usize {
        (if self.is_requester { self.sizes.request } else { self.sizes.reply }) as usize
    }

    pub(crate) fn incoming(&self) -> usize {
        (if self.is_requester { self.sizes.reply } else { self.sizes.request }) as usize
    }

    /// The requester's sizes, to be confirmed.
    pub(crate) fn announce(&mut self, sizes: Sizes) {
        (self.sizes, self.is_confirmed) = (sizes, false);
    }

    /// Takes what an announcement says; the replier has to send back what is returned.
    pub(crate) fn take(
        &mut self,
        sizes: Option<Sizes>,
    ) -> Result<Option<[u8; ANNOUNCEMENT_LEN]>, LayerError> {
        let sizes =
            sizes.ok_or_else(|| LayerError::new("the other process announces sizes that cannot be"))?;
        if self.is_requester {
            self.is_confirmed = sizes == self.sizes;
            return Ok(None);
        }
        self.sizes = sizes;
        Ok(Some(sizes.announcement()))
    }

    pub(crate) fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }
}

/// A wire whose messages can have any size.
pub(crate) trait SizedWire: Wire {
    /// The largest message, in bytes.
    fn largest(&self) -> usize;

    /// Tells the other end of the sizes to come. Nothing is on the way.
    fn announce(&mut self, sizes: Sizes) -> Result<(), LayerError>;

    /// Whether the other end has them.
    fn is_confirmed(&mut self) -> Result<bool, LayerError>;

    /// How many requests of those sizes may be without a reply.
    fn window(&self) -> usize;
}

impl<W: SizedWire> SizedRequester for RealRequester<W> {
    fn largest(&self) -> usize {
        self.wire().largest()
    }

    fn set_sizes(&mut self, request_bytes: usize, reply_bytes: usize) -> Result<(), LayerError> {
        let mut patience = Patience::new(self.waits());
        let wire = self.wire_mut();
        wire.announce(Sizes::new(request_bytes, reply_bytes)?)?;
        while !wire.is_confirmed()? {
            patience.in_vain(|timeout| wire.block(timeout))?;
        }
        let window = wire.window();
        self.set_max_window(window);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_taken_as_announced_where_they_can_be() {
        let sizes = Sizes::new(1 << 22, 1).unwrap();
        assert_eq!(Sizes::parse(&sizes.announcement(), 1 << 22), Some(sizes));
        assert_eq!(Sizes::parse(&sizes.announcement(), (1 << 22) - 1), None);
        assert_eq!(Sizes::parse(&Sizes { request: 0, reply: 1 }.announcement(), 10), None);
        assert_eq!(Sizes::parse(&[FILL; ANNOUNCEMENT_LEN], usize::MAX), None);
        assert!(Sizes::new(usize::MAX, 1).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..20), largest in any::<usize>()) {
            if let Some(sizes) = Sizes::parse(&bytes, largest) {
                prop_assert_eq!(&bytes[..], sizes.announcement());
            }
        }
    }
}
