//! One-sided operations of Active Messages: a store into the target's memory, with and without an answer of its
//! handler, and a get from there (Culler et al. 1996, "Bulk transfers").
//!
//! A flush of stores without an answer sends a short request behind them, which the target's handler answers:
//! stores and requests to a peer keep their order.

use super::endpoint;
use super::store::{StoreEndpoint, StoreLink};
use crate::half::{Half, Replier};
use crate::options::LayerOptions;
use crate::payload::FILL;
use crate::peer_wait::PeerWait;
use crate::requests::{RealReplier, Responder};
use crate::time::{RealTime, in_real_time};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::{Initiator, LayerError};
use netdyno_measure::logp::data::Transport;
use netdyno_measure::onesided::data::Operation;
use netdyno_measure::task::{OneSided, Subject};
use netdyno_stack::am::{Handlers, Memory, Wire as Way};
use std::time::Duration;

/// The handler index of stores that nobody answers.
const QUIET: u8 = 0;
/// The handler index of stores and requests that the handler answers, of the answers, and of gets.
const ANSWERED: u8 = 1;

/// The operations of Active Messages.
const OPERATIONS: [Operation; 3] = [Operation::Put, Operation::PutNotify, Operation::Get];

/// The state of the handlers.
#[derive(Default)]
struct OneSidedState {
    /// Answers and gets that have come.
    came: u64,
    /// Why the peer refused an operation, if it did.
    refused: Option<String>,
}

fn handlers() -> Handlers<OneSidedState> {
    let mut handlers = Handlers::new();
    handlers.on_store(QUIET, |_: &mut OneSidedState, _| {});
    handlers.on_store(ANSWERED, |_: &mut OneSidedState, stored| stored.reply(ANSWERED, []));
    handlers.on_request(ANSWERED, |_: &mut OneSidedState, request| request.reply(ANSWERED, []));
    handlers.on_reply(ANSWERED, |state: &mut OneSidedState, _| state.came += 1);
    handlers.on_fetched(ANSWERED, |state: &mut OneSidedState, _| state.came += 1);
    handlers.on_refused(|state, refused| state.refused = Some(refused.to_string()));
    handlers
}

/// This process's half for one-sided operations.
pub(crate) struct OneSidedAmHalf {
    end: StoreEndpoint<OneSidedState>,
    window: usize,
    options: LayerOptions,
}

impl OneSidedAmHalf {
    /// Opens an endpoint, a port on `way`, and memory of the options' size.
    pub(crate) fn open(way: Way, options: LayerOptions) -> Result<Self, LayerError> {
        let end = StoreEndpoint::open(way, handlers(), options.size_bytes, &options)?;
        Ok(Self { end, window: endpoint::window(way) as usize, options })
    }

    fn connect(self, peer: &[u8]) -> Result<AmOneSided, LayerError> {
        Ok(AmOneSided {
            end: self.end.connect(peer)?,
            state: OneSidedState::default(),
            wait: self.options.wait,
        })
    }
}

impl Half for OneSidedAmHalf {
    fn address(&self) -> Vec<u8> {
        self.end.address()
    }

    fn library(&self) -> Option<&str> {
        self.end.description()
    }

    fn requester(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Subject>, LayerError> {
        let (window, largest) = (self.window, self.options.size_bytes);
        let mut end = self.connect(peer)?;
        let local = end.end.endpoint.allocate(largest).map_err(LayerError::new)?;
        Ok(Box::new(OneSided(AmInitiator {
            end,
            time: RealTime::calibrate(),
            data: vec![FILL; largest],
            local,
            window,
            operation: Operation::Put,
            bytes: 1,
            asked: 0,
        })))
    }

    fn replier(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Replier>, LayerError> {
        let wait = self.options.wait;
        Ok(Box::new(RealReplier::new(self.connect(peer)?, wait)))
    }
}

/// Either end.
struct AmOneSided {
    end: StoreLink<OneSidedState>,
    state: OneSidedState,
    wait: Wait,
}

impl AmOneSided {
    /// Polls. Returns whether a handler ran.
    #[inline(always)]
    fn poll(&mut self) -> Result<bool, LayerError> {
        let handled = self.end.endpoint.poll(&mut self.state).map_err(LayerError::new)?;
        match self.state.refused.take() {
            Some(refused) => Err(LayerError(refused)),
            None => Ok(handled > 0),
        }
    }
}

impl Responder for AmOneSided {
    /// Polls: the handlers answer.
    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        self.poll()
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.end.endpoint.idle(timeout);
        Ok(())
    }
}

/// The initiator.
struct AmInitiator {
    end: AmOneSided,
    time: RealTime,
    /// The bytes that are stored.
    data: Vec<u8>,
    /// The memory that gets write to.
    local: Memory,
    window: usize,
    operation: Operation,
    bytes: usize,
    /// Answers and gets that are awaited, in all.
    asked: u64,
}

impl AmInitiator {
    /// Polls until all but `left` of the awaited answers and gets have come.
    #[inline(always)]
    fn until(&mut self, left: u64) -> Result<(), LayerError> {
        let mut wait = PeerWait::new(self.end.wait);
        while self.asked.saturating_sub(self.end.state.came) > left {
            if !self.end.poll()? {
                wait.after_empty_poll_of(
                    &mut self.end,
                    |end, timeout| end.block(timeout),
                    |end| end.end.transport(),
                )?;
            }
        }
        Ok(())
    }
}

in_real_time!(AmInitiator);

impl Initiator for AmInitiator {
    fn operations(&self) -> &[Operation] {
        &OPERATIONS
    }

    fn largest(&self) -> usize {
        self.data.len()
    }

    fn choose(&mut self, operation: Operation, bytes: usize) -> Result<(), LayerError> {
        if !OPERATIONS.contains(&operation) {
            return Err(LayerError::new("Active Messages have no atomic operations"));
        }
        (self.operation, self.bytes) = (operation, bytes);
        // Attaching may take a round trip, which belongs to no operation.
        self.end.end.attached(&mut self.end.state).map(drop)
    }

    fn window(&self) -> usize {
        self.window
    }

    #[inline(always)]
    fn start(&mut self) -> Result<(), LayerError> {
        if self.operation != Operation::Put {
            self.until(self.window as u64 - 1)?;
            self.asked += 1;
        }
        let AmOneSided { end, state, .. } = &mut self.end;
        let (target, data) = (end.attached(state)?.at(0), &self.data[..self.bytes]);
        match self.operation {
            Operation::Get => end.endpoint.get(state, target, self.local.range(0, self.bytes), ANSWERED, []),
            Operation::PutNotify => end.endpoint.store(state, target, data, ANSWERED, []),
            _ => end.endpoint.store(state, target, data, QUIET, []),
        }
        .map_err(LayerError::new)
    }

    /// Waits for gets. A store has returned once its memory is free.
    #[inline(always)]
    fn wait_local(&mut self) -> Result<(), LayerError> {
        if self.operation == Operation::Get { self.until(0) } else { Ok(()) }
    }

    #[inline(always)]
    fn flush(&mut self) -> Result<(), LayerError> {
        if self.operation == Operation::Put {
            self.asked += 1;
            let AmOneSided { end, state, .. } = &mut self.end;
            end.endpoint.request(state, end.peer, ANSWERED, []).map_err(LayerError::new)?;
        }
        self.until(0)
    }

    fn transport(&self) -> Option<Transport> {
        self.end.end.transport()
    }
}
