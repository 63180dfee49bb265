//! The layers by name: what each can do, whether it is available here, and how it is opened.
//!
//! * [`half`] opens a layer between two processes, [`group`] between many. [`registrar`] opens a layer to register
//!   memory, and [`parts`] to break its operations down. [`trial`] opens a layer to learn what it can do here.

pub mod group;
pub mod half;
pub mod parts;
pub mod registrar;
pub mod trial;

use crate::plugin::parameter::Parameter;
use crate::{am, grpc, messages, oncrpc, plugin, sim, sized, socket, tcp, udp, vi, xdp};
use netdyno_host::wait::Wait;
use std::fmt;
use std::str::FromStr;

/// A layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Active Messages over shared memory.
    AmShm,
    /// Active Messages over UDP.
    AmUdp,
    /// Active Messages over AF_XDP.
    AmXdp,
    /// Virtual Interfaces over shared memory.
    ViShm,
    /// Virtual Interfaces over UDP.
    ViUdp,
    /// Virtual Interfaces over AF_XDP.
    ViXdp,
    /// Split-phase global memory over Active Messages in shared memory.
    GlobalShm,
    /// Split-phase global memory over Active Messages over UDP.
    GlobalUdp,
    /// Split-phase global memory over Active Messages over AF_XDP.
    GlobalXdp,
    /// Bare UDP sockets.
    Udp,
    /// Bare TCP sockets.
    Tcp,
    /// ONC remote procedure calls over UDP.
    OncRpcUdp,
    /// ONC remote procedure calls over TCP.
    OncRpcTcp,
    /// gRPC over HTTP/2 and TCP, where netdyno was built with it.
    Grpc,
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

/// All layers in the order of the list. A layer with a parameter is in it once.
pub const ALL: [Layer; 19] = [
    Layer::AmShm,
    Layer::AmUdp,
    Layer::AmXdp,
    Layer::ViShm,
    Layer::ViUdp,
    Layer::ViXdp,
    Layer::GlobalShm,
    Layer::GlobalUdp,
    Layer::GlobalXdp,
    Layer::Udp,
    Layer::Tcp,
    Layer::OncRpcUdp,
    Layer::OncRpcTcp,
    Layer::Grpc,
    Layer::Mpi,
    Layer::Ofi(Parameter::TCP),
    Layer::Ucx(Parameter::TCP),
    Layer::Plugin,
    Layer::Sim,
];

/// The layers that need nothing but this machine. `netdyno` without a verb characterises them.
pub const EMBEDDED: [Layer; 4] = [Layer::AmShm, Layer::AmUdp, Layer::Udp, Layer::Tcp];

/// Returns the names of the layers that are able to do something, as in `vi+shm, vi+udp`.
pub fn able(is_able: fn(Layer) -> bool) -> String {
    let able: Vec<String> =
        ALL.into_iter().filter(|&layer| is_able(layer)).map(|layer| layer.to_string()).collect();
    able.join(", ")
}

impl Layer {
    /// Returns the name on the command line, without the parameter.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AmShm => "am+shm",
            Self::AmUdp => "am+udp",
            Self::AmXdp => "am+xdp",
            Self::ViShm => "vi+shm",
            Self::ViUdp => "vi+udp",
            Self::ViXdp => "vi+xdp",
            Self::GlobalShm => "global+shm",
            Self::GlobalUdp => "global+udp",
            Self::GlobalXdp => "global+xdp",
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::OncRpcUdp => "oncrpc+udp",
            Self::OncRpcTcp => "oncrpc+tcp",
            Self::Grpc => "grpc",
            Self::Mpi => "mpi",
            Self::Ofi(_) => "ofi",
            Self::Ucx(_) => "ucx",
            Self::Plugin => "plugin",
            Self::Sim => "sim",
        }
    }

    /// Returns what the layer is, in a few words.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::AmShm => "Active Messages over rings in shared memory",
            Self::AmUdp => "Active Messages over UDP, exactly once",
            Self::AmXdp => "Active Messages over AF_XDP, past the kernel's UDP",
            Self::ViShm => "Virtual Interfaces over shared memory, reliable delivery",
            Self::ViUdp => "Virtual Interfaces over UDP, reliable delivery",
            Self::ViXdp => "Virtual Interfaces over AF_XDP, reliable delivery",
            Self::GlobalShm => "split-phase global memory over shared memory",
            Self::GlobalUdp => "split-phase global memory over UDP",
            Self::GlobalXdp => "split-phase global memory over AF_XDP",
            Self::Udp => "bare UDP sockets, a system call a message",
            Self::Tcp => "bare TCP sockets, TCP_NODELAY",
            Self::OncRpcUdp => "ONC remote procedure calls (RFC 5531) over UDP",
            Self::OncRpcTcp => "ONC remote procedure calls (RFC 5531) over TCP",
            Self::Grpc => "gRPC, unary calls by tonic over HTTP/2 and TCP",
            Self::Mpi => "the non-blocking calls of any MPI library, built on site",
            Self::Ofi(_) => "libfabric by a provider (ofi:tcp, ofi:shm), built on site",
            Self::Ucx(_) => "UCX by transports (ucx:tcp, ucx:posix+cma), built on site",
            Self::Plugin => "a layer of your own in C (NETDYNO_PLUGIN names it)",
            Self::Sim => "a simulated interface of known parameters (--truth)",
        }
    }

    /// Returns the ways in which processes can wait. A layer without processes has none.
    pub const fn waits(self) -> &'static [Wait] {
        match self {
            Self::Mpi => &[Wait::Spin, Wait::Yield],
            Self::AmShm
            | Self::AmUdp
            | Self::AmXdp
            | Self::ViShm
            | Self::ViUdp
            | Self::ViXdp
            | Self::GlobalShm
            | Self::GlobalUdp
            | Self::GlobalXdp
            | Self::Udp
            | Self::Tcp
            | Self::OncRpcUdp
            | Self::OncRpcTcp
            | Self::Ofi(_)
            | Self::Ucx(_)
            | Self::Grpc
            | Self::Plugin => &[Wait::Spin, Wait::Yield, Wait::Block],
            Self::Sim => &[],
        }
    }

    /// Reports whether processes can wait in this way. Who can sleep can also spin before.
    pub fn can_wait(self, wait: Wait) -> bool {
        self.waits().contains(&if wait.sleeps() { Wait::Block } else { wait })
    }

    /// Returns the size of the largest message of a fixed size, in bytes.
    pub const fn max_size(self) -> usize {
        match self {
            Self::AmShm => am::MAX_SHM_SIZE,
            Self::AmUdp | Self::AmXdp => am::MAX_UDP_SIZE,
            Self::ViShm | Self::ViUdp | Self::ViXdp => vi::MAX_SIZE,
            // They have no messages of a fixed size.
            Self::GlobalShm | Self::GlobalUdp | Self::GlobalXdp => usize::MAX,
            Self::Udp => udp::MAX_SIZE,
            Self::Tcp => tcp::MAX_SIZE,
            Self::OncRpcUdp => oncrpc::MAX_UDP_SIZE,
            Self::OncRpcTcp => oncrpc::MAX_TCP_SIZE,
            Self::Grpc => grpc::MAX_SIZE,
            Self::Mpi | Self::Ofi(_) | Self::Ucx(_) | Self::Plugin => plugin::MAX_SIZE,
            Self::Sim => sim::LARGEST_MESSAGE,
        }
    }

    /// Returns the size of the largest message of a fixed size where dials are set, in bytes.
    pub const fn max_dialled_size(self) -> usize {
        match self {
            Self::AmUdp | Self::AmXdp => am::MAX_DIALLED_UDP_SIZE,
            _ => self.max_size(),
        }
    }

    /// Returns the size of the largest message where the size can be set, in bytes.
    pub const fn max_transfer(self) -> usize {
        match self {
            Self::Udp => udp::sized::MAX_SIZE,
            Self::OncRpcUdp => oncrpc::MAX_UDP_TRANSFER,
            Self::OncRpcTcp => oncrpc::MAX_TCP_TRANSFER,
            Self::Grpc => grpc::MAX_TRANSFER,
            Self::Sim => sim::LARGEST_MESSAGE,
            _ => sized::MAX_SIZE,
        }
    }

    /// Returns the size of the largest message that can be posted and tested, in bytes.
    pub const fn max_message(self) -> usize {
        match self {
            Self::Udp => udp::messages::MAX_SIZE,
            Self::Sim => sim::LARGEST_MESSAGE,
            _ => messages::MAX_SIZE,
        }
    }

    /// Returns whether the layer has messages that can be posted and tested.
    pub const fn has_messages(self) -> bool {
        self.has_requests() && !matches!(self, Self::OncRpcUdp | Self::OncRpcTcp | Self::Grpc)
    }

    /// Returns whether the layer has requests and replies. A layer that has none has one-sided operations alone.
    pub const fn has_requests(self) -> bool {
        !matches!(self, Self::GlobalShm | Self::GlobalUdp | Self::GlobalXdp)
    }

    /// Returns whether a thread of the layer can make progress with messages that are posted.
    pub const fn has_progress_thread(self) -> bool {
        matches!(self, Self::AmShm | Self::AmUdp | Self::AmXdp)
    }

    /// Returns whether processes register memory.
    pub const fn registers(self) -> bool {
        matches!(
            self,
            Self::ViShm | Self::ViUdp | Self::ViXdp | Self::Ofi(_) | Self::Ucx(_) | Self::Plugin | Self::Sim
        )
    }

    /// Returns whether the operations of the layer can be made in parts.
    pub const fn has_parts(self) -> bool {
        matches!(
            self,
            Self::AmShm
                | Self::AmUdp
                | Self::AmXdp
                | Self::ViShm
                | Self::ViUdp
                | Self::ViXdp
                | Self::Udp
                | Self::Tcp
                | Self::Sim
        )
    }

    /// Returns whether processes put bytes into the memory of another process and get bytes from there.
    pub const fn has_one_sided(self) -> bool {
        matches!(
            self,
            Self::AmShm
                | Self::AmUdp
                | Self::AmXdp
                | Self::ViShm
                | Self::ViUdp
                | Self::ViXdp
                | Self::GlobalShm
                | Self::GlobalUdp
                | Self::GlobalXdp
                | Self::Mpi
                | Self::Ofi(_)
                | Self::Ucx(_)
                | Self::Plugin
                | Self::Sim
        )
    }

    /// Returns whether one-sided operations have reliability levels.
    pub const fn has_levels(self) -> bool {
        matches!(self, Self::ViShm | Self::ViUdp | Self::ViXdp)
    }

    /// Returns whether the layer may allocate the memory of one-sided operations. A layer of the user's own says so
    /// when it is opened.
    pub const fn allocates(self) -> bool {
        matches!(self, Self::Mpi | Self::Ucx(_) | Self::Plugin)
    }

    /// Returns whether one-sided operations may have several synchronisations. A layer of the user's own says so when it is
    /// opened.
    pub const fn has_synchronisations(self) -> bool {
        matches!(self, Self::Mpi | Self::Plugin)
    }

    /// Returns whether the layer takes `--faults`.
    pub const fn takes_faults(self) -> bool {
        matches!(
            self,
            Self::AmUdp | Self::AmXdp | Self::ViUdp | Self::ViXdp | Self::GlobalUdp | Self::GlobalXdp
        )
    }

    /// Returns whether the layer takes `--dials`.
    pub const fn takes_dials(self) -> bool {
        matches!(self, Self::AmShm | Self::AmUdp | Self::AmXdp)
    }

    /// Returns whether processes find each other through a launcher of the layer's library.
    pub const fn has_launcher(self) -> bool {
        matches!(self, Self::Mpi)
    }

    /// Returns whether a library is behind the layer, which may leave files behind if it is not closed.
    pub const fn is_of_library(self) -> bool {
        matches!(self, Self::Mpi | Self::Ofi(_) | Self::Ucx(_) | Self::Plugin)
    }

    /// Returns whether all processes have to be on one host.
    pub const fn is_of_one_host(self) -> bool {
        matches!(self, Self::AmShm | Self::ViShm | Self::GlobalShm)
    }

    /// Returns whether the requester can measure a server that netdyno has not started, and whether the replier
    /// serves clients that netdyno has not started.
    pub const fn connects(self) -> bool {
        matches!(self, Self::OncRpcUdp | Self::OncRpcTcp | Self::Grpc)
    }

    /// Returns whether the layer has sockets, whose address `--bind` sets.
    pub const fn has_sockets(self) -> bool {
        matches!(
            self,
            Self::AmUdp
                | Self::AmXdp
                | Self::ViUdp
                | Self::ViXdp
                | Self::GlobalUdp
                | Self::GlobalXdp
                | Self::Udp
                | Self::Tcp
                | Self::OncRpcUdp
                | Self::OncRpcTcp
                | Self::Grpc
        )
    }

    /// Returns why the layer cannot be measured here, if it cannot.
    pub fn unavailable(self) -> Option<String> {
        match self {
            Self::AmShm | Self::GlobalShm => am::shared_memory_is_missing(),
            Self::ViShm => vi::memory::is_missing(),
            Self::AmUdp
            | Self::ViUdp
            | Self::GlobalUdp
            | Self::Udp
            | Self::Tcp
            | Self::OncRpcUdp
            | Self::OncRpcTcp => socket::is_missing(),
            Self::AmXdp | Self::ViXdp | Self::GlobalXdp => xdp::is_missing(),
            Self::Grpc => grpc::is_missing(),
            Self::Mpi => plugin::extension::mpi_is_missing(),
            Self::Ofi(_) => plugin::extension::ofi_is_missing(),
            Self::Ucx(_) => plugin::extension::ucx_is_missing(),
            Self::Plugin => plugin::extension::own_is_missing(),
            Self::Sim => None,
        }
    }
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
        // This distance counts two letters in the wrong order as one mistake.
        let distance = |layer: &Self| strsim::damerau_levenshtein(&layer.to_string(), text);
        let is_like =
            |layer: &Self| layer.to_string().contains(text) || 2 * distance(layer) <= text.chars().count();
        let nearest = ALL.into_iter().filter(is_like).min_by_key(distance);
        let hint = nearest.map_or(":".into(), |nearest| format!("; did you mean '{nearest}'?"));
        Err(format!("there is no layer '{text}'{hint} `netdyno layers` lists them"))
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
            ("oncrpc-udp", "oncrpc+udp"),
            ("ofo:tcp", "ofi:tcp"),
            ("ucx", "ucx:tcp"),
        ] {
            let error = mistake.parse::<Layer>().unwrap_err();
            assert!(error.contains(&format!("'{nearest}'")), "{mistake}");
        }
        let unlike = "there is no layer 'nosuch': `netdyno layers` lists them";
        assert_eq!("nosuch".parse::<Layer>(), Err(unlike.into()));
        let shm = "ofi:shm".parse::<Layer>().map(|layer| (layer.name(), layer.to_string()));
        assert_eq!(shm, Ok(("ofi", "ofi:shm".into())));
        assert!("ucx:".parse::<Layer>().is_err() && "ofi:a b".parse::<Layer>().is_err());
    }
}
