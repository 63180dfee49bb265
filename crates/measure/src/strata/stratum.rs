//! One stratum: its launches and their figures.

use super::probe::{are_alike, have_same_pace};
use crate::record::doubt::Doubt;
use crate::record::parameter::Parameters;
use crate::show::{Percent, Time};
use crate::stats::Interval;
use crate::verbs::Found;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A larger share of the processors' time, lost to the host, is a warning.
const STOLEN: f64 = 0.05;
/// A larger share of unsteady launches behind a figure is a warning.
const UNSTEADY: f64 = 0.1;

/// The name of the stratum of launches whose processors were moved.
pub(crate) const MOVED: &str = "moved";
/// The name of the stratum of launches whose processors could not be probed.
pub(super) const UNKNOWN: &str = "unknown";

/// The launches of a layer whose processors were equally far apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stratum {
    /// `all` if there is only one; otherwise `near`, `middle` or `far`, some with a number;
    /// `moved`, `unsteady` and `unknown` for launches whose processors were moved, changed their pace, or
    /// were not probed.
    pub name: String,
    /// True if the figures of the result are those of this stratum.
    pub is_headline: bool,
    /// Median bounce of its launches; null for `moved`, `unsteady` and `unknown`.
    pub bounce_ns: Option<f64>,
    /// The shortest and the longest bounce.
    pub bounce_range_ns: Option<Interval>,
    /// Median pace of the processors during its launches, as the time of the same work; null if it is
    /// not known.
    #[serde(default)]
    pub pace_ns: Option<f64>,
    /// Number of launches during which a processor changed its pace, or had a pace that most launches did
    /// not have.
    #[serde(default)]
    pub unsteady: usize,
    /// Median share of the processors' time that the hypervisor gave to other guests; null if it is unknown.
    pub stolen_share: Option<f64>,
    /// Number of launches.
    pub launches: usize,
    /// The parameters of its launches; null if they give none.
    pub parameters: Option<Parameters>,
    /// The findings of the verb beside the parameters; null for the headline, whose findings are the result's.
    #[serde(default)]
    pub found: Option<Box<Found>>,
    /// Warnings about these figures; none for the headline, whose warnings are the result's.
    #[serde(default)]
    pub doubts: Vec<Doubt>,
}

impl Stratum {
    /// Returns the name with the bounce, as `near, bounce 119 ns`.
    pub fn in_words(&self) -> String {
        match self.bounce_ns {
            Some(ns) => format!("{}, bounce {}", self.name, Time(ns)),
            None => self.name.clone(),
        }
    }

    /// Reports that the processors were moved in the course of its launches.
    pub fn is_moved(&self) -> bool {
        self.name == MOVED
    }

    /// Reports whether both strata have processors at the same distance and of the same pace.
    pub fn is_like(&self, other: &Self) -> bool {
        let are_paces_alike = self.pace_ns.zip(other.pace_ns).is_none_or(|(a, b)| have_same_pace(a, b));
        are_paces_alike && self.bounce_ns.zip(other.bounce_ns).is_some_and(|(a, b)| are_alike(a, b))
    }
}

/// Returns the warnings about the processors of a layer's launches.
pub fn doubts(strata: &[Stratum]) -> Vec<Doubt> {
    let total: usize = strata.iter().map(|stratum| stratum.launches).sum();
    let left_out = |name: &str| strata.iter().find(|stratum| stratum.name == name && !stratum.is_headline);
    let mut doubts = Vec::new();
    if let Some(moved) = left_out(MOVED) {
        let text = format!(
            "the processors were moved during {} of {total} launches, repeated in vain: these are in no figure",
            moved.launches
        );
        doubts.push(Doubt::new("processors_moved", text));
    }
    if let Some(unsteady) = left_out("unsteady") {
        let text = format!(
            "a processor changed its pace during {} of {total} launches, as beside another guest on its core: \
             these are in no figure",
            unsteady.launches
        );
        doubts.push(Doubt::new("pace_changed", text));
    }
    if let Some(unknown) = left_out(UNKNOWN) {
        let text = format!(
            "the processors of {} of {total} launches could not be probed, as where other programs leave no time: these \
             are in no figure",
            unknown.launches
        );
        doubts.push(Doubt::new("not_probed", text));
    }
    let headline = strata.iter().find(|stratum| stratum.is_headline);
    if let Some(unknown) = headline.filter(|headline| headline.name == UNKNOWN) {
        let text = format!(
            "the processors of none of the {} launches behind the figures could be probed, as where other programs leave \
             no time: how far apart they were is unknown",
            unknown.launches
        );
        doubts.push(Doubt::new("not_probed", text));
    }
    if let Some(moved) = headline.filter(|headline| headline.is_moved()) {
        let text = format!(
            "the processors were moved during all of the {} launches behind the figures: they are of no one distance",
            moved.launches
        );
        doubts.push(Doubt::new("processors_moved", text));
    }
    if let Some(mixed) =
        headline.filter(|headline| headline.unsteady as f64 > UNSTEADY * headline.launches as f64)
    {
        let text = format!(
            "a processor changed its pace during {} of the {} launches, as beside another guest on its core, and \
             too few others are left for an interval: measure longer, or on a quiet host",
            mixed.unsteady, mixed.launches
        );
        doubts.push(Doubt::new("pace_unsteady", text));
    }
    if let Some(stolen) = headline.and_then(|headline| headline.stolen_share).filter(|&share| share > STOLEN)
    {
        let text = format!("the host took {} of the processors' time during the launches", Percent(stolen));
        doubts.push(Doubt::new("stolen_time", text));
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_launches_that_could_not_be_probed_are_doubted() {
        let stratum = |name: &str, is_headline| Stratum {
            name: name.into(),
            is_headline,
            bounce_ns: None,
            bounce_range_ns: None,
            pace_ns: None,
            unsteady: 0,
            stolen_share: None,
            launches: 9,
            parameters: None,
            found: None,
            doubts: Vec::new(),
        };
        let said =
            |strata: &[Stratum]| doubts(strata).iter().map(|doubt| doubt.text.clone()).collect::<Vec<_>>();
        let none_probed = said(&[stratum(UNKNOWN, true)]);
        assert!(
            none_probed.len() == 1 && none_probed[0].contains("none of the 9 launches"),
            "{none_probed:?}"
        );
        let some_probed = said(&[stratum("all", true), stratum(UNKNOWN, false)]);
        assert!(some_probed.len() == 1 && some_probed[0].contains("9 of 18 launches"), "{some_probed:?}");
        assert!(said(&[stratum("all", true)]).is_empty());
    }
}
