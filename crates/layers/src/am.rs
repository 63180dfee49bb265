//! Active Messages over shared memory, and over UDP. A message of up to four words is a
//! short one, a longer one a medium one; the reply is as long as the request.

use crate::half::{DialOptions, Half, LayerOptions, PEER_TIMEOUT, Replier};
use crate::real::{RealReplier, RealRequester, Wire, counted};
use netdyno_measure::layer::LayerError;
use netdyno_measure::logp::data::Transport;
use netdyno_measure::task::Subject;
use netdyno_stack::am::{
    Config, Endpoint, Handlers, LONGEST_PAYLOAD, PeerId, Port, Request, STAMP_LEN, SharedWord, Turning,
    Wire as Way,
};
use std::time::Duration;

/// The largest medium message over shared memory.
pub const MAX_SHM_SIZE: usize = 1 << 20;
/// The largest medium message over UDP.
pub const MAX_UDP_SIZE: usize = LONGEST_PAYLOAD;
/// The same where dials are turned: each has a stamp.
pub const MAX_DIALLED_UDP_SIZE: usize = LONGEST_PAYLOAD - STAMP_LEN;
/// Requests over UDP without a reply: what may be on the wire at once. More would wait in the
/// endpoint, and issuing them would cost less than sending them does.
const UDP_WINDOW: u32 = 64;
const SHORT_AT_MOST: usize = 32;
const WORD: usize = 8;

/// Handler index, the same for requests and replies.
const ECHO: u8 = 0;

/// What the handlers count.
#[derive(Default)]
struct Tally {
    replies: u64,
}

/// Answers a message with itself.
fn echo(_: &mut Tally, request: Request<'_>) {
    let words = request.words();
    match request.payload() {
        [] => request.reply(ECHO, words),
        // What fitted this way fits that way: both sides take the same size. If they did
        // not, the requester's patience would end the run.
        payload => drop(request.reply_medium(ECHO, [], payload)),
    }
}

/// Requests on `way` without a reply.
pub(crate) fn window(way: Way) -> u32 {
    match way {
        Way::Shm => Config::default().window,
        Way::Udp => UDP_WINDOW,
    }
}

/// An endpoint whose dials are turned as the options say.
pub(crate) fn dialled<S>(
    handlers: Handlers<S>,
    config: Config,
    options: &LayerOptions,
) -> Result<Endpoint<S>, LayerError> {
    let DialOptions { turns, word, profile } = options.dials.clone();
    let current = word.map(|(path, offset)| SharedWord::map(&path, offset));
    let current = current.transpose().map_err(LayerError::new)?;
    Endpoint::with_turns(handlers, config, Turning { turns, current, profile }).map_err(LayerError::new)
}

/// This process's half.
pub struct AmHalf {
    endpoint: Endpoint<Tally>,
    port: Port,
    window: usize,
    options: LayerOptions,
}

impl AmHalf {
    /// Opens an endpoint and a port on `way`.
    pub fn open(way: Way, options: LayerOptions) -> Result<Self, LayerError> {
        let mut handlers = Handlers::new();
        handlers.on_request(ECHO, echo);
        handlers.on_reply(ECHO, |tally: &mut Tally, _| tally.replies += 1);
        let medium_bytes =
            if options.size_bytes > SHORT_AT_MOST { options.size_bytes.next_multiple_of(64) } else { 64 };
        let config = Config {
            medium_bytes: u32::try_from(medium_bytes).map_err(LayerError::new)?,
            peer_timeout: PEER_TIMEOUT,
            wait: options.wait,
            window: window(way),
            faults: options.faults,
            seed: options.seed,
            bind: options.bind,
            ..Config::default()
        };
        let mut endpoint = dialled(handlers, config, &options)?;
        let port = endpoint.open_port(way).map_err(LayerError::new)?;
        Ok(Self { endpoint, port, window: config.window as usize, options })
    }

    fn connect(mut self, peer: &[u8]) -> Result<AmWire, LayerError> {
        let peer = self.endpoint.connect(self.port, peer).map_err(LayerError::new)?;
        let size_bytes = self.options.size_bytes;
        let message = if size_bytes > SHORT_AT_MOST {
            Message::Medium(vec![0x5a; size_bytes])
        } else {
            Message::Short { words: size_bytes.div_ceil(WORD) }
        };
        Ok(AmWire { endpoint: self.endpoint, peer, tally: Tally::default(), taken: 0, message })
    }
}

impl Half for AmHalf {
    fn address(&self) -> Vec<u8> {
        self.port.address()
    }

    fn requester(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Subject>, LayerError> {
        let (wait, window) = (self.options.wait, self.window);
        Ok(Box::new(RealRequester::new(self.connect(peer)?, wait, window)))
    }

    fn replier(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Replier>, LayerError> {
        let wait = self.options.wait;
        Ok(Box::new(RealReplier::new(self.connect(peer)?, wait)))
    }
}

enum Message {
    Short { words: usize },
    Medium(Vec<u8>),
}

/// Either end of the wire: an endpoint with one peer.
struct AmWire {
    endpoint: Endpoint<Tally>,
    peer: PeerId,
    tally: Tally,
    /// Replies that were taken; a poll may bring several where one had been missing.
    taken: u64,
    message: Message,
}

impl Wire for AmWire {
    #[inline(always)]
    fn send(&mut self) -> Result<(), LayerError> {
        let Self { endpoint, peer, tally, message, .. } = self;
        match message {
            Message::Short { words: 4 } => endpoint.request(tally, *peer, ECHO, [1, 2, 3, 4]),
            Message::Short { words: 3 } => endpoint.request(tally, *peer, ECHO, [1, 2, 3]),
            Message::Short { words: 2 } => endpoint.request(tally, *peer, ECHO, [1, 2]),
            Message::Short { words: 1 } => endpoint.request(tally, *peer, ECHO, [1]),
            Message::Short { .. } => endpoint.request(tally, *peer, ECHO, []),
            Message::Medium(payload) => {
                return endpoint.request_medium(tally, *peer, ECHO, [], payload).map_err(LayerError::new);
            }
        }
        .map_err(LayerError::new)
    }

    #[inline(always)]
    fn take(&mut self) -> Result<bool, LayerError> {
        if self.tally.replies == self.taken {
            self.endpoint.poll(&mut self.tally).map_err(LayerError::new)?;
        }
        let found = self.tally.replies != self.taken;
        self.taken += u64::from(found);
        Ok(found)
    }

    /// The handler answers.
    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        Ok(self.endpoint.poll(&mut self.tally).map_err(LayerError::new)? > 0)
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.endpoint.idle(timeout);
        Ok(())
    }

    fn transport(&self) -> Option<Transport> {
        transport(&self.endpoint, self.peer)
    }
}

/// What happened on the way to a peer so far, where its wire keeps count.
pub(crate) fn transport<S>(endpoint: &Endpoint<S>, peer: PeerId) -> Option<Transport> {
    Some(counted(endpoint.statistics(peer)?, endpoint.strays()))
}
