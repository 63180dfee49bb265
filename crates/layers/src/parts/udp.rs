//! Bare UDP sockets in parts.

use super::partner::Partner;
use super::{Parts, PartsOptions, wire};
use netdyno_measure::layer::LayerError;
use netdyno_measure::task::Subject;
use netdyno_stack::am::Wire;
use std::rc::Rc;

/// The index of the only server.
const PLAIN: usize = 0;

/// Opens both ends.
pub(crate) fn open(options: PartsOptions) -> Result<Box<dyn Subject>, LayerError> {
    let PartsOptions { size_bytes, partner_cpu } = options;
    let mut parts = Parts::new();
    let ends = wire::ends(Wire::Udp)?;
    wire::system_calls(&mut parts, Wire::Udp, &ends, size_bytes)?;
    let (asking, server) = wire::exchange(Wire::Udp)?;
    let partner = Rc::new(Partner::start(partner_cpu, vec![server])?);
    let plain = wire::round_trips(&mut parts, &partner, PLAIN, asking, size_bytes);
    wire::plain_exchange(&mut parts, plain);
    Ok(parts.subject())
}
