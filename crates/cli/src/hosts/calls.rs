//! Serves remote procedure calls of others: the replier of a layer, without a requester of netdyno's.

use crate::records::output::write_stdout;
use crate::terminal::fault::Fault;
use crate::terminal::interrupt::Interrupt;
use netdyno_host::wait::Wait;
use netdyno_layers::catalogue::{Layer, able, half};
use netdyno_layers::half::{ANY_CLIENT, Role};
use netdyno_layers::options::{DialOptions, LayerOptions};
use netdyno_measure::layer::{Face, LayerError};
use netdyno_measure::onesided::data::Access;
use netdyno_measure::overlap::data::ProgressBy;
use netdyno_protocol::faults::Faults;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Interval between two checks for a signal.
const LOOK: Duration = Duration::from_millis(100);
/// The most bytes of data in a call and in a reply: the default of `netdyno bulk --largest`.
const LARGEST: usize = 4 << 20;

/// Serves calls over the layer at this address until a signal arrives.
pub fn serve(layer: Layer, bind: SocketAddr) -> Result<(), Fault> {
    if !layer.connects() {
        return Err(Fault::BadInput(format!(
            "--over {layer}: others cannot call over it: use one of {}",
            able(Layer::connects)
        )));
    }
    if let Some(why) = layer.unavailable() {
        return Err(Fault::BadInput(format!("the layer {layer} is not available here: {why}")));
    }
    let failed = |error: LayerError| Fault::Failed(format!("{layer}: {error}"));
    let half = half::open(layer, Role::Replier, options(layer, bind))
        .map_err(|error| Fault::BadInput(format!("{layer}: {error}")))?;
    let address = String::from_utf8_lossy(&half.address()).into_owned();
    let mut replier = half.replier(ANY_CLIENT).map_err(failed)?;
    let interrupt = Interrupt::catch()?;
    let over = over_at(interrupt.clone());
    write_stdout(&announcement(layer, &address))?;
    replier.serve(&over).map_err(failed)?;
    interrupt.check().map_err(Fault::stopped)
}

fn options(layer: Layer, bind: SocketAddr) -> LayerOptions {
    LayerOptions {
        size_bytes: layer.max_transfer().min(LARGEST),
        face: Face::Sized,
        access: Access::default(),
        progress_by: ProgressBy::default(),
        // A server may have no client for a long time.
        wait: Wait::Block,
        faults: Faults::NONE,
        dials: DialOptions::default(),
        seed: 0,
        bind,
    }
}

/// Returns a flag that is set soon after a signal has arrived.
fn over_at(interrupt: Interrupt) -> Arc<AtomicBool> {
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    thread::spawn(move || {
        while interrupt.check().is_ok() {
            thread::sleep(LOOK);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    over
}

/// Returns the text that tells the user what to call.
fn announcement(layer: Layer, address: &str) -> String {
    format!(
        "netdyno {} answers {layer} at {address}, anyone's calls and without a key. To measure it:\n\n    \
         netdyno logp --over {layer} --connect {address}\n\nCtrl-C ends it.\n",
        env!("CARGO_PKG_VERSION")
    )
}
