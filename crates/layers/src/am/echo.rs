//! Requests of one size whose reply is the request itself: a short message of up to four words, or a medium
//! message.

use super::endpoint::config;
use super::short::{with_words, words};
use crate::options::LayerOptions;
use crate::payload::FILL;
use netdyno_measure::layer::LayerError;
use netdyno_stack::am::{Config, Endpoint, PeerId, Request, RequestError};

/// The handler index of requests, and of replies.
pub(crate) const ECHO: u8 = 0;
/// Medium messages have a multiple of this size, in bytes.
const LINE: usize = 64;

/// Handles a request: replies with its words, or with its payload.
pub(crate) fn echo<S>(_: &mut S, request: Request<'_>) {
    let words = request.words();
    match request.payload() {
        [] => request.reply(ECHO, words),
        // The reply fits, because both ends configure the same size. If they did not, the requester's peer
        // timeout would end the run.
        payload => drop(request.reply_medium(ECHO, [], payload)),
    }
}

/// Returns the bytes that an endpoint allocates for each medium message.
pub(crate) fn medium_bytes(size_bytes: usize) -> usize {
    if words(size_bytes).is_some() { LINE } else { size_bytes.next_multiple_of(LINE) }
}

/// Returns the configuration of an endpoint for messages of the options' size.
///
/// # Errors
/// The size or the window does not fit into 32 bits.
pub(super) fn echo_config(options: &LayerOptions, window: usize) -> Result<Config, LayerError> {
    let window = u32::try_from(window).map_err(LayerError::new)?;
    let medium_bytes = u32::try_from(medium_bytes(options.size_bytes)).map_err(LayerError::new)?;
    Ok(config(options, window).medium_bytes(medium_bytes))
}

/// A message of one size.
pub(crate) enum EchoMessage {
    Short { words: usize },
    Medium(Vec<u8>),
}

impl EchoMessage {
    pub(crate) fn new(size_bytes: usize) -> Self {
        match words(size_bytes) {
            Some(words) => Self::Short { words },
            None => Self::Medium(vec![FILL; size_bytes]),
        }
    }

    /// Sends the message as a request to `peer`, for its handler of this index.
    #[inline(always)]
    pub(crate) fn request<S>(
        &self,
        endpoint: &mut Endpoint<S>,
        state: &mut S,
        peer: PeerId,
        handler: u8,
    ) -> Result<(), RequestError> {
        match self {
            Self::Short { words } => {
                Ok(with_words!(*words, |words| endpoint.request(state, peer, handler, words))?)
            }
            Self::Medium(payload) => endpoint.request_medium(state, peer, handler, [], payload),
        }
    }
}
