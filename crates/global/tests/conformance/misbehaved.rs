//! A rank that joins as it should, and then sends messages of global memory that no rank sends. The test imitates it by an
//! endpoint of Active Messages.

use crate::job::Transport;
use netdyno_global::am::{Endpoint, Handlers, Loss, PeerId, Request};
use netdyno_global::{Error, GlobalPointer, Joining, World};
use netdyno_protocol::global::Refusal;
use netdyno_protocol::global::data::{Data, Few};
use netdyno_protocol::global::message::{Outcome, Reply, Words, ticket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const RANKS: u32 = 3;
/// The rank that is imitated, and the one that it attacks.
const IMITATED: u32 = 2;
const ATTACKED: u32 = 0;
/// The other ranks.
const WORLDS: usize = 2;
/// The handlers of requests: operations, collectives, the loss of a rank. There are six.
const OPERATE: u8 = 0;
const TREE: u8 = 1;
const LOST: u8 = 5;
const HANDLERS: u8 = 6;
/// The handlers of replies to operations, and to questions for a key.
const OPERATED: u8 = 0;
const KEY_TOLD: u8 = 1;
/// The messages by which a rank enters the barrier of the join, and the next two: a barrier, up the tree, with a number.
const FIRST_BARRIER: Words = [0x101, 0, 0, 0];
const BARRIER: Words = [0x101, 1, 0, 0];
const NEXT_BARRIER: Words = [0x101, 2, 0, 0];
/// Bytes that the attacked rank reads.
const LEN: usize = 16;
/// Only a call that never ends takes this long.
const TOO_LONG: Duration = Duration::from_secs(120);

/// What the imitated rank sends after it has joined.
#[derive(Clone, Copy)]
enum Sends {
    /// These requests, of a handler.
    Requests(u8, &'static [Words]),
    /// This outcome of a get.
    Answer(Outcome<'static>),
    /// The words of a reply to an operation, made from its ticket.
    Words(fn(u32) -> Words),
    /// The answer to a question for a key, instead of that to an operation.
    Key,
}

fn handlers() -> Handlers<Sends> {
    let mut handlers = Handlers::new();
    (0..HANDLERS).for_each(|index| handlers.on_request(index, |_: &mut Sends, _: Request<'_>| {}));
    handlers.on_request(OPERATE, |sends: &mut Sends, request: Request<'_>| {
        let ticket = ticket(request.words()[0]);
        let words = match *sends {
            Sends::Answer(outcome) => Reply { ticket, outcome }.encode().0,
            Sends::Words(words) => words(ticket),
            Sends::Key => return request.reply(KEY_TOLD, [0]),
            Sends::Requests(..) => return,
        };
        request.reply(OPERATED, words);
    });
    handlers
}

/// Gives the addresses of each rank to all.
struct Board {
    addresses: Mutex<Vec<Vec<u8>>>,
    meeting: Barrier,
    /// The worlds that have joined, and those that have ended.
    joined: AtomicUsize,
    ended: AtomicUsize,
}

impl Board {
    fn exchange(&self, rank: u32, mine: Vec<u8>) -> Vec<Vec<u8>> {
        self.addresses.lock().unwrap()[rank as usize] = mine;
        self.meeting.wait();
        self.addresses.lock().unwrap().clone()
    }

    fn have_joined(&self) -> bool {
        self.joined.load(Ordering::Relaxed) == WORLDS
    }

    fn have_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed) == WORLDS
    }
}

/// Returns the part of a list of addresses that is for a rank: each stands behind its length.
fn address_for(rank: u32, mut addresses: &[u8]) -> Vec<u8> {
    let mut next = || {
        let (len, rest) = addresses.split_first_chunk::<2>().unwrap();
        let (address, rest) = rest.split_at(u16::from_le_bytes(*len).into());
        addresses = rest;
        address.to_vec()
    };
    (0..=rank).map(|_| next()).last().unwrap()
}

/// Joins as a rank does, and sends. Then serves until the worlds have ended.
fn imitate(transport: Transport, board: &Board, sends: Sends) {
    let mut endpoint = Endpoint::new(handlers(), transport.config(IMITATED).am).unwrap();
    let ports: Vec<_> = (0..IMITATED).map(|_| endpoint.open_port(transport.wire()).unwrap()).collect();
    let addresses = ports.iter().map(|port| {
        let address = port.address();
        [&(address.len() as u16).to_le_bytes()[..], &address].concat()
    });
    let all = board.exchange(IMITATED, addresses.chain([vec![0; 2]]).collect::<Vec<_>>().concat());
    let connect =
        |(port, addresses): (_, &Vec<u8>)| endpoint.connect(port, &address_for(IMITATED, addresses)).unwrap();
    let peers: Vec<PeerId> = ports.into_iter().zip(&all).map(connect).collect();
    let attacked = peers[ATTACKED as usize];
    let mut rank = sends;
    endpoint.request(&mut rank, attacked, TREE, FIRST_BARRIER).unwrap();
    let until = Instant::now() + TOO_LONG;
    let mut has_sent = false;
    while !board.have_ended() {
        assert!(Instant::now() < until, "a world waits for ever");
        // A world that has ended has closed its connection.
        let _ = endpoint.poll(&mut rank);
        if board.have_joined() && !has_sent {
            has_sent = true;
            let Sends::Requests(handler, requests) = sends else { continue };
            for words in requests {
                // The first one may have ended the world.
                let _ = endpoint.request(&mut rank, attacked, handler, *words);
            }
        }
        thread::yield_now();
    }
}

/// Runs two worlds beside the imitated rank. Returns what `call` has returned at the attacked rank, twice, and a barrier at
/// the other one.
fn run(
    transport: Transport,
    sends: Sends,
    call: fn(&mut World) -> Result<(), Error>,
) -> [Result<(), Error>; 3] {
    let board = Board {
        addresses: Mutex::new(vec![Vec::new(); RANKS as usize]),
        meeting: Barrier::new(RANKS as usize),
        joined: AtomicUsize::new(0),
        ended: AtomicUsize::new(0),
    };
    let board = &board;
    let join = |rank| {
        let joining = Joining::open(transport.config(rank).am, rank, RANKS, transport.wire()).unwrap();
        let all = board.exchange(rank, joining.addresses());
        let mut world = joining.join(&all).unwrap();
        board.joined.fetch_add(1, Ordering::Relaxed);
        // The attack may come as soon as both have joined.
        while !board.have_joined() && world.poll().is_ok() {}
        world
    };
    let (attacked, other) = thread::scope(|scope| {
        scope.spawn(|| imitate(transport, board, sends));
        let other = scope.spawn(|| {
            let end = join(1).barrier();
            board.ended.fetch_add(1, Ordering::Relaxed);
            end
        });
        let mut world = join(ATTACKED);
        let ends = [call(&mut world), call(&mut world)];
        drop(world);
        board.ended.fetch_add(1, Ordering::Relaxed);
        (ends, other.join().unwrap())
    });
    let [first, second] = attacked;
    [first, second, other]
}

fn read(world: &mut World) -> Result<(), Error> {
    world.read(GlobalPointer { rank: IMITATED, segment: 0, offset: 0 }, &mut [0; LEN])
}

fn few(len: u64) -> Outcome<'static> {
    Outcome::Bytes(Data::Few(Few::of_words([0; 3], len).unwrap()))
}

pub fn a_rank_that_breaks_the_protocol_is_named(transport: Transport) {
    let requests: &[(u8, &'static [Words])] = &[
        // No direction, no collective, a field that is unused, a barrier that is over, one too far ahead, the same
        // one twice.
        (TREE, &[[0x103, 1, 0, 0]]),
        (TREE, &[[0x901, 1, 0, 0]]),
        (TREE, &[[0x101, 1, 0, 7]]),
        (TREE, &[[0x101, 0, 0, 0]]),
        (TREE, &[[0x101, 1000, 0, 0]]),
        (TREE, &[NEXT_BARRIER; 2]),
        // No reason, no rank of the job.
        (LOST, &[[1, 99, 0, 0]]),
        (LOST, &[[RANKS as u64, 1, 0, 0]]),
    ];
    for &(handler, words) in requests {
        let end = run(transport, Sends::Requests(handler, words), World::barrier);
        assert_named(end, &format!("handler {handler}, {words:x?}"));
    }
    let answers = [
        // Another kind, another length, a refusal of a request that is right.
        Sends::Answer(Outcome::Written),
        Sends::Answer(Outcome::Old(1)),
        Sends::Answer(few(LEN as u64 - 1)),
        Sends::Answer(few(LEN as u64 + 1)),
        Sends::Answer(Outcome::Refused(Refusal::Malformed)),
        // No status, another operation, none.
        Sends::Words(|ticket| [u64::from(ticket) << 32 | 99, 0, 0, 0]),
        Sends::Words(|ticket| [u64::from(ticket + 1) << 32 | 8 | (LEN as u64) << 8, 0, 0, 0]),
        Sends::Words(|_| [u64::MAX; 4]),
        Sends::Key,
    ];
    for (nth, sends) in answers.into_iter().enumerate() {
        assert_named(run(transport, sends, read), &format!("answer {nth}"));
    }
}

/// Asserts that the attacked rank names the imitated one in each call, and that the other world blames no third one.
fn assert_named([first, second, other]: [Result<(), Error>; 3], attack: &str) {
    assert_eq!(first, Err(Error::Misbehaved(IMITATED)), "{attack}");
    assert_eq!(second, first, "{attack}");
    let is_blamed =
        matches!(&other, Err(Error::PeerLost { rank: IMITATED, lost }) if lost.loss == Loss::Misbehaved);
    assert!(is_blamed, "{attack}: {other:?}");
}

/// The attacks above differ from this by what they say.
pub fn the_messages_of_an_imitated_rank_are_right(transport: Transport) {
    let ends = run(transport, Sends::Answer(few(LEN as u64)), read);
    assert_eq!([&ends[0], &ends[1]], [&Ok(()); 2]);
    // The worlds come out of the barrier, and then miss each other.
    let [attacked, _, other] = run(transport, Sends::Requests(TREE, &[BARRIER]), World::barrier);
    assert_eq!([attacked, other], [Ok(()), Ok(())]);
}
