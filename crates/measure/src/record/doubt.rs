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
    /// The operation whose parameter it is, if several operations have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The warning in one sentence.
    pub text: String,
}

impl Doubt {
    /// Returns a warning about the whole result.
    pub fn new(name: &str, text: String) -> Self {
        Self { name: name.into(), about: None, operation: None, text }
    }

    /// Returns a warning about one parameter.
    pub fn about(name: &str, parameter: &str, text: String) -> Self {
        Self { name: name.into(), about: Some(parameter.into()), operation: None, text }
    }

    /// Returns the warning about the parameter of one operation.
    pub fn of(self, operation: &str) -> Self {
        Self { operation: Some(operation.into()), ..self }
    }
}
