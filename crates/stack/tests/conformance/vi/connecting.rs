//! Connecting VIs, and the errors of that.

use super::end::{End, connect, drive, failed, pair, wait_for};
use crate::common::{TIMEOUT, Transport};
use netdyno_stack::vi::*;
use std::time::Duration;

fn ends(transport: &Transport) -> [End; 2] {
    [(); 2].map(|()| End::open(transport))
}

/// A timeout that is short enough to wait for, in tests where no answer comes.
const MOMENT: Duration = Duration::from_millis(100);

/// The second end waits, and the first one asks. Returns the request that the second end received.
fn asked(ends: &mut [End; 2], vi: ViHandle) -> ConnHandle {
    let wait = ends[1].wait("server", TIMEOUT);
    let to = ends[1].address("server");
    ends[0].ask(vi, "client", to, false, TIMEOUT);
    let mut conn = None;
    drive(ends, "a request", |ends| {
        conn = ends[1].provider.waited(wait).unwrap();
        conn.is_some()
    });
    conn.unwrap()
}

fn answer(ends: &mut [End; 2], vi: ViHandle) -> Result<Offer, ConnectError> {
    let mut answer = None;
    drive(ends, "an answer", |ends| {
        answer = ends[0].provider.answer(vi).transpose();
        answer.is_some()
    });
    answer.unwrap()
}

/// Sends a message in each direction.
fn exchange(ends: &mut [End; 2], vis: [ViHandle; 2]) {
    for (from, to) in [(0, 1), (1, 0)] {
        ends[from].write(0, b"hello");
        ends[to].receive_into(vis[to], 1000, 10);
        ends[from].send_from(vis[from], 0, 5);
        assert_eq!(wait_for(ends, to, vis[to], Side::Receive).completion.len, 5);
        assert_eq!(ends[to].read(1000, 5), b"hello");
        wait_for(ends, from, vis[from], Side::Send);
    }
}

pub fn a_client_finds_a_server(transport: &Transport) {
    for level in [Level::Delivery, Level::Reception] {
        let mut ends = ends(transport);
        let vis = ends.each_mut().map(|end| end.vi(level));
        let conn = asked(&mut ends, vis[0]);
        let request = ends[1].provider.request(conn).unwrap().clone();
        assert_eq!(request.from.discriminator, ends[0].address("client").discriminator);
        assert_eq!(request.to.discriminator, ends[1].address("server").discriminator);
        assert_eq!(request.offer.level, level);
        ends[1].provider.accept(conn, vis[1]).unwrap();
        assert_eq!(answer(&mut ends, vis[0]).unwrap().level, level);
        exchange(&mut ends, vis);
    }
}

pub fn a_request_is_rejected(transport: &Transport) {
    let mut ends = ends(transport);
    let vi = ends[0].vi(Level::Delivery);
    let conn = asked(&mut ends, vi);
    ends[1].provider.reject(conn).unwrap();
    assert_eq!(answer(&mut ends, vi), Err(ConnectError::Rejected));
    assert_eq!(ends[0].state(vi), State::Idle);
    // The VI may ask again.
    let other = ends[1].vi(Level::Delivery);
    let conn = asked(&mut ends, vi);
    ends[1].provider.accept(conn, other).unwrap();
    answer(&mut ends, vi).unwrap();
    exchange(&mut ends, [vi, other]);
}

pub fn vis_that_do_not_fit_together_are_not_connected(transport: &Transport) {
    let mut ends = ends(transport);
    let vi = ends[0].vi(Level::Delivery);
    let others = Level::ALL.map(|level| ends[1].vi(level));
    let conn = asked(&mut ends, vi);
    let conflict = Err(ConnectError::Conflict(netdyno_protocol::vi::Conflict::Level));
    assert_eq!(ends[1].provider.accept(conn, others[2]), conflict);
    assert_eq!(ends[1].provider.accept(conn, others[0]), conflict);
    ends[1].provider.accept(conn, others[1]).unwrap();
    answer(&mut ends, vi).unwrap();
    exchange(&mut ends, [vi, others[1]]);
}

pub fn nobody_waits(transport: &Transport) {
    let mut ends = ends(transport);
    let vi = ends[0].vi(Level::Delivery);
    // The second end waits at another discriminator.
    let wait = ends[1].wait("another", TIMEOUT);
    let to = ends[1].address("server");
    ends[0].ask(vi, "client", to, false, TIMEOUT);
    assert_eq!(answer(&mut ends, vi), Err(ConnectError::NoMatch));
    assert_eq!(ends[1].provider.waited(wait), Ok(None));
    assert_eq!(ends[0].state(vi), State::Idle);
}

pub fn the_time_is_up(transport: &Transport) {
    let mut ends = ends(transport);
    let vi = ends[0].vi(Level::Delivery);
    let wait = ends[1].wait("server", MOMENT);
    drive(&mut ends, "the end of waiting", |ends| match ends[1].provider.waited(wait) {
        Ok(conn) => {
            assert_eq!(conn, None);
            false
        }
        Err(error) => {
            assert_eq!(error, ConnectError::Timeout);
            true
        }
    });
    // The request arrives and is not answered.
    let wait = ends[1].wait("server", TIMEOUT);
    let to = ends[1].address("server");
    ends[0].ask(vi, "client", to.clone(), false, MOMENT);
    assert_eq!(answer(&mut ends, vi), Err(ConnectError::Timeout));
    let _ = ends[1].provider.waited(wait);
    // The peer does not make the peer request in return.
    ends[0].ask(vi, "client", to, true, MOMENT);
    assert_eq!(answer(&mut ends, vi), Err(ConnectError::Timeout));
    assert_eq!(ends[0].state(vi), State::Idle);
}

pub fn a_host_that_is_not_there_does_not_answer(transport: &Transport) {
    let gone = End::open(transport).address("server");
    let mut ends = ends(transport);
    let vi = ends[0].vi(Level::Delivery);
    ends[0].ask(vi, "client", gone, false, MOMENT);
    assert!(matches!(answer(&mut ends, vi), Err(ConnectError::Timeout | ConnectError::NoMatch)));
}

/// A provider that communicates with a single peer is still found by another one when it waits.
pub fn a_third_one_asks(transport: &Transport) {
    let (mut ends, vis) = pair(transport, Level::Delivery);
    exchange(&mut ends, vis);
    let [first, mut second] = ends;
    let mut ends = [End::open(transport), first];
    let vi = ends[0].vi(Level::Delivery);
    let other = ends[1].vi(Level::Delivery);
    let conn = asked(&mut ends, vi);
    ends[1].provider.accept(conn, other).unwrap();
    answer(&mut ends, vi).unwrap();
    exchange(&mut ends, [vi, other]);
    let [third, first] = ends;
    // The earlier connection still works.
    second.progress();
    let mut ends = [first, second];
    exchange(&mut ends, vis);
    drop(third);
    exchange(&mut ends, vis);
}

/// Several VIs of two providers. One pair is connected again and again.
pub fn vis_are_connected_beside_each_other_and_again(transport: &Transport) {
    let (mut ends, first) = pair(transport, Level::Delivery);
    let second = ends.each_mut().map(|end| end.vi(Level::Reception));
    connect(&mut ends, second);
    exchange(&mut ends, first);
    for round in 0..20 {
        exchange(&mut ends, second);
        let at = round % 2;
        ends[at].provider.disconnect(second[at]).unwrap();
        assert_eq!(ends[at].state(second[at]), State::Idle);
        assert_eq!(failed(&mut ends, 1 - at), AsyncError::ConnLost);
        assert_eq!(ends[1 - at].state(second[1 - at]), State::Error);
        ends[1 - at].provider.disconnect(second[1 - at]).unwrap();
        connect(&mut ends, second);
        exchange(&mut ends, first);
    }
}
