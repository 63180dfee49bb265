//! The dials of a link: how each of L, o_s, o_r, g_s, g_r and G changes the times of a message (León et al.
//! 2002, sections 4 and 5; Martin et al. 1997).
//!
//! Only the overheads use the processor. The other dials only change times that are written down:
//!
//! ```text
//! a message of k bytes departs    d = max(now, free)         free := d + g_s + (k - 1) G
//! its last byte has left          s = d + (k - 1) G          the stamp, which travels with it
//! it is due at the receiver       s + L
//! it is released                  r = max(due, free')        free' := r + g_r
//! ```
//!
//! `free` belongs to the sending process and `free'` to the receiving process, each for all of its peers: a
//! process has one interface, and g_s and g_r describe it. No function here waits or sleeps. The sender goes
//! on at once, and the receiver learns when to poll again. Messages between two processes keep their order.
//!
//! Times are ticks of one clock that both sides read. The length of a tick is arbitrary. Without such a
//! clock, or if the stamp cannot travel, the time at which a message is first seen replaces the stamp. This
//! charges a program that polls rarely for latency that it had hidden.
//!
//! * [`table`]: the dials, one entry for each.
//! * [`setting`]: the syntax of a dial setting.
//! * [`spread`]: random variation from message to message.
//! * [`profile`]: time profiles: dials that change with time.
//! * [`parameters`]: the effective parameters, in ticks.
//! * [`time_profile`]: effective parameters that vary by chance or change with time.
//! * [`variation`]: the state of a process from which each message gets its effective parameters.
//! * [`timing`]: the four lines above.
//! * [`link`]: estimates of the link's own time.
//! * [`stamp`]: the encoding of a stamp in 32 bits.
//! * [`hold`]: the messages that are not due yet.
//! * [`polls`]: when to wait for a held message, and when to poll the link.

pub mod hold;
pub mod link;
mod normal;
pub mod parameters;
pub mod polls;
pub mod profile;
mod quantiles;
pub mod setting;
pub mod spread;
pub mod stamp;
pub mod table;
pub mod time_profile;
pub mod timing;
pub mod variation;
