//! Two processes that sleep in the kernel while they have nothing to do.

use super::end::{End, spell, spelled};
use crate::common::process::{Child, Parent, role};
use crate::common::{Deadline, TIMEOUT, Transport};
use netdyno_stack::vi::*;
use std::time::Duration;

const MESSAGES: usize = 300;
const LENS: [usize; 4] = [4, 1000, 5000, 100_000];

pub fn child_process(transport: &Transport) {
    let Some((_, parent)) = role() else { return };
    let mut end = End::open(transport);
    let vi = connect_with_parent(&mut end, &parent, Level::Reception);
    echo(&mut end, vi);
    // The parent closes first.
    let deadline = Deadline::after(TIMEOUT);
    while end.failures.is_empty() {
        deadline.check("the end of the parent");
        end.sleep(Duration::from_millis(100));
    }
    assert_eq!(end.failures[0].error, AsyncError::ConnLost);
}

/// Connects as a server: the child waits for the parent's request.
fn connect_with_parent(end: &mut End, parent: &Parent, level: Level) -> ViHandle {
    let vi = end.vi(level);
    let wait = end.wait("child", TIMEOUT);
    parent.say(&spell(&end.address("child")));
    let deadline = Deadline::after(TIMEOUT);
    let conn = loop {
        deadline.check("a request");
        if let Some(conn) = end.provider.waited(wait).unwrap() {
            break conn;
        }
        end.sleep(Duration::from_millis(100));
    };
    for nth in 0..8 {
        end.receive_into(vi, nth * LENS[3], LENS[3]);
    }
    end.provider.accept(conn, vi).unwrap();
    vi
}

/// Sends each message back.
fn echo(end: &mut End, vi: ViHandle) {
    let deadline = Deadline::after(TIMEOUT);
    let (mut received, mut sent) = (0, 0);
    while sent < MESSAGES {
        deadline.check("messages to send back");
        let mut is_any = false;
        // Completed sends are handled first, so that a receive is always posted for the next message. The
        // parent sends that one as soon as it has its message back, even if this side has not seen its
        // send complete.
        if let Some(Completed { completion, .. }) = end.done(vi, Side::Send) {
            assert!(!completion.status.is_error(), "{completion:?}");
            // The send has completed, so the next message may overwrite its bytes.
            end.receive_into(vi, sent % 8 * LENS[3], LENS[3]);
            (sent, is_any) = (sent + 1, true);
        }
        // After the last message the parent disconnects, and the remaining receives are flushed.
        if received < MESSAGES
            && let Some(Completed { at, completion }) = end.done(vi, Side::Receive)
        {
            let place = end.place_of(at);
            assert!(!completion.status.is_error(), "{completion:?}");
            end.send_from(vi, place, completion.len as usize);
            (received, is_any) = (received + 1, true);
        }
        if !is_any {
            end.sleep(Duration::from_millis(100));
        }
    }
    assert_eq!(received, MESSAGES);
}

pub fn messages_go_to_another_process_and_come_back(transport: &Transport) {
    let child = Child::start(&transport.path_of(module_path!()), "echoes");
    let mut end = End::open(transport);
    let vi = end.vi(Level::Reception);
    let to = spelled(&child.hear());
    end.ask(vi, "parent", to, false, TIMEOUT);
    let deadline = Deadline::after(TIMEOUT);
    while end.provider.answer(vi).unwrap().is_none() {
        deadline.check("an answer");
        end.sleep(Duration::from_millis(100));
    }
    for nth in 0..MESSAGES {
        let len = LENS[nth % LENS.len()];
        let bytes = vec![nth as u8; len];
        end.write(0, &bytes);
        let back = end.receive_into(vi, LENS[3], len);
        end.send_from(vi, 0, len);
        let [mut is_sent, mut is_back] = [false; 2];
        while !(is_sent && is_back) {
            deadline.check("a message that comes back");
            is_sent |= end.done(vi, Side::Send).is_some();
            is_back |= end.done(vi, Side::Receive).is_some();
            if !(is_sent && is_back) {
                end.sleep(Duration::from_millis(100));
            }
        }
        let Completion { status, len: came, .. } = end.completion(back);
        assert_eq!((came as usize, status.is_error()), (len, false));
        assert!(end.read(LENS[3], len) == bytes);
    }
    drop(end);
    child.join();
}
