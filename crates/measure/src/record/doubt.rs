//! A warning about a figure. The record calls it a doubt.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A warning: a figure has another meaning than its name says, or is not precise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Doubt {
    /// A stable name for scripts, such as `processor_bound`.
    pub name: String,
    /// The parameter that the warning concerns; null if it concerns more than one.
    #[serde(default)]
    pub about: Option<String>,
    /// The warning in one sentence.
    pub text: String,
}

impl Doubt {
    /// Returns a warning about the whole result.
    pub fn new(name: &str, text: String) -> Self {
        Self { name: name.into(), about: None, text }
    }

    /// Returns a warning about one parameter.
    pub fn about(name: &str, parameter: &str, text: String) -> Self {
        Self { name: name.into(), about: Some(parameter.into()), text }
    }
}
