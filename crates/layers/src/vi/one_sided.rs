//! One-sided operations on a VI: RDMA write, RDMA write with immediate data, and RDMA read (Virtual Interface
//! Architecture Specification 1.0, section 2.4.2).
//!
//! An RDMA write at reliable reception completes when the bytes are in the target's memory. At the other levels its
//! completion says less. A flush then sends an empty message behind the writes, which the target's process answers:
//! messages and writes of a VI keep their order. At level unreliable that message, its answer or a notification may
//! be lost or late. Each then has a number as immediate data, which the answer repeats, and the initiator asks again.

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
    Consumer, Finished, Level as ViLevel, Operation as Descriptor, PieceId, Remote, Side, WireKind, Work,
};
use std::time::Duration;

/// The descriptors of operations are the first ones. This one is that of an empty message.
const EMPTY: usize = WINDOW;
/// The first descriptor of a receive. The descriptors behind it are those of the other receives.
const FIRST_RECEIVE: usize = EMPTY + 1;
/// The number of posted receives: one for each operation in flight, and one more for the message of a flush.
const RECEIVES: usize = WINDOW + 1;
/// The immediate data of a write at a reliable level.
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
    /// The empty message.
    empty: Work,
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
        let empty = work(&consumer, Descriptor::Send, (local, 0, 0), None);
        consumer.describe(EMPTY, &empty);
        Ok(Self { link: Link { consumer, vi }, level, wait, local, empty, open, largest })
    }

    /// Returns the key of the memory that the peer may access.
    pub(super) fn key(&self) -> Vec<u8> {
        key::write(self.link.consumer.remote(self.open, 0))
    }

    /// Sends the empty message. Only an unreliable one tells its number.
    #[inline(always)]
    fn send_empty(&mut self, number: u32) -> Result<(), LayerError> {
        if self.level == Level::Unreliable {
            self.empty.immediate = Some(number);
            self.link.consumer.describe(EMPTY, &self.empty);
        }
        self.post_send(EMPTY)
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

    /// Takes a message or the notification of a write, and posts its receive again. Returns its number, if anything was
    /// there.
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
        target.send_empty(number)?;
        let mut wait = PeerWait::new(target.wait);
        while target.take_sent()?.is_none() {
            wait.after_empty_poll(|timeout| target.link.sleep(timeout))?;
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
    /// The work of the operation.
    work: Work,
    /// Operations that were posted, and those whose descriptor is complete.
    posted: u64,
    completed: u64,
    /// Questions to the target, and those that are answered or lost. The number of a question is its place among them.
    asked: u64,
    answered: u64,
    /// Whether the descriptor of the empty message is in use.
    is_asking: bool,
}

impl ViInitiator {
    /// Returns the initiator of operations on the target's memory. Calibrates the clock.
    pub(super) fn new(end: ViOneSided, remote: Remote) -> Self {
        let work = end.empty.clone();
        Self {
            end,
            remote,
            time: RealTime::calibrate(),
            operation: Operation::Put,
            work,
            posted: 0,
            completed: 0,
            asked: 0,
            answered: 0,
            is_asking: false,
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
        if let Some(number) = answer {
            self.answered += match self.end.level {
                Level::Unreliable => newly_answered(number, self.asked, self.answered),
                Level::Delivery | Level::Reception => 1,
            };
        }
        Ok(sent.is_some() || answer.is_some())
    }

    /// Asks whether all operations before have arrived or are lost.
    #[cold]
    fn ask_again(&mut self) -> Result<(), LayerError> {
        if self.is_asking || self.asked == self.answered {
            return Ok(());
        }
        self.end.send_empty(self.asked as u32)?;
        self.is_asking = true;
        self.until(|all| !all.is_asking)
    }

    /// Makes progress until `is_done`.
    #[inline(always)]
    fn until(&mut self, is_done: impl Fn(&Self) -> bool) -> Result<(), LayerError> {
        let mut wait = PeerWait::new(self.end.wait);
        let mut patience = ASK_AFTER;
        while !is_done(self) {
            if !self.progress()? {
                wait.after_empty_poll_of(&mut self.end.link, Link::sleep, |link| link.transport())
                    .map_err(|error| explained(error, self.end.level))?;
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

/// Returns how many of the questions that are open an answer with this number ends: that question, and those before it,
/// which have been answered or are lost. An answer that is late ends none.
fn newly_answered(number: u32, asked: u64, answered: u64) -> u64 {
    let ended = u64::from(number.wrapping_sub(answered as u32));
    if ended <= asked - answered { ended } else { 0 }
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
        self.work = work(consumer, descriptor, (self.end.local, 0, bytes), immediate);
        (0..WINDOW).for_each(|at| consumer.describe(at, &self.work));
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
        let descriptor = (self.posted % WINDOW as u64) as usize;
        if self.operation == Operation::PutNotify {
            self.asked += 1;
            if self.end.level == Level::Unreliable {
                self.work.immediate = Some(self.asked as u32);
                self.end.link.consumer.describe(descriptor, &self.work);
            }
        }
        self.end.post_send(descriptor)?;
        self.posted += 1;
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
            self.asked += 1;
            self.end.send_empty(self.asked as u32)?;
            self.is_asking = true;
        }
        self.until(|all| all.completed == all.posted && all.answered == all.asked && !all.is_asking)
    }

    fn transport(&self) -> Option<Transport> {
        self.end.link.transport()
    }
}

#[cfg(test)]
mod tests {
    use super::newly_answered;

    #[test]
    fn an_answer_ends_its_question_and_those_before_but_a_late_one_ends_none() {
        // The answer, the questions so far, and those of them that are answered.
        let cases = [(6, 9, 5, 1), (9, 9, 5, 4), (5, 9, 5, 0), (3, 9, 5, 0), (10, 9, 5, 0)];
        for (number, asked, answered, ended) in cases {
            assert_eq!(newly_answered(number, asked, answered), ended, "{number} of {asked}");
        }
        let many = u64::from(u32::MAX);
        assert_eq!(newly_answered(1, many + 2, many), 2);
        assert_eq!(newly_answered(u32::MAX - 1, many + 2, many), 0);
    }
}
