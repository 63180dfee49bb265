//! Every verb over the layers of this machine: interleaved, in every size, over bad and over dialled links.

use crate::common::schemas::{read_record, record};
use crate::common::{
    alone, assert_launched, beside, error_of, names, netdyno, remove_result_before, stdout_of, wait,
    workers_of,
};
use netdyno_measure::completion::ways::Ways;
use netdyno_measure::memory::record::Pace;
use netdyno_measure::record::{LayerResult, Parameter, Ratio, Record, Status};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn real_layers_are_measured_interleaved() {
    let _alone = alone();
    let args = [
        "logp",
        "--over",
        "am+shm,am+udp,vi+shm,vi+udp,udp,tcp,oncrpc+udp,oncrpc+tcp",
        "--launches",
        "2",
        "--max-time",
        "1s",
        "--wait",
        wait(),
    ];
    // Such launches soon have enough samples.
    let record = record(&[&args[..], &["--precision", "0.5"]].concat());
    assert_eq!(record.results.len(), 8);
    assert_launched(&record, 2);
    for result in &record.results {
        assert_eq!(result.cpus.len(), 2);
        assert!(result.distance.is_some());
        let p = &result.parameters;
        let value = |p: &Parameter| p.value_ns.unwrap();
        assert!(
            value(&p.rtt) > 0.0 && value(&p.o_s).is_finite() && value(&p.o_poll) > 0.0,
            "{}",
            result.layer
        );
        let p50 = p.rtt.quantiles_ns["p50"];
        assert!(p.rtt.quantiles_ns["min"] <= p50 && p50 <= p.rtt.quantiles_ns["max"]);
        assert!(!result.found.logp().unwrap().launches[0].rtt_after_pause_ns.is_empty());
        assert_eq!(result.found.logp().unwrap().checks.streams.len(), 2);
        let transport = result.found.logp().unwrap().launches[0].transport;
        assert_eq!(transport.is_some(), ["am+udp", "vi+udp", "oncrpc+udp"].contains(&&*result.layer));
        assert!(transport.is_none_or(|transport| transport.sent > 0 && transport.memory_bytes < 1 << 20));
    }
    assert!(record.ratios.iter().any(|ratio| ratio.numerator == "udp" && ratio.parameter == "rtt"));
}

/// The ratio of polling and blocking comes from interleaved launches.
#[test]
fn ways_to_wait_are_measured_against_each_other() {
    let _alone = alone();
    let args = [
        "logp",
        "--over",
        "vi+shm,vi+udp",
        "--wait",
        "block,yield,spin:20us",
        "--launches",
        "2",
        "--max-time",
        "1s",
    ];
    // Such launches soon have enough samples.
    let record = record(&[&args[..], &["--precision", "0.5"]].concat());
    let measured: Vec<_> = record.results.iter().map(|result| (result.name(), &result.wait[..])).collect();
    let waits = ["block", "yield", "spin:20us"];
    let expected: Vec<_> = ["vi+shm", "vi+udp"]
        .into_iter()
        .flat_map(|layer| waits.map(|wait| (format!("{layer} ({wait})"), wait)))
        .collect();
    assert_eq!(measured, expected);
    let is_rtt = |ratio: &&Ratio| ratio.parameter == "rtt" && ratio.numerator == "vi+shm (yield)";
    let [block, yielding] = &record.results[..2] else { panic!("{record:?}") };
    let stratum = |result: &LayerResult| result.headline().map(|stratum| stratum.name.clone());
    let Some(ratio) = record.ratios.iter().find(is_rtt) else {
        assert_ne!(stratum(block), stratum(yielding), "launches of one stratum are compared");
        return;
    };
    assert_eq!(ratio.denominator, "vi+shm (block)");
    assert!((1..=block.launches()).contains(&ratio.pairs), "{ratio:?}");
}

#[test]
fn a_bad_network_costs_time_and_no_message() {
    let _alone = alone();
    let faults = "loss=0.01,dup=0.01,reorder=0.02,corrupt=0.01";
    let layers = "am+udp,vi+udp,udp";
    let args = ["logp", "--over", layers, "--faults", faults, "--launches", "1", "--max-time", "2s"];
    let record = record(&[&args[..], &["--wait", wait()]].concat());
    let [messages, interfaces, bare] = &record.results[..] else { panic!("{record:?}") };
    assert_eq!(bare.faults, None);
    for spoilt in [messages, interfaces] {
        assert_eq!(spoilt.faults.as_deref(), Some(faults));
        assert!(spoilt.doubts.iter().any(|doubt| doubt.name == "faults" && doubt.text.contains(faults)));
        let transport = spoilt.found.logp().unwrap().launches[0].transport.unwrap();
        assert!(transport.retransmitted > 0 && transport.malformed > 0, "{transport:?}");
    }
}

#[test]
fn a_dialled_link_is_as_late_as_it_was_asked_to_be() {
    let _alone = alone();
    let dials = "latency=50us,send-overhead+10us";
    let args =
        ["logp", "--over", "am+shm,am+udp,tcp", "--dials", dials, "--launches", "1", "--max-time", "300ms"];
    let record = record(&[&args[..], &["--wait", wait()]].concat());
    let [shm, udp, bare] = &record.results[..] else { panic!("{record:?}") };
    assert_eq!(bare.dials, None);
    for dialled in [shm, udp] {
        assert_eq!(dialled.dials.as_deref(), Some(dials));
        assert!(dialled.doubts.iter().any(|doubt| doubt.name == "dialled" && doubt.text.contains(dials)));
        let rtt = &dialled.found.logp().unwrap().launches[0].rtt;
        assert!(rtt.batches_ns.iter().all(|&ns| ns >= 119_900.0), "{rtt:?}");
    }
}

#[test]
fn a_dialled_link_changes_with_time_as_its_profile_says() {
    let _alone = alone();
    let args = ["logp", "--over", "am+shm,am+udp,tcp", "--dials", "send-overhead+10us"];
    let rest =
        ["--profile", "interrupt-coalescing", "--launches", "1", "--max-time", "300ms", "--wait", wait()];
    let record = record(&[&args[..], &rest].concat());
    let [shm, udp, bare] = &record.results[..] else { panic!("{record:?}") };
    assert_eq!((&bare.dials, &bare.profile), (&None, &None));
    for dialled in [shm, udp] {
        assert!(
            dialled.profile.as_ref().unwrap().starts_with("repeat 50us\nat 0ns latency+50us\n"),
            "{record:?}"
        );
        let doubt = dialled.doubts.iter().find(|doubt| doubt.name == "dialled").unwrap();
        assert!(doubt.text.ends_with("send-overhead+10us and a profile in time of 2 points"), "{doubt:?}");
        // Each end waits for the end of its period. If the profile began anew with each message, or never,
        // both ends would wait 50 us.
        let rtt = &dialled.found.logp().unwrap().launches[0].rtt;
        let mean = rtt.batches_ns.iter().sum::<f64>() / rtt.batches_ns.len() as f64;
        assert!(mean >= 45_000.0 && rtt.min_ns < 109_000.0, "{rtt:?}");
    }
}

#[test]
fn every_size_and_way_to_wait_works() {
    let _beside = beside();
    for (over, size, how) in [
        ("am+shm", "1", "block"),
        ("am+shm", "33", "yield"),
        ("am+shm", "4096", "block"),
        ("am+udp", "1", "block"),
        ("am+udp", "33", "yield"),
        ("am+udp", "1380", "block"),
        ("vi+shm", "1", "block"),
        ("vi+shm", "20000", "yield"),
        ("vi+udp", "33", "block"),
        ("vi+udp", "5000", "yield"),
        ("udp", "1", "block"),
        ("udp", "32768", "block"),
        ("tcp", "1", "block"),
        ("tcp", "4096", "yield"),
        ("oncrpc+udp", "1", "block"),
        ("oncrpc+udp", "32768", "yield"),
        ("oncrpc+tcp", "33", "block"),
        ("oncrpc+tcp", "4096", "yield"),
    ] {
        let args =
            ["logp", "--over", over, "--size", size, "--wait", how, "--launches", "1", "--max-time", "300ms"];
        let record = record(&args);
        assert_eq!(
            (record.results[0].size_bytes.to_string(), &record.results[0].wait[..]),
            (size.to_owned(), how)
        );
    }
}

#[test]
fn sockets_are_where_they_are_asked_for() {
    let _beside = beside();
    // No socket gets a port below the ephemeral ones by chance.
    let free = format!("127.0.0.1:{}", 20_000 + std::process::id() % 10_000);
    let has_ipv6 = std::net::UdpSocket::bind("[::1]:0").is_ok();
    for host in [Some("localhost"), has_ipv6.then_some("::1"), Some(&free)].into_iter().flatten() {
        let args = [
            "logp",
            "--over",
            "am+udp,vi+udp,udp,tcp",
            "--bind",
            host,
            "--launches",
            "1",
            "--max-time",
            "300ms",
        ];
        stdout_of(&[&args[..], &["--wait", wait()]].concat());
    }
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for over in ["am+udp", "vi+udp"] {
        let line = error_of(&["logp", "--over", over, "--bind", &address], 2);
        assert!(line.contains(&address) && line.contains("choose another port"), "{line}");
    }
}

#[test]
fn the_main_job_writes_record_and_report() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().to_str().unwrap();
    let table = stdout_of(&["--launches", "1", "--max-time", "300ms", "--wait", wait(), "--dir", dir]);
    for layer in ["am+shm", "am+udp", "udp", "tcp"] {
        assert!(table.contains(layer), "{table}");
    }
    let record = fs::read_to_string(folder.path().join("netdyno.json")).unwrap();
    assert_eq!(Record::from_json(&record).unwrap().results.len(), 4);
    assert!(folder.path().join("netdyno-report.html").exists());
}

/// Checks real layers as far as a busy machine permits.
#[test]
fn real_layers_are_measured_at_every_size() {
    let _alone = alone();
    let args = ["bulk", "--over", "am+shm,vi+shm,vi+udp,udp,tcp", "--largest", "256KiB", "--launches", "2"];
    let record = record(&[&args[..], &["--max-time", "1s", "--wait", wait()]].concat());
    assert_launched(&record, 2);
    for result in &record.results {
        assert!(result.launches_in_all() <= 2, "{}", result.layer);
        let bulk = result.found.bulk().unwrap();
        let largest = if result.layer == "udp" { 65_507 } else { 256 << 10 };
        assert_eq!(bulk.sizes.last().unwrap().size_bytes, largest);
        assert_eq!(bulk.largest_bytes, (result.layer == "udp").then_some(largest));
        let is_said = result.doubts.iter().any(|doubt| doubt.name == "largest_message");
        assert_eq!(is_said, result.layer == "udp");
        for size in &bulk.sizes {
            assert!(size.T.value_ns.unwrap() > 0.0 && size.o_s.value_ns.is_some(), "{}", result.layer);
            assert_ne!(size.T.status, Status::Unobservable);
            // A launch whose processors were moved belongs to another stratum.
            assert_eq!(size.T.launches, result.launches(), "{}", result.layer);
            assert!(size.T.launches >= 1 && size.T.samples >= size.T.launches as u64);
        }
    }
}

/// A message exceeds every buffer of the system, in both directions at once.
#[test]
fn four_mebibytes_do_not_get_stuck() {
    let _beside = beside();
    let over = "tcp,vi+shm,vi+udp";
    let args = ["bulk", "--over", over, "--largest", "4MiB", "--launches", "1", "--max-time", "300ms"];
    let record = record(&[&args[..], &["--wait", "block"]].concat());
    for result in &record.results {
        assert_eq!(
            result.found.bulk().unwrap().sizes.last().unwrap().size_bytes,
            4 << 20,
            "{}",
            result.layer
        );
    }
}

#[test]
fn every_layer_is_measured_with_more_processes_than_processors() {
    let _alone = alone();
    // All processes share one processor, on every machine.
    let cpu = netdyno_clock::place::allowed().unwrap()[0].to_string();
    let args = [
        "contention",
        "--over",
        "am+shm,am+udp,vi+shm,vi+udp,udp,tcp",
        "--procs",
        "4",
        "--cpus",
        &cpu,
        "--launches",
        "1",
    ];
    let record = record(&[&args[..], &["--max-time", "300ms"]].concat());
    assert_eq!(record.results.len(), 6);
    for result in &record.results {
        assert_eq!((&*result.wait, result.cpus.len()), ("yield", 4), "{}", result.layer);
        assert!(result.doubts.iter().any(|doubt| doubt.name == "more_processes_than_processors"));
        let found = result.found.contention().unwrap();
        let pairs = found.pairs.rtt_ns.iter().flatten().flatten();
        assert_eq!(pairs.filter(|ns| **ns > 0.0).count(), 12, "{}", result.layer);
        assert!(found.many_to_one.iter().all(|at| at.ratio.value > 0.0), "{}", result.layer);
        assert!(found.rates.iter().all(|rate| rate.messages_per_s.value > 0.0), "{}", result.layer);
        assert!(result.parameters.rtt.samples > 0);
    }
}

#[test]
fn other_sizes_numbers_and_ways_to_wait_work() {
    let _beside = beside();
    for (over, procs, size, wait) in [
        ("am+shm", "3", "4096", "block"),
        ("am+udp", "2", "100", "block"),
        ("vi+shm", "3", "100000", "block"),
        ("vi+udp", "3", "5000", "block"),
        ("udp", "5", "8192", "block"),
        ("tcp", "3", "4096", "block"),
        ("oncrpc+udp", "5", "8192", "block"),
        ("oncrpc+tcp", "3", "4096", "block"),
    ] {
        let args = [
            "contention",
            "--over",
            over,
            "--procs",
            procs,
            "--size",
            size,
            "--wait",
            wait,
            "--launches",
            "1",
        ];
        let record = record(&[&args[..], &["--max-time", "300ms"]].concat());
        let found = record.results[0].found.contention().unwrap();
        assert_eq!((found.procs.to_string(), &*record.results[0].wait), (procs.to_owned(), wait), "{over}");
    }
}

/// Latency and bandwidth by every way to wait, at every size.
#[test]
fn completion_is_measured_by_polling_and_by_blocking() {
    let _alone = alone();
    let few = ["--launches", "2", "--max-time", "2s", "--precision", "0.5", "--largest", "4KiB"];
    let record = record(&[&["completion", "--over", "am+shm,udp"], &few[..]].concat());
    let names: Vec<_> = record.results.iter().map(LayerResult::name).collect();
    let [shm, udp] = ["am+shm", "udp"].map(|layer| format!("{layer} ({})", wait()));
    assert_eq!(names, [&shm[..], "am+shm (block)", &udp, "udp (block)"]);
    for result in &record.results {
        let found = result.found.completion().unwrap();
        assert_eq!(found.sizes.len(), 7);
        assert!(found.sizes.iter().all(|size| size.half_rtt.value_ns > Some(0.0)), "{found:?}");
        let cannot_block = result.doubts.iter().any(|doubt| doubt.name == "cannot_block");
        assert!(!cannot_block, "{:?}", result.doubts);
    }
    let ways = Ways::of(&record.results, record.options.confidence);
    assert_eq!(ways.iter().map(|ways| ways.layer).collect::<Vec<_>>(), ["am+shm", "udp"]);
    for ways in &ways {
        assert_eq!((ways.base.name, ways.others[0].name), (wait(), "block"));
        for size in ways.sizes() {
            assert!(ways.ratio(&ways.others[0], size).value > Some(0.0));
            assert!(!ways.fastest(size).is_empty());
        }
    }
}

/// The processor time of both sides: a process that blocks uses less than one that polls, and the kernel is part of it.
#[test]
fn utilisation_is_measured_by_polling_and_by_blocking() {
    let _alone = alone();
    let few = ["--launches", "6", "--max-time", "4s", "--precision", "0.5", "--largest", "1KiB"];
    let record = record(&[&["utilisation", "--over", "tcp", "--wait", "yield,block"], &few[..]].concat());
    let names: Vec<_> = record.results.iter().map(LayerResult::name).collect();
    assert_eq!(names, ["tcp (yield)", "tcp (block)"]);
    for result in &record.results {
        let found = result.found.utilisation().unwrap();
        assert_eq!(found.sizes.len(), 6);
        for launch in &found.launches {
            assert!(launch.one_machine && launch.idle.iter().all(|window| window.machine.is_some()));
            for window in launch.sizes.iter().flat_map(|size| size.round_trips.iter().chain(&size.stream)) {
                for side in [window.requester, window.replier] {
                    assert!(side.busy_ns() > 0.0 && side.elapsed_ns > 0.0, "{window:?}");
                    // A thread has one processor.
                    assert!(side.user_ns + side.system_ns <= 1.02 * side.elapsed_ns, "{window:?}");
                }
            }
        }
    }
    let share = |nth: usize| {
        let sizes = &record.results[nth].found.utilisation().unwrap().sizes;
        sizes[0].round_trips.requester.busy.share.value.unwrap()
    };
    assert!(share(1) < 0.95 && share(1) > 0.0, "{} {}", share(0), share(1));
}

#[test]
fn layers_of_processes_are_measured_side_by_side() {
    let _alone = alone();
    let few =
        ["--method", "pww", "--sizes", "64", "--launches", "1", "--max-time", "300ms", "--wait", "yield"];
    let table = stdout_of(&[&["overlap", "--over", "am+shm,tcp"], &few[..]].concat());
    for layer in ["am+shm  ", "tcp  "] {
        assert!(table.lines().any(|line| line.starts_with(layer)), "{table}");
    }
    assert_eq!(table.matches("stolen from work").count(), 2, "{table}");
}

#[test]
fn virtual_interfaces_register_memory_and_cost_something_themselves() {
    let _alone = alone();
    for layer in ["vi+shm", "vi+udp"] {
        let record = of_layer(&mut netdyno(&["registration", "--over", layer]));
        assert_whole(&record);
        let fixed = &record.results[0].found.registration().unwrap().fixed;
        let names: Vec<&str> = fixed.iter().map(|fixed| &fixed.name[..]).collect();
        assert_eq!(names, ["create VI", "connect VI", "disconnect VI"], "{layer}");
        assert!(fixed.iter().all(|fixed| fixed.cost.value_ns.unwrap() > 0.0), "{layer}: {fixed:?}");
    }
}

#[test]
fn processes_put_into_the_memory_of_another_one_and_get_from_there() {
    let _alone = alone();
    for (layer, level) in [("am+shm", &[][..]), ("vi+udp", &["--level", "reception"])] {
        let mut command = netdyno(&["onesided", "--over", layer, "--wait", "yield"]);
        let record = of_layer(command.args(level));
        let found = record.results[0].found.onesided().unwrap();
        assert_eq!(found.level.is_some(), !level.is_empty(), "{layer}");
        let names: Vec<&str> = found.operations.iter().map(|one| one.operation.name()).collect();
        assert_eq!(names, ["put", "put_notify", "get"], "{layer}");
        for size in found.operations.iter().flat_map(|one| &one.sizes) {
            assert!(size.local.value_ns.is_some() && size.complete().value_ns.is_some(), "{layer}: {size:?}");
        }
    }
}

#[test]
fn layers_are_compared_by_accesses_to_remote_memory() {
    let _alone = alone();
    let over = "global+shm,am+shm,global+udp";
    let short = ["--wait", "yield", "--launches", "1", "--max-time", "300ms", "--format", "json"];
    let output = netdyno(&[&["memory", "--over", over], &short[..]].concat()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let record = Record::from_json(&String::from_utf8(output.stdout).unwrap()).unwrap();
    let names = |at: usize| {
        let rows = record.results[at].found.memory().unwrap().rows();
        assert!(rows.iter().all(|(access, time)| access.pace == Pace::Pipelined || time.value_ns.is_some()));
        rows.iter().map(|(access, _)| format!("{} {}", access.name(), access.size_bytes)).collect::<Vec<_>>()
    };
    let global = names(0);
    assert_eq!(global.len(), 10);
    assert_eq!((&global[0][..], &global[9][..]), ("read.blocking 8", "fetch_add.pipelined 8"));
    // Active Messages have no atomic operations, and tell the target's program of a write.
    let told = ["write_notify.blocking 8", "write_notify.pipelined 8"].map(String::from);
    assert_eq!((names(1), names(2)), ([&global[..8], &told].concat(), global));
    let ratio = |ratio: &&Ratio| ratio.parameter == "read.blocking of 8 B";
    let ratios: Vec<&str> =
        record.ratios.iter().filter(ratio).map(|ratio| ratio.numerator.as_str()).collect();
    assert_eq!(ratios, ["am+shm", "global+udp"]);
    let transport = record.results[2].found.memory().unwrap().launches[0].transport;
    assert!(transport.is_some_and(|transport| transport.sent > 0), "{transport:?}");
}

#[test]
fn a_layer_in_c_registers_memory_by_itself() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let built = |name: &str| {
        let mut command = netdyno(&["plugin", "build", name]);
        let output = command.env("XDG_CACHE_HOME", folder.path()).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    };
    let mut command = netdyno(&["registration", "--over", "plugin"]);
    assert_whole(&of_layer(command.env("NETDYNO_PLUGIN", built("skeleton"))));
    let mut command = netdyno(&["registration", "--over", "plugin"]);
    let output = command.env("NETDYNO_PLUGIN", built("requests")).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && said.contains("requests has no memory to register"), "{said}");
}

#[test]
fn the_bare_command_leaves_files_where_it_says() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let bare = |args: &[&str]| {
        let short = ["--launches", "1", "--max-time", "300ms", "--wait", wait(), "--over", "am+shm"];
        let mut command = netdyno(&[&short, args].concat());
        let output = command.current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    };
    let output = bare(&[]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("am+shm"));
    assert_eq!(names(folder.path()), ["netdyno-results"]);
    let kept = names(&folder.path().join("netdyno-results"));
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert!(
        kept[0].ends_with("Z.html") && kept[1].ends_with("Z.json") && kept[0].starts_with("20"),
        "{kept:?}"
    );
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(kept.iter().all(|name| text.contains(&format!("netdyno-results/{name}"))), "{text}");
    fs::remove_dir_all(folder.path().join("netdyno-results")).unwrap();

    let record = Record::from_json(&String::from_utf8_lossy(&bare(&["--format", "json"]).stdout)).unwrap();
    assert_eq!((record.results.len(), &*record.results[0].layer), (1, "am+shm"));
    assert!(names(folder.path()).is_empty(), "a form that is asked for goes to standard output alone");
    assert!(bare(&["--out", "run.csv"]).stdout.is_empty());
    assert_eq!(names(folder.path()), ["run.csv"]);
}

/// Returns the record of a short measurement over a layer.
fn of_layer(command: &mut Command) -> Record {
    let few = ["--launches", "2", "--max-time", "1s", "--largest", "1MiB", "--format", "json"];
    let output = command.args(few).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    read_record(&String::from_utf8(output.stdout).unwrap())
}

/// Asserts that the record has times for memory that is touched before its registration and for memory that
/// is not. The values are not checked.
fn assert_whole(record: &Record) {
    let result = &record.results[0];
    assert_eq!((result.cpus.len(), &result.distance), (1, &None));
    let registration = result.found.registration().unwrap();
    assert_eq!(registration.sizes.last().unwrap().size_bytes, 1 << 20);
    assert!(registration.system.page_bytes >= 4096);
    for size in &registration.sizes {
        let ours = &size.times()[..5];
        assert!(ours.iter().all(|(_, cost)| cost.status == Status::Measured), "{size:?}");
    }
}

#[test]
fn a_killed_process_is_named_and_nobody_is_left() {
    let _beside = beside();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("result.json");
    let mut random = fastrand::Rng::with_seed(5);
    for layer in ["am+shm", "am+udp", "vi+shm", "vi+udp", "udp", "tcp", "oncrpc+udp", "oncrpc+tcp"] {
        // A kill between two launches, or after a launch has its data, has no effect.
        let hit = (0..8).any(|_| {
            let args =
                ["contention", "--over", layer, "--procs", "4", "--launches", "500", "--max-time", "20s"];
            let mut child =
                netdyno(&[&args[..], &["--wait", "yield", "--out", out.to_str().unwrap()]].concat())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap();
            std::thread::sleep(Duration::from_millis(random.u64(100..800)));
            let until = Instant::now() + Duration::from_secs(20);
            let workers = loop {
                let workers = workers_of(child.id());
                if workers.len() == 4 {
                    break workers;
                }
                assert!(Instant::now() < until && child.try_wait().unwrap().is_none(), "{layer}: no workers");
                std::thread::sleep(Duration::from_millis(2));
            };
            let victim = workers[random.usize(0..4)];
            let is_killed = kill_process(Pid::from_raw(victim as i32).unwrap(), Signal::KILL).is_ok();
            let killed = Instant::now();
            if !is_killed {
                child.kill().unwrap();
                child.wait().unwrap();
                return false;
            }
            let output = child.wait_with_output().unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            if output.status.success() {
                // The launch had its data already, so the command finished with a complete record.
                Record::from_json(&fs::read_to_string(&out).unwrap()).unwrap();
                fs::remove_file(&out).unwrap();
                return false;
            }
            assert!(killed.elapsed() < Duration::from_secs(10), "{layer}: {:?} {stderr}", killed.elapsed());
            assert_eq!(output.status.code(), Some(1), "{layer}: {stderr}");
            assert_eq!(stderr.lines().count(), 1, "{layer}: {stderr}");
            assert!(
                stderr.contains(&format!("(process {victim}) was killed by signal 9")),
                "{layer}: {stderr}"
            );
            let left = workers.iter().any(|pid| fs::exists(format!("/proc/{pid}")).unwrap());
            remove_result_before(&out, &stderr);
            assert!(!left, "{layer}: somebody is left");
            true
        });
        assert!(hit, "{layer}");
    }
}
