//! What a host lends to the stack: shared memory, rings in it, the life of a peer
//! process, and ways to wait.
//!
//! * [`region`]: memory that both sides of a ring see.
//! * [`segment`]: a region in a sealed memfd, made by one process and opened by another.
//! * [`ring`]: one writer, one reader, a cache line a message.
//! * [`life`]: whether another process still lives.
//! * [`wait`]: what an idle process does.

pub mod life;
pub mod region;
pub mod ring;
pub mod segment;
pub mod wait;
