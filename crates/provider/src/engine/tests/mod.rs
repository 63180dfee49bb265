mod closing;
mod onesided;

use super::completion::OPS;
use super::links::{LinkEvent, Links, Payload};
use super::*;
use crate::abi;
use crate::matching::Wanted;
use crate::memory::{Segment, WindowPart};
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

const PEER: PeerNo = 1;

/// One direction of a connection.
#[derive(Default)]
struct Way {
    messages: VecDeque<Vec<u8>>,
    /// Messages that were sent and not given back.
    taken: usize,
    is_broken: bool,
}

/// Connections between two engines of one process. Each refuses some sends, as a full ring does.
struct Wires {
    out: Rc<RefCell<Way>>,
    into: Rc<RefCell<Way>>,
    copied: Copied,
    /// Whether long messages are written into windows.
    has_windows: bool,
    sends: u32,
    refuses: u32,
}

impl Links for Wires {
    type Buffer = Vec<u8>;

    fn try_send(&mut self, peer: PeerNo, header: &[u8], payload: Payload<'_>) -> bool {
        assert_eq!(peer, PEER);
        if self.is_refused() {
            return false;
        }
        let mut bytes = vec![0; LONGEST];
        let len = payload.write_behind(header, &mut bytes);
        bytes.truncate(len);
        let mut way = self.out.borrow_mut();
        way.taken += 1;
        assert!(way.taken <= RECEIVES.into(), "a message came for which no receive was posted");
        way.messages.push_back(bytes);
        true
    }

    fn next(&mut self) -> Option<LinkEvent<Vec<u8>>> {
        let mut way = self.into.borrow_mut();
        match way.messages.pop_front() {
            Some(bytes) => Some(LinkEvent::Message(PEER, bytes)),
            None => std::mem::take(&mut way.is_broken).then_some(LinkEvent::Lost(PEER)),
        }
    }

    fn give_back(&mut self, _: PeerNo, _: Vec<u8>) {
        self.into.borrow_mut().taken -= 1;
    }

    fn end(&mut self, _: PeerNo) {
        self.into.borrow_mut().messages.clear();
    }

    fn pull(&mut self, _: PeerNo, from: &[Segment], to: &Memory) -> Copied {
        self.copy(from, |from| to.write(0, &from))
    }

    fn push(&mut self, _: PeerNo, from: &Memory, to: &[Segment]) -> Copied {
        let mut bytes = vec![0; from.len()];
        from.read(0, &mut bytes);
        // SAFETY: the test's memory outlives its operations.
        self.copy(&[], |_| unsafe { Memory::new(to.iter().copied()) }.write(0, &bytes))
    }

    fn open_window(&mut self, _: PeerNo, memory: &Memory) -> Option<Window> {
        let part = |segment: &Segment| WindowPart { segment: *segment, handle: 7 };
        let parts = memory.segments().iter().map(part).collect();
        self.has_windows.then_some(Window { parts })
    }

    fn try_write(&mut self, _: PeerNo, memory: &Memory, offset: usize, window: &Window) -> usize {
        if self.is_refused() {
            return 0;
        }
        let to = window.at(offset).unwrap();
        assert_eq!(to.handle, 7);
        let mut bytes = vec![0; (to.segment.len as usize).min(5000)];
        let len = memory.read(offset, &mut bytes);
        // SAFETY: the test's memory outlives its operations.
        unsafe { Memory::new([to.segment]) }.write(0, &bytes[..len])
    }
}

impl Wires {
    fn is_refused(&mut self) -> bool {
        self.sends += 1;
        self.refuses > 0 && self.sends.is_multiple_of(self.refuses)
    }

    fn copy(&self, from: &[Segment], to: impl FnOnce(Vec<u8>) -> usize) -> Copied {
        if self.copied == Copied::Whole {
            // SAFETY: the test's memory outlives its operations.
            let from = unsafe { Memory::new(from.iter().copied()) };
            let mut bytes = vec![0; from.len()];
            from.read(0, &mut bytes);
            to(bytes);
        }
        self.copied
    }
}

/// Two engines with an endpoint and a completion queue each.
fn pair(copied: Copied, refuses: u32) -> [Engine<Wires>; 2] {
    pair_with_windows(copied, refuses, false)
}

fn pair_with_windows(copied: Copied, refuses: u32, has_windows: bool) -> [Engine<Wires>; 2] {
    let ways = [(); 2].map(|()| Rc::new(RefCell::new(Way::default())));
    [[0, 1], [1, 0]].map(|[out, into]| {
        let (out, into) = (ways[out].clone(), ways[into].clone());
        let links = Wires { out, into, copied, has_windows, sends: 0, refuses };
        let mut engine = Engine::new(links);
        let queue = engine.completions.queues.insert(Default::default());
        let counter = engine.completions.counters.insert(Default::default());
        let reports = Reports { queues: [Some(queue); OPS], counters: [Some(counter); OPS] };
        engine.endpoints.insert(Endpoint { reports, ..Endpoint::default() }).unwrap();
        engine
    })
}

/// The program's memory, which never moves.
fn memory(bytes: &mut [u8]) -> Memory {
    let address = bytes.as_mut_ptr().expose_provenance() as u64;
    // SAFETY: the tests keep the bytes until the operation is complete.
    unsafe { Memory::new([Segment { address, len: bytes.len() as u64 }]) }
}

/// Returns the bytes of the nth message.
fn pattern(nth: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (nth * 31 + at * 7) as u8).collect()
}

fn message(tag: u64, memory: Memory, context: usize, wants: Wants) -> Send {
    Send {
        to: Target { peer: PEER, endpoint: 0 },
        tag: Some(tag),
        data: Some(tag + 1),
        memory,
        context,
        wants,
    }
}

fn posting(wanted: Wanted, memory: Memory, context: usize) -> Posting {
    Posting { wanted, is_tagged: true, memory, context, is_reported: true, is_of_several: false }
}

const ANY: Wanted = Wanted { source: None, tag: 0, ignore: u64::MAX };
const REPORTED: Wants = Wants { is_reported: true, until: Until::Sent, is_injected: false };

fn completions(engine: &mut Engine<Wires>) -> Vec<Completion> {
    engine.completions.queues[0].drain(..).collect()
}

/// Lets both engines work until neither has anything to do.
fn settle(engines: &mut [Engine<Wires>; 2]) {
    let mut quiet = 0;
    while quiet < 64 {
        let is_any = engines.iter_mut().fold(false, |is_any, engine| engine.progress() | is_any);
        quiet = if is_any { 0 } else { quiet + 1 };
    }
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0), 1..100_usize, PAYLOAD - 1..=PAYLOAD + 1, Just(5 * PAYLOAD + 3)]
}

proptest! {
    /// Messages go both ways, some of them unexpected, through rings that refuse. The nth receive of a tag gets the
    /// nth message of it.
    #[test]
    fn every_message_arrives_whole_and_in_order(
        messages in proptest::collection::vec((length(), 0..3_u64, 0..3_u8, any::<bool>()), 1..60),
        refuses in prop_oneof![Just(0), 2..5_u32],
        copied in prop_oneof![Just(Copied::Whole), Just(Copied::NotHere)],
        early: bool,
        has_windows: bool,
        is_deferring: bool,
        most_unexpected in prop_oneof![Just(0), 0..20_000_usize, Just(usize::MAX)],
    ) {
        let mut engines = pair_with_windows(copied, refuses, has_windows);
        for engine in &mut engines {
            engine.set_deferring(is_deferring);
            engine.set_most_unexpected(most_unexpected);
        }
        let count = messages.len();
        let mut sent: Vec<Vec<u8>> =
            messages.iter().enumerate().map(|(nth, (len, ..))| pattern(nth, *len)).collect();
        let mut got: Vec<Vec<u8>> = vec![vec![0; 5 * PAYLOAD + 3]; count];
        let post = |engines: &mut [Engine<Wires>; 2], got: &mut [Vec<u8>]| {
            for (nth, (_, tag, _, goes_back)) in messages.iter().enumerate() {
                let wanted = Wanted { source: Some(source(PEER, 0)), tag: *tag, ignore: 0 };
                let receiver = &mut engines[usize::from(!goes_back)];
                receiver.receive(0, posting(wanted, memory(&mut got[nth]), nth)).unwrap();
            }
        };
        if early {
            post(&mut engines, &mut got);
        }
        for (nth, (len, tag, way, goes_back)) in messages.iter().enumerate() {
            let until = if *way == 1 { Until::Delivered } else { Until::Sent };
            let wants = Wants { until, is_injected: *way == 2 && *len <= PAYLOAD, ..REPORTED };
            loop {
                let memory = memory(&mut sent[nth]);
                match engines[usize::from(*goes_back)].send(0, message(*tag, memory, count + nth, wants)) {
                    Ok(()) => {
                        if wants.is_injected {
                            sent[nth].fill(0);
                        }
                        break;
                    }
                    Err(refused) => prop_assert_eq!(refused, Refused::Again),
                }
                for engine in &mut engines {
                    engine.progress();
                }
            }
        }
        if !early {
            settle(&mut engines);
            post(&mut engines, &mut got);
        }
        settle(&mut engines);
        for (nth, (len, ..)) in messages.iter().enumerate() {
            sent[nth] = pattern(nth, *len);
        }
        prop_assert!(engines.iter_mut().all(|engine| engine.is_flushed()));
        let done = engines.each_mut().map(completions);
        let total: usize = done.iter().map(Vec::len).sum();
        prop_assert_eq!(total, 2 * count);
        for (end, done) in done.iter().enumerate() {
            prop_assert!(done.iter().all(|completion| completion.failure.is_none()));
            for tag in 0..3 {
                let of_tag = |goes_back: bool| {
                    let those = messages.iter().enumerate();
                    those.filter(move |(_, message)| message.1 == tag && message.3 == goes_back).map(|(nth, _)| nth)
                };
                // Receives of one tag complete with the messages of this tag, in order.
                for (receive, sent_nth) in of_tag(end == 0).zip(of_tag(end == 0)) {
                    let completion = done.iter().find(|completion| completion.context == receive).unwrap();
                    prop_assert_eq!(&got[receive][..completion.len], &sent[sent_nth][..]);
                    prop_assert_eq!((completion.tag, completion.data), (tag, tag + 1));
                    prop_assert_eq!(completion.source, source(PEER, 0));
                }
            }
        }
        prop_assert!(engines.iter().all(|engine| engine.transfers.is_empty()));
        let counted: u64 = engines.iter().map(|engine| engine.completions.counters[0].value).sum();
        prop_assert_eq!(counted, 2 * count as u64);
    }

    /// Peers may send anything.
    #[test]
    fn nonsense_is_survived(
        all in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 1..40),
        kind in 1..14_u8,
    ) {
        let [mut engine, _] = pair(Copied::NotHere, 0);
        let mut room = vec![0; 100];
        engine.receive(0, posting(ANY, memory(&mut room), 7)).unwrap();
        for mut bytes in all {
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            if bytes.len() > 4 {
                bytes[2..4].fill(0);
            }
            engine.links.into.borrow_mut().taken += 1;
            engine.links.into.borrow_mut().messages.push_back(bytes);
            engine.links.out.borrow_mut().taken = 0;
            engine.progress();
        }
    }
}

/// A program sends more than its peer keeps, before that receives anything.
#[test]
fn a_sender_of_unexpected_messages_is_held_back_and_goes_on() {
    // Miri takes half an hour for 2000.
    const COUNT: usize = if cfg!(miri) { 200 } else { 2000 };
    const LEN: usize = 4096;
    const MOST: usize = 256 * 1024;
    for copied in [Copied::Whole, Copied::NotHere] {
        let mut engines = pair(copied, 0);
        engines.iter_mut().for_each(|engine| engine.set_most_unexpected(MOST));
        let injected = Wants { is_injected: true, ..REPORTED };
        let mut bytes = vec![0; LEN];
        let mut send = |engines: &mut [Engine<Wires>; 2], nth: usize| {
            bytes.copy_from_slice(&pattern(nth, LEN));
            engines[0].send(0, message(9, memory(&mut bytes), nth, injected)).is_ok()
        };
        let mut begun = 0;
        let mut tries = 0;
        while tries < 100 {
            tries = if send(&mut engines, begun) { 0 } else { tries + 1 };
            begun += usize::from(tries == 0);
            for engine in &mut engines {
                engine.progress();
            }
        }
        let kept = engines[1].unexpected.total();
        assert!(kept > MOST && kept <= MOST + usize::from(RECEIVES) * LEN, "{kept}");
        // The sender keeps as many bytes as the receiver.
        assert!(begun * LEN > 2 * MOST && begun < COUNT && !engines[0].is_flushed(), "{begun}");
        let mut got = vec![0; LEN];
        for nth in 0..COUNT {
            engines[1].receive(0, posting(ANY, memory(&mut got), nth)).unwrap();
            while completions(&mut engines[1]).is_empty() {
                if begun < COUNT && send(&mut engines, begun) {
                    begun += 1;
                }
                for engine in &mut engines {
                    engine.progress();
                }
            }
            assert_eq!(got, pattern(nth, LEN), "message {nth}");
        }
        settle(&mut engines);
        assert_eq!(engines[1].unexpected.total(), 0);
        assert!(engines[0].is_flushed() && engines[0].transfers.is_empty());
        // Short messages travel with their bytes again.
        assert!(send(&mut engines, 0) && engines[0].transfers.is_empty());
    }
}

/// A sender that makes progress when it has no room copies no message of a receiver that keeps up.
#[test]
fn a_sender_without_room_learns_of_it_by_progress() {
    let mut engines = pair(Copied::NotHere, 0);
    let mut bytes = vec![7; 100];
    let count = 3 * usize::from(RECEIVES);
    let mut found_none = 0;
    for nth in 0..count {
        engines[1].receive(0, posting(ANY, memory(&mut bytes), nth)).unwrap();
        if engines[0].has_no_room(PEER) {
            found_none += 1;
            engines[0].progress();
        }
        assert!(!engines[0].has_no_room(PEER), "message {nth}");
        engines[0].send(0, message(1, memory(&mut bytes), nth, REPORTED)).unwrap();
        engines[1].progress();
    }
    assert!(found_none > 1);
    assert!(!engines[0].has_no_room(SELF), "a message of this process to itself never waits for room");
}

/// A sender that is held back still reaches a receive for its last message alone.
#[test]
fn a_message_behind_others_that_are_held_back_arrives() {
    for most in [0, 16 * 1024] {
        let mut engines = pair(Copied::Whole, 0);
        engines.iter_mut().for_each(|engine| engine.set_most_unexpected(most));
        let injected = Wants { is_injected: true, ..REPORTED };
        for nth in 0..40 {
            let mut bytes = pattern(nth, 1000);
            engines[0].send(0, message(nth as u64, memory(&mut bytes), nth, injected)).unwrap();
            settle(&mut engines);
        }
        let mut got = vec![0; 1000];
        for nth in (0..40).rev() {
            let wanted = Wanted { source: None, tag: nth as u64, ignore: 0 };
            engines[1].receive(0, posting(wanted, memory(&mut got), nth)).unwrap();
            settle(&mut engines);
            assert_eq!(completions(&mut engines[1]).len(), 1, "message {nth}");
            assert_eq!(got, pattern(nth, 1000), "message {nth}");
        }
        assert!(engines[0].is_flushed());
    }
}

#[test]
fn a_message_that_is_too_long_is_truncated() {
    for (copied, len) in [(Copied::Whole, 100), (Copied::Whole, 2 * PAYLOAD), (Copied::NotHere, 2 * PAYLOAD)]
    {
        let mut engines = pair(copied, 0);
        let (mut sent, mut got) = (pattern(1, len), vec![0; 60]);
        engines[1].receive(0, posting(ANY, memory(&mut got), 5)).unwrap();
        engines[0].send(0, message(9, memory(&mut sent), 1, REPORTED)).unwrap();
        settle(&mut engines);
        let [done] = completions(&mut engines[1]).try_into().unwrap();
        assert_eq!((done.failure, done.len), (Some((Failure::Truncated, len - 60)), 60));
        assert_eq!(got, sent[..60]);
        assert_eq!(completions(&mut engines[0])[0].failure, None);
    }
}

#[test]
fn a_buffer_of_several_is_filled_and_released_once() {
    let mut engines = pair(Copied::NotHere, 0);
    let mut got = vec![0; 3 * PAYLOAD];
    engines[1].endpoints.get_mut(0).unwrap().least_room = PAYLOAD;
    let posted = Posting { is_tagged: false, is_of_several: true, ..posting(ANY, memory(&mut got), 5) };
    // The first two arrive before the buffer is there.
    let mut sent: Vec<Vec<u8>> = [100, PAYLOAD + 50, PAYLOAD, 10].map(|len| pattern(len, len)).into();
    for (nth, bytes) in sent.iter_mut().enumerate() {
        let send = Send { tag: None, ..message(0, memory(bytes), nth, REPORTED) };
        engines[0].send(0, send).unwrap();
        if nth == 1 {
            settle(&mut engines);
            engines[1].receive(0, posted.clone()).unwrap();
        }
    }
    settle(&mut engines);
    let done = completions(&mut engines[1]);
    let mut parts: Vec<_> =
        done.iter().map(|done| (done.buffer as usize - got.as_ptr().addr(), done.len)).collect();
    assert_eq!(done.iter().filter(|done| done.flags & crate::abi::MULTI_RECV != 0).count(), 1);
    assert!(done.last().is_some_and(|last| last.flags & crate::abi::MULTI_RECV != 0));
    parts.sort_unstable();
    assert_eq!(parts, [(0, 100), (100, PAYLOAD + 50), (PAYLOAD + 150, PAYLOAD)]);
    for ((at, len), sent) in parts.iter().zip(&sent) {
        assert_eq!(got[*at..at + len], sent[..]);
    }
    let endpoint = engines[1].endpoints.get_mut(0).unwrap();
    assert_eq!((endpoint.untagged.find_message(&ANY).is_some(), endpoint.buffers.len()), (true, 0));
}

#[test]
fn messages_are_found_claimed_and_discarded() {
    let mut engines = pair(Copied::Whole, 0);
    let mut sent: Vec<Vec<u8>> = (0..4).map(|nth| pattern(nth, 10 + nth)).collect();
    for (nth, bytes) in sent.iter_mut().enumerate() {
        engines[0].send(0, message(nth as u64, memory(bytes), nth, REPORTED)).unwrap();
    }
    settle(&mut engines);
    let receiver = &mut engines[1];
    let tag = |tag| Wanted { source: None, tag, ignore: 0 };
    assert_eq!(receiver.find(0, &tag(8), true, None), Ok(None));
    let found = receiver.find(0, &tag(2), true, Some(77)).unwrap().unwrap();
    assert_eq!((found.len, found.data, found.source), (12, Some(3), source(PEER, 0)));
    assert_eq!(receiver.find(0, &tag(2), true, None), Ok(None));
    assert!(receiver.discard(0, &tag(0), true, None).is_some());
    let mut got = vec![0; 20];
    assert!(receiver.receive_claimed(0, memory(&mut got), 77, true));
    assert!(!receiver.receive_claimed(0, memory(&mut got), 77, true));
    assert_eq!(got[..12], sent[2][..]);
    receiver.receive(0, posting(ANY, memory(&mut got), 6)).unwrap();
    assert_eq!(got[..11], sent[1][..]);
    receiver.receive(0, posting(tag(9), memory(&mut got), 8)).unwrap();
    assert!(receiver.cancel(0, 8) && !receiver.cancel(0, 8));
    let done = completions(receiver);
    assert_eq!(done.iter().map(|done| done.context).collect::<Vec<_>>(), [77, 6, 8]);
    assert_eq!(done[2].failure, Some((Failure::Cancelled, 0)));
}

#[test]
fn a_process_sends_to_itself() {
    let [mut engine, _] = pair(Copied::Whole, 0);
    for len in [5, 2 * PAYLOAD] {
        let (mut sent, mut got) = (pattern(len, len), vec![0; len]);
        let to = Target { peer: SELF, endpoint: 0 };
        engine.receive(0, posting(ANY, memory(&mut got), 4)).unwrap();
        engine.send(0, Send { to, ..message(1, memory(&mut sent), 3, REPORTED) }).unwrap();
        for _ in 0..5 {
            engine.progress();
        }
        assert_eq!((completions(&mut engine).len(), got), (2, sent));
    }
}

/// Messages to the process itself are bounded as those of others.
#[test]
fn a_process_does_not_flood_itself() {
    const LEN: usize = 4096;
    const MOST: usize = 64 * 1024;
    let [mut engine, _] = pair(Copied::Whole, 0);
    engine.set_most_unexpected(MOST);
    let injected = Wants { is_injected: true, ..REPORTED };
    let mut begun = 0;
    loop {
        let mut bytes = pattern(begun, LEN);
        let to = Target { peer: SELF, endpoint: 0 };
        let message = Send { to, ..message(9, memory(&mut bytes), begun, injected) };
        match engine.send(0, message) {
            Ok(()) => begun += 1,
            Err(refused) => {
                assert_eq!(refused, Refused::Again);
                break;
            }
        }
        engine.progress();
        assert!(begun < 1000);
    }
    let kept = engine.unexpected.total();
    assert!(kept > MOST && kept <= MOST + 2 * LEN && begun * LEN > 2 * kept, "{kept} of {begun}");
    let mut got = vec![0; LEN];
    for nth in 0..begun {
        engine.receive(0, posting(ANY, memory(&mut got), nth)).unwrap();
        while !completions(&mut engine).iter().any(|completion| completion.flags & abi::RECV != 0) {
            engine.progress();
        }
        assert_eq!(got, pattern(nth, LEN), "message {nth}");
    }
    assert_eq!(engine.unexpected.total(), 0);
}

/// Lets both engines work until the first bytes have arrived, and not the last.
fn begin_pieces(engines: &mut [Engine<Wires>; 2], got: &Memory) {
    let byte = |place: usize| {
        let mut byte = [0];
        got.read(place, &mut byte);
        byte[0]
    };
    while byte(0) == 0 {
        engines[0].progress();
        engines[1].progress();
    }
    assert_eq!(byte(got.len() - 1), 0);
}

const LONG: usize = 12 * PAYLOAD;

#[test]
fn a_message_may_wait_until_it_is_matched() {
    for len in [10, 2 * PAYLOAD] {
        let mut engines = pair(Copied::Whole, 0);
        let (mut sent, mut got) = (vec![1; len], vec![0; len]);
        for until in [Until::Delivered, Until::Matched] {
            let wants = Wants { until, ..REPORTED };
            engines[0].send(0, message(9, memory(&mut sent), 1, wants)).unwrap();
            settle(&mut engines);
            let is_early = until == Until::Delivered && len < PAYLOAD;
            assert_eq!(completions(&mut engines[0]).len(), usize::from(is_early));
            engines[1].receive(0, posting(ANY, memory(&mut got), 5)).unwrap();
            settle(&mut engines);
            assert_eq!(completions(&mut engines[0]).len(), usize::from(!is_early));
            assert_eq!(got, sent);
        }
    }
}
