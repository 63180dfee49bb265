//! Opening of endpoints.

use crate::options::{DialOptions, LayerOptions};
use crate::peer_wait::PEER_TIMEOUT;
use netdyno_measure::layer::LayerError;
use netdyno_measure::logp::data::Transport;
use netdyno_measure::overlap::data::ProgressBy;
use netdyno_stack::am::{Config, DialSettings, Endpoint, Handlers, PeerId, SharedWord, Wire as Way};

/// Most requests in flight to one peer over UDP: as many as may be on the wire at once. More requests would
/// wait in the endpoint, and issuing them would cost less than sending them does.
pub(super) const UDP_WINDOW: u32 = 64;

/// Returns the window to a single peer.
pub(crate) fn window(way: Way) -> u32 {
    match way {
        Way::Shm => Config::default().window,
        _ => UDP_WINDOW,
    }
}

/// Returns the configuration that the options ask for, with this window to each peer.
pub(crate) fn config(options: &LayerOptions, window: u32) -> Config {
    Config::new()
        .peer_timeout(PEER_TIMEOUT)
        .wait(options.wait)
        .is_woken(options.progress_by == ProgressBy::Thread)
        .window(window)
        .faults(options.faults)
        .seed(options.seed)
        .bind(options.bind)
}

/// Opens an endpoint with the dial settings of the options.
pub(super) fn open<S>(
    handlers: Handlers<S>,
    config: Config,
    options: &LayerOptions,
) -> Result<Endpoint<S>, LayerError> {
    let DialOptions { settings, word, profile } = options.dials.clone();
    let current = word.map(|(path, offset)| SharedWord::map(&path, offset));
    let current = current.transpose().map_err(LayerError::new)?;
    Endpoint::with_dial_settings(handlers, config, DialSettings { settings, current, profile })
        .map_err(LayerError::new)
}

/// Returns the transport's counters for a peer, if its wire keeps them.
pub(super) fn transport<S>(endpoint: &Endpoint<S>, peer: PeerId) -> Option<Transport> {
    Some(crate::transport::counters(endpoint.statistics(peer)?, endpoint.strays()))
}
