//! Whether the dials of a link do what they say (León et al. 2002, section 6): every dial is turned
//! to several values, one at a time, and all parameters are read off the signature.
//!
//! A launch is of one dial. Dialled blocks and blocks of the link as it is alternate in it, so that
//! each dialled one has its own two neighbours to be compared with:
//!
//! ```text
//! link   x1   link   x2   link   x3   link
//! ```
//!
//! Latency and overheads are added to what the link has, and what is observed is the difference to
//! the neighbours. Gaps are set, and what is observed is the plateau of the signature; that of
//! bytes with messages of some kilobytes, as `G'`, what such a message takes.

pub mod data;
pub mod extract;
pub mod record;

pub use data::{Dialled, Planned};
