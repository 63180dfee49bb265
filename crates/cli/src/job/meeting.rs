//! The rendezvous of the processes of a job. Each process learns the address and the key of rank 0 by an exchange of
//! bytes ([`Exchange`]). An error of one process ends all of them, because the others would wait for it forever.

use crate::job::exchange::Exchange;
use crate::job::lobby;
use crate::terminal::fault::Fault;
use crate::terminal::voice::say;
use netdyno_host::machine;
use netdyno_job::connection::Connection;
use netdyno_job::key::Key;
use netdyno_job::place::Place;
use netdyno_job::rendezvous::{self, Rendezvous};
use netdyno_measure::layer::LayerError;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Bytes that every process contributes to the gather.
const GIVEN: usize = 4096;
/// First of these bytes if the process has failed; otherwise it is a blank.
const FAILED: u8 = b'!';

/// Address and key of rank 0, and the place of this process.
pub struct Door {
    /// Address of rank 0's rendezvous.
    pub address: SocketAddr,
    /// The key, as text.
    pub key_text: String,
    /// The key, parsed.
    pub key: Key,
    /// Place of this process in the job.
    pub place: Place,
}

impl Door {
    /// Opens one more connection to rank 0.
    pub fn enter(&self) -> Result<Connection, LayerError> {
        rendezvous::enter(self.address, &self.key, Some(self.place)).map_err(|error| {
            LayerError(format!("process {}: the first one, at {}: {error}", self.place.rank, self.address))
        })
    }
}

/// The contribution of rank 0 to the gather.
#[derive(Serialize, Deserialize)]
struct Invitation {
    addresses: Vec<SocketAddr>,
    key_text: String,
}

/// Finds rank 0, which opens its rendezvous at `bind`, if that is given. If all processes share one network
/// namespace, the rendezvous is on the loopback interface. Otherwise the remote processes try the addresses
/// of rank 0.
pub fn meet(exchange: &mut Exchange, bind: Option<IpAddr>) -> Result<(Door, Option<Rendezvous>), Fault> {
    let place = exchange.place();
    let networks = gather(exchange, Ok(machine::network().into()))?;
    let is_near = |rank: usize| networks[rank] == networks[0];
    let is_one_network = (0..place.procs).all(is_near);

    let near = is_one_network.then_some(Ipv4Addr::LOCALHOST.into());
    let rendezvous = if place.rank == 0 { Some(lobby::open(bind.or(near))) } else { None };
    let invitation = match &rendezvous {
        Some(Ok(rendezvous)) => invite(rendezvous),
        Some(Err(error)) => Err(LayerError(format!("no place for the others to come to: {error}"))),
        None => Ok(Vec::new()),
    };
    let all = gather(exchange, invitation)?;
    let unread =
        |error: &dyn std::fmt::Display| Fault::Failed(format!("the first process invites to {error}"));
    let Invitation { addresses, key_text } =
        serde_json::from_slice(&all[0]).map_err(|error| unread(&error))?;
    let key = Key::new(&key_text).map_err(|error| unread(&error))?;

    // Remote processes try the addresses. All processes use the address that was found, so that all sockets
    // of rank 0 are at an address that every process reaches.
    let found = if is_near(place.rank) { Ok(0) } else { try_all(&addresses, &key) };
    let found = gather(exchange, found.map(|at| vec![at]))?;
    let at = found.iter().map(|at| usize::from(at[0])).filter(|&at| at < addresses.len()).max();
    let address = at.map(|at| addresses[at]).ok_or_else(|| unread(&"no address"))?;
    Ok((Door { address, key_text, key, place }, rendezvous.and_then(Result::ok)))
}

/// Contributes `mine`, and returns the contributions of all processes, padded with blanks. If one process has
/// failed, all fail, and only that one prints the reason.
fn gather(exchange: &mut Exchange, mine: Result<Vec<u8>, LayerError>) -> Result<Vec<Vec<u8>>, Fault> {
    let mut given = [b' '; GIVEN];
    let mine = mine.and_then(|bytes| {
        let room =
            given.get_mut(1..=bytes.len()).ok_or_else(|| LayerError::new("this is too much to say"))?;
        room.copy_from_slice(&bytes);
        Ok(())
    });
    if mine.is_err() {
        given[0] = FAILED;
    }
    let all = exchange.gather(&given).map_err(|error| about(exchange, error))?;
    mine.map_err(|error| about(exchange, error))?;
    if all.iter().any(|given| given.first().is_none_or(|&first| first == FAILED)) {
        return Err(Fault::Quiet(1));
    }
    Ok(all.into_iter().map(|given| given[1..].to_vec()).collect())
}

fn about(exchange: &Exchange, error: LayerError) -> Fault {
    let place = exchange.place();
    Fault::Failed(format!("process {} of {}: {error}", place.rank, place.procs))
}

fn invite(rendezvous: &Rendezvous) -> Result<Vec<u8>, LayerError> {
    let addresses = lobby::addresses(rendezvous).map_err(LayerError::new)?;
    serde_json::to_vec(&Invitation { addresses, key_text: rendezvous.key_text().into() })
        .map_err(LayerError::new)
}

/// Returns the index of the first address at which rank 0's rendezvous answers.
fn try_all(addresses: &[SocketAddr], key: &Key) -> Result<u8, LayerError> {
    let found = addresses.iter().position(|&address| rendezvous::is_at(address, key));
    found.and_then(|at| u8::try_from(at).ok()).ok_or_else(|| {
        let tried: Vec<String> = addresses.iter().map(|address| address.ip().to_string()).collect();
        LayerError(format!(
            "the first process is at none of its addresses, {}: name one that all hosts reach by --bind",
            tried.join(", ")
        ))
    })
}

/// Ends this process after a timeout, unless it is dropped before. An exchange or MPI may wait forever for a
/// process that is gone.
pub struct Deadline {
    is_off: Arc<AtomicBool>,
}

impl Deadline {
    /// Starts the timeout. After `time` it prints `text`, if any, and exits with `code`.
    pub fn of(time: Duration, text: Option<String>, code: u8) -> Self {
        let is_off = Arc::new(AtomicBool::new(false));
        let off = Arc::clone(&is_off);
        thread::spawn(move || {
            thread::sleep(time);
            if !off.load(Ordering::Relaxed) {
                text.iter().for_each(|text| say(&format!("error: {text}")));
                std::process::exit(code.into());
            }
        });
        Self { is_off }
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.is_off.store(true, Ordering::Relaxed);
    }
}
