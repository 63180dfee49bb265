//! Validation of the dials of a link (León et al. 2002, section 6): each dial alone is set to several
//! values, and the signature gives all parameters.
//!
//! A launch concerns one dial. Dialled blocks and blocks of the unmodified link alternate in it, so that
//! each dialled block is compared with its own two neighbours:
//!
//! ```text
//! link   x1   link   x2   link   x3   link
//! ```
//!
//! Latency and overheads add to those of the link, and the observed value is the difference to the
//! neighbours. Gaps are set, and the observed value is the plateau of the signature. The gap per byte is
//! measured with messages of some kilobytes, as `G'`: the time of such a message.

pub mod data;
pub mod extract;
pub mod record;

pub use data::{Dialled, DialledPlan};
