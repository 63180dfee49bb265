//! An MPI program over dials: the hook, the link, the ranks, the end of the run.

pub mod apparatus;
pub mod child;
pub mod dials;
pub mod gauge;
pub mod guard;
pub mod ledger;
mod leftovers;
pub mod link;
pub mod profiles;
pub mod route;
