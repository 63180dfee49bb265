//! ONC remote procedure calls, version 2 (RFC 5531), over UDP and over TCP. A call is a request, and its reply
//! is the reply. docs/rpc.md describes the program that is called.
//!
//! * [`half`]: two processes. * [`group`]: many processes.
//!
//! `client` makes calls of one size, and `sized` calls of any size. `calls` knows the calls without a reply.
//! `service` answers calls. `udp` and `tcp` carry both. `outgoing` holds a message that is sent. The formats are
//! in `netdyno_protocol::frame`.

mod calls;
mod client;
pub(crate) mod group;
pub(crate) mod half;
mod outgoing;
mod service;
mod sized;
mod tcp;
mod udp;

use crate::{sized as any_size, tcp as bare_tcp, udp as bare_udp};
use netdyno_protocol::frame::rpc_message::CALL_HEADER_LEN;
use netdyno_protocol::frame::xdr::UNIT;

/// The number of the program that the layers call. It is in the range that RFC 5531 (section 8.3) leaves to
/// users, and its bytes are " dyn".
const PROGRAM: u32 = 0x2064_796e;
/// The version of the program.
const VERSION: u32 = 1;
/// The procedure without arguments and results, which every program has.
const NULL: u32 = 0;
/// The procedure whose result is its argument.
const ECHO: u32 = 1;
/// The procedure whose argument says how long the result must be.
const TRANSFER: u32 = 2;

/// The largest data of a fixed size over UDP, in bytes.
pub(crate) const MAX_UDP_SIZE: usize = bare_udp::MAX_SIZE;
/// The largest data of a fixed size over TCP, in bytes.
pub(crate) const MAX_TCP_SIZE: usize = bare_tcp::MAX_SIZE;
/// The largest data of a size that can be set over UDP, in bytes: a datagram without the header and the two
/// lengths of a transfer, a multiple of the unit.
pub(crate) const MAX_UDP_TRANSFER: usize =
    (bare_udp::sized::MAX_SIZE - CALL_HEADER_LEN - 2 * UNIT) / UNIT * UNIT;
/// The largest data of a size that can be set over TCP, in bytes.
pub(crate) const MAX_TCP_TRANSFER: usize = any_size::MAX_SIZE;
