//! The measuring room: patterns of communication, statistics, and what is read off
//! them. Pure: time belongs to the layer under test, so that a simulated interface in
//! virtual time and a real one are measured by the same code.
//!
//! * [`layer`]: the face that a layer shows to the patterns.
//! * [`order`]: what a message asks of its receiver.
//! * [`stats`]: medians with distribution-free intervals, regression.
//! * [`strata`]: launches whose processors were equally far apart.
//! * [`unpaired`]: the ratio of two samples that nothing pairs.
//! * [`bulk`]: the parameters as functions of the message's size.
//! * [`logp`]: the LogP signature: what is run in a launch, and what is read off launches.
//! * [`contention`]: what becomes of a pair where others communicate as well.
//! * [`overlap`]: how much computation goes behind messages.
//! * [`registration`]: what it costs to have a layer know memory.
//! * [`sweep`]: what the run time of a program depends on.
//! * [`validation`]: whether the dials of a link do what they say.
//! * [`task`]: what a launch is asked to do, whatever the verb.
//! * [`show`]: figures in words.
//! * [`record`]: the versioned record that every tool reads.
#![forbid(unsafe_code)]

mod bench;
pub mod bulk;
pub mod contention;
mod figure;
pub mod layer;
pub mod logp;
mod machine;
pub mod order;
pub mod overlap;
mod precision;
pub mod record;
pub mod registration;
pub mod show;
pub mod stats;
mod steady;
pub mod strata;
pub mod sweep;
pub mod task;
pub mod unpaired;
pub mod validation;
