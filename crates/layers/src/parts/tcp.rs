//! Bare TCP connections in parts.

use super::partner::{Partner, Server};
use super::{Parts, PartsOptions, TOGETHER};
use crate::payload::FILL;
use crate::socket::is_passing;
use netdyno_clock::ticks;
use netdyno_measure::breakdown::anatomy::Table;
use netdyno_measure::layer::LayerError;
use netdyno_measure::task::Subject;
use std::cell::RefCell;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::rc::Rc;

/// The index of the only server.
const PLAIN: usize = 0;

/// One end of a connection. Messages have one size.
struct End {
    stream: TcpStream,
    data: Vec<u8>,
    room: Vec<u8>,
    /// Bytes of the next message that have arrived.
    filled: usize,
}

impl End {
    /// Returns both ends of a connection on the loopback interface.
    fn pair(size_bytes: usize) -> Result<[Self; 2], LayerError> {
        let connected = || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let one = TcpStream::connect(listener.local_addr()?)?;
            let (other, _) = listener.accept()?;
            for stream in [&one, &other] {
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
            }
            Ok([one, other])
        };
        let streams: io::Result<[TcpStream; 2]> = connected();
        let end = |stream| {
            let [data, room] = [FILL, 0].map(|byte| vec![byte; size_bytes]);
            Self { stream, data, room, filled: 0 }
        };
        Ok(streams.map_err(|error| LayerError(format!("no connection to this host: {error}")))?.map(end))
    }

    #[inline(always)]
    fn write(&mut self) -> Result<(), LayerError> {
        match self.stream.write(&self.data) {
            Ok(len) if len == self.data.len() => Ok(()),
            Ok(_) => Err(LayerError::new("the send buffer of the connection is full: use a smaller --size")),
            Err(error) => Err(LayerError::new(error)),
        }
    }

    /// Reads what has arrived. Returns whether a message is complete.
    #[inline(always)]
    fn read(&mut self) -> Result<bool, LayerError> {
        match self.stream.read(&mut self.room[self.filled..]) {
            Ok(0) => return Err(LayerError::new("the connection has ended")),
            Ok(len) => self.filled += len,
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(LayerError::new(error)),
        }
        let is_complete = self.filled == self.room.len();
        if is_complete {
            self.filled = 0;
        }
        Ok(is_complete)
    }
}

/// Opens both ends.
pub(crate) fn open(options: PartsOptions) -> Result<Box<dyn Subject>, LayerError> {
    let PartsOptions { size_bytes, partner_cpu } = options;
    let mut parts = Parts::new();
    let [write, read] = system_calls(&mut parts, size_bytes)?;
    let [mut asking, mut answering] = End::pair(size_bytes)?;
    let server: Server = Box::new(move || {
        let is_there = answering.read()?;
        if is_there {
            answering.write()?;
        }
        Ok(is_there)
    });
    let partner = Rc::new(Partner::start(partner_cpu, vec![server])?);
    let trip = parts.round_trips("plain round trip", &partner, PLAIN, move |partner| {
        asking.write()?;
        partner.until(|| asking.read())
    });
    let steps: [(&str, &[(usize, f64)]); 2] = [("2 writes", &[(write, 2.0)]), ("2 reads", &[(read, 2.0)])];
    parts.operation(Table::Exchange, "plain round trip", trip, &steps);
    Ok(parts.subject())
}

/// Adds the system calls of messages of `size_bytes`. Returns the probes of a write and of a read.
fn system_calls(parts: &mut Parts, size_bytes: usize) -> Result<[usize; 2], LayerError> {
    let crossing = parts.crossing();
    let ends = Rc::new(RefCell::new(End::pair(size_bytes)?));
    let of_run = Rc::clone(&ends);
    let [write, read] = parts.run(TOGETHER, ["write", "read"], move |count| {
        let [one, other] = &mut *of_run.borrow_mut();
        let began = ticks::now();
        for _ in 0..count {
            one.write()?;
        }
        let written = ticks::now();
        for _ in 0..count {
            while !other.read()? {}
        }
        Ok([written - began, ticks::now() - written])
    });
    let of_run = Rc::clone(&ends);
    let nothing = parts.simple("write nothing", move || {
        black_box(of_run.borrow_mut()[0].stream.write(&[]).is_ok());
    });
    let in_vain = parts.simple("read in vain", move || {
        black_box(ends.borrow_mut()[0].read().is_ok());
    });
    let crossed: [(usize, f64); 1] = [(crossing, 1.0)];
    parts.operation(
        Table::Crossing,
        "write",
        write,
        &[
            ("crossing", &crossed),
            ("checks", &[(nothing, 1.0), (crossing, -1.0)]),
            ("push, delivery", &[(write, 1.0), (nothing, -1.0)]),
        ],
    );
    parts.operation(
        Table::Crossing,
        "read",
        read,
        &[
            ("crossing", &crossed),
            ("checks", &[(in_vain, 1.0), (crossing, -1.0)]),
            ("pull", &[(read, 1.0), (in_vain, -1.0)]),
        ],
    );
    Ok([write, read])
}
