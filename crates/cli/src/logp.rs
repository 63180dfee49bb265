//! `netdyno logp`.

use crate::args::BenchArgs;
use crate::campaign;
use crate::fault::Fault;
use crate::method::Signature;

/// Measures and writes the result.
pub fn run(args: &BenchArgs) -> Result<(), Fault> {
    campaign::run(Box::new(Signature), args)
}
