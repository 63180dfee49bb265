//! Requests and replies on a VI, of one size or of any: a message is one send into a receive that is
//! posted, however long it is.
//!
//! As many receives are posted as requests may be without a reply, and one more, for a replier posts one
//! again only when its reply is gone. All of them name the same memory, as large as the largest message:
//! each message lands at its beginning. A message with immediate data is an announcement of sizes.

use super::WINDOW;
use super::meeting::Link;
use crate::half::LayerOptions;
use crate::real::{Patience, Wire};
use crate::sized::{ANNOUNCEMENT_LEN, End, FILL, SizedWire, Sizes};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use netdyno_measure::logp::data::Transport;
use netdyno_stack::vi::{Consumer, Finished, Operation, PieceId, Side, WireKind, Work};
use std::time::Duration;

/// Receives that are posted.
const RECEIVES: usize = WINDOW + 1;
/// Descriptors: of messages, of announcements, and from there on of receives.
const MESSAGE: usize = 0;
const ANNOUNCEMENT: usize = 1;
const FIRST_RECEIVE: usize = 2;
/// What an announcement has as immediate data: that it has any says what it is.
const MARK: u32 = 0;

/// A descriptor's work on one stretch of memory.
pub(crate) fn work(
    consumer: &Consumer,
    operation: Operation,
    (piece, offset, len): (PieceId, usize, usize),
    immediate: Option<u32>,
) -> Work {
    let segment = consumer.segment(piece, offset, len);
    let segments = [segment].into_iter().collect();
    Work { operation, immediate, is_fenced: false, segments, len: segment.len }
}

/// Memory that is registered, and filled.
pub(crate) fn filled(consumer: &mut Consumer, bytes: usize) -> Result<PieceId, LayerError> {
    let piece = consumer.allocate(bytes).map_err(LayerError::new)?;
    consumer.register(piece, false).map_err(LayerError::new)?;
    consumer.write(piece, 0, &vec![FILL; bytes]);
    Ok(piece)
}

/// Either end of the wire.
pub(super) struct ViRequests {
    pub(super) link: Link,
    wait: Wait,
    end: End,
    largest: usize,
    /// What is sent: a message, and an announcement behind it.
    data: PieceId,
    /// Where messages land.
    room: PieceId,
}

impl ViRequests {
    /// For messages of the one size that the options say.
    pub(super) fn of_one_size(
        wire: WireKind,
        is_requester: bool,
        options: &LayerOptions,
    ) -> Result<Self, LayerError> {
        let sizes = Sizes::new(options.size_bytes, options.size_bytes)?;
        Self::open(wire, End::agreed(is_requester, sizes), options)
    }

    /// For messages whose sizes are announced.
    pub(super) fn of_any_size(
        wire: WireKind,
        is_requester: bool,
        options: &LayerOptions,
    ) -> Result<Self, LayerError> {
        Self::open(wire, End::new(is_requester), options)
    }

    fn open(wire: WireKind, end: End, options: &LayerOptions) -> Result<Self, LayerError> {
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

    /// Lays out what is sent from now on.
    fn describe_message(&mut self) {
        let consumer = &mut self.link.consumer;
        let message = work(consumer, Operation::Send, (self.data, 0, self.end.outgoing()), None);
        consumer.describe(MESSAGE, &message);
    }

    /// Posts a send and waits until the wire has it. What comes meanwhile finds its receives.
    #[inline(always)]
    fn post_send(&mut self, descriptor: usize) -> Result<(), LayerError> {
        let Link { consumer, vi } = &mut self.link;
        consumer.post(*vi, Side::Send, descriptor).map_err(LayerError::new)?;
        let mut patience = Patience::new(self.wait);
        while consumer.done(*vi, Side::Send).map_err(LayerError::new)?.is_none() {
            patience.in_vain(|timeout| {
                consumer.sleep(timeout);
                Ok(())
            })?;
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

    /// The receive that a message has come into, if one has; it is to be posted again.
    #[inline(always)]
    fn come(&mut self) -> Result<Option<usize>, LayerError> {
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
            let expected = self.end.incoming();
            return Err(LayerError(format!("a message of {len} bytes came, {expected} were expected")));
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
        let Some(receive) = self.come()? else { return Ok(false) };
        self.post_receive(receive)?;
        Ok(true)
    }

    /// The reply goes first.
    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        let Some(receive) = self.come()? else { return Ok(false) };
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

    fn is_confirmed(&mut self) -> Result<bool, LayerError> {
        if self.take()? {
            return Err(LayerError::new("a reply came that nothing was asked for"));
        }
        Ok(self.end.is_confirmed())
    }

    fn window(&self) -> usize {
        WINDOW
    }
}
