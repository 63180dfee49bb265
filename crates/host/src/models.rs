//! Loom models of the memory that two processes share. Loom runs them in every distinct order of their
//! accesses, up to `LOOM_MAX_PREEMPTIONS`, and with every value that a relaxed load may return:
//! ```text
//! RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 cargo test -p netdyno-host --lib models::
//! ```
//!
//! Loom fails a model that accesses bytes without a happens-before order ([`Tracked`](crate::sync::Tracked)).
//! The cause is a missing release or acquire, or a write without a credit.

use crate::bounce::{self, BounceReader, BounceWriter, CELLS};
use crate::bytes::{Bytes, Stretch};
use crate::lane::{self, WORDS};
use crate::region::{CONTROL_BYTES, Region};
use crate::ring::{self, Place};
use crate::sleep;
use crate::sync::{AtomicU64, Ordering};
use loom::thread;
use netdyno_protocol::am::{Credit, Credits, Ledger};
use netdyno_protocol::frame::slot::{Header, Kind};
use std::ptr::NonNull;
use std::sync::Arc;

/// More messages than a ring, a lane or a stage of a model can hold, so that all slots are reused.
const MESSAGES: u64 = 3;
const SLOTS: usize = 2;

/// Repeats an attempt until it succeeds, and lets the other thread run in between.
fn until<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(given) = attempt() {
            return given;
        }
        thread::yield_now();
    }
}

fn ring() -> (ring::Writer, ring::Reader) {
    let place = Place { offset: CONTROL_BYTES, slots: SLOTS, cell: ring::LINE };
    let region = Arc::new(Region::anonymous(CONTROL_BYTES + place.len()));
    place.lay_out(&region);
    // SAFETY: one end of each kind, on memory that nothing else uses.
    unsafe { (ring::Writer::new(&region, place), ring::Reader::new(&region, place)) }
}

fn header(kind: Kind, completed: u16) -> Header {
    Header { sequence: 0, completed, handler: 0, kind, words: 1 }
}

/// A requester with a window, and a responder whose replies return the credits. The requester never
/// overwrites a payload before the responder has read it.
#[test]
fn a_payload_is_read_before_its_slot_is_written_again() {
    loom::model(|| {
        let ((mut requests_out, mut requests_in), (mut replies_out, mut replies_in)) = (ring(), ring());
        let responder = thread::spawn(move || {
            let (mut ledger, mut payload) = (Ledger::new(SLOTS as u32), Vec::new());
            for nth in 0..MESSAGES {
                let message = until(|| requests_in.read()).unwrap();
                assert_eq!(message.words[0], nth);
                requests_in.read_payload(&mut payload).unwrap();
                assert_eq!(payload, [nth as u8; 4]);
                requests_in.advance();
                let completed = ledger.handle();
                replies_out.write(ledger.answer(), header(Kind::Credit, completed), &[]);
            }
        });
        let mut credits = Credits::new(SLOTS as u32);
        for nth in 0..MESSAGES {
            let credit: Credit = until(|| {
                if let Some(reply) = replies_in.read() {
                    credits.complete_to(reply.unwrap().header.completed).unwrap();
                    replies_in.advance();
                }
                credits.take()
            });
            requests_out.write_with_payload(credit, header(Kind::Medium, 0), &[nth], &[nth as u8; 4]);
        }
        responder.join().unwrap();
    });
}

/// A writer that waits for space, and a reader that reports how many lines it has taken.
#[test]
fn a_piece_is_read_before_its_place_is_written_again() {
    loom::model(|| {
        let region = Arc::new(Region::anonymous(CONTROL_BYTES + lane::LEN));
        lane::lay_out(&region, CONTROL_BYTES);
        // SAFETY: one end of each kind, on memory that nothing else uses.
        let (mut writer, mut reader) =
            unsafe { (lane::Writer::new(&region, CONTROL_BYTES), lane::Reader::new(&region, CONTROL_BYTES)) };
        let taken = loom::sync::Arc::new(AtomicU64::new(0));
        let told = taken.clone();
        let receiver = thread::spawn(move || {
            for nth in 0..MESSAGES {
                let (code, words) = until(|| reader.read());
                assert_eq!((u64::from(code), words[0]), (nth, nth));
                let piece = reader.take_piece(8);
                let mut bytes = [0; 8];
                reader.bytes(piece).read(&mut bytes);
                assert_eq!(bytes, [nth as u8; 8]);
                reader.advance();
                told.store(reader.taken(), Ordering::Release);
            }
        });
        for nth in 0..MESSAGES {
            until(|| {
                writer.free(taken.load(Ordering::Acquire)).unwrap();
                writer.has_room().then_some(())
            });
            let mut bytes = [nth as u8; 8];
            // SAFETY: the bytes are copied before any other access to them.
            let from = unsafe { Stretch::new(NonNull::from(&mut bytes).cast(), 8) };
            writer.room().unwrap().write_piece(nth as u8, &[nth; WORDS], &[from]);
        }
        receiver.join().unwrap();
    });
}

/// One side reports the cells that it has filled, and the other side reports those that it has emptied.
#[test]
fn a_cell_is_emptied_before_it_is_filled_again() {
    loom::model(|| {
        let region = Arc::new(Region::anonymous(CONTROL_BYTES + bounce::LEN));
        bounce::lay_out(&region, CONTROL_BYTES);
        // SAFETY: one end of each kind, on memory that nothing else uses.
        let (mut writer, mut reader) =
            unsafe { (BounceWriter::new(&region, CONTROL_BYTES), BounceReader::new(&region, CONTROL_BYTES)) };
        let words = loom::sync::Arc::new([(); 2].map(|()| AtomicU64::new(0)));
        let theirs = words.clone();
        let emptier = thread::spawn(move || {
            let [filled, emptied] = &*theirs;
            let bytes = Bytes::of_box(vec![0; 8].into());
            for nth in 0..MESSAGES {
                until(|| (filled.load(Ordering::Acquire) > nth).then_some(()));
                reader.empty_into(&bytes, 0, 8);
                let mut found = [0; 8];
                bytes.read(0, &mut found);
                assert_eq!(found, [nth as u8; 8]);
                emptied.store(nth + 1, Ordering::Release);
            }
        });
        let [filled, emptied] = &*words;
        for nth in 0..MESSAGES {
            until(|| {
                let cell = writer.empty_cell(emptied.load(Ordering::Acquire))?;
                cell.fill(&[nth as u8; 8], nth);
                Some(())
            });
            filled.store(nth + 1, Ordering::Release);
        }
        emptier.join().unwrap();
        assert!(MESSAGES > CELLS as u64);
    });
}

/// One side goes to sleep while the other sends a message. It finds the message or is woken.
#[test]
fn no_message_is_slept_over() {
    loom::model(|| {
        let words = loom::sync::Arc::new([(); 2].map(|()| AtomicU64::new(0)));
        let theirs = words.clone();
        let sender = thread::spawn(move || {
            let [message, asleep] = &*theirs;
            message.store(1, Ordering::Release);
            sleep::is_to_be_woken(asleep)
        });
        let [message, asleep] = &*words;
        sleep::announce(asleep);
        let has_found = message.load(Ordering::Acquire) != 0;
        let is_woken = sender.join().unwrap();
        assert!(has_found || is_woken);
    });
}

/// One side takes an announcement back and goes to sleep again, while the other sends two messages. A wake-up
/// that is drained before the second announcement is not missed.
#[test]
fn no_message_is_slept_over_after_a_cancelled_sleep() {
    loom::model(|| {
        let words = loom::sync::Arc::new([(); 3].map(|()| AtomicU64::new(0)));
        let theirs = words.clone();
        let sender = thread::spawn(move || {
            let [messages, asleep, rung] = &*theirs;
            for nth in 1..=2 {
                messages.store(nth, Ordering::Release);
                if sleep::is_to_be_woken(asleep) {
                    rung.store(1, Ordering::Release);
                }
            }
        });
        let [messages, asleep, rung] = &*words;
        let mut handled = 0;
        loop {
            // The drain of the wake-up.
            rung.swap(0, Ordering::AcqRel);
            sleep::announce(asleep);
            let found = messages.load(Ordering::Acquire);
            if found == handled {
                break;
            }
            sleep::cancel(asleep);
            handled = found;
        }
        sender.join().unwrap();
        // A swap, because it reads the latest value. After a swap loom lets a load read an older one.
        assert!(handled == 2 || rung.swap(0, Ordering::AcqRel) == 1);
    });
}
