//! The runtime of tonic, on the thread that measures. It works only inside of the calls of this module. So the
//! processor time of a call or of a reply is paid where the layer is called, and not by another thread.

use netdyno_measure::layer::LayerError;
use std::pin::pin;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

/// The runtime.
pub(super) struct Engine(Runtime);

impl Engine {
    /// Starts a runtime without threads.
    pub(super) fn start() -> Result<Self, LayerError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.map(Self).map_err(|error| LayerError(format!("cannot start the runtime of gRPC: {error}")))
    }

    /// Runs `work` to its end.
    pub(super) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.0.block_on(work)
    }

    /// Adds a task, which runs in later calls.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(task);
    }

    /// Runs all tasks that can run, and then looks at the sockets without waiting. Tasks whose sockets are
    /// ready run in the next call.
    #[inline(always)]
    pub(super) fn turn(&self) {
        self.run(yield_now());
    }

    /// Runs tasks and sleeps until `event` has come, at most for `time`. Returns what came.
    pub(super) fn wait_for<T>(&self, event: impl Future<Output = T>, time: Duration) -> Option<T> {
        let event = pin!(event);
        self.run(async { timeout(time, event).await.ok() })
    }

    /// Runs tasks and sleeps for `time`.
    pub(super) fn sleep(&self, time: Duration) {
        self.run(async { sleep(time).await });
    }
}
