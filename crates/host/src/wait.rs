//! What a process does while nothing arrives.

use std::fmt;
use std::str::FromStr;

/// How to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// Look again at once. Fastest, and wrong where there are more processes than cores.
    #[default]
    Spin,
    /// Offer the processor to others between two looks.
    Yield,
    /// Sleep in the kernel until something arrives, where the wire can wake.
    Block,
}

impl Wait {
    /// One look was in vain.
    #[inline]
    pub fn idle(self) {
        match self {
            // A `pause` here gained nothing on any machine measured.
            Self::Spin => {}
            Self::Yield | Self::Block => rustix::thread::sched_yield(),
        }
    }

    /// As spelled on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::Yield => "yield",
            Self::Block => "block",
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Wait {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Spin, Self::Yield, Self::Block]
            .into_iter()
            .find(|wait| wait.name() == text)
            .ok_or_else(|| format!("'{text}' is no way to wait: use spin, yield or block"))
    }
}
