//! Speight et al. (1999), section 5: MPI over Virtual Interfaces, improved step by step.

use super::stack::Stacks;
use crate::campaign;
use crate::verbs::overlap::Comb;
use netdyno_layers::catalogue::Layer;
use netdyno_measure::overlap::data::ProgressBy;
use netdyno_measure::speight::Variant;

/// The smallest and the largest size, and the largest power of two that a UDP socket carries.
pub const SIZES: [usize; 3] = [8, 32 << 10, 64 << 10];

/// Returns a method that measures messages alone.
pub fn method(sizes: Vec<usize>) -> Comb {
    Comb { sizes, queue: 1, batch: 1, progress_by: ProgressBy::Calls, methods: Vec::new() }
}

/// Returns all curves of the figures.
pub fn variants(stacks: &Stacks) -> Vec<campaign::Variant> {
    Variant::ALL.into_iter().map(|variant| of(variant, stacks)).collect()
}

fn of(variant: Variant, stacks: &Stacks) -> campaign::Variant {
    let bare = |layer| campaign::Variant {
        layer,
        label: variant.label().into(),
        wait: stacks.wait(),
        variables: Vec::new(),
    };
    let mpi = |[wire, ack, copy]: [&str; 3], wakeup: Option<&str>| {
        let mut switches =
            vec![("FI_NETDYNO_WIRE", wire), ("FI_NETDYNO_ACK", ack), ("FI_NETDYNO_COPY", copy)];
        switches.extend(wakeup.map(|how| ("FI_NETDYNO_WAKEUP", how)));
        stacks.mpi(variant.label(), &switches)
    };
    let (event, spin) = (Some("event"), Some("spin"));
    match variant {
        Variant::Udp => bare(Layer::Udp),
        Variant::Vi => bare(Layer::ViShm),
        Variant::MpiOverUdp => mpi(["udp", "explicit", "staged"], event),
        Variant::Baseline => mpi(["shm", "explicit", "staged"], event),
        Variant::NoAcks => mpi(["shm", "none", "staged"], event),
        Variant::NoCopies => mpi(["shm", "explicit", "direct"], event),
        Variant::Spinning => mpi(["shm", "explicit", "staged"], spin),
        Variant::AllThree => mpi(["shm", "none", "direct"], spin),
        Variant::WithoutThread => mpi(["shm", "none", "direct"], None),
    }
}
