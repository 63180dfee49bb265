//! The figures computed from several launches. Each is the median of the values of the launches, with its
//! distribution-free interval. The value of a launch is the median of its batches. No figure is clamped.

use super::data::{COSTS, FixedData, RegistrationLaunch};
use super::doubts;
use super::record::{FixedCost, Registration, SizeCosts};
use crate::figure::Figure;
use crate::reading::Reading;
use crate::record::parameter::{Parameter, Parameters};

/// Computes figures and warnings from launches. Returns `None` if the launches measured nothing, or differ
/// in their sizes.
pub fn extract(
    data: &[RegistrationLaunch],
    confidence: f64,
    precision: f64,
) -> Option<Reading<Registration>> {
    let first = data.first().filter(|first| !first.sizes.is_empty())?;
    // A record is a file that others may have written: its launches may differ in their sizes.
    if !data.iter().all(|launch| launch.is_like(first)) {
        return None;
    }
    let launches = RegistrationLaunches { data, confidence };
    let registration = Registration {
        system: first.system.clone(),
        sizes: (0..first.sizes.len()).map(|at| launches.size(at)).collect(),
        fixed: (0..first.fixed.len()).map(|nth| launches.fixed(nth)).collect(),
        launches: data.to_vec(),
    };
    let parameters = Parameters::unobservable();
    let doubts = doubts::find(&parameters, &registration, precision);
    Some(Reading { parameters, found: registration, doubts })
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

struct RegistrationLaunches<'a> {
    data: &'a [RegistrationLaunch],
    confidence: f64,
}

impl RegistrationLaunches<'_> {
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
    fn cost(&self, samples: u64, batches: impl Fn(&RegistrationLaunch) -> &[f64] + Clone) -> Parameter {
        Figure::of_batches(self.data.iter().map(batches), samples, self.confidence)
    }
}
