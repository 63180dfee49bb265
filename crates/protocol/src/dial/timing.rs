//! Computes when messages depart, when they are due, and when they are released.

use super::link::{Own, SIZES, Seen, size_class};
use super::parameters::{EffectiveParameters, Latency};
use alloc::collections::VecDeque;

/// The sending side of a process's interface, for all messages that the process sends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Departures {
    free: u64,
}

/// The departure of a message: its stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departed {
    /// The time at which the last byte has left. It may be in the future.
    pub at: u64,
    /// Whether the message did not wait for earlier ones. Only then does the time since `at` measure the
    /// link.
    pub at_once: bool,
}

impl Departures {
    /// Returns the earliest time at which the next message can depart.
    #[inline]
    pub const fn free(&self) -> u64 {
        self.free
    }

    /// Lets a message of `bytes` bytes depart, which is ready at `now`.
    #[inline]
    pub fn depart(&mut self, now: u64, bytes: usize, parameters: &EffectiveParameters) -> Departed {
        self.depart_over(now, now, bytes, parameters)
    }

    /// Lets a message depart whose first byte can leave at `began`, and which the link has accepted as a
    /// whole at `taken`. A link that copies large messages while it accepts them has moved their bytes by
    /// then. So this time is part of the time that the bytes take.
    #[inline]
    pub fn depart_over(
        &mut self,
        began: u64,
        taken: u64,
        bytes: usize,
        parameters: &EffectiveParameters,
    ) -> Departed {
        let delay = parameters.delay(bytes);
        let at_once = self.free <= if delay == 0 { taken } else { began };
        let first = began.max(self.free);
        let at = first.saturating_add(delay).max(taken);
        self.free = first.saturating_add(parameters.data(bytes)).max(at).saturating_add(parameters.send_gap);
        Departed { at, at_once }
    }
}

/// The receiving end of the path from one process to another. Messages keep their order on it.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The latest time at which a message was due.
    last: u64,
    /// The time since which the receiver would have seen the next message, if it had arrived.
    open_since: u64,
    /// The link's own time, by the size of messages: it is longer for large ones.
    own: [Own; SIZES],
}

impl Default for Lane {
    fn default() -> Self {
        Self { last: 0, open_since: 0, own: [const { Own::NONE }; SIZES] }
    }
}

impl Lane {
    /// Returns the time at which the next message is due. Without a stamp, the time at which it was first
    /// seen replaces the stamp.
    #[inline]
    pub fn due(
        &mut self,
        departed: Option<Departed>,
        bytes: usize,
        seen: Seen,
        parameters: &EffectiveParameters,
    ) -> u64 {
        self.due_by(departed, bytes, seen, parameters, |_| parameters.latency.ticks())
    }

    /// Works like [`Lane::due`], with a latency that depends on when the message would be due without one. Of
    /// `parameters` it uses the kind of the latency and the time for the bytes, which must be that of the
    /// departure.
    #[inline]
    pub fn due_by(
        &mut self,
        departed: Option<Departed>,
        bytes: usize,
        seen: Seen,
        parameters: &EffectiveParameters,
        latency: impl FnOnce(u64) -> u64,
    ) -> u64 {
        self.last = self.last.max(self.due_of_any_by(departed, bytes, seen, parameters, latency));
        self.last
    }

    /// Works like [`Lane::due`], for a message of one of several senders, which have no common order.
    pub fn due_of_any(
        &mut self,
        departed: Option<Departed>,
        bytes: usize,
        seen: Seen,
        parameters: &EffectiveParameters,
    ) -> u64 {
        self.due_of_any_by(departed, bytes, seen, parameters, |_| parameters.latency.ticks())
    }

    /// Works like [`Lane::due_by`], for a message of one of several senders, which have no common order.
    pub fn due_of_any_by(
        &mut self,
        departed: Option<Departed>,
        bytes: usize,
        seen: Seen,
        parameters: &EffectiveParameters,
        latency: impl FnOnce(u64) -> u64,
    ) -> u64 {
        let undialled = match (parameters.latency, departed) {
            (Latency::After(_), Some(departed)) => departed.at,
            (Latency::Beyond(_), Some(departed)) => self.was_here(departed, bytes, seen, parameters),
            (_, None) => seen.at,
        };
        undialled.saturating_add(latency(undialled))
    }

    /// Notes that the first message of a queue was taken at `now`, on links that show only the first one. The
    /// next message can be seen from now on. Its time in the queue says nothing about the link.
    #[inline]
    pub fn took_first(&mut self, now: u64) {
        self.open_since = now;
    }

    /// Returns the time at which a message arrived. Only the time at which it was first seen is known, and a
    /// program may poll late. The link carries a message at once, even if its departure waits for earlier
    /// ones, so it may arrive before its stamp.
    fn was_here(
        &mut self,
        departed: Departed,
        bytes: usize,
        seen: Seen,
        parameters: &EffectiveParameters,
    ) -> u64 {
        let delay = parameters.delay(bytes);
        let began = departed.at.saturating_sub(delay);
        let class = size_class(bytes);
        let near = self.near(class).or(seen.elsewhere);
        let own = &mut self.own[class];
        let is_known = departed.at_once && began >= self.open_since;
        let here = if is_known {
            // The sender predicts its departure. The message may be seen before that.
            own.note(began, seen, near).max(began.min(seen.at))
        } else {
            own.arrival(began, seen.at, near)
        };
        if delay == 0 {
            return here;
        }
        if parameters.added_per_byte.is_some() {
            return here.saturating_add(delay);
        }
        // The bytes take the set time. In addition the link takes its own time for a few bytes.
        let known = self.own.iter().filter(|own| own.is_known());
        // Otherwise the time of this message may be how long the receiver was away.
        let was_coming = is_known && seen.not_at.is_some_and(|not_at| not_at >= began);
        let arrivals = known.map(|own| match was_coming {
            true => departed.at.saturating_add(own.get(near)),
            false => own.arrival(departed.at, seen.at, near),
        });
        here.max(arrivals.min().unwrap_or(departed.at))
    }

    /// Returns the usual time of messages that were seen coming, for the size nearest to `bytes`.
    pub fn seen_coming(&self, bytes: usize) -> Option<u64> {
        let class = size_class(bytes);
        self.own[class].seen_coming().or_else(|| self.near(class))
    }

    /// Returns the usual time of messages that were seen coming, for the nearest size below `class`, or else
    /// above it.
    fn near(&self, class: usize) -> Option<u64> {
        let (below, above) = self.own.split_at(class);
        below.iter().rev().chain(above).find_map(Own::seen_coming)
    }
}

/// The receiving side of a process's interface, for all messages that the process receives.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    free: u64,
}

impl Gate {
    /// Returns the time at which a message that is due at `due` can be released, if it is the next one.
    #[inline]
    pub fn opens(&self, due: u64) -> u64 {
        due.max(self.free)
    }

    /// Releases a message. Returns the time of the release. It does not depend on when the program polls,
    /// because the interface does not wait for the program.
    #[inline]
    pub fn pass(&mut self, due: u64, parameters: &EffectiveParameters) -> u64 {
        let released = self.opens(due);
        self.free = released.saturating_add(parameters.recv_gap);
        released
    }
}

/// The messages of a process that are in flight. LogP limits their number to its capacity.
#[derive(Clone, Debug)]
pub struct Capacity {
    most: usize,
    /// The arrival of each message, in ascending order.
    arrivals: VecDeque<u64>,
}

impl Capacity {
    /// Allows `most` messages in flight.
    pub fn new(most: usize) -> Self {
        Self { most, arrivals: VecDeque::new() }
    }

    /// Reports whether one more message may depart at `now`.
    pub fn has_room(&mut self, now: u64) -> bool {
        while self.arrivals.front().is_some_and(|&arrival| arrival <= now) {
            self.arrivals.pop_front();
        }
        self.arrivals.len() < self.most
    }

    /// Notes the departure of a message that arrives at `arrival`. There must be room for it.
    pub fn depart(&mut self, arrival: u64) {
        // On another path a later message may arrive earlier. It counts as long as the others.
        let last = self.arrivals.back().copied().unwrap_or(0);
        self.arrivals.push_back(arrival.max(last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn at(at: u64) -> Option<Departed> {
        Some(Departed { at, at_once: true })
    }

    #[test]
    fn a_burst_takes_the_gaps_and_the_bytes() {
        let parameters =
            EffectiveParameters { send_gap: 100, gap_per_byte: 2.0, ..EffectiveParameters::NONE };
        let mut departures = Departures::default();
        let stamps = [0; 4].map(|now| departures.depart(now, 11, &parameters).at);
        assert_eq!(stamps, [20, 140, 260, 380]);
        // After a pause no gap is left.
        assert_eq!(departures.depart(10_000, 1, &parameters), Departed { at: 10_000, at_once: true });
    }

    /// A message that was seen coming.
    const fn coming(at: u64) -> Seen {
        Seen { not_at: Some(at - 1), ..Seen::late(at) }
    }

    #[test]
    fn latency_is_set_from_the_stamp_and_added_to_what_is_seen() {
        let set = EffectiveParameters { latency: Latency::After(500), ..EffectiveParameters::NONE };
        assert_eq!(Lane::default().due(at(1000), 1, Seen::late(1070), &set), 1500);
        let add = EffectiveParameters { latency: Latency::Beyond(500), ..EffectiveParameters::NONE };
        let mut lane = Lane::default();
        assert_eq!(lane.due(at(1000), 1, coming(1070), &add), 1570);
        assert_eq!(lane.due(at(1500), 1, coming(1570), &add), 2070);
        // Seen late: it had arrived after 70.
        assert_eq!(lane.due(at(2000), 1, Seen::late(9000), &add), 2570);
        // Seen before it departs.
        let departed = Some(Departed { at: 5000, at_once: false });
        assert_eq!(lane.due(departed, 1, Seen::late(3000), &add), 5570);
        // Without a stamp.
        assert_eq!(lane.due(None, 1, Seen::late(6000), &add), 6500);
        assert_eq!(lane.due(None, 1, Seen::late(6100), &set), 6600);
    }

    /// The receiver was away when the first message came. That says nothing about the link, and must not delay those that
    /// departed after others.
    #[test]
    fn the_time_of_an_absent_receiver_is_not_the_links() {
        let add = EffectiveParameters { latency: Latency::Beyond(500), ..EffectiveParameters::NONE };
        let mut lane = Lane::default();
        assert_eq!(lane.due(at(1000), 1, Seen::late(9_000_000), &add), 9_000_500);
        let waited = |at| Some(Departed { at, at_once: false });
        assert_eq!(lane.due(waited(2000), 1, Seen::late(9_000_100), &add), 9_000_600);
        assert_eq!(lane.due(waited(9_500_000), 1, Seen::late(9_000_200), &add), 9_500_500);
    }

    #[test]
    fn a_link_that_has_become_slower_is_believed_in_the_end() {
        let add = EffectiveParameters { latency: Latency::Beyond(500), ..EffectiveParameters::NONE };
        let mut lane = Lane::default();
        let mut due = |nth: u64, took: u64| {
            lane.due(at(nth * 10_000), 1, Seen::late(nth * 10_000 + took), &add) - nth * 10_000
        };
        assert_eq!(due(1, 70), 570);
        let slower: alloc::vec::Vec<u64> = (2..3000).map(|nth| due(nth, 250)).collect();
        assert_eq!((slower[0], slower[2500]), (570, 750));
    }

    /// The first message made a connection. A sender predicts its departures a little too late, so its
    /// messages are seen before their stamps.
    #[test]
    fn what_was_held_up_once_is_forgotten() {
        let add = EffectiveParameters { latency: Latency::Beyond(500), ..EffectiveParameters::NONE };
        let mut lane = Lane::default();
        assert_eq!(lane.due(at(1000), 1, Seen::late(10_001_000), &add), 10_001_500);
        for nth in 2..100 {
            let stamp = nth * 20_000_000;
            let seen = Seen { not_at: Some(stamp - 200), ..Seen::late(stamp - 100) };
            assert_eq!(lane.due(at(stamp), 1, seen, &add), stamp - 100 + 500);
        }
    }

    #[test]
    fn a_large_message_takes_the_time_of_large_ones() {
        let add = EffectiveParameters { latency: Latency::Beyond(500), ..EffectiveParameters::NONE };
        let mut lane = Lane::default();
        assert_eq!(lane.due(at(1000), 8, Seen::late(1070), &add), 1570);
        assert_eq!(lane.due(at(2000), 1 << 20, Seen::late(9000), &add), 9500);
        assert_eq!(lane.due(at(10_000), 8, Seen::late(10_200), &add), 10_570);
    }

    /// The bytes take longer than the link, which takes another 70 for any message.
    #[test]
    fn bytes_take_what_they_are_to_take_beyond_the_link() {
        let parameters = EffectiveParameters { gap_per_byte: 100.0, ..EffectiveParameters::NONE };
        let (mut departures, mut lane) = (Departures::default(), Lane::default());
        for now in [10_000, 20_000] {
            let departed = departures.depart(now, 8, &parameters);
            assert_eq!(lane.due(Some(departed), 8, coming(now + 70), &parameters), now + 700 + 70);
        }
        // It departs after another message, and was seen long before.
        let departed = departures.depart(20_010, 8, &parameters);
        assert_eq!(lane.due(Some(departed), 8, Seen::late(20_080), &parameters), 20_000 + 1400 + 70);
    }

    /// The time of the link varies. The dial adds to the time of each message that is seen coming, and to the
    /// mean for the others.
    #[test]
    fn what_comes_while_somebody_looks_is_believed() {
        let add = EffectiveParameters { latency: Latency::Beyond(500), ..EffectiveParameters::NONE };
        let mut lane = Lane::default();
        for nth in 1..200u64 {
            let (stamp, took) = (10_000 * nth, if nth % 2 == 0 { 400 } else { 600 });
            let seen = Seen { not_at: Some(stamp + took - 10), ..Seen::late(stamp + took + 10) };
            assert_eq!(lane.due(at(stamp), 8, seen, &add), stamp + took + 500);
        }
        let seen = Seen { not_at: Some(8_000_000), ..Seen::late(9_009_000) };
        let due = lane.due(at(9_000_000), 8, seen, &add);
        assert!((9_000_980..9_001_020).contains(&due), "{due}");
        // It was not there at 9_107_000, so it arrived later.
        let seen = Seen { not_at: Some(9_107_000), ..Seen::late(9_109_000) };
        assert_eq!(lane.due(at(9_100_000), 8, seen, &add), 9_107_500);
    }

    /// A synchronous send returns when its answer is here, 2 L later. The receive is posted long after the
    /// message has arrived, and that L is not part of the link.
    #[test]
    fn a_latency_that_a_program_waits_for_is_not_learnt_as_the_links() {
        let add = EffectiveParameters { latency: Latency::Beyond(20_000), ..EffectiveParameters::NONE };
        let mut lane = Lane::default();
        for nth in 1..200u64 {
            let (stamp, posted) = (100_000 * nth, 100_000 * nth + 20_000);
            let seen = Seen { posted: Some(posted), not_at: Some(posted + 50), ..Seen::late(posted + 100) };
            let due = lane.due(at(stamp), 1 << 16, seen, &add);
            assert_eq!(due - stamp, 20_100, "message {nth}");
        }
        // A message whose receive was posted before shows the link's own time.
        for nth in 300..400u64 {
            let stamp = 100_000 * nth;
            let seen = Seen { posted: Some(stamp - 9), not_at: Some(stamp + 690), ..Seen::late(stamp + 710) };
            assert_eq!(lane.due(at(stamp), 1 << 16, seen, &add) - stamp, 20_700, "message {nth}");
        }
        let stamp = 100_000 * 500;
        let seen = Seen { posted: Some(stamp + 20_000), ..Seen::late(stamp + 20_100) };
        assert_eq!(lane.due(at(stamp), 1 << 16, seen, &add) - stamp, 20_700);
    }

    /// The first message made a connection, and all others wait for their receive. The time of answers, which
    /// do not name their sender, is known.
    #[test]
    fn what_is_known_of_another_way_serves_where_nothing_was_seen_coming() {
        let add = EffectiveParameters { latency: Latency::Beyond(20_000), ..EffectiveParameters::NONE };
        let (mut answers, mut lane) = (Lane::default(), Lane::default());
        assert_eq!(answers.seen_coming(8), None);
        for nth in 0..10u64 {
            let stamp = 100_000 * nth;
            let seen = Seen { not_at: Some(stamp + 90), ..Seen::late(stamp + 110) };
            answers.due(at(stamp), 32, seen, &add);
        }
        assert_eq!(answers.seen_coming(8), Some(100));
        let mut due = |stamp: u64, seen: Seen| {
            lane.due(at(stamp), 8, Seen { elsewhere: answers.seen_coming(8), ..seen }, &add) - stamp
        };
        assert_eq!(due(0, Seen::late(30_000)), 20_100);
        let stamp = 100_000;
        let posted = Seen { posted: Some(stamp + 40_000), ..Seen::late(stamp + 40_020) };
        assert_eq!(due(stamp, posted), 20_100);
    }

    /// A link takes 3 for each byte, 2 of them while the sender's call copies the byte.
    #[test]
    fn the_bytes_of_a_message_count_once() {
        let (bytes, own) = (1001, 500 + 3000);
        let sent = |departures: &mut Departures, began: u64, parameters: &EffectiveParameters| {
            departures.depart_over(began + 100, began + 100 + 2000, bytes, parameters)
        };
        // Added: the message is later by the amount that is added for its bytes.
        let add = EffectiveParameters {
            gap_per_byte: 3.0 + 5.0,
            added_per_byte: Some(5.0),
            ..EffectiveParameters::NONE
        };
        let (mut departures, mut lane) = (Departures::default(), Lane::default());
        for began in [100_000, 200_000, 300_000] {
            let departed = sent(&mut departures, began, &add);
            assert_eq!(lane.due(Some(departed), bytes, Seen::late(began + own), &add), began + own + 5000);
        }
        // The next message departs when all bytes have left.
        assert_eq!(sent(&mut departures, 300_000, &add).at, 300_100 + 8000 + 5000);
        // Set: the bytes take the set time. In addition the link takes its own time for a few bytes.
        let set = EffectiveParameters { gap_per_byte: 8.0, ..EffectiveParameters::NONE };
        let (mut departures, mut lane) = (Departures::default(), Lane::default());
        for stamp in [1056, 2056] {
            assert_eq!(lane.due(at(stamp), 8, coming(stamp + 344), &set), stamp + 400);
        }
        for began in [100_000, 200_000] {
            let departed = sent(&mut departures, began, &set);
            assert_eq!(departed.at, began + 100 + 8000);
            assert_eq!(
                lane.due(Some(departed), bytes, Seen::late(began + own), &set),
                began + 100 + 8000 + 400
            );
        }
    }

    /// A stream in a ring is faster than the added latency. Each message is seen when the one before it has
    /// been released.
    #[test]
    fn waiting_in_line_is_not_taken_for_the_link() {
        let add = EffectiveParameters { latency: Latency::Beyond(500), ..EffectiveParameters::NONE };
        let (mut lane, mut released) = (Lane::default(), 0);
        for nth in 1..5000 {
            let (stamp, arrived) = (100 * nth, 100 * nth + 70);
            released = lane.due(at(stamp), 1, Seen::late(arrived.max(released)), &add);
            lane.took_first(released);
            assert_eq!(released, stamp + 570);
        }
    }

    #[test]
    fn a_gate_lets_through_what_came_meanwhile_at_its_own_pace() {
        let parameters = EffectiveParameters { recv_gap: 100, ..EffectiveParameters::NONE };
        let mut gate = Gate::default();
        assert_eq!([1000, 1010, 1020, 5000].map(|due| gate.pass(due, &parameters)), [1000, 1100, 1200, 5000]);
    }

    #[test]
    fn no_more_are_on_their_way_than_there_is_room_for() {
        let mut capacity = Capacity::new(2);
        assert!(capacity.has_room(0));
        capacity.depart(100);
        assert!(capacity.has_room(0));
        capacity.depart(50);
        assert!(!capacity.has_room(99) && capacity.has_room(100));
    }

    fn parameters() -> impl Strategy<Value = EffectiveParameters> {
        let latency =
            prop_oneof![(0..5000u64).prop_map(Latency::Beyond), (0..5000u64).prop_map(Latency::After)];
        (latency, 0..500u64, 0..500u64, 0.0..3.0).prop_map(|(latency, send_gap, recv_gap, gap_per_byte)| {
            EffectiveParameters { latency, send_gap, recv_gap, gap_per_byte, ..EffectiveParameters::NONE }
        })
    }

    /// Messages: the pause before each, its bytes, the link's own time, and how late it is seen.
    fn messages() -> impl Strategy<Value = alloc::vec::Vec<(u64, usize, u64, u64)>> {
        vec((0..2000u64, 0..3000usize, 0..300u64, 0..2000u64), 1..60)
    }

    proptest! {
        #[test]
        fn departures_keep_their_distance(parameters in parameters(), messages in messages()) {
            let (mut departures, mut now, mut last) = (Departures::default(), 0, None);
            for (pause, bytes, ..) in messages {
                now += pause;
                let departed = departures.depart(now, bytes, &parameters);
                let stamp = departed.at;
                let earliest = last.map_or(now, |last: u64| now.max(last + parameters.send_gap));
                // As early as possible, and no earlier.
                prop_assert_eq!(stamp, earliest + parameters.data(bytes));
                last = Some(stamp);
            }
        }

        #[test]
        fn no_message_is_early_and_none_overtakes(parameters in parameters(), messages in messages()) {
            let (mut departures, mut lane, mut gate) = (Departures::default(), Lane::default(), Gate::default());
            let (mut now, mut seen, mut last) = (0, 0, None);
            let (mut looked, mut most) = (None, 0);
            for (pause, bytes, way, late) in messages {
                now += pause;
                let departed = departures.depart(now, bytes, &parameters);
                let stamp = departed.at;
                // The link carries it at once and keeps the order.
                seen = (now + way + late).max(seen);
                // The receiver was polling, or polls late.
                let not_at = looked.filter(|_| late % 2 == 0).map(|at: u64| at.max(seen - late));
                let seen_as = Seen { not_at, ..Seen::late(seen) };
                looked = Some(seen);
                most = most.max(seen.saturating_sub(stamp - parameters.data(bytes)));
                let due = lane.due(Some(departed), bytes, seen_as, &parameters);
                match parameters.latency {
                    Latency::After(latency) => prop_assert!(due >= stamp + latency),
                    Latency::Beyond(added) => {
                        prop_assert!(due >= stamp + added);
                        // No later than if it had arrived when it was seen, except for earlier messages.
                        let eager = seen.max(stamp + most) + added;
                        prop_assert!(due <= last.unwrap_or(0).max(eager), "{due} {eager}");
                    }
                }
                let released = gate.pass(due, &parameters);
                prop_assert!(released >= due);
                if let Some(last) = last {
                    prop_assert!(released >= last + parameters.recv_gap);
                }
                last = Some(released);
            }
        }

        #[test]
        fn without_dials_everything_is_due_when_it_is_seen(messages in messages()) {
            let (mut departures, mut lane, mut gate) = (Departures::default(), Lane::default(), Gate::default());
            let (mut now, mut seen) = (0, 0);
            for (pause, bytes, way, late) in messages {
                now += pause;
                let stamp = departures.depart(now, bytes, &EffectiveParameters::NONE).at;
                prop_assert_eq!(stamp, now);
                seen = (now + way + late).max(seen);
                prop_assert!(gate.pass(lane.due(at(stamp), 1, Seen::late(seen), &EffectiveParameters::NONE), &EffectiveParameters::NONE) <= seen);
            }
        }

        #[test]
        fn the_capacity_is_never_exceeded(most in 1..8usize, messages in messages()) {
            let mut capacity = Capacity::new(most);
            let (mut now, mut arrivals) = (0, alloc::vec::Vec::new());
            for (pause, _, way, late) in messages {
                now += pause;
                if capacity.has_room(now) {
                    capacity.depart(now + way + late);
                    arrivals.push(now + way + late);
                }
                let under_way = arrivals.iter().filter(|&&arrival| arrival > now).count();
                prop_assert!(under_way <= most);
            }
        }
    }
}
