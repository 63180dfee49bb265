//! The checks of requests and their replies: what `logp`, `bulk`, `completion` and `utilisation` measure.

use super::{LARGE, ways_to_wait};
use crate::grounds::{Ground, options};
use netdyno_host::wait::Wait;
use netdyno_layers::catalogue::Layer;
use netdyno_layers::options::LayerOptions;
use netdyno_measure::bulk::data::Direction;
use netdyno_measure::bulk::pattern::BulkPlan;
use netdyno_measure::bulk::signature::SignaturePlan;
use netdyno_measure::completion::pattern::CompletionPlan;
use netdyno_measure::completion::peak::{Peak, PeakSource};
use netdyno_measure::layer::{Face, Transfer};
use netdyno_measure::logp::pattern::{BATCH_MESSAGES, LONGEST_BURST, Plan};
use netdyno_measure::task::{Data, Task};
use netdyno_measure::utilisation::data::Window;
use netdyno_measure::utilisation::pattern::UtilisationPlan;

pub fn every_size(ground: &dyn Ground) {
    for size in [1, 32, ground.layer().max_size().min(LARGE)] {
        let (budget_ns, precision, confidence) = (1e8, 0.1, 0.95);
        let task = Task::Logp(Plan {
            launch: 0,
            shape: None,
            budget_ns,
            precision,
            confidence,
            seed: 1,
            longest_burst: LONGEST_BURST,
            batch_messages: BATCH_MESSAGES,
        });
        let Some(data) = ground.measure(options(size, Face::Requests), &task) else { continue };
        let Data::Logp(data) = data else { panic!("{data:?}") };
        let trips = &data.rtt.batches_ns;
        assert!(!trips.is_empty() && trips.iter().all(|&ns| ns > 0.0), "{size} B: {trips:?}");
        assert!(data.signature.len() >= 2, "{size} B");
    }
}

/// Measures transfers in both directions, with the signature of a small size.
pub fn sized(ground: &dyn Ground) {
    sized_of(ground, Direction::Store);
    sized_of(ground, Direction::Get);
}

fn sized_of(ground: &dyn Ground, direction: Direction) {
    let largest_bytes = ground.layer().max_transfer().min(LARGE);
    let (budget_ns, precision, confidence) = (3e8, 0.1, 0.95);
    let plan = BulkPlan {
        launch: 0,
        shape: None,
        largest_bytes,
        direction,
        signatures: SignaturePlan::of_sizes(&[8], None),
        budget_ns,
        precision,
        confidence,
        seed: 1,
    };
    let Some(data) = ground.measure(options(largest_bytes, Face::Sized), &Task::Bulk(plan)) else { return };
    let Data::Bulk(data) = data else { panic!("{data:?}") };
    let sizes: Vec<usize> = data.sizes.iter().map(|size| size.size_bytes).collect();
    assert_eq!((sizes.first(), sizes.last()), (Some(&1), Some(&largest_bytes)));
    assert!(data.sizes.iter().all(|size| !size.rtt_ns.is_empty() && !size.o_r_ns.is_empty()));
    let are_sound = |times: &[f64]| !times.is_empty() && times.iter().all(|&ns| ns > 0.0);
    assert!(data.sizes.iter().all(|size| are_sound(&size.transfer_ns)), "{direction:?}");
    let has_own = matches!(ground.layer(), Layer::AmShm | Layer::AmUdp | Layer::AmXdp);
    let (of_sizes, of_signature) = match (direction, has_own) {
        (Direction::Store, true) => (Transfer::Request, Transfer::Store),
        (Direction::Store, false) => (Transfer::Request, Transfer::Request),
        (Direction::Get, true) => (Transfer::Get, Transfer::Get),
        (Direction::Get, false) => (Transfer::Reply, Transfer::Reply),
    };
    assert_eq!(data.shape.transfer, of_sizes, "{direction:?}");
    let [signature] = &data.signatures[..] else { panic!("{direction:?}") };
    assert_eq!((signature.size_bytes, signature.transfer), (8, of_signature));
    assert!(
        are_sound(&signature.data.rtt.batches_ns) && signature.data.signature.len() >= 2,
        "{direction:?}"
    );
}

/// The sizes of the checks of `completion` and `utilisation`.
const FEW_SIZES: [usize; 6] = [1, 4, 16, 64, 256, 1024];

/// Returns the ways to wait in which streams are measured. Processes that spin and share a processor take a time slice
/// for each message. A simulated layer ignores its way.
fn ways_to_stream(layer: Layer) -> Vec<Wait> {
    let waits: Vec<Wait> = ways_to_wait(layer).filter(|&wait| wait != Wait::Spin).collect();
    if waits.is_empty() { vec![Wait::Yield] } else { waits }
}

/// Measures round trips and streams of every size by each way to wait.
pub fn completion(ground: &dyn Ground) {
    let largest_bytes = 1 << 10;
    for wait in ways_to_stream(ground.layer()) {
        let peak = Peak::of_one_copy();
        let task = Task::Completion(CompletionPlan {
            launch: 0,
            shape: None,
            largest_bytes,
            peak,
            budget_ns: 1e6,
            seed: 1,
        });
        let chosen = LayerOptions { wait, ..options(largest_bytes, Face::Sized) };
        let Some(data) = ground.measure(chosen, &task) else { continue };
        let Data::Completion(data) = data else { panic!("{data:?}") };
        let sizes: Vec<usize> = data.shape.sizes.iter().map(|size| size.size_bytes).collect();
        assert_eq!((&sizes[..], data.shape.peak.source), (&FEW_SIZES[..], PeakSource::Copy), "{wait}");
        assert_eq!(data.sizes.len(), sizes.len(), "{wait}");
        for (shape, size) in data.shape.sizes.iter().zip(&data.sizes) {
            assert!(shape.window >= 1 && shape.row >= 1 && shape.trips >= 1, "{wait}: {shape:?}");
            for times in [&size.half_rtt_ns, &size.alone_ns] {
                assert!(!times.is_empty() && times.iter().all(|&ns| ns > 0.0), "{wait}: {size:?}");
            }
            let batches = size.half_rtt_ns.len();
            for times in [&size.alone_ns, &size.issue_ns, &size.done_ns, &size.copy_ns] {
                assert_eq!(times.len(), batches, "{wait}: {size:?}");
            }
        }
    }
}

/// Measures the processor time of both sides. A window has messages, and both sides tell an account of all of it.
pub fn utilisation(ground: &dyn Ground) {
    let layer = ground.layer();
    for wait in ways_to_stream(layer) {
        let largest_bytes = 1 << 10;
        let task = Task::Utilisation(UtilisationPlan {
            launch: 0,
            shape: None,
            largest_bytes,
            budget_ns: 1e6,
            seed: 1,
        });
        let chosen = LayerOptions { wait, ..options(largest_bytes, Face::Sized) };
        let Some(data) = ground.measure(chosen, &task) else { continue };
        let Data::Utilisation(data) = data else { panic!("{data:?}") };
        let sizes: Vec<usize> = data.shape.sizes.iter().map(|size| size.size_bytes).collect();
        assert_eq!((&sizes[..], data.sizes.len()), (&FEW_SIZES[..], FEW_SIZES.len()), "{layer}, {wait}");
        assert!(data.one_machine && !data.idle.is_empty(), "{layer}, {wait}");
        let is_sound = |window: &Window| {
            let sides = [window.requester, window.replier];
            sides.iter().all(|side| side.elapsed_ns > 0.0 && side.busy_ns() >= 0.0)
                && sides.iter().any(|side| side.busy_ns() > 0.0)
        };
        for windows in data.sizes.iter().flat_map(|size| [&size.round_trips, &size.stream]) {
            let has_messages = windows.iter().all(|window| window.messages > 0);
            assert!(!windows.is_empty() && has_messages, "{layer}, {wait}: {windows:?}");
            assert!(windows.iter().all(is_sound), "{layer}, {wait}: {windows:?}");
        }
        assert!(data.idle.iter().all(|window| window.messages == 0), "{layer}, {wait}");
        assert!(data.sizes.iter().all(|size| !size.alone_ns.is_empty()), "{layer}, {wait}");
    }
}
