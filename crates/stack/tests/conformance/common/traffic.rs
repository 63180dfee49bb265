//! Random traffic in which both sides know each message in advance. The n-th request from one endpoint to
//! another follows from the seed, and so does its answer.

use fastrand::Rng;
use netdyno_stack::am::{Endpoint, Handlers, PeerId, PeerLost, Reply, Request, RequestError};
use std::collections::VecDeque;

/// A message, as it is sent and must arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    handler: u8,
    words: Vec<u64>,
    payload: Option<Vec<u8>>,
}

/// A request and its answer, if it has one.
#[derive(Clone, Debug)]
pub struct Exchange {
    request: Letter,
    answer: Option<Letter>,
}

const HANDLERS: [u8; 3] = [0, 17, 255];

fn letter(rng: &mut Rng, most: usize) -> Letter {
    let handler = HANDLERS[rng.usize(..HANDLERS.len())];
    // Words are never 0, because a receiver sees 0 in words that were not sent.
    let words = (0..rng.usize(0..=4)).map(|_| rng.u64(1..)).collect();
    let payload = rng.bool().then(|| {
        let sizes = [0, 1, 63, 64, 65, most.saturating_sub(1), most, rng.usize(0..=most)];
        let len = sizes[rng.usize(..sizes.len())].min(most);
        let start = rng.u8(..);
        (0..len).map(|i| start.wrapping_add(i as u8)).collect()
    });
    Letter { handler, words, payload }
}

/// Returns the `n`-th exchange that `from` starts with `to`. Payloads have up to `most` bytes.
pub fn exchange(seed: u64, from: usize, to: usize, n: u64, most: usize) -> Exchange {
    let mut rng = Rng::with_seed(seed ^ (from as u64) << 56 ^ (to as u64) << 48 ^ n);
    // The first numbers of adjacent seeds are similar.
    for _ in 0..4 {
        rng.u64(..);
    }
    let request = letter(&mut rng, most);
    let answer = rng.bool().then(|| letter(&mut rng, most));
    Exchange { request, answer }
}

/// The part of one endpoint in the traffic: the state of its handlers.
pub struct Traffic {
    seed: u64,
    me: usize,
    /// The longest payload that is sent.
    most: usize,
    /// Indexed by [`PeerId::index`].
    with: Vec<With>,
}

/// The state of an endpoint's traffic with one peer.
#[derive(Default)]
struct With {
    name: usize,
    sent: u64,
    received: u64,
    /// Outstanding answers, in order.
    awaited: VecDeque<Letter>,
}

impl Traffic {
    /// Returns the traffic of endpoint `me` with `peers`, in the order of their IDs.
    pub fn new(seed: u64, me: usize, most: usize, peers: impl IntoIterator<Item = usize>) -> Self {
        let with = peers.into_iter().map(|name| With { name, ..With::default() }).collect();
        Self { seed, me, most, with }
    }

    /// Returns handlers that check each message and send the agreed answers.
    pub fn handlers() -> Handlers<Self> {
        let mut handlers = Handlers::new();
        handlers.on_request(HANDLERS[0], on_request::<{ HANDLERS[0] }>);
        handlers.on_request(HANDLERS[1], on_request::<{ HANDLERS[1] }>);
        handlers.on_request(HANDLERS[2], on_request::<{ HANDLERS[2] }>);
        handlers.on_reply(HANDLERS[0], on_reply::<{ HANDLERS[0] }>);
        handlers.on_reply(HANDLERS[1], on_reply::<{ HANDLERS[1] }>);
        handlers.on_reply(HANDLERS[2], on_reply::<{ HANDLERS[2] }>);
        handlers
    }

    /// Returns the number of requests sent to a peer.
    pub fn sent(&self, peer: PeerId) -> u64 {
        self.with[peer.index()].sent
    }

    /// Returns the number of requests received from a peer.
    pub fn received(&self, peer: PeerId) -> u64 {
        self.with[peer.index()].received
    }

    /// Returns the number of requests received from all peers.
    pub fn received_in_all(&self) -> u64 {
        self.with.iter().map(|with| with.received).sum()
    }

    /// Returns whether no answer is outstanding.
    pub fn is_answered(&self) -> bool {
        self.with.iter().all(|with| with.awaited.is_empty())
    }

    /// Sends the next request, if the window has room. Returns whether it had.
    pub fn try_send(&mut self, endpoint: &mut Endpoint<Self>, peer: PeerId) -> Result<bool, PeerLost> {
        let next = self.next(peer);
        match try_send(endpoint, peer, &next.request) {
            Ok(()) => {
                self.count(peer, next);
                Ok(true)
            }
            Err(RequestError::Full) => Ok(false),
            Err(RequestError::Lost(lost)) => Err(lost),
            Err(RequestError::TooLong(too_long)) => panic!("{too_long}"),
        }
    }

    /// Sends the next request. Waits until the window has room.
    pub fn send(&mut self, endpoint: &mut Endpoint<Self>, peer: PeerId) -> Result<(), RequestError> {
        let next = self.next(peer);
        send(endpoint, self, peer, &next.request)?;
        self.count(peer, next);
        Ok(())
    }

    fn next(&self, peer: PeerId) -> Exchange {
        let with = &self.with[peer.index()];
        exchange(self.seed, self.me, with.name, with.sent, self.most)
    }

    fn count(&mut self, peer: PeerId, exchange: Exchange) {
        let with = &mut self.with[peer.index()];
        with.sent += 1;
        with.awaited.extend(exchange.answer);
    }
}

fn on_request<const HANDLER: u8>(traffic: &mut Traffic, request: Request<'_>) {
    let with = &mut traffic.with[request.peer().index()];
    let expected = exchange(traffic.seed, with.name, traffic.me, with.received, traffic.most);
    with.received += 1;
    check(HANDLER, request.words(), request.payload(), &expected.request);
    if let Some(answer) = expected.answer {
        reply(request, &answer);
    }
}

fn on_reply<const HANDLER: u8>(traffic: &mut Traffic, reply: Reply<'_>) {
    let with = &mut traffic.with[reply.peer().index()];
    let expected = with.awaited.pop_front().expect("a reply without a request");
    check(HANDLER, reply.words(), reply.payload(), &expected);
}

fn check(handler: u8, words: [u64; 4], payload: &[u8], expected: &Letter) {
    assert_eq!(handler, expected.handler);
    let (sent, rest) = words.split_at(expected.words.len());
    assert_eq!(sent, expected.words);
    assert!(rest.iter().all(|&word| word == 0), "words that were not sent: {rest:?}");
    assert!(payload == expected.payload.as_deref().unwrap_or_default(), "the payload differs");
}

/// Calls `$f` with the words of a letter as an array.
macro_rules! with_words {
    ($words:expr, $array:ident => $call:expr) => {
        match *$words {
            [] => {
                let $array = [];
                $call
            }
            [a] => {
                let $array = [a];
                $call
            }
            [a, b] => {
                let $array = [a, b];
                $call
            }
            [a, b, c] => {
                let $array = [a, b, c];
                $call
            }
            [a, b, c, d] => {
                let $array = [a, b, c, d];
                $call
            }
            _ => unreachable!(),
        }
    };
}

fn try_send<S>(endpoint: &mut Endpoint<S>, peer: PeerId, letter: &Letter) -> Result<(), RequestError> {
    let handler = letter.handler;
    match &letter.payload {
        None => {
            with_words!(letter.words.as_slice(), words => endpoint.try_request(peer, handler, words))
        }
        Some(payload) => with_words!(letter.words.as_slice(), words => {
            endpoint.try_request_medium(peer, handler, words, payload)
        }),
    }
}

fn send<S>(
    endpoint: &mut Endpoint<S>,
    state: &mut S,
    peer: PeerId,
    letter: &Letter,
) -> Result<(), RequestError> {
    let handler = letter.handler;
    match &letter.payload {
        None => with_words!(letter.words.as_slice(), words => {
            Ok(endpoint.request(state, peer, handler, words)?)
        }),
        Some(payload) => with_words!(letter.words.as_slice(), words => {
            endpoint.request_medium(state, peer, handler, words, payload)
        }),
    }
}

fn reply(request: Request<'_>, letter: &Letter) {
    let handler = letter.handler;
    match &letter.payload {
        None => with_words!(letter.words.as_slice(), words => request.reply(handler, words)),
        Some(payload) => with_words!(letter.words.as_slice(), words => {
            assert!(request.reply_medium(handler, words, payload).is_ok());
        }),
    }
}
