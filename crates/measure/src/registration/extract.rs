//! The figures computed from several launches. Each is the median of the values of the launches, with its
//! distribution-free interval. The value of a launch is the median of its batches. No figure is clamped.

use super::data::{COSTS, FixedData, RegistrationLaunch};
use super::doubts;
use super::record::{FixedCost, Registration, SizeCosts};
use crate::figure::Figure;
use crate::record::doubt::Doubt;
use crate::record::parameter::{Parameter, Parameters};
use crate::stats::median;

/// The costs of registration of a layer, computed from several launches.
#[derive(Clone, Debug, PartialEq)]
pub struct Extracted {
    /// Unobservable, because this verb sends no message.
    pub parameters: Parameters,
    /// The record of the verb, without the launches: the caller has them.
    pub registration: Registration,
    /// The warnings.
    pub doubts: Vec<Doubt>,
}

/// Computes figures and warnings from launches. Returns `None` if the launches measured nothing, or differ
/// in their sizes.
pub fn extract(data: &[RegistrationLaunch], confidence: f64, precision: f64) -> Option<Extracted> {
    let first = data.first().filter(|first| !first.sizes.is_empty())?;
    // A record is a file that others may have written: its launches may differ in their sizes.
    if !data.iter().all(|launch| launch.is_like(first)) {
        return None;
    }
    let launches = Launches { data, confidence };
    let registration = Registration {
        system: first.system.clone(),
        sizes: (0..first.sizes.len()).map(|at| launches.size(at)).collect(),
        fixed: (0..first.fixed.len()).map(|nth| launches.fixed(nth)).collect(),
        launches: Vec::new(),
    };
    let doubts = doubts::find(data, &registration, precision);
    Some(Extracted { parameters: Parameters::unobservable(), registration, doubts })
}

impl RegistrationLaunch {
    /// Reports that the launch measured the same as `first`, and completely.
    fn is_like(&self, first: &Self) -> bool {
        self.shape == first.shape
            && self.sizes.len() == self.shape.sizes.len()
            && self
                .sizes
                .iter()
                .zip(&self.shape.sizes)
                .all(|(data, shape)| data.size_bytes == shape.size_bytes)
            && self.fixed.iter().map(|fixed| &fixed.name).eq(first.fixed.iter().map(|fixed| &fixed.name))
    }
}

struct Launches<'a> {
    data: &'a [RegistrationLaunch],
    confidence: f64,
}

impl Launches<'_> {
    fn size(&self, at: usize) -> SizeCosts {
        let samples = self.data[0].shape.sizes[at].samples;
        let costs: [Parameter; COSTS] =
            std::array::from_fn(|nth| self.cost(samples, |launch| launch.sizes[at].batches()[nth]));
        let [first_touch, touched, again, cached, deregister, lock_first_touch, lock, unlock] = costs;
        let size_bytes = self.data[0].sizes[at].size_bytes;
        SizeCosts {
            size_bytes,
            first_touch,
            touched,
            again,
            cached,
            deregister,
            lock_first_touch,
            lock,
            unlock,
        }
    }

    fn fixed(&self, nth: usize) -> FixedCost {
        let FixedData { name, samples, .. } = &self.data[0].fixed[nth];
        FixedCost { name: name.clone(), cost: self.cost(*samples, |launch| &launch.fixed[nth].batches_ns) }
    }

    /// Returns a cost from its batches, each of `samples` samples.
    fn cost(&self, samples: u64, batches: impl Fn(&RegistrationLaunch) -> &[f64]) -> Parameter {
        let all = || self.data.iter().flat_map(|launch| batches(launch).iter().copied());
        let of = |launch| median(batches(launch).iter().copied());
        // A record is a file that others may have written: its counts may have any value.
        let samples = samples.saturating_mul(all().count() as u64);
        Figure::over(self.data.iter().map(of), self.confidence).parameter(all(), samples)
    }
}
