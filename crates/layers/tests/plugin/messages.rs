//! Messages of two processes: what is ordered comes, in the order of receives.

use crate::{options, skeleton};
use netdyno_host::wait::Wait;
use netdyno_layers::half::{Half, Role};
use netdyno_layers::plugin::PluginHalf;
use netdyno_measure::layer::{Face, Messenger};
use netdyno_measure::order::Order;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::thread;

fn answers(answers: u8, bytes: usize) -> Order {
    Order { answers, bytes: bytes as u32 }
}

/// Everything that the face promises, in a second or so.
pub fn exercise(worker: &mut dyn Messenger) {
    let (depth, largest) = (worker.depth(), worker.largest());
    assert!(depth >= 8);
    for bytes in [8, 9, 1000, 5000, largest] {
        for count in 0..=2 {
            for slot in 0..usize::from(count) {
                worker.post_receive(slot, bytes).unwrap();
            }
            worker.post_send(0, bytes, answers(count, bytes)).unwrap();
            for slot in 0..usize::from(count) {
                worker.wait_receive(slot).unwrap();
            }
            worker.wait_send(0).unwrap();
        }
    }
    // No message is longer than its receive: with sizes that all differ, in one order alone.
    for _ in 0..20 {
        let sizes: Vec<usize> = (0..depth).map(|slot| 8 + (slot * 7919) % (largest - 8)).collect();
        for (slot, &bytes) in sizes.iter().enumerate() {
            worker.post_receive(slot, bytes).unwrap();
        }
        for (slot, &bytes) in sizes.iter().enumerate() {
            worker.post_send(slot, 100, answers(1, bytes)).unwrap();
        }
        // Whichever is asked for first.
        for slot in (0..depth).rev() {
            worker.wait_receive(slot).unwrap();
            worker.wait_send(slot).unwrap();
        }
    }
    // A queue is kept full each way, of more than anything between holds.
    for slot in 0..depth {
        worker.post_receive(slot, largest).unwrap();
        worker.post_send(slot, largest, answers(1, largest)).unwrap();
    }
    for message in 0..4 * depth {
        let slot = message % depth;
        while !(worker.test_receive(slot).unwrap() && worker.test_send(slot).unwrap()) {
            thread::yield_now();
        }
        if message < 3 * depth {
            worker.post_receive(slot, largest).unwrap();
            worker.post_send(slot, largest, answers(1, largest)).unwrap();
        }
    }
    for bytes in [0, 7, largest + 1] {
        assert!(
            worker.post_receive(0, bytes).is_err() && worker.post_send(0, bytes, Order::NOTHING).is_err()
        );
    }
    worker.post_receive(0, 8).unwrap();
    assert!(worker.post_receive(0, 8).unwrap_err().0.contains("not complete"));
    // Nothing is left: what comes next is the answer to what is sent next.
    assert!((0..1000).all(|_| !worker.test_receive(0).unwrap()));
    worker.post_send(0, 8, answers(1, 8)).unwrap();
    worker.wait_receive(0).unwrap();
    assert!(worker.other_threads_ns().unwrap() >= 0.0);
}

#[test]
fn the_skeleton_exchanges_messages() {
    let folder = tempfile::tempdir().unwrap();
    let extension = skeleton(folder.path());
    for wait in [Wait::Yield, Wait::Block] {
        let options = options(20_000, Face::Messages, wait);
        let half = PluginHalf::open(&extension, Role::Requester, options).unwrap();
        let (to_support, from_worker) = channel();
        let (to_worker, from_support) = channel();
        to_support.send(half.address()).unwrap();
        let at_support = extension.clone();
        // It serves until the worker is gone, or the test.
        thread::spawn(move || {
            let half = PluginHalf::open(&at_support, Role::Replier, options).unwrap();
            to_worker.send(half.address()).unwrap();
            Box::new(half).replier(&from_worker.recv().unwrap()).unwrap().serve(&AtomicBool::new(false))
        });
        let mut worker = Box::new(half).messenger(&from_support.recv().unwrap()).unwrap();
        exercise(&mut *worker);
    }
}
