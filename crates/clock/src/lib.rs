//! Time and CPU placement: the time stamp counter, its calibration, calibrated work, and the processors of a
//! process. The crate is small enough to be part of a foreign process.
//!
//! * [`ticks`]: reads the counter.
//! * [`bounce`]: measures the cache-line round trip between two processors.
//! * [`calibrate`]: measures the length of a tick, the cost of a reading, and OS noise.
//! * [`pace`]: measures how fast processors run while a workload runs on them.
//! * [`work`]: computation that takes a given time.
//! * [`place`]: CPU pinning, and the topological distance of two processors.

pub mod bounce;
pub mod calibrate;
pub mod pace;
pub mod place;
pub mod ticks;
pub mod work;
