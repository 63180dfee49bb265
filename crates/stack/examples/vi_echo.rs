//! Sends a message over a pair of Virtual Interfaces, and echoes it:
//! `cargo run --release -p netdyno-stack --example vi_echo`.

use netdyno_stack::vi::{Address, Consumer, Operation, PieceId, Side, ViHandle, WireKind, Work};
use std::error::Error;
use std::time::Duration;

const LEN: u32 = 64;
const RECEIVE: usize = 0;
const SEND: usize = 1;

/// One end: a provider, its VI, and registered memory.
struct End {
    consumer: Consumer,
    vi: ViHandle,
    memory: PieceId,
}

impl End {
    /// Opens a provider with room for two descriptors.
    fn open() -> Result<Self, Box<dyn Error>> {
        let mut consumer = Consumer::open(WireKind::Shm, 2)?;
        let (vi, memory) = (consumer.create_vi(None)?, consumer.allocate(LEN as usize)?);
        consumer.register(memory, false)?;
        Ok(Self { consumer, vi, memory })
    }

    /// Posts a descriptor of the whole memory to a queue of the VI.
    fn post(&mut self, side: Side, operation: Operation, descriptor: usize) -> Result<(), Box<dyn Error>> {
        let segments = [self.consumer.segment(self.memory, 0, LEN as usize)].into_iter().collect();
        let work = Work { operation, immediate: None, is_fenced: false, segments, len: LEN };
        self.consumer.describe(descriptor, &work);
        Ok(self.consumer.post(self.vi, side, descriptor)?)
    }

    /// Polls a queue of the VI until a descriptor is done.
    fn complete(&mut self, side: Side) -> Result<(), Box<dyn Error>> {
        while self.consumer.done(self.vi, side)?.is_none() {}
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut client, mut server) = (End::open()?, End::open()?);
    let name = format!("echo-{}", std::process::id()).into_bytes();
    // The server's receive is posted before the client may send.
    server.post(Side::Receive, Operation::Receive, RECEIVE)?;
    let wait = server.consumer.wait(&name)?;
    let to = Address { host: server.consumer.host(), discriminator: name };
    client.consumer.ask(client.vi, b"client", to, Duration::from_secs(5))?;
    while !server.consumer.accept(wait, server.vi)? {}
    while !client.consumer.is_answered(client.vi)? {}

    client.consumer.write(client.memory, 0, b"hello");
    client.post(Side::Send, Operation::Send, SEND)?;
    client.complete(Side::Send)?;
    client.consumer.write(client.memory, 0, b"-----");
    client.post(Side::Receive, Operation::Receive, RECEIVE)?;

    server.complete(Side::Receive)?;
    server.post(Side::Send, Operation::Send, SEND)?;
    client.complete(Side::Receive)?;
    let mut echoed = [0; 5];
    client.consumer.read(client.memory, 0, &mut echoed);
    println!("the server echoed {:?}", String::from_utf8_lossy(&echoed));
    assert_eq!(&echoed, b"hello");
    Ok(())
}
