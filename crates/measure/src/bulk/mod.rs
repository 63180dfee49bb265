//! Bulk transfers: the parameters as functions of the message's size (Culler et al. 1996,
//! "Bulk-transfer microbenchmark"; LogGP, Alexandrov et al. 1995).
//!
//! * [`data`]: what one launch measured. * [`record`]: what is found.

pub mod data;
pub mod record;
