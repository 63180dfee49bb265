//! The cues of a step: a requester performs its assignment, and a cue tells it when to count and when to
//! stop.

use super::member::Member;
use super::performer::Performer;
use super::step::{Assignment, Counted, Cue};
use crate::layer::LayerError;

/// Number of calls to a layer between two checks for cues. It is large enough to make the cost of a check
/// negligible.
const CALLS_PER_LOOK: usize = 64;

/// The channel on which a requester receives cues and answers them.
pub trait Cues {
    /// Returns the next cue, if one has arrived.
    fn look(&mut self) -> Result<Option<Cue>, LayerError>;

    /// Reports that the requester is warm and may count.
    fn is_warm(&mut self) -> Result<(), LayerError>;

    /// Reports the counts of the requester, which continues its activity.
    fn has_counted(&mut self, counted: Counted) -> Result<(), LayerError>;
}

/// Performs the assignment of a requester in a step, until the cue to stop.
pub fn perform<M: Member>(
    member: &mut M,
    assignment: &Assignment,
    cues: &mut dyn Cues,
) -> Result<(), LayerError> {
    let mut performer = Performer::new(member, assignment)?;
    let mut was_warm = false;
    while !performer.is_done() {
        for _ in 0..CALLS_PER_LOOK {
            if performer.advance(member)? {
                break;
            }
        }
        if performer.is_warm() && !was_warm {
            was_warm = true;
            cues.is_warm()?;
        }
        if let Some(counted) = performer.take_counted() {
            cues.has_counted(counted)?;
        }
        match cues.look()? {
            Some(Cue::Count) => performer.count(),
            Some(Cue::Stop) => performer.stop(),
            None => {}
        }
    }
    Ok(())
}
