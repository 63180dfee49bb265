//! The hosts of a measurement: processors and addresses of this one, a served host, and the service for others.

pub mod calls;
pub mod host;
pub mod machine;
pub mod peer;
pub mod processes;
pub mod secret;
pub mod session;
pub mod site;
