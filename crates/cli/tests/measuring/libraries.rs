//! libfabric and UCX as layers: measured by every verb if they are installed, otherwise refused.

use crate::common::network::Network;
use crate::common::{beside, netdyno};
use netdyno_measure::record::{Record, Status};
use netdyno_plugin::site::find;
use netdyno_plugin::source::Source;
use std::path::Path;
use std::process::Command;

/// Returns the layers over the installed libraries. NETDYNO_TEST_LIBRARIES makes both mandatory.
pub fn layers() -> Vec<&'static str> {
    let all = [(Source::ofi(), ["ofi:tcp", "ofi:shm"]), (Source::ucx(), ["ucx:tcp", "ucx:posix"])];
    let mut layers = Vec::new();
    for (source, names) in all {
        match find(&source, None) {
            Ok(_) => layers.extend(names),
            Err(error) => {
                assert!(std::env::var_os("NETDYNO_TEST_LIBRARIES").is_none(), "{error}");
                println!("SKIPPED: {error}");
            }
        }
    }
    layers
}

/// Returns a command that keeps its built plugins in `folder`.
pub fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = netdyno(args);
    command.env("XDG_CACHE_HOME", folder);
    for variable in ["NETDYNO_PLUGIN_OFI", "NETDYNO_PLUGIN_UCX", "NETDYNO_OFI", "NETDYNO_UCX", "CC"] {
        command.env_remove(variable);
    }
    command
}

fn record(command: &mut Command) -> Record {
    let output = command.args(["--format", "json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Record::from_json(&String::from_utf8(output.stdout).unwrap()).unwrap()
}

/// Asserts one line on standard error that contains `why`, and nothing on standard output.
pub fn refused(command: &mut Command, code: i32, why: &str) {
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(output.stdout.is_empty() && stderr.lines().count() == 1 && stderr.contains(why), "{stderr}");
}

const FEW: [&str; 4] = ["--launches", "1", "--max-time", "300ms"];

#[test]
fn memory_is_registered_with_every_library() {
    let _beside = beside();
    let layers = layers();
    if layers.is_empty() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let args = ["registration", "--over", &layers.join(","), "--largest", "1MiB"];
    let record = record(&mut command(folder.path(), &[&args[..], &FEW].concat()));
    for (result, layer) in record.results.iter().zip(&layers) {
        assert_eq!(result.layer, *layer);
        let library = result.library.as_deref().unwrap();
        let (_, kind) = layer.split_once(':').unwrap();
        let name = if layer.starts_with("ofi") { "libfabric " } else { "UCX " };
        assert!(library.starts_with(name) && library.contains(kind), "{library}");
        for size in &result.found.registration().unwrap().sizes {
            let ours = &size.times()[..5];
            assert!(ours.iter().all(|(_, cost)| cost.status == Status::Measured), "{layer}: {size:?}");
        }
    }
}

/// Nobody has asked for the reference. Between hosts a firewall may forbid it, and the library has another way.
#[test]
fn a_reference_that_fails_leaves_the_others_measured() {
    let _beside = beside();
    if !layers().contains(&"ofi:tcp") {
        return;
    }
    let Some(network) = Network::new() else { return };
    network.forbid_udp_on_a();
    let args = ["logp", "--over", "ofi:tcp", "--wait", "yield", "--launches", "3", "--max-time", "500ms"];
    let output = network.on_a(&[&args[..], &["--format", "json"]].concat()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let record = Record::from_json(&String::from_utf8(output.stdout).unwrap()).unwrap();
    let names: Vec<&str> = record.results.iter().map(|result| &result.layer[..]).collect();
    assert_eq!((&names[..], record.ratios.len()), (&["ofi:tcp"][..], 0));
    assert!(record.results[0].parameters.rtt.value_ns.is_some_and(|ns| ns > 0.0));
    let doubt = record.doubts.iter().find(|doubt| doubt.name == "reference_failed").unwrap();
    assert!(doubt.text.contains("am+udp") && doubt.text.contains("peer is lost"), "{}", doubt.text);
}

/// An unknown provider is refused before anything is measured, with the names of those that are here.
#[test]
fn an_unknown_provider_is_refused_with_the_names_of_others() {
    let _beside = beside();
    let folder = tempfile::tempdir().unwrap();
    let layers = layers();
    for (layer, known, why) in [
        ("ofi:nothing", "ofi:tcp", "no provider 'nothing' with tagged messages here: use "),
        ("ucx:nothing", "ucx:tcp", "cannot use the transports 'nothing' here"),
    ] {
        if !layers.contains(&known) {
            continue;
        }
        for args in [
            &["logp", "--over"][..],
            &["completion", "--over"],
            &["registration", "--over"],
            &["memory", "--over"],
            &["overlap", "--wait", "block", "--over"],
            &["contention", "--procs", "4", "--over"],
        ] {
            let mut unknown = command(folder.path(), &[args, &[layer]].concat());
            let output = unknown.output().unwrap();
            refused(&mut unknown, 2, why);
            let line = String::from_utf8(output.stderr).unwrap();
            assert_eq!(line.matches("'nothing'").count(), 1, "{line}");
            let names = line.rsplit("use ").next().unwrap().trim_end().split(", ");
            assert!(names.clone().any(|name| name == "tcp"), "{line}");
            let (count, different) =
                (names.clone().count(), names.collect::<std::collections::BTreeSet<_>>());
            assert_eq!(count, different.len(), "{line}");
        }
    }
}

#[test]
fn messages_are_measured_by_every_verb() {
    let _beside = beside();
    let folder = tempfile::tempdir().unwrap();
    for layer in layers() {
        for verb in [
            &["logp"][..],
            &["bulk", "--largest", "16KiB"],
            &["overlap", "--method", "pww", "--sizes", "64,64KiB"],
            &["contention", "--procs", "3"],
        ] {
            let args = [verb, &["--over", layer, "--wait", "yield"], &FEW].concat();
            let record = record(&mut command(folder.path(), &args));
            assert_eq!((&record.results[0].layer[..], record.results[0].verb()), (layer, verb[0]));
            assert!(record.results[0].parameters.rtt.value_ns.unwrap() > 0.0, "{layer}");
        }
    }
}

/// The lean layer on the same path is measured in the same run as a reference.
#[test]
fn a_library_stands_beside_the_lean_layer_on_its_path() {
    let _beside = beside();
    let folder = tempfile::tempdir().unwrap();
    for layer in layers() {
        let lean = if layer.ends_with(":tcp") { "am+udp" } else { "am+shm" };
        let args = [&["logp", "--over", layer, "--wait", "yield"], &FEW[..]].concat();
        let output = command(folder.path(), &[&args[..], &["--format", "json"]].concat()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && stderr.contains(&format!("{lean} is measured as well")),
            "{stderr}"
        );
        let found = Record::from_json(&String::from_utf8(output.stdout).unwrap()).unwrap();
        let names: Vec<&str> = found.results.iter().map(|result| &result.layer[..]).collect();
        assert_eq!(names, [layer, lean]);
        let beside = found.ratios.iter().filter(|ratio| ratio.to_reference);
        // Launches of different strata are not compared.
        let stratum = |at: usize| found.results[at].headline().map(|stratum| stratum.name.clone());
        assert_eq!(
            beside.clone().any(|ratio| ratio.parameter == "rtt" && ratio.value > 0.0),
            stratum(0) == stratum(1),
            "{:?}",
            found.ratios
        );
        assert!(beside.clone().all(|ratio| (&ratio.numerator[..], &ratio.denominator[..]) == (layer, lean)));
        assert_eq!(beside.count(), found.ratios.len(), "no ratio stands twice: {:?}", found.ratios);
        for result in &found.results {
            // On a busy machine a launch may leave o_r unknown, and with it the shares of the round trip.
            let is_known = result.parameters.o_r.value_ns.is_some();
            assert_eq!(result.found.logp().unwrap().shares.is_some(), is_known, "{:?}", result.parameters);
        }
        let alone = record(&mut command(folder.path(), &[&args[..], &["--no-reference"]].concat()));
        assert_eq!((alone.results.len(), alone.ratios.len()), (1, 0));
    }
}

#[test]
fn what_is_missing_says_how_to_get_it() {
    let _beside = beside();
    let folder = tempfile::tempdir().unwrap();
    let on = |args: &[&str]| command(folder.path(), args);
    for (layer, library, variable) in
        [("ofi:tcp", "libfabric", "NETDYNO_OFI"), ("ucx:tcp", "UCX", "NETDYNO_UCX")]
    {
        let without = format!("no {library}: apt install lib");
        refused(on(&["logp", "--over", layer]).env("CC", "/bin/false"), 2, &without);
        let elsewhere = format!("{variable} names /nowhere, and there is no include/");
        refused(on(&["registration", "--over", layer]).env(variable, "/nowhere"), 2, &elsewhere);
        let text = folder.path().join("text.so");
        std::fs::write(&text, "no library\n").unwrap();
        let built = variable.replace("NETDYNO_", "NETDYNO_PLUGIN_");
        refused(on(&["logp", "--over", layer]).env(built, &text), 2, "text.so cannot be loaded");
    }
    refused(&mut on(&["logp", "--over", "ofi"]), 2, "as in 'ofi:tcp'");
    refused(&mut on(&["logp", "--over", "ucx:"]), 2, "as in tcp");
}
