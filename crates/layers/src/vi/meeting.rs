//! How two processes come to a connection of VIs. The one waits at a discriminator, from when it is
//! opened on; the other asks there once it knows that. So none has to ask again.

use crate::half::{PEER_TIMEOUT, Role};
use crate::real::counted;
use netdyno_host::random;
use netdyno_measure::layer::LayerError;
use netdyno_measure::logp::data::Transport;
use netdyno_stack::vi::{Address, Consumer, ViHandle, WaitHandle};
use std::time::{Duration, Instant};

/// Bytes of a discriminator, which nobody else has by chance.
pub(crate) const DISCRIMINATOR_LEN: usize = 16;
/// Longest sleep while the other one is waited for.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);

/// A discriminator of its own.
pub(crate) fn discriminator() -> Result<[u8; DISCRIMINATOR_LEN], LayerError> {
    random::bytes().map_err(|error| LayerError(format!("the system has no random bytes: {error}")))
}

/// A VI, and the consumer that has it.
pub(crate) struct Link {
    pub(crate) consumer: Consumer,
    pub(crate) vi: ViHandle,
}

impl Link {
    /// What happened on the way so far, where the wire keeps count.
    pub(crate) fn transport(&self) -> Option<Transport> {
        Some(counted(self.consumer.statistics(self.vi)?, self.consumer.strays()))
    }
}

/// What a process has for the other one to find it by.
pub(crate) struct Meeting {
    discriminator: [u8; DISCRIMINATOR_LEN],
    /// Of the one that waits.
    wait: Option<WaitHandle>,
}

impl Meeting {
    /// The replier waits from now on.
    pub(crate) fn open(consumer: &mut Consumer, role: Role) -> Result<Self, LayerError> {
        let discriminator = discriminator()?;
        let wait = match role {
            Role::Requester => None,
            Role::Replier => Some(consumer.wait(&discriminator).map_err(LayerError::new)?),
        };
        Ok(Self { discriminator, wait })
    }

    /// What the other process is to be told.
    pub(crate) fn address(&self, consumer: &Consumer) -> Vec<u8> {
        write_address(self.discriminator, consumer)
    }

    /// Connects with the process of that address.
    pub(crate) fn connect(&self, link: &mut Link, peer: &[u8]) -> Result<(), LayerError> {
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

/// A discriminator, and the host behind it.
pub(crate) fn write_address(discriminator: [u8; DISCRIMINATOR_LEN], consumer: &Consumer) -> Vec<u8> {
    [&discriminator[..], &consumer.host()].concat()
}

/// What [`write_address`] wrote. Whether there is such a host is found out when it is asked.
pub(crate) fn parse_address(bytes: &[u8]) -> Result<Address, LayerError> {
    let (discriminator, host) = bytes
        .split_first_chunk::<DISCRIMINATOR_LEN>()
        .ok_or_else(|| LayerError::new("the address of the other process is too short"))?;
    Ok(Address { host: host.to_vec(), discriminator: discriminator.to_vec() })
}

/// Sleeps until `is_done` says so, for a bounded time.
pub(crate) fn wait_until(
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
