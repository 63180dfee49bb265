//! Stores a megabyte into the memory of a peer, and gets a part of it back:
//! `cargo run --release -p netdyno-stack --example store`.

use netdyno_stack::am::{Config, Endpoint, Handlers, Wire};
use std::error::Error;

const STORED: u8 = 0;
const FETCHED: u8 = 0;
const ACKNOWLEDGED: u8 = 0;

/// What handlers work on: the bytes that a get has brought, and how many stores were acknowledged.
#[derive(Default)]
struct State {
    fetched: Vec<u8>,
    acknowledged: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut handlers = Handlers::<State>::new();
    handlers.on_store(STORED, |_, stored| {
        println!("{} bytes were stored", stored.bytes().len());
        stored.reply(ACKNOWLEDGED, []);
    });
    handlers.on_reply(ACKNOWLEDGED, |state, _| state.acknowledged += 1);
    handlers.on_fetched(FETCHED, |state, fetched| {
        state.fetched.resize(fetched.bytes().len(), 0);
        fetched.bytes().read(&mut state.fetched);
    });
    handlers.on_refused(|_, refused| eprintln!("{refused}"));

    // Two endpoints, usually in two processes, exchange the addresses of their ports.
    let mut a = Endpoint::new(handlers.clone(), Config::default())?;
    let mut b = Endpoint::new(handlers, Config::default())?;
    let (port_a, port_b) = (a.open_port(Wire::Shm)?, b.open_port(Wire::Shm)?);
    let (address_a, address_b) = (port_a.address(), port_b.address());
    let to_b = a.connect(port_a, &address_b)?;
    b.connect(port_b, &address_a)?;
    let (mut of_a, mut of_b) = (State::default(), State::default());

    // b allocates memory. Its key usually travels in a message.
    let memory = b.allocate(1 << 20)?;
    let remote = a.attach(&mut of_a, to_b, &memory.key())?;
    let bytes: Vec<u8> = (0..1 << 20).map(|at: u32| at as u8).collect();
    a.store(&mut of_a, remote.at(0), &bytes, STORED, [])?;
    while of_a.acknowledged == 0 {
        b.poll(&mut of_b)?;
        a.poll(&mut of_a)?;
    }

    let local = a.register(vec![0; 16].into())?;
    a.get(&mut of_a, remote.at(1000), local.range(0, 16), FETCHED, [])?;
    while of_a.fetched.is_empty() {
        a.poll(&mut of_a)?;
        b.poll(&mut of_b)?;
    }
    println!("a get from byte 1000 on brought {:?}", of_a.fetched);
    assert_eq!(of_a.fetched, bytes[1000..1016]);
    Ok(())
}
