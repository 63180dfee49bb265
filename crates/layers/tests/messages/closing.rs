//! Tests of messages whose peer closes or is silent.

use crate::common::{answers, cases, round_trip, run, with_support};
use netdyno_host::wait::Wait;
use netdyno_layers::options::LayerOptions;
use netdyno_layers::peer_wait::PEER_TIMEOUT;
use std::sync::mpsc;
use std::thread;

#[test]
fn a_worker_that_goes_away_ends_the_support() {
    for (layer, options) in cases(5000) {
        let at_rest = run(layer, options.clone(), |worker| round_trip(worker, 8, answers(1, 8)).unwrap());
        let at_work = run(layer, options, |worker| {
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
    for (layer, options) in cases(5000) {
        with_support(layer, options, drop, |worker| {
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
    let threads: Vec<_> = cases(5000)
        .into_iter()
        .map(|(layer, options)| {
            thread::spawn(move || {
                let wait = *layer.waits().last().unwrap();
                assert_ne!(wait, Wait::Spin);
                let (say_done, done) = mpsc::channel::<()>();
                let stay = move |support| {
                    let _ = done.recv();
                    drop(support);
                };
                with_support(layer, LayerOptions { wait, ..options }, stay, |worker| {
                    worker.post_receive(0, 8).unwrap();
                    worker.post_send(0, 5000, answers(1, 8)).unwrap();
                    let error = worker.wait_receive(0).unwrap_err();
                    assert!(error.0.contains(&format!("nothing for {PEER_TIMEOUT:?}")), "{layer}: {error}");
                    say_done.send(()).unwrap();
                });
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}
