//! `netdyno logp`.

use crate::args::LogpArgs;
use crate::campaign::{Campaign, Conditions};
use crate::fault::Fault;
use crate::method::Signature;
use crate::output::Sink;

/// Measures and writes the result.
pub fn run(args: &LogpArgs) -> Result<(), Fault> {
    let conditions = Conditions { truth: args.truth, faults: args.faults };
    let campaign = Campaign::new(Box::new(Signature), &args.over, conditions, &args.measuring)?;
    let sink = Sink::open(&args.output)?;
    sink.write(&campaign.run()?)
}
