//! The result of one layer.

use super::doubt::Doubt;
use super::parameter::Parameters;
use crate::strata::probe::Probe;
use crate::strata::stratum::Stratum;
use crate::verbs::Found;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of one layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LayerResult {
    /// The layer, as spelled on the command line.
    pub layer: String,
    /// The label of the result, as given to `--label`.
    #[serde(default)]
    pub label: Option<String>,
    /// Bytes of user data in a request, and in a reply.
    pub size_bytes: usize,
    /// How an idle process waits: `spin`, `yield`, `block`; `virtual` for a simulated layer.
    pub wait: String,
    /// The processors of the processes, by rank. Empty if the processes were not pinned, or if there are none.
    #[serde(default)]
    pub cpus: Vec<usize>,
    /// The distance between those processors.
    pub distance: Option<String>,
    /// Name and version of the library behind the layer; null if there is none.
    #[serde(default)]
    pub library: Option<String>,
    /// The launcher of the processes; null if netdyno started them itself.
    #[serde(default)]
    pub launcher: Option<String>,
    /// Address of the server that answered; null if netdyno started the replier itself.
    #[serde(default)]
    pub server: Option<String>,
    /// The injected faults, as given to `--faults`.
    #[serde(default)]
    pub faults: Option<String>,
    /// The dial setting, as given to `--dials`.
    #[serde(default)]
    pub dials: Option<String>,
    /// The time profile of the dials, in the form that `--profile` reads.
    #[serde(default)]
    pub profile: Option<String>,
    /// The parameters. If there are several strata, these are of the headline stratum.
    pub parameters: Parameters,
    /// The strata of the launches, from near to far processors. Empty if no two
    /// processors of one host were probed.
    #[serde(default)]
    pub strata: Vec<Stratum>,
    /// The probes of each launch.
    #[serde(default)]
    pub probes: Vec<Probe>,
    /// The measuring verb, and its findings beside the parameters.
    #[serde(flatten)]
    pub found: Found,
    /// Warnings about this layer's figures.
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

    /// Returns the programs behind the figures beside netdyno: the library, the launcher and the server.
    pub fn behind(&self) -> impl Iterator<Item = String> {
        let server = self.server.as_ref().map(|address| format!("server {address}"));
        self.library.clone().into_iter().chain(self.launcher.clone()).chain(server)
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
