//! Tests that a launch keeps to its time budget. The layer is simulated, but claims to run in real time. So
//! the pattern shortens the launch to fit the budget, as it does over a real layer.

#![allow(clippy::unwrap_used, reason = "a test")]

use netdyno_layers::sim::SimRequester;
use netdyno_measure::bulk;
use netdyno_measure::bulk::data::Direction;
use netdyno_measure::bulk::pattern::BulkPlan;
use netdyno_measure::layer::{LayerError, Requester, SizedRequester, Time, Work};
use netdyno_measure::logp;
use netdyno_measure::logp::pattern::{BATCH_MESSAGES, LONGEST_BURST, Plan};

/// A simulated layer that claims to run in real time: its `Time::is_virtual` is false.
struct Awaited(SimRequester);

impl Time for Awaited {
    fn now(&mut self) -> u64 {
        self.0.now()
    }

    fn tick_ns(&self) -> f64 {
        self.0.tick_ns()
    }

    fn work(&self, d_ns: f64) -> Work {
        self.0.work(d_ns)
    }

    fn compute(&mut self, work: Work) {
        self.0.compute(work);
    }
}

impl Requester for Awaited {
    fn issue(&mut self) -> Result<bool, LayerError> {
        self.0.issue()
    }

    fn poll(&mut self) -> Result<bool, LayerError> {
        self.0.poll()
    }

    fn wait(&mut self) -> Result<(), LayerError> {
        self.0.wait()
    }

    fn in_flight(&self) -> usize {
        self.0.in_flight()
    }

    fn max_window(&self) -> usize {
        self.0.max_window()
    }

    fn set_window(&mut self, window: usize) {
        self.0.set_window(window);
    }
}

impl SizedRequester for Awaited {
    fn largest(&self) -> usize {
        1 << 20
    }

    fn set_sizes(&mut self, request_bytes: usize, reply_bytes: usize) -> Result<(), LayerError> {
        self.0.set_sizes(request_bytes, reply_bytes)
    }
}

const TRUTHS: [&str; 5] = [
    "o_s=100ns,o_r=100ns,g=200ns,L=300ns,noise=0.05",
    "o_s=2us,o_r=2us,g=6us,L=5us,window=64,noise=0.05",
    "o_s=5us,o_r=5us,g=30us,L=20us,window=32,noise=0.05",
    "o_s=50us,o_r=50us,g=300us,L=200us,window=16,noise=0.05",
    "o_s=300us,o_r=300us,g=1ms,L=500us,window=8,noise=0.05",
];

/// Returns the durations of a first launch and of a later launch of the same shape, in ns.
fn signature(truth: &str, budget_ns: f64) -> [f64; 2] {
    let mut plan = Plan {
        launch: 0,
        shape: None,
        budget_ns,
        precision: 0.001,
        confidence: 0.95,
        seed: 1,
        longest_burst: LONGEST_BURST,
        batch_messages: BATCH_MESSAGES,
    };
    let mut run = || {
        let mut layer = Awaited(SimRequester::new(truth.parse().unwrap(), 1));
        let data = logp::pattern::run(&mut layer, &plan, &mut |_| {}).unwrap();
        plan.shape = Some(data.shape);
        data.took_ns
    };
    [run(), run()]
}

fn every_size(truth: &str, budget_ns: f64) -> [f64; 2] {
    let mut plan = BulkPlan {
        launch: 0,
        shape: None,
        largest_bytes: 1 << 20,
        direction: Direction::Store,
        signatures: Vec::new(),
        budget_ns,
        precision: 0.001,
        confidence: 0.95,
        seed: 1,
    };
    let mut run = || {
        let truth = format!("{truth},G=0.2ns/B").parse().unwrap();
        let data = bulk::pattern::run(&mut Awaited(SimRequester::new(truth, 1)), &plan, &mut |_| {}).unwrap();
        plan.shape = Some(data.shape);
        data.took_ns
    };
    [run(), run()]
}

/// A launch takes at most twice its budget plus the duration of the smallest launch.
#[test]
fn a_launch_that_does_not_fit_is_shortened() {
    for truth in TRUTHS {
        let smallest = signature(truth, 1.0);
        for budget_ns in [30e6, 100e6, 300e6, 1e9] {
            let took = signature(truth, budget_ns);
            for (took, smallest) in took.iter().zip(smallest) {
                assert!(
                    *took <= 2.0 * budget_ns + smallest,
                    "{truth}: {took:e} of {budget_ns:e}, {smallest:e}"
                );
            }
        }
    }
}

#[test]
fn a_launch_of_every_size_that_does_not_fit_is_shortened() {
    for truth in &TRUTHS[..3] {
        let smallest = every_size(truth, 1.0);
        for budget_ns in [100e6, 300e6, 1e9] {
            let [first, later] = every_size(truth, budget_ns);
            // The first launch also searches for the sizes.
            assert!(first <= 6.0 * budget_ns + smallest[0], "{truth}: {first:e} of {budget_ns:e}");
            assert!(later <= 1.7 * budget_ns + smallest[1], "{truth}: {later:e} of {budget_ns:e}");
        }
    }
}

/// The smallest launch still measures o_s and o_r within 2 %.
#[test]
fn the_smallest_launch_measures() {
    for truth in TRUTHS {
        let truth = truth.trim_end_matches(",noise=0.05");
        let plan = Plan {
            launch: 0,
            shape: None,
            budget_ns: 1.0,
            precision: 0.02,
            confidence: 0.95,
            seed: 1,
            longest_burst: LONGEST_BURST,
            batch_messages: BATCH_MESSAGES,
        };
        let mut layer = Awaited(SimRequester::new(truth.parse().unwrap(), 1));
        let data = logp::pattern::run(&mut layer, &plan, &mut |_| {}).unwrap();
        let found = logp::extract::extract(&[data], 0.95, 0.02).unwrap().parameters;
        let parsed: netdyno_protocol::sim::Truth = truth.parse().unwrap();
        let ns = |ps: u64| ps as f64 / 1e3;
        for (parameter, value_ps) in [(&found.o_s, parsed.o_s_ps), (&found.o_r, parsed.o_r_ps)] {
            let value = parameter.value_ns.unwrap();
            assert!((value / ns(value_ps) - 1.0).abs() < 0.02, "{truth}: {value}");
        }
    }
}
