//! Layers in C are measured like the others: the skeleton between two threads, MPI in a job of
//! its own launcher.

#![allow(clippy::unwrap_used, reason = "a test")]

mod job;
mod messages;
mod steps;

use netdyno_host::wait::Wait;
use netdyno_layers::half::{Half, LayerOptions, Role};
use netdyno_layers::plugin::{Extension, PluginHalf};
use netdyno_measure::bulk::pattern::BulkPlan;
use netdyno_measure::layer::Face;
use netdyno_measure::logp::pattern::Plan;
use netdyno_measure::overlap::plan::{METHODS, OverlapPlan};
use netdyno_measure::task::{Data, Task};
use netdyno_plugin::site::{build_in, find_compiler};
use netdyno_plugin::source::Source;
use netdyno_protocol::faults::Faults;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::thread;

fn options(size_bytes: usize, face: Face, wait: Wait) -> LayerOptions {
    let bind = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    LayerOptions { size_bytes, face, wait, faults: Faults::NONE, seed: 1, bind }
}

fn logp() -> Task {
    Task::Logp(Plan { launch: 0, shape: None, budget_ns: 3e8, precision: 0.1, confidence: 0.95, seed: 1 })
}

fn bulk(largest_bytes: usize) -> Task {
    let (budget_ns, precision, confidence) = (3e8, 0.1, 0.95);
    Task::Bulk(BulkPlan { launch: 0, shape: None, largest_bytes, budget_ns, precision, confidence, seed: 1 })
}

fn overlap() -> Task {
    Task::Overlap(OverlapPlan {
        launch: 0,
        shape: None,
        sizes: vec![100, 5000],
        queue: 4,
        methods: METHODS.to_vec(),
        budget_ns: 1e6,
        precision: 0.1,
        seed: 1,
    })
}

/// That a launch has measured what it was asked to.
fn check(data: &Data, largest: usize) {
    match data {
        Data::Logp(data) => {
            let trips = &data.rtt.batches_ns;
            assert!(!trips.is_empty() && trips.iter().all(|&ns| ns > 0.0), "{trips:?}");
            assert!(data.signature.len() >= 2);
        }
        Data::Bulk(data) => {
            let sizes: Vec<usize> = data.sizes.iter().map(|size| size.size_bytes).collect();
            assert_eq!((sizes.first(), sizes.last()), (Some(&1), Some(&largest)));
            assert!(data.sizes.iter().all(|size| !size.rtt_ns.is_empty() && !size.o_r_ns.is_empty()));
        }
        Data::Overlap(data) => {
            let sizes: Vec<usize> = data.sizes.iter().map(|size| size.size_bytes).collect();
            assert_eq!(sizes, [100, 5000]);
            assert!(data.sizes.iter().all(|size| !size.polling.is_empty() && size.knee.is_some()));
        }
        Data::Contention(_) => panic!("nobody asked for this"),
    }
}

/// The skeleton, built by the C compiler that is here.
fn skeleton(folder: &Path) -> Extension {
    let compiler = find_compiler(&Source::skeleton(), None).expect("a C compiler is needed");
    let file = build_in(folder, &Source::skeleton(), &compiler).unwrap();
    Extension { file, settings: Vec::new() }
}

/// Measures the skeleton once, with a thread as the replier.
fn measured(options: LayerOptions, task: &Task) -> Data {
    let folder = tempfile::tempdir().unwrap();
    let extension = skeleton(folder.path());
    let half = PluginHalf::open(&extension, Role::Requester, options).unwrap();
    assert_eq!(half.library(), Some("Unix datagram sockets"));
    let (to_replier, from_requester) = channel();
    let (to_requester, from_replier) = channel();
    to_replier.send(half.address()).unwrap();
    // It serves until its peer is gone, or the test.
    thread::spawn(move || {
        let half = PluginHalf::open(&extension, Role::Replier, options).unwrap();
        to_requester.send(half.address()).unwrap();
        Box::new(half).replier(&from_requester.recv().unwrap()).unwrap().serve(&AtomicBool::new(false))
    });
    let mut subject = Box::new(half).requester(&from_replier.recv().unwrap()).unwrap();
    subject.measure(task, &mut |_| {}).unwrap()
}

#[test]
fn the_skeleton_is_built_and_measured() {
    for wait in [Wait::Yield, Wait::Block] {
        check(&measured(options(32, Face::Requests, wait), &logp()), 0);
    }
}

#[test]
fn the_skeleton_is_measured_at_every_size_that_it_carries() {
    check(&measured(options(1 << 20, Face::Sized, Wait::Yield), &bulk(1 << 20)), 65536);
}

#[test]
fn overlap_is_measured_over_the_skeleton() {
    check(&measured(options(5000, Face::Messages, Wait::Yield), &overlap()), 0);
}

#[test]
fn a_message_that_is_too_long_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = PluginHalf::open(
        &skeleton(folder.path()),
        Role::Requester,
        options(70_000, Face::Requests, Wait::Spin),
    );
    let why = "70000 bytes are more than the 65536 that skeleton carries in a message";
    assert_eq!(refused.err().unwrap().to_string(), why);
}

#[test]
fn an_address_that_makes_no_sense_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (address, why) in [
        (&[][..], "too short"),
        (&[0, 0, 0, 0, 1], "say that they have rank 0"),
        (&[7, 0, 0, 0, 1], "say that they have rank 7"),
        (&[1, 0, 0, 0], "cannot connect"),
    ] {
        let half = PluginHalf::open(
            &skeleton(folder.path()),
            Role::Requester,
            options(32, Face::Requests, Wait::Spin),
        );
        let error = Box::new(half.unwrap()).requester(address).err().unwrap().to_string();
        assert!(error.contains(why), "{error}");
    }
}
