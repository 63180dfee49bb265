//! The layers by name, what each can do, and whether it is available here.

use crate::parameter::Parameter;
use netdyno_host::life::Life;
use netdyno_host::segment::{Segment, open_segment};
use netdyno_host::wait::Wait;
use std::fmt;
use std::net::{Ipv4Addr, UdpSocket};
use std::str::FromStr;

/// A layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Active Messages over shared memory.
    AmShm,
    /// Active Messages over UDP.
    AmUdp,
    /// Virtual Interfaces over shared memory.
    ViShm,
    /// Virtual Interfaces over UDP.
    ViUdp,
    /// Bare UDP sockets.
    Udp,
    /// Bare TCP sockets.
    Tcp,
    /// Any MPI library, as a layer in C.
    Mpi,
    /// libfabric by one of its providers, as a layer in C.
    Ofi(Parameter),
    /// UCX over chosen transports, as a layer in C.
    Ucx(Parameter),
    /// A user's own layer in C.
    Plugin,
    /// The simulated interface.
    Sim,
}

/// All layers, in the order in which they are listed; one of those with a parameter.
pub const ALL: [Layer; 11] = [
    Layer::AmShm,
    Layer::AmUdp,
    Layer::ViShm,
    Layer::ViUdp,
    Layer::Udp,
    Layer::Tcp,
    Layer::Mpi,
    Layer::Ofi(Parameter::TCP),
    Layer::Ucx(Parameter::TCP),
    Layer::Plugin,
    Layer::Sim,
];

/// The layers that need nothing but this machine, which the main job characterises.
pub const EMBEDDED: [Layer; 4] = [Layer::AmShm, Layer::AmUdp, Layer::Udp, Layer::Tcp];

impl Layer {
    /// As spelled on the command line, up to the parameter where it has one.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AmShm => "am+shm",
            Self::AmUdp => "am+udp",
            Self::ViShm => "vi+shm",
            Self::ViUdp => "vi+udp",
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Mpi => "mpi",
            Self::Ofi(_) => "ofi",
            Self::Ucx(_) => "ucx",
            Self::Plugin => "plugin",
            Self::Sim => "sim",
        }
    }

    /// What it is, in a few words.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::AmShm => "Active Messages over rings in shared memory",
            Self::AmUdp => "Active Messages over UDP, exactly once",
            Self::ViShm => "Virtual Interfaces over shared memory, reliable delivery",
            Self::ViUdp => "Virtual Interfaces over UDP, reliable delivery",
            Self::Udp => "bare UDP sockets, a system call a message",
            Self::Tcp => "bare TCP sockets, TCP_NODELAY",
            Self::Mpi => "the non-blocking calls of any MPI library, built on site",
            Self::Ofi(_) => "libfabric by a provider (ofi:tcp, ofi:shm), built on site",
            Self::Ucx(_) => "UCX by transports (ucx:tcp, ucx:posix+cma), built on site",
            Self::Plugin => "a layer of your own in C (NETDYNO_PLUGIN names it)",
            Self::Sim => "a simulated interface of known parameters (--truth)",
        }
    }

    /// The ways in which its processes can wait; none for a layer without processes.
    pub const fn waits(self) -> &'static [Wait] {
        match self {
            Self::AmShm | Self::Mpi | Self::Ofi(_) | Self::Ucx(_) => &[Wait::Spin, Wait::Yield],
            Self::AmUdp | Self::ViShm | Self::ViUdp | Self::Udp | Self::Tcp | Self::Plugin => {
                &[Wait::Spin, Wait::Yield, Wait::Block]
            }
            Self::Sim => &[],
        }
    }

    /// The largest message, in bytes.
    pub const fn max_size(self) -> usize {
        match self {
            Self::AmShm => super::am::MAX_SHM_SIZE,
            Self::AmUdp => super::am::MAX_UDP_SIZE,
            Self::ViShm | Self::ViUdp => super::vi::MAX_SIZE,
            Self::Udp => super::udp::MAX_SIZE,
            Self::Tcp => super::tcp::MAX_SIZE,
            Self::Mpi | Self::Ofi(_) | Self::Ucx(_) | Self::Plugin => super::plugin::MAX_SIZE,
            Self::Sim => super::sim::LARGEST_MESSAGE,
        }
    }

    /// The largest message where dials are turned, in bytes.
    pub const fn max_dialled_size(self) -> usize {
        match self {
            Self::AmUdp => super::am::MAX_DIALLED_UDP_SIZE,
            _ => self.max_size(),
        }
    }

    /// The largest message where the size can be set, in bytes.
    pub const fn max_transfer(self) -> usize {
        match self {
            Self::Udp => super::sized::udp::MAX_SIZE,
            Self::Sim => super::sim::LARGEST_MESSAGE,
            _ => super::sized::MAX_SIZE,
        }
    }

    /// The largest message of those that are posted and tested, as `overlap` does.
    pub const fn max_message(self) -> usize {
        match self {
            Self::Udp => super::messages::udp::MAX_SIZE,
            Self::Sim => super::sim::LARGEST_MESSAGE,
            _ => super::messages::MAX_SIZE,
        }
    }

    /// Whether it has processes register memory.
    pub const fn registers(self) -> bool {
        matches!(self, Self::ViShm | Self::ViUdp | Self::Ofi(_) | Self::Ucx(_) | Self::Plugin | Self::Sim)
    }

    /// Whether `--faults` can be put under it.
    pub const fn takes_faults(self) -> bool {
        matches!(self, Self::AmUdp | Self::ViUdp)
    }

    /// Whether `--dials` can be turned on it.
    pub const fn takes_dials(self) -> bool {
        matches!(self, Self::AmShm | Self::AmUdp)
    }

    /// Whether its processes find each other through a launcher of its library.
    pub const fn has_launcher(self) -> bool {
        matches!(self, Self::Mpi)
    }

    /// Whether a library is behind it that may leave something behind where it is not closed.
    pub const fn is_of_library(self) -> bool {
        matches!(self, Self::Mpi | Self::Ofi(_) | Self::Ucx(_) | Self::Plugin)
    }

    /// Whether all its processes have to be on one host.
    pub const fn is_of_one_host(self) -> bool {
        matches!(self, Self::AmShm | Self::ViShm)
    }

    /// Whether it has sockets, so that `--bind` says where they are.
    pub const fn has_sockets(self) -> bool {
        matches!(self, Self::AmUdp | Self::ViUdp | Self::Udp | Self::Tcp)
    }

    /// Why it cannot be measured here, where it cannot.
    pub fn unavailable(self) -> Option<String> {
        match self {
            Self::AmShm => shared_memory_with_oneself().err(),
            Self::ViShm => super::vi::is_missing(),
            Self::AmUdp | Self::ViUdp | Self::Udp | Self::Tcp => UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
                .err()
                .map(|error| format!("no socket on the loopback interface: {error}")),
            Self::Mpi => super::plugin::mpi_is_missing(),
            Self::Ofi(_) => super::plugin::ofi_is_missing(),
            Self::Ucx(_) => super::plugin::ucx_is_missing(),
            Self::Plugin => super::plugin::own_is_missing(),
            Self::Sim => None,
        }
    }
}

/// Does with this process what two processes do with each other.
fn shared_memory_with_oneself() -> Result<(), String> {
    let pid = std::process::id();
    let segment = Segment::create(1).map_err(|error| error.to_string())?;
    open_segment(pid, segment.descriptor(), segment.nonce(), 1).map_err(|error| error.to_string())?;
    Life::of(pid).map_err(|error| format!("processes cannot be watched: {error}"))?;
    Ok(())
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ofi(parameter) | Self::Ucx(parameter) => write!(f, "{}:{parameter}", self.name()),
            _ => f.write_str(self.name()),
        }
    }
}

impl FromStr for Layer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("ofi", provider)) => return provider.parse().map(Self::Ofi),
            Some(("ucx", transports)) => return transports.parse().map(Self::Ucx),
            _ => {}
        }
        if let Some(layer) = ALL.into_iter().find(|layer| layer.to_string() == text) {
            return Ok(layer);
        }
        if let Some(example) = ALL.into_iter().find(|layer| layer.name() == text) {
            return Err(format!("{text} must say what it is over, as in '{example}'"));
        }
        if text.is_empty() {
            return Err(
                "there is no layer without a name: name one, as in am+shm (`netdyno layers` lists them)"
                    .into(),
            );
        }
        // Two letters in the wrong order are one mistake.
        let distance = |layer: &Self| strsim::damerau_levenshtein(&layer.to_string(), text);
        let nearest = ALL.into_iter().min_by_key(distance).unwrap_or(Self::AmShm);
        Err(format!("there is no layer '{text}'; did you mean '{nearest}'? `netdyno layers` lists them"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_and_mistakes_get_the_nearest_name() {
        for layer in ALL {
            assert_eq!(layer.to_string().parse(), Ok(layer));
        }
        for (mistake, nearest) in [
            ("am+shmem", "am+shm"),
            ("upd", "udp"),
            ("tpc", "tcp"),
            ("mip", "mpi"),
            ("plug", "plugin"),
            ("ofo:tcp", "ofi:tcp"),
            ("ucx", "ucx:tcp"),
        ] {
            let error = mistake.parse::<Layer>().unwrap_err();
            assert!(error.contains(&format!("'{nearest}'")), "{mistake}");
        }
        let shm = "ofi:shm".parse::<Layer>().map(|layer| (layer.name(), layer.to_string()));
        assert_eq!(shm, Ok(("ofi", "ofi:shm".into())));
        assert!("ucx:".parse::<Layer>().is_err() && "ofi:a b".parse::<Layer>().is_err());
    }
}
