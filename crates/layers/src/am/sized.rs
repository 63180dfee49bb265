//! Requests of any size between two processes. Up to four words travel as a short message. A longer message
//! is a store into the peer's memory, which the peer answers with a short reply or with a store. Where a get is
//! asked for, the requester gets the bytes of a reply from the peer's memory.
//!
//! A store copies its bytes into the peer's memory, and the peer's handler runs after that: the receiver's
//! processor need not touch the bytes. Each end has one memory of the size of the largest message. Every
//! message lands at the beginning of it.

use super::endpoint;
use super::short::{with_words, words};
use super::store::{StoreEndpoint, StoreLink};
use crate::half::{Half, Replier};
use crate::options::LayerOptions;
use crate::payload::FILL;
use crate::requests::{RealReplier, RealRequester, Wire};
use crate::sized::{SizedWire, Sizes};
use netdyno_measure::layer::{LayerError, Transfer};
use netdyno_measure::logp::data::Transport;
use netdyno_measure::task::{AnySize, Subject};
use netdyno_stack::am::{Handlers, Request, Stored, Wire as Way};
use std::time::Duration;

/// The handler index of requests and stores with data.
const DATA: u8 = 0;
/// The handler index of requests that announce sizes.
const ANNOUNCEMENT: u8 = 1;
/// The handler index of requests that confirm an announcement.
const CONFIRMATION: u8 = 2;

/// The state of the handlers.
#[derive(Default)]
struct SizedState {
    /// Messages with data that have arrived: at the requester, replies; at the replier, requests that it has
    /// to answer with a store.
    came: u64,
    /// The number of words of a reply that the handler sends; `None` if the reply is a store.
    reply_words: Option<usize>,
    /// The requester's latest announcement, until it is confirmed.
    announced: Option<[u64; 2]>,
    /// The replier's latest confirmation.
    confirmed: Option<[u64; 2]>,
    /// Why the peer refused a store, if it did.
    refused: Option<String>,
}

fn on_data(state: &mut SizedState, request: Request<'_>) {
    match state.reply_words {
        Some(words) => with_words!(words, |words| request.reply(DATA, words)),
        None => state.came += 1,
    }
}

fn on_store(state: &mut SizedState, stored: Stored<'_>) {
    match state.reply_words {
        Some(words) => with_words!(words, |words| stored.reply(DATA, words)),
        None => state.came += 1,
    }
}

fn handlers() -> Handlers<SizedState> {
    let mut handlers = Handlers::new();
    handlers.on_request(DATA, on_data);
    handlers.on_store(DATA, on_store);
    handlers.on_reply(DATA, |state: &mut SizedState, _| state.came += 1);
    handlers.on_fetched(DATA, |state: &mut SizedState, _| state.came += 1);
    handlers.on_request(ANNOUNCEMENT, |state: &mut SizedState, request| {
        let [request_bytes, reply_bytes, ..] = request.words();
        state.announced = Some([request_bytes, reply_bytes]);
    });
    handlers.on_request(CONFIRMATION, |state: &mut SizedState, request| {
        let [request_bytes, reply_bytes, ..] = request.words();
        state.confirmed = Some([request_bytes, reply_bytes]);
    });
    handlers.on_refused(|state, refused| state.refused = Some(refused.to_string()));
    handlers
}

/// This process's half for requests of any size.
pub(crate) struct SizedAmHalf {
    end: StoreEndpoint<SizedState>,
    window: usize,
    options: LayerOptions,
}

impl SizedAmHalf {
    /// Opens an endpoint, a port on `way`, and memory for the largest message.
    pub(crate) fn open(way: Way, options: LayerOptions) -> Result<Self, LayerError> {
        let end = StoreEndpoint::open(way, handlers(), options.size_bytes, &options)?;
        Ok(Self { end, window: endpoint::window(way) as usize, options })
    }

    fn connect(self, peer: &[u8], is_requester: bool) -> Result<SizedAm, LayerError> {
        Ok(SizedAm {
            end: self.end.connect(peer)?,
            state: SizedState::default(),
            taken: 0,
            is_requester,
            sizes: Sizes::SMALLEST,
            window: self.window,
            transfer: Transfer::Request,
            data: vec![FILL; self.options.size_bytes],
        })
    }
}

impl Half for SizedAmHalf {
    fn address(&self) -> Vec<u8> {
        self.end.address()
    }

    fn library(&self) -> Option<&str> {
        self.end.description()
    }

    fn requester(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Subject>, LayerError> {
        let (wait, window) = (self.options.wait, self.window);
        Ok(Box::new(AnySize(RealRequester::new(self.connect(peer, true)?, wait, window))))
    }

    fn replier(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Replier>, LayerError> {
        let wait = self.options.wait;
        Ok(Box::new(RealReplier::new(self.connect(peer, false)?, wait)))
    }
}

/// Either end of the wire.
struct SizedAm {
    end: StoreLink<SizedState>,
    state: SizedState,
    taken: u64,
    is_requester: bool,
    sizes: Sizes,
    window: usize,
    /// The way in which requests move their bytes.
    transfer: Transfer,
    data: Vec<u8>,
}

impl SizedAm {
    fn outgoing(&self) -> usize {
        (if self.is_requester { self.sizes.request } else { self.sizes.reply }) as usize
    }

    #[inline(always)]
    fn poll(&mut self) -> Result<bool, LayerError> {
        let handled = self.end.endpoint.poll(&mut self.state).map_err(LayerError::new)?;
        match self.state.refused.take() {
            Some(refused) => Err(LayerError(refused)),
            None => Ok(handled > 0),
        }
    }

    /// Gets bytes from the peer's memory into the memory of this process, as many as a reply has.
    fn get(&mut self) -> Result<(), LayerError> {
        let bytes = self.sizes.reply as usize;
        let Self { end, state, .. } = self;
        let remote = end.attached(state)?;
        end.endpoint.get(state, remote.at(0), end.memory.range(0, bytes), DATA, []).map_err(LayerError::new)
    }

    /// Confirms an announcement at the replier, once it can send replies of the announced size.
    fn confirm(&mut self, announced: [u64; 2]) -> Result<(), LayerError> {
        let [request, reply] = announced.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let fits = |bytes| (1..=self.data.len()).contains(&bytes);
        if !fits(request) || !fits(reply) {
            return Err(LayerError::new("the other process announces sizes that cannot be"));
        }
        self.end.attached(&mut self.state)?;
        self.sizes = Sizes::new(request, reply)?;
        self.state.reply_words = words(reply);
        let Self { end, state, .. } = self;
        end.endpoint.request(state, end.peer, CONFIRMATION, announced).map_err(LayerError::new)
    }
}

impl Wire for SizedAm {
    #[inline(always)]
    fn send(&mut self) -> Result<(), LayerError> {
        let bytes = self.outgoing();
        if self.transfer == Transfer::Get {
            return self.get();
        }
        if let Some(words) = words(bytes).filter(|_| self.transfer != Transfer::Store) {
            let Self { end, state, .. } = self;
            return with_words!(words, |words| end.endpoint.request(state, end.peer, DATA, words))
                .map_err(LayerError::new);
        }
        let Self { end, state, data, .. } = self;
        let remote = end.attached(state)?;
        end.endpoint.store(state, remote.at(0), &data[..bytes], DATA, []).map_err(LayerError::new)
    }

    #[inline(always)]
    fn take(&mut self) -> Result<bool, LayerError> {
        if self.state.came == self.taken {
            self.poll()?;
        }
        let found = self.state.came != self.taken;
        self.taken += u64::from(found);
        Ok(found)
    }

    /// Polls. Handlers send short replies; this function sends replies that are stores.
    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        let handled = self.poll()?;
        if let Some(announced) = self.state.announced.take() {
            self.confirm(announced)?;
        }
        while self.taken < self.state.came {
            self.taken += 1;
            self.send()?;
        }
        Ok(handled)
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.end.endpoint.idle(timeout);
        Ok(())
    }

    fn transport(&self) -> Option<Transport> {
        self.end.transport()
    }
}

impl SizedWire for SizedAm {
    fn largest(&self) -> usize {
        self.data.len()
    }

    fn announce(&mut self, sizes: Sizes) -> Result<(), LayerError> {
        self.sizes = sizes;
        self.state.confirmed = None;
        let announced = [u64::from(sizes.request), u64::from(sizes.reply)];
        let Self { end, state, .. } = self;
        end.endpoint.request(state, end.peer, ANNOUNCEMENT, announced).map_err(LayerError::new)?;
        end.attached(state).map(drop)
    }

    /// Polls: the handler takes the confirmation.
    fn take_confirmation(&mut self) -> Result<(), LayerError> {
        self.poll().map(drop)
    }

    fn is_confirmed(&self) -> bool {
        self.state.confirmed == Some([u64::from(self.sizes.request), u64::from(self.sizes.reply)])
    }

    fn window(&self) -> usize {
        self.window
    }

    /// Chooses a way. The peer's handlers answer requests and stores alike, and its endpoint serves gets.
    fn set_transfer(&mut self, transfer: Transfer) -> Transfer {
        self.transfer = transfer;
        transfer
    }
}
