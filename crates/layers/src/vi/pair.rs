//! Two connected VIs in one process, whose operations are made one by one.

use super::descriptors::{filled, work};
use super::rendezvous::{discriminator, wait_until};
use crate::peer_wait::PEER_TIMEOUT;
use netdyno_measure::layer::LayerError;
use netdyno_stack::vi::{Address, Consumer, Operation, Side, ViHandle, WaitHandle, WireKind};
use std::time::{Duration, Instant};

/// The descriptor of the message that is sent.
const MESSAGE: usize = 0;
/// The descriptor of the receive.
const RECEIVE: usize = 1;
/// Longest sleep while the two ends connect.
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// One end. It has one message to send, and one receive, which is posted.
pub(crate) struct ViEnd {
    consumer: Consumer,
    vi: ViHandle,
}

impl ViEnd {
    /// Returns two ends that are connected.
    pub(crate) fn pair(wires: [WireKind; 2], size_bytes: usize) -> Result<[Self; 2], LayerError> {
        let [one, other] = wires.map(|wire| Self::open(wire, size_bytes));
        let (mut one, mut other) = (one?, other?);
        let (ours, theirs) = (discriminator()?, discriminator()?);
        let wait = other.consumer.wait(&theirs).map_err(LayerError::new)?;
        let address = Address { host: other.consumer.host(), discriminator: theirs.to_vec() };
        one.consumer.ask(one.vi, &ours, address, PEER_TIMEOUT).map_err(LayerError::new)?;
        other.accept(wait, &mut one)?;
        let vi = one.vi;
        wait_until(&mut one.consumer, |consumer| consumer.is_answered(vi).map_err(LayerError::new))?;
        Ok([one, other])
    }

    fn open(wire: WireKind, size_bytes: usize) -> Result<Self, LayerError> {
        let mut consumer = Consumer::open(wire, RECEIVE + 1).map_err(LayerError::new)?;
        let [data, room] =
            [filled(&mut consumer, size_bytes.max(1))?, filled(&mut consumer, size_bytes.max(1))?];
        let vi = consumer.create_vi(None).map_err(LayerError::new)?;
        let message = work(&consumer, Operation::Send, (data, 0, size_bytes), None);
        consumer.describe(MESSAGE, &message);
        let receive = work(&consumer, Operation::Receive, (room, 0, size_bytes), None);
        consumer.describe(RECEIVE, &receive);
        let mut end = Self { consumer, vi };
        end.post_receive()?;
        Ok(end)
    }

    /// Accepts the request of the other end, which makes progress meanwhile.
    fn accept(&mut self, wait: WaitHandle, asking: &mut Self) -> Result<(), LayerError> {
        let until = Instant::now() + PEER_TIMEOUT;
        while !self.consumer.accept(wait, self.vi).map_err(LayerError::new)? {
            if Instant::now() > until {
                return Err(LayerError(format!(
                    "two VIs of this process did not connect within {PEER_TIMEOUT:?}"
                )));
            }
            asking.consumer.is_answered(asking.vi).map_err(LayerError::new)?;
            self.consumer.sleep(LONGEST_SLEEP);
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn post_send(&mut self) -> Result<(), LayerError> {
        self.consumer.post(self.vi, Side::Send, MESSAGE).map_err(LayerError::new)
    }

    #[inline(always)]
    pub(crate) fn post_receive(&mut self) -> Result<(), LayerError> {
        self.consumer.post(self.vi, Side::Receive, RECEIVE).map_err(LayerError::new)
    }

    /// Looks once at a queue. Returns whether its descriptor is completed.
    #[inline(always)]
    pub(crate) fn is_done(&mut self, side: Side) -> Result<bool, LayerError> {
        Ok(self.consumer.done(self.vi, side).map_err(LayerError::new)?.is_some())
    }
}
