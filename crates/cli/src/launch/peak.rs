//! The peak of the way between requester and replier, as far as it is known before a launch.

use crate::launch::bench::Bench;
use crate::launch::origin::Origin;
use netdyno_host::interface;
use netdyno_layers::catalogue::Layer;
use netdyno_measure::completion::peak::{Peak, PeakSource};
use netdyno_protocol::sim::Truth;
use std::net::IpAddr;

/// Returns the peak of a bench: the speed of the link, or one copy within a host.
pub fn peak_of(bench: &Bench) -> Peak {
    if let Some(truth) = &bench.truth {
        return of_model(truth);
    }
    if !bench.dials.are_none() {
        return Peak::unknown("the dials change the link: give --peak");
    }
    match &bench.origin {
        _ if bench.layer.is_of_one_host() => Peak::of_one_copy(),
        Origin::Children => Peak::of_one_copy(),
        Origin::Peer(peer) if peer.is_this_host() => Peak::of_one_copy(),
        Origin::Peer(peer) => {
            of_link(if bench.bind.ip().is_unspecified() { peer.local_ip() } else { bench.bind.ip() })
        }
        Origin::Server(server) if interface::is_own(server.ip()) => Peak::of_one_copy(),
        Origin::Server(_) => of_link(bench.bind.ip()),
        Origin::Job(ranks) if ranks.machines().number() == 1 => Peak::of_one_copy(),
        Origin::Job(_) => between_hosts(bench.layer, "the hosts of the job may have several links"),
        Origin::Launcher(placed) if placed.machines().number() == 1 => Peak::of_one_copy(),
        Origin::Launcher(_) => between_hosts(bench.layer, "the hosts of the launcher may have several links"),
    }
}

/// Returns the peak between hosts that this process is not on. Only the requester's host knows the interface of its
/// sockets, and only the library of another layer knows its link. `why` says why this process does not.
pub fn between_hosts(layer: Layer, why: &str) -> Peak {
    if layer.has_sockets() { Peak::of_requester() } else { Peak::unknown(&format!("{why}: give --peak")) }
}

/// Returns the speed of the interface with this address.
pub fn of_link(address: IpAddr) -> Peak {
    let Some(name) = interface::name_of(address) else {
        return Peak::unknown(&format!("no interface has the address {address}: give --peak"));
    };
    match interface::speed(&name) {
        Some(bits_per_s) => {
            let kind = if interface::is_virtual(&name) { "nominal speed" } else { "speed" };
            Peak::of(PeakSource::Link, bits_per_s / 8.0, &format!("the {kind} of {name}"))
        }
        None => Peak::unknown(&format!("{name} reports no speed: give --peak")),
    }
}

/// Returns 1/G of a simulated interface: that of the faster protocol, if it has two.
fn of_model(truth: &Truth) -> Peak {
    let gaps_ps = [Some(truth.gap_per_byte_ps), truth.change.map(|change| change.gap_per_byte_ps)];
    let least_ps = gaps_ps.into_iter().flatten().fold(f64::INFINITY, f64::min);
    if least_ps > 0.0 {
        Peak::of(PeakSource::Model, 1e12 / least_ps, "1/G of --truth")
    } else {
        Peak::unknown("--truth has no G, so that its bandwidth has no bound")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::host::Host;
    use crate::launch::placed::Placed;
    use netdyno_host::wait::Wait;
    use netdyno_layers::options::DialOptions;
    use std::sync::Arc;

    /// Returns the peak of a layer between two processes that a launcher has put on these machines.
    fn peak(layer: Layer, machines: [&str; 2]) -> Peak {
        let host = |machine: &str| Host { machine: machine.into(), cpus: vec![0], near: None };
        let placed = Placed {
            launcher: "mpiexec -n {n}".parse().unwrap(),
            hosts: machines.map(host).to_vec(),
            requester: None,
            other: None,
        };
        peak_of(&Bench {
            layer,
            label: None,
            size_bytes: 0,
            wait: Wait::Spin,
            cpus: vec![0, 0],
            processors: 2,
            truth: None,
            bind: "127.0.0.1:0".parse().unwrap(),
            origin: Origin::Launcher(Arc::new(placed)),
            faults: None,
            dials: DialOptions::default(),
            variables: Vec::new(),
        })
    }

    #[test]
    fn a_copy_is_no_peak_between_the_hosts_of_a_launcher() {
        assert_eq!(peak(Layer::Mpi, ["a", "a"]).source, PeakSource::Copy);
        let unknown = peak(Layer::Mpi, ["a", "b"]);
        assert_eq!(unknown.source, PeakSource::Unknown);
        assert!(unknown.how.contains("several links") && unknown.how.ends_with("give --peak"), "{unknown:?}");
        assert!(peak(Layer::Tcp, ["a", "b"]).is_left_to_requester());
    }
}
