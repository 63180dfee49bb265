//! Endpoints with a progress thread.

use crate::common::bulk::{
    ANSWERED, ECHO, FETCHED, Origin, SINK, Seen, Side, bytes, config, contents, pair_with, while_polled,
};
use crate::common::{Deadline, TIMEOUT, Transport, seed, until};
use fastrand::Rng;
use netdyno_stack::am::{Driven, PeerId, PeerLost, ProgressThread, RequestError};
use std::time::Duration;

fn sides(transport: &Transport) -> [Side; 2] {
    pair_with(transport, config(transport).is_woken(true))
}

/// A side that a progress thread drives.
struct Threaded {
    thread: ProgressThread<Seen>,
    peer: PeerId,
}

impl Threaded {
    fn start(Side { endpoint, peer, seen }: Side) -> Self {
        Self { thread: ProgressThread::start(Driven { endpoint, state: seen }).unwrap(), peer }
    }

    /// Sleeps until the state is as wanted. Never polls.
    fn wait_until(&self, what: &str, is_so: impl Fn(&Seen) -> bool) {
        let deadline = Deadline::after(TIMEOUT);
        let mut guard = self.thread.lock().unwrap();
        while !is_so(&guard.state) {
            deadline.check(what);
            guard = guard.wait(TIMEOUT).unwrap();
        }
    }

    /// Sends a request that its peer answers with `n`. Waits for room by sleeping.
    fn ask(&self, n: u64) -> Result<(), PeerLost> {
        self.send(ECHO, n)
    }

    fn send(&self, handler: u8, n: u64) -> Result<(), PeerLost> {
        let mut guard = self.thread.lock()?;
        loop {
            match guard.endpoint.try_request(self.peer, handler, [n]) {
                Err(RequestError::Full) => guard = guard.wait(TIMEOUT)?,
                Err(RequestError::Lost(lost)) => return Err(lost),
                other => return other.map_err(|_| unreachable!("a request without a payload")),
            }
        }
    }
}

/// The peer's program computes: it makes no call.
pub fn requests_are_answered_while_the_program_computes(transport: &Transport) {
    let [mut a, b] = sides(transport);
    let b = Threaded::start(b);
    for n in 0..200 {
        a.endpoint.request(&mut a.seen, a.peer, ECHO, [n]).unwrap();
    }
    a.settle("all requests are answered");
    assert_eq!(a.seen.replies, (0..200).collect::<Vec<u64>>());
    b.thread.stop().unwrap();
}

pub fn both_programs_sleep(transport: &Transport) {
    let [a, b] = sides(transport).map(Threaded::start);
    std::thread::scope(|scope| {
        for side in [&a, &b] {
            scope.spawn(|| {
                for n in 0..500 {
                    side.ask(n).unwrap();
                }
                side.wait_until("all requests are answered", |seen| seen.replies.len() == 500);
            });
        }
    });
    for side in [&a, &b] {
        assert_eq!(side.thread.lock().unwrap().state.replies, (0..500).collect::<Vec<u64>>());
    }
}

/// Requests that nobody answers are completed by credits, which no handler sees.
pub fn room_for_requests_without_replies_ends_a_sleep(transport: &Transport) {
    let [a, b] = sides(transport).map(Threaded::start);
    let deadline = Deadline::after(TIMEOUT);
    for n in 0..200 {
        a.send(SINK, n).unwrap();
        deadline.check("room");
    }
    b.thread.stop().unwrap();
}

/// Transfers through bounce buffers and in datagrams need progress at both sides again and again.
pub fn transfers_go_on_while_both_programs_sleep(transport: &Transport) {
    const LEN: usize = 1 << 20;
    let [mut a, mut b] = sides(transport);
    let (theirs, ours) = (b.memory(Origin::Registered, LEN), a.memory(Origin::Registered, LEN));
    let remote = while_polled(&mut b, || a.attach(&theirs));
    let [a, b] = [a, b].map(Threaded::start);
    for n in 0..4 {
        let mut guard = a.thread.lock().unwrap();
        let Driven { endpoint, state } = &mut *guard;
        endpoint.store(state, remote.at(0), &bytes(n, LEN), ANSWERED, [n]).unwrap();
        drop(guard);
        a.wait_until("the store is answered", |seen| seen.replies.len() as u64 == n + 1);
        assert_eq!(contents(&theirs), bytes(n, LEN));
        let mut guard = a.thread.lock().unwrap();
        let Driven { endpoint, state } = &mut *guard;
        endpoint.get(state, remote.at(0), ours.range(0, LEN), FETCHED, []).unwrap();
        drop(guard);
        a.wait_until("the get has come", |seen| seen.fetched.len() as u64 == n + 1);
        assert_eq!(contents(&ours), bytes(n, LEN));
    }
    drop((a, b));
}

/// The program polls as well, at times, and computes in between.
pub fn calls_of_the_program_mix_with_the_thread(transport: &Transport) {
    let [a, b] = sides(transport).map(Threaded::start);
    let seed = seed();
    std::thread::scope(|scope| {
        for (nth, side) in [&a, &b].into_iter().enumerate() {
            scope.spawn(move || {
                let mut random = Rng::with_seed(seed + nth as u64);
                for n in 0..500 {
                    side.ask(n).unwrap();
                    for _ in 0..random.usize(..4) {
                        let mut guard = side.thread.lock().unwrap();
                        let Driven { endpoint, state } = &mut *guard;
                        for _ in 0..random.usize(..20) {
                            endpoint.poll(state).unwrap();
                        }
                    }
                    if random.u8(..) < 8 {
                        std::thread::sleep(Duration::from_micros(random.u64(..300)));
                    }
                }
                side.wait_until("all requests are answered", |seen| seen.replies.len() == 500);
            });
        }
    });
    for side in [&a, &b] {
        assert_eq!(side.thread.lock().unwrap().state.replies, (0..500).collect::<Vec<u64>>());
    }
}

/// The thread finds the loss, and the program learns it by its next call.
pub fn the_loss_of_a_peer_reaches_the_program(transport: &Transport) {
    let [a, b] = pair_with(transport, config(transport).is_woken(true).peer_timeout(Duration::from_secs(2)));
    let a = Threaded::start(a);
    // Over a wire that loses datagrams, the message that ends the connection may be lost. The silence of the peer
    // then tells.
    a.ask(0).unwrap();
    drop(b);
    let deadline = Deadline::after(TIMEOUT);
    let lost = loop {
        deadline.check("the loss is reported");
        match a.thread.lock().and_then(|guard| guard.wait(Duration::from_millis(100))) {
            Ok(_) => {}
            Err(lost) => break lost,
        }
    };
    assert_eq!(lost.peer, a.peer);
    until("the peer is lost for good", || a.ask(1).is_err());
    let _ = a.thread.stop();
}
