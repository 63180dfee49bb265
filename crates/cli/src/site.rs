//! Where a measurement takes place: hosts, processors, addresses.

use crate::args::{CpuList, Measuring};
use crate::fault::Fault;
use crate::peer::Peer;
use crate::secret;
use netdyno_clock::place;
use netdyno_host::datagram::DatagramSocket;
use netdyno_layers::catalogue::Layer;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Where requester and replier, or many processes, are.
pub struct Site {
    /// Where they run, by rank.
    pub cpus: Vec<usize>,
    /// Where sockets are on this host; the port is the replier's.
    pub bind: SocketAddr,
    /// The host of the replier, where it is not this one.
    pub peer: Option<Arc<Peer>>,
}

impl Site {
    /// Checks what is asked for against this machine, and takes the peer for this
    /// measurement. What would fail in a launch fails now. `procs` is how many processes there
    /// are, where it is not one pair.
    pub fn find(layers: &[Layer], measuring: &Measuring, procs: Option<usize>) -> Result<Self, Fault> {
        if let Some(procs) = procs {
            return Self::of_many(layers, measuring, procs);
        }
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
                Some(Peer::reserve(address, key, pair(measuring)?.map(|(_, there)| there))?)
            }
        };
        let local = peer.as_ref().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), Peer::local_ip);
        let bind = measuring.bind.unwrap_or(SocketAddr::new(local, 0));
        let port = if peer.is_some() { 0 } else { bind.port() };
        check_bind(layers, SocketAddr::new(bind.ip(), port))?;
        let cpus = vec![here.0, peer.as_ref().map_or(here.1, Peer::cpu)];
        Ok(Self { cpus, bind, peer: peer.map(Arc::new) })
    }

    /// Many processes of this host, on its processors in turn.
    fn of_many(layers: &[Layer], measuring: &Measuring, procs: usize) -> Result<Self, Fault> {
        if measuring.peer.is_some() {
            return Err(Fault::BadInput(
                "many processes are measured on this host alone: leave --peer away".into(),
            ));
        }
        let allowed = allowed()?;
        let cpus = measuring.cpus.as_ref().map_or(&allowed, |CpuList(cpus)| cpus);
        check_allowed(cpus, &allowed)?;
        let cpus = cpus.iter().copied().cycle().take(procs).collect();
        let bind = measuring.bind.unwrap_or(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0));
        check_bind(layers, bind)?;
        Ok(Self { cpus, bind, peer: None })
    }

    /// How many different processors there are.
    pub fn processors(&self) -> usize {
        distinct(&self.cpus)
    }
}

/// How many processors there are in a list that may name one several times.
pub fn distinct(cpus: &[usize]) -> usize {
    cpus.iter().collect::<BTreeSet<_>>().len()
}

fn check_bind(layers: &[Layer], bind: SocketAddr) -> Result<(), Fault> {
    if layers.iter().any(|layer| layer.has_sockets()) {
        DatagramSocket::bind(bind, None).map_err(|error| Fault::BadInput(format!("--bind: {error}")))?;
    }
    Ok(())
}

fn allowed() -> Result<Vec<usize>, Fault> {
    let allowed = place::allowed()
        .map_err(|error| Fault::Failed(format!("cannot read which processors may be used: {error}")))?;
    if allowed.is_empty() { Err(Fault::Failed("no processor may be used".into())) } else { Ok(allowed) }
}

fn check_allowed(cpus: &[usize], allowed: &[usize]) -> Result<(), Fault> {
    match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        None => Ok(()),
        Some(cpu) => Err(Fault::BadInput(format!(
            "processor {cpu} of --cpus cannot be used here: choose from {allowed:?}"
        ))),
    }
}

/// The two processors asked for.
fn pair(measuring: &Measuring) -> Result<Option<(usize, usize)>, Fault> {
    match measuring.cpus.as_ref().map(|CpuList(cpus)| &cpus[..]) {
        None => Ok(None),
        Some(&[a, b]) => Ok(Some((a, b))),
        Some(_) => Err(Fault::BadInput("--cpus must be two processors, as in 0,1".into())),
    }
}

/// Processors of this host for requester and replier.
fn cpus_here(measuring: &Measuring) -> Result<(usize, usize), Fault> {
    let allowed = allowed()?;
    let Some((a, b)) = pair(measuring)? else {
        return place::choose_pair(&allowed).ok_or_else(|| Fault::Failed("no processor may be used".into()));
    };
    // With a peer the second is of that host.
    let of_here = if measuring.peer.is_some() { vec![a] } else { vec![a, b] };
    check_allowed(&of_here, &allowed)?;
    Ok((a, b))
}
