//! The result of one layer.

use super::doubt::Doubt;
use super::parameter::Parameters;
use crate::bulk::record::Bulk;
use crate::contention::record::Contention;
use crate::logp::record::Logp;
use crate::overlap::record::Overlap;
use crate::registration::record::Registration;
use crate::strata::probe::Probe;
use crate::strata::stratum::Stratum;
use crate::validation::record::Validation;
use crate::verbs::Found;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was found about one layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LayerResult {
    /// The layer, as spelled on the command line.
    pub layer: String,
    /// What tells it from other results of the same layer, as given to `--label`.
    #[serde(default)]
    pub label: Option<String>,
    /// Bytes of user data in a request, and in a reply.
    pub size_bytes: usize,
    /// How an idle process waits: `spin`, `yield`, `block`; `virtual` for a simulated layer.
    pub wait: String,
    /// Where the processes ran, by rank. Empty where they were not pinned or there are none.
    #[serde(default)]
    pub cpus: Vec<usize>,
    /// How far those processors are apart.
    pub distance: Option<String>,
    /// Which library of which version is behind the layer, where one is.
    #[serde(default)]
    pub library: Option<String>,
    /// What started its processes, where netdyno did not.
    #[serde(default)]
    pub launcher: Option<String>,
    /// What went wrong with datagrams on purpose, as given to `--faults`.
    #[serde(default)]
    pub faults: Option<String>,
    /// What the link was made to be like on purpose, as given to `--dials`.
    #[serde(default)]
    pub dials: Option<String>,
    /// How the link changed with time on purpose, as `--profile` reads it.
    #[serde(default)]
    pub profile: Option<String>,
    /// The parameters, of the launches of the headline where there are several strata.
    pub parameters: Parameters,
    /// The launches by what they found of their processors, from near to far. Empty where no two
    /// processors of one host were probed.
    #[serde(default)]
    pub strata: Vec<Stratum>,
    /// What each launch found of its processors.
    #[serde(default)]
    pub probes: Vec<Probe>,
    /// The measuring verb, and what it found beside the parameters.
    #[serde(flatten)]
    pub found: Found,
    /// Doubts about this layer's figures.
    #[serde(default)]
    pub doubts: Vec<Doubt>,
}

impl LayerResult {
    /// Returns the name of the result: the layer, with its label if it has one.
    pub fn name(&self) -> String {
        match &self.label {
            Some(label) => format!("{} ({label})", self.layer),
            None => self.layer.clone(),
        }
    }

    /// Returns the verb, as on the command line.
    pub fn verb(&self) -> &'static str {
        self.found.verb()
    }

    /// Returns the record of `logp`, if that was the verb.
    pub fn logp(&self) -> Option<&Logp> {
        self.found.logp()
    }

    /// Returns the record of `bulk`, if that was the verb.
    pub fn bulk(&self) -> Option<&Bulk> {
        self.found.bulk()
    }

    /// Returns the record of `contention`, if that was the verb.
    pub fn contention(&self) -> Option<&Contention> {
        self.found.contention()
    }

    /// Returns the record of `overlap`, if that was the verb.
    pub fn overlap(&self) -> Option<&Overlap> {
        self.found.overlap()
    }

    /// Returns the record of `registration`, if that was the verb.
    pub fn registration(&self) -> Option<&Registration> {
        self.found.registration()
    }

    /// Returns the record of `validate`, if that was the verb.
    pub fn validation(&self) -> Option<&Validation> {
        self.found.validation()
    }

    /// Returns the number of launches behind the figures.
    pub fn launches(&self) -> usize {
        self.found.launches()
    }

    /// Returns the number of launches in all strata.
    pub fn launches_in_all(&self) -> usize {
        match self.strata[..] {
            [] => self.launches(),
            ref strata => strata.iter().map(|stratum| stratum.launches).fold(0, usize::saturating_add),
        }
    }

    /// Returns the stratum that gives the figures of the result.
    pub fn headline(&self) -> Option<&Stratum> {
        self.strata.iter().find(|stratum| stratum.is_headline)
    }

    /// Reports that the result has more than one stratum.
    pub fn is_split(&self) -> bool {
        self.strata.len() > 1
    }

    /// Returns the result of the stratum at index `at` alone, without all other launches. Returns `None` if
    /// there is no such stratum, or if its launches give no figures.
    pub fn of_stratum(&self, at: usize) -> Option<Self> {
        let stratum = self.strata.get(at)?;
        let mut result = self.clone();
        if !stratum.is_headline {
            result.parameters = stratum.parameters.clone()?;
            result.found = *stratum.found.clone()?;
            result.doubts = stratum.doubts.clone();
        }
        result.strata = vec![Stratum { is_headline: true, found: None, ..stratum.clone() }];
        Some(result)
    }
}
