//! What every layer with messages does, by the face alone.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use common::{LAYERS, answers, between, options, round_trip, run, with_support};
use netdyno_host::wait::Wait;
use netdyno_layers::catalogue::Layer;
use netdyno_layers::half::{self, Half, LayerOptions, PEER_TIMEOUT, Replier, Role};
use netdyno_measure::layer::Messenger;
use netdyno_measure::order::Order;
use netdyno_measure::overlap::plan::{METHODS, OverlapPlan};
use netdyno_measure::task::{Data, Task};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Sizes around everything that a layer does in another way, up to its largest.
fn sizes(largest: usize) -> Vec<usize> {
    let all = [8, 9, 31, 64, 1000, 5000, 65_499, 65_536, 100_000, 1 << 20, largest];
    all.into_iter().filter(|&size| size <= largest).collect()
}

#[test]
fn as_many_answers_come_as_are_ordered() {
    for layer in LAYERS {
        let largest = layer.max_message();
        run(layer, options(largest), |worker| {
            for bytes in sizes(largest) {
                for count in 0..=2 {
                    round_trip(worker, bytes, answers(count, bytes)).unwrap();
                    round_trip(worker, 8, answers(count, bytes)).unwrap();
                    round_trip(worker, bytes, answers(count, 8)).unwrap();
                }
            }
            // Nothing is left: what comes next is the answer to what is sent next.
            worker.post_receive(0, 8).unwrap();
            for _ in 0..1000 {
                assert!(!worker.test_receive(0).unwrap(), "{layer}");
            }
            worker.post_send(0, 8, answers(1, 8)).unwrap();
            worker.wait_receive(0).unwrap();
        });
    }
}

#[test]
fn any_way_of_waiting_will_do() {
    for layer in LAYERS {
        for &wait in layer.waits() {
            run(layer, LayerOptions { wait, ..options(100_000.min(layer.max_message())) }, |worker| {
                for bytes in sizes(worker.largest()) {
                    round_trip(worker, bytes, answers(2, bytes)).unwrap();
                }
                for slot in 0..worker.depth() {
                    worker.post_send(slot, 5000, Order::NOTHING).unwrap();
                }
                for slot in 0..worker.depth() {
                    worker.wait_send(slot).unwrap();
                }
            });
        }
    }
}

/// No message is longer than the receive that it is for: with sizes that all differ that is so
/// in one order only.
#[test]
fn messages_are_received_in_the_order_of_receives() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    for layer in LAYERS {
        let largest = 200_000.min(layer.max_message());
        run(layer, options(largest), |worker| {
            for _ in 0..20 {
                let mut slots: Vec<usize> = (0..worker.depth()).collect();
                rng.shuffle(&mut slots);
                let sizes: Vec<usize> = slots.iter().map(|_| rng.usize(8..=largest)).collect();
                for (&slot, &bytes) in slots.iter().zip(&sizes) {
                    worker.post_receive(slot, bytes).unwrap();
                }
                for (&slot, &bytes) in slots.iter().zip(&sizes) {
                    worker.post_send(slot, rng.usize(8..=largest), answers(1, bytes)).unwrap();
                }
                rng.shuffle(&mut slots);
                for &slot in &slots {
                    worker.wait_receive(slot).unwrap();
                    worker.wait_send(slot).unwrap();
                }
            }
        });
    }
}

/// Ping-pong with a queue of `depth`: whatever arrived is answered and posted again.
fn ping_pong(worker: &mut dyn Messenger, depth: usize, bytes: usize, messages: usize) {
    for slot in 0..depth {
        worker.post_receive(slot, bytes).unwrap();
    }
    for slot in 0..depth {
        worker.post_send(slot, bytes, answers(1, bytes)).unwrap();
    }
    let (mut came, mut slot) = (0, 0);
    while came < messages {
        if !worker.test_receive(slot).unwrap() {
            thread::yield_now();
            continue;
        }
        came += 1;
        worker.wait_send(slot).unwrap();
        if came + depth <= messages {
            worker.post_receive(slot, bytes).unwrap();
            worker.post_send(slot, bytes, answers(1, bytes)).unwrap();
        }
        slot = (slot + 1) % depth;
    }
}

#[test]
fn a_queue_is_kept_full_each_way() {
    for layer in LAYERS {
        run(layer, options(layer.max_message()), |worker| {
            assert!(worker.depth() >= 8, "{layer}");
            for depth in [1, 3, worker.depth()] {
                for (bytes, messages) in [(8, 500), (5000, 500), (65_499, 200)] {
                    ping_pong(worker, depth, bytes, messages);
                }
            }
            let largest = worker.largest();
            ping_pong(worker, 4, largest, 16);
        });
    }
}

/// Both ends send more than anything between them holds, and neither stops for the other.
#[test]
fn what_does_not_fit_is_sent_by_later_calls() {
    for layer in LAYERS {
        run(layer, options(layer.max_message()), |worker| {
            let (depth, bytes) = (worker.depth(), worker.largest());
            ping_pong(worker, depth, bytes, depth);
        });
    }
}

/// Post, work, wait: primed by a message with two answers, so that one stands ready in each
/// cycle, and drained by one with none. Calls are rare.
#[test]
fn messages_wait_for_a_worker_that_works() {
    for layer in LAYERS {
        run(layer, options(100_000.min(layer.max_message())), |worker| {
            let bytes = worker.largest();
            let mut cycle = |order| {
                worker.post_receive(0, bytes).unwrap();
                worker.post_send(0, bytes, order).unwrap();
                thread::sleep(Duration::from_millis(2));
                worker.wait_receive(0).unwrap();
                worker.wait_send(0).unwrap();
            };
            cycle(answers(2, bytes));
            for _ in 0..50 {
                cycle(answers(1, bytes));
            }
            cycle(Order::NOTHING);
            round_trip(worker, 8, answers(1, 8)).unwrap();
        });
    }
}

/// More messages one way than receivers have room for.
#[test]
fn a_row_of_messages_is_ended_by_one_that_is_answered() {
    for layer in LAYERS {
        run(layer, options(100_000.min(layer.max_message())), |worker| {
            for bytes in [8, 5000, 40_000, worker.largest()] {
                worker.post_receive(0, 8).unwrap();
                for message in 0..400 {
                    let slot = message % worker.depth();
                    worker.wait_send(slot).unwrap();
                    worker.post_send(slot, bytes, Order::NOTHING).unwrap();
                }
                worker.wait_send(0).unwrap();
                worker.post_send(0, bytes, answers(1, 8)).unwrap();
                worker.wait_receive(0).unwrap();
                for slot in 0..worker.depth() {
                    worker.wait_send(slot).unwrap();
                }
            }
        });
    }
}

#[test]
fn messages_come_through_a_bad_network() {
    let faults = "loss=0.05,dup=0.05".parse().unwrap();
    run(Layer::AmUdp, LayerOptions { faults, ..options(100_000) }, |worker| {
        ping_pong(worker, 8, 5000, 200);
        ping_pong(worker, 2, 100_000, 20);
        let transport = worker.transport().unwrap();
        assert!(transport.retransmitted > 0, "{transport:?}");
    });
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    for layer in LAYERS {
        run(layer, options(1000), |worker| {
            for bytes in [0, 7, 1001, usize::MAX] {
                assert!(worker.post_receive(0, bytes).is_err(), "{layer}");
                assert!(worker.post_send(0, bytes, Order::NOTHING).is_err(), "{layer}");
            }
            let depth = worker.depth();
            let error = worker.post_receive(depth, 8).unwrap_err();
            assert!(error.0.contains("slot"), "{error}");
            worker.post_receive(0, 8).unwrap();
            let error = worker.post_receive(0, 8).unwrap_err();
            assert!(error.0.contains("not complete"), "{error}");
            // What was refused has changed nothing.
            worker.post_send(0, 1000, answers(1, 8)).unwrap();
            worker.wait_receive(0).unwrap();
        });
        for size in [0, 7, layer.max_message() + 1] {
            let error = half::open(layer, Role::Requester, options(size)).err().unwrap();
            assert!(error.0.contains("use a size of 8 to"), "{error}");
        }
    }
}

#[test]
fn a_worker_that_goes_away_ends_the_support() {
    for layer in LAYERS {
        let at_rest = run(layer, options(5000), |worker| round_trip(worker, 8, answers(1, 8)).unwrap());
        let at_work = run(layer, options(5000), |worker| {
            for slot in 0..worker.depth() {
                worker.post_receive(slot, 5000).unwrap();
                worker.post_send(slot, 5000, answers(2, 5000)).unwrap();
            }
        });
        assert!(at_rest.contains("closed"), "{layer}: {at_rest}");
        println!("{layer}: {at_work}");
    }
}

#[test]
fn a_support_that_goes_away_ends_the_worker() {
    for layer in LAYERS {
        with_support(layer, options(5000), drop, |worker| {
            let mut work = || {
                worker.post_receive(0, 8)?;
                worker.post_send(0, 5000, answers(1, 8))?;
                worker.wait_receive(0)
            };
            let error = work().unwrap_err();
            println!("{layer}: {error}");
        });
    }
}

#[test]
fn a_support_that_is_silent_is_given_up() {
    let threads = LAYERS.map(|layer| {
        thread::spawn(move || {
            let wait = *layer.waits().last().unwrap();
            assert_ne!(wait, Wait::Spin);
            let (say_done, done) = mpsc::channel::<()>();
            let stay = move |support| {
                let _ = done.recv();
                drop(support);
            };
            with_support(layer, LayerOptions { wait, ..options(5000) }, stay, |worker| {
                worker.post_receive(0, 8).unwrap();
                worker.post_send(0, 5000, answers(1, 8)).unwrap();
                let error = worker.wait_receive(0).unwrap_err();
                assert!(error.0.contains(&format!("nothing for {PEER_TIMEOUT:?}")), "{layer}: {error}");
                say_done.send(()).unwrap();
            });
        })
    });
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn all_methods_run() {
    for layer in LAYERS {
        let options = options(5000);
        let plan = OverlapPlan {
            launch: 0,
            shape: None,
            sizes: vec![100, 5000],
            queue: 4,
            methods: METHODS.to_vec(),
            budget_ns: 1e6,
            precision: 0.1,
            seed: 1,
        };
        let serve = |mut support: Box<dyn Replier>| drop(support.serve(&AtomicBool::new(false)));
        let connect = |half: Box<dyn Half>, address: &[u8]| half.requester(address);
        between(layer, options, serve, connect, |mut worker| {
            let data = worker.measure(&Task::Overlap(plan), &mut |_| {}).unwrap();
            let Data::Overlap(data) = data else { panic!("{layer}: {data:?}") };
            let sizes: Vec<usize> = data.sizes.iter().map(|size| size.size_bytes).collect();
            assert_eq!(sizes, [100, 5000], "{layer}");
            for size in &data.sizes {
                assert!(size.polling.iter().all(|batches| !batches.is_empty()), "{layer}: {size:?}");
                assert!(size.pww.iter().all(|batches| !batches.is_empty()), "{layer}: {size:?}");
                assert!(size.knee.is_some(), "{layer}: {size:?}");
            }
        });
    }
}
