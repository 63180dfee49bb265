//! The client of one server.

use super::calls::{Calls, Connection};
use super::engine::Engine;
use crate::requests::Wire;
use crate::sized::{SizedWire, Sizes};
use netdyno_measure::layer::LayerError;
use std::time::Duration;

/// The most calls without a reply. It is less than the number of calls that a server must allow at once in its
/// settings by default (RFC 9113, section 6.5.2: no fewer than 100).
pub(super) const WINDOW: usize = 64;

/// The client.
pub(super) struct Client {
    engine: Engine,
    connection: Connection,
    calls: Calls,
    /// The most bytes of data in a call and in a reply.
    largest: usize,
}

impl Client {
    /// Connects to a server, for calls with `size_bytes` of data.
    pub(super) fn connect(server: &[u8], size_bytes: usize) -> Result<Self, LayerError> {
        let engine = Engine::start()?;
        let connection = Connection::open(&engine, server, 0)?;
        Ok(Self { engine, connection, calls: Calls::new(size_bytes), largest: size_bytes })
    }
}

impl Wire for Client {
    #[inline(always)]
    fn send(&mut self) -> Result<(), LayerError> {
        self.calls.make(&self.engine, &self.connection);
        Ok(())
    }

    #[inline(always)]
    fn take(&mut self) -> Result<bool, LayerError> {
        Ok(self.calls.take(&self.engine)?.is_some())
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.calls.block(&self.engine, timeout);
        Ok(())
    }
}

impl SizedWire for Client {
    fn largest(&self) -> usize {
        self.largest
    }

    fn announce(&mut self, sizes: Sizes) -> Result<(), LayerError> {
        self.calls.set_sizes(sizes);
        Ok(())
    }

    fn is_confirmed(&self) -> bool {
        true
    }

    fn window(&self) -> usize {
        WINDOW
    }
}
