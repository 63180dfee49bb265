//! A trial before the first launch: a process of its own opens a layer whose library alone knows what it can do.

use crate::launch::end::{End, LOOK};
use crate::launch::orders::{Answer, Order};
use crate::launch::worker;
use netdyno_host::wait::Wait;
use netdyno_job::workers::{Event, Workers, WorkersError};
use netdyno_layers::catalogue::Layer;
use std::time::{Duration, Instant};

/// Timeout for opening a layer. A slower layer is left to its launches.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Opens a layer on this host, for processes that wait in this way.
///
/// # Errors
/// The layer cannot be opened, or cannot wait in this way.
pub fn open(layer: Layer, wait: Wait) -> Result<(), String> {
    tried(layer, wait).map_err(|end| match end {
        End::Failed(text) => text,
        End::Fault(fault) => format!("{fault:?}"),
    })
}

fn tried(layer: Layer, wait: Wait) -> Result<(), End> {
    let mut workers = Workers::new();
    let rank = workers.launch(worker::command(&[]).map_err(WorkersError::Spawn)?)?;
    workers.send(rank, &Order::Try { layer: layer.to_string(), wait: wait.to_string() })?;
    let until = Instant::now() + TIMEOUT;
    while Instant::now() < until {
        return match workers.next(LOOK)? {
            None => continue,
            Some((_, Event::Message(Answer::Tried))) => Ok(()),
            Some((_, Event::Message(Answer::Failed(text)))) => Err(End::Failed(text)),
            Some((_, Event::Message(other))) => {
                Err(End::Failed(format!("a trial was answered by {other:?}")))
            }
            Some((_, Event::Ended(end))) => Err(End::Failed(format!("the process that opened it {end}"))),
        };
    }
    Ok(())
}
