//! `libam.so`: Active Messages for C programs, over the endpoints of [`netdyno_stack::am`]. It has the interface of
//! AM-2 (Mainwaring and Culler, "Active Message Applications Programming Interface and Communication Subsystem
//! Organization", 1996) with the extensions of AMMPI and AMUDP, and the calls of GAM ("Generic Active Message
//! Interface Specification", version 1.1, 1995).
//!
//! ```text
//!   AM_Request, AM_Reply, AM_Poll, ...        am_request_4, am_store, ...
//!        |                                          |
//!        v                                          v
//!   skin: checks arguments  <------------------  gam: functions instead of indices
//!        |
//!        v
//!   bundle, endpoint: tag, segment, handlers, translations
//!        |
//!        v
//!   exchange: messages in pieces <--> netdyno_stack::am::Endpoint <--> shared memory or UDP
//!        ^
//!        |  addresses of ports
//!   lobby: the listening socket of the process
//! ```
//!
//! * `code`: return codes, statuses of returned messages, and operation codes.
//! * `message`: the form of a message in the words and the payload of the stack's messages.
//! * `name`: names of endpoints. `lobby`: how endpoints find each other by name.
//! * `objects`: the bundles and endpoints that programs hold. `translations`: their tables. `polling`: bundles.
//! * `objects::token`, `calling`: the call of a handler.
//! * `exchange`: sending, receiving, connecting, and messages between ranks.
//! * `spmd`: ranks, barrier, gathering, the end of a job. `spawning`: the start of its ranks.
//! * `skin`: the functions of the headers in `include`. `gam`: those of `am.h`.
//!
//! docs/am2.md lists every function, its errors, and the choices where the specification leaves some.

mod arguments;
mod calling;
mod code;
mod ending;
mod exchange;
mod gam;
mod guard;
mod job;
mod lobby;
mod lock;
mod message;
mod name;
mod objects;
mod polling;
mod refusal;
mod settings;
mod skin;
mod spawning;
mod spmd;
mod statistics;
mod translations;
