//! Active Messages over shared memory, and over UDP.
//!
//! * [`requests`]: requests of one size. * [`sized`]: requests of any size. * [`messages`]: messages.
//! * [`group`]: many processes.
//!
//! `endpoint` opens endpoints. `echo` has the messages, and the handler of requests, that two processes and
//! groups share. `short` sends messages of up to four words. `store` connects endpoints that store into
//! each other's memory.

pub(crate) mod echo;
pub(crate) mod endpoint;
pub(crate) mod group;
pub(crate) mod messages;
pub(crate) mod one_sided;
pub(crate) mod requests;
pub(crate) mod short;
pub(crate) mod sized;
mod store;

use netdyno_host::life::Life;
use netdyno_host::segment::{Segment, open_segment};
use netdyno_stack::am::{LONGEST_PAYLOAD, STAMP_LEN};

/// The largest medium message over shared memory, in bytes.
pub(crate) const MAX_SHM_SIZE: usize = 1 << 20;
/// The largest medium message over UDP, in bytes.
pub(crate) const MAX_UDP_SIZE: usize = LONGEST_PAYLOAD;
/// The largest medium message over UDP where dials are set, in bytes: each message has a stamp.
pub(crate) const MAX_DIALLED_UDP_SIZE: usize = LONGEST_PAYLOAD - STAMP_LEN;

/// Returns why there is no shared memory here, if there is none. This process maps its own segment, as two
/// processes map each other's.
pub(crate) fn shared_memory_is_missing() -> Option<String> {
    let share = || {
        let pid = std::process::id();
        let segment = Segment::create(1).map_err(|error| error.to_string())?;
        open_segment(pid, segment.descriptor(), segment.nonce(), 1).map_err(|error| error.to_string())?;
        Life::of(pid).map_err(|error| format!("processes cannot be watched: {error}"))
    };
    share().err()
}
