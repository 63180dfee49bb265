//! Parses any text as a profile of dials. It is refused with a message of one line, or is the same after it
//! is printed and parsed again. Its effective parameters are valid at any time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netdyno_protocol::dial::parameters::{Dials, Own};
use netdyno_protocol::dial::profile::Profile;
use netdyno_protocol::dial::time_profile::TimeProfile;
use netdyno_protocol::random::Random;

fuzz_target!(|text: &str| {
    let profile = match text.parse::<Profile>() {
        Ok(profile) => profile,
        Err(error) => return assert!(!error.to_string().is_empty() && !error.to_string().contains('\n')),
    };
    assert_eq!(profile.to_string().parse().as_ref(), Ok(&profile));
    let Ok(time_profile) = TimeProfile::new(&Dials::NONE, Some(&profile), &Own::UNKNOWN, 0.4) else { return };
    let mut random = Random::new(1);
    let ends = profile.points().iter().map(|point| (point.at_ns as f64 / 0.4) as u64);
    for time in ends.chain([u64::MAX]).flat_map(|end| [end.saturating_sub(1), end, end.saturating_add(1)]) {
        let parameters = time_profile.parameters_at(time, &mut random);
        assert_eq!(parameters.latency.ticks(), time_profile.latency_at(time, &mut random));
        assert!(parameters.latency.ticks() <= time_profile.longest_latency());
        assert!(parameters.gap_per_byte >= 0.0);
    }
});
