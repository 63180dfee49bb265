//! Active Messages of any size: up to four words as a short message, more as a store into
//! memory of the other end, which is answered by a small reply or by a store in return.
//!
//! A store of n bytes copies them into the other end's memory, where the handler then fires:
//! a receiver's processor need not touch them. Both ends have one memory as large as the
//! largest message; each message lands at its beginning.

use super::{FILL, SizedWire, Sizes};
use crate::exposed::{Connected, Unconnected};
use crate::half::{Half, LayerOptions, Replier};
use crate::real::{RealReplier, RealRequester, Wire};
use netdyno_measure::layer::LayerError;
use netdyno_measure::logp::data::Transport;
use netdyno_measure::task::{AnySize, Subject};
use netdyno_stack::am::{Handlers, Request, Stored, Wire as Way};
use std::time::Duration;

/// A message of up to four words travels in a cell.
const SHORT_AT_MOST: usize = 32;
const WORD: usize = 8;

/// Handler indices of requests and stores: data, and an announcement of sizes.
const DATA: u8 = 0;
const ANNOUNCEMENT: u8 = 1;
/// Handler index of requests that confirm an announcement.
const CONFIRMATION: u8 = 2;

/// What the handlers see and count.
#[derive(Default)]
struct Tally {
    /// Data that came: replies at the requester, requests to be answered by a store at the
    /// replier.
    came: u64,
    /// Words of a reply that a handler can send; `None` where it takes a store.
    reply_words: Option<usize>,
    /// What the requester announced last.
    announced: Option<[u64; 2]>,
    /// What the replier confirmed last.
    confirmed: Option<[u64; 2]>,
    /// Why the peer refused a store, where it did.
    refused: Option<String>,
}

/// Calls `$send` with as many words as `$words` says.
macro_rules! with_words {
    ($words:expr, $send:expr) => {
        match $words {
            4 => ($send)([1, 2, 3, 4]),
            3 => ($send)([1, 2, 3]),
            2 => ($send)([1, 2]),
            1 => ($send)([1]),
            _ => ($send)([]),
        }
    };
}

fn on_data(tally: &mut Tally, request: Request<'_>) {
    match tally.reply_words {
        Some(words) => with_words!(words, |words| request.reply(DATA, words)),
        None => tally.came += 1,
    }
}

fn on_store(tally: &mut Tally, stored: Stored<'_>) {
    match tally.reply_words {
        Some(words) => with_words!(words, |words| stored.reply(DATA, words)),
        None => tally.came += 1,
    }
}

fn handlers() -> Handlers<Tally> {
    let mut handlers = Handlers::new();
    handlers.on_request(DATA, on_data);
    handlers.on_store(DATA, on_store);
    handlers.on_reply(DATA, |tally: &mut Tally, _| tally.came += 1);
    handlers.on_request(ANNOUNCEMENT, |tally: &mut Tally, request| {
        let [request_bytes, reply_bytes, ..] = request.words();
        tally.announced = Some([request_bytes, reply_bytes]);
    });
    handlers.on_request(CONFIRMATION, |tally: &mut Tally, request| {
        let [request_bytes, reply_bytes, ..] = request.words();
        tally.confirmed = Some([request_bytes, reply_bytes]);
    });
    handlers.on_refused(|tally, refused| tally.refused = Some(refused.to_string()));
    handlers
}

/// This process's half.
pub(crate) struct SizedHalf {
    end: Unconnected<Tally>,
    window: usize,
    options: LayerOptions,
}

impl SizedHalf {
    /// Opens an endpoint, a port on `way`, and memory for the largest message.
    pub(crate) fn open(way: Way, options: LayerOptions) -> Result<Self, LayerError> {
        let end = Unconnected::open(way, handlers(), options.size_bytes, &options)?;
        Ok(Self { end, window: crate::am::window(way) as usize, options })
    }

    fn connect(self, peer: &[u8], is_requester: bool) -> Result<SizedAm, LayerError> {
        Ok(SizedAm {
            end: self.end.connect(peer)?,
            tally: Tally::default(),
            taken: 0,
            is_requester,
            sizes: Sizes::SMALLEST,
            window: self.window,
            data: vec![FILL; self.options.size_bytes],
        })
    }
}

impl Half for SizedHalf {
    fn address(&self) -> Vec<u8> {
        self.end.address()
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
    end: Connected<Tally>,
    tally: Tally,
    taken: u64,
    is_requester: bool,
    sizes: Sizes,
    window: usize,
    data: Vec<u8>,
}

/// Words of a message of `bytes`, where it is a short one.
fn words(bytes: usize) -> Option<usize> {
    (bytes <= SHORT_AT_MOST).then(|| bytes.div_ceil(WORD))
}

impl SizedAm {
    fn outgoing(&self) -> usize {
        (if self.is_requester { self.sizes.request } else { self.sizes.reply }) as usize
    }

    #[inline(always)]
    fn poll(&mut self) -> Result<bool, LayerError> {
        let handled = self.end.endpoint.poll(&mut self.tally).map_err(LayerError::new)?;
        match self.tally.refused.take() {
            Some(refused) => Err(LayerError(refused)),
            None => Ok(handled > 0),
        }
    }

    /// The replier's answer to an announcement, once it can send what is asked for.
    fn confirm(&mut self, announced: [u64; 2]) -> Result<(), LayerError> {
        let [request, reply] = announced.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let fits = |bytes| (1..=self.data.len()).contains(&bytes);
        if !fits(request) || !fits(reply) {
            return Err(LayerError::new("the other process announces sizes that cannot be"));
        }
        self.end.attached(&mut self.tally)?;
        self.sizes = Sizes::new(request, reply)?;
        self.tally.reply_words = words(reply);
        let Self { end, tally, .. } = self;
        end.endpoint.request(tally, end.peer, CONFIRMATION, announced).map_err(LayerError::new)
    }
}

impl Wire for SizedAm {
    #[inline(always)]
    fn send(&mut self) -> Result<(), LayerError> {
        let bytes = self.outgoing();
        if let Some(words) = words(bytes) {
            let Self { end, tally, .. } = self;
            return with_words!(words, |words| end.endpoint.request(tally, end.peer, DATA, words))
                .map_err(LayerError::new);
        }
        let Self { end, tally, data, .. } = self;
        let remote = end.attached(tally)?;
        end.endpoint.store(tally, remote, 0, &data[..bytes], DATA, []).map_err(LayerError::new)
    }

    #[inline(always)]
    fn take(&mut self) -> Result<bool, LayerError> {
        if self.tally.came == self.taken {
            self.poll()?;
        }
        let found = self.tally.came != self.taken;
        self.taken += u64::from(found);
        Ok(found)
    }

    /// Handlers answer with short messages; a store is sent from here.
    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        let handled = self.poll()?;
        if let Some(announced) = self.tally.announced.take() {
            self.confirm(announced)?;
        }
        while self.taken < self.tally.came {
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
        crate::am::transport(&self.end.endpoint, self.end.peer)
    }
}

impl SizedWire for SizedAm {
    fn largest(&self) -> usize {
        self.data.len()
    }

    fn announce(&mut self, sizes: Sizes) -> Result<(), LayerError> {
        self.sizes = sizes;
        self.tally.confirmed = None;
        let announced = [u64::from(sizes.request), u64::from(sizes.reply)];
        let Self { end, tally, .. } = self;
        end.endpoint.request(tally, end.peer, ANNOUNCEMENT, announced).map_err(LayerError::new)?;
        end.attached(tally).map(drop)
    }

    fn is_confirmed(&mut self) -> Result<bool, LayerError> {
        self.poll()?;
        Ok(self.tally.confirmed == Some([u64::from(self.sizes.request), u64::from(self.sizes.reply)]))
    }

    fn window(&self) -> usize {
        self.window
    }
}
