//! Empties the socket in bounded steps, runs the timers of the connections, and lingers after the close.

use super::Socket;
use super::clock::Clock;
use super::connections::{Connections, Taken};
use crate::statistics::Strays;
use netdyno_host::datagram::{Carrier, DatagramWire, Datagrams, ROOM};
use netdyno_protocol::faults::Faults;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum number of datagrams, or batches, in one poll.
const DATAGRAMS_AT_ONCE: usize = 16;
/// Number of handled messages that ends a poll of a busy socket. Answers wait for the end of the poll.
const MESSAGES_AT_ONCE: usize = 8;
/// Polls in a row that do not empty the socket, after which timers run anyway. A timer usually waits until
/// the socket is empty, because the awaited datagram may be in it; a flood must not stop the timers.
const POLLS_IN_A_FLOOD: u32 = 64;
/// Maximum number of datagrams that wait for the next poll of a program that does not poll. Their senders repeat the
/// others.
const ASIDE_AT_MOST: usize = 1024;
/// Longest sleep between two polls of a closed endpoint.
const LINGER_SLEEP: Duration = Duration::from_millis(1);

/// The outcome of a poll.
pub(crate) struct Polled {
    /// Number of messages handled.
    pub handled: usize,
    /// The socket was empty at the end.
    pub is_drained: bool,
    /// The timers ran.
    was_due: bool,
}

impl Polled {
    /// Returns whether the poll handled anything or ran the timers.
    pub fn was_any(&self) -> bool {
        self.handled > 0 || self.was_due
    }
}

/// A socket and the timers of its connections.
pub(crate) struct Driver {
    pub socket: Socket,
    /// The clock of all timers, which counts long pauses only in part.
    pub clock: Clock,
    /// Buffer for one receive from the socket: a datagram, or a batch of them.
    room: Box<[u8]>,
    /// Datagrams with their senders that arrived between polls, and that the next polls take first.
    aside: VecDeque<(Vec<u8>, SocketAddr)>,
    /// The time of the last poll.
    polled_ns: u64,
    /// No timer of a connection is due before this time.
    deadline_ns: u64,
    polls_in_flood: u32,
    /// The connections whose datagrams the current poll has taken.
    touched: Vec<usize>,
    strays: Strays,
}

impl Driver {
    pub fn new(carrier: Carrier, faults: Faults, seed: u64, peer_timeout: Duration) -> Self {
        Self {
            socket: Socket::new(carrier, faults, seed),
            clock: Clock::new(peer_timeout),
            room: vec![0; ROOM].into(),
            aside: VecDeque::new(),
            polled_ns: 0,
            deadline_ns: u64::MAX,
            polls_in_flood: 0,
            touched: Vec::new(),
            strays: Strays::default(),
        }
    }

    pub fn strays(&self) -> Strays {
        Strays { refused: self.socket.refused(), by_kernel: self.socket.by_kernel(), ..self.strays }
    }

    /// Lets the timers run at this time at the latest.
    #[inline]
    pub fn expect(&mut self, at_ns: u64) {
        self.deadline_ns = self.deadline_ns.min(at_ns);
    }

    /// Sends what a connection has ready.
    #[inline]
    pub fn pump(&mut self, index: usize, connections: &mut impl Connections, now_ns: u64) {
        let at_ns = connections.pump(index, &mut self.socket, now_ns);
        self.expect(at_ns);
    }

    /// Takes the datagrams of the socket until one handles something, and runs the timers that are due. If the poll
    /// before did not empty the socket, takes more of them. Each connection answers the datagrams of a poll together.
    #[inline]
    pub fn poll<C: Connections>(&mut self, connections: &mut C) -> Result<Polled, C::Lost> {
        let now_ns = self.clock.now_ns();
        self.polled_ns = now_ns;
        let mut polled = Polled { handled: 0, is_drained: false, was_due: false };
        // A look for more would delay the answer to the only datagram of a socket.
        let enough = if self.polls_in_flood > 0 { MESSAGES_AT_ONCE } else { 1 };
        let mut outcome = Ok(());
        for _ in 0..DATAGRAMS_AT_ONCE {
            let Some(datagrams) = self.receive() else {
                polled.is_drained = true;
                break;
            };
            outcome = self.take(datagrams, connections, now_ns, &mut polled.handled);
            if outcome.is_err() || polled.handled >= enough {
                break;
            }
        }
        self.answer(connections, now_ns);
        outcome?;
        self.polls_in_flood = if polled.is_drained { 0 } else { self.polls_in_flood.saturating_add(1) };
        polled.was_due =
            now_ns >= self.deadline_ns() && (polled.is_drained || self.polls_in_flood >= POLLS_IN_A_FLOOD);
        if polled.was_due {
            self.on_time(connections, now_ns)?;
        }
        Ok(polled)
    }

    /// Puts the next datagrams into `room`.
    #[inline]
    fn receive(&mut self) -> Option<Datagrams> {
        if self.aside.is_empty() { self.socket.receive(&mut self.room) } else { self.receive_aside() }
    }

    #[cold]
    fn receive_aside(&mut self) -> Option<Datagrams> {
        let (bytes, from) = self.aside.pop_front()?;
        self.room[..bytes.len()].copy_from_slice(&bytes);
        Some(Datagrams { len: bytes.len(), each: bytes.len(), from })
    }

    /// Runs the timers that are due while a program does not poll, so that what was lost is sent again. `acknowledge` takes
    /// only the acknowledgement of each datagram that has arrived, because a timer would repeat what the peer has. The
    /// datagrams of connections wait for the next poll.
    pub fn tend<C: Connections>(
        &mut self,
        connections: &mut C,
        acknowledge: impl Fn(&mut C, &[u8], SocketAddr, u64) -> Taken,
    ) -> Result<(), C::Lost> {
        let now_ns = self.clock.now_ns();
        if now_ns < self.deadline_ns() {
            return Ok(());
        }
        let mut is_drained = false;
        for _ in 0..DATAGRAMS_AT_ONCE {
            let Some(Datagrams { len, each, from }) = self.socket.receive(&mut self.room) else {
                is_drained = true;
                break;
            };
            for bytes in self.room[..len].chunks(each.max(1)) {
                match acknowledge(connections, bytes, from, now_ns) {
                    Taken::Foreign => self.strays.foreign += 1,
                    Taken::Malformed => self.strays.malformed += 1,
                    _ => {
                        // The last ones are kept: they tell more than those that they repeat.
                        if self.aside.len() == ASIDE_AT_MOST {
                            self.aside.pop_front();
                        }
                        self.aside.push_back((bytes.to_vec(), from));
                    }
                }
            }
        }
        // The awaited acknowledgement may be among those that are left. A flood must not stop the timers.
        self.polls_in_flood = if is_drained { 0 } else { self.polls_in_flood.saturating_add(1) };
        if is_drained || self.aside.len() == ASIDE_AT_MOST || self.polls_in_flood >= POLLS_IN_A_FLOOD {
            self.on_time(connections, now_ns)
        } else {
            Ok(())
        }
    }

    /// Returns the time before which silence of peers does not count, if the program has not polled for long: its own
    /// absence is not their silence.
    pub fn absent_until(&mut self) -> Option<u64> {
        let longest_ns = self.clock.longest_pause().as_nanos() as u64;
        let now_ns = self.clock.now_ns();
        (now_ns - self.polled_ns > longest_ns).then(|| now_ns - longest_ns)
    }

    /// Takes the datagrams in `room`, maybe of several connections. Adds the number of messages to `handled`. After a
    /// loss, the peers of the remaining datagrams send them again.
    #[inline]
    fn take<C: Connections>(
        &mut self,
        Datagrams { len, each, from }: Datagrams,
        connections: &mut C,
        now_ns: u64,
        handled: &mut usize,
    ) -> Result<(), C::Lost> {
        // An empty datagram belongs to no connection.
        self.strays.foreign += u64::from(len == 0);
        for bytes in self.room[..len].chunks(each) {
            match connections.on_datagram(bytes, from, &mut self.socket, now_ns)? {
                Taken::Foreign => self.strays.foreign += 1,
                Taken::Malformed => self.strays.malformed += 1,
                Taken::Signal => *handled += 1,
                Taken::By(index, count) => {
                    *handled += count;
                    if self.touched.last() != Some(&index) && !self.touched.contains(&index) {
                        self.touched.push(index);
                    }
                }
            }
        }
        Ok(())
    }

    /// Lets the connections answer whose datagrams were taken.
    #[inline]
    fn answer(&mut self, connections: &mut impl Connections, now_ns: u64) {
        for nth in 0..self.touched.len() {
            self.pump(self.touched[nth], connections, now_ns);
        }
        self.touched.clear();
    }

    /// Runs all timers that are due.
    #[cold]
    pub fn on_time<C: Connections>(&mut self, connections: &mut C, now_ns: u64) -> Result<(), C::Lost> {
        self.polls_in_flood = 0;
        self.socket.on_time(now_ns);
        // After a loss the next poll runs the timers of the other connections.
        self.deadline_ns = now_ns;
        self.deadline_ns = connections.on_time(&mut self.socket, now_ns)?;
        Ok(())
    }

    /// Returns the time of the next timer.
    #[inline]
    fn deadline_ns(&self) -> u64 {
        self.socket.deadline().map_or(self.deadline_ns, |at_ns| at_ns.min(self.deadline_ns))
    }

    /// Returns the longest permitted sleep.
    pub fn until_due(&mut self) -> Duration {
        if !self.aside.is_empty() {
            return Duration::ZERO;
        }
        let left_ns = self.deadline_ns().saturating_sub(self.clock.now_ns());
        // The clock would count a longer sleep only in part.
        Duration::from_nanos(left_ns).min(self.clock.longest_pause())
    }

    /// Sleeps until a datagram arrives or a timer is due, at most for `timeout`.
    pub fn block(&mut self, timeout: Duration) {
        let most = timeout.min(self.until_due());
        self.socket.block(most);
    }

    /// Polls until no peer is owed anything, at most for `time`. Does nothing during a panic.
    pub fn linger(&mut self, connections: &mut impl Connections, time: Duration) {
        let until = Instant::now() + time;
        while connections.is_owed() && Instant::now() < until && !thread::panicking() {
            let polled = self.poll(connections);
            connections.send_signals(&mut self.socket, self.clock.now_ns());
            // A peer whose loss ends a poll is owed nothing.
            if polled.is_ok_and(|polled| !polled.was_any()) {
                self.block(LINGER_SLEEP);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netdyno_host::datagram::DatagramSocket;
    use std::convert::Infallible;

    /// Counts calls. The first byte of a datagram is the index of its connection, or 255 for none.
    #[derive(Default)]
    struct Counted {
        acknowledged: Vec<u8>,
        pumped: Vec<usize>,
        timers: usize,
    }

    impl Connections for Counted {
        type Lost = Infallible;

        fn on_datagram(
            &mut self,
            bytes: &[u8],
            _: SocketAddr,
            _: &mut Socket,
            _: u64,
        ) -> Result<Taken, Infallible> {
            Ok(if bytes[0] == u8::MAX { Taken::Foreign } else { Taken::By(bytes[0].into(), 1) })
        }

        fn pump(&mut self, index: usize, _: &mut Socket, _: u64) -> u64 {
            self.pumped.push(index);
            u64::MAX
        }

        fn on_time(&mut self, _: &mut Socket, _: u64) -> Result<u64, Infallible> {
            self.timers += 1;
            Ok(u64::MAX)
        }

        fn is_owed(&self) -> bool {
            false
        }
    }

    fn pair() -> (Driver, DatagramSocket) {
        let [ours, theirs] = [(); 2].map(|()| DatagramSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap());
        (Driver::new(ours.into(), Faults::NONE, 0, Duration::from_secs(1)), theirs)
    }

    fn poll(driver: &mut Driver, counted: &mut Counted) -> Polled {
        let Ok(polled) = driver.poll(counted);
        polled
    }

    #[test]
    fn a_flood_delays_timers_and_does_not_stop_them() {
        let ((mut driver, mut peer), mut counted) = (pair(), Counted::default());
        driver.expect(0);
        let to = driver.socket.local();
        for nth in 1..=POLLS_IN_A_FLOOD {
            (0..DATAGRAMS_AT_ONCE).for_each(|_| peer.send(to, &[u8::MAX], 0));
            let polled = poll(&mut driver, &mut counted);
            assert_eq!((polled.is_drained, polled.was_due), (false, nth == POLLS_IN_A_FLOOD));
        }
        driver.expect(0);
        let polled = poll(&mut driver, &mut counted);
        assert!(polled.is_drained && polled.was_due && counted.timers == 2);
        assert_eq!(driver.strays().foreign, u64::from(POLLS_IN_A_FLOOD) * DATAGRAMS_AT_ONCE as u64);
    }

    #[test]
    fn a_connection_answers_the_datagrams_of_a_batch_together() {
        let ((mut driver, _peer), mut counted) = (pair(), Counted::default());
        let from = driver.socket.local();
        driver.room[..6].copy_from_slice(&[3, 3, u8::MAX, 3, 4, 3]);
        let mut handled = 0;
        let Ok(()) = driver.take(Datagrams { len: 6, each: 1, from }, &mut counted, 0, &mut handled);
        driver.answer(&mut counted, 0);
        assert_eq!((handled, counted.pumped), (5, vec![3, 4]));
        assert_eq!(driver.strays().foreign, 1);
    }

    /// Timers run only if they are due. Datagrams that have come meanwhile keep their order.
    #[test]
    fn datagrams_wait_for_a_poll() {
        let ((mut driver, mut peer), mut counted) = (pair(), Counted::default());
        let to = driver.socket.local();
        let tend = |driver: &mut Driver, counted: &mut Counted| {
            let acknowledge = |counted: &mut Counted, bytes: &[u8], _, _| {
                counted.acknowledged.push(bytes[0]);
                if bytes[0] == u8::MAX { Taken::Foreign } else { Taken::By(bytes[0].into(), 0) }
            };
            let Ok(()) = driver.tend(counted, acknowledge);
        };
        (0..3).for_each(|n| peer.send(to, &[n], 0));
        tend(&mut driver, &mut counted);
        assert_eq!((counted.timers, counted.acknowledged.len()), (0, 0));
        peer.send(to, &[u8::MAX], 0);
        driver.expect(0);
        tend(&mut driver, &mut counted);
        assert_eq!((counted.timers, &counted.acknowledged[..]), (1, &[0, 1, 2, u8::MAX][..]));
        assert_eq!(driver.until_due(), Duration::ZERO);
        (3..5).for_each(|n| peer.send(to, &[n], 0));
        while !poll(&mut driver, &mut counted).is_drained {}
        assert_eq!((counted.pumped, driver.strays().foreign), (vec![0, 1, 2, 3, 4], 1));
    }

    /// The first datagram is answered at once, because it is usually the only one.
    #[test]
    fn a_poll_of_a_busy_socket_takes_many_datagrams() {
        let ((mut driver, mut peer), mut counted) = (pair(), Counted::default());
        let to = driver.socket.local();
        (0..20).for_each(|n| peer.send(to, &[n % 2], 0));
        let handled: Vec<usize> = (0..5).map(|_| poll(&mut driver, &mut counted).handled).collect();
        assert_eq!(handled, [1, MESSAGES_AT_ONCE, MESSAGES_AT_ONCE, 3, 0]);
        assert_eq!(counted.pumped, [0, 1, 0, 1, 0, 1, 0]);
        peer.send(to, &[0], 0);
        peer.send(to, &[0], 0);
        assert_eq!(poll(&mut driver, &mut counted).handled, 1);
    }
}
