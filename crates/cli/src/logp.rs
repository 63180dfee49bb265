//! `netdyno logp`.

use crate::args::BenchArgs;
use crate::campaign;
use crate::fault::Fault;
use crate::method::Signature;
use crate::ranks::Ranks;
use std::rc::Rc;

/// Measures and writes the result.
pub fn run(args: &BenchArgs, ranks: Option<Rc<Ranks>>) -> Result<(), Fault> {
    campaign::run(Box::new(Signature), args, ranks)
}
