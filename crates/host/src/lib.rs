//! Provides the host facilities that the stack uses: shared memory, message rings, process liveness, UDP
//! sockets and wait strategies.
//!
//! * [`region`]: memory that both ends of a ring map.
//! * [`segment`]: a region in a sealed memfd, created by one process and opened by another.
//! * [`loan`]: memory of one process that other processes map read-only, for zero-copy sends.
//! * [`bytes`]: bytes that other threads and processes may write at any time.
//! * [`ring`]: a single-producer, single-consumer message ring with one cache line a message.
//! * [`shared_word`]: a 32-bit word in a file that other processes write.
//! * [`bounce`]: bounce buffers for payloads too long for a message.
//! * [`life`]: detects the end of another process.
//! * [`credentials`]: the process and user at the other end of a Unix socket.
//! * [`datagram`]: the wires of datagrams: a nonblocking UDP socket, and a wire that injects faults.
//! * [`ethernet`]: an Ethernet interface: its hardware address, its longest packet and its queues.
//! * [`inherited`]: descriptors that the parent of this process left open for it.
//! * [`interface`]: the addresses of this host's network interfaces.
//! * [`lane`]: one direction of a shared-memory connection between two Virtual Interfaces.
//! * [`machine`]: the identity of the machine.
//! * [`pages`]: anonymous memory that is not yet resident, and the cost of locking it.
//! * [`progress`]: a thread that makes progress while the program computes.
//! * [`random`]: unpredictable random bytes.
//! * [`signals`]: starts threads that take no signals of the program.
//! * [`sleep`]: the wake-up protocol between a sleeping side and its peer.
//! * [`standard`]: the state of standard output at process start.
//! * [`timed`]: a connection that is read until a time.
//! * [`tied`]: child processes that end with their parent.
//! * [`wakeup`]: a wake-up that other processes ring.
//! * [`wait`]: the wait strategies of an idle process.

pub mod bounce;
pub mod bytes;
mod copy;
pub mod credentials;
pub mod datagram;
pub mod ethernet;
pub mod inherited;
pub mod interface;
pub mod lane;
pub mod life;
pub mod loan;
pub mod machine;
pub mod memory;
#[cfg(all(test, loom))]
mod models;
pub mod pages;
pub mod progress;
pub mod random;
pub mod region;
pub mod ring;
pub mod segment;
pub mod shared_word;
pub mod signals;
pub mod sleep;
pub mod standard;
mod sync;
pub mod tied;
pub mod timed;
pub mod wait;
pub mod wakeup;
