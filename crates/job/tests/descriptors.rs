//! The port for ranks in a process that has few descriptors left. It is a program of its own because the limit is that of
//! the whole process.

#![allow(clippy::unwrap_used, reason = "a test")]

use netdyno_job::launching::entrance::Entrance;
use netdyno_job::launching::remote::serve;
use netdyno_job::launching::{End, LaunchError};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

/// Ranks that do not come are awaited for so long. No case takes this long.
const WITHIN: Duration = Duration::from_secs(100);

/// A connection to the port, in the order in which it is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    /// It has shown the key.
    Rank,
    /// It says nothing.
    Silent,
    /// It has closed the connection.
    Gone,
}
use Caller::{Gone, Rank, Silent};

/// Lets the callers connect, leaves `left` descriptors, and serves a job of the ranks among them. Returns its end, and how
/// many ranks were told their places.
fn job(callers: &[Caller], left: u64) -> (Result<End, LaunchError>, usize) {
    let entrance = Entrance::open(Ipv4Addr::LOCALHOST.into()).unwrap();
    let invitation = entrance.invitation();
    let connected = callers.iter().map(|&caller| {
        let mut socket = TcpStream::connect(invitation.address).unwrap();
        if caller == Rank {
            let text = invitation.to_string();
            let (_, key) = text.split_once('/').unwrap();
            socket.write_all(format!("netdyno-rank {key}\n").as_bytes()).unwrap();
        }
        (caller, socket)
    });
    let connected: Vec<(Caller, TcpStream)> = connected.collect();
    let (gone, connected): (Vec<_>, Vec<_>) = connected.into_iter().partition(|&(caller, _)| caller == Gone);
    // Their descriptors are closed by now, so that others can be made of them.
    drop(gone);
    let (ranks, silent): (Vec<_>, Vec<_>) = connected.into_iter().partition(|&(caller, _)| caller == Rank);
    let procs = ranks.len();
    let began = Instant::now();
    let (end, places) = leaving(left, || {
        let service = thread::spawn(move || serve(entrance, procs, Vec::new(), WITHIN));
        // All ranks are told their places before the first one ends.
        let ranks: Vec<TcpStream> = ranks.into_iter().map(|(_, socket)| socket).filter(is_placed).collect();
        for mut rank in &ranks {
            rank.write_all(b"cmd=finalize\n").unwrap();
        }
        let places = ranks.len();
        for rank in ranks {
            let mut line = String::new();
            BufReader::new(rank).read_line(&mut line).unwrap();
            assert!(line.starts_with("cmd=finalize_ack") || places < procs, "{line}");
        }
        (service.join().unwrap(), places)
    });
    assert!(began.elapsed() < WITHIN, "{callers:?}");
    drop(silent);
    (end, places)
}

/// Reads the answer to the key.
fn is_placed(socket: &TcpStream) -> bool {
    let mut line = String::new();
    // A refused rank is reset.
    let _ = BufReader::new(socket).read_line(&mut line);
    line.starts_with("cmd=place ")
}

/// Calls `act` while this process can open `left` more descriptors.
fn leaving<T>(left: u64, act: impl FnOnce() -> T) -> T {
    let before = getrlimit(Resource::Nofile);
    // The system gives the lowest number that is free.
    let mut fillers = vec![File::open("/dev/null").unwrap()];
    let highest = std::fs::read_dir("/proc/self/fd").unwrap().count() as i32 + 64;
    while fillers.last().unwrap().as_raw_fd() < highest {
        fillers.push(File::open("/dev/null").unwrap());
    }
    let current = Some(fillers.last().unwrap().as_raw_fd() as u64 + 1 + left);
    setrlimit(Resource::Nofile, Rlimit { current, ..before }).unwrap();
    let result = act();
    setrlimit(Resource::Nofile, before).unwrap();
    result
}

#[test]
fn ranks_come_before_strangers() {
    let cases: [(&[Caller], u64); 5] = [
        // With room for all.
        (&[Rank, Silent, Rank], 3),
        // Those who say nothing make place.
        (&[Silent, Silent, Silent, Rank, Rank], 2),
        (&[Silent, Rank, Silent, Silent, Rank], 2),
        // A stranger that has left is none that keeps a rank out, and does not end the job.
        (&[Gone, Gone, Rank, Rank], 2),
        (&[Gone, Rank, Silent, Gone, Rank], 2),
    ];
    for (callers, left) in cases {
        let (end, places) = job(callers, left);
        assert!(matches!(end, Ok(End::Done)), "{callers:?}: {end:?}");
        assert_eq!(places, 2, "{callers:?}");
    }
    // There are fewer descriptors than ranks. The key of the last one waits in a connection that is never accepted.
    for (callers, left, came) in
        [(&[Rank, Rank][..], 1, 1), (&[Rank], 0, 0), (&[Silent, Gone, Rank, Rank], 1, 1)]
    {
        let (end, places) = job(callers, left);
        assert!(matches!(end, Err(LaunchError::Admit(_))), "{callers:?}: {end:?}");
        assert_eq!(places, came, "{callers:?}");
    }
}
