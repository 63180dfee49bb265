//! A warning about a figure. The record calls it a doubt.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a figure should not be taken at its word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Doubt {
    /// A stable name for scripts, such as `processor_bound`.
    pub name: String,
    /// The parameter in doubt, where it is one.
    #[serde(default)]
    pub about: Option<String>,
    /// One sentence for people.
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
