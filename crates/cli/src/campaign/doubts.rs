//! Warnings about the terms of a campaign: its launches, its link, and where its processes ran.

use crate::hosts::host::Machines;
use crate::launch::bench::Bench;
use crate::launch::origin::Origin;
use netdyno_clock::place::Distance;
use netdyno_layers::catalogue::Layer;
use netdyno_measure::logp::data::Transport;
use netdyno_measure::record::Doubt;
use netdyno_measure::show::Number;
use netdyno_measure::task::Data;
use netdyno_protocol::dial::profile::Profile;
use netdyno_protocol::faults::Faults;
use std::net::SocketAddr;

/// A run that takes more than this many times its time is worth a warning.
const OVER_TIME: f64 = 2.0;

pub fn interrupted_doubt(signal: i32, launches: usize) -> Doubt {
    let text = format!("signal {signal} interrupted the run after {launches} launches of each layer");
    Doubt::new("interrupted", text)
}

pub fn failed_doubt(error: &str, launches: usize) -> Doubt {
    Doubt::new("failed", format!("a launch failed after {launches} of each layer: {error}"))
}

/// Says that a layer failed which nobody had named.
pub fn reference_failed_doubt(layer: Layer, error: &str) -> Doubt {
    let text = format!(
        "{layer} was to be the reference and failed, so that there is no ratio (--no-reference leaves it away): {error}"
    );
    Doubt::new("reference_failed", text)
}

pub fn too_few_doubt(launches: usize, asked_for: usize) -> Option<Doubt> {
    let text = format!("the time was up after {launches} of {asked_for} launches: give more with --max-time");
    (launches < asked_for).then(|| Doubt::new("fewer_launches", text))
}

/// Warns that the run took far more than its time: `passed` is the time that it took as a share of it.
pub fn over_time_doubt(passed: f64) -> Option<Doubt> {
    let text = format!(
        "the run took {} times its --max-time, because a launch has to start and measures everything once, however little time \
         it has: give more, or choose smaller sizes",
        Number(passed)
    );
    (passed > OVER_TIME).then(|| Doubt::new("over_time", text))
}

pub fn faults_doubt(faults: Faults) -> Doubt {
    Doubt::new("faults", format!("datagrams were spoilt on purpose, in each direction: {faults}"))
}

pub fn dials_doubt(dials: Option<&str>, profile: Option<&Profile>) -> Option<Doubt> {
    let changes = profile.map(|profile| format!("a profile in time of {} points", profile.points().len()));
    let all: Vec<&str> = dials.into_iter().chain(changes.as_deref()).collect();
    let text = || format!("the link was made so on purpose: {}", all.join(" and "));
    (!all.is_empty()).then(|| Doubt::new("dialled", text()))
}

/// Warns that a job measures the same processes in every launch.
pub fn same_processes_doubt(bench: &Bench) -> Option<Doubt> {
    let are_same = bench.layer.has_launcher() && matches!(bench.origin, Origin::Job(_));
    are_same.then(|| {
        let text = "all launches are of the same processes, those of the job: what differs from one process to \
                    the next is in no interval (--launcher starts fresh ones)";
        Doubt::new("same_processes", text.into())
    })
}

/// Warns that the replier is not netdyno's.
pub fn server_doubt(address: SocketAddr) -> Doubt {
    let text = format!(
        "netdyno did not start the server at {address}: its processor, its load, the way it waits and how far away it \
         is are unknown"
    );
    Doubt::new("server_of_others", text)
}

/// The share of datagrams that may have gone another way than the layer's.
const BY_KERNEL: f64 = 0.01;

/// Returns the counters of the launches whose layer has them.
fn transports(launches: &[Data]) -> impl Iterator<Item = Transport> {
    launches.iter().filter_map(|data| match data {
        Data::Logp(data) => data.transport,
        Data::Bulk(data) => data.transport,
        Data::Completion(data) => data.transport,
        Data::Utilisation(data) => data.transport,
        Data::Overlap(data) => data.transport,
        Data::Onesided(data) => data.transport,
        Data::Memory(data) => data.transport,
        Data::Contention(_) | Data::Registration(_) | Data::Breakdown(_) | Data::Validate(_) => None,
    })
}

/// Warns that datagrams of a layer over AF_XDP have passed through the kernel's protocols.
pub fn by_kernel_doubt(launches: &[Data]) -> Option<Doubt> {
    let counts =
        transports(launches).map(|of| (of.by_kernel, of.sent + of.retransmitted + of.acknowledgements));
    let (by_kernel, sent) = counts.fold((0, 0), |(a, b), (by_kernel, sent)| (a + by_kernel, b + sent));
    (by_kernel as f64 > BY_KERNEL * sent as f64).then(|| {
        let text = format!(
            "{by_kernel} of {sent} datagrams went through the kernel's UDP, because the interface does not reach the \
             peer, or knows no hardware address of it"
        );
        Doubt::new("by_kernel", text)
    })
}

/// Warns that calls were sent again. A layer that repeats messages by a protocol of its own is not meant.
pub fn repeated_calls_doubt(layer: Layer, launches: &[Data]) -> Option<Doubt> {
    let (again, sent) =
        transports(launches).fold((0, 0), |(again, sent), of| (again + of.retransmitted, sent + of.sent));
    (layer == Layer::OncRpcUdp && again > 0).then(|| {
        let text = format!(
            "{again} of {sent} calls had no reply within 1 s and were sent again: what was measured around them is \
             the time of the client's timer"
        );
        Doubt::new("repeated_calls", text)
    })
}

/// Warns about a job on more than two machines, because the record describes only two.
pub fn other_machines(machines: Machines) -> Option<Doubt> {
    let machines = machines.number();
    (machines > 2).then(|| {
        let text = format!("the job has {machines} machines, of which two are described here");
        Doubt::new("more_machines", text)
    })
}

/// Warns that a launcher has put the processes on other machines than in its first launch. `elsewhere` counts these of
/// `launches`.
pub fn machines_vary_doubt(elsewhere: usize, launches: usize) -> Option<Doubt> {
    (elsewhere > 0).then(|| {
        let text = format!(
            "the launcher put the processes of {elsewhere} of {launches} launches on other machines than in its first \
             launch, by which processors and layers were chosen: have --launcher name the machines"
        );
        Doubt::new("machines_vary", text)
    })
}

pub fn placement_doubt(bench: &Bench, distance: Option<Distance>) -> Option<Doubt> {
    let (processes, processors) = (bench.cpus.len(), bench.processors);
    if processes > 2 && processors < processes {
        return Some(Doubt::new(
            "more_processes_than_processors",
            format!(
                "{processes} processes share {processors} {} and {}: the figures are about scheduling",
                if processors == 1 { "processor" } else { "processors" },
                bench.wait
            ),
        ));
    }
    match distance? {
        Distance::Same => Some(Doubt::new(
            "same_processor",
            format!("both ends share a processor and {}: the figures are about scheduling", bench.wait),
        )),
        Distance::SmtSibling => Some(Doubt::new(
            "smt_sibling",
            "requester and replier are threads of one core and take each other's issue slots".into(),
        )),
        _ => None,
    }
}
