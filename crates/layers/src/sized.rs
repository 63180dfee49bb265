//! Requests and replies whose size both ends agree on between measurements: the requester announces the
//! sizes of the next requests and replies, and the replier confirms them.

use crate::peer_wait::PeerWait;
use crate::requests::{RealRequester, Wire, unasked_reply};
use netdyno_measure::layer::{LayerError, Meter, SizedRequester, Transfer};
use netdyno_measure::processor_time::Accounts;
use std::time::Duration;

/// The largest message of a layer without a limit of its own, in bytes: both ends allocate a buffer for it.
pub(crate) const MAX_SIZE: usize = 1 << 30;
/// The first byte of an announcement. It differs from [`FILL`](crate::payload::FILL), with which messages
/// begin.
const ANNOUNCEMENT: u8 = 0xc5;
/// Bytes of an announcement. Its confirmation has as many.
pub(crate) const ANNOUNCEMENT_LEN: usize = 9;

/// The sizes of requests and replies, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) request: u32,
    pub(crate) reply: u32,
}

impl Sizes {
    /// The sizes until the first announcement.
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

    /// Returns the sizes in `bytes`, if `bytes` are an announcement of sizes from 1 to `largest`.
    pub(crate) fn parse(bytes: &[u8], largest: usize) -> Option<Self> {
        let [ANNOUNCEMENT, request @ .., _, _, _, _] = bytes else { return None };
        let request = u32::from_le_bytes(request.try_into().ok()?);
        let reply = u32::from_le_bytes(bytes.last_chunk().copied()?);
        let fits = |size: u32| (1..=largest).contains(&(size as usize));
        (fits(request) && fits(reply)).then_some(Self { request, reply })
    }
}

/// Returns whether a message that begins with `byte` is an announcement.
pub(crate) fn is_announcement(byte: u8) -> bool {
    byte == ANNOUNCEMENT
}

/// One end of a wire: whether it sends requests or replies, and the sizes of both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizedEnd {
    is_requester: bool,
    sizes: Sizes,
    /// At the requester: whether the replier has confirmed the sizes.
    is_confirmed: bool,
}

impl SizedEnd {
    pub(crate) fn new(is_requester: bool) -> Self {
        Self { is_requester, sizes: Sizes::SMALLEST, is_confirmed: false }
    }

    /// Returns an end with sizes that both ends know already.
    pub(crate) fn agreed(is_requester: bool, sizes: Sizes) -> Self {
        Self { is_requester, sizes, is_confirmed: true }
    }

    pub(crate) fn outgoing(&self) -> usize {
        (if self.is_requester { self.sizes.request } else { self.sizes.reply }) as usize
    }

    pub(crate) fn incoming(&self) -> usize {
        (if self.is_requester { self.sizes.reply } else { self.sizes.request }) as usize
    }

    /// Sets the sizes that the requester announces. They are not confirmed.
    pub(crate) fn announce(&mut self, sizes: Sizes) {
        (self.sizes, self.is_confirmed) = (sizes, false);
    }

    /// Takes the sizes of an announcement, or of its confirmation. Returns the confirmation that the replier
    /// has to send.
    ///
    /// # Errors
    /// `sizes` is `None`: the announcement was malformed.
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
    /// Returns the size of the largest message, in bytes.
    fn largest(&self) -> usize;

    /// Announces the sizes of the next messages. The caller has made sure that nothing is in flight.
    fn announce(&mut self, sizes: Sizes) -> Result<(), LayerError>;

    /// Takes the confirmation of the sizes, if it has come.
    ///
    /// # Errors
    /// A reply has come, although no request is in flight.
    fn take_confirmation(&mut self) -> Result<(), LayerError> {
        if self.take()? { Err(unasked_reply()) } else { Ok(()) }
    }

    /// Returns whether the other end has confirmed the sizes.
    fn is_confirmed(&self) -> bool;

    /// Returns the most requests of these sizes that may be in flight.
    fn window(&self) -> usize;

    /// Chooses the way in which later requests move their bytes, from the next announcement on. Returns the
    /// way that the layer has.
    fn set_transfer(&mut self, transfer: Transfer) -> Transfer {
        transfer.by_messages()
    }
}

impl<W: SizedWire> SizedRequester for RealRequester<W> {
    fn largest(&self) -> usize {
        self.wire().largest()
    }

    fn set_sizes(&mut self, request_bytes: usize, reply_bytes: usize) -> Result<(), LayerError> {
        let mut wait = PeerWait::new(self.waits());
        let wire = self.wire_mut();
        wire.announce(Sizes::new(request_bytes, reply_bytes)?)?;
        wire.take_confirmation()?;
        while !wire.is_confirmed() {
            wait.after_empty_poll(|timeout| wire.block(timeout))?;
            wire.take_confirmation()?;
        }
        let window = wire.window();
        self.set_max_window(window);
        Ok(())
    }

    fn set_transfer(&mut self, transfer: Transfer) -> Transfer {
        self.wire_mut().set_transfer(transfer)
    }

    fn set_meter(&mut self, meter: Box<dyn Meter>) {
        *self.meter() = Some(meter);
    }

    fn accounts(&mut self) -> Result<Accounts, LayerError> {
        let meter = self.meter().as_mut();
        meter
            .ok_or_else(|| LayerError::new("the layer was opened without accounts of processor time"))?
            .accounts()
    }

    fn sleep(&mut self, d_ns: f64) {
        std::thread::sleep(Duration::from_nanos(d_ns as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::FILL;
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
