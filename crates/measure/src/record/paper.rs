//! Experiments of papers, which `netdyno paper` repeats.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The experiment of a paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Paper {
    /// Brightwell et al. (2003): protocol stacks told apart by COMB.
    Comb,
    /// Speight et al. (1999), section 5: MPI over the Virtual Interface Architecture.
    #[serde(rename = "speight-5")]
    Speight5,
}
