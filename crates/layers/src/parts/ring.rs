//! The message ring without an endpoint: its slots and its flow control.

use super::partner::{Partner, Server};
use super::{Parts, TOGETHER, TRIPS};
use netdyno_clock::ticks;
use netdyno_host::ring::{self, Reader, Writer};
use netdyno_measure::layer::LayerError;
use netdyno_protocol::am::{Credit, Credits, Ledger};
use netdyno_protocol::frame::slot::{Header, Kind};
use std::hint::black_box;
use std::rc::Rc;

/// Slots of a ring: the window of the stack.
const SLOTS: usize = 256;
const WINDOW: u32 = SLOTS as u32;

/// The probes of the ring.
#[derive(Clone, Copy)]
pub(super) struct RingProbes {
    pub(super) write: usize,
    pub(super) read: usize,
    /// The credit of a request, and what the responder counts for it.
    pub(super) credit: usize,
    pub(super) ledger: usize,
}

/// A message in a ring: words, or a payload.
#[derive(Clone)]
pub(super) struct Words(pub(super) Vec<u64>);

fn header(words: usize) -> Header {
    Header { sequence: 0, completed: 0, handler: 0, kind: Kind::Short, words: words as u8 }
}

/// One way between two ends.
struct Lane {
    writer: Writer,
    reader: Reader,
}

impl Lane {
    fn new() -> Self {
        let (writer, reader) = ring::pair(SLOTS);
        Self { writer, reader }
    }
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

#[inline(always)]
fn read(reader: &mut Reader) -> bool {
    match reader.read() {
        Some(message) => {
            black_box(message.map(|message| message.used_words()).ok());
            reader.advance();
            true
        }
        None => false,
    }
}

/// Adds the runs of one ring within a thread.
pub(super) fn slots(parts: &mut Parts, words: &Words) -> RingProbes {
    let (mut lane, mut credit, content) = (Lane::new(), credits(), words.0.clone());
    let [write, read] = parts.run(TOGETHER, ["write slot", "read slot"], move |count| {
        let began = ticks::now();
        for _ in 0..count {
            lane.writer.write(credit()?, header(content.len()), black_box(&content));
        }
        let written = ticks::now();
        for _ in 0..count {
            if !read(&mut lane.reader) {
                return Err(LayerError::new("a message did not arrive in the ring"));
            }
        }
        Ok([written - began, ticks::now() - written])
    });
    let mut credit = credits();
    let credit = parts.simple("credit", move || {
        black_box(credit().is_ok());
    });
    let mut ledger = Ledger::new(WINDOW);
    let ledger = parts.simple("ledger", move || {
        black_box(ledger.handle());
        let _ = black_box(ledger.answer());
        black_box(ledger.credit_is_due());
    });
    RingProbes { write, read, credit, ledger }
}

/// One end of two rings.
pub(super) struct End {
    out: Writer,
    into: Reader,
    words: Vec<u64>,
}

impl End {
    #[inline(always)]
    fn write(&mut self, credit: Credit) {
        self.out.write(credit, header(self.words.len()), &self.words);
    }
}

/// Returns the end that asks and the server of the end that answers.
pub(super) fn exchange(words: &Words) -> (End, Server) {
    let (there, back) = (Lane::new(), Lane::new());
    let end = |out, into| End { out, into, words: words.0.clone() };
    let (asking, mut answering) = (end(there.writer, back.reader), end(back.writer, there.reader));
    let mut credit = credits();
    let server = move || {
        let is_there = read(&mut answering.into);
        if is_there {
            answering.write(credit()?);
        }
        Ok(is_there)
    };
    (asking, Box::new(server))
}

/// Adds round trips with the server of this index. Returns the index of the probe.
pub(super) fn round_trips(parts: &mut Parts, partner: &Rc<Partner>, server: usize, mut asking: End) -> usize {
    let (partner, mut credit) = (Rc::clone(partner), credits());
    let [probe] = parts.run(TRIPS, ["plain round trip"], move |count| {
        partner.answering(server, || {
            let began = ticks::now();
            for _ in 0..count {
                asking.write(credit()?);
                partner.until(|| Ok(read(&mut asking.into)))?;
            }
            Ok([ticks::now() - began])
        })
    });
    probe
}
