//! An MPI program under dials: the hook in its way, its link, its ranks, its end.

pub mod apparatus;
pub mod child;
pub mod gauge;
pub mod guard;
pub mod ledger;
pub mod link;
pub mod profiles;
pub mod turn;
