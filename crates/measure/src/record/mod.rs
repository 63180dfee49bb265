//! The versioned record of a measurement: schema `netdyno/1`.
//!
//! Running and reporting are separate: every table, plot and comparison reads records.
//! The JSON schema in `schema/netdyno-1.schema.json` is derived from these types.
//! Fields may be added within a version, never changed or removed.
//!
//! * `parameter`, `plateau`, `doubt`: the parts of which every verb's record is made.
//! * `environment`, `ratio`: the host of a run, and ratios of two layers.
//! * `layer_result`: the result of one layer. Each verb has the record of its findings in its own module.

pub(crate) mod doubt;
mod environment;
mod layer_result;
mod paper;
pub(crate) mod parameter;
pub(crate) mod plateau;
mod ratio;

pub use crate::logp::record::{Checks, Logp, Share, Shares, StreamCheck};
pub use crate::verbs::Found;
pub use doubt::Doubt;
pub use environment::{ClockReading, Detours, Environment};
pub use layer_result::LayerResult;
pub use paper::Paper;
pub use parameter::{Parameter, Parameters, PerByte, Status, TIMES};
pub use plateau::{Limit, Plateau};
pub use ratio::Ratio;

use crate::completion::record::SpinTimes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The schema that this version writes and reads.
pub const SCHEMA: &str = "netdyno/1";

/// One run of the command, with all its measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Always `netdyno/1`.
    pub schema: String,
    /// Version of the command.
    pub version: String,
    /// Start of the measurement: RFC 3339, UTC.
    pub began: String,
    /// The command line, word by word. Empty in records of earlier versions.
    #[serde(default)]
    pub command_line: Vec<String>,
    /// The options of the run.
    pub options: Options,
    /// The system on which it ran.
    pub environment: Environment,
    /// The other host; null if all processes ran on one host.
    #[serde(default)]
    pub peer_environment: Option<Environment>,
    /// One entry per layer.
    pub results: Vec<LayerResult>,
    /// Ratios between layers whose launches were interleaved, paired by launch.
    #[serde(default)]
    pub ratios: Vec<Ratio>,
    /// For each layer that `completion` measured by polling and with times to spin before blocking: the best time.
    #[serde(default)]
    pub spin_times: Vec<SpinTimes>,
    /// The experiment of a paper that the run repeats; null for other runs.
    #[serde(default)]
    pub paper: Option<Paper>,
    /// Number of the signal that ended the run early; null if it ended by itself.
    #[serde(default)]
    pub interrupted: Option<i32>,
    /// The error of the launch that ended the run early, after some that measured; null if there was none.
    #[serde(default)]
    pub failed: Option<String>,
    /// Warnings about the run as a whole.
    #[serde(default)]
    pub doubts: Vec<Doubt>,
}

/// The options of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Options {
    /// Half-width of an interval at which the measurement stops: a share of the value, or, for
    /// o_s, o_r and L, of the one-way time.
    pub precision: f64,
    /// Confidence level of every interval.
    pub confidence: f64,
    /// Maximum time for each layer. No launch begins after it.
    pub max_time_s: f64,
    /// Minimum number of launches.
    pub launches: usize,
    /// Seed of all random choices.
    pub seed: u64,
}

/// The reason why a text is not a record of this schema.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum RecordError {
    /// The text names another schema.
    #[error("it is a record of schema '{0}', and this version reads {SCHEMA}")]
    Schema(String),
    /// The text names no schema.
    #[error("it names no schema: not a netdyno record")]
    NoSchema,
    /// The text is not the JSON of a record.
    #[error("it is not a whole netdyno record: {0}")]
    Malformed(String),
}

/// The field of a record that names its schema.
#[derive(Deserialize)]
pub(crate) struct Preamble {
    pub(crate) schema: Option<String>,
}

impl Record {
    /// Reads a record from JSON text.
    ///
    /// # Errors
    /// Returns `Schema` or `NoSchema` if the text is not of [`SCHEMA`], and `Malformed` if it is not the JSON
    /// of a record.
    pub fn from_json(text: &str) -> Result<Self, RecordError> {
        let malformed = |error: serde_json::Error| RecordError::Malformed(error.to_string());
        match serde_json::from_str::<Preamble>(text).map_err(malformed)?.schema {
            None => Err(RecordError::NoSchema),
            Some(schema) if schema != SCHEMA => Err(RecordError::Schema(schema)),
            Some(_) => serde_json::from_str(text).map_err(malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_not_a_record_is_told_apart() {
        assert_eq!(Record::from_json("{}"), Err(RecordError::NoSchema));
        assert_eq!(
            Record::from_json(r#"{"schema":"netdyno/9"}"#),
            Err(RecordError::Schema("netdyno/9".into()))
        );
        assert!(matches!(Record::from_json(r#"{"schema":"netdyno/1"}"#), Err(RecordError::Malformed(_))));
        assert!(matches!(Record::from_json(r#"{"schema":"net"#), Err(RecordError::Malformed(_))));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,200}") {
            let _ = Record::from_json(&text);
        }
    }
}
