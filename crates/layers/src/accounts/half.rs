//! A half of any layer that also tells the accounts of processor time: its address has that of the accounts before
//! its own.

use super::service::{PairMeter, serve};
use crate::half::{Half, Replier, Role};
use crate::tcp::connection::Listener;
use netdyno_measure::layer::LayerError;
use netdyno_measure::task::Subject;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;

/// Bytes of the length before the address of the accounts.
const LEN: usize = 2;

/// Returns `half` with accounts. `ip` is the address of the accounts' socket.
///
/// # Errors
/// The socket cannot be opened.
pub fn with_accounts(half: Box<dyn Half>, role: Role, ip: IpAddr) -> Result<Box<dyn Half>, LayerError> {
    let listener = match role {
        Role::Requester => None,
        Role::Replier => Some(Listener::open(SocketAddr::new(ip, 0), 1)?),
    };
    Ok(Box::new(AccountedHalf { half, listener }))
}

struct AccountedHalf {
    half: Box<dyn Half>,
    /// The replier's listening socket; `None` at the requester.
    listener: Option<Listener>,
}

impl Half for AccountedHalf {
    fn address(&self) -> Vec<u8> {
        let accounts =
            self.listener.as_ref().map(|listener| listener.addresses().concat()).unwrap_or_default();
        joined(&accounts, &self.half.address())
    }

    fn library(&self) -> Option<&str> {
        self.half.library()
    }

    fn requester(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Subject>, LayerError> {
        let (accounts, layer) = split(peer)?;
        let mut subject = self.half.requester(layer)?;
        subject.set_meter(Box::new(PairMeter::connect(accounts)?))?;
        Ok(subject)
    }

    fn replier(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Replier>, LayerError> {
        let (_, layer) = split(peer)?;
        let replier = self.half.replier(layer)?;
        Ok(Box::new(AccountedReplier { replier, listener: self.listener }))
    }
}

struct AccountedReplier {
    replier: Box<dyn Replier>,
    /// The socket of the accounts; `None` once they are told.
    listener: Option<Listener>,
}

impl Replier for AccountedReplier {
    fn serve(&mut self, over: &AtomicBool) -> Result<(), LayerError> {
        if let Some(listener) = self.listener.take() {
            serve(listener, rustix::thread::gettid())?;
        }
        self.replier.serve(over)
    }
}

fn joined(accounts: &[u8], layer: &[u8]) -> Vec<u8> {
    [&(accounts.len() as u16).to_le_bytes()[..], accounts, layer].concat()
}

/// Returns the address of the accounts and that of the layer.
fn split(address: &[u8]) -> Result<(&[u8], &[u8]), LayerError> {
    let parts = address
        .split_first_chunk::<LEN>()
        .and_then(|(len, rest)| rest.split_at_checked(u16::from_le_bytes(*len).into()));
    parts.ok_or_else(|| LayerError::new("the address of the other process has no place for accounts"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_addresses_come_back(accounts: Vec<u8>, layer: Vec<u8>) {
            let address = joined(&accounts, &layer);
            prop_assert_eq!(split(&address).unwrap(), (&accounts[..], &layer[..]));
        }

        #[test]
        fn no_address_panics(bytes: Vec<u8>) {
            let _ = split(&bytes);
        }
    }
}
