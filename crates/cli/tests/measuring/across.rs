//! Verbs between two hosts of the tests' own: the accounts of two machines, and servers on another host.

use crate::common::beside;
use crate::common::network::{B, Network};
use crate::common::served::Served;
use netdyno_measure::record::{LayerResult, Record};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Arguments of a short measurement of the processor time.
const LITTLE: [&str; 10] =
    ["--wait", "block", "--launches", "1", "--max-time", "2s", "--largest", "1KiB", "--format", "json"];

fn record(output: Output) -> Record {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Record::from_json(&String::from_utf8(output.stdout).unwrap()).unwrap()
}

/// Measures the processor time of messages over `layer` between the two hosts.
fn utilisation(network: &Network, served: &Served, layer: &str) -> LayerResult {
    let mut command = network.on_a(&[&["utilisation", "--over", layer, "--peer", B], &LITTLE[..]].concat());
    let mut record = record(command.env("NETDYNO_KEY", served.key()).output().unwrap());
    assert!(record.peer_environment.is_some());
    record.results.remove(0)
}

fn doubt<'a>(result: &'a LayerResult, name: &str) -> Option<&'a str> {
    result.doubts.iter().find(|doubt| doubt.name == name).map(|doubt| &doubt.text[..])
}

/// Returns `command` where `file` takes the place of `path`.
fn with_file(command: &Command, file: &Path, path: &str) -> Command {
    let mut replaced = Command::new("unshare");
    replaced.args(["--mount", "sh", "-c", "mount --bind \"$1\" \"$2\" && shift 2 && exec \"$@\"", "sh"]);
    replaced.arg(file).arg(path).arg(command.get_program()).args(command.get_args());
    replaced
}

#[test]
fn two_hosts_of_one_machine_count_its_work_once() {
    let _beside = beside();
    let Some(network) = Network::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("name");
    fs::write(&name, "11111111-2222-3333-4444-555555555555\n").unwrap();
    let plain = network.on_b(&["serve"]);
    let renamed = with_file(&plain, &name, "/proc/sys/kernel/random/boot_id");
    // The times of the processors decide, and not the name of the machine.
    for (serve, layer) in [(plain, "tcp"), (renamed, "vi+udp")] {
        let result = utilisation(&network, &Served::start(serve), layer);
        assert!(doubt(&result, "one_machine").is_some(), "{:?}", result.doubts);
        let found = result.found.utilisation().unwrap();
        assert_eq!(found.replier_idle, None);
        for launch in &found.launches {
            assert!(launch.one_machine);
            let windows = launch.sizes.iter().flat_map(|size| size.round_trips.iter().chain(&size.stream));
            for window in windows.chain(&launch.idle) {
                assert!(window.machine.is_some() && window.replier_machine.is_none(), "{window:?}");
            }
        }
    }
}

/// The other host has five processors that never rest, and are counted in no process.
#[test]
fn each_host_has_a_machine_of_its_own() {
    let _beside = beside();
    let Some(network) = Network::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let stat = folder.path().join("stat");
    let cpus: String = (0..5).map(|cpu| format!("cpu{cpu} 1234567 0 0 0 0 0 0 0 0 0\n")).collect();
    fs::write(&stat, cpus).unwrap();
    let served = Served::start(with_file(&network.on_b(&["serve"]), &stat, "/proc/stat"));
    let result = utilisation(&network, &served, "tcp");
    assert_eq!(doubt(&result, "one_machine"), None);
    let busy = doubt(&result, "busy_machine").unwrap();
    assert!(busy.contains("on the replier's machine") || busy.contains("on each machine"), "{busy}");
    let found = result.found.utilisation().unwrap();
    for launch in &found.launches {
        assert!(!launch.one_machine);
        for window in &launch.idle {
            let (own, other) = (window.machine.unwrap(), window.replier_machine.unwrap());
            assert_eq!(other.processors, 5);
            assert!(own.busy_ns < 1.01 * own.elapsed_ns * own.processors as f64, "{own:?}");
            assert!((other.busy_ns / other.elapsed_ns - 5.0).abs() < 1e-6, "{other:?}");
        }
    }
    // What the replier's process does is its own work, on its machine.
    let others = found.replier_idle.unwrap().value.unwrap();
    assert!(others > 4.0 && others <= 5.0, "{others}");
    for (_, costs) in found.sizes.iter().flat_map(|size| size.kinds()) {
        let machine = costs.replier_machine.as_ref().unwrap();
        assert_eq!((machine.busy.share.value, machine.elsewhere.share.value), (None, None));
    }
    let sizes = found.launches.iter().flat_map(|launch| &launch.sizes);
    for window in sizes.flat_map(|size| &size.round_trips) {
        let replier = window.replier;
        assert!(replier.busy_ns() > 0.0 && replier.busy_ns() < 2.0 * replier.elapsed_ns, "{window:?}");
    }
}

/// A server on another host answers clients that it did not start. Its address is the one that both sides name.
#[test]
fn a_server_on_another_host_is_measured() {
    let _beside = beside();
    let Some(network) = Network::new() else { return };
    for (layer, bind) in
        [("oncrpc+udp", "10.77.0.2:0"), ("oncrpc+tcp", "10.77.0.2:0"), ("oncrpc+udp", "[fd77::2]:0")]
    {
        let served = Served::start(network.on_b(&["serve", "--over", layer, "--bind", bind]));
        let server = served.announcement().split("--connect ").nth(1).unwrap().lines().next().unwrap();
        let few = ["--launches", "1", "--max-time", "300ms", "--wait", "block", "--format", "json"];
        let args = [&["logp", "--over", layer, "--connect", server], &few[..]].concat();
        let record = record(network.on_a(&args).output().unwrap());
        let result = &record.results[0];
        assert_eq!(result.server.as_deref(), Some(server));
        assert!(result.parameters.rtt.value_ns > Some(0.0), "{server}");
        assert!(doubt(result, "server_of_others").unwrap().contains(server));
    }
}
