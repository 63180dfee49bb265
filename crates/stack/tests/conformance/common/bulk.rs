//! Shared by the tests of transfers: memory of every kind, bytes that both sides know, and handlers that
//! keep their arguments.

use super::{TIMEOUT, Transport, connect};
use netdyno_stack::am::{
    Config, Endpoint, Fetched, Handlers, Memory, PeerId, Placed, Refused, Remote, Stored,
};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Handlers of stores: one replies with the first word, the other does not reply.
pub const ANSWERED: u8 = 3;
pub const QUIET: u8 = 4;
/// A handler of gets.
pub const FETCHED: u8 = 5;
/// A handler of requests that replies with its first word.
pub const ECHO: u8 = 7;
/// A handler of requests that does not reply.
pub const SINK: u8 = 8;
/// A handler of replies.
pub const DONE: u8 = 6;
/// The value of bytes that nothing was written to.
pub const BLANK: u8 = 0xee;

/// A transfer, as its handler was called for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    pub memory: u64,
    pub offset: usize,
    pub words: [u64; 4],
    pub bytes: Vec<u8>,
}

impl Told {
    fn of(placed: Placed<'_>, words: [u64; 4]) -> Self {
        let mut bytes = vec![0; placed.len()];
        placed.read(&mut bytes);
        Self { memory: placed.memory().id(), offset: placed.offset(), words, bytes }
    }
}

/// The calls of one endpoint's handlers, in order.
#[derive(Default)]
pub struct Seen {
    pub stored: Vec<Told>,
    pub fetched: Vec<Told>,
    pub refused: Vec<Refused>,
    pub replies: Vec<u64>,
}

fn on_stored(seen: &mut Seen, stored: &Stored<'_>) {
    seen.stored.push(Told::of(stored.bytes(), stored.words()));
}

fn on_fetched(seen: &mut Seen, fetched: Fetched<'_>) {
    seen.fetched.push(Told::of(fetched.bytes(), fetched.words()));
}

pub fn handlers() -> Handlers<Seen> {
    let mut handlers = Handlers::<Seen>::new();
    handlers.on_store(ANSWERED, |seen, stored| {
        on_stored(seen, &stored);
        let [n, ..] = stored.words();
        stored.reply(DONE, [n]);
    });
    handlers.on_store(QUIET, |seen, stored| on_stored(seen, &stored));
    handlers.on_fetched(FETCHED, on_fetched);
    handlers.on_request(ECHO, |_, request| {
        let [n, ..] = request.words();
        request.reply(DONE, [n]);
    });
    handlers.on_request(SINK, |_, _| {});
    handlers.on_reply(DONE, |seen, reply| seen.replies.push(reply.words()[0]));
    handlers.on_refused(|seen, refused| seen.refused.push(refused));
    handlers
}

pub fn config(transport: &Transport) -> Config {
    transport.config().window(16).medium_bytes(256).peer_timeout(TIMEOUT)
}

/// One end of a connection.
pub struct Side {
    pub endpoint: Endpoint<Seen>,
    pub peer: PeerId,
    pub seen: Seen,
}

pub fn pair(transport: &Transport) -> [Side; 2] {
    pair_with(transport, config(transport))
}

pub fn pair_with(transport: &Transport, config: Config) -> [Side; 2] {
    let [mut a, mut b] = [(); 2].map(|()| Endpoint::new(handlers(), config).unwrap());
    let (to_b, to_a) = connect(transport.wire, &mut a, &mut b);
    let side = |endpoint, peer| Side { endpoint, peer, seen: Seen::default() };
    [side(a, to_b), side(b, to_a)]
}

impl Side {
    pub fn poll(&mut self) -> usize {
        self.endpoint.poll(&mut self.seen).unwrap()
    }

    /// Polls until all requests are answered.
    pub fn settle(&mut self, what: &str) {
        super::until(what, || {
            self.poll();
            self.endpoint.in_flight(self.peer) == 0
        });
    }

    pub fn attach(&mut self, memory: &Memory) -> Remote {
        self.endpoint.attach(&mut self.seen, self.peer, &memory.key()).unwrap()
    }

    /// Returns memory of this side, filled with [`BLANK`].
    pub fn memory(&mut self, origin: Origin, len: usize) -> Memory {
        let memory = match origin {
            Origin::Allocated => self.endpoint.allocate(len).unwrap(),
            Origin::Registered => self.endpoint.register(vec![0; len].into()).unwrap(),
            Origin::Lent => {
                let base = NonNull::from(Box::leak(vec![0u8; len].into_boxed_slice())).cast();
                // SAFETY: the memory is leaked, and nothing else uses it.
                unsafe { self.endpoint.register_raw(base, len).unwrap() }
            }
        };
        memory.write(0, &vec![BLANK; len]).unwrap();
        memory
    }
}

/// The origin of memory.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    Allocated,
    Registered,
    Lent,
}

pub const ORIGINS: [Origin; 3] = [Origin::Allocated, Origin::Registered, Origin::Lent];

/// Returns the bytes number `n`.
pub fn bytes(n: u64, len: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut bytes = vec![0; len];
    rng.fill(&mut bytes);
    bytes
}

pub fn contents(memory: &Memory) -> Vec<u8> {
    let mut bytes = vec![0; memory.len()];
    memory.read(0, &mut bytes).unwrap();
    bytes
}

/// Runs `f` while `side` polls in a thread of its own.
pub fn while_polled<R>(side: &mut Side, f: impl FnOnce() -> R) -> R {
    /// Ends the thread, also when the test fails.
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                if side.poll() == 0 {
                    side.endpoint.idle(Duration::from_millis(1));
                }
            }
        });
        let _over = Over(&is_over);
        f()
    })
}
