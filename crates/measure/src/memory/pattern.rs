//! The procedure of one launch: that of one-sided operations, at a word and at the sizes of bulk writes.

use super::data::MemoryLaunch;
use crate::layer::{Initiator, LayerError};
use crate::onesided::data::Operation;
use crate::onesided::pattern::{self, OnesidedPlan, WORD};
use serde::{Deserialize, Serialize};
use std::ops::Deref;

/// The size of a bulk write besides the largest one, in bytes.
const BULK: usize = 64 << 10;

/// The plan of one launch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MemoryPlan(pub OnesidedPlan);

impl Deref for MemoryPlan {
    type Target = OnesidedPlan;

    fn deref(&self) -> &OnesidedPlan {
        &self.0
    }
}

/// Runs one launch with `initiator`. `progress` receives the share that is done.
///
/// # Errors
/// Returns an error if the layer fails.
pub fn run<I: Initiator>(
    initiator: &mut I,
    plan: &MemoryPlan,
    progress: &mut dyn FnMut(f64),
) -> Result<MemoryLaunch, LayerError> {
    pattern::run_at(initiator, &plan.0, sizes, progress).map(MemoryLaunch)
}

/// Returns the sizes of an operation, ascending. A layer whose largest size is smaller has fewer.
fn sizes(operation: Operation, largest: usize) -> Vec<usize> {
    let mut sizes = match operation {
        Operation::Put => vec![WORD, BULK, largest],
        Operation::Get | Operation::FetchAdd | Operation::PutNotify => vec![WORD],
    };
    sizes.retain(|&size| size <= largest);
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_ascend_up_to_the_largest() {
        assert_eq!(sizes(Operation::Put, 1 << 20), [8, 64 << 10, 1 << 20]);
        assert_eq!(sizes(Operation::Put, 64 << 10), [8, 64 << 10]);
        assert_eq!(sizes(Operation::Put, 1 << 10), [8, 1 << 10]);
        assert_eq!(sizes(Operation::Put, 8), [8]);
        assert_eq!(sizes(Operation::Get, 4), [0; 0]);
        assert_eq!(sizes(Operation::FetchAdd, 1 << 20), [8]);
    }
}
