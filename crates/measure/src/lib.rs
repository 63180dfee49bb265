//! Measurement: communication patterns, statistics, and the parameters computed from them. The crate does
//! no input or output and reads no clock of its own: time belongs to the layer under test. One code
//! therefore measures a simulated interface in virtual time and a real one.
//!
//! * [`layer`]: the traits of a layer under test.
//! * [`order`]: the instructions that a message carries to its receiver.
//! * [`stats`]: medians with distribution-free intervals, regression.
//! * [`slope`]: the slope of a line through points of which some are far off.
//! * [`strata`]: launches whose processors were equally far apart.
//! * [`unpaired`]: the ratio of two unpaired samples.
//! * [`processor_time`]: the accounts of processes and of their machines.
//! * [`logp`]: the LogP signature.
//! * [`bulk`]: the parameters as functions of the message's size.
//! * [`comb`]: the protocol stacks of Brightwell et al. (2003).
//! * [`completion`]: latency and bandwidth by size, by the way to wait.
//! * [`contention`]: a pair while other pairs communicate.
//! * [`memory`]: remote memory, blocking and pipelined, of several layers.
//! * [`onesided`]: one-sided operations on the memory of another process.
//! * [`overlap`]: the overlap of computation and messages.
//! * [`registration`]: the cost of registered memory. * [`breakdown`]: the cost of each step of an operation.
//! * [`speight`]: the experiment of Speight et al. (1999), section 5.
//! * [`utilisation`]: the processor time of messages on each side.
//! * [`sweep`]: the run time of a program over the dials of its link.
//! * [`validation`]: the dials of a link against the parameters that they set.
//! * [`verbs`]: the registry of the verbs.
//! * [`task`]: objects on which the tasks of the verbs run.
//! * [`reading`]: the evaluation of launches.
//! * [`show`]: figures in words.
//! * [`record`]: the versioned record that every tool reads.
#![forbid(unsafe_code)]

mod bench;
pub mod breakdown;
pub mod bulk;
pub mod comb;
pub mod completion;
pub mod contention;
mod figure;
pub mod layer;
pub mod logp;
mod machine;
pub mod memory;
pub mod onesided;
pub mod order;
pub mod overlap;
mod pairing;
mod powers;
mod precision;
pub mod processor_time;
pub mod reading;
pub mod record;
pub mod registration;
mod row;
pub mod show;
pub mod slope;
pub mod speight;
pub mod stats;
mod steady;
pub mod strata;
pub mod sweep;
pub mod task;
pub mod unpaired;
pub mod utilisation;
pub mod validation;
pub mod verbs;
