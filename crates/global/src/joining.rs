//! How a rank joins its job.

use crate::error::JoinError;
use crate::state::{State, handlers};
use crate::world::World;
use netdyno_host::machine;
use netdyno_job::place::Place;
use netdyno_job::pmi::Pmi;
use netdyno_protocol::global::message::LONGEST_VALUE;
use netdyno_stack::am::{self, Endpoint, Port, Wait, Wire};
use std::time::{Duration, Instant};

/// The most ranks of a job.
const RANKS_AT_MOST: u32 = 1 << 16;
/// Polls that find nothing, between two looks at the clock, of a rank that spins. A rank that yields or sleeps looks at
/// each, because each may take milliseconds.
const SPINS_PER_ASK: u32 = 1024;

/// The result of an exchange of bytes between all ranks: those of each rank, by rank.
pub(crate) type Gathered = Result<Vec<Vec<u8>>, Box<dyn std::error::Error + Send + Sync>>;

/// The configuration of a rank. All ranks use the same.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The configuration of the endpoint. A rank that makes no call for its peer timeout counts as lost.
    pub am: am::Config,
    /// The transport between ranks. `None` means shared memory on a host, and UDP between hosts.
    pub wire: Option<Wire>,
}

impl Default for Config {
    /// Returns a configuration with a peer timeout of half a minute, because ranks compute between calls.
    fn default() -> Self {
        Self { am: am::Config::new().peer_timeout(Duration::from_secs(30)), wire: None }
    }
}

impl Config {
    /// Sets [`Config::am`].
    #[must_use]
    pub const fn am(self, am: am::Config) -> Self {
        Self { am, ..self }
    }

    /// Sets [`Config::wire`].
    #[must_use]
    pub const fn wire(self, wire: Wire) -> Self {
        Self { wire: Some(wire), ..self }
    }
}

impl World {
    /// Joins the job whose launcher has started this process: `netdyno launch`, mpiexec of MPICH or
    /// Intel MPI, `srun --mpi=pmi2`, or Flux.
    /// Without a launcher this process is the only rank.
    ///
    /// A launcher ends the ranks of a job once one has failed. So a rank that has lost another one gives the launcher
    /// 2 s to end it, before it returns [`Error::PeerLost`](crate::Error::PeerLost).
    ///
    /// # Errors
    /// Returns an error if the launcher offers no PMI version 1 or fails, or if a rank cannot be reached.
    pub fn launched(config: Config) -> Result<Self, JoinError> {
        let Some(place) = Place::of_this_process()? else {
            return Self::join(config, 0, 1, |mine| Ok(vec![mine.to_vec()]));
        };
        if !Pmi::is_offered() {
            return Err(JoinError::NoPmi(place.rank));
        }
        let mut pmi = Pmi::open(place)?;
        let [rank, ranks] = [place.rank, place.procs].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        let (joining, all) = opened(config, rank, ranks, |mine| Ok(pmi.gather(mine)?))?;
        Joining { has_launcher: true, ..joining }.join(&all)
    }

    /// Joins a job as `rank` of `ranks`. `gather` is called twice at every rank: it gives bytes to all ranks, and returns
    /// those of all ranks, by rank.
    ///
    /// # Errors
    /// Returns an error if `gather` fails, or if a rank cannot be reached.
    pub fn join(
        config: Config,
        rank: u32,
        ranks: u32,
        gather: impl FnMut(&[u8]) -> Gathered,
    ) -> Result<Self, JoinError> {
        let (joining, all) = opened(config, rank, ranks, gather)?;
        joining.join(&all)
    }
}

/// A rank that has opened its ports, and is not yet connected to the others. A program that passes on addresses itself
/// joins by it, once the transport is known; [`World::join`] does so by an exchange.
pub struct Joining {
    endpoint: Endpoint<State>,
    /// The ports to all ranks; `None` at the place of this one.
    ports: Vec<Option<Port>>,
    rank: u32,
    peer_timeout: Duration,
    wait: Wait,
    /// Whether a launcher has started this rank.
    has_launcher: bool,
}

impl Joining {
    /// Opens the ports of `rank` among `ranks`, all over `wire`. The rank waits as `am` says, whatever the number of
    /// processors.
    ///
    /// # Errors
    /// Returns an error if there cannot be such a rank, or if a port cannot be opened.
    pub fn open(am: am::Config, rank: u32, ranks: u32, wire: Wire) -> Result<Self, JoinError> {
        if rank >= ranks || ranks > RANKS_AT_MOST {
            return Err(JoinError::Place { rank, ranks });
        }
        Self::over(am, rank, (0..ranks).map(|_| wire))
    }

    fn over(am: am::Config, rank: u32, wires: impl Iterator<Item = Wire>) -> Result<Self, JoinError> {
        // A message holds the longest value of a collective.
        let am = am.medium_bytes(am.medium_bytes.max(LONGEST_VALUE as u32));
        // All ranks have one configuration, and no two of them may draw the same faults.
        let am = am.seed(am.seed.wrapping_add(u64::from(rank)));
        let mut endpoint = Endpoint::new(handlers(), am)?;
        let mut ports = Vec::new();
        for wire in wires {
            let is_self = ports.len() == rank as usize;
            ports.push(if is_self { None } else { Some(endpoint.open_port(wire)?) });
        }
        Ok(Self { endpoint, ports, rank, peer_timeout: am.peer_timeout, wait: am.wait, has_launcher: false })
    }

    /// Returns the addresses of the ports, for all other ranks.
    pub fn addresses(&self) -> Vec<u8> {
        written(&self.ports)
    }

    /// Describes the wire, if it depends on the machine.
    pub fn description(&self) -> Option<&str> {
        self.ports.iter().flatten().find_map(Port::description)
    }

    /// Connects to the others, of which `all` has the [`Joining::addresses`], by rank, and waits until all have joined.
    ///
    /// # Errors
    /// Returns an error if a rank cannot be reached.
    pub fn join(self, all: &[Vec<u8>]) -> Result<World, JoinError> {
        let Self { mut endpoint, ports, rank, peer_timeout, wait, has_launcher } = self;
        let ranks = ports.len() as u32;
        let mut neighbours = Vec::new();
        for (other, port) in ports.into_iter().enumerate() {
            let Some(port) = port else {
                neighbours.push(None);
                continue;
            };
            let address = all.get(other).and_then(|bytes| nth(bytes, rank as usize));
            let connected = endpoint.connect(port, address.ok_or(JoinError::Addresses(other))?);
            let peer = connected.map_err(|error| JoinError::Connect { rank: other as u32, error })?;
            neighbours.push(Some(peer));
        }
        let sizes: Vec<usize> =
            neighbours.iter().flatten().map(|neighbour| endpoint.medium_bytes(*neighbour)).collect();
        let mut world = World {
            piece: sizes.iter().copied().min().unwrap_or(usize::MAX),
            endpoint,
            state: State::new(rank, ranks, sizes.iter().copied().max().unwrap_or(0)),
            neighbours,
            ask_every: peer_timeout / 4,
            asked: Instant::now(),
            polls_per_ask: if wait == Wait::Spin { SPINS_PER_ASK } else { 0 },
            polls_until_ask: 0,
            has_launcher,
            fatal: None,
        };
        // A rank that goes on early may not end before the others have connected to it.
        world.barrier().map_err(|error| JoinError::Exchange(error.into()))?;
        Ok(world)
    }
}

/// Opens the ports of a rank: shared memory to ranks of its host, and UDP to others, unless the configuration has a
/// transport. Returns the addresses of all ranks, too.
fn opened(
    config: Config,
    rank: u32,
    ranks: u32,
    mut gather: impl FnMut(&[u8]) -> Gathered,
) -> Result<(Joining, Vec<Vec<u8>>), JoinError> {
    if rank >= ranks || ranks > RANKS_AT_MOST {
        return Err(JoinError::Place { rank, ranks });
    }
    let here = Host::of_this_process();
    let all = gathered(&mut gather, &here.written(), ranks)?;
    let hosts: Vec<Host> = all.iter().map(|bytes| Host::read(bytes)).collect();
    let is_here = |other: &Host| other.name == here.name;
    let am = given_way(config.am, hosts.iter().filter(|host| is_here(host)));
    let wire = |host| config.wire.unwrap_or(if is_here(host) { Wire::Shm } else { Wire::Udp });
    let joining = Joining::over(am, rank, hosts.iter().map(wire))?;
    let all = gathered(&mut gather, &joining.addresses(), ranks)?;
    Ok((joining, all))
}

fn gathered(
    gather: &mut impl FnMut(&[u8]) -> Gathered,
    mine: &[u8],
    ranks: u32,
) -> Result<Vec<Vec<u8>>, JoinError> {
    let all = gather(mine).map_err(JoinError::Exchange)?;
    if all.len() == ranks as usize {
        Ok(all)
    } else {
        Err(JoinError::Addresses(all.len().min(ranks as usize)))
    }
}

/// The host of a rank.
struct Host {
    name: Vec<u8>,
    /// The processors that the rank may use, a bit for each.
    processors: Vec<u8>,
}

impl Host {
    fn of_this_process() -> Self {
        Self { name: machine::name().into_bytes(), processors: machine::processors() }
    }

    /// Returns the bytes for other ranks. A name has no zero.
    fn written(&self) -> Vec<u8> {
        [&self.name[..], &[0], &self.processors].concat()
    }

    fn read(bytes: &[u8]) -> Self {
        let mut parts = bytes.splitn(2, |byte| *byte == 0).map(<[u8]>::to_vec);
        Self { name: parts.next().unwrap_or_default(), processors: parts.next().unwrap_or_default() }
    }
}

/// Returns the configuration of a rank among those `here` on its host: they yield while they wait if they may use fewer
/// processors than they are. Ranks that a launcher has bound to a processor each have as many, so that they spin.
fn given_way<'a>(am: am::Config, here: impl Iterator<Item = &'a Host>) -> am::Config {
    let (mut ranks, mut usable) = (0, Vec::new());
    for host in here {
        ranks += 1;
        usable.resize(usable.len().max(host.processors.len()), 0u8);
        usable.iter_mut().zip(&host.processors).for_each(|(all, one)| *all |= one);
    }
    let processors: u32 = usable.iter().map(|byte| byte.count_ones()).sum();
    if am.wait == Wait::Spin && processors < ranks { am.wait(Wait::Yield) } else { am }
}

/// Returns the addresses of the ports, each behind its length; that of this rank is empty.
fn written(ports: &[Option<Port>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for port in ports {
        let address = port.as_ref().map_or(Vec::new(), Port::address);
        bytes.extend((address.len() as u16).to_le_bytes());
        bytes.extend(address);
    }
    bytes
}

/// Returns the address with this number.
fn nth(mut bytes: &[u8], nth: usize) -> Option<&[u8]> {
    for _ in 0..nth {
        bytes = split(bytes)?.1;
    }
    split(bytes).map(|(address, _)| address)
}

fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_le_bytes(*len)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(processors: &[&[u8]]) -> Wait {
        let host = |processors: &&[u8]| Host { name: b"a".to_vec(), processors: processors.to_vec() };
        let hosts: Vec<Host> = processors.iter().map(|one| Host::read(&host(one).written())).collect();
        given_way(am::Config::new(), hosts.iter()).wait
    }

    #[test]
    fn ranks_yield_if_they_have_fewer_processors_than_they_are() {
        assert_eq!(waits(&[&[0b11], &[0b11]]), Wait::Spin);
        assert_eq!(waits(&[&[0b11], &[0b11], &[0b11]]), Wait::Yield);
        // Bound to a processor each, and to the same one.
        assert_eq!(waits(&[&[0b01], &[0b10]]), Wait::Spin);
        assert_eq!(waits(&[&[0, 0b10], &[0b10]]), Wait::Spin);
        assert_eq!(waits(&[&[0b10], &[0b10]]), Wait::Yield);
        // The system does not say.
        assert_eq!(waits(&[&[], &[]]), Wait::Yield);
    }
}
