//! A stranger connects to the endpoints of a rank with their right keys, and sends random messages over the connection:
//! whole ones, pieces, returned ones, and words of the job. The ranks go on.

#![allow(clippy::unwrap_used, reason = "a test")]

mod library;

use library::{Ended, Library};
use netdyno_job::launching::End;
use netdyno_stack::am::{Config, Endpoint, Handlers, PeerId, Reply, Request, Wait, Wire};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

const NAME: usize = 16;
/// The word that ends the program, and its handler.
const WORD: u64 = 0x5eed_1234;
const STOP: u64 = 1;
const HANDLERS: u8 = 8;
const ATTACKS: usize = 20_000;
const TIMEOUT: Duration = Duration::from_secs(60);

struct Stranger {
    endpoint: Endpoint<()>,
    victim: PeerId,
}

impl Stranger {
    /// Calls the endpoint of that name, as the library does.
    fn connected(name: &[u8], wire: Wire) -> Self {
        let mut handlers = Handlers::new();
        (0..HANDLERS).for_each(|index| {
            handlers.on_request(index, |(): &mut (), _: Request<'_>| {});
            handlers.on_reply(index, |(): &mut (), _: Reply<'_>| {});
        });
        let config = Config::new().peer_timeout(TIMEOUT).wait(Wait::Yield);
        let mut endpoint = Endpoint::new(handlers, config).unwrap();
        let port = endpoint.open_port(wire).unwrap();
        let at = (Ipv4Addr::new(name[4], name[5], name[6], name[7]), u16::from_be_bytes([name[2], name[3]]));
        let mut call = TcpStream::connect(at).unwrap();
        call.set_read_timeout(Some(TIMEOUT)).unwrap();
        call.write_all(&[b"ndam2/1\n", &name[8..]].concat()).unwrap();
        assert_eq!(read(&mut call, 1), [0]);
        read_counted(&mut call);
        let address = port.address();
        // A name that nobody has.
        let own: [u8; NAME] = std::array::from_fn(|at| if at < 8 { name[at] } else { 0xee });
        let len = (address.len() as u16).to_le_bytes();
        call.write_all(&[&own[..], &[u8::from(wire == Wire::Udp)], &len, &address].concat()).unwrap();
        assert_eq!(read(&mut call, 1), [0]);
        let victim = endpoint.connect(port, &read_counted(&mut call)).unwrap();
        Self { endpoint, victim }
    }

    fn send(&mut self, handler: u8, words: [u64; 4], bytes: &[u8]) {
        self.endpoint.request_medium(&mut (), self.victim, handler, words, bytes).unwrap();
        self.endpoint.poll(&mut ()).unwrap();
    }
}

fn read(stream: &mut TcpStream, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

fn read_counted(stream: &mut TcpStream) -> Vec<u8> {
    let len = read(stream, 2);
    read(stream, u16::from_le_bytes([len[0], len[1]]).into())
}

/// Returns the words of a message that is right but for a few fields, or random ones.
fn words(rng: &mut fastrand::Rng) -> [u64; 4] {
    if rng.u8(..4) == 0 {
        // A word of the job begins with a small number.
        return [rng.u64(..12), rng.u64(..4), rng.u64(..), rng.u64(..4)];
    }
    let mut any = |right: u64, wrong: u64| if rng.u8(..8) == 0 { rng.u64(..wrong) } else { rng.u64(..right) };
    let front = any(5, 256) | any(6, 256) << 8 | any(3, 16) << 16 | any(2, 16) << 20 | any(10, 256) << 24;
    [
        rng.u64(..),
        front | rng.u64(..) << 32,
        if rng.bool() { rng.u64(..40_000) } else { rng.u64(..) },
        rng.u64(..),
    ]
}

fn attack(names: &[u8], wire: Wire, rng: &mut fastrand::Rng) {
    let mut strangers = [0, 1].map(|nth| Stranger::connected(&names[nth * NAME..][..NAME], wire));
    for nth in 0..ATTACKS {
        let stranger = &mut strangers[nth % 2];
        let longest = stranger.endpoint.medium_bytes(stranger.victim);
        let len = if rng.bool() { rng.usize(..=longest) } else { rng.usize(..80) };
        let bytes: Vec<u8> = (0..len).map(|_| rng.u8(..)).collect();
        stranger.send(rng.u8(..HANDLERS), words(rng), &bytes);
    }
    // The program ends by the message of a stranger that has sent nothing else.
    let mut last = Stranger::connected(&names[..NAME], wire);
    last.send(0, [5, STOP | 1 << 8 | WORD << 32, 0, 0], &[]);
    let began = Instant::now();
    while last.endpoint.in_flight(last.victim) > 0 && last.endpoint.poll(&mut ()).is_ok() {
        assert!(began.elapsed() < TIMEOUT);
    }
}

fn ranks_go_on(wire: Wire, variables: &[(&str, &str)]) {
    let seed = std::env::var("NETDYNO_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("NETDYNO_SEED={seed}");
    let library = Library::built();
    let (program, folder) = (library.compile("besieged"), tempfile::tempdir().unwrap());
    let file = folder.path().join("names");
    let Ended { end, output, errors, .. } = thread::scope(|scope| {
        let stranger = scope.spawn(|| {
            let began = Instant::now();
            let names = loop {
                match std::fs::read(&file) {
                    Ok(names) if names.len() == 2 * NAME => break names,
                    _ => assert!(began.elapsed() < TIMEOUT, "the program does not start"),
                }
                thread::sleep(Duration::from_millis(10));
            };
            attack(&names, wire, &mut fastrand::Rng::with_seed(seed));
        });
        let ended = library.run(&program, 2, &[file.to_str().unwrap()], variables);
        assert!(stranger.join().is_ok(), "{}: {}{}", ended.end, ended.output, ended.errors);
        ended
    });
    assert!(end == End::Done && output.is_empty() && errors.is_empty(), "{end}: {output}{errors}");
    assert!(library::nobody_runs(&program));
}

#[test]
fn over_shared_memory() {
    ranks_go_on(Wire::Shm, &[]);
}

#[test]
fn over_udp() {
    ranks_go_on(Wire::Udp, &[("NETDYNO_AM_WIRE", "udp")]);
}
