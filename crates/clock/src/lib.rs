//! Time and place: the time stamp counter, its calibration, calibrated work, and the
//! processors a process runs on. Small enough to be part of a foreign process.
//!
//! * [`ticks`]: reading the counter.
//! * [`bounce`]: how far two processors are apart at this moment.
//! * [`calibrate`]: what a tick is worth, what reading costs, what interrupts.
//! * [`pace`]: how fast processors are while something else runs on them.
//! * [`work`]: computation that takes a given time.
//! * [`place`]: pinning, and how far two processors are apart.

pub mod bounce;
pub mod calibrate;
pub mod pace;
pub mod place;
pub mod ticks;
pub mod work;
