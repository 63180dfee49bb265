//! One-sided operations on a VI: RDMA write, RDMA write with immediate data, and RDMA read (Virtual Interface
//! Architecture Specification 1.0, section 2.4.2).
//!
//! An RDMA write at reliable reception completes when the bytes are in the target's memory. At the other levels
//! its completion says less. A flush then sends an empty message behind the writes, which the target's process
//! answers: messages and writes of a VI keep their order. At level unreliable that message, its answer or a notification may
//! be lost. The initiator then asks again, with a number as immediate data, which the answer repeats.

use super::WINDOW;
use super::descriptors::{filled, work};
use super::key;
use super::rendezvous::Link;
use crate::options::LayerOptions;
use crate::peer_wait::PeerWait;
use crate::requests::Responder;
use crate::time::{RealTime, in_real_time};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::{Initiator, LayerError};
use netdyno_measure::logp::data::Transport;
use netdyno_measure::onesided::data::{Access, Level, Operation};
use netdyno_stack::vi::{
    Consumer, Finished, Level as ViLevel, Operation as Descriptor, PieceId, Remote, Side, WireKind,
};
use std::time::Duration;

/// The descriptors of operations are the first ones. This one is that of an empty message.
const EMPTY: usize = WINDOW;
/// The first descriptor of a receive. The descriptors behind it are those of the other receives.
const FIRST_RECEIVE: usize = EMPTY + 1;
/// The number of posted receives: one for each operation in flight, and one more for the message of a flush.
const RECEIVES: usize = WINDOW + 1;
/// The immediate data of a write, which is no number of a repeated question.
const MARK: u32 = 0;
/// Time without a completion after which the initiator of an unreliable VI asks again.
const ASK_AFTER: Duration = Duration::from_millis(50);

/// The operations of a reliable VI. An unreliable one has no RDMA reads.
const OPERATIONS: [Operation; 3] = [Operation::Put, Operation::PutNotify, Operation::Get];

/// Either end of the VI, with its memory.
pub(super) struct ViOneSided {
    pub(super) link: Link,
    level: Level,
    wait: Wait,
    /// The memory that puts read and gets write.
    local: PieceId,
    /// The memory that the peer may write to and read.
    open: PieceId,
    largest: usize,
}

impl ViOneSided {
    /// Opens a VI of the options' level, with memory of their size.
    pub(super) fn open(wire: WireKind, options: &LayerOptions) -> Result<Self, LayerError> {
        let &LayerOptions { access: Access { level, .. }, wait, size_bytes: largest, .. } = options;
        let mut consumer = Consumer::open(wire, FIRST_RECEIVE + RECEIVES).map_err(LayerError::new)?;
        let local = filled(&mut consumer, largest)?;
        let open = consumer.allocate(largest).map_err(LayerError::new)?;
        consumer.register(open, true).map_err(LayerError::new)?;
        consumer.touch(open);
        let of_vi = match level {
            Level::Unreliable => ViLevel::Unreliable,
            Level::Delivery => ViLevel::Delivery,
            Level::Reception => ViLevel::Reception,
        };
        let vi = consumer.create_vi_of(of_vi, None).map_err(LayerError::new)?;
        let receive = work(&consumer, Descriptor::Receive, (local, 0, 0), None);
        for descriptor in FIRST_RECEIVE..FIRST_RECEIVE + RECEIVES {
            consumer.describe(descriptor, &receive);
            consumer.post(vi, Side::Receive, descriptor).map_err(LayerError::new)?;
        }
        let mut end = Self { link: Link { consumer, vi }, level, wait, local, open, largest };
        end.describe_empty(None);
        Ok(end)
    }

    /// Returns the key of the memory that the peer may access.
    pub(super) fn key(&self) -> Vec<u8> {
        key::write(self.link.consumer.remote(self.open, 0))
    }

    /// Describes the empty message.
    fn describe_empty(&mut self, number: Option<u32>) {
        let empty = work(&self.link.consumer, Descriptor::Send, (self.local, 0, 0), number);
        self.link.consumer.describe(EMPTY, &empty);
    }

    #[inline(always)]
    fn post_send(&mut self, descriptor: usize) -> Result<(), LayerError> {
        let Link { consumer, vi } = &mut self.link;
        consumer.post(*vi, Side::Send, descriptor).map_err(LayerError::new)
    }

    /// Returns the descriptor of a send or RDMA operation that is complete, if there is one.
    #[inline(always)]
    fn take_sent(&mut self) -> Result<Option<usize>, LayerError> {
        let Link { consumer, vi } = &mut self.link;
        let done = consumer.done(*vi, Side::Send).map_err(LayerError::new)?;
        Ok(done.map(|Finished { descriptor, .. }| descriptor))
    }

    /// Takes a message or the notification of a write, and posts its receive again. Returns its number, if there was
    /// one.
    #[inline(always)]
    fn take_receive(&mut self) -> Result<Option<u32>, LayerError> {
        let Link { consumer, vi } = &mut self.link;
        let done = consumer.done(*vi, Side::Receive).map_err(LayerError::new)?;
        let Some(Finished { descriptor, completion }) = done else { return Ok(None) };
        consumer.post(*vi, Side::Receive, descriptor).map_err(LayerError::new)?;
        Ok(Some(completion.immediate.unwrap_or(MARK)))
    }
}

/// The target: answers each message and each notification with an empty message.
pub(super) struct ViTarget(pub(super) ViOneSided);

impl Responder for ViTarget {
    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        let Self(target) = self;
        let Some(number) = target.take_receive()? else { return Ok(false) };
        if number != MARK {
            target.describe_empty(Some(number));
        }
        target.post_send(EMPTY)?;
        let mut wait = PeerWait::new(target.wait);
        while target.take_sent()?.is_none() {
            wait.after_empty_poll(|timeout| target.link.sleep(timeout))?;
        }
        if number != MARK {
            target.describe_empty(None);
        }
        Ok(true)
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.0.link.sleep(timeout)
    }
}

/// The initiator.
pub(super) struct ViInitiator {
    end: ViOneSided,
    remote: Remote,
    time: RealTime,
    operation: Operation,
    /// Operations that were posted, and those whose descriptor is complete.
    posted: u64,
    completed: u64,
    /// Answers of the target that are awaited, and those that have come.
    asked: u64,
    answered: u64,
    /// Whether the descriptor of the empty message is in use.
    is_asking: bool,
    /// The number of the last question that was asked again, and what had been asked by then.
    repeated: u32,
    asked_then: u64,
}

impl ViInitiator {
    /// Returns the initiator of operations on the target's memory. Calibrates the clock.
    pub(super) fn new(end: ViOneSided, remote: Remote) -> Self {
        Self {
            end,
            remote,
            time: RealTime::calibrate(),
            operation: Operation::Put,
            posted: 0,
            completed: 0,
            asked: 0,
            answered: 0,
            is_asking: false,
            repeated: MARK,
            asked_then: 0,
        }
    }

    /// Takes what is complete. Returns whether anything was.
    #[inline(always)]
    fn progress(&mut self) -> Result<bool, LayerError> {
        let sent = self.end.take_sent()?;
        match sent {
            Some(EMPTY) => self.is_asking = false,
            Some(_) => self.completed += 1,
            None => {}
        }
        let answer = if self.asked == self.answered { None } else { self.end.take_receive()? };
        match answer {
            Some(MARK) => self.answered += 1,
            // What was asked before has been answered or is lost.
            Some(number) if number == self.repeated => self.answered = self.answered.max(self.asked_then),
            Some(_) | None => {}
        }
        Ok(sent.is_some() || answer.is_some())
    }

    /// Asks whether all operations before have arrived or are lost.
    #[cold]
    fn ask_again(&mut self) -> Result<(), LayerError> {
        if self.is_asking || self.asked == self.answered {
            return Ok(());
        }
        self.repeated = self.repeated.wrapping_add(1).max(MARK + 1);
        self.asked_then = self.asked;
        self.end.describe_empty(Some(self.repeated));
        self.end.post_send(EMPTY)?;
        self.is_asking = true;
        self.until(|all| !all.is_asking)?;
        self.end.describe_empty(None);
        Ok(())
    }

    /// Makes progress until `is_done`.
    #[inline(always)]
    fn until(&mut self, is_done: impl Fn(&Self) -> bool) -> Result<(), LayerError> {
        let mut wait = PeerWait::new(self.end.wait);
        let mut patience = ASK_AFTER;
        while !is_done(self) {
            if !self.progress()? {
                let waited = wait.after_empty_poll(|timeout| self.end.link.sleep(timeout));
                waited.map_err(|error| explained(error, self.end.level))?;
                if self.end.level == Level::Unreliable && wait.has_lasted(patience) {
                    patience += ASK_AFTER;
                    self.ask_again()?;
                }
            }
        }
        Ok(())
    }

    /// Returns whether one more operation may be in flight.
    #[inline(always)]
    fn has_room(&self) -> bool {
        self.posted - self.completed < WINDOW as u64 && self.asked - self.answered < WINDOW as u64
    }
}

/// Says what may have happened at a level at which nothing is sent again.
#[cold]
fn explained(LayerError(error): LayerError, level: Level) -> LayerError {
    LayerError(match level {
        Level::Unreliable => format!(
            "{error}; if a datagram was lost, nothing repeats it at level unreliable: use --level delivery, or keep \
             the machine free of other load"
        ),
        Level::Delivery | Level::Reception => error,
    })
}

in_real_time!(ViInitiator);

impl Initiator for ViInitiator {
    fn operations(&self) -> &[Operation] {
        match self.end.level {
            Level::Unreliable => &OPERATIONS[..2],
            Level::Delivery | Level::Reception => &OPERATIONS,
        }
    }

    fn largest(&self) -> usize {
        self.end.largest
    }

    fn choose(&mut self, operation: Operation, bytes: usize) -> Result<(), LayerError> {
        let (descriptor, immediate) = match operation {
            Operation::Put => (Descriptor::Write(self.remote), None),
            Operation::PutNotify => (Descriptor::Write(self.remote), Some(MARK)),
            Operation::Get => (Descriptor::Read(self.remote), None),
            Operation::FetchAdd => {
                return Err(LayerError::new("Virtual Interfaces have no atomic operations"));
            }
        };
        self.operation = operation;
        let consumer = &mut self.end.link.consumer;
        let described = work(consumer, descriptor, (self.end.local, 0, bytes), immediate);
        (0..WINDOW).for_each(|at| consumer.describe(at, &described));
        Ok(())
    }

    fn level(&self) -> Option<Level> {
        Some(self.end.level)
    }

    fn window(&self) -> usize {
        WINDOW
    }

    #[inline(always)]
    fn start(&mut self) -> Result<(), LayerError> {
        self.until(Self::has_room)?;
        self.end.post_send((self.posted % WINDOW as u64) as usize)?;
        self.posted += 1;
        self.asked += u64::from(self.operation == Operation::PutNotify);
        Ok(())
    }

    #[inline(always)]
    fn wait_local(&mut self) -> Result<(), LayerError> {
        self.until(|all| all.completed == all.posted)
    }

    #[inline(always)]
    fn flush(&mut self) -> Result<(), LayerError> {
        if self.operation == Operation::Put && self.end.level != Level::Reception {
            self.until(|all| !all.is_asking)?;
            self.end.post_send(EMPTY)?;
            self.is_asking = true;
            self.asked += 1;
        }
        self.until(|all| all.completed == all.posted && all.answered == all.asked && !all.is_asking)
    }

    fn transport(&self) -> Option<Transport> {
        self.end.link.transport()
    }
}
