//! Connection of the VIs of two processes. One process waits at a discriminator from the moment it is opened.
//! The other process sends its connection request when it knows the discriminator, so it has to send one
//! only.

use crate::half::Role;
use crate::peer_wait::PEER_TIMEOUT;
use crate::transport;
use netdyno_host::random;
use netdyno_measure::layer::LayerError;
use netdyno_measure::logp::data::Transport;
use netdyno_stack::vi::{Address, Consumer, ViHandle, WaitHandle};
use std::time::{Duration, Instant};

/// Bytes of a discriminator: enough that no two processes draw the same one.
pub(super) const DISCRIMINATOR_LEN: usize = 16;
/// Longest sleep while a process waits for the other one.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);

/// Returns a random discriminator.
pub(super) fn discriminator() -> Result<[u8; DISCRIMINATOR_LEN], LayerError> {
    random::bytes().map_err(|error| LayerError(format!("the system has no random bytes: {error}")))
}

/// A VI, and the consumer that it belongs to.
pub(super) struct Link {
    pub(super) consumer: Consumer,
    pub(super) vi: ViHandle,
}

impl Link {
    /// Sleeps until something may have arrived, at most for `timeout`.
    pub(super) fn sleep(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.consumer.sleep(timeout);
        Ok(())
    }

    /// Returns the transport's counters, if the wire keeps them.
    pub(super) fn transport(&self) -> Option<Transport> {
        Some(transport::counters(self.consumer.statistics(self.vi)?, self.consumer.strays()))
    }
}

/// One process's side of the connection, before it is made.
pub(super) struct Rendezvous {
    discriminator: [u8; DISCRIMINATOR_LEN],
    /// The wait of the replier.
    wait: Option<WaitHandle>,
}

impl Rendezvous {
    /// Opens the side of `role`. The replier waits from now on.
    pub(super) fn open(consumer: &mut Consumer, role: Role) -> Result<Self, LayerError> {
        let discriminator = discriminator()?;
        let wait = match role {
            Role::Requester => None,
            Role::Replier => Some(consumer.wait(&discriminator).map_err(LayerError::new)?),
        };
        Ok(Self { discriminator, wait })
    }

    /// Returns the bytes to hand to the other process.
    pub(super) fn address(&self, consumer: &Consumer) -> Vec<u8> {
        write_address(self.discriminator, consumer)
    }

    /// Connects with the process at this address.
    pub(super) fn connect(&self, link: &mut Link, peer: &[u8]) -> Result<(), LayerError> {
        let Link { consumer, vi } = link;
        let peer = parse_address(peer)?;
        if self.wait.is_none() {
            consumer.ask(*vi, &self.discriminator, peer, PEER_TIMEOUT).map_err(LayerError::new)?;
        }
        wait_until(consumer, |consumer| match self.wait {
            Some(wait) => consumer.accept(wait, *vi).map_err(LayerError::new),
            None => consumer.is_answered(*vi).map_err(LayerError::new),
        })
    }
}

/// Returns the bytes of an address: a discriminator, and the host behind it.
pub(super) fn write_address(discriminator: [u8; DISCRIMINATOR_LEN], consumer: &Consumer) -> Vec<u8> {
    [&discriminator[..], &consumer.host()].concat()
}

/// Returns the address that [`write_address`] wrote. The connection request finds out whether the host
/// exists.
pub(super) fn parse_address(bytes: &[u8]) -> Result<Address, LayerError> {
    let (discriminator, host) = bytes
        .split_first_chunk::<DISCRIMINATOR_LEN>()
        .ok_or_else(|| LayerError::new("the address of the other process is too short"))?;
    Ok(Address { host: host.to_vec(), discriminator: discriminator.to_vec() })
}

/// Sleeps until `is_done`.
///
/// # Errors
/// [`PEER_TIMEOUT`] is over.
pub(super) fn wait_until(
    consumer: &mut Consumer,
    mut is_done: impl FnMut(&mut Consumer) -> Result<bool, LayerError>,
) -> Result<(), LayerError> {
    let began = Instant::now();
    while !is_done(consumer)? {
        if began.elapsed() > PEER_TIMEOUT {
            return Err(LayerError(format!(
                "the other process has not connected its VI within {PEER_TIMEOUT:?}"
            )));
        }
        consumer.sleep(LONGEST_SLEEP);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let parsed = parse_address(&bytes);
            prop_assert_eq!(parsed.is_ok(), bytes.len() >= DISCRIMINATOR_LEN);
            if let Ok(Address { host, discriminator }) = parsed {
                prop_assert_eq!([discriminator, host].concat(), bytes);
            }
        }
    }
}
