//! The conformance test of all layers of the catalogue: one list of checks runs over each of them. A check
//! that needs a capability that the layer does not have is skipped, with a message.
//!
//! * `checks`: the promises of a layer. * `grounds`: the environments that connect the two sides of a layer:
//!   two threads, or virtual time. * `job`: two processes of an MPI job.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "../../../stack/tests/conformance/common/cables.rs"]
#[allow(dead_code, reason = "the stack's tests use more of it")]
mod cables;
mod checks;
mod grounds;
mod job;

use checks::CHECKS;
use grounds::{Ground, Simulated, Threads};
use netdyno_layers::catalogue::{ALL, Layer};
use netdyno_measure::layer::Face;
use netdyno_plugin::site::{build_in, find, find_compiler};
use netdyno_plugin::source::Source;
use std::ffi::OsStr;
use std::process::Command;

/// The environment variable that makes this process check the user's own layer, which `NETDYNO_PLUGIN` names.
/// The value says which faces the layer has: `all` or `requests`.
const OWN: &str = "NETDYNO_TEST_OWN";
/// The environment variable with the layer over a library that this process must check.
const LIBRARY: &str = "NETDYNO_TEST_LIBRARY";

/// Runs all checks whose capabilities the layer has.
fn conforms(ground: &dyn Ground) {
    let layer = ground.layer();
    for check in CHECKS {
        match (check.asks_for)(layer) {
            Ok(()) => {
                // The test harness shows this line if the check fails.
                println!("{layer}: {}", check.name);
                (check.run)(ground);
            }
            Err(what) => println!("{layer}: SKIPPED, it has no {what}: {}", check.name),
        }
    }
}

#[test]
fn am_shm() {
    conforms(&Threads(Layer::AmShm));
}

#[test]
fn am_udp() {
    conforms(&Threads(Layer::AmUdp));
}

#[test]
fn vi_shm() {
    conforms(&Threads(Layer::ViShm));
}

#[test]
fn vi_udp() {
    conforms(&Threads(Layer::ViUdp));
}

/// The interfaces for the processes of a layer over AF_XDP.
const INTERFACES: u8 = 4;

#[test]
fn am_xdp() {
    if cables::connect(INTERFACES) {
        conforms(&Threads(Layer::AmXdp));
    }
}

#[test]
fn vi_xdp() {
    if cables::connect(INTERFACES) {
        conforms(&Threads(Layer::ViXdp));
    }
}

#[test]
fn global_shm() {
    conforms(&Threads(Layer::GlobalShm));
}

#[test]
fn global_udp() {
    conforms(&Threads(Layer::GlobalUdp));
}

#[test]
fn global_xdp() {
    if cables::connect(INTERFACES) {
        conforms(&Threads(Layer::GlobalXdp));
    }
}

/// A layer with one-sided operations alone refuses every other face.
#[test]
fn global_memory_has_one_sided_operations_alone() {
    for face in [Face::Requests, Face::Sized, Face::Messages] {
        let refused = Threads(Layer::GlobalShm).refusal(grounds::options(32, face));
        assert!(
            refused.contains("one-sided operations alone") || refused.contains("no messages"),
            "{refused}"
        );
    }
}

#[test]
fn udp() {
    conforms(&Threads(Layer::Udp));
}

#[test]
fn tcp() {
    conforms(&Threads(Layer::Tcp));
}

#[test]
fn oncrpc_udp() {
    conforms(&Threads(Layer::OncRpcUdp));
}

#[test]
fn oncrpc_tcp() {
    conforms(&Threads(Layer::OncRpcTcp));
}

/// Checks gRPC, if it was built.
#[test]
fn grpc() {
    match Layer::Grpc.unavailable() {
        None => conforms(&Threads(Layer::Grpc)),
        Some(why) => println!("SKIPPED: {why}"),
    }
}

#[test]
fn sim() {
    conforms(&Simulated);
}

/// Checks the C layers that a user begins with, built by the installed C compiler.
#[test]
fn plugins() {
    let folder = tempfile::tempdir().unwrap();
    let compiler = find_compiler(&Source::skeleton(), None).expect("a C compiler is needed");
    for (source, faces) in [(Source::skeleton(), "all"), (Source::requests(), "requests")] {
        let file = build_in(folder.path(), &source, &compiler).unwrap();
        in_a_process("the_users_own", &[(OWN, faces.as_ref()), ("NETDYNO_PLUGIN", file.as_os_str())]);
    }
}

/// Runs a test in a process of its own, because the environment belongs to a process.
fn in_a_process(test: &str, variables: &[(&str, &OsStr)]) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    print!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_users_own() {
    if std::env::var_os(OWN).is_some() {
        conforms(&Threads(Layer::Plugin));
    }
}

/// Reports whether the layer has messages. For a user's own layer, [`OWN`] says so and not the catalogue.
fn has_messages() -> bool {
    std::env::var_os(OWN).is_none_or(|faces| faces != "requests")
}

/// Checks the layers over libfabric and UCX, if they are installed. If `NETDYNO_TEST_LIBRARIES` is set, they
/// must be.
#[test]
fn libraries() {
    for (source, variable, layers) in [
        (Source::ofi(), "NETDYNO_PLUGIN_OFI", ["ofi:tcp", "ofi:shm"]),
        (Source::ucx(), "NETDYNO_PLUGIN_UCX", ["ucx:tcp", "ucx:posix"]),
    ] {
        let compiler = match find(&source, None) {
            Ok(compiler) => compiler,
            Err(error) => {
                assert!(std::env::var_os("NETDYNO_TEST_LIBRARIES").is_none(), "{error}");
                println!("SKIPPED: {error}");
                continue;
            }
        };
        let folder = tempfile::tempdir().unwrap();
        let file = build_in(folder.path(), &source, &compiler).unwrap();
        for layer in layers {
            in_a_process("one_library", &[(LIBRARY, layer.as_ref()), (variable, file.as_os_str())]);
        }
    }
}

#[test]
fn one_library() {
    if let Ok(layer) = std::env::var(LIBRARY) {
        conforms(&Threads(layer.parse().unwrap()));
    }
}

#[test]
fn mpi() {
    job::conforms_in_jobs();
}

/// Fails to compile after a layer was added, until the layer is named here. It must also get a test above.
#[test]
fn no_layer_is_left_out() {
    for layer in ALL {
        match layer {
            Layer::AmShm | Layer::AmUdp | Layer::AmXdp => {}
            Layer::ViShm | Layer::ViUdp | Layer::ViXdp => {}
            Layer::GlobalShm | Layer::GlobalUdp | Layer::GlobalXdp => {}
            Layer::Udp | Layer::Tcp => {}
            Layer::OncRpcUdp | Layer::OncRpcTcp | Layer::Grpc => {}
            Layer::Mpi | Layer::Ofi(_) | Layer::Ucx(_) | Layer::Plugin | Layer::Sim => {}
        }
    }
}
