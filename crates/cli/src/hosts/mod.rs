//! The hosts of a measurement: processors and addresses here, a served host elsewhere.

pub mod machine;
pub mod peer;
pub mod secret;
pub mod session;
pub mod site;
