use super::*;
use crate::frame::datagram::Header;
use crate::reliability::congestion::Relentless;
use proptest::prelude::*;

type Sending = super::Sending<Relentless>;

const DELAY_NS: u64 = 1_000;
const NOTHING: Arrived = Arrived { expected: 0, selective: 0, latest: 0, is_stale: false, granted: 0 };

fn queue(sending: &mut Sending, kind: Kind) {
    let header = Header {
        kind,
        handler: 0,
        connection: 7,
        sequence: 0,
        transmission: 0,
        arrived: NOTHING,
        completed: 0,
        departed: None,
    };
    let mut bytes = Vec::new();
    datagram::write(&header, &[0], &[0], &mut bytes);
    sending.enqueue(kind, bytes);
}

/// Queues `count` messages, none of which is transmitted.
fn queued(count: u32) -> Sending {
    let recovery = Recovery::default();
    let congestion = Relentless::new(recovery.initial_window);
    let mut sending = Sending::new(recovery, congestion, 0, DELAY_NS, 0);
    (0..count).for_each(|_| queue(&mut sending, Kind::Request));
    sending
}

/// Transmits all messages that may be transmitted. Returns their sequence numbers.
fn transmit(sending: &mut Sending, now_ns: u64) -> Vec<u32> {
    core::iter::from_fn(|| {
        let at = sending.next()?;
        let bytes = sending.transmit(at, NOTHING, now_ns);
        Some(datagram::parse(bytes).unwrap().header.sequence)
    })
    .collect()
}

/// The peer acknowledges messages, each by its last transmission.
fn acknowledge(
    sending: &mut Sending,
    expected: u32,
    selective: u64,
    now_ns: u64,
) -> Result<AckOutcome, AckOfUnsent> {
    let first = sending.first;
    let is_there = |at: &usize| {
        let offset = (first + *at as u32).wrapping_sub(expected);
        offset > u32::MAX / 2 || (1..=64).contains(&offset) && selective >> (offset - 1) & 1 == 1
    };
    let there = (0..sending.transmitted).filter(is_there);
    let latest = there.map(|at| sending.messages[at].flight.last.order).max().unwrap_or(0);
    let arrived = Arrived { expected, selective, latest: latest as u16, ..NOTHING };
    sending.acknowledge(arrived, now_ns, &mut Buffers::default())
}

fn count(sending: &Sending, state: SendState) -> usize {
    sending.messages.iter().take(sending.transmitted).filter(|m| m.flight.state == state).count()
}

#[test]
fn messages_are_kept_until_they_are_acknowledged() {
    let mut sending = queued(5);
    assert_eq!(transmit(&mut sending, 0), [0, 1, 2, 3, 4]);
    acknowledge(&mut sending, 3, 0, 10).unwrap();
    assert_eq!((sending.len(), sending.under_way), (2, 2));
    // An acknowledgement that was overtaken says nothing.
    assert_eq!(acknowledge(&mut sending, 3, 0, 15), Ok(AckOutcome::Duplicate));
    assert_eq!(acknowledge(&mut sending, 1, 0, 20), Ok(AckOutcome::Stale));
    acknowledge(&mut sending, 5, 0, 30).unwrap();
    assert_eq!((sending.len(), sending.under_way, sending.next_sequence()), (0, 0, 5));
    assert_eq!((sending.sent, sending.retransmitted), (5, 0));
}

#[test]
fn what_was_not_sent_cannot_have_arrived() {
    let mut sending = queued(2);
    assert_eq!(acknowledge(&mut sending, 1, 0, 0), Err(AckOfUnsent));
    transmit(&mut sending, 0);
    assert_eq!(acknowledge(&mut sending, 3, 0, 0), Err(AckOfUnsent));
    // A bit for a message that does not exist is ignored.
    acknowledge(&mut sending, 0, 1 << 1, 0).unwrap();
    assert_eq!(sending.under_way, 2);
}

#[test]
fn a_message_that_three_later_ones_overtook_is_sent_again() {
    let mut sending = queued(6);
    transmit(&mut sending, 0);
    acknowledge(&mut sending, 0, 0b011, 10).unwrap();
    assert_eq!(sending.next(), None);
    acknowledge(&mut sending, 0, 0b111, 20).unwrap();
    queue(&mut sending, Kind::Request);
    assert_eq!(transmit(&mut sending, 30), [0, 6]);
    // It is lost again when messages sent after its second transmission have arrived.
    (0..2).for_each(|_| queue(&mut sending, Kind::Request));
    assert_eq!(transmit(&mut sending, 40), [7, 8]);
    acknowledge(&mut sending, 0, 0b1111_1111, 50).unwrap();
    assert_eq!(transmit(&mut sending, 60), [0]);
    acknowledge(&mut sending, 9, 0, 70).unwrap();
    assert_eq!((sending.len(), sending.under_way, sending.again), (0, 0, 0));
}

#[test]
fn silence_is_answered_with_the_newest_message_then_with_all_of_them() {
    let mut sending = queued(4);
    transmit(&mut sending, 0);
    sending.on_time(sending.deadline() - 1);
    assert_eq!(sending.next(), None);
    let mut now_ns = sending.deadline();
    sending.on_time(now_ns);
    assert_eq!(transmit(&mut sending, now_ns), [3]);
    now_ns = sending.deadline();
    sending.on_time(now_ns);
    // One message, and two more for each that arrives.
    assert_eq!(transmit(&mut sending, now_ns), [0]);
    acknowledge(&mut sending, 1, 0, now_ns + 10).unwrap();
    assert_eq!(transmit(&mut sending, now_ns + 10), [1, 2]);
    assert!(!sending.take_probe());
}

#[test]
fn where_nothing_can_be_sent_again_a_probe_is_due() {
    let mut sending = queued(0);
    sending.on_time(sending.deadline());
    assert_eq!(sending.next(), None);
    assert!(sending.take_probe());
    assert!(!sending.take_probe());
}

/// Probes for a missing answer do not put off the repair of a later loss.
#[test]
fn the_next_message_forgets_the_probes_before_it() {
    let mut sending = queued(1);
    transmit(&mut sending, 0);
    acknowledge(&mut sending, 1, 0, 10).unwrap();
    let probe_ns = sending.deadline() - 10;
    for _ in 0..10 {
        sending.on_time(sending.deadline());
        assert!(sending.take_probe());
    }
    let now_ns = sending.deadline();
    queue(&mut sending, Kind::Request);
    assert_eq!(transmit(&mut sending, now_ns), [1]);
    assert_eq!(sending.deadline(), now_ns + probe_ns);
}

#[test]
fn requests_that_were_never_transmitted_are_known() {
    let mut sending = queued(20);
    queue(&mut sending, Kind::Reply);
    assert_eq!(sending.requests_not_sent(), 20);
    assert_eq!(transmit(&mut sending, 0).len(), 16);
    assert_eq!(sending.requests_not_sent(), 4);
    acknowledge(&mut sending, 16, 0, 10).unwrap();
    assert_eq!(sending.requests_not_sent(), 4);
    transmit(&mut sending, 10);
    assert_eq!(sending.requests_not_sent(), 0);
}

/// Sends a message whose first transmission is acknowledged after `round_trip_ns`. Handles the timers in
/// between. Returns the number of transmissions.
fn exchange(sending: &mut Sending, round_trip_ns: u64, now_ns: &mut u64) -> u32 {
    sending.restart_timer(*now_ns);
    queue(sending, Kind::Request);
    let end_ns = *now_ns + round_trip_ns;
    let mut sent = transmit(sending, *now_ns).len() as u32;
    let latest = sending.order as u16;
    while sending.deadline() < end_ns {
        *now_ns = sending.deadline();
        sending.on_time(*now_ns);
        sent += transmit(sending, *now_ns).len() as u32;
    }
    *now_ns = end_ns;
    let arrived = Arrived { expected: sending.next_sequence(), latest, ..NOTHING };
    sending.acknowledge(arrived, end_ns, &mut Buffers::default()).unwrap();
    sent
}

#[test]
fn round_trips_longer_than_every_timeout_are_learned() {
    for round_trip_ns in [7_000, 1_000_000, 40_000_000, 300_000_000] {
        let (mut sending, mut now_ns) = (queued(0), 0);
        (0..20).for_each(|_| assert!(exchange(&mut sending, round_trip_ns, &mut now_ns) > 0));
        assert_eq!(exchange(&mut sending, round_trip_ns, &mut now_ns), 1, "{round_trip_ns}");
    }
}

/// For a lost message the transmission that arrived counts, not the time until the retransmission.
#[test]
fn losses_do_not_lengthen_round_trips() {
    let (mut sending, mut now_ns) = (queued(0), 0);
    (0..20).for_each(|_| assert_eq!(exchange(&mut sending, 7_000, &mut now_ns), 1));
    let usual_ns = sending.deadline() - now_ns;
    for _ in 0..20 {
        sending.restart_timer(now_ns);
        queue(&mut sending, Kind::Request);
        transmit(&mut sending, now_ns);
        for _ in 0..4 {
            now_ns = sending.deadline();
            sending.on_time(now_ns);
            transmit(&mut sending, now_ns);
        }
        now_ns += 7_000;
        let all = sending.next_sequence();
        acknowledge(&mut sending, all, 0, now_ns).unwrap();
    }
    assert_eq!(sending.deadline() - now_ns, usual_ns);
}

#[test]
fn an_absence_of_our_own_is_no_round_trip() {
    let (mut sending, mut now_ns) = (queued(0), 0);
    (0..20).for_each(|_| assert_eq!(exchange(&mut sending, 7_000, &mut now_ns), 1));
    let usual_ns = sending.deadline() - now_ns;
    queue(&mut sending, Kind::Request);
    transmit(&mut sending, now_ns);
    now_ns += 3_000_000_000;
    let all = sending.next_sequence();
    acknowledge(&mut sending, all, 0, now_ns).unwrap();
    assert_eq!(sending.deadline() - now_ns, usual_ns);
}

/// The first transmission of a retransmitted message arrives late. It says nothing about messages sent
/// after it.
#[test]
fn a_late_arrival_is_no_proof_of_losses() {
    let mut sending = queued(1);
    transmit(&mut sending, 0);
    let latest = sending.order as u16;
    (0..4).for_each(|_| queue(&mut sending, Kind::Request));
    transmit(&mut sending, 10);
    let now_ns = sending.deadline();
    sending.on_time(now_ns);
    sending.on_time(sending.deadline());
    transmit(&mut sending, now_ns);
    let flying = sending.under_way;
    let arrived = Arrived { expected: 1, latest, ..NOTHING };
    sending.acknowledge(arrived, now_ns + 10, &mut Buffers::default()).unwrap();
    assert_eq!((sending.arrived_order, sending.under_way), (1, flying - 1));
}

proptest! {
    /// The counts agree with the states, and no loss is overlooked, for any acknowledgements at any
    /// times.
    #[test]
    fn counts_agree_with_states(
        steps in proptest::collection::vec((0_u32..4, 0_u32..4, any::<u64>(), any::<u64>(), 0_u64..200_000), 0..200),
    ) {
        let mut sending = queued(0);
        let mut now_ns = 0;
        for (more, news, some, of_these, later_ns) in steps {
            now_ns += later_ns;
            (0..more).for_each(|nth| queue(&mut sending, if nth == 0 { Kind::Request } else { Kind::Chunk }));
            sending.on_time(now_ns);
            transmit(&mut sending, now_ns);
            let expected = sending.first + news.min(sending.transmitted as u32);
            acknowledge(&mut sending, expected, some & of_these, now_ns).unwrap();
            prop_assert_eq!(sending.under_way as usize, count(&sending, SendState::InFlight));
            prop_assert_eq!(sending.again as usize, count(&sending, SendState::Queued));
            let pieces = sending.messages.iter().take(sending.transmitted).filter(|message| {
                message.kind == Kind::Chunk && message.flight.state == SendState::InFlight
            });
            prop_assert_eq!(sending.pieces_under_way as usize, pieces.count());
            let overlooked = |flight: Flight| {
                flight.state == SendState::InFlight && flight.last.order + sending.recovery.packet_threshold <= sending.arrived_order
            };
            prop_assert!(!sending.messages.iter().any(|message| overlooked(message.flight)));
        }
    }
}
