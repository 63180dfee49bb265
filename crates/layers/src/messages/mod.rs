//! Messages of any size between two processes. The worker posts sends and receives, tests them and waits
//! for them ([`worker`]). The support process sends what the worker's messages order ([`support`]).
//!
//! Both work with numbered slots for sends and for receives ([`slots`]). [`exchange`] has slots over a wire
//! that transfers one message after the other: sends and receives complete in the order of posting, and
//! make progress inside of calls, or in a progress thread as well ([`threaded`]).

pub(crate) mod exchange;
pub(crate) mod slots;
pub(crate) mod support;
pub(crate) mod threaded;
pub(crate) mod worker;

/// The largest message of a layer without a limit of its own, in bytes: both ends have a buffer for it in
/// each slot.
pub(crate) const MAX_SIZE: usize = 4 << 20;
