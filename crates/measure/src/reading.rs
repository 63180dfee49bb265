//! The evaluation of a layer's launches, by any verb.

use crate::record::doubt::Doubt;
use crate::record::parameter::Parameters;

/// The evaluation of the launches of one layer. `F` is the record of a verb.
#[derive(Clone, Debug)]
pub struct Reading<F> {
    /// The LogP parameters, as far as the verb measures them.
    pub parameters: Parameters,
    /// The findings of the verb, with its launches.
    pub found: F,
    /// The warnings about these figures.
    pub doubts: Vec<Doubt>,
}

/// The findings of a verb, or of any verb.
pub trait Findings {
    /// Reports whether all figures have an interval as narrow as `precision`. `parameters` are those of the
    /// same launches.
    fn are_precise(&self, parameters: &Parameters, precision: f64) -> bool;
}

impl<F> Reading<F> {
    /// Reports whether all figures have an interval as narrow as `precision`, a share of the figure.
    pub fn is_precise(&self, precision: f64) -> bool
    where
        F: Findings,
    {
        self.found.are_precise(&self.parameters, precision)
    }

    /// Returns the same evaluation with other findings, as those of any verb.
    pub fn of<G: From<F>>(self) -> Reading<G> {
        Reading { parameters: self.parameters, found: self.found.into(), doubts: self.doubts }
    }
}
