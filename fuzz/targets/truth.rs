//! Parses any text as `--truth`. It is refused with a message, or its parameters are within their limits.
//! Times, counts and noise are the same after they are printed and parsed again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netdyno_protocol::sim::{Shape, Truth};

const MAX_PS: u64 = 10_000_000_000_000;

fuzz_target!(|text: &str| {
    let truth = match text.parse::<Truth>() {
        Ok(truth) => truth,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let durations = [truth.o_s_ps, truth.o_r_ps, truth.o_poll_ps, truth.g_ps, truth.l_ps];
    assert!(durations.iter().all(|&ps| ps <= MAX_PS));
    assert!(truth.o_s_ps > 0 && truth.o_r_ps > 0);
    assert!((1..=1 << 20).contains(&truth.capacity) && (1..=1 << 20).contains(&truth.window));
    assert!((0.0..=0.25).contains(&truth.noise.share));
    let again = spelled(&truth).parse::<Truth>().map(|again| spelled(&again));
    assert_eq!(again, Ok(spelled(&truth)));
});

fn spelled(truth: &Truth) -> String {
    let ns = |ps: u64| format!("{}.{:03}ns", ps / 1000, ps % 1000);
    format!(
        "o_s={},o_r={},o_poll={},g={},L={},capacity={},window={},noise={},noise_shape={}",
        ns(truth.o_s_ps),
        ns(truth.o_r_ps),
        ns(truth.o_poll_ps),
        ns(truth.g_ps),
        ns(truth.l_ps),
        truth.capacity,
        truth.window,
        truth.noise.share,
        match truth.noise.shape {
            Shape::Normal => "normal",
            Shape::Uniform => "uniform",
            Shape::Laplace => "laplace",
            Shape::Exponential => "exponential",
        },
    )
}
