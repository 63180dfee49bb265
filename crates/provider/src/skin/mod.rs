//! The C interface: the objects and tables of functions of libfabric.

mod addresses;
mod counter;
mod deadline;
mod domain;
mod endpoint;
mod fabric;
mod guard;
mod info;
mod object;
mod queue;
mod segments;
mod state;

pub use fabric::fi_prov_ini;
