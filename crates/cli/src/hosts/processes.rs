//! The processes of a launch, and how many processors they need.

/// The processes of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processes {
    /// A requester and a replier, on a processor each.
    Pair,
    /// One process, which is both ends, on two processors.
    Single,
    /// So many processes, on a processor each.
    Many(usize),
}

impl Processes {
    /// Returns their number.
    pub fn number(self) -> usize {
        match self {
            Self::Pair => 2,
            Self::Single => 1,
            Self::Many(number) => number,
        }
    }

    /// Returns the number of processors, some of which may be the same.
    pub fn processors(self) -> usize {
        match self {
            Self::Pair | Self::Single => 2,
            Self::Many(number) => number,
        }
    }

    /// Reports whether they communicate on two processors.
    pub fn are_on_two(self) -> bool {
        !matches!(self, Self::Many(_))
    }
}
