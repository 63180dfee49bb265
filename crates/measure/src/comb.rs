//! The protocol stacks of Brightwell et al. (2003), and what COMB must find in each.

use crate::overlap::record::{Payer, PollPoint, Progress, Quantity, SizeOverlap};

/// A way to make progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// In the calls of the program.
    Caller,
    /// In the kernel, with two copies: Portals over RMPP.
    Kernel,
    /// By an interrupt, directly to the memory of the program: the Portals MCP with processing in the kernel.
    Interrupt,
    /// By an engine beside the processor: the Portals MCP with processing on the network interface.
    Offload,
}

impl Stack {
    /// All stacks.
    pub const ALL: [Self; 4] = [Self::Caller, Self::Kernel, Self::Interrupt, Self::Offload];

    /// Returns the name in records and on pages.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Kernel => "kernel",
            Self::Interrupt => "interrupt",
            Self::Offload => "engine",
        }
    }

    /// Returns the value of the provider's switch.
    pub const fn switch(self) -> &'static str {
        match self {
            Self::Offload => "offload",
            _ => self.label(),
        }
    }

    /// Returns the stack of this name.
    pub fn of(label: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stack| stack.label() == label)
    }

    /// Returns the half round trip of an empty message and the one-way bandwidth in the paper, in µs and MB/s (figures 4
    /// and 5).
    pub const fn in_paper(self) -> Option<(f64, f64)> {
        match self {
            Self::Caller => None,
            Self::Kernel => Some((66.0, 68.0)),
            Self::Interrupt => Some((48.0, 161.0)),
            Self::Offload => Some((17.0, 161.0)),
        }
    }
}

/// What COMB finds in a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// Messages make progress inside calls only.
    InsideCallsOnly,
    /// Messages make progress by themselves, and take the processor of the program for that.
    ByStealing,
    /// Messages make progress by themselves, without the processor of the program.
    Unaided,
    /// The data do not tell.
    Unknown,
}

impl Named {
    /// Returns the name.
    pub const fn text(self) -> &'static str {
        match self {
            Self::InsideCallsOnly => "inside calls only",
            Self::ByStealing => "by stealing the caller's processor",
            Self::Unaided => "unaided",
            Self::Unknown => "cannot tell",
        }
    }

    /// Returns what the methods must find in a stack.
    pub const fn wanted(stack: Stack) -> Self {
        match stack {
            Stack::Caller => Self::InsideCallsOnly,
            Stack::Kernel | Stack::Interrupt => Self::ByStealing,
            Stack::Offload => Self::Unaided,
        }
    }

    /// Names a stack by post-work-wait: where the waiting goes, and who pays. Messages are unaided only if it is
    /// decided that nothing is stolen.
    pub fn by_waiting(size: &SizeOverlap) -> Self {
        let finding = &size.finding;
        match finding.progress {
            Progress::OnlyInCalls => Self::InsideCallsOnly,
            Progress::CannotTell => Self::Unknown,
            Progress::ByItself | Progress::Partly if finding.payers.contains(&Payer::Stolen) => {
                Self::ByStealing
            }
            Progress::ByItself | Progress::Partly if finding.undecided.contains(&Payer::Stolen) => {
                Self::Unknown
            }
            Progress::ByItself | Progress::Partly => Self::Unaided,
        }
    }

    /// Names a stack by the polling method: by the availability at the longest interval that keeps half of the best
    /// bandwidth. If the program's processor moves the messages, wherever, half of its time is left there: the messages
    /// under way take as long as the interval. If another one moves them, nearly all of it is left. A thread of the
    /// process tells stealing from calls.
    pub fn by_polling(size: &SizeOverlap) -> Self {
        // Too few launches have no interval, and tell nothing.
        let Some(ci) = availability_at_half(size).ci else { return Self::Unknown };
        match others_at_most(size) {
            _ if ci.lo >= UNAIDED_FROM => Self::Unaided,
            _ if ci.hi >= UNAIDED_FROM => Self::Unknown,
            None => Self::Unknown,
            Some(others) if others >= THREAD_FROM => Self::ByStealing,
            Some(_) => Self::InsideCallsOnly,
        }
    }
}

/// Least availability of a program whose messages move unaided, where half of the bandwidth is left.
const UNAIDED_FROM: f64 = 0.8;
/// Least share of the time of a thread that moves messages.
const THREAD_FROM: f64 = 0.05;

/// Returns the availability at the longest poll interval that keeps half of the best bandwidth.
pub fn availability_at_half(size: &SizeOverlap) -> Quantity {
    let bandwidth = |point: &PollPoint| point.bandwidth_bytes_per_s.value.unwrap_or(0.0);
    let best = size.polling.iter().map(bandwidth).fold(0.0, f64::max);
    let keeping = size.polling.iter().filter(|point| best > 0.0 && bandwidth(point) >= best / 2.0);
    let interval = |point: &PollPoint| point.interval_ns.value.unwrap_or(0.0);
    let longest = keeping.max_by(|a, b| interval(a).total_cmp(&interval(b)));
    longest.map_or_else(Quantity::default, |point| point.availability)
}

/// Returns the largest share of the time that other threads of the process take while the program polls; `None` if it is
/// not known.
fn others_at_most(size: &SizeOverlap) -> Option<f64> {
    size.polling.iter().filter_map(|point| point.others_share.value).reduce(f64::max)
}
