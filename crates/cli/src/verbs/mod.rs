//! The verbs, one file each: its options, and what it does with them.

pub mod bulk;
pub mod characterise;
pub mod compare;
pub mod completions;
pub mod contention;
pub mod export;
pub mod layers;
pub mod logp;
pub mod man;
pub mod overlap;
pub mod plugin;
pub mod registration;
pub mod report;
pub mod run;
pub mod serve;
pub mod soak;
pub mod sweep;
pub mod validate;
