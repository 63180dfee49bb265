//! Unknown processes over shared memory: of another user, of another PID namespace, and hostile ones of
//! this user.

use super::end::{End, connect, drive, failed, pair, spell, spelled, wait_for, work};
use super::stranger::{Said, Stranger, squat};
use crate::common::process::{Child, Parent, role};
use crate::common::transport::SHM;
use crate::common::{Deadline, TIMEOUT};
use netdyno_host::lane::{PIECE, WORDS};
use netdyno_host::loan::Loan;
use netdyno_protocol::frame::vi_lending::Lending;
use netdyno_protocol::frame::vi_message::{Head, Kind, Refusal, Verdict};
use netdyno_protocol::frame::vi_signal::Signal;
use netdyno_stack::vi::*;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The number of the next stranger's connection.
static STRANGERS: AtomicU64 = AtomicU64::new(7);

/// Runs a program as the user `nobody`, which exists everywhere.
const NOBODY: &[&str] = &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

/// Returns whether a program can be run with this launcher. If not, the test is skipped.
fn can_run(launcher: &[&str]) -> bool {
    let exe = std::env::current_exe().unwrap();
    let mut command = Command::new(launcher[0]);
    command.args(&launcher[1..]).arg(exe).arg("--list").stdout(Stdio::null()).stderr(Stdio::null());
    let can = command.status().is_ok_and(|status| status.success());
    if !can {
        println!("SKIPPED: {launcher:?} can not be run here: is this root, and is there util-linux?");
    }
    can
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[test]
fn child_process() {
    let Some((role, parent)) = role() else { return };
    let (user, address) = (role[1].parse().unwrap(), spelled(&role[2]));
    match role[0].as_str() {
        "squats" => {
            let _socket = squat(user, &address).unwrap();
            parent.say("there");
            wait_for_end(&parent);
        }
        _ => intrude(&parent, user, &address),
    }
}

fn wait_for_end(parent: &Parent) {
    while !parent.is_gone() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a request like a peer, and waits for an answer or for the end of the connection.
fn intrude(parent: &Parent, user: u32, address: &Address) {
    let mut stranger = Stranger::connect(user, address).unwrap();
    // The provider may have closed the socket already.
    let _ = stranger.say_with_inbox(&request(1, address.clone(), offer(Level::Delivery)).encode());
    let deadline = Deadline::after(TIMEOUT);
    let said = loop {
        deadline.check("an answer or an end");
        match stranger.hear() {
            Said::Nothing => std::thread::sleep(Duration::from_millis(1)),
            said => break said,
        }
    };
    parent.say(if said == Said::Closed { "closed" } else { "heard" });
    wait_for_end(parent);
}

fn offer(level: Level) -> Offer {
    let is_reliable = level.is_reliable();
    Offer {
        level,
        transfer_bytes: super::end::LONGEST,
        qos: 0,
        can_be_written: true,
        can_be_read: is_reliable,
        can_read: is_reliable,
    }
}

fn request(number: u64, to: Address, offer: Offer) -> Signal {
    let from = Address { host: to.host.clone(), discriminator: b"stranger".to_vec() };
    Signal::Request(Request { number, is_of_peer: false, from, to, offer })
}

fn exchange(ends: &mut [End; 2], vis: [ViHandle; 2]) {
    ends[1].receive_into(vis[1], 0, 10);
    ends[0].send_from(vis[0], 0, 10);
    assert!(!wait_for(ends, 1, vis[1], Side::Receive).completion.status.is_error());
    assert!(!wait_for(ends, 0, vis[0], Side::Send).completion.status.is_error());
}

#[test]
fn another_user_finds_the_socket_closed() {
    if !can_run(NOBODY) {
        return;
    }
    let (mut ends, vis) = pair(&SHM, Level::Reception);
    let wait = ends[1].wait("server", TIMEOUT);
    let role = format!("intrudes {} {}", user(), spell(&ends[1].address("server")));
    let child = Child::start_under(NOBODY, module_path!(), &role);
    let mut said = None;
    drive(&mut ends, "what became of an intruder", |_| {
        said = child.try_hear();
        said.is_some()
    });
    assert_eq!(said.unwrap(), "closed");
    assert_eq!(ends[1].provider.waited(wait), Ok(None));
    exchange(&mut ends, vis);
}

/// While another user has the name, waiting and asking fail at once. Both work when the name is free
/// again.
#[test]
fn a_name_that_another_user_has_is_an_error_at_once() {
    if !can_run(NOBODY) {
        return;
    }
    let mut ends = [(); 2].map(|()| End::open(&SHM));
    let vis = ends.each_mut().map(|end| end.vi(Level::Delivery));
    let address = ends[1].address("peer");
    let mut child =
        Child::start_under(NOBODY, module_path!(), &format!("squats {} {}", user(), spell(&address)));
    assert_eq!(child.hear(), "there");
    let waits = ends[1].provider.wait(&address.discriminator, Some(TIMEOUT));
    assert_eq!(waits, Err(ConnectError::Foreign));
    let to = ends[0].address("peer");
    let asks = ends[1].provider.ask(vis[1], &address.discriminator, to, true, Some(TIMEOUT));
    assert_eq!((asks, ends[1].state(vis[1])), (Err(ConnectError::Foreign), State::Idle));
    for is_of_peer in [false, true] {
        ends[0].ask(vis[0], "peer", address.clone(), is_of_peer, TIMEOUT);
        let mut answer = None;
        drive(&mut ends, "an answer", |ends| {
            answer = ends[0].provider.answer(vis[0]).transpose();
            answer.is_some()
        });
        assert_eq!(answer, Some(Err(ConnectError::Foreign)));
    }
    assert_eq!(ReturnCode::from(ConnectError::Foreign), ReturnCode::ErrorResource);
    child.kill();
    connect(&mut ends, vis);
    exchange(&mut ends, vis);
}

/// Connects a stranger of this user with a VI.
fn admit(ends: &mut [End; 2], vi: ViHandle) -> Stranger {
    admit_numbered(ends, vi).0
}

/// Connects a stranger, and also returns the number of its connection.
fn admit_numbered(ends: &mut [End; 2], vi: ViHandle) -> (Stranger, u64) {
    // The number is new, so that nothing of an earlier stranger is taken for this one. The name is new,
    // too. A child process that another test starts inherits the closed socket, which goes on listening
    // until the child executes its program.
    let number = STRANGERS.fetch_add(1, Ordering::Relaxed);
    let name = format!("stranger-{number}");
    let wait = ends[0].wait(&name, TIMEOUT);
    let address = ends[0].address(&name);
    let mut stranger = Stranger::connect(user(), &address).unwrap();
    let ViAttributes { level, transfer_bytes, .. } = ends[0].provider.query_vi(vi).unwrap().attributes;
    let offer = Offer { transfer_bytes, ..offer(level) };
    stranger.say_with_inbox(&request(number, address, offer).encode()).unwrap();
    let mut conn = None;
    drive(ends, "a stranger", |ends| {
        conn = ends[0].provider.waited(wait).unwrap();
        conn.is_some()
    });
    ends[0].provider.accept(conn.unwrap(), vi).unwrap();
    drive(ends, "its admission", |_| matches!(stranger.hear(), Said::Bytes(_)));
    (stranger, number)
}

/// Returns the words of a slot with a message head, as [`Head::pack`] writes it.
fn line(kind: Kind, len: u32) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    words[..4].copy_from_slice(&Head { number: 0, len, kind }.pack());
    words
}

const SEND: Kind = Kind::Send { immediate: None };

/// A slot without a meaning ends its own connection and no other.
#[test]
fn forged_lines_break_one_vi() {
    const WHOLE: u8 = 1;
    const BESIDE: u8 = 2;
    const BEGINS: u8 = 3;
    const OF_MESSAGE: u8 = 4;
    const SERVED: u8 = 6;
    const LENT: u8 = 7;
    const WRITE: u8 = 8;
    let (mut ends, vis) = pair(&SHM, Level::Reception);
    let verdict = Verdict { number: 0, refusal: None }.pack();
    let forged = [
        vec![(0, [0; WORDS])],
        vec![(200, line(SEND, 4))],
        vec![(WHOLE, [u64::MAX; WORDS])],
        vec![(WHOLE, [verdict; WORDS])],
        vec![(WHOLE, line(SEND, 41))],
        vec![(WHOLE, line(SEND, u32::MAX))],
        vec![(BESIDE, line(SEND, PIECE as u32 + 1))],
        vec![(BEGINS, line(SEND, PIECE as u32))],
        vec![(OF_MESSAGE, [PIECE as u64; WORDS])],
        vec![(5, [0; WORDS])],
        vec![(SERVED, [10; WORDS])],
        // Zero-copy messages from memory that was never passed: a send, a read, and one behind a message
        // that has begun.
        vec![(LENT, line(SEND, 100_000))],
        vec![(LENT, line(Kind::Read { remote: ends[0].remote(0) }, 100_000))],
        vec![(BEGINS, line(SEND, 100_000)), (LENT, line(SEND, 100_000))],
        // An inline write with the head of a send, with that of a read, and with more bytes than fit.
        vec![(WRITE, line(SEND, 4))],
        vec![(WRITE, line(Kind::Read { remote: ends[0].remote(0) }, 0))],
        vec![(WRITE, [33 << 16 | 2, 0, 0, 0, 0, 0, 0])],
        vec![(BEGINS, line(SEND, 100_000)), (OF_MESSAGE, [100; WORDS])],
        vec![(BEGINS, line(SEND, 100_000)), (OF_MESSAGE, [u64::MAX; WORDS])],
        vec![(BEGINS, line(SEND, 100_000)), (WHOLE, line(SEND, 4))],
    ];
    for lines in forged {
        let vi = ends[0].vi(Level::Delivery);
        let receive = ends[0].receive_into(vi, 0, 100_000);
        let stranger = admit(&mut ends, vi);
        let mut writer = stranger.writer().unwrap();
        lines.iter().for_each(|(code, words)| writer.room().unwrap().write(*code, words));
        assert_eq!(failed(&mut ends, 0), AsyncError::ConnLost, "{lines:?}");
        assert_eq!(ends[0].state(vi), State::Error);
        assert!(ends[0].completion(receive).status.has(Status::FLUSHED));
        ends[0].provider.disconnect(vi).unwrap();
        exchange(&mut ends, vis);
    }
}

/// A peer withdraws memory while its message is being copied. The copy is still completed.
#[test]
fn memory_that_is_taken_back_stays_until_its_message_is_copied() {
    const LENT: u8 = 7;
    /// Longer than the part that is copied in one poll, and received into two segments.
    const LONG: usize = 6 << 20;
    let long = NicAttributes { transfer_bytes: LONG as u32, ..NicAttributes::default() };
    let mut ends = [(); 2].map(|()| End::open_with(&SHM, long));
    let attributes = ViAttributes { transfer_bytes: LONG as u32, ..ends[0].attributes(Level::Delivery) };
    let vi = ends[0].provider.create_vi(attributes, None, None).unwrap();
    let segments = [0, 1 << 20].map(|offset| ends[0].segment(offset, LONG / 2));
    let end = (1 << 20) + LONG / 2;
    ends[0].post(vi, Side::Receive, &work(Operation::Receive, &segments));
    let (stranger, number) = admit_numbered(&mut ends, vi);
    let memory = Loan::create(LONG).unwrap();
    // SAFETY: the memory has `LONG` bytes, and there are no references to it.
    unsafe { memory.base().as_ptr().write_bytes(7, LONG) };
    let lent = Lending { number, id: 1, len: Some(memory.len() as u64) };
    stranger.say(&lent.encode(), Some(memory.as_fd())).unwrap();
    let mut words = line(SEND, LONG as u32);
    words[2..4].copy_from_slice(&[1, 0]);
    stranger.writer().unwrap().room().unwrap().write(LENT, &words);
    drive(&mut ends, "a part of it", |ends| ends[0].read(0, 1) == [7]);
    assert_ne!(ends[0].read(end - 1, 1), [7]);
    stranger.say(&Lending { len: None, ..lent }.encode(), None).unwrap();
    drop(memory);
    drive(&mut ends, "all of it", |ends| ends[0].read(end - 1, 1) == [7]);
    let received = wait_for(&mut ends, 0, vi, Side::Receive).completion;
    assert_eq!((received.len as usize, received.status.is_error()), (LONG, false));
    assert!(ends[0].read(0, end).iter().all(|byte| *byte == 7));
}

/// The control words beside the ring: how far it was read, what was refused, and where it ends.
#[test]
fn forged_words_break_one_vi() {
    const TAKEN: usize = 256;
    const LEFT: usize = 512;
    const REFUSED: usize = 520;
    let (mut ends, vis) = pair(&SHM, Level::Reception);
    // A forged end of the ring, long before or far ahead, takes effect when the socket is closed.
    for (word, value) in [(TAKEN, 2), (TAKEN, u64::MAX), (REFUSED, 1), (REFUSED, u64::MAX), (LEFT, u64::MAX)]
    {
        let vi = ends[0].vi(Level::Reception);
        let stranger = admit(&mut ends, vi);
        stranger.inbox.region.word(word).store(value, Ordering::Release);
        let sent = ends[0].send_from(vi, 0, 10);
        if word == LEFT {
            drop(stranger);
        }
        assert_eq!(failed(&mut ends, 0), AsyncError::ConnLost, "{word}: {value}");
        assert!(ends[0].completion(sent).status.is_error());
        ends[0].provider.disconnect(vi).unwrap();
        exchange(&mut ends, vis);
    }
}

/// Memory that a peer may not use is not touched, whatever address and handle the peer gives.
#[test]
fn forged_places_are_refused() {
    const REFUSED: usize = 520;
    let (mut ends, vis) = pair(&SHM, Level::Reception);
    let other = ends[0].provider.create_tag().unwrap();
    let open = |tag| MemAttributes { tag, can_be_written: true, can_be_read: true };
    let tag = ends[0].tag;
    let elsewhere = ends[0].register(0, 100, open(other)).0;
    let gone = ends[0].register(0, 100, open(tag));
    ends[0].deregister(0, gone);
    let here = ends[0].remote(0);
    let beyond = ends[0].remote(0).address + (64 << 20);
    let forged = [
        Remote { handle: elsewhere, ..here },
        Remote { handle: gone.0, ..here },
        Remote { handle: here.handle ^ 1 << 20, ..here },
        Remote { handle: 0, ..here },
        Remote { address: here.address - 1, ..here },
        Remote { address: beyond, ..here },
        Remote { address: u64::MAX - 3, ..here },
        Remote { address: 0, ..here },
    ];
    ends[0].write(0, &[7; 200]);
    for (remote, is_read) in forged.into_iter().flat_map(|remote| [(remote, false), (remote, true)]) {
        let vi = ends[0].vi(Level::Reception);
        let stranger = admit(&mut ends, vi);
        let kind = if is_read { Kind::Read { remote } } else { Kind::Write { remote, immediate: None } };
        // The 8 bytes of a write are beside the slot. A read consists of a head alone.
        let code = if is_read { 1 } else { 2 };
        stranger.writer().unwrap().room().unwrap().write(code, &line(kind, 8));
        let told = [AsyncError::RdmawProt, AsyncError::RdmarProt][usize::from(is_read)];
        assert_eq!(failed(&mut ends, 0), told, "{remote:?}");
        let refusal = [Refusal::WriteDenied, Refusal::ReadDenied][usize::from(is_read)];
        let verdict = Verdict { number: 0, refusal: Some(refusal) };
        let said = stranger.theirs().unwrap().word(REFUSED).load(Ordering::Acquire);
        assert_eq!(Verdict::parse(said), Ok(verdict));
        ends[0].provider.disconnect(vi).unwrap();
        assert!(ends[0].read(0, 200) == [7; 200]);
        exchange(&mut ends, vis);
    }
}
