//! Chooses netdyno's own lean layer that takes the same path as a library's layer. Its figures are the
//! reference for those of the library.

use crate::hosts::host::Machines;
use crate::options::bench::{BenchArgs, Measuring};
use netdyno_layers::catalogue::Layer;
use std::env;

/// UCX's names of shared-memory transports.
const SHARED_MEMORY: [&str; 10] =
    ["posix", "sysv", "cma", "knem", "xpmem", "shm", "sm", "mm", "shared_memory", "all"];
/// libfabric's names of shared-memory providers.
const SHARED_PROVIDERS: [&str; 3] = ["shm", "sm2", "sm"];
/// libfabric's and UCX's names of transports over sockets.
const SOCKETS: [&str; 4] = ["tcp", "udp", "sockets", "net"];

/// Tells whether the messages stay within a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// All processes run on one host.
    WithinHost {
        /// MPI uses sockets even between processes of this host.
        mpi_uses_sockets: bool,
    },
    /// The processes run on several hosts.
    BetweenHosts,
}

impl Route {
    /// Returns the route between the processes of a measurement, which run on these machines.
    pub fn of(measuring: &Measuring, machines: Machines) -> Self {
        if measuring.peer.is_some() || machines.number() > 1 {
            return Self::BetweenHosts;
        }
        let launcher = measuring.launcher.as_ref().map(ToString::to_string).unwrap_or_default();
        Self::WithinHost { mpi_uses_sockets: uses_sockets(&launcher, |name| env::var(name).ok()) }
    }

    /// Returns the lean layer on the same path as a library's layer, if there is one.
    pub fn lean_beside(self, layer: Layer) -> Option<Layer> {
        let (shared, sockets) = match layer {
            Layer::Mpi => (self != Self::WithinHost { mpi_uses_sockets: true }, true),
            // The core provider comes first, as in tcp;ofi_rxm.
            Layer::Ofi(provider) => {
                let core = provider.as_str().split(';').next().unwrap_or_default();
                (SHARED_PROVIDERS.contains(&core), SOCKETS.contains(&core))
            }
            // UCX chooses the fastest transport of the list, which is shared memory within a host.
            Layer::Ucx(transports) => {
                let all = transports.as_str();
                (has_any(all, &SHARED_MEMORY), has_any(all, &SOCKETS) || has_any(all, &["all"]))
            }
            _ => (false, false),
        };
        match self {
            Self::WithinHost { .. } if shared => Some(Layer::AmShm),
            _ if sockets => Some(Layer::AmUdp),
            _ => None,
        }
    }
}

/// Reports whether a list of transports in the syntax of libfabric, UCX or Open MPI has any of the names.
fn has_any(list: &str, names: &[&str]) -> bool {
    list.split([',', ';', '+']).any(|part| names.contains(&part))
}

/// Reports whether MPI uses sockets even between processes of one host. The launcher's options or the
/// environment may say so, for MPICH and Open MPI over libfabric, Open MPI's own transports, and UCX.
fn uses_sockets(launcher: &str, environment: impl Fn(&str) -> Option<String>) -> bool {
    let words: Vec<&str> = launcher.split_whitespace().collect();
    let by_launcher = |name: &str| {
        let pair = words.windows(3).find(|w| ["-env", "-genv"].contains(&w[0]) && w[1] == name);
        let assigned = words.windows(2).filter(|w| w[0] == "-x").find_map(|w| w[1].strip_prefix(name));
        pair.map(|w| w[2].to_owned()).or(assigned.and_then(|rest| rest.strip_prefix('=')).map(String::from))
    };
    let variable = |name: &str| by_launcher(name).or_else(|| environment(name)).unwrap_or_default();
    let component = |name: &str| {
        let words = words.windows(3).find(|w| ["--mca", "-mca"].contains(&w[0]) && w[1] == name);
        words.map_or_else(|| variable(&format!("OMPI_MCA_{name}")), |w| w[2].to_owned())
    };
    let are_sockets = |list: &str, shared: &[&str]| has_any(list, &SOCKETS) && !has_any(list, shared);
    let past_shared_memory = variable("MPIR_CVAR_NOLOCAL") == "1" || component("pml") == "cm";
    (past_shared_memory && are_sockets(&variable("FI_PROVIDER"), &SHARED_PROVIDERS))
        || are_sockets(&variable("UCX_TLS"), &SHARED_MEMORY)
        || are_sockets(&component("btl"), &["sm", "vader"])
}

/// Returns the lean layers to add as references: the user did not name them, and they can be measured under
/// the same options.
pub fn missing(bench: &BenchArgs, route: Route) -> Vec<Layer> {
    let mut missing = Vec::new();
    // A layer with injected faults or dials is no reference.
    if bench.faults.is_some() || bench.dials.is_some() || bench.profile.is_some() {
        return missing;
    }
    for lean in bench.over.iter().filter_map(|&layer| route.lean_beside(layer)) {
        let waits = bench.measuring.waits();
        let can = lean.unavailable().is_none()
            && bench.measuring.size_bytes() <= lean.max_size()
            && waits.iter().all(|&wait| lean.can_wait(wait));
        if can && !bench.over.contains(&lean) && !missing.contains(&lean) {
            missing.push(lean);
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lean_layer_takes_the_same_path() {
        for (layer, within, between) in [
            ("mpi", Some("am+shm"), Some("am+udp")),
            ("ofi:tcp", Some("am+udp"), Some("am+udp")),
            ("ofi:tcp;ofi_rxm", Some("am+udp"), Some("am+udp")),
            ("ofi:udp;ofi_rxd", Some("am+udp"), Some("am+udp")),
            ("ofi:sockets", Some("am+udp"), Some("am+udp")),
            ("ofi:shm", Some("am+shm"), None),
            ("ofi:verbs;ofi_rxm", None, None),
            ("ucx:tcp", Some("am+udp"), Some("am+udp")),
            ("ucx:posix+cma", Some("am+shm"), None),
            ("ucx:sysv", Some("am+shm"), None),
            ("ucx:posix+tcp", Some("am+shm"), Some("am+udp")),
            ("ucx:rc_mlx5", None, None),
            ("tcp", None, None),
            ("am+shm", None, None),
        ] {
            let lean = |route: Route| route.lean_beside(layer.parse().unwrap()).map(|lean| lean.to_string());
            assert_eq!(lean(Route::WithinHost { mpi_uses_sockets: false }).as_deref(), within, "{layer}");
            assert_eq!(lean(Route::BetweenHosts).as_deref(), between, "{layer}");
        }
    }

    #[test]
    fn mpi_that_is_told_to_use_sockets_is_compared_with_sockets() {
        let route = Route::WithinHost { mpi_uses_sockets: true };
        assert_eq!(route.lean_beside(Layer::Mpi), Some(Layer::AmUdp));
        assert_eq!(route.lean_beside("ofi:shm".parse().unwrap()), Some(Layer::AmShm));
        let nolocal = ("MPIR_CVAR_NOLOCAL", "1");
        for (launcher, environment, expected) in [
            ("mpiexec -n {n}", &[][..], false),
            ("mpiexec -n {n}", &[("FI_PROVIDER", "tcp")], false),
            ("mpiexec -n {n}", &[("FI_PROVIDER", "tcp"), nolocal], true),
            ("mpiexec -n {n}", &[("FI_PROVIDER", "shm"), nolocal], false),
            ("mpiexec -genv FI_PROVIDER tcp -genv MPIR_CVAR_NOLOCAL 1 -n {n}", &[], true),
            ("mpirun --mca pml cm -x FI_PROVIDER=tcp -n {n}", &[], true),
            ("mpirun --mca pml ob1 --mca btl tcp,self -n {n}", &[], true),
            ("mpirun --mca btl sm,tcp,self -n {n}", &[], false),
            ("mpirun -n {n}", &[("OMPI_MCA_btl", "self,tcp")], true),
            ("mpirun -n {n}", &[("UCX_TLS", "tcp,self")], true),
            ("mpirun -n {n}", &[("UCX_TLS", "tcp,posix")], false),
        ] {
            let variable = |name: &str| {
                environment.iter().find(|(other, _)| *other == name).map(|(_, value)| value.to_string())
            };
            assert_eq!(uses_sockets(launcher, variable), expected, "{launcher} {environment:?}");
        }
    }
}
