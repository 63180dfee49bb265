//! What a host lends to the stack: shared memory, rings in it, the life of a peer
//! process, datagrams, and ways to wait.
//!
//! * [`region`]: memory that both sides of a ring see.
//! * [`segment`]: a region in a sealed memfd, made by one process and opened by another.
//! * [`loan`]: memory of one process that others may read.
//! * [`bytes`]: bytes that others write to while they are looked at.
//! * [`ring`]: one writer, one reader, a cache line a message.
//! * [`shared_word`]: a word in a file that others write.
//! * [`stage`]: cells for what is too long for a message.
//! * [`life`]: whether another process still lives.
//! * [`credentials`]: who is at the other end of a Unix socket.
//! * [`datagram`]: a UDP socket that never waits, and the faults under it.
//! * [`interface`]: where other hosts reach this one.
//! * [`lane`]: one direction between two Virtual Interfaces.
//! * [`pages`]: memory that nothing has touched, and what the system takes to lock it.
//! * [`random`]: bits that nobody guesses.
//! * [`sleep`]: how a side that sleeps is woken by the other one.
//! * [`standard`]: standard output as this process was given it.
//! * [`wait`]: what an idle process does.

pub mod bytes;
mod copy;
pub mod credentials;
pub mod datagram;
pub mod interface;
pub mod lane;
pub mod life;
pub mod loan;
#[cfg(all(test, loom))]
mod models;
pub mod pages;
pub mod random;
pub mod region;
pub mod ring;
pub mod segment;
pub mod shared_word;
pub mod sleep;
pub mod stage;
pub mod standard;
mod sync;
pub mod wait;
