//! Collective operations. All ranks call the same ones in the same order.

use crate::error::Error;
use crate::state::TREE;
use crate::world::World;
use netdyno_protocol::global::collective::{Mismatch, Step};
use netdyno_protocol::global::message::{Collective, Combination, Direction, LONGEST_VALUE};
use netdyno_protocol::global::tree::Tree;

/// Number of words in a tree message.
const WORDS: usize = LONGEST_VALUE / 8;

impl World {
    /// Waits until all ranks have called. It does not wait for operations under way.
    ///
    /// # Errors
    /// Returns `Mismatch` if a rank calls another collective, or the end of the job.
    pub fn barrier(&mut self) -> Result<(), Error> {
        self.run(Collective::Barrier, Vec::new()).map(|_| ())
    }

    /// Copies the bytes of `root` to all ranks. All ranks give the same length.
    ///
    /// # Errors
    /// As of [`World::barrier`], and `NoSuchRank`.
    pub fn broadcast(&mut self, root: u32, bytes: &mut [u8]) -> Result<(), Error> {
        self.check_root(root)?;
        for piece in bytes.chunks_mut(LONGEST_VALUE) {
            piece.copy_from_slice(&self.collect(Collective::Broadcast { root }, piece.to_vec())?);
        }
        Ok(())
    }

    /// Combines the words of all ranks, place by place. The result is at `root`; the words of the other ranks are as
    /// before. All ranks give the same number of words.
    ///
    /// # Errors
    /// As of [`World::broadcast`].
    pub fn reduce(&mut self, root: u32, combination: Combination, words: &mut [u64]) -> Result<(), Error> {
        self.check_root(root)?;
        self.combine(Collective::Reduce { root, combination }, words, self.rank() == root)
    }

    /// Combines the words of all ranks, place by place. The result is at all ranks, which give the same number of words.
    ///
    /// # Errors
    /// As of [`World::barrier`].
    pub fn all_reduce(&mut self, combination: Combination, words: &mut [u64]) -> Result<(), Error> {
        self.combine(Collective::AllReduce { combination }, words, true)
    }

    fn check_root(&self, rank: u32) -> Result<(), Error> {
        let ranks = self.ranks();
        if rank < ranks { Ok(()) } else { Err(Error::NoSuchRank { rank, ranks }) }
    }

    fn combine(&mut self, collective: Collective, words: &mut [u64], receives: bool) -> Result<(), Error> {
        for piece in words.chunks_mut(WORDS) {
            let value = piece.iter().flat_map(|word| word.to_le_bytes()).collect();
            let result = self.collect(collective, value)?;
            if receives {
                let (results, _) = result.as_chunks::<8>();
                piece.iter_mut().zip(results).for_each(|(word, result)| *word = u64::from_le_bytes(*result));
            }
        }
        Ok(())
    }

    /// Runs a collective, after a barrier if one is due.
    fn collect(&mut self, collective: Collective, value: Vec<u8>) -> Result<Vec<u8>, Error> {
        if self.state.collectives.is_barrier_due() {
            self.barrier()?;
        }
        self.run(collective, value)
    }

    fn run(&mut self, collective: Collective, value: Vec<u8>) -> Result<Vec<u8>, Error> {
        self.check()?;
        self.state.traffic.collectives += 1;
        self.state.collectives.start(collective, value);
        loop {
            match self.state.collectives.step() {
                Ok(Step::Done(value)) => return Ok(value),
                Ok(Step::Wait) => {
                    if self.state.has_any_left {
                        self.check_attendance(collective)?;
                    }
                    self.wait_once()?;
                }
                Ok(Step::Send { to, direction }) => {
                    let Some(message) = self.state.collectives.message(direction) else { continue };
                    let ([first, sequence], value) = message.encode();
                    let value = value.to_vec();
                    self.post(to, TREE, [first, sequence, 0, 0], &value)?;
                }
                Err(Mismatch { sequence, rank }) => return Err(self.fail(Error::Mismatch { rank, sequence })),
            }
        }
    }

    /// Checks that no rank has finished whose message the running collective may wait for. Messages of a rank arrive in
    /// order, so that none comes any more.
    #[cold]
    fn check_attendance(&mut self, collective: Collective) -> Result<(), Error> {
        let tree = Tree::new(self.rank(), self.ranks(), collective.root());
        let has_left = |rank: &u32| self.state.has_left[*rank as usize];
        let Some(rank) = tree.parent().into_iter().chain(tree.children()).find(has_left) else {
            return Ok(());
        };
        let sequence = self.state.collectives.message(Direction::Up).map_or(0, |message| message.sequence);
        Err(self.fail(Error::Mismatch { rank, sequence }))
    }
}
