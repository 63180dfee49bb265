//! The message lane of Virtual Interfaces without a provider.

use super::Parts;
use super::pace::Pace;
use super::partner::{Partner, Server};
use netdyno_clock::ticks;
use netdyno_host::lane::{self, Reader, WORDS, Writer};
use netdyno_measure::layer::LayerError;
use std::hint::black_box;
use std::rc::Rc;

/// The messages in a run. They fit into a lane.
const TOGETHER: u64 = 64;
/// The code of every line.
const CODE: u8 = 1;

/// The probes of a lane.
#[derive(Clone, Copy)]
pub(super) struct LaneProbes {
    pub(super) write: usize,
    pub(super) read: usize,
}

/// Writes a line. The reader has taken all lines before it.
#[inline(always)]
fn write(writer: &mut Writer) -> Result<(), LayerError> {
    let room = writer.room().ok_or_else(|| LayerError::new("the lane is full"))?;
    room.write(CODE, black_box(&[1; WORDS]));
    Ok(())
}

fn free(writer: &mut Writer) -> Result<(), LayerError> {
    writer.free(writer.written()).map_err(|_| LayerError::new("the lane counts wrongly"))
}

#[inline(always)]
fn read(reader: &mut Reader) -> bool {
    let line = reader.read();
    if line.is_some() {
        black_box(line);
        reader.advance();
    }
    line.is_some()
}

/// Adds the runs of one lane within a thread.
pub(super) fn slots(parts: &mut Parts) -> LaneProbes {
    let (mut writer, mut reader) = lane::pair();
    let [write, read] = parts.run(TOGETHER, ["write line", "read line"], move |count| {
        let began = ticks::now();
        for _ in 0..count {
            write(&mut writer)?;
        }
        let written = ticks::now();
        for _ in 0..count {
            if !read(&mut reader) {
                return Err(LayerError::new("a message did not arrive in the lane"));
            }
        }
        let taken = ticks::now();
        free(&mut writer)?;
        Ok([written - began, taken - written])
    });
    LaneProbes { write, read }
}

/// One end of two lanes.
pub(super) struct End {
    out: Writer,
    into: Reader,
    pace: Pace,
}

impl End {
    #[inline(always)]
    fn read(&mut self) -> bool {
        let is_there = read(&mut self.into);
        if !is_there {
            self.pace.pass();
        }
        is_there
    }
}

/// Returns the end that asks and the server of the end that answers. `in_vain` is a poll of the layer that finds nothing,
/// and gives the pace.
pub(super) fn exchange(in_vain: impl FnMut()) -> (End, Server) {
    let ((there, arriving), (back, answers)) = (lane::pair(), lane::pair());
    let end = |out, into| End { out, into, pace: Pace::default() };
    let (mut asking, mut answering) = (end(there, answers), end(back, arriving));
    let pace = Pace::of(in_vain, |pace| {
        asking.pace = pace;
        black_box(asking.read());
    });
    (asking.pace, answering.pace) = (pace, pace);
    let server = move || {
        let is_there = answering.read();
        if is_there {
            // The request says that the answer before it was taken.
            free(&mut answering.out)?;
            write(&mut answering.out)?;
        }
        Ok(is_there)
    };
    (asking, Box::new(server))
}

/// Adds round trips with the server of this index. Returns the index of the probe.
pub(super) fn round_trips(parts: &mut Parts, partner: &Rc<Partner>, server: usize, mut asking: End) -> usize {
    parts.round_trips("plain round trip", partner, server, move |partner| {
        write(&mut asking.out)?;
        partner.until(|| Ok(asking.read()))?;
        free(&mut asking.out)
    })
}
