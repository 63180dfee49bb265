//! How many processes come to share a layer: each opens a port for every other, hands the
//! addresses out, and meets its peers at the addresses that it got.

mod am;
pub(crate) mod member;
mod tcp;
mod udp;
mod vi;

use crate::catalogue::Layer;
use crate::half::LayerOptions;
use crate::plugin::{Extension, PluginGathering};
use netdyno_measure::contention::cues::Cues;
use netdyno_measure::contention::step::Assignment;
use netdyno_measure::layer::LayerError;
use netdyno_stack::am::Wire;
use netdyno_stack::vi::WireKind;
use std::time::Duration;

/// Requests to one peer without a reply at most, where there are few processes; with many the
/// memory and the sockets are shared.
const WINDOW: usize = 256;
/// The same over all peers of a process.
const WINDOW_OVER_ALL: usize = 2048;
/// Requests to one peer in any case.
const WINDOW_AT_LEAST: usize = 16;
/// Longest sleep in the kernel, so that cues are heard.
const BLOCK_AT_MOST: Duration = Duration::from_millis(1);

/// A process's place among others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its rank, from 0.
    pub rank: usize,
    /// How many there are.
    pub procs: usize,
}

impl Place {
    /// The ranks of all others.
    pub(crate) fn peers(self) -> impl Iterator<Item = usize> {
        (0..self.procs).filter(move |&peer| peer != self.rank)
    }

    /// A window to each peer, a power of two.
    pub(crate) fn window(self) -> usize {
        let share = WINDOW_OVER_ALL / (self.procs - 1);
        (share.max(1) + 1).next_power_of_two().div_euclid(2).clamp(WINDOW_AT_LEAST, WINDOW)
    }
}

/// One process of several, not yet connected.
pub trait Gathering {
    /// The bytes to hand to each other process, by rank; its own are empty.
    fn addresses(&self) -> Vec<Vec<u8>>;

    /// Connects to all others at the addresses that they gave, by rank.
    fn meet(self: Box<Self>, addresses: &[Vec<u8>]) -> Result<Box<dyn Attendant>, LayerError>;
}

/// One process of several.
pub trait Attendant {
    /// Does what a requester is asked to do in a step.
    fn perform(&mut self, assignment: &Assignment, cues: &mut dyn Cues) -> Result<(), LayerError>;

    /// Answers the requests of these until it is told to stop.
    fn serve(&mut self, requesters: &[usize], cues: &mut dyn Cues) -> Result<(), LayerError>;
}

/// Opens this process's part of a layer between `place.procs` processes, 2 at least.
pub fn open(layer: Layer, place: Place, options: LayerOptions) -> Result<Box<dyn Gathering>, LayerError> {
    Ok(match layer {
        Layer::AmShm => Box::new(am::AmGathering::open(Wire::Shm, place, options)?),
        Layer::AmUdp => Box::new(am::AmGathering::open(Wire::Udp, place, options)?),
        Layer::ViShm => Box::new(vi::ViGathering::open(WireKind::Shm, place, options)?),
        Layer::ViUdp => Box::new(vi::ViGathering::open(crate::vi::over_udp(&options), place, options)?),
        Layer::Udp => Box::new(udp::UdpGathering::open(place, options)?),
        Layer::Tcp => Box::new(tcp::TcpGathering::open(place, options)?),
        Layer::Mpi => Box::new(PluginGathering::open(&Extension::mpi()?, place, options)?),
        Layer::Ofi(provider) => Box::new(PluginGathering::open(&Extension::ofi(provider)?, place, options)?),
        Layer::Ucx(transports) => {
            Box::new(PluginGathering::open(&Extension::ucx(transports)?, place, options)?)
        }
        Layer::Plugin => Box::new(PluginGathering::open(&Extension::own()?, place, options)?),
        Layer::Sim => return Err(LayerError::new("a simulated layer has no processes")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_powers_of_two_that_shrink_with_the_crowd() {
        let window = |procs| Place { rank: 0, procs }.window();
        assert_eq!((window(2), window(9), window(10), window(64)), (256, 256, 128, 32));
    }
}
