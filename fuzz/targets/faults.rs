//! Parses any text as `--faults`. It is refused with a message, or all values are probabilities. These are
//! the same after they are printed and parsed again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netdyno_protocol::faults::Faults;

fuzz_target!(|text: &str| {
    let faults = match text.parse::<Faults>() {
        Ok(faults) => faults,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let Faults { loss, duplicate, reorder, corrupt, burst } = faults;
    assert!([loss, duplicate, reorder, corrupt, burst].iter().all(|p| (0.0..=1.0).contains(p)));
    assert_eq!(faults.to_string().parse(), Ok(faults));
});
