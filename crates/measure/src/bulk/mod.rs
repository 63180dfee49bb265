//! Bulk transfers: the parameters as functions of the message's size (Culler et al. 1996,
//! "Bulk-transfer microbenchmark"; LogGP, Alexandrov et al. 1995).
//!
//! * [`pattern`]: the procedure of one launch. [`search`]: its sizes. [`data`]: its measurements.
//! * `estimate`: the figures of one size in one launch. `launches`: several launches.
//! * `lines`: segments of T(n), and G; `fit`: the search for them. `carried`: the processors' share.
//! * [`signature`]: the signatures of named sizes.
//! * [`extract`]: all figures of a layer. [`doubts`]: warnings about them.
//! * [`record`]: the record of the verb.

mod carried;
pub mod data;
pub mod doubts;
mod estimate;
pub mod extract;
mod fit;
mod launches;
mod lines;
pub mod pattern;
pub mod record;
pub mod search;
pub mod signature;
