//! What every worker does before it takes part: it finds its processor and its address; and how it ends early.

use crate::launch::orders::Order;
use netdyno_clock::place;
use netdyno_host::wait::{Wait, lost_turns};
use netdyno_job::member::{Control, MemberError};
use netdyno_measure::layer::LayerError;
use serde::de::DeserializeOwned;
use std::net::SocketAddr;
use std::time::Duration;

/// Patience with the launching side.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Why a worker ends early.
pub enum End {
    /// The layer failed; the launching side is told.
    Layer(String),
    /// The launching side is gone or silent.
    Control(MemberError),
}

impl From<MemberError> for End {
    fn from(error: MemberError) -> Self {
        Self::Control(error)
    }
}

impl From<LayerError> for End {
    fn from(error: LayerError) -> Self {
        Self::Layer(error.0)
    }
}

/// Where a socket is to be: where nothing is said of the host, where the control connection is.
pub fn bound<T: DeserializeOwned + Send + 'static>(bind: SocketAddr, control: &Control<T>) -> SocketAddr {
    let here = control.local_ip().filter(|_| bind.ip().is_unspecified());
    SocketAddr::new(here.unwrap_or(bind.ip()), bind.port())
}

/// What is said of an order that makes no sense.
pub fn unexpected(order: &Order) -> End {
    End::Layer(format!("the order {order:?} came out of turn"))
}

/// Runs on this processor from now on, where one is named.
pub fn pin(cpu: Option<usize>) -> Result<(), End> {
    match cpu.map(|cpu| (cpu, place::pin(cpu))) {
        Some((cpu, Err(error))) => Err(End::Layer(format!("cannot run on processor {cpu}: {error}"))),
        _ => Ok(()),
    }
}

/// Times that the system took the processor from this thread, where it says. One that yields gives its
/// processor away itself, which the system counts the same: then, times that others kept it, where that is known.
pub fn preemptions(wait: Wait) -> Option<u64> {
    if wait == Wait::Yield {
        return lost_turns();
    }
    let status = std::fs::read_to_string("/proc/thread-self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"))?.trim().parse().ok()
}
