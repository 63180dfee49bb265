//! The message ring without an endpoint: its slots and its flow control.

use super::content::Content;
use super::pace::Pace;
use super::partner::{Partner, Server};
use super::{MANY, Parts};
use netdyno_clock::ticks;
use netdyno_host::ring::{self, LINE, Reader, Writer};
use netdyno_measure::layer::LayerError;
use netdyno_protocol::am::{Credit, Credits, Ledger};
use netdyno_protocol::frame::slot::{Header, Kind};
use std::hint::black_box;
use std::rc::Rc;

/// A window that is never full.
const WINDOW: u32 = 64;
/// The slots of a ring that is looked at.
const LOOKED_AT: usize = 64;

/// The probes of the ring.
#[derive(Clone, Copy)]
pub(super) struct RingProbes {
    /// Taking a credit, and writing a slot.
    pub(super) write: usize,
    pub(super) read: usize,
    /// Looking for a message in an empty ring.
    pub(super) look: usize,
    /// Taking the credit of a request, and completing the request.
    pub(super) take_credit: usize,
    pub(super) complete: usize,
    /// What the responder counts for a request and its reply.
    pub(super) ledger: usize,
}

/// One way between two ends.
struct Lane {
    writer: Writer,
    reader: Reader,
}

impl Lane {
    fn new(content: &Content) -> Self {
        let cell = if content.payload.is_empty() { 0 } else { content.payload.len().next_multiple_of(LINE) };
        let (writer, reader) = ring::pair(content.together(), cell);
        Self { writer, reader }
    }
}

#[inline(always)]
fn write(writer: &mut Writer, credit: Credit, content: &Content) {
    let Content { words, payload } = content;
    let header = |kind| Header { sequence: 0, completed: 0, handler: 0, kind, words: words.len() as u8 };
    if payload.is_empty() {
        writer.write(credit, header(Kind::Short), words);
    } else {
        writer.write_with_payload(credit, header(Kind::Medium), words, payload);
    }
}

/// Reads a message, if one is there. `room` is for its payload.
#[inline(always)]
fn read(reader: &mut Reader, room: &mut Vec<u8>) -> bool {
    let Some(message) = reader.read() else { return false };
    let Ok(message) = message else { return false };
    if message.header.kind == Kind::Medium && reader.read_payload(room).is_err() {
        return false;
    }
    black_box((message.used_words(), &room));
    reader.advance();
    true
}

/// Returns a credit for each message: the other end has room, because it reads each one before the next round.
fn credits() -> impl FnMut() -> Result<Credit, LayerError> {
    let mut credits = Credits::new(WINDOW);
    move || {
        let credit = credits.take().ok_or_else(|| LayerError::new("the ring is full"))?;
        credits.complete_to(credits.sent() as u16).map_err(|_| LayerError::new("the ring counts wrongly"))?;
        Ok(credit)
    }
}

/// Adds the runs of one ring within a thread.
pub(super) fn slots(parts: &mut Parts, content: &Content) -> RingProbes {
    let (mut lane, mut credits, content) = (Lane::new(content), Credits::new(WINDOW), content.clone());
    let (mut room, together) = (Vec::new(), content.together() as u64);
    let [write, read] = parts.run(together, ["take credit, write slot", "read slot"], move |count| {
        let began = ticks::now();
        for _ in 0..count {
            let credit = credits.take().ok_or_else(|| LayerError::new("the ring is full"))?;
            write(&mut lane.writer, credit, black_box(&content));
        }
        let written = ticks::now();
        for _ in 0..count {
            if !read(&mut lane.reader, &mut room) {
                return Err(LayerError::new("a message did not arrive in the ring"));
            }
        }
        let taken = ticks::now();
        credits.complete_to(credits.sent() as u16).map_err(|_| LayerError::new("the ring counts wrongly"))?;
        Ok([written - began, taken - written])
    });
    let (_, empty) = ring::pair(LOOKED_AT, 0);
    let look = parts.simple("look at an empty ring", move || {
        black_box(empty.read().is_some());
    });
    let mut credits = Credits::new(MANY as u32);
    let [take_credit, complete] = parts.run(MANY, ["take credit", "complete request"], move |count| {
        let before = credits.sent();
        let began = ticks::now();
        for _ in 0..count {
            black_box(credits.take().is_some());
        }
        let taken = ticks::now();
        for nth in 1..=count {
            let completed = credits.complete_to(black_box(before + nth) as u16);
            if black_box(completed) != Ok(1) {
                return Err(LayerError::new("the ring counts wrongly"));
            }
        }
        Ok([taken - began, ticks::now() - taken])
    });
    let mut ledger = Ledger::new(WINDOW);
    let ledger = parts.simple("ledger", move || {
        black_box(ledger.handle());
        let _ = black_box(ledger.answer());
        black_box(ledger.credit_is_due());
    });
    RingProbes { write, read, look, take_credit, complete, ledger }
}

/// One end of two rings.
pub(super) struct End {
    out: Writer,
    into: Reader,
    content: Content,
    room: Vec<u8>,
    pace: Pace,
}

impl End {
    #[inline(always)]
    fn write(&mut self, credit: Credit) {
        write(&mut self.out, credit, &self.content);
    }

    #[inline(always)]
    fn read(&mut self) -> bool {
        let is_there = read(&mut self.into, &mut self.room);
        if !is_there {
            self.pace.pass();
        }
        is_there
    }
}

/// Returns the end that asks and the server of the end that answers. `in_vain` is a poll of the layer that finds nothing,
/// and gives the pace.
pub(super) fn exchange(content: &Content, in_vain: impl FnMut()) -> (End, Server) {
    let (there, back) = (Lane::new(content), Lane::new(content));
    let end =
        |out, into| End { out, into, content: content.clone(), room: Vec::new(), pace: Pace::default() };
    let (mut asking, mut answering) = (end(there.writer, back.reader), end(back.writer, there.reader));
    let pace = Pace::of(in_vain, |pace| {
        asking.pace = pace;
        black_box(asking.read());
    });
    (asking.pace, answering.pace) = (pace, pace);
    let mut credit = credits();
    let server = move || {
        let is_there = answering.read();
        if is_there {
            answering.write(credit()?);
        }
        Ok(is_there)
    };
    (asking, Box::new(server))
}

/// Adds round trips with the server of this index. Returns the index of the probe.
pub(super) fn round_trips(parts: &mut Parts, partner: &Rc<Partner>, server: usize, mut asking: End) -> usize {
    let mut credit = credits();
    parts.round_trips("plain round trip", partner, server, move |partner| {
        asking.write(credit()?);
        partner.until(|| Ok(asking.read()))
    })
}
