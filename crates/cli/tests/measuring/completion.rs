//! `completion` over every layer: each is measured by every way to wait that it has, or is refused in one line
//! that names the layer and what it lacks. What is asserted holds on a busy machine.

use crate::common::mpi::{compilers, launcher, prepare};
use crate::common::network::{B, Network};
use crate::common::served::Served;
use crate::common::{beside, netdyno};
use netdyno_layers::catalogue::{ALL, Layer};
use netdyno_measure::completion::peak::PeakSource;
use netdyno_measure::completion::ways::Ways;
use netdyno_measure::record::{LayerResult, Record};
use netdyno_plugin::site::find;
use netdyno_plugin::source::Source;
use std::path::Path;
use std::process::{Command, Output};

/// The ways to wait that are asked of each layer.
const WAYS: [&str; 3] = ["yield", "block", "spin:20us"];
const FEW: [&str; 6] = ["--launches", "1", "--max-time", "300ms", "--largest", "1KiB"];

/// Returns a command that keeps its built plugins in `folder`.
fn completion(folder: &Path, args: &[&str]) -> Command {
    let mut command = netdyno(&[&["completion", "--format", "json"], &FEW[..], args].concat());
    command.env("XDG_CACHE_HOME", folder);
    command
}

fn record(output: &Output) -> Record {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Record::from_json(&String::from_utf8(output.stdout.clone()).unwrap()).unwrap()
}

/// Returns the one line of a refusal, without a result.
fn refusal(output: &Output) -> String {
    let line = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(!output.status.success() && output.stdout.is_empty() && line.lines().count() == 1, "{line}");
    line
}

/// Asserts that a result has every figure that its layer can give.
fn assert_whole(result: &LayerResult, peak: PeakSource) {
    let found = result.found.completion().unwrap();
    let name = result.name();
    assert_eq!(found.sizes.iter().map(|size| size.size_bytes).collect::<Vec<_>>(), [1, 4, 16, 64, 256, 1024]);
    assert_eq!(found.peak.source, peak, "{name}: {:?}", found.peak);
    for size in &found.sizes {
        assert!(size.half_rtt.value_ns > Some(0.0), "{name}: {size:?}");
        assert_eq!(size.ideal_ns().is_some(), peak != PeakSource::Unknown, "{name}: {size:?}");
    }
}

/// Asserts that a layer is measured in each of [`WAYS`].
fn assert_every_way(record: &Record, layer: &str, peak: PeakSource) {
    let waits: Vec<&str> = record.results.iter().map(|result| &result.wait[..]).collect();
    assert_eq!(waits, WAYS, "{layer}");
    record.results.iter().for_each(|result| assert_whole(result, peak));
    let ways = Ways::of(&record.results, record.options.confidence);
    assert!(ways.len() == 1 && ways[0].layer == layer && ways[0].base.name == "yield", "{ways:?}");
    // A single launch has no interval, so that no time to spin is called near polling.
    let [times] = &record.spin_times[..] else { panic!("{:?}", record.spin_times) };
    assert_eq!((&times.layer[..], times.best()), (layer, None));
    assert_eq!(times.tried.iter().map(|spin| &spin.wait[..]).collect::<Vec<_>>(), ["block", "spin:20us"]);
}

/// Measures a layer by every way to wait, or checks the line that refuses it.
fn measured_or_refused(mut command: Command, layer: &str) -> bool {
    let output = command.args(["--over", layer, "--wait", &WAYS.join(",")]).output().unwrap();
    if output.status.success() {
        assert_every_way(&record(&output), layer, PeakSource::Copy);
        return true;
    }
    assert_eq!(output.status.code(), Some(2), "{layer}");
    let line = refusal(&output);
    assert!(line.contains(layer) && line.contains("use --wait spin or yield"), "{line}");
    false
}

#[test]
fn a_layer_of_netdyno_is_measured_by_every_way() {
    let _beside = beside();
    let folder = tempfile::tempdir().unwrap();
    for layer in ALL {
        let name = layer.to_string();
        match layer {
            Layer::AmShm
            | Layer::AmUdp
            | Layer::ViShm
            | Layer::ViUdp
            | Layer::Udp
            | Layer::Tcp
            | Layer::OncRpcUdp
            | Layer::OncRpcTcp => {
                assert!(measured_or_refused(completion(folder.path(), &[]), &name), "{name}")
            }
            Layer::Grpc if layer.unavailable().is_none() => {
                assert!(measured_or_refused(completion(folder.path(), &[]), &name));
            }
            Layer::Grpc => {
                let line = refusal(&completion(folder.path(), &["--over", &name]).output().unwrap());
                assert!(line.contains("grpc") && line.contains("--features grpc"), "{line}");
            }
            // They need an interface for each process: `sockets_between_hosts_are_measured_by_every_way` has them.
            Layer::AmXdp | Layer::ViXdp => {}
            // They have one-sided operations alone.
            Layer::GlobalShm | Layer::GlobalUdp | Layer::GlobalXdp => {}
            // The tests below have these layers, and `command::completion` has sim.
            Layer::Mpi | Layer::Ofi(_) | Layer::Ucx(_) | Layer::Plugin | Layer::Sim => {}
        }
    }
}

#[test]
fn a_layer_over_a_library_is_measured_by_every_way_or_says_what_it_lacks() {
    let _beside = beside();
    let folder = tempfile::tempdir().unwrap();
    for (source, layers) in [
        (Source::ofi(), [("ofi:tcp", true), ("ofi:shm", false)]),
        (Source::ucx(), [("ucx:tcp", true), ("ucx:posix", true)]),
    ] {
        if let Err(error) = find(&source, None) {
            assert!(std::env::var_os("NETDYNO_TEST_LIBRARIES").is_none(), "{error}");
            println!("SKIPPED: {error}");
            continue;
        }
        for (layer, blocks) in layers {
            // Whether shared memory of libfabric can block depends on its version.
            let is_measured = measured_or_refused(completion(folder.path(), &[]), layer);
            assert!(is_measured || !blocks, "{layer}");
            let polled = completion(folder.path(), &["--over", layer, "--wait", "yield"]).output().unwrap();
            assert_whole(&record(&polled).results[0], PeakSource::Copy);
            let both = completion(folder.path(), &["--over", &format!("udp,{layer}")]).output().unwrap();
            let ways: &[&str] = if is_measured { &["yield", "block"] } else { &["yield"] };
            assert_default_ways(&record(&both), layer, ways);
        }
    }
}

/// Asserts that udp is measured by polling and by blocking, and the layer in `ways`, where `yield` is to poll. A layer
/// that is only polled says so.
fn assert_default_ways(record: &Record, layer: &str, ways: &[&str]) {
    let of = |layer: &str| record.results.iter().filter(|result| result.layer == layer).collect::<Vec<_>>();
    let blocks = |result: &&LayerResult| result.wait == "block";
    assert_eq!(of("udp").iter().filter(|result| blocks(result)).count(), 1);
    let results = of(layer);
    assert_eq!((results.len(), results.iter().any(blocks)), (ways.len(), ways.contains(&"block")), "{layer}");
    for result in results {
        let says = result.doubts.iter().any(|doubt| doubt.name == "cannot_block");
        assert_eq!(says, ways.len() == 1, "{layer}: {:?}", result.doubts);
        assert_eq!(result.label.is_some(), ways.len() > 1, "{layer}: {:?}", result.label);
    }
}

/// Only the loaded layer says that it cannot block: it is then polled, beside others, unless blocking is asked for.
#[test]
fn a_layer_of_ones_own_that_cannot_block_is_polled() {
    let _beside = beside();
    let folder = tempfile::tempdir().unwrap();
    let shown = netdyno(&["plugin", "show", "skeleton"]).output().unwrap();
    let source = String::from_utf8(shown.stdout).unwrap();
    let source = source.replace(".capabilities = NETDYNO_BLOCKS |", ".capabilities =");
    assert!(!source.contains("NETDYNO_BLOCKS |"));
    let file = folder.path().join("polled.c");
    std::fs::write(&file, source).unwrap();
    let mut build = netdyno(&["plugin", "build", file.to_str().unwrap()]);
    let built = build.env("XDG_CACHE_HOME", folder.path()).output().unwrap();
    let built = String::from_utf8(built.stdout).unwrap();
    for verb in ["completion", "utilisation"] {
        let on = |more: &[&str]| {
            let args = [&[verb, "--format", "json"], &FEW[..], more].concat();
            netdyno(&args).env("NETDYNO_PLUGIN", built.trim_end()).output().unwrap()
        };
        assert_default_ways(&record(&on(&["--over", "udp,plugin"])), "plugin", &["yield"]);
        let output = on(&["--over", "udp,plugin", "--wait", "block"]);
        assert_eq!(output.status.code(), Some(2), "{verb}");
        let line = refusal(&output);
        assert!(line.contains("plugin: skeleton cannot sleep: use --wait spin or yield"), "{line}");
    }
}

#[test]
fn a_layer_of_ones_own_is_measured_by_every_way() {
    let _beside = beside();
    let folder = tempfile::tempdir().unwrap();
    for source in ["skeleton", "requests"] {
        let mut build = netdyno(&["plugin", "build", source]);
        let built = build.env("XDG_CACHE_HOME", folder.path()).output().unwrap();
        let built = String::from_utf8(built.stdout).unwrap();
        let mut command = completion(folder.path(), &[]);
        command.env("NETDYNO_PLUGIN", built.trim_end());
        assert!(measured_or_refused(command, "plugin"), "{source}");
    }
}

#[test]
fn mpi_is_polled_and_cannot_block() {
    let _beside = beside();
    let folder = tempfile::tempdir().unwrap();
    for compiler in compilers() {
        let launcher = format!("'{}' -n {{n}}", launcher(&compiler).display());
        let on_mpi = |more: &[&str]| {
            let args = [&["--over", "mpi", "--launcher", &launcher], more].concat();
            prepare(&mut completion(folder.path(), &args), &compiler).output().unwrap()
        };
        let line = refusal(&on_mpi(&["--wait", &WAYS.join(",")]));
        assert!(line.contains("mpi cannot block: use --wait spin or yield"), "{line}");
        let polled = record(&on_mpi(&["--peak", "10GB/s"]));
        let [result] = &polled.results[..] else { panic!("{:?}", polled.results) };
        assert_whole(result, PeakSource::Given);
        assert!(result.doubts.iter().any(|doubt| doubt.name == "cannot_block"), "{:?}", result.doubts);
        // The launcher has chosen this host.
        assert_whole(&record(&on_mpi(&["--wait", "yield"])).results[0], PeakSource::Copy);
    }
}

/// Polling, blocking and five times to spin are measured. What is said of the best time follows from the ratios, however
/// busy the machine is.
#[test]
fn the_best_time_to_spin_is_looked_for() {
    let _beside = beside();
    let folder = tempfile::tempdir().unwrap();
    let spins = ["spin:1us", "spin:3us", "spin:10us", "spin:30us", "spin:100us"];
    let args = ["completion", "--format", "json", "--over", "udp", "--best-spin", "--largest", "1KiB"];
    let short = ["--launches", "6", "--max-time", "1s"];
    let output = netdyno(&[&args[..], &short].concat()).output().unwrap();
    let found = record(&output);
    let waits: Vec<&str> = found.results.iter().map(|result| &result.wait[..]).collect();
    let polling = waits[0];
    assert!(["spin", "yield"].contains(&polling), "{waits:?}");
    assert_eq!(waits, [&[polling, "block"], &spins[..]].concat());
    found.results.iter().for_each(|result| assert_whole(result, PeakSource::Copy));
    let [times] = &found.spin_times[..] else { panic!("{:?}", found.spin_times) };
    assert_eq!((&times.layer[..], &times.polling[..]), ("udp", polling));
    let tried: Vec<(&str, f64)> = times.tried.iter().map(|spin| (&spin.wait[..], spin.spin_ns)).collect();
    // To block at once is to spin for no time.
    let ways = [&["block"], &spins[..]].concat();
    let known: Vec<(&str, f64)> = ways.iter().copied().zip([0.0, 1e3, 3e3, 10e3, 30e3, 100e3]).collect();
    assert_eq!(tried, known);
    let measured = Ways::of(&found.results, found.options.confidence);
    let near_to = |wait: &str| {
        let way = measured[0].others.iter().find(|way| way.name == wait).unwrap();
        let upper = |size_bytes| measured[0].ratio(way, size_bytes).ci.map_or(f64::INFINITY, |ci| ci.hi);
        measured[0].sizes().take_while(|&size_bytes| upper(size_bytes) <= 1.05).last()
    };
    let reaches: Vec<Option<usize>> = ways.iter().copied().map(near_to).collect();
    assert_eq!(times.tried.iter().map(|spin| spin.near_to_bytes).collect::<Vec<_>>(), reaches);
    let farthest = reaches.iter().max().unwrap();
    let shortest = reaches.iter().position(|reach| reach.is_some() && reach == farthest);
    assert_eq!(times.best().map(|best| &best.wait[..]), shortest.map(|at| ways[at]), "{times:?}");
    // Every form says so.
    let file = folder.path().join("spin.json");
    std::fs::write(&file, &output.stdout).unwrap();
    for form in ["table", "html"] {
        let args = ["report", file.to_str().unwrap(), "--format", form, "--out", "-"];
        let text = String::from_utf8(netdyno(&args).output().unwrap().stdout).unwrap();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let said = match times.best() {
            Some(best) if best.spin_ns == 0.0 => "block at once",
            Some(_) => "before blocking",
            None => "no time to spin",
        };
        assert!(text.contains("udp: ") && text.contains(said), "{text}");
    }
}

/// A layer that cannot block has no time to spin, and a layer beside it that can block has.
#[test]
fn no_time_to_spin_is_looked_for_where_a_layer_cannot_block() {
    let _beside = beside();
    let folder = tempfile::tempdir().unwrap();
    let sim = ["--truth", "o_s=1us,o_r=2us,g=5us,L=7us", "--best-spin"];
    let output = completion(folder.path(), &[&["--over", "sim,udp"], &sim[..]].concat()).output().unwrap();
    let found = record(&output);
    let of = |layer: &str| found.results.iter().filter(|result| result.layer == layer).count();
    assert_eq!((of("sim"), of("udp")), (1, 7));
    let layers: Vec<&str> = found.spin_times.iter().map(|times| &times.layer[..]).collect();
    assert_eq!(layers, ["udp"]);
}

/// Between two hosts the peak is the speed of the link. Layers over AF_XDP have an interface there for each process.
#[test]
fn sockets_between_hosts_are_measured_by_every_way() {
    let _beside = beside();
    let Some(network) = Network::new() else { return };
    let served = Served::start(network.on_b(&["serve"]));
    for layer in ["am+udp", "am+xdp", "vi+udp", "vi+xdp", "udp", "tcp", "oncrpc+udp", "oncrpc+tcp"] {
        let args = [&["completion", "--format", "json", "--over", layer, "--peer", B], &FEW[..]].concat();
        let mut command = network.on_a(&[&args[..], &["--wait", &WAYS.join(",")]].concat());
        let record = record(&command.env("NETDYNO_KEY", served.key()).output().unwrap());
        assert_every_way(&record, layer, PeakSource::Link);
        let peak = &record.results[0].found.completion().unwrap().peak;
        assert!(
            peak.how.starts_with("the nominal speed of ") && peak.peak_bytes_per_s > Some(0.0),
            "{peak:?}"
        );
    }
}
