//! The dials of a link: what each of L, o_s, o_r, g_s, g_r and G does to a message, as arithmetic
//! on times (León et al. 2002, sections 4 and 5; Martin et al. 1997).
//!
//! Only the overheads take the processor. Everything else is a time that is written down:
//!
//! ```text
//! a message of k bytes departs    d = max(now, free)         free := d + g_s + (k - 1) G
//! its last byte has left          s = d + (k - 1) G          the stamp, which travels with it
//! it is due at the receiver       s + L
//! it is released                  r = max(due, free')        free' := r + g_r
//! ```
//!
//! `free` is of the sending process, `free'` of the receiving one, whoever the other side is: g_s
//! and g_r are of a process's one interface. Nothing waits here, and nothing sleeps: a sender goes
//! on, a receiver is told when to look again. Between two processes nothing overtakes.
//!
//! Times are ticks of one clock that both sides read, whatever a tick is worth. Where they have
//! none, or the stamp cannot travel, the time at which a message is first seen must serve, which
//! charges a program that seldom looks for what it had hidden.
//!
//! * [`setting`]: how a dial is spelled. * [`spread`]: what differs from message to message.
//! * [`profile`]: what changes with time. * [`terms`]: what dials come to, in ticks. * [`course`]: the
//!   same of what differs and changes. * [`variation`]: what a message is put under of it.
//! * [`timing`]: the four lines above. * [`link`]: what the link itself takes. * [`stamp`]: how a time travels. * [`hold`]: the messages that
//!   are not due yet. * [`polls`]: when to wait for them, and when to look at the link.

pub mod course;
pub mod hold;
pub mod link;
mod math;
pub mod polls;
pub mod profile;
mod quantiles;
pub mod setting;
pub mod spread;
pub mod stamp;
pub mod terms;
pub mod timing;
pub mod variation;
