//! The verbs. Each file has the options of one verb and its implementation.

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
