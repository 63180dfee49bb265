//! The findings of a verb, with the data of the launches.

use crate::bulk::record::Bulk;
use crate::contention::record::Contention;
use crate::logp::record::Logp;
use crate::overlap::record::Overlap;
use crate::registration::record::Registration;
use crate::validation::record::Validation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a verb finds beside the parameters, with the data behind all of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "verb", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "one for each layer of a run, so that the size does not matter")]
pub enum Found {
    /// By the LogP signature.
    Logp(Logp),
    /// By messages of every size.
    Bulk(Bulk),
    /// What contention does to a layer, beside the parameters of one pair alone.
    Contention(Contention),
    /// By computation behind messages.
    Overlap(Overlap),
    /// By having the layer know memory of every size.
    Registration(Registration),
    /// By turning the dials of a link and looking what becomes of its parameters.
    Validate(Validation),
}

impl Found {
    /// Returns the number of launches behind the findings.
    pub fn launches(&self) -> usize {
        match self {
            Self::Logp(logp) => logp.launches.len(),
            Self::Bulk(bulk) => bulk.launches.len(),
            Self::Contention(contention) => contention.launches.len(),
            Self::Overlap(overlap) => overlap.launches.len(),
            Self::Registration(registration) => registration.launches.len(),
            Self::Validate(validation) => validation.launches.len(),
        }
    }

    /// Keeps the data of those launches whose index in the order of launches satisfies `keep`.
    pub fn retain_launches(&mut self, mut keep: impl FnMut(usize) -> bool) {
        match self {
            Self::Logp(found) => found.launches.retain(|data| keep(data.launch)),
            Self::Bulk(found) => found.launches.retain(|data| keep(data.launch)),
            Self::Contention(found) => found.launches.retain(|data| keep(data.launch)),
            Self::Overlap(found) => found.launches.retain(|data| keep(data.launch)),
            Self::Registration(found) => found.launches.retain(|data| keep(data.launch)),
            Self::Validate(found) => found.launches.retain(|data| keep(data.launch)),
        }
    }
}
