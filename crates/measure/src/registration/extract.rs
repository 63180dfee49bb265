//! The figures read off several launches: each is the median, over the launches, of what a launch
//! says by itself, with the distribution-free interval of that median. A launch says the median of
//! its batches. Nothing is clamped.

use super::data::{COSTS, FixedData, RegistrationLaunch};
use super::doubts;
use super::record::{FixedCost, Registration, SizeCosts};
use crate::figure::Figure;
use crate::record::doubt::Doubt;
use crate::record::parameter::{Parameter, Parameters};
use crate::stats::median;

/// What several launches say about a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Extracted {
    /// None of these can be seen: nothing is sent.
    pub parameters: Parameters,
    /// What was found. Without the launches: they are the caller's.
    pub registration: Registration,
    /// Doubts.
    pub doubts: Vec<Doubt>,
}

/// Reads figures and doubts off launches. `None` where they measured nothing, or not the same.
pub fn extract(data: &[RegistrationLaunch], confidence: f64, precision: f64) -> Option<Extracted> {
    let first = data.first().filter(|first| !first.sizes.is_empty())?;
    // A record is a file: launches of other sizes do not belong together.
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
    /// Whether it has measured what `first` has, all of it.
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

    /// A cost whose batches have so many samples each.
    fn cost(&self, samples: u64, batches: impl Fn(&RegistrationLaunch) -> &[f64]) -> Parameter {
        let all = || self.data.iter().flat_map(|launch| batches(launch).iter().copied());
        let of = |launch| median(batches(launch).iter().copied());
        // A record is a file: what it says of counts may be anything.
        let samples = samples.saturating_mul(all().count() as u64);
        Figure::over(self.data.iter().map(of), self.confidence).parameter(all(), samples)
    }
}
