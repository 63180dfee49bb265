//! `netdyno memory` over MPI, libfabric and UCX: which accesses each layer has, and how its record shows them.

use crate::common::mpi::compilers;
use crate::common::schemas::read_record;
use crate::common::{alone, assert_launched, beside};
use crate::libraries::{command, layers, refused};
use crate::mpi::measuring;
use netdyno_measure::memory::record::{Access, Pace};
use netdyno_measure::onesided::data::{Memory, Synchronisation};
use netdyno_measure::record::{LayerResult, Record, Status};
use serde_json::Value;
use std::process::{Command, Output};

/// The arguments of a short measurement. At this confidence two launches are enough for an interval.
const SHORT: [&str; 9] =
    ["memory", "--largest", "128KiB", "--launches", "2", "--max-time", "1s", "--confidence", "0.5"];

/// The accesses of a library without fetch-and-add, with their sizes in bytes, in the order of the table.
const READS_AND_WRITES: [(&str, usize); 8] = [
    ("read.blocking", 8),
    ("read.pipelined", 8),
    ("write.blocking", 8),
    ("write.pipelined", 8),
    ("write.blocking", 64 << 10),
    ("write.pipelined", 64 << 10),
    ("write.blocking", 128 << 10),
    ("write.pipelined", 128 << 10),
];
const FETCH_ADDS: [(&str, usize); 2] = [("fetch_add.blocking", 8), ("fetch_add.pipelined", 8)];

/// Runs a measurement that must succeed. Asserts that its standard output is a valid record and nothing else.
fn recorded(command: &mut Command) -> Record {
    record_of(command.output().unwrap())
}

/// Returns the record of a measurement that must have succeeded.
fn record_of(output: Output) -> Record {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["schema"], "netdyno/1");
    read_record(&text)
}

/// Returns whether the result has this warning about the pipelined accesses of an operation.
fn warns(result: &LayerResult, doubt: &str, operation: &str) -> bool {
    result.doubts.iter().any(|found| {
        let is_of_it = found.operation.as_deref() == Some(operation);
        found.name == doubt && found.about.as_deref() == Some("pipelined") && is_of_it
    })
}

/// Asserts that the result has all accesses of a library. Each has a value with an interval around it, or its status
/// and a warning say why not.
fn assert_complete(result: &LayerResult, has_fetch_add: bool) {
    let layer = &result.layer;
    assert_eq!(result.verb(), "memory", "{layer}");
    assert!(result.parameters.rtt.status == Status::Unobservable, "{layer}");
    let found = result.found.memory().unwrap();
    let rows = found.rows();
    let names: Vec<(&str, usize)> =
        rows.iter().map(|(access, _)| (access.name(), access.size_bytes)).collect();
    let atomic = if has_fetch_add { &FETCH_ADDS[..] } else { &[] };
    assert_eq!(names, [&READS_AND_WRITES[..], atomic].concat(), "{layer}");
    for (access, time) in &rows {
        let of = format!("{layer}: {access:?} {time:?}");
        assert!(time.samples > 0 && (1..=result.launches()).contains(&time.launches), "{of}");
        if time.status == Status::Unobservable {
            assert!(
                access.pace == Pace::Pipelined && time.value_ns.is_none() && time.ci_ns.is_none(),
                "{of}"
            );
            continue;
        }
        assert!(access.pace == Pace::Pipelined || time.status == Status::Measured, "{of}");
        let value = time.value_ns.unwrap();
        assert!(value > 0.0, "{of}");
        assert_eq!(time.ci_ns.is_some(), time.launches >= 2, "{of}");
        assert!(time.ci_ns.is_none_or(|ci| ci.lo <= value && value <= ci.hi), "{of}");
    }
    // One warning names the accesses that the library does not have.
    let missing =
        if has_fetch_add { "no write_notify: it is" } else { "no write_notify and no fetch_add: they are" };
    let named: Vec<&str> = result
        .doubts
        .iter()
        .filter(|doubt| doubt.name == "missing_operations")
        .map(|doubt| &doubt.text[..])
        .collect();
    assert_eq!(named, [format!("the layer has {missing} not measured")], "{layer}");
    // The warnings name the operations of exactly those pipelined times that are not measured.
    let pipelined: Vec<_> = rows.iter().filter(|(access, _)| access.pace == Pace::Pipelined).collect();
    for operation in ["read", "write", "fetch_add"] {
        for (status, doubt) in [(Status::Unobservable, "gap_hidden"), (Status::UpperBound, "window_bound")] {
            let of_it = |access: &Access| access.operation_name() == operation;
            let is_there = pipelined.iter().any(|(access, time)| of_it(access) && time.status == status);
            let warns = warns(result, doubt, operation);
            assert_eq!(warns, is_there, "{layer}: {operation} {:?}", result.doubts);
        }
    }
}

/// Returns whether the layer's library has fetch-and-adds: libfabric has them if the provider does.
fn has_fetch_add(result: &LayerResult) -> bool {
    let library = result.library.as_deref().unwrap();
    !result.layer.starts_with("ofi:") || ["ofi_rxm", "provider shm"].iter().any(|name| library.contains(name))
}

#[test]
fn every_library_has_reads_writes_and_fetch_and_adds() {
    let _beside = beside();
    let layers = layers();
    if layers.is_empty() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let over = ["--over", &layers.join(","), "--wait", "yield", "--format", "json"];
    let record = recorded(&mut command(folder.path(), &[&SHORT[..], &over].concat()));
    let names: Vec<&str> = record.results.iter().map(|result| &result.layer[..]).collect();
    assert_eq!(names, layers);
    assert_launched(&record, 2);
    for result in &record.results {
        assert_complete(result, has_fetch_add(result));
        let found = result.found.memory().unwrap();
        let memory = result.layer.starts_with("ucx:").then_some(Memory::Registered);
        assert_eq!((found.memory, found.synchronisation), (memory, None), "{}", result.layer);
    }
    // Only layers after the first have ratios, and all of them are to the first.
    assert!(record.ratios.iter().all(|ratio| ratio.denominator == layers[0] && ratio.value > 0.0));
}

/// The provider `net` of libfabric 1.17 has no atomic operations, and the target of one over `udp` dies in libfabric.
/// Another version may lack these providers.
#[test]
fn a_provider_without_atomic_operations_has_no_fetch_and_add() {
    let _beside = beside();
    let folder = tempfile::tempdir().unwrap();
    if !layers().contains(&"ofi:tcp") {
        return;
    }
    for provider in ["net", "udp"] {
        let over = ["--over", &format!("ofi:{provider}"), "--wait", "yield", "--format", "json"];
        let output = command(folder.path(), &[&SHORT[..], &over].concat()).output().unwrap();
        if String::from_utf8_lossy(&output.stderr).contains(&format!("no provider '{provider}'")) {
            println!("SKIPPED: libfabric has no provider '{provider}'");
            continue;
        }
        assert_complete(&record_of(output).results[0], false);
    }
}

#[test]
fn mpi_has_reads_writes_and_fetch_and_adds() {
    let _alone = alone();
    for compiler in compilers() {
        for (chosen, memory) in [("registered", Memory::Registered), ("allocated", Memory::Allocated)] {
            let args = [&SHORT[..], &["--memory", chosen]].concat();
            let record = recorded(&mut measuring(&compiler, &args));
            assert_eq!(record.results.len(), 1);
            assert_launched(&record, 2);
            let result = &record.results[0];
            assert_eq!(result.layer, "mpi");
            assert!(result.library.as_ref().unwrap().contains("MPI"), "{:?}", result.library);
            assert!(result.launcher.as_ref().unwrap().contains("mpiexec"), "{:?}", result.launcher);
            assert_complete(result, true);
            let found = result.found.memory().unwrap();
            let expected = (Some(memory), Some(Synchronisation::Lock));
            assert_eq!((found.memory, found.synchronisation), expected, "{}", compiler.display());
        }
    }
}

/// Beside a layer that has an access, the table says that the library does not have it.
#[test]
fn the_table_shows_the_accesses_that_a_library_does_not_have() {
    let _beside = beside();
    let folder = tempfile::tempdir().unwrap();
    let short = ["--wait", "yield", "--launches", "1", "--max-time", "300ms", "--largest", "1KiB"];
    for layer in layers().into_iter().filter(|layer| matches!(*layer, "ofi:shm" | "ucx:posix")) {
        let over = format!("am+shm,{layer}");
        let args = [&["memory", "--over", &over], &short[..]].concat();
        let output = command(folder.path(), &args).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let table = String::from_utf8(output.stdout).unwrap();
        // Wide cells touch each other, but each has its unit or its dash.
        let is_absent = |title: &str| -> Vec<bool> {
            let row = table.lines().find_map(|line| line.strip_prefix(title)?.strip_prefix("  "));
            row.unwrap_or_else(|| panic!("{title}\n{table}"))
                .split_whitespace()
                .filter(|word| ["–", "ns", "µs", "ms", "s"].contains(word))
                .map(|word| word == "–")
                .collect()
        };
        assert_eq!(is_absent("write 8 B, told"), [false, true], "{table}");
        assert_eq!(is_absent("fetch+add 8 B"), [true, false], "{table}");
        assert_eq!(is_absent("read 8 B"), [false, false], "{table}");
    }
}

#[test]
fn a_wrong_use_is_one_line_and_exit_code_2() {
    let _beside = beside();
    let folder = tempfile::tempdir().unwrap();
    for (args, why) in [
        (&["--over", "mpi"][..], "mpi needs the launcher of its library: --launcher 'mpiexec -n {n}'"),
        (&["--over", "mpi", "--launcher", "mpiexec"], "as in 'mpiexec -n {n}'"),
        (&["--over", "mpii"], "did you mean 'mpi'?"),
        (&["--over", "ofi:shm", "--sync", "fence"], "use --sync with mpi"),
        (&["--over", "ofi:shm", "--memory", "allocated"], "ofi:shm has no choice of memory"),
        (&["--over", "ucx:posix", "--level", "reception"], "ucx:posix has no reliability levels"),
        (&["--over", "ucx:tcp", "--faults", "loss=0.1"], "not for ucx:tcp"),
    ] {
        refused(&mut command(folder.path(), &[&["memory"], args].concat()), 2, why);
    }
    for compiler in compilers() {
        refused(
            &mut measuring(&compiler, &["memory", "--level", "reception"]),
            2,
            "mpi has no reliability levels",
        );
    }
}
