//! What a result has to be compared: figures, each with its value in every launch.

use super::Figure;
use crate::launches::LaunchFigures;
use netdyno_measure::record::{Found, LayerResult, Logp, Parameter, Status};

/// A figure of a result.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its name.
    pub name: &'static str,
    /// Bytes of user data in a message.
    pub size_bytes: usize,
    /// Its unit.
    pub unit: &'static str,
    /// What the record says.
    pub figure: Figure,
    /// Its value in every launch, in their order; `None` where a launch gave none.
    pub launches: Vec<Option<f64>>,
}

/// The name of the steady state's time per message where g is not measured.
pub const PLATEAU: &str = "plateau";

/// All figures of a result.
pub fn of(result: &LayerResult) -> Vec<Candidate> {
    match &result.found {
        Found::Logp(logp) => of_signature(result, logp),
    }
}

fn of_signature(result: &LayerResult, logp: &Logp) -> Vec<Candidate> {
    let launches: Vec<LaunchFigures> = logp.launches.iter().map(LaunchFigures::of).collect();
    let candidate = |name, figure, at: usize| Candidate {
        name,
        size_bytes: result.size_bytes,
        unit: "ns",
        figure,
        launches: launches.iter().map(|launch| launch.values[at]).collect(),
    };
    let times = result.parameters.times().into_iter().enumerate();
    let mut candidates: Vec<Candidate> = times.map(|(at, (name, p))| candidate(name, in_ns(p), at)).collect();
    if let Some(at) = crate::launches::NAMES.iter().position(|&name| name == "g") {
        let plateau = Figure {
            status: Status::Measured,
            value: Some(logp.plateau.value_ns),
            ci: logp.plateau.ci_ns,
            launches: logp.launches.len(),
        };
        candidates.push(candidate(PLATEAU, plateau, at));
    }
    candidates
}

fn in_ns(p: &Parameter) -> Figure {
    Figure { status: p.status, value: p.value_ns, ci: p.ci_ns, launches: p.launches }
}
