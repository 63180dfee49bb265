//! `netdyno logp`.

use crate::args::LogpArgs;
use crate::campaign::Campaign;
use crate::fault::Fault;
use crate::output::Sink;

/// Measures and writes the result.
pub fn run(args: &LogpArgs) -> Result<(), Fault> {
    let campaign = Campaign::new(&args.over, args.truth, &args.measuring)?;
    let sink = Sink::open(&args.output)?;
    sink.write(&campaign.run()?)
}
