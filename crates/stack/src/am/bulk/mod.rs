//! Bulk transfers between local bytes and registered memory of a peer. The documentation of
//! [`am`](super) describes what they do.

mod endpoint;
mod handlers;
mod memory;
mod others;
mod remote;

pub use endpoint::Shared;
pub(super) use endpoint::{Destination, Source};
pub use handlers::{Fetched, Placed, Refused, Stored, Transfer};
pub(super) use handlers::{FetchedHandler, RefusedHandler, StoreHandler};
pub(super) use memory::{Mapped, Memories};
pub use memory::{Memory, MemoryRange};
pub use remote::{Remote, Target};
