//! The face that a process with many peers shows to what is measured on it.

use super::performer::Performer;
use super::step::{Assignment, Counted, Cue};
use crate::layer::{LayerError, Time};

/// Calls to a layer between two looks for cues, so that one costs next to nothing.
const CALLS_PER_LOOK: usize = 64;

/// A requester with several peers, in its own time.
pub trait Member: Time {
    /// Issues one request to a peer. False, and nothing done, where the window is full.
    fn issue(&mut self, peer: usize) -> Result<bool, LayerError>;

    /// Handles at most one reply, and says whose it is.
    fn poll(&mut self) -> Result<Option<usize>, LayerError>;

    /// Passes time after a poll in vain, while replies are due; fails in a bounded time where
    /// none comes. True where that gave the processor away.
    fn idle(&mut self) -> Result<bool, LayerError>;

    /// The most requests to one peer that may ever be without a reply.
    fn max_window(&self) -> usize;

    /// Limits the requests to each peer without a reply, from 1 to [`Member::max_window`].
    fn set_window(&mut self, window: usize);
}

/// How a process hears what it is told in the course of a step, and answers.
pub trait Cues {
    /// The next cue, where there is one.
    fn look(&mut self) -> Result<Option<Cue>, LayerError>;

    /// It does what it is asked to, and may be told to count.
    fn is_warm(&mut self) -> Result<(), LayerError>;

    /// It has counted, and goes on.
    fn has_counted(&mut self, counted: Counted) -> Result<(), LayerError>;
}

/// Does what a requester is asked to do in a step, to the end.
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
