use super::*;
use crate::frame::datagram::Arrived;
use crate::frame::transfer::Range;
use crate::reliability::holding::Released;
use crate::reliability::transfers::{Event, Memories};
use core::cell::Cell;

const DELAY_NS: u64 = 25_000;
const ROUND_TRIP_NS: u64 = 10_000;

fn pair(window: u32) -> [Connection; 2] {
    let config = Config { window, acknowledgement_delay_ns: DELAY_NS, ..Config::default() };
    [Connection::new(config, 1, 2, 0), Connection::new(config, 2, 1, 0)]
}

/// Returns all datagrams that a connection sends now.
fn transmit(from: &mut Connection<impl Controller>, now_ns: u64) -> Vec<Vec<u8>> {
    core::iter::from_fn(|| from.transmit(now_ns).map(<[u8]>::to_vec)).collect()
}

/// Delivers datagrams. Every request is answered if `answer` is true. Returns the number of messages handled.
fn deliver<C: Controller>(to: &mut Connection<C>, datagrams: &[Vec<u8>], answer: bool, now_ns: u64) -> usize {
    let mut handled = 0;
    let mut handle = |to: &mut Connection<C>, datagram: &Datagram<'_>| {
        handled += 1;
        if answer && datagram.header.kind == Kind::Request {
            to.reply(0, &datagram.words, datagram.payload, now_ns);
        }
    };
    for bytes in datagrams {
        let datagram = datagram::parse(bytes).unwrap();
        if to.receive(&datagram, now_ns) == Delivery::Now {
            handle(to, &datagram);
            while let Some(bytes) = to.buffered() {
                handle(to, &datagram::parse(&bytes).unwrap());
                to.recycle(bytes);
            }
        }
    }
    handled
}

#[test]
fn a_round_trip_without_loss_takes_two_datagrams() {
    let [mut a, mut b] = pair(1);
    let mut now_ns = 0;
    for _ in 0..1_000 {
        a.request(3, &[1, 2], b"to", now_ns).unwrap();
        assert_eq!(a.request(3, &[], &[], now_ns), Err(Full));
        let requests = transmit(&mut a, now_ns);
        now_ns += ROUND_TRIP_NS / 2;
        assert_eq!(deliver(&mut b, &requests, true, now_ns), 1);
        let replies = transmit(&mut b, now_ns);
        now_ns += ROUND_TRIP_NS / 2;
        assert_eq!(deliver(&mut a, &replies, true, now_ns), 1);
        assert_eq!((requests.len(), replies.len()), (1, 1));
        for connection in [&a, &b] {
            assert!(connection.deadline().is_none_or(|at_ns| at_ns > now_ns));
        }
    }
    let counters = Counters { sent: 1_000, delivered: 1_000, ..Counters::default() };
    assert_eq!((a.counters(), b.counters()), (counters, counters));
    // Only the last reply is acknowledged alone, because no further message came to carry that.
    now_ns += DELAY_NS;
    a.on_time(now_ns);
    deliver(&mut b, &transmit(&mut a, now_ns), true, now_ns);
    assert_eq!((a.counters().acknowledgements, b.counters().acknowledgements), (1, 0));
    assert_eq!((a.deadline(), b.deadline()), (None, None));
}

#[test]
fn requests_that_are_not_answered_are_completed_by_an_acknowledgement() {
    let [mut a, mut b] = pair(4);
    a.request(0, &[], &[], 0).unwrap();
    assert_eq!(deliver(&mut b, &transmit(&mut a, 0), false, 0), 1);
    // One completion may wait for a message to carry it.
    assert_eq!(b.transmit(0), None);
    b.on_time(DELAY_NS);
    deliver(&mut a, &transmit(&mut b, DELAY_NS), false, DELAY_NS);
    assert_eq!(a.in_flight(), 0);
    // Half a window of completions may not wait.
    (0..2).for_each(|_| a.request(0, &[], &[], DELAY_NS).unwrap());
    assert_eq!(deliver(&mut b, &transmit(&mut a, DELAY_NS), false, DELAY_NS), 2);
    deliver(&mut a, &transmit(&mut b, DELAY_NS), false, DELAY_NS);
    assert_eq!(a.in_flight(), 0);
    assert_eq!(b.counters().acknowledgements, 2);
}

#[test]
fn what_is_sent_again_is_the_same_message() {
    let [mut a, mut b] = pair(4);
    a.request(9, &[1, 2, 3], b"payload", 0).unwrap();
    let lost = transmit(&mut a, 0);
    let now_ns = a.deadline().unwrap();
    a.on_time(now_ns);
    let [again] = &transmit(&mut a, now_ns)[..] else { panic!() };
    let [once, twice] = [&lost[0], again].map(|bytes| datagram::parse(bytes).unwrap());
    let arrived = Arrived { is_stale: true, ..once.header.arrived };
    assert_eq!(twice.header, Header { transmission: 2, arrived, ..once.header });
    assert_eq!((once.words, once.payload), (twice.words, twice.payload));
    assert_eq!(deliver(&mut b, &lost, true, now_ns), 1);
    // The duplicate is not handled. Its sender learns at once that it has arrived.
    assert_eq!(deliver(&mut b, &lost, true, now_ns), 0);
    assert_eq!(b.counters().duplicates, 1);
    deliver(&mut a, &transmit(&mut b, now_ns), true, now_ns);
    assert_eq!(a.in_flight(), 0);
}

/// A controller whose window never changes. It counts what the connection tells it: acknowledgements, losses,
/// spurious losses and timeouts.
struct FixedWindow<'a>(u32, &'a [Cell<u32>; 4]);

impl FixedWindow<'_> {
    fn count(&self, kind: usize, more: u32) {
        self.1[kind].set(self.1[kind].get() + more);
    }
}

impl Controller for FixedWindow<'_> {
    fn window(&self) -> u32 {
        self.0
    }
    fn on_ack(&mut self) {
        self.count(0, 1);
    }
    fn on_loss(&mut self, count: u32) {
        self.count(1, count);
    }
    fn on_spurious_loss(&mut self) {
        self.count(2, 1);
    }
    fn on_timeout(&mut self, _: u32) {
        self.count(3, 1);
    }
}

#[test]
fn another_controller_decides_how_many_messages_are_in_flight() {
    let told = Default::default();
    let mut a = Connection::with_controller(FixedWindow(5, &told), Config::default(), 1, 2, 0);
    let [_, mut b] = pair(64);
    (0..10).for_each(|_| a.request(0, &[], &[], 0).unwrap());
    let sent = transmit(&mut a, 0);
    assert_eq!(sent.len(), 5);
    // The first message is late: those behind it arrive before.
    for some in [&sent[1..], &sent[..1]] {
        deliver(&mut b, some, true, 0);
        deliver(&mut a, &transmit(&mut b, 0), true, 0);
    }
    assert_eq!(told.each_ref().map(Cell::get), [5, 1, 1, 0]);
    // The others get no answer. All timeouts are in a row.
    assert_eq!(transmit(&mut a, 0).len(), 5);
    while let Some(at_ns) = a.deadline() {
        a.on_time(at_ns);
        assert!(transmit(&mut a, at_ns).len() <= 5);
    }
    assert_eq!(told.each_ref().map(Cell::get), [5, 1, 1, 1]);
}

#[test]
fn requests_that_never_left_are_counted_when_the_peer_is_lost() {
    let [mut a, _] = pair(64);
    (0..40).for_each(|_| a.request(0, &[], &[], 0).unwrap());
    assert_eq!((a.in_flight(), a.not_sent()), (40, 40));
    let sent = transmit(&mut a, 0).len() as u32;
    assert!((1..40).contains(&sent));
    while let Some(at_ns) = a.deadline() {
        a.on_time(at_ns);
        transmit(&mut a, at_ns);
    }
    assert_eq!(a.lost(), Some(Loss::Silent));
    assert_eq!((a.in_flight(), a.not_sent()), (40, 40 - sent));
}

#[test]
fn a_goodbye_is_heard_after_all_that_was_sent_before() {
    let [mut a, mut b] = pair(4);
    a.request(0, &[], &[], 0).unwrap();
    let request = transmit(&mut a, 0);
    let goodbye = [a.goodbye().to_vec()];
    deliver(&mut b, &goodbye, true, 0);
    assert_eq!(b.lost(), None);
    assert_eq!(deliver(&mut b, &request, true, 0), 1);
    assert_eq!(b.lost(), Some(Loss::Closed));
    assert_eq!(b.transmit(0), None);
    assert_eq!(b.deadline(), None);
}

#[test]
fn what_is_missing_at_a_goodbye_is_not_waited_for() {
    let [mut a, mut b] = pair(4);
    a.request(0, &[], &[], 0).unwrap();
    transmit(&mut a, 0);
    deliver(&mut b, &[a.goodbye().to_vec()], true, 0);
    assert_eq!((b.lost(), b.deadline()), (None, Some(Recovery::default().max_overtaken_ns)));
    b.on_time(Recovery::default().max_overtaken_ns);
    assert_eq!(b.lost(), Some(Loss::Closed));
}

#[test]
fn a_side_that_closes_sees_to_its_own_and_takes_nothing() {
    let [mut a, mut b] = pair(4);
    a.request(0, &[], &[], 0).unwrap();
    b.request(0, &[], &[], 0).unwrap();
    deliver(&mut b, &transmit(&mut a, 0), true, 0);
    assert!(b.has_unacknowledged());
    let datagrams = transmit(&mut a, 0).into_iter().chain(transmit(&mut b, 0));
    for bytes in datagrams.collect::<Vec<_>>() {
        a.acknowledge(&datagram::parse(&bytes).unwrap().header, 0);
    }
    assert!(!a.has_unacknowledged());
    assert_eq!((a.counters().delivered, a.in_flight()), (0, 1));
}

#[test]
fn a_peer_that_acknowledges_nothing_cannot_make_the_queue_grow() {
    let [a, mut b] = pair(4);
    let (mut issued, mut handled) = (0, 0);
    for _ in 0..100 {
        // The peer says that all requests are handled, and sends one more of its own.
        let header = Header { connection: 2, completed: issued, ..a.header(Kind::Request, 0) };
        let mut bytes = Vec::new();
        datagram::write(&header, &[], &[], &mut bytes);
        datagram::stamp(&mut bytes, handled, 1, a.receiving.arrived());
        handled += deliver(&mut b, &[bytes], true, 0) as u32;
        issued += u16::from(b.request(0, &[], &[], 0).is_ok());
    }
    assert_eq!(b.sending.len(), 8);
    assert_eq!(b.counters().absurd, 100 - u64::from(handled));
    assert!(b.in_flight() < 4 && !b.has_room());
}

/// No memory at all.
struct NoMemory;

impl Memories for NoMemory {
    fn source(&mut self, _: u32, _: u64, _: usize, _: &mut Vec<u8>) -> bool {
        false
    }
    fn has(&mut self, _: &[u8]) -> bool {
        false
    }
    fn read(&mut self, _: &Range, _: u64, _: usize, _: &mut Vec<u8>) -> bool {
        false
    }
    fn write(&mut self, _: &Range, _: u64, _: &[u8]) -> bool {
        false
    }
    fn fetched(&mut self, _: u32, _: u64, _: &[u8]) {}
}

#[test]
fn nobody_waits_for_transfers_that_are_forgotten() {
    let [mut a, mut b] = pair(4);
    a.store(0, &[], [0, 0, 10_000], 0).unwrap();
    b.get([0, 0, 10_000], 0).unwrap();
    assert_eq!(deliver_transfers(&mut a, &transmit(&mut b, 0)), 1);
    assert!(a.has_unacknowledged() && a.in_flight() == 1);
    a.forget_transfers();
    assert!(!a.has_unacknowledged() && !a.feed(&mut NoMemory, 0));
    deliver(&mut b, &[a.goodbye().to_vec()], false, 0);
    assert_eq!(b.lost(), Some(Loss::Closed));
}

/// A message alone leaves at once. Pieces of a store may follow it.
#[test]
fn a_message_before_pieces_is_told_from_one_alone() {
    let [mut a, _] = pair(8);
    a.request(0, &[], &[], 0).unwrap();
    assert!(a.has_one_message());
    a.store(0, &[], [0, 0, 100_000], 0).unwrap();
    assert!(!a.has_one_message());
}

/// A message that was queued before others were handled does not tell of these.
#[test]
fn a_message_with_an_older_count_leaves_the_later_one_owed() {
    let [mut a, mut b] = pair(8);
    b.request(0, &[], &[], 0).unwrap();
    (0..3).for_each(|_| a.request(0, &[], &[], 0).unwrap());
    deliver(&mut b, &transmit(&mut a, 0), false, 0);
    deliver(&mut a, &transmit(&mut b, 0), false, 0);
    assert_eq!(a.in_flight(), 3);
    b.on_time(DELAY_NS);
    deliver(&mut a, &transmit(&mut b, DELAY_NS), false, DELAY_NS);
    assert_eq!(a.in_flight(), 0);
}

/// Nothing is kept for a lost peer, and the goodbye still has its place in the order.
#[test]
fn a_lost_peer_holds_no_memory() {
    let [mut a, mut b] = pair(8);
    (0..8).for_each(|_| a.request(0, &[], &[0; 1000], 0).unwrap());
    let requests = transmit(&mut a, 0);
    deliver(&mut b, &requests[4..], false, 0);
    for connection in [&mut a, &mut b] {
        let empty = size_of_val(connection);
        assert!(connection.memory_bytes() > empty + 4_000);
        connection.end();
        assert!(connection.memory_bytes() < empty + 1_000, "{}", connection.memory_bytes() - empty);
    }
    let goodbye = datagram::parse(a.goodbye()).unwrap().header;
    assert_eq!(goodbye.sequence, datagram::parse(&requests[7]).unwrap().header.sequence + 1);
}

/// Delivers datagrams of transfers. Returns the number of messages taken.
fn deliver_transfers(to: &mut Connection, datagrams: &[Vec<u8>]) -> usize {
    let mut taken = 0;
    for bytes in datagrams {
        let datagram = datagram::parse(bytes).unwrap();
        if to.receive(&datagram, 0) == Delivery::Now {
            assert_eq!(to.transfer(&datagram, &mut NoMemory), Event::Nothing);
            taken += 1;
        }
    }
    taken
}

/// Receives datagrams and holds each message until the time in its stamp.
fn hold(at: &mut Connection, datagrams: &[Vec<u8>], now_ns: u64) {
    for bytes in datagrams {
        let datagram = datagram::parse(bytes).unwrap();
        if at.receive(&datagram, now_ns) == Delivery::Now {
            at.hold(&datagram, &mut NoMemory, |departed, _| departed.unwrap().at);
            while let Some(bytes) = at.buffered() {
                let datagram = datagram::parse(&bytes).unwrap();
                at.hold(&datagram, &mut NoMemory, |departed, _| departed.unwrap().at);
            }
        }
    }
}

fn release(at: &mut Connection, now_ns: u64) -> Vec<u8> {
    match at.release(now_ns, |_| panic!("nobody asks for bytes")) {
        Some(Released::Message(bytes)) => bytes,
        other => panic!("{other:?}"),
    }
}

fn dialled_pair() -> [Connection; 2] {
    let mut pair = pair(4);
    pair.iter_mut().for_each(Connection::hold_messages);
    pair
}

fn departs(from: &mut Connection, at: u64) {
    from.depart(Departed { at, at_once: true });
}

/// A message is acknowledged as it arrives. It counts as handled only when it is.
#[test]
fn what_is_held_is_delivered_when_it_is_released() {
    let [mut a, mut b] = dialled_pair();
    for nth in 0..4 {
        departs(&mut a, 100 + nth);
        a.request(0, &[nth], &[], 0).unwrap();
    }
    // The first request arrives last.
    let mut requests = transmit(&mut a, 0);
    requests.rotate_left(1);
    hold(&mut b, &requests, 0);
    assert_eq!((b.held(), b.next_due()), (4, Some(100)));
    b.on_time(DELAY_NS);
    hold(&mut a, &transmit(&mut b, DELAY_NS), DELAY_NS);
    assert_eq!((a.in_flight(), a.has_unacknowledged()), (4, false));
    for nth in 0..3 {
        let bytes = release(&mut b, 2 * DELAY_NS);
        assert_eq!(datagram::parse(&bytes).unwrap().words[0], nth);
        departs(&mut b, 200 + nth);
        b.reply(0, &[nth], &[], 2 * DELAY_NS);
    }
    hold(&mut a, &transmit(&mut b, 2 * DELAY_NS), 2 * DELAY_NS);
    // The last request is completed by an acknowledgement, which arrives after the replies.
    release(&mut b, 2 * DELAY_NS);
    b.on_time(3 * DELAY_NS);
    hold(&mut a, &transmit(&mut b, 3 * DELAY_NS), 3 * DELAY_NS);
    assert_eq!((a.held(), a.in_flight()), (3, 4));
    for left in [3, 2, 0] {
        release(&mut a, 4 * DELAY_NS);
        assert_eq!((a.in_flight(), a.lost()), (left, None));
    }
}

#[test]
fn a_closed_peer_is_lost_when_nothing_is_held_of_it() {
    let [mut a, mut b] = dialled_pair();
    for at in [7, 8] {
        departs(&mut a, at);
        a.request(0, &[], &[], 0).unwrap();
    }
    hold(&mut b, &transmit(&mut a, 0), 0);
    hold(&mut b, &[a.goodbye().to_vec()], 0);
    assert!(b.is_ending() && b.lost().is_none() && b.deadline().is_none());
    release(&mut b, 10);
    assert_eq!(b.lost(), None);
    release(&mut b, 20);
    assert_eq!((b.lost(), b.next_due()), (Some(Loss::Closed), None));
}

/// Of two acknowledgements that overtake each other the later count holds.
#[test]
fn the_latest_count_is_applied_after_what_is_held() {
    let [mut a, mut b] = dialled_pair();
    for _ in 0..4 {
        departs(&mut a, 100);
        a.request(0, &[], &[], 0).unwrap();
    }
    hold(&mut b, &transmit(&mut a, 0), 0);
    departs(&mut b, 200);
    b.request(0, &[], &[], 0).unwrap();
    hold(&mut a, &transmit(&mut b, 0), 0);
    let mut counts = [2, 4].map(|nth| {
        release(&mut b, (nth - 1) * DELAY_NS);
        b.on_time(nth * DELAY_NS);
        transmit(&mut b, nth * DELAY_NS)
    });
    assert!(counts.iter().all(|datagrams| !datagrams.is_empty()));
    counts.reverse();
    counts.iter().for_each(|datagrams| hold(&mut a, datagrams, 4 * DELAY_NS));
    assert_eq!((a.held(), a.in_flight()), (1, 4));
    release(&mut a, 200);
    assert_eq!(a.in_flight(), 2);
}

/// A get that will be refused brings no bytes, whatever it asks for.
#[test]
fn a_refused_get_takes_no_time_on_a_dialled_link() {
    let [mut a, mut b] = dialled_pair();
    departs(&mut a, 7);
    a.get([0, 0, u64::MAX], 0).unwrap();
    hold(&mut b, &transmit(&mut a, 0), 0);
    let mut bytes = None;
    let released = b.release(10, |len| {
        bytes = Some(len);
        Departed { at: 10, at_once: true }
    });
    assert!(matches!(released, Some(Released::Event(Event::Nothing))), "{released:?}");
    assert_eq!(bytes, Some(0));
}

/// A peer whose answer is not due is neither probed nor given up.
#[test]
fn nobody_is_silent_before_its_time() {
    let [mut a, mut b] = dialled_pair();
    let late_ns = 20_000_000_000;
    departs(&mut a, 7);
    a.expect_answer(late_ns);
    a.request(0, &[], &[], 0).unwrap();
    hold(&mut b, &transmit(&mut a, 0), 0);
    b.on_time(DELAY_NS);
    hold(&mut a, &transmit(&mut b, DELAY_NS), DELAY_NS);
    assert!(a.deadline().unwrap() > late_ns);
    a.on_time(late_ns);
    assert_eq!(a.transmit(late_ns), None);
    assert_eq!(a.lost(), None);
    a.on_time(late_ns + Config::default().peer_timeout_ns);
    assert_eq!(a.lost(), Some(Loss::Silent));
}

#[test]
fn a_peer_that_floods_is_not_held_without_end() {
    let [mut a, mut b] = dialled_pair();
    for sequence in 0..100 {
        let departed = Some(Departed { at: 1, at_once: true });
        let header = Header { departed, ..a.header(Kind::Request, 0) };
        let mut bytes = Vec::new();
        datagram::write(&header, &[], &[], &mut bytes);
        datagram::stamp(&mut bytes, sequence, 1, Arrived::default());
        hold(&mut b, &[bytes], 0);
    }
    assert_eq!((b.held(), b.counters().absurd, a.next_due()), (8, 1, None));
    a.end();
}

#[test]
fn two_sides_that_close_at_once_do_not_wait_for_each_other() {
    let [mut a, mut b] = pair(4);
    let message = |of: &mut Connection| {
        of.request(0, &[], &[], 0).unwrap();
        transmit(of, 0).remove(0)
    };
    let (from_a, from_b) = (message(&mut a), message(&mut b));
    let at_end =
        |of: &mut Connection, bytes: &[u8]| of.receive_at_end(&datagram::parse(bytes).unwrap().header, 0);
    at_end(&mut a, &from_b);
    let answer = transmit(&mut a, 0).remove(0);
    assert_eq!(datagram::parse(&answer).unwrap().header.kind, Kind::Closing);
    // A side that does not close still takes what the other sends again.
    assert_eq!(deliver(&mut b, core::slice::from_ref(&answer), false, 0), 0);
    assert!(b.has_unacknowledged() && b.lost().is_none());
    at_end(&mut b, &answer);
    assert!(!b.has_unacknowledged() && a.has_unacknowledged());
    at_end(&mut b, &from_a);
    at_end(&mut a, &transmit(&mut b, 0).remove(0));
    assert!(!a.has_unacknowledged());
}

#[test]
fn a_goodbye_tells_what_was_handled() {
    let [mut a, mut b] = pair(8);
    (0..3).for_each(|_| a.request(0, &[], &[], 0).unwrap());
    let requests = transmit(&mut a, 0);
    assert_eq!(deliver(&mut b, &requests[..2], false, 0), 2);
    let goodbye = [b.goodbye().to_vec()];
    deliver(&mut a, &goodbye, false, 0);
    assert_eq!((a.lost(), a.in_flight(), a.not_sent()), (Some(Loss::Closed), 1, 0));
}
