//! Jobs of ranks that others have started: here threads of this test, which connect as ranks do.

#![allow(clippy::unwrap_used, reason = "a test")]

use netdyno_job::launching::entrance::Entrance;
use netdyno_job::launching::invitation::{Invitation, JoinError, Joined, Loss};
use netdyno_job::launching::remote::{Starter, serve};
use netdyno_job::launching::{End, LaunchError};
use netdyno_job::place::Place;
use netdyno_job::pmi::{Pmi, PmiError};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// No job of these tests takes this long.
const TOO_LONG: Duration = Duration::from_secs(60);

/// Serves a job, and runs each of its ranks by the invitation.
fn job(
    procs: usize,
    starters: Vec<Starter>,
    within: Duration,
    rank: impl Fn(Invitation) + Sync,
) -> Result<End, LaunchError> {
    let entrance = Entrance::open(Ipv4Addr::LOCALHOST.into()).unwrap();
    let invitation = entrance.invitation().clone();
    let began = Instant::now();
    let end = thread::scope(|scope| {
        for _ in 0..procs {
            scope.spawn(|| rank(invitation.clone()));
        }
        serve(entrance, procs, starters, within)
    });
    assert!(began.elapsed() < TOO_LONG, "{:?}", began.elapsed());
    end
}

/// Waits until the connection has ended, and returns why.
fn loss(joined: &Joined) -> Loss {
    let (sender, losses) = mpsc::channel();
    joined.watch(move |loss| sender.send(loss).unwrap()).unwrap();
    losses.recv_timeout(TOO_LONG).unwrap()
}

fn shell(script: &str) -> Starter {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    Starter::run("a shell".into(), command).unwrap()
}

#[test]
fn ranks_exchange_bytes_and_end() {
    for procs in [1, 2, 8] {
        let end = job(procs, vec![shell("exit 0")], TOO_LONG, |invitation| {
            let (joined, place) = invitation.accept().unwrap();
            assert_eq!(place.procs, procs);
            let mut pmi = Pmi::over(joined, place).unwrap();
            let all: Vec<Vec<u8>> = (0..procs).map(|rank| vec![rank as u8; 1000]).collect();
            assert_eq!(pmi.gather(&vec![place.rank as u8; 1000]).unwrap(), all);
        });
        assert!(matches!(end, Ok(End::Done)), "{end:?}");
    }
}

#[test]
fn a_wrong_key_is_refused_and_the_job_goes_on() {
    let end = job(2, Vec::new(), TOO_LONG, |invitation| {
        let mut wrong = invitation.clone();
        wrong.key[15] ^= 1;
        assert!(matches!(wrong.accept(), Err(JoinError::Refused(_))));
        let (joined, place) = invitation.accept().unwrap();
        drop(Pmi::over(joined, place).unwrap().gather(b"x").unwrap());
    });
    assert!(matches!(end, Ok(End::Done)), "{end:?}");
}

#[test]
fn a_lost_rank_ends_the_others() {
    let all_have_come = Barrier::new(3);
    let end = job(3, Vec::new(), TOO_LONG, |invitation| {
        let (joined, place) = invitation.accept().unwrap();
        all_have_come.wait();
        if place.rank > 0 {
            assert_eq!(loss(&joined), Loss::Over);
        }
    });
    assert!(matches!(end, Err(LaunchError::Lost(0))), "{end:?}");
}

/// Also where a rank has read the word before the thread that watches looks.
#[test]
fn a_rank_that_aborts_ends_the_others() {
    let all_have_come = Barrier::new(3);
    let end = job(3, Vec::new(), TOO_LONG, |invitation| {
        let (joined, place) = invitation.accept().unwrap();
        let (sender, losses) = mpsc::channel();
        // The thread is told nothing if this rank closes the connection first.
        joined.watch(move |loss| sender.send(loss).unwrap()).unwrap();
        let mut pmi = Pmi::over(joined, place).unwrap();
        all_have_come.wait();
        if place.rank == 0 {
            return pmi.abort(9);
        }
        let error = pmi.gather(b"x").unwrap_err();
        assert!(matches!(error, PmiError::Over), "{error}");
        assert_eq!(losses.recv_timeout(TOO_LONG), Ok(Loss::Over));
    });
    assert!(matches!(end, Ok(End::Aborted { rank: 0, code: 9 })), "{end:?}");
}

#[test]
fn ranks_that_do_not_come_are_counted() {
    let entrance = Entrance::open(Ipv4Addr::LOCALHOST.into()).unwrap();
    let invitation = entrance.invitation().clone();
    let rank = thread::spawn(move || loss(&invitation.accept().unwrap().0));
    let error = serve(entrance, 3, Vec::new(), Duration::from_secs(10)).unwrap_err().to_string();
    assert!(error.starts_with("only 1 of 3 ranks have connected to 127.0.0.1:"), "{error}");
    assert!(error.ends_with(" within 10 s: see whether they start and reach it"), "{error}");
    assert_eq!(rank.join().unwrap(), Loss::Over);
}

#[test]
fn a_rank_that_does_not_come_to_a_barrier_ends_the_others() {
    let end = job(2, Vec::new(), TOO_LONG, |invitation| {
        let (joined, place) = invitation.accept().unwrap();
        let mut pmi = Pmi::over(joined, place).unwrap();
        if place.rank == 1 {
            assert!(matches!(pmi.gather(b"x"), Err(PmiError::Over)));
        }
    });
    let error = end.unwrap_err().to_string();
    assert!(error.contains("to which rank 0 does not come: it has finalized"), "{error}");
}

#[test]
fn a_starter_that_fails_ends_the_job() {
    let end = job(0, Vec::new(), TOO_LONG, |_| ());
    assert!(matches!(end, Err(LaunchError::Procs(0))), "{end:?}");
    // The other one does not end by itself, and not by SIGTERM.
    let starters = vec![shell("trap '' TERM; exec sleep 1000"), shell("sleep 0.3; exit 4")];
    let entrance = Entrance::open(Ipv4Addr::LOCALHOST.into()).unwrap();
    let error = serve(entrance, 2, starters, TOO_LONG).unwrap_err();
    assert_eq!((error.to_string(), error.code()), ("'a shell' ended with exit code 4".into(), 4));
}

/// The process that has started the job ends without a word.
#[test]
fn a_rank_notices_that_the_first_process_is_gone() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let invitation = Invitation { address: listener.local_addr().unwrap(), key: [7; 16] };
    let rank = thread::spawn(move || {
        let (joined, place) = invitation.accept().unwrap();
        assert_eq!(place, Place { rank: 2, procs: 3 });
        assert_eq!(joined.own_address().unwrap(), Ipv4Addr::LOCALHOST);
        loss(&joined)
    });
    let (mut connection, _) = listener.accept().unwrap();
    let mut greeting = [0; 46];
    connection.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting[..], format!("netdyno-rank {}\n", "07".repeat(16)).as_bytes());
    connection.write_all(b"cmd=place rank=2 size=3\n").unwrap();
    drop(connection);
    assert_eq!(rank.join().unwrap(), Loss::Gone);
}
