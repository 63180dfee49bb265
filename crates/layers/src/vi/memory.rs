//! Registration of memory with a provider of Virtual Interfaces, and the costs of creating, connecting and
//! disconnecting a VI. One process measures them alone: it has both ends of a connection, each with a
//! provider of its own.

use super::rendezvous::{DISCRIMINATOR_LEN, discriminator, parse_address, wait_until, write_address};
use crate::peer_wait::PEER_TIMEOUT;
use crate::registrar::MemoryLayer;
use netdyno_clock::ticks;
use netdyno_measure::layer::LayerError;
use netdyno_stack::vi::{Consumer, PieceId, ViHandle, WireKind};

/// The names of the costs of a VI that do not depend on its messages.
const FIXED: [&str; 3] = ["create VI", "connect VI", "disconnect VI"];

/// A provider that memory is registered with, and a second one to connect with.
pub(crate) struct ViMemory {
    own: Consumer,
    other: Consumer,
    discriminators: [[u8; DISCRIMINATOR_LEN]; 2],
    measured: PieceId,
    /// The piece that is registered to warm up.
    spare: PieceId,
}

impl ViMemory {
    /// Opens the providers.
    pub(crate) fn open(wire: WireKind) -> Result<Self, LayerError> {
        let [mut own, other] = [open(wire)?, open(wire)?];
        let measured = own.allocate(1).map_err(LayerError::new)?;
        let spare = own.allocate(1).map_err(LayerError::new)?;
        own.touch(spare);
        Ok(Self { own, other, discriminators: [discriminator()?, discriminator()?], measured, spare })
    }

    /// Connects a VI and disconnects it.
    pub(crate) fn try_out(&mut self) -> Result<(), LayerError> {
        self.perform(0).map(drop)
    }

    /// Connects the two VIs. The other end waits before the clock is read. Returns the ticks that it took.
    fn connect(&mut self, [vi, other_vi]: [ViHandle; 2]) -> Result<u64, LayerError> {
        let Self { own, other, discriminators: [ours, theirs], .. } = self;
        let wait = other.wait(theirs).map_err(LayerError::new)?;
        let to = parse_address(&write_address(*theirs, other))?;
        let start = ticks::now();
        own.ask(vi, ours, to, PEER_TIMEOUT).map_err(LayerError::new)?;
        wait_until(other, |other| other.accept(wait, other_vi).map_err(LayerError::new))?;
        wait_until(own, |own| own.is_answered(vi).map_err(LayerError::new))?;
        Ok(ticks::now() - start)
    }

    /// Disconnects the first VI, and waits until the second has learned of it. Returns the ticks that it
    /// took.
    fn disconnect(&mut self, [vi, other_vi]: [ViHandle; 2]) -> Result<u64, LayerError> {
        let Self { own, other, .. } = self;
        let start = ticks::now();
        own.disconnect(vi).map_err(LayerError::new)?;
        wait_until(other, |other| Ok(!other.is_connected(other_vi).map_err(LayerError::new)?))?;
        Ok(ticks::now() - start)
    }

    /// Destroys both VIs, of which the first is disconnected.
    fn destroy(&mut self, [vi, other_vi]: [ViHandle; 2]) -> Result<(), LayerError> {
        self.own.destroy_vi(vi).map_err(LayerError::new)?;
        // A VI whose peer has disconnected has to disconnect as well.
        self.other.disconnect(other_vi).map_err(LayerError::new)?;
        self.other.destroy_vi(other_vi).map_err(LayerError::new)
    }
}

/// Returns why there are no VIs over shared memory here, if there are none. This process connects with
/// itself, as two processes connect with each other.
pub(crate) fn is_missing() -> Option<String> {
    ViMemory::open(WireKind::Shm).and_then(|mut memory| memory.try_out()).err().map(|error| error.0)
}

fn open(wire: WireKind) -> Result<Consumer, LayerError> {
    Consumer::open(wire, 1).map_err(LayerError::new)
}

impl MemoryLayer for ViMemory {
    fn renew(&mut self, bytes: usize) -> Result<(), LayerError> {
        self.own.renew(self.measured, bytes).map_err(LayerError::new)
    }

    fn touch(&mut self) {
        self.own.touch(self.measured);
    }

    fn warm_up(&mut self) -> Result<(), LayerError> {
        self.own.register(self.spare, true).map_err(LayerError::new)?;
        self.own.deregister(self.spare).map_err(LayerError::new)
    }

    #[inline(always)]
    fn register(&mut self) -> Result<(), LayerError> {
        self.own.register(self.measured, true).map_err(LayerError::new)
    }

    #[inline(always)]
    fn deregister(&mut self) -> Result<(), LayerError> {
        self.own.deregister(self.measured).map_err(LayerError::new)
    }

    fn fixed(&self) -> &[&'static str] {
        &FIXED
    }

    fn perform(&mut self, nth: usize) -> Result<u64, LayerError> {
        let start = ticks::now();
        let vi = self.own.create_vi(None).map_err(LayerError::new)?;
        let create = ticks::now() - start;
        let vis = [vi, self.other.create_vi(None).map_err(LayerError::new)?];
        let connect = self.connect(vis)?;
        let disconnect = self.disconnect(vis)?;
        self.destroy(vis)?;
        [create, connect, disconnect]
            .get(nth)
            .copied()
            .ok_or_else(|| LayerError(format!("there is no fixed cost {nth}")))
    }
}
