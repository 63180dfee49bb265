//! Calls and replies over TCP, a record each. A server serves any number of connections in turn.

use super::client::{Channel, longest_reply};
use super::outgoing::Outgoing;
use super::service::{Service, longest_call};
use crate::requests::Responder;
use crate::socket::{is_passing, wait_for};
use crate::tcp::WINDOW;
use crate::tcp::connection::{closed, lost, prepare};
use netdyno_measure::layer::LayerError;
use netdyno_protocol::frame::rpc_record::{Records, TooLong};
use rustix::event::{PollFd, PollFlags};
use std::io::{self, Read, Write};
use std::mem;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

/// Rounds of a server between two looks for new connections.
const ROUNDS_PER_LOOK: u32 = 256;
/// Connections of a server beyond those of its own clients. A further one takes the place of the one that has been silent
/// for longest.
const OTHER_CONNECTIONS: usize = 8;

/// A client's connection.
pub(super) struct TcpChannel {
    stream: TcpStream,
    records: Records,
    /// Bytes of the current record that were sent.
    sent: usize,
    /// Whether bytes were sent or have arrived since the last look.
    has_moved: bool,
}

impl TcpChannel {
    /// Returns the channel over a connection that does not block, for replies with up to `largest` bytes of
    /// data.
    pub(super) fn new(stream: TcpStream, largest: usize) -> Self {
        Self { stream, records: Records::new(longest_reply(largest)), sent: 0, has_moved: false }
    }
}

impl Channel for TcpChannel {
    const IS_RELIABLE: bool = true;
    const WINDOW: usize = WINDOW;

    #[inline(always)]
    fn send(&mut self, call: &Outgoing) -> Result<bool, LayerError> {
        let before = self.sent;
        let is_sent = write(&mut self.stream, call.record(), &mut self.sent).map_err(|error| lost(&error))?;
        self.has_moved |= self.sent > before;
        if is_sent {
            self.sent = 0;
        }
        Ok(is_sent)
    }

    #[inline(always)]
    fn take(&mut self) -> Result<Option<&[u8]>, LayerError> {
        while !self.records.advance().map_err(too_long)? {
            match self.stream.read(self.records.spare()) {
                Ok(0) => return Err(closed()),
                Ok(read) => {
                    self.records.note_read(read);
                    self.has_moved = true;
                }
                Err(error) if is_passing(&error) => return Ok(None),
                Err(error) => return Err(lost(&error)),
            }
        }
        Ok(Some(self.records.record()))
    }

    fn has_moved(&mut self) -> bool {
        mem::take(&mut self.has_moved)
    }

    fn window(&self, _: usize) -> usize {
        WINDOW
    }

    fn socket(&self) -> impl AsFd {
        &self.stream
    }
}

/// Writes the bytes of `record` from `sent` on, as far as the socket takes them now. Returns whether it took
/// all.
#[inline(always)]
fn write(stream: &mut TcpStream, record: &[u8], sent: &mut usize) -> io::Result<bool> {
    while *sent < record.len() {
        match stream.write(&record[*sent..]) {
            Ok(written) => *sent += written,
            Err(error) if is_passing(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

#[cold]
fn too_long(TooLong { bytes }: TooLong) -> LayerError {
    LayerError(format!("a record of at least {bytes} bytes came, which is too long"))
}

/// A server.
pub(super) struct TcpServer {
    listener: TcpListener,
    connections: Vec<Connection>,
    /// The most connections.
    most: usize,
    /// The connection that is served next.
    next: usize,
    /// Rounds until the next look for new connections.
    rounds: u32,
    /// Connections and receives so far.
    events: u64,
    service: Service,
    /// Sets up each new connection.
    set_up: fn(&TcpStream) -> Result<(), LayerError>,
    largest: usize,
}

/// A connection that a server has accepted.
struct Connection {
    stream: TcpStream,
    records: Records,
    /// The rest of a reply that the socket did not take. Until it is sent, no further call is taken.
    rest: Vec<u8>,
    /// Bytes of it that were sent.
    sent: usize,
    /// The event at which it was last heard, and whether it has ever called.
    heard: u64,
    has_called: bool,
}

/// The connection is of no use any more.
struct Over;

impl TcpServer {
    /// Returns a server of `clients` clients, and of a few others, for calls and replies with up to `largest`
    /// bytes of data. `set_up` sets up each connection.
    pub(super) fn new(
        listener: TcpListener,
        clients: usize,
        largest: usize,
        set_up: fn(&TcpStream) -> Result<(), LayerError>,
    ) -> Self {
        Self {
            listener,
            connections: Vec::new(),
            most: clients + OTHER_CONNECTIONS,
            next: 0,
            rounds: 0,
            events: 0,
            service: Service::new(largest),
            set_up,
            largest,
        }
    }

    /// Accepts the connections that clients have begun. One that cannot be set up is closed.
    fn accept(&mut self) {
        self.rounds = ROUNDS_PER_LOOK;
        while let Ok((stream, _)) = self.listener.accept() {
            if let Ok(stream) = prepare(stream)
                && (self.set_up)(&stream).is_ok()
            {
                self.make_room();
                self.events += 1;
                let records = Records::new(longest_call(self.largest));
                let heard = self.events;
                self.connections.push(Connection {
                    stream,
                    records,
                    rest: Vec::new(),
                    sent: 0,
                    heard,
                    has_called: false,
                });
            }
        }
    }

    /// Closes the connection that has been silent for longest, if there is no room for one more: one that has never called
    /// before all others.
    fn make_room(&mut self) {
        let by_use = |(_, connection): &(usize, &Connection)| (connection.has_called, connection.heard);
        let silent = self.connections.iter().enumerate().min_by_key(by_use);
        if let Some((at, _)) = silent
            && self.connections.len() >= self.most
        {
            drop(self.connections.swap_remove(at));
        }
    }
}

impl Connection {
    /// Answers a call, if one has arrived. Returns whether one had.
    #[inline(always)]
    fn answer(&mut self, service: &mut Service, events: &mut u64) -> Result<bool, Over> {
        if !self.rest.is_empty() {
            if !write(&mut self.stream, &self.rest, &mut self.sent).map_err(|_| Over)? {
                return Ok(false);
            }
            self.rest = Vec::new();
        }
        while !self.records.advance().map_err(|_| Over)? {
            match self.stream.read(self.records.spare()) {
                Ok(0) => return Err(Over),
                Ok(read) => {
                    self.records.note_read(read);
                    *events += 1;
                    self.heard = *events;
                }
                Err(error) if is_passing(&error) => return Ok(false),
                Err(_) => return Err(Over),
            }
        }
        self.has_called = true;
        if let Some(reply) = service.answer(self.records.record()) {
            self.sent = 0;
            if !write(&mut self.stream, reply.record(), &mut self.sent).map_err(|_| Over)? {
                self.rest = reply.record()[self.sent..].to_vec();
                self.sent = 0;
            }
        }
        Ok(true)
    }

    /// Returns the events for which the connection waits.
    fn events(&self) -> PollFlags {
        if self.rest.is_empty() { PollFlags::IN } else { PollFlags::OUT }
    }
}

impl Responder for TcpServer {
    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        if self.connections.is_empty() || self.rounds == 0 {
            self.accept();
        }
        self.rounds = self.rounds.saturating_sub(1);
        for _ in 0..self.connections.len() {
            self.next = if self.next < self.connections.len() { self.next } else { 0 };
            match self.connections[self.next].answer(&mut self.service, &mut self.events) {
                Ok(true) => {
                    self.next += 1;
                    return Ok(true);
                }
                Ok(false) => self.next += 1,
                Err(Over) => drop(self.connections.swap_remove(self.next)),
            }
        }
        Ok(false)
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
        fds.extend(self.connections.iter().map(|it| PollFd::new(&it.stream, it.events())));
        wait_for(&mut fds, timeout)?;
        self.rounds = 0;
        Ok(())
    }
}
