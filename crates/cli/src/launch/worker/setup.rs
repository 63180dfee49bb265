//! The set-up of every worker: its processor and its address; and the reasons why it ends early.

use crate::launch::end::SILENCE;
use crate::launch::orders::Order;
use netdyno_clock::place;
use netdyno_host::wait::{Wait, lost_turns};
use netdyno_job::member::{Control, MemberError};
use netdyno_measure::layer::LayerError;
use serde::de::DeserializeOwned;
use std::net::SocketAddr;
use std::time::Duration;

/// Timeout for the launching side. It is longer than the timeout there, because the launching side knows which process is
/// silent.
pub const TIMEOUT: Duration = SILENCE.saturating_add(Duration::from_secs(15));

/// The reason why a worker ends early.
pub enum End {
    /// The layer failed. The launching side receives the message.
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

/// Returns the address of the layer's socket. An unspecified IP address is replaced by that of the control
/// connection.
pub fn bound<T: DeserializeOwned + Send + 'static>(bind: SocketAddr, control: &Control<T>) -> SocketAddr {
    let here = control.local_ip().filter(|_| bind.ip().is_unspecified());
    SocketAddr::new(here.unwrap_or(bind.ip()), bind.port())
}

/// Returns the error for an order that does not fit the worker's state.
pub fn unexpected(order: &Order) -> End {
    End::Layer(format!("the order {order:?} came out of turn"))
}

/// Pins this thread to the processor, if there is one.
pub fn pin(cpu: Option<usize>) -> Result<(), End> {
    match cpu.map(|cpu| (cpu, place::pin(cpu))) {
        Some((cpu, Err(error))) => Err(End::Layer(format!("cannot run on processor {cpu}: {error}"))),
        _ => Ok(()),
    }
}

/// Returns the number of times that the system took the processor from this thread, if it reports that. Linux
/// also counts the yields of a thread that yields. For such a thread the function returns the number of time
/// slices that it lost to CPU-bound programs.
pub fn preemptions(wait: Wait) -> Option<u64> {
    if wait == Wait::Yield {
        return lost_turns();
    }
    let status = std::fs::read_to_string("/proc/thread-self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"))?.trim().parse().ok()
}
