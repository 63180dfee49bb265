//! The program on one side of a soak, and its part of the oracle. It issues requests, stores and gets
//! with consecutive numbers. The number determines the task and its required outcome.

use crate::frame::datagram::{Arrived, Datagram, Kind};
use crate::frame::memory_key;
use crate::frame::transfer::Range;
use crate::reliability::{Connection, Event, Full, Memories, Recovery, Stored};
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Registered memory: peers store to its first half and get from its second.
const MEMORY: u64 = 0x6d65_6d6f_7279;
/// Registered memory that is deregistered at some time.
const FLEETING: u64 = 0xf1ee_7149;
/// Memory that was never registered.
const UNKNOWN: u64 = 0xdead;
/// The key of registered memory, and a key of memory that is not registered.
const KEY: [u8; memory_key::LEN] = [1; memory_key::LEN];
const NO_KEY: [u8; memory_key::LEN] = [2; memory_key::LEN];
/// Stores go below this offset, gets come from above it.
const HALF: u64 = 24 << 10;
const MEMORY_LEN: u64 = 2 * HALF;

/// The task with a given number. Both sides compute it from the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Request { is_answered: bool },
    Store { place: [u64; 3], is_answered: bool },
    Get { place: [u64; 3] },
    Attach { is_right: bool },
}

/// The required outcome of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Done,
    Refused,
    /// Done or refused: both are right.
    Unknown,
}

impl Task {
    fn of(number: u64, has_transfers: bool) -> Self {
        let bits = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let is_answered = bits >> 62 != 0;
        let pick = |from: u32, below: u64| ((bits >> from & 0xffff) * below) >> 16;
        if !has_transfers || pick(46, 8) > 0 {
            return Self::Request { is_answered };
        }
        if pick(35, 6) == 0 {
            return Self::Attach { is_right: is_answered };
        }
        let is_store = pick(40, 2) == 0;
        let len = match pick(30, 8) {
            0 => 0,
            1 => 1,
            2 => pick(10, HALF + 1),
            3 | 4 => pick(10, 5_000),
            _ => pick(10, 200),
        };
        let offset = pick(20, HALF - len + 1) + if is_store { 0 } else { HALF };
        let place = match pick(26, 8) {
            0 => [UNKNOWN, offset, len],
            1 => [MEMORY, MEMORY_LEN - len / 2, len + 1],
            2 => [FLEETING, offset, len],
            _ => [MEMORY, offset, len],
        };
        if is_store { Self::Store { place, is_answered } } else { Self::Get { place } }
    }

    fn fate(self) -> Fate {
        match self {
            Self::Request { .. } | Self::Attach { is_right: true } => Fate::Done,
            Self::Attach { is_right: false } => Fate::Refused,
            Self::Store { place, .. } | Self::Get { place } => match place {
                [UNKNOWN, ..] => Fate::Refused,
                [FLEETING, ..] => Fate::Unknown,
                [_, offset, len] if offset + len > MEMORY_LEN => Fate::Refused,
                _ => Fate::Done,
            },
        }
    }

    fn is_answered(self) -> bool {
        match self {
            Self::Request { is_answered } | Self::Store { is_answered, .. } => is_answered,
            Self::Get { .. } | Self::Attach { .. } => false,
        }
    }

    /// Reports whether the task may pass without running a handler of the peer.
    fn may_pass_unhandled(self) -> bool {
        matches!(self, Self::Get { .. } | Self::Attach { .. }) || self.fate() != Fate::Done
    }
}

/// Returns the payload of the message with this number.
fn payload(number: u64) -> &'static [u8] {
    const BYTES: &[u8] = &[0xa5; 64];
    &BYTES[..(number % 65) as usize]
}

/// Returns the bytes of a store, from byte `at` on.
fn stored_bytes(number: u64, at: u64, len: usize) -> impl Iterator<Item = u8> {
    (at..at + len as u64).map(move |at| (number.wrapping_mul(31) ^ at.wrapping_mul(7) ^ (at >> 8)) as u8)
}

/// Returns the byte at `offset` of memory that no store changes.
fn still_byte(offset: u64) -> u8 {
    (offset.wrapping_mul(13) ^ (offset >> 8)) as u8
}

/// A transfer of this side: its number in the connection, its task number, and the bytes that have
/// arrived.
#[derive(Debug)]
struct Issued {
    transfer: u32,
    number: u64,
    came: Vec<u8>,
}

/// The memory of a side, its transfers in progress, and the first violation that was found.
#[derive(Debug)]
struct Shelf {
    memory: Vec<u8>,
    /// The contents that `memory` must have.
    expected: Vec<u8>,
    is_fleeting_there: bool,
    stores: VecDeque<Issued>,
    gets: VecDeque<Issued>,
    placed: u64,
    /// Offset of the next bytes of the peer's store.
    next_write: u64,
    violation: Option<String>,
}

impl Shelf {
    fn is_registered(&self, range: &Range) -> bool {
        let is_there = range.memory == MEMORY || range.memory == FLEETING && self.is_fleeting_there;
        is_there && range.offset + range.len <= MEMORY_LEN
    }
}

impl Memories for Shelf {
    fn source(&mut self, number: u32, at: u64, len: usize, out: &mut Vec<u8>) -> bool {
        let Some(store) = self.stores.iter().find(|store| store.transfer == number) else {
            self.violation = Some(format!("bytes of store {number} are asked for, which is none"));
            return false;
        };
        out.extend(stored_bytes(store.number, at, len));
        true
    }

    fn has(&mut self, key: &[u8]) -> bool {
        key == KEY
    }

    fn read(&mut self, range: &Range, at: u64, len: usize, out: &mut Vec<u8>) -> bool {
        let is_there = self.is_registered(range);
        if is_there {
            let from = (range.offset + at) as usize;
            out.extend_from_slice(&self.memory[from..from + len]);
        }
        is_there
    }

    fn write(&mut self, range: &Range, at: u64, bytes: &[u8]) -> bool {
        if at != 0 && at != self.next_write {
            self.violation = Some(format!("bytes {at} of a store come, {} are next", self.next_write));
        }
        self.next_write = at + bytes.len() as u64;
        let is_there = self.is_registered(range);
        if is_there && range.memory == MEMORY {
            let from = (range.offset + at) as usize;
            self.memory[from..from + bytes.len()].copy_from_slice(bytes);
        }
        self.placed += bytes.len() as u64;
        is_there
    }

    fn fetched(&mut self, number: u32, at: u64, bytes: &[u8]) {
        match self.gets.front_mut() {
            Some(get) if get.transfer == number && get.came.len() as u64 == at => get.came.extend(bytes),
            _ => self.violation = Some(format!("bytes {at} of get {number} come, others are next")),
        }
        self.placed += bytes.len() as u64;
    }
}

/// The program on one side.
#[derive(Debug)]
pub struct Program {
    pub connection: Connection,
    pub to_issue: u64,
    pub issued: u64,
    has_transfers: bool,
    shelf: Shelf,
    /// The lowest number of a peer's request that may be handled next.
    next_request: u64,
    /// The lowest number of this side's request whose reply may come next.
    next_reply: u64,
    /// Handlers of requests and stores that ran.
    pub handled: u64,
    /// Gets of this side that completed, and transfers of this side that were refused.
    pub fetched: u64,
    pub refused: u64,
    pub wake_ns: u64,
    /// The messages of transfers that may be in flight, and the acknowledgement that came with that grant.
    granted: u32,
    granted_with: Option<u32>,
}

impl Program {
    pub fn new(connection: Connection, to_issue: u64, has_transfers: bool) -> Self {
        let memory: Vec<u8> =
            (0..MEMORY_LEN).map(|offset| if offset < HALF { 0 } else { still_byte(offset) }).collect();
        let shelf = Shelf {
            expected: memory.clone(),
            memory,
            is_fleeting_there: true,
            stores: VecDeque::new(),
            gets: VecDeque::new(),
            placed: 0,
            next_write: 0,
            violation: None,
        };
        Self {
            connection,
            to_issue,
            issued: 0,
            has_transfers,
            shelf,
            next_request: 0,
            next_reply: 0,
            handled: 0,
            fetched: 0,
            refused: 0,
            wake_ns: 0,
            granted: Recovery::default().initial_window,
            granted_with: None,
        }
    }

    /// Creates the program of a restarted side, which the peer does not know. A message from the old
    /// connection must not be handled again, and any that is becomes a violation.
    pub fn after_restart(connection: Connection) -> Self {
        let nothing = u64::MAX;
        let mut program = Self::new(connection, 0, false);
        (program.next_request, program.next_reply) = (nothing, nothing);
        program
    }

    pub fn is_done(&self) -> bool {
        self.issued == self.to_issue && self.connection.in_flight() == 0
    }

    /// Returns the number of bytes placed.
    pub fn placed(&self) -> u64 {
        self.shelf.placed
    }

    /// Deregisters the memory `FLEETING`.
    pub fn deregister(&mut self) {
        self.shelf.is_fleeting_there = false;
    }

    /// Issues the task with the next number.
    pub fn issue(&mut self, now_ns: u64) -> Result<(), Full> {
        let number = self.issued;
        let issued = |transfer| Issued { transfer, number, came: Vec::new() };
        match Task::of(number, self.has_transfers) {
            Task::Request { .. } => self.connection.request(0, &[number], payload(number), now_ns)?,
            Task::Store { place, .. } => {
                let transfer = self.connection.store(0, &[number], place, now_ns)?;
                self.shelf.stores.push_back(issued(transfer));
                // The first messages of a store may go unasked.
                self.granted = self.granted.max(Recovery::default().initial_window);
            }
            Task::Get { place } => {
                let transfer = self.connection.get(place, now_ns)?;
                self.shelf.gets.push_back(issued(transfer));
            }
            Task::Attach { is_right } => {
                let key = if is_right { KEY } else { NO_KEY };
                let transfer = self.connection.attach(&key, now_ns)?;
                self.shelf.gets.push_back(issued(transfer));
            }
        }
        self.issued += 1;
        Ok(())
    }

    /// Notes the grant of a datagram that was not overtaken by another.
    pub fn note_grant(&mut self, Arrived { expected, granted, .. }: Arrived) {
        let is_overtaken = self.granted_with.is_some_and(|last| expected.wrapping_sub(last) > u32::MAX / 2);
        if !is_overtaken {
            (self.granted, self.granted_with) = (granted.into(), Some(expected));
        }
    }

    /// Returns the most messages of transfers that may be in flight when one more is sent.
    pub fn granted(&self) -> u32 {
        self.granted
    }

    /// Queues the datagrams of transfers that can be sent now. Returns whether there were any.
    pub fn feed(&mut self, now_ns: u64) -> bool {
        self.connection.feed(&mut self.shelf, now_ns)
    }

    /// Handles a delivered message and checks it.
    pub fn handle(&mut self, datagram: &Datagram<'_>, now_ns: u64) -> Result<(), String> {
        match datagram.header.kind {
            Kind::Request => {
                self.check_message(datagram)?;
                self.handle_request(datagram.words[0], now_ns)?;
            }
            Kind::Reply => {
                self.check_message(datagram)?;
                self.handle_reply(datagram.words[0])?;
            }
            kind if kind.is_of_transfer() => {
                let event = self.connection.transfer(datagram, &mut self.shelf);
                self.take(event, now_ns)?;
            }
            kind => return Err(format!("{kind:?} was delivered")),
        }
        self.shelf.violation.take().map_or(Ok(()), Err)
    }

    fn check_message(&self, datagram: &Datagram<'_>) -> Result<(), String> {
        let number = datagram.words[0];
        if datagram.payload != payload(number) {
            return Err(format!("message {number} came damaged"));
        }
        Ok(())
    }

    fn handle_request(&mut self, number: u64, now_ns: u64) -> Result<(), String> {
        let mut passed = self.next_request..number;
        if number < self.next_request
            || passed.any(|number| !Task::of(number, self.has_transfers).may_pass_unhandled())
        {
            return Err(format!("request {number} was handled, {} is the next", self.next_request));
        }
        self.next_request = number + 1;
        self.handled += 1;
        if Task::of(number, self.has_transfers).is_answered() {
            self.connection.reply(0, &[number], payload(number), now_ns);
        }
        Ok(())
    }

    fn handle_reply(&mut self, number: u64) -> Result<(), String> {
        let is_certain = |number| {
            let task = Task::of(number, self.has_transfers);
            task.is_answered() && !task.may_pass_unhandled()
        };
        if number < self.next_reply || (self.next_reply..number).any(is_certain) {
            return Err(format!("reply {number} was handled, {} is the next", self.next_reply));
        }
        self.next_reply = number + 1;
        Ok(())
    }

    fn take(&mut self, event: Event, now_ns: u64) -> Result<(), String> {
        match event {
            Event::Nothing => Ok(()),
            Event::Stored(stored) => self.handle_store(&stored, now_ns),
            Event::Fetched(transfer) => self.handle_fetched(transfer),
            Event::StoreRefused(store) => {
                let task = Task::of(store.words[0], self.has_transfers);
                let Task::Store { place, .. } = task else { return Err(format!("{task:?} was refused")) };
                if place != [store.range.memory, store.range.offset, store.range.len] {
                    return Err(format!("{task:?} was refused as {store:?}"));
                }
                self.handle_refused(store.range, true)
            }
            Event::GetRefused(range) => self.handle_refused(range, false),
        }
    }

    fn handle_store(&mut self, stored: &Stored, now_ns: u64) -> Result<(), String> {
        let Stored { range, words: [number, ..], .. } = *stored;
        let task = Task::of(number, self.has_transfers);
        let Task::Store { place, .. } = task else { return Err(format!("{number} is no store")) };
        if place != [range.memory, range.offset, range.len] || task.fate() == Fate::Refused {
            return Err(format!("store {number} went to {range:?}"));
        }
        let Shelf { memory, expected, next_write, .. } = &mut self.shelf;
        if *next_write != range.len {
            return Err(format!("store {number} was handled after {next_write} of {range:?}"));
        }
        if range.memory == MEMORY {
            let bytes = stored_bytes(number, 0, range.len as usize);
            expected.splice(range.offset as usize..(range.offset + range.len) as usize, bytes);
        }
        if memory != expected {
            return Err(format!("the memory is not what was stored, after store {number}"));
        }
        self.handle_request(number, now_ns)
    }

    fn handle_fetched(&mut self, transfer: u32) -> Result<(), String> {
        let Some(get) = self.shelf.gets.pop_front().filter(|get| get.transfer == transfer) else {
            return Err(format!("get {transfer} is complete, another is the next"));
        };
        let task = Task::of(get.number, self.has_transfers);
        let (offset, len) = match task {
            Task::Get { place: [_, offset, len] } => (offset, len),
            Task::Attach { .. } => (0, 0),
            _ => return Err(format!("{} is no get", get.number)),
        };
        let right: Vec<u8> = (offset..offset + len).map(still_byte).collect();
        if task.fate() == Fate::Refused || get.came != right {
            return Err(format!("get {} brought something else", get.number));
        }
        self.fetched += 1;
        Ok(())
    }

    /// Checks a refusal. Stores are refused in order, and gets are refused in order.
    fn handle_refused(&mut self, range: Range, is_store: bool) -> Result<(), String> {
        let shelf = &mut self.shelf;
        let issued = if is_store { &mut shelf.stores } else { &mut shelf.gets };
        while let Some(first) = issued.pop_front() {
            let task = Task::of(first.number, self.has_transfers);
            if first.transfer == range.number {
                if task.fate() == Fate::Done {
                    return Err(format!("{task:?} was refused"));
                }
                self.refused += 1;
                return Ok(());
            }
            if task.fate() == Fate::Refused || !is_store {
                return Err(format!("{task:?} was not refused"));
            }
        }
        Err(format!("{range:?} was refused, which is none"))
    }

    /// Checks at the end that every transfer to be refused or fetched was, and that the memory has the
    /// right contents.
    pub fn check_end(&self) -> Result<(), String> {
        let left = self
            .shelf
            .stores
            .iter()
            .find(|store| Task::of(store.number, self.has_transfers).fate() == Fate::Refused);
        match left.or(self.shelf.gets.front()) {
            Some(left) => Err(format!("nothing came of number {}", left.number)),
            None if self.shelf.memory != self.shelf.expected => {
                Err("the memory is not what was stored".into())
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_and_fate_occurs() {
        let tasks: Vec<Task> = (0..400).map(|number| Task::of(number, true)).collect();
        let lens = tasks.iter().map(|task| match *task {
            Task::Store { place, .. } | Task::Get { place } => place[2],
            Task::Request { .. } | Task::Attach { .. } => 0,
        });
        assert!(lens.max() > Some(10_000));
        for fate in [Fate::Done, Fate::Refused, Fate::Unknown] {
            let of_fate = || tasks.iter().filter(|task| task.fate() == fate);
            assert!(of_fate().any(|task| matches!(task, Task::Store { .. })), "{fate:?}");
            assert!(of_fate().any(|task| matches!(task, Task::Get { .. })), "{fate:?}");
        }
        for is_right in [false, true] {
            assert!(tasks.contains(&Task::Attach { is_right }));
        }
        assert!((0..400).all(|number| matches!(Task::of(number, false), Task::Request { .. })));
    }
}
