//! The C interface: the objects and tables of functions of libfabric.

mod addresses;
mod agent;
mod counter;
mod domain;
mod endpoint;
mod events;
mod fabric;
mod guard;
mod info;
mod object;
mod poll;
mod queue;
mod resolve;
mod segments;
mod state;
mod wait;

pub use fabric::fi_prov_ini;
