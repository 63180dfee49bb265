//! Measures round trips of Active Messages between two processes, over shared memory or UDP:
//! `cargo run --release -p netdyno-stack --example ping -- udp`.

use netdyno_stack::am::{Config, Endpoint, Handlers, Wait, Wire};
use std::error::Error;
use std::io::{BufRead, BufReader, Write, stdin};
use std::process::{Command, Stdio};
use std::time::Instant;

const PING: u8 = 0;
const PONG: u8 = 0;
const TRIPS: u64 = 10_000;

/// Handlers count what they have handled.
fn handlers() -> Handlers<u64> {
    let mut handlers = Handlers::new();
    handlers.on_request(PING, |pings, request| {
        *pings += 1;
        let [number, ..] = request.words();
        request.reply(PONG, [number]);
    });
    handlers.on_reply(PONG, |pongs, _| *pongs += 1);
    handlers
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let wire = if words.iter().any(|word| word == "udp") { Wire::Udp } else { Wire::Shm };
    let mut endpoint = Endpoint::new(handlers(), Config::new().wait(Wait::Yield))?;
    let port = endpoint.open_port(wire)?;
    if words.iter().any(|word| word == "replier") {
        println!("{}", text(&port.address()));
        let peer = bytes(&stdin().lines().next().ok_or("no address has come")??)?;
        endpoint.connect(port, &peer)?;
        let mut pings = 0;
        while pings < TRIPS {
            endpoint.poll(&mut pings)?;
        }
        return Ok(());
    }
    let mut replier = Command::new(std::env::current_exe()?)
        .args(words.iter().map(String::as_str).chain(["replier"]))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    writeln!(replier.stdin.take().ok_or("no input")?, "{}", text(&port.address()))?;
    let theirs = BufReader::new(replier.stdout.take().ok_or("no output")?).lines().next();
    let peer = endpoint.connect(port, &bytes(&theirs.ok_or("no address has come")??)?)?;
    let (began, mut pongs) = (Instant::now(), 0);
    for trip in 0..TRIPS {
        endpoint.request(&mut pongs, peer, PING, [trip])?;
        while pongs <= trip {
            endpoint.poll(&mut pongs)?;
        }
    }
    let trip_ns = began.elapsed().as_nanos() as u64 / TRIPS;
    println!("{TRIPS} round trips of {trip_ns} ns each");
    drop(endpoint);
    replier.wait()?;
    Ok(())
}

/// An address, as text that goes through a pipe.
fn text(address: &[u8]) -> String {
    address.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(text: &str) -> Result<Vec<u8>, std::num::ParseIntError> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16)).collect()
}
