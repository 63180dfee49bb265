//! Split-phase global memory over Active Messages, as of Split-C (Culler et al. 1993).
//!
//! A job has ranks. Each rank has segments of memory. A [`GlobalPointer`] names a place in a segment of a rank, and any
//! rank may read and write there, while the owner makes calls of its [`World`].
//!
//! ```
//! use netdyno_global::{Combination, Config, World};
//!
//! // Under `netdyno launch -n 8` there are eight ranks; without a launcher there is one.
//! let mut world = World::launched(Config::default())?;
//! let segment = world.allocate(4096)?;
//! let mut total = [1];
//! world.all_reduce(Combination::Sum, &mut total)?;
//! assert_eq!(total[0], u64::from(world.ranks()));
//!
//! // A put is split-phase: it is complete after the sync.
//! let here = world.pointer(segment, 8);
//! world.put(here, b"hello")?;
//! world.sync()?;
//! let mut bytes = [0; 5];
//! world.read(here, &mut bytes)?;
//! assert_eq!(&bytes, b"hello");
//! assert_eq!(world.fetch_add(world.pointer(segment, 0), 2)?, 0);
//! world.finish()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! docs/global-memory.md has the memory model and the completion rule of each operation.
#![forbid(unsafe_code)]

mod access;
mod bulk;
mod collectives;
mod error;
mod joining;
mod loss;
mod state;
mod traffic;
mod world;

pub use error::{Error, JoinError};
pub use joining::{Config, Joining};
pub use netdyno_protocol::global::GlobalPointer;
pub use netdyno_protocol::global::message::Combination;
pub use netdyno_stack::am;
pub use state::Segment;
pub use traffic::Traffic;
pub use world::World;
