//! The hosts of a measurement: processors and addresses of this one, and a served host.

pub mod machine;
pub mod peer;
pub mod secret;
pub mod session;
pub mod site;
