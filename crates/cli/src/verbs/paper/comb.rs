//! Brightwell et al. (2003): stacks that make progress in four ways, told apart by COMB.

use super::stack::Stacks;
use crate::campaign::Variant;
use crate::verbs::overlap::{Comb, UnderWay};
use netdyno_measure::comb::Stack;
use netdyno_measure::overlap::plan::Method;

/// The sizes of the paper.
pub const SIZES: [usize; 2] = [5_000, 100_000];

/// Returns the methods of the paper.
pub fn method(sizes: Vec<usize>, under_way: UnderWay) -> Comb {
    Comb::new(sizes, under_way, vec![Method::Polling, Method::Pww])
}

/// Returns the stacks.
pub fn variants(stacks: &Stacks) -> Vec<Variant> {
    let of = |stack: Stack| {
        let engine = stacks.engine_cpu().filter(|_| stack == Stack::Offload);
        let mut switches = vec![("FI_NETDYNO_PROGRESS", stack.switch())];
        switches.extend(engine.as_deref().map(|cpu| ("FI_NETDYNO_CPU", cpu)));
        stacks.mpi(stack.label(), &switches)
    };
    Stack::ALL.into_iter().map(of).collect()
}
