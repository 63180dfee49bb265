//! The effects of dials on a link, measured at both ends.

use crate::common::connect;
use netdyno_clock::calibrate::Clock;
use netdyno_clock::ticks;
use netdyno_protocol::frame::udp_port::UdpPortAddress;
use netdyno_stack::am::{
    Config, ConnectError, Dial, DialSettings, Dials, Endpoint, Handlers, LONGEST_PAYLOAD, Loss, PeerId,
    PeerLost, STAMP_LEN, Setting, SharedWord, Wait, Wire,
};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const ASK: u8 = 0;

/// When each message was handled, in ticks.
type Seen = Vec<u64>;

struct Link {
    a: Endpoint<Seen>,
    b: Endpoint<Seen>,
    to_b: PeerId,
    to_a: PeerId,
    clock: Clock,
}

fn handlers() -> Handlers<Seen> {
    let mut handlers = Handlers::<Seen>::new();
    handlers.on_request(ASK, |seen, request| {
        seen.push(ticks::now());
        request.reply(ASK, []);
    });
    handlers.on_reply(ASK, |seen, _| seen.push(ticks::now()));
    handlers.on_fetched(ASK, |seen, _| seen.push(ticks::now()));
    handlers.on_store(ASK, |seen, _| seen.push(ticks::now()));
    handlers.on_refused(|_, refused| panic!("{refused}"));
    handlers
}

const WIRES: [Wire; 2] = [Wire::Shm, Wire::Udp];

fn link(wire: Wire, dials: &str) -> Link {
    link_between(wire, [dials, dials])
}

fn link_between(wire: Wire, dials: [&str; 2]) -> Link {
    let [mut a, mut b] = dials.map(|dials| {
        let config = Config::new().dials(dials.parse().unwrap());
        Endpoint::new(handlers(), config).unwrap()
    });
    let (to_b, to_a) = connect(wire, &mut a, &mut b);
    Link { a, b, to_b, to_a, clock: Clock::calibrate() }
}

impl Link {
    /// Returns the nanoseconds between two readings of the clock.
    fn ns(&self, from: u64, to: u64) -> f64 {
        to.checked_sub(from).unwrap() as f64 * self.clock.tick_ns
    }

    /// Returns a duration less the error of its measurement: both sides round to ticks, or 1 ns where ticks are
    /// shorter.
    fn nearly(&self, ns: f64) -> f64 {
        ns - (2.0 * self.clock.tick_ns).max(1.0)
    }

    /// Sends a request. Returns how long it took to be sent, and to be handled, in nanoseconds.
    fn trip_ns(&mut self, at_a: &mut Seen, at_b: &mut Seen) -> [f64; 2] {
        let [before_a, before_b] = [at_a.len(), at_b.len()];
        let began = ticks::now();
        self.a.request(at_a, self.to_b, ASK, [1]).unwrap();
        let sent = ticks::now();
        until(&mut self.b, at_b, before_b + 1);
        until(&mut self.a, at_a, before_a + 1);
        [self.ns(began, sent), self.ns(began, at_b[before_b])]
    }
}

/// Delays of the machine add to the drawn latency, and never shorten it.
#[test]
fn a_latency_that_varies_is_drawn_once_for_each_message() {
    WIRES.into_iter().for_each(a_latency_that_varies_is_drawn_once_for_each_message_over);
}

fn a_latency_that_varies_is_drawn_once_for_each_message_over(wire: Wire) {
    let [mut a, mut b] = [1, 2].map(|seed| {
        let dials = "latency=300us±100us:uniform".parse().unwrap();
        Endpoint::new(handlers(), Config::new().dials(dials).seed(seed)).unwrap()
    });
    let (to_b, _) = connect(wire, &mut a, &mut b);
    let clock = Clock::calibrate();
    let (mut at_a, mut at_b) = (Seen::new(), Seen::new());
    let mut late_us: Vec<f64> = (1..=100)
        .map(|round| {
            let sent = ticks::now();
            a.request(&mut at_a, to_b, ASK, [1]).unwrap();
            until(&mut b, &mut at_b, round);
            until(&mut a, &mut at_a, round);
            (at_b[round - 1] - sent) as f64 * clock.tick_ns / 1e3
        })
        .collect();
    late_us.sort_by(f64::total_cmp);
    // The least possible value is 300 µs - √3 · 100 µs. If each poll drew anew, nearly all would be near
    // it.
    assert!(late_us[0] >= 126.0 && late_us[60] >= 300.0 && late_us[90] >= 400.0, "{wire:?}: {late_us:?}");
    assert!(late_us[0] < 299.0, "{wire:?}: some came before the mean: {late_us:?}");
}

/// Polls until `count` messages were handled.
fn until(endpoint: &mut Endpoint<Seen>, seen: &mut Seen, count: usize) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while seen.len() < count {
        endpoint.poll(seen).unwrap();
        assert!(Instant::now() < deadline, "{count} were to come, {} did", seen.len());
    }
}

/// Does `work` while another thread polls `endpoint`.
fn with_polling<T>(endpoint: &mut Endpoint<Seen>, seen: &mut Seen, work: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                endpoint.poll(seen).unwrap();
            }
        });
        let result = work();
        over.store(true, Ordering::Relaxed);
        result
    })
}

#[test]
fn no_message_is_early_and_replies_are_as_late_again() {
    WIRES.into_iter().for_each(no_message_is_early_and_replies_are_as_late_again_over);
}

fn no_message_is_early_and_replies_are_as_late_again_over(wire: Wire) {
    let mut link = link(wire, "latency=200us");
    let (mut at_a, mut at_b) = (Seen::new(), Seen::new());
    let mut least_to_send = f64::INFINITY;
    for round in 1..=20 {
        let sent = ticks::now();
        link.a.request(&mut at_a, link.to_b, ASK, [1]).unwrap();
        least_to_send = least_to_send.min(link.ns(sent, ticks::now()));
        until(&mut link.b, &mut at_b, round);
        until(&mut link.a, &mut at_a, round);
        let (handled, answered) = (at_b[round - 1], at_a[round - 1]);
        let least = link.nearly(200_000.0);
        assert!(link.ns(sent, handled) >= least && link.ns(handled, answered) >= least);
    }
    // The sender does not wait. At least one of the rounds was not interrupted.
    assert!(least_to_send < link.nearly(200_000.0), "{wire:?}: {least_to_send}");
}

#[test]
fn a_burst_comes_at_the_pace_of_the_gap() {
    WIRES.into_iter().for_each(a_burst_comes_at_the_pace_of_the_gap_over);
}

fn a_burst_comes_at_the_pace_of_the_gap_over(wire: Wire) {
    const MESSAGES: usize = 50;
    for dials in ["send-gap=30us", "recv-gap=30us", "gap-per-byte=1us/B"] {
        let mut link = link(wire, dials);
        let (mut at_a, mut at_b) = (Seen::new(), Seen::new());
        let began = ticks::now();
        for _ in 0..MESSAGES {
            // The gap per byte applies to 31 of the 32 bytes.
            link.a.request(&mut at_a, link.to_b, ASK, [1, 2, 3, 4]).unwrap();
        }
        let Link { a, b, .. } = &mut link;
        with_polling(a, &mut at_a, || until(b, &mut at_b, MESSAGES));
        let first_at = if dials.starts_with("gap") { 31_000.0 } else { 0.0 };
        let pace_ns = if dials.starts_with("gap") { 31_000.0 } else { 30_000.0 };
        for (nth, &at) in at_b.iter().enumerate() {
            let least = first_at + nth as f64 * pace_ns;
            assert!(link.ns(began, at) >= 0.999_999 * least, "{wire:?}, {dials}: message {nth}");
        }
    }
}

/// The receiver was away when the first message came. How long it was away is no time of the link, and the next
/// message, which departed a gap later, is not held for it.
#[test]
fn the_time_of_an_absent_receiver_is_not_the_links() {
    WIRES.into_iter().for_each(the_time_of_an_absent_receiver_is_not_the_links_over);
}

fn the_time_of_an_absent_receiver_is_not_the_links_over(wire: Wire) {
    const AWAY: Duration = Duration::from_millis(100);
    let held_ms = || {
        let mut link = link(wire, "send-gap=20ms");
        let (mut at_a, mut at_b) = (Seen::new(), Seen::new());
        for _ in 0..2 {
            link.a.request(&mut at_a, link.to_b, ASK, [1]).unwrap();
        }
        std::thread::sleep(AWAY);
        let back = ticks::now();
        let Link { a, b, .. } = &mut link;
        with_polling(a, &mut at_a, || until(b, &mut at_b, 2));
        link.ns(back, at_b[1]) / 1e6
    };
    // If it were held until it has been under way for as long as the first one, that would be 20 ms more. At least
    // one of the attempts was not interrupted.
    let held_ms: Vec<f64> = (0..5).map(|_| held_ms()).collect();
    assert!(held_ms.iter().any(|ms| *ms < 10.0), "{wire:?}: held for {held_ms:?} ms");
}

#[test]
fn overheads_take_the_processor_of_the_side_that_pays() {
    WIRES.into_iter().for_each(overheads_take_the_processor_of_the_side_that_pays_over);
}

fn overheads_take_the_processor_of_the_side_that_pays_over(wire: Wire) {
    for dials in ["send-overhead+300us", "recv-overhead+300us"] {
        let mut link = link(wire, dials);
        let (mut at_a, mut at_b) = (Seen::new(), Seen::new());
        let mut least_to_send = f64::INFINITY;
        for round in 1..=20 {
            let began = ticks::now();
            link.a.request(&mut at_a, link.to_b, ASK, [1]).unwrap();
            least_to_send = least_to_send.min(link.ns(began, ticks::now()));
            until(&mut link.b, &mut at_b, round);
            until(&mut link.a, &mut at_a, round);
            let (handled, answered) = (at_b[round - 1], at_a[round - 1]);
            assert!(link.ns(began, handled) >= link.nearly(300_000.0));
            assert!(link.ns(began, answered) >= link.nearly(600_000.0));
        }
        // At least one of the rounds was not interrupted.
        assert_eq!(
            least_to_send >= link.nearly(300_000.0),
            dials.starts_with("send"),
            "{wire:?}, {dials}: {least_to_send}"
        );
    }
}

#[test]
fn a_store_takes_the_time_of_its_bytes() {
    WIRES.into_iter().for_each(a_store_takes_the_time_of_its_bytes_over);
}

fn a_store_takes_the_time_of_its_bytes_over(wire: Wire) {
    let mut link = link(wire, "gap-per-byte=10ns/B");
    let (mut at_a, mut at_b) = (Seen::new(), Seen::new());
    let memory = link.b.allocate(100_001).unwrap();
    let Link { a, b, to_b, .. } = &mut link;
    let began = with_polling(b, &mut at_b, || {
        let remote = a.attach(&mut at_a, *to_b, &memory.key()).unwrap();
        let began = ticks::now();
        a.store(&mut at_a, remote.at(0), &[7; 100_001], ASK, []).unwrap();
        began
    });
    until(&mut link.b, &mut at_b, 1);
    assert!(link.ns(began, at_b[0]) >= link.nearly(1_000_000.0));
}

/// Polls `endpoint` and calls `meanwhile` until a peer is lost. Returns the loss.
fn lost(
    endpoint: &mut Endpoint<Seen>,
    seen: &mut Seen,
    mut meanwhile: impl FnMut(&mut Endpoint<Seen>),
) -> PeerLost {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        meanwhile(endpoint);
        if let Err(lost) = endpoint.poll(seen) {
            return lost;
        }
        assert!(Instant::now() < deadline, "nobody is lost");
    }
}

#[test]
fn a_silent_peer_is_given_up_while_others_are_sent_to() {
    WIRES.into_iter().for_each(a_silent_peer_is_given_up_while_others_are_sent_to_over);
}

fn a_silent_peer_is_given_up_while_others_are_sent_to_over(wire: Wire) {
    let dials = "latency=1ms".parse().unwrap();
    let config = Config::new().dials(dials).peer_timeout(Duration::from_millis(400));
    let mut ends = [0, 1, 2].map(|_| Endpoint::new(handlers(), config).unwrap());
    let [a, b, c] = &mut ends;
    let (to_b, _) = connect(wire, a, b);
    let (to_c, _) = connect(wire, a, c);
    let (mut at_a, mut at_c) = (Seen::new(), Seen::new());
    a.request(&mut at_a, to_b, ASK, [1]).unwrap();
    let lost = lost(a, &mut at_a, |a| {
        // Fills the window, so that a message is always in flight.
        let _ = a.try_request(to_c, ASK, [1]);
        let _ = c.poll(&mut at_c);
    });
    assert_eq!((lost.peer, lost.loss), (to_b, Loss::Silent(config.peer_timeout)));
}

/// The messages of a peer that has closed are handled. They are not held for as long as the dials say,
/// which would be four minutes here.
#[test]
fn the_end_of_a_peer_is_not_held_back_for_long() {
    WIRES.into_iter().for_each(the_end_of_a_peer_is_not_held_back_for_long_over);
}

fn the_end_of_a_peer_is_not_held_back_for_long_over(wire: Wire) {
    let Link { mut a, mut b, to_b, .. } = link(wire, "send-gap=1s");
    let mut at_b = Seen::new();
    for _ in 0..240 {
        a.try_request(to_b, ASK, [1]).unwrap();
    }
    // The closing side sends lost messages again while the other side polls, so both run at once.
    let lost = std::thread::scope(|scope| {
        scope.spawn(|| drop(a));
        lost(&mut b, &mut at_b, |_| {})
    });
    assert_eq!((lost.loss, at_b.len()), (Loss::Closed, 240));
}

#[test]
fn what_cannot_be_dialled_is_refused() {
    let open = |dials: Dials| Endpoint::new(Handlers::<()>::new(), Config::new().dials(dials));
    let gap = Dials::NONE.with(Dial::SendGap, Setting::Add(1000.0));
    let error = open(gap).err().unwrap().to_string();
    assert_eq!(error, "what send-gap the link has of its own is not known: set it (=)");
}

/// Over UDP a get is one message in each direction, and its bytes take their time.
#[test]
fn a_get_over_udp_takes_the_latency_twice_and_the_time_of_its_bytes() {
    let mut link = link(Wire::Udp, "latency=200us,gap-per-byte=10ns/B");
    let (mut at_a, mut at_b) = (Seen::new(), Seen::new());
    let memory = link.b.allocate(100_001).unwrap();
    let Link { a, b, to_b, .. } = &mut link;
    let began = with_polling(b, &mut at_b, || {
        let remote = a.attach(&mut at_a, *to_b, &memory.key()).unwrap();
        let local = a.register(vec![0; 100_001].into()).unwrap();
        let began = ticks::now();
        a.get(&mut at_a, remote.at(0), local.range(0, 100_001), ASK, []).unwrap();
        until(a, &mut at_a, 1);
        began
    });
    assert!(link.ns(began, at_a[0]) >= link.nearly(1_399_999.0));
}

/// No datagram arrives that could wake the sleeper when a held message becomes due.
#[test]
fn who_sleeps_is_woken_by_what_is_due() {
    let config = Config::new().dials("latency=20ms".parse().unwrap()).wait(Wait::Block);
    let [mut a, mut b] = [0, 1].map(|_| Endpoint::new(handlers(), config).unwrap());
    let (to_b, _) = connect(Wire::Udp, &mut a, &mut b);
    let (mut at_a, mut at_b) = (Seen::new(), Seen::new());
    let mut least = Duration::MAX;
    for round in 1..=10 {
        a.request(&mut at_a, to_b, ASK, []).unwrap();
        let began = Instant::now();
        while at_b.len() < round {
            if b.poll(&mut at_b).unwrap() == 0 {
                b.idle(Duration::from_secs(5));
            }
        }
        least = least.min(began.elapsed());
        until(&mut a, &mut at_a, round);
    }
    assert!(least < Duration::from_millis(500), "{least:?}");
}

/// A peer without dials sends no stamps and ignores them. Its messages are due one latency after they are
/// seen.
#[test]
fn a_peer_without_dials_is_understood() {
    for wire in WIRES {
        let mut link = link_between(wire, ["latency=200us", ""]);
        let (mut at_a, mut at_b) = (Seen::new(), Seen::new());
        link.a.request(&mut at_a, link.to_b, ASK, [1]).unwrap();
        until(&mut link.b, &mut at_b, 1);
        until(&mut link.a, &mut at_a, 1);
        assert!(link.ns(at_b[0], at_a[0]) >= link.nearly(200_000.0), "{wire:?}");
    }
}

#[test]
fn a_stamp_takes_its_room() {
    let longest = |dials| {
        let link = link(Wire::Udp, dials);
        [link.a.medium_bytes(link.to_b), link.b.medium_bytes(link.to_a)]
    };
    assert_eq!(longest(""), [LONGEST_PAYLOAD; 2]);
    assert_eq!(longest("latency+1us"), [LONGEST_PAYLOAD - STAMP_LEN; 2]);
    // An undialled endpoint takes payloads of the same length from a dialled one.
    let link = link_between(Wire::Udp, ["latency+1us", ""]);
    assert_eq!(link.a.medium_bytes(link.to_b), LONGEST_PAYLOAD - STAMP_LEN);
}

#[test]
fn a_peer_with_another_clock_is_refused() {
    let open = |dials: &str| {
        let config = Config::new().dials(dials.parse().unwrap());
        Endpoint::new(handlers(), config).unwrap()
    };
    for (dials, is_refused) in [("latency=1us", true), ("", false)] {
        let mut endpoint = open(dials);
        let port = endpoint.open_port(Wire::Udp).unwrap();
        let ours = UdpPortAddress::parse(&port.address()).unwrap();
        // 192.0.2.1 is reserved for documentation, so it is no host's address.
        let theirs = UdpPortAddress { socket: "192.0.2.1:7".parse().unwrap(), ..ours };
        let connected = endpoint.connect(port, &theirs.encode());
        assert_eq!(matches!(connected, Err(ConnectError::DialledFar(_))), is_refused, "{dials}");
    }
}

/// A file with the number of the dial setting in force.
struct Page(PathBuf);

impl Page {
    const CURRENT: usize = 12;

    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("netdyno-{name}-{}", std::process::id()));
        std::fs::write(&path, [0; 64]).unwrap();
        Self(path)
    }

    fn select(&self, setting: u32) {
        let file = OpenOptions::new().write(true).open(&self.0).unwrap();
        file.write_all_at(&setting.to_ne_bytes(), Self::CURRENT as u64).unwrap();
    }

    fn link(&self, wire: Wire, settings: &[Dials]) -> Link {
        let [mut a, mut b] = [0, 1].map(|_| {
            let word = SharedWord::map(&self.0, Self::CURRENT).unwrap();
            let settings = DialSettings { settings: settings.to_vec(), current: Some(word), profile: None };
            Endpoint::with_dial_settings(handlers(), Config::default(), settings).unwrap()
        });
        let (to_b, to_a) = connect(wire, &mut a, &mut b);
        Link { a, b, to_b, to_a, clock: Clock::calibrate() }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn dials_are_turned_while_the_link_is_open() {
    let settings = [Dials::NONE, "latency=2ms".parse().unwrap(), "send-overhead+300us".parse().unwrap()];
    for wire in WIRES {
        let page = Page::new(&format!("settings-{wire:?}"));
        let mut link = page.link(wire, &settings);
        let (mut at_a, mut at_b, mut rounds) = (Seen::new(), Seen::new(), 0);
        for setting in [0, 1, 2, 3, u32::MAX, 1, 0] {
            page.select(setting);
            let (mut least, mut least_to_send) = (f64::INFINITY, f64::INFINITY);
            for _ in 0..10 {
                rounds += 1;
                let began = ticks::now();
                link.a.request(&mut at_a, link.to_b, ASK, [1]).unwrap();
                least_to_send = least_to_send.min(link.ns(began, ticks::now()));
                until(&mut link.b, &mut at_b, rounds);
                until(&mut link.a, &mut at_a, rounds);
                least = least.min(link.ns(began, at_a[rounds - 1]));
            }
            // At least one of the rounds was not interrupted.
            assert_eq!(
                least >= link.nearly(3_999_999.0),
                setting == 1,
                "{wire:?}, setting {setting}: {least}"
            );
            assert_eq!(
                least_to_send >= link.nearly(300_000.0),
                setting == 2,
                "{wire:?}, setting {setting}: {least_to_send}"
            );
        }
    }
}

#[test]
fn dials_change_with_time_and_begin_again_after_a_pause() {
    WIRES.into_iter().for_each(dials_change_with_time_and_begin_again_after_a_pause_over);
}

fn dials_change_with_time_and_begin_again_after_a_pause_over(wire: Wire) {
    const DIALLED: Duration = Duration::from_millis(50);
    const PAUSE: Duration = Duration::from_millis(250);
    let profile = "idle 200ms
        at 0ms latency+300us send-overhead+200us
        at 50ms latency+300us send-overhead+200us
        at 50ms";
    let [mut a, mut b] = [0, 1].map(|_| {
        let settings = DialSettings {
            settings: vec![Dials::NONE],
            profile: Some(profile.parse().unwrap()),
            ..DialSettings::default()
        };
        Endpoint::with_dial_settings(handlers(), Config::default(), settings).unwrap()
    });
    let (to_b, to_a) = connect(wire, &mut a, &mut b);
    let mut link = Link { a, b, to_b, to_a, clock: Clock::calibrate() };
    let (mut at_a, mut at_b) = (Seen::new(), Seen::new());
    for phase in ["the first", "the second"] {
        let began = Instant::now();
        let first = link.trip_ns(&mut at_a, &mut at_b);
        assert!(
            first[0] >= link.nearly(200_000.0) && first[1] >= link.nearly(500_000.0),
            "{wire:?}, {phase}: {first:?}"
        );
        // The trips follow each other without a pause. A pause of the machine would start the profile
        // again.
        while link.trip_ns(&mut at_a, &mut at_b)[1] >= link.nearly(200_000.0) {
            assert!(began.elapsed() < Duration::from_secs(30), "{wire:?}, {phase}: no trip was quick");
        }
        assert!(began.elapsed() >= DIALLED, "{wire:?}, {phase}: {:?}", began.elapsed());
        std::thread::sleep(PAUSE);
    }
}

/// This holds whichever setting is in force when a message is sent, seen or taken, and whatever happens
/// to its datagrams.
#[test]
fn nothing_is_lost_and_nothing_overtakes_where_dials_are_turned_meanwhile() {
    const MESSAGES: u64 = 3000;
    let settings = ["latency=300us", "", "send-gap=2us,recv-gap=3us", "latency+50us,gap-per-byte=10ns/B"];
    let settings = settings.map(|dials| dials.parse().unwrap());
    let mut handlers = Handlers::<Seen>::new();
    handlers.on_request(ASK, |seen, request| {
        let words = request.words();
        seen.push(words[0]);
        request.reply(ASK, words);
    });
    handlers.on_reply(ASK, |seen, reply| seen.push(reply.words()[0]));
    for wire in WIRES {
        let page = Page::new(&format!("traffic-{wire:?}"));
        let [mut a, mut b] = [0, 1].map(|_| {
            let word = SharedWord::map(&page.0, Page::CURRENT).unwrap();
            let faults = "loss=0.02,dup=0.02,reorder=0.02,corrupt=0.01".parse().unwrap();
            let config = Config::new().faults(faults);
            let settings = DialSettings { settings: settings.to_vec(), current: Some(word), profile: None };
            Endpoint::with_dial_settings(handlers.clone(), config, settings).unwrap()
        });
        let (to_b, _) = connect(wire, &mut a, &mut b);
        let (mut at_a, mut at_b) = (Seen::new(), Seen::new());
        with_polling(&mut b, &mut at_b, || {
            for nth in 0..MESSAGES {
                if nth % 37 == 0 {
                    page.select((nth / 37 % 5) as u32);
                }
                a.request(&mut at_a, to_b, ASK, [nth]).unwrap();
            }
            until(&mut a, &mut at_a, MESSAGES as usize);
        });
        let all: Seen = (0..MESSAGES).collect();
        assert!(at_a == all && at_b == all, "{wire:?}");
    }
}

#[test]
fn turns_that_turn_nothing_are_no_dials() {
    let page = Page::new("nothing");
    for settings in [&[][..], &[Dials::NONE; 2]] {
        let link = page.link(Wire::Udp, settings);
        assert_eq!(link.a.medium_bytes(link.to_b), LONGEST_PAYLOAD);
    }
}
