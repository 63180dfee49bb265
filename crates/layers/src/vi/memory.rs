//! Memory that a provider of Virtual Interfaces is told of, and VIs that are made, connected and
//! disconnected, by one process alone: both ends of a connection are in it, each with a provider.

use super::meeting::{DISCRIMINATOR_LEN, discriminator, parse_address, wait_until, write_address};
use crate::half::PEER_TIMEOUT;
use crate::registrar::Knows;
use netdyno_clock::ticks;
use netdyno_measure::layer::LayerError;
use netdyno_stack::vi::{Consumer, PieceId, ViHandle, WireKind};

/// What a VI costs, whatever is sent over it.
const FIXED: [&str; 3] = ["create VI", "connect VI", "disconnect VI"];

/// A provider that knows memory, and a second one to connect with.
pub(crate) struct ViMemory {
    own: Consumer,
    other: Consumer,
    discriminators: [[u8; DISCRIMINATOR_LEN]; 2],
    measured: PieceId,
    /// Registered to warm up.
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

    /// Connects and disconnects once.
    pub(crate) fn try_out(&mut self) -> Result<(), LayerError> {
        self.perform(0).map(drop)
    }

    /// Connects the two: the other end waits since before the first tick.
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

    /// Disconnects the one; then the other has learned it.
    fn disconnect(&mut self, [vi, other_vi]: [ViHandle; 2]) -> Result<u64, LayerError> {
        let Self { own, other, .. } = self;
        let start = ticks::now();
        own.disconnect(vi).map_err(LayerError::new)?;
        wait_until(other, |other| Ok(!other.is_connected(other_vi).map_err(LayerError::new)?))?;
        Ok(ticks::now() - start)
    }

    /// Does away with both, which are disconnected.
    fn destroy(&mut self, [vi, other_vi]: [ViHandle; 2]) -> Result<(), LayerError> {
        self.own.destroy_vi(vi).map_err(LayerError::new)?;
        // Whoever is left by its peer disconnects as well.
        self.other.disconnect(other_vi).map_err(LayerError::new)?;
        self.other.destroy_vi(other_vi).map_err(LayerError::new)
    }
}

fn open(wire: WireKind) -> Result<Consumer, LayerError> {
    Consumer::open(wire, 1).map_err(LayerError::new)
}

impl Knows for ViMemory {
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
