//! One launch over simulated interfaces: a thread of this process, so that a signal ends the command meanwhile.

use super::bench::Launched;
use super::end::End;
use crate::terminal::interrupt::Interrupt;
use netdyno_layers::sim;
use netdyno_measure::task::Task;
use netdyno_protocol::sim::Truth;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Time between two looks for a signal.
const LOOK_AFTER: Duration = Duration::from_millis(20);

/// Measures once. `progress` receives the share of the work that is done.
pub fn launch(
    (truth, size_bytes): (Truth, usize),
    task: &Task,
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(f64),
) -> Result<Launched, End> {
    let share = Arc::new(AtomicU64::new(0));
    let (tell, told) = mpsc::channel();
    let (task, done) = (task.clone(), Arc::clone(&share));
    let measure = move || {
        let mut progress = |share: f64| done.store(share.to_bits(), Ordering::Relaxed);
        // Nobody listens after a signal.
        let _ = tell.send(sim::launch(truth, size_bytes, &task, &mut progress));
    };
    let started = thread::Builder::new().name("simulation".into()).spawn(measure);
    started.map_err(|error| End::Failed(format!("the system starts no thread: {error}")))?;
    loop {
        interrupt.check().map_err(End::Fault)?;
        match told.recv_timeout(LOOK_AFTER) {
            Ok(measured) => return measured.map(Launched::from).map_err(|error| End::Failed(error.0)),
            Err(RecvTimeoutError::Timeout) => progress(f64::from_bits(share.load(Ordering::Relaxed))),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(End::Failed("the simulation ended without a result".into()));
            }
        }
    }
}
