//! Where a measurement takes place: hosts, processors, addresses.

use crate::args::Measuring;
use crate::fault::Fault;
use crate::peer::Peer;
use crate::secret;
use netdyno_clock::place;
use netdyno_host::datagram::DatagramSocket;
use netdyno_layers::catalogue::Layer;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Where requester and replier are.
pub struct Site {
    /// Where they run.
    pub cpus: (usize, usize),
    /// Where sockets are on this host; the port is the replier's.
    pub bind: SocketAddr,
    /// The host of the replier, where it is not this one.
    pub peer: Option<Arc<Peer>>,
}

impl Site {
    /// Checks what is asked for against this machine, and takes the peer for this
    /// measurement. What would fail in a launch fails now.
    pub fn find(layers: &[Layer], measuring: &Measuring) -> Result<Self, Fault> {
        let here = cpus_here(measuring)?;
        let peer = match measuring.peer {
            None => None,
            Some(address) => {
                if let Some(layer) = layers.iter().find(|layer| !layer.has_sockets()) {
                    return Err(Fault::BadInput(format!(
                        "{layer} does not reach another host: leave --peer away"
                    )));
                }
                let key = secret::given(measuring.key_file.as_deref())?;
                Some(Peer::reserve(address, key, measuring.cpus.map(|(_, there)| there))?)
            }
        };
        let local = peer.as_ref().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), Peer::local_ip);
        let bind = measuring.bind.unwrap_or(SocketAddr::new(local, 0));
        if layers.iter().any(|layer| layer.has_sockets()) {
            let port = if peer.is_some() { 0 } else { bind.port() };
            DatagramSocket::bind(SocketAddr::new(bind.ip(), port), None)
                .map_err(|error| Fault::BadInput(format!("--bind: {error}")))?;
        }
        let cpus = (here.0, peer.as_ref().map_or(here.1, Peer::cpu));
        Ok(Self { cpus, bind, peer: peer.map(Arc::new) })
    }
}

/// Processors of this host for requester and replier.
fn cpus_here(measuring: &Measuring) -> Result<(usize, usize), Fault> {
    let allowed = place::allowed()
        .map_err(|error| Fault::Failed(format!("cannot read which processors may be used: {error}")))?;
    let Some((a, b)) = measuring.cpus else {
        return place::choose_pair(&allowed).ok_or_else(|| Fault::Failed("no processor may be used".into()));
    };
    // With a peer the second is of that host.
    let of_here = if measuring.peer.is_some() { vec![a] } else { vec![a, b] };
    match of_here.into_iter().find(|cpu| !allowed.contains(cpu)) {
        None => Ok((a, b)),
        Some(cpu) => Err(Fault::BadInput(format!(
            "processor {cpu} of --cpus cannot be used here: choose from {allowed:?}"
        ))),
    }
}
