//! Requests and replies on a VI, of one size or of any size. Every message is one send into a posted receive,
//! however long the message is.
//!
//! One more receive is posted than requests may be in flight, because a replier posts a receive again only
//! after its reply. All receives name the same memory, which has the size of the largest message: every
//! message lands at its beginning. A message with immediate data is an announcement of sizes.

use super::WINDOW;
use super::descriptors::{filled, work};
use super::rendezvous::Link;
use crate::options::LayerOptions;
use crate::payload::wrong_size;
use crate::peer_wait::PeerWait;
use crate::requests::Wire;
use crate::sized::{ANNOUNCEMENT_LEN, SizedEnd, SizedWire, Sizes};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use netdyno_measure::logp::data::Transport;
use netdyno_stack::vi::{Consumer, Finished, Operation, PieceId, Side, WireKind};
use std::time::Duration;

/// The number of posted receives.
const RECEIVES: usize = WINDOW + 1;
/// The descriptor of a message.
const MESSAGE: usize = 0;
/// The descriptor of an announcement.
const ANNOUNCEMENT: usize = 1;
/// The first descriptor of a receive. The descriptors behind it are those of the other receives.
const FIRST_RECEIVE: usize = 2;
/// The immediate data of an announcement. The receiver checks only that there is immediate data.
const MARK: u32 = 0;

/// Either end of the wire.
pub(super) struct ViRequests {
    pub(super) link: Link,
    wait: Wait,
    end: SizedEnd,
    largest: usize,
    /// The memory that is sent: a message, and an announcement behind it.
    data: PieceId,
    /// The memory that messages land in.
    room: PieceId,
}

impl ViRequests {
    /// Opens a VI for messages of the options' size.
    pub(super) fn of_one_size(
        wire: WireKind,
        is_requester: bool,
        options: &LayerOptions,
    ) -> Result<Self, LayerError> {
        let sizes = Sizes::new(options.size_bytes, options.size_bytes)?;
        Self::open(wire, SizedEnd::agreed(is_requester, sizes), options)
    }

    /// Opens a VI for messages whose sizes are announced.
    pub(super) fn of_any_size(
        wire: WireKind,
        is_requester: bool,
        options: &LayerOptions,
    ) -> Result<Self, LayerError> {
        Self::open(wire, SizedEnd::new(is_requester), options)
    }

    fn open(wire: WireKind, end: SizedEnd, options: &LayerOptions) -> Result<Self, LayerError> {
        let mut consumer = Consumer::open(wire, FIRST_RECEIVE + RECEIVES).map_err(LayerError::new)?;
        let largest = options.size_bytes;
        let data = filled(&mut consumer, largest + ANNOUNCEMENT_LEN)?;
        let room = filled(&mut consumer, largest.max(ANNOUNCEMENT_LEN))?;
        let vi = consumer.create_vi(None).map_err(LayerError::new)?;
        let announcement = (data, largest, ANNOUNCEMENT_LEN);
        let announcement = work(&consumer, Operation::Send, announcement, Some(MARK));
        consumer.describe(ANNOUNCEMENT, &announcement);
        let receive = (room, 0, largest.max(ANNOUNCEMENT_LEN));
        let receive = work(&consumer, Operation::Receive, receive, None);
        for descriptor in FIRST_RECEIVE..FIRST_RECEIVE + RECEIVES {
            consumer.describe(descriptor, &receive);
            consumer.post(vi, Side::Receive, descriptor).map_err(LayerError::new)?;
        }
        let link = Link { consumer, vi };
        let mut requests = Self { link, wait: options.wait, end, largest, data, room };
        requests.describe_message();
        Ok(requests)
    }

    /// Lays out the message that is sent from now on.
    fn describe_message(&mut self) {
        let consumer = &mut self.link.consumer;
        let message = work(consumer, Operation::Send, (self.data, 0, self.end.outgoing()), None);
        consumer.describe(MESSAGE, &message);
    }

    /// Posts a send and waits until the wire has it. Messages that arrive meanwhile find posted receives.
    #[inline(always)]
    fn post_send(&mut self, descriptor: usize) -> Result<(), LayerError> {
        let Link { consumer, vi } = &mut self.link;
        consumer.post(*vi, Side::Send, descriptor).map_err(LayerError::new)?;
        let mut wait = PeerWait::new(self.wait);
        while self.link.consumer.done(self.link.vi, Side::Send).map_err(LayerError::new)?.is_none() {
            wait.after_empty_poll_of(&mut self.link, Link::sleep, |link| link.transport())?;
        }
        Ok(())
    }

    #[inline(always)]
    fn post_receive(&mut self, descriptor: usize) -> Result<(), LayerError> {
        let Link { consumer, vi } = &mut self.link;
        consumer.post(*vi, Side::Receive, descriptor).map_err(LayerError::new)
    }

    fn send_announcement(&mut self, bytes: [u8; ANNOUNCEMENT_LEN]) -> Result<(), LayerError> {
        self.link.consumer.write(self.data, self.largest, &bytes);
        self.post_send(ANNOUNCEMENT)
    }

    /// Returns the receive that a message has come into, if one has. The caller has to post it again.
    #[inline(always)]
    fn take_receive(&mut self) -> Result<Option<usize>, LayerError> {
        let Link { consumer, vi } = &mut self.link;
        let done = consumer.done(*vi, Side::Receive).map_err(LayerError::new)?;
        let Some(Finished { descriptor, completion }) = done else { return Ok(None) };
        let len = completion.len as usize;
        if completion.immediate.is_some() {
            self.take_announcement(len)?;
            self.post_receive(descriptor)?;
            return Ok(None);
        }
        if len != self.end.incoming() {
            return Err(wrong_size(len, self.end.incoming()));
        }
        Ok(Some(descriptor))
    }

    fn take_announcement(&mut self, len: usize) -> Result<(), LayerError> {
        let mut bytes = [0; ANNOUNCEMENT_LEN];
        self.link.consumer.read(self.room, 0, &mut bytes);
        let sizes = Sizes::parse(&bytes[..len.min(ANNOUNCEMENT_LEN)], self.largest);
        if let Some(confirmation) = self.end.take(sizes)? {
            self.describe_message();
            self.send_announcement(confirmation)?;
        }
        Ok(())
    }
}

impl Wire for ViRequests {
    #[inline(always)]
    fn send(&mut self) -> Result<(), LayerError> {
        self.post_send(MESSAGE)
    }

    #[inline(always)]
    fn take(&mut self) -> Result<bool, LayerError> {
        let Some(receive) = self.take_receive()? else { return Ok(false) };
        self.post_receive(receive)?;
        Ok(true)
    }

    /// Sends the reply before it posts the receive again.
    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        let Some(receive) = self.take_receive()? else { return Ok(false) };
        self.post_send(MESSAGE)?;
        self.post_receive(receive)?;
        Ok(true)
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.link.consumer.sleep(timeout);
        Ok(())
    }

    fn transport(&self) -> Option<Transport> {
        self.link.transport()
    }
}

impl SizedWire for ViRequests {
    fn largest(&self) -> usize {
        self.largest
    }

    fn announce(&mut self, sizes: Sizes) -> Result<(), LayerError> {
        self.end.announce(sizes);
        self.describe_message();
        self.send_announcement(sizes.announcement())
    }

    fn is_confirmed(&self) -> bool {
        self.end.is_confirmed()
    }

    fn window(&self) -> usize {
        WINDOW
    }
}
