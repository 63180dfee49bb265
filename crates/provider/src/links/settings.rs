//! What the environment says: the variables of the provider, and the addresses of this host.

use netdyno_host::{interface, machine};
use netdyno_stack::vi::{Faults, FaultsError};
use std::env;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use thiserror::Error;

/// Time without an answer after which a process is lost over UDP. Nobody answers while it computes without a call.
const UDP_TIMEOUT: Duration = Duration::from_secs(600);

/// Number of processors that the system can name.
const MOST_CPUS: usize = 1024;

/// The wire of a VI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Wire {
    /// Shared memory.
    #[default]
    Shm,
    /// UDP.
    Udp,
}

/// Who makes progress: `FI_NETDYNO_PROGRESS`. The ways other than the first stand for the three protocol stacks of
/// Brightwell et al. (2003), section 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// The calls of the program.
    #[default]
    Caller,
    /// The kernel's sockets, and a thread that they wake. Bytes are copied twice.
    Kernel,
    /// A thread on the processor of the program, which a message wakes, like an interrupt. It moves bytes to where they
    /// belong.
    Interrupt,
    /// A thread on a processor of its own, which never sleeps, like a network interface.
    Offload,
}

/// How a messaging thread tells the program of a message: `FI_NETDYNO_WAKEUP` (Speight et al. 1999, section 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakeup {
    /// The program sleeps until the thread wakes it.
    Event,
    /// The program looks at a variable.
    Spin,
}

/// How the bytes of long messages travel: `FI_NETDYNO_COPY` (Speight et al. 1999, section 5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Copying {
    /// Through registered buffers on both sides.
    Staged,
    /// From the memory of the sender to that of the receiver.
    #[default]
    Direct,
}

/// Who makes messages reliable: `FI_NETDYNO_ACK` (Speight et al. 1999, section 5.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acks {
    /// The message layer: the receiver acknowledges each message, and the sender repeats those that are lost.
    Explicit,
    /// The Virtual Interface.
    #[default]
    None,
}

/// The switches of the provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// The wire within this host: `FI_NETDYNO_WIRE`, or shared memory unless the kernel makes progress.
    pub wire: Wire,
    /// Who makes progress.
    pub progress: Progress,
    /// How a messaging thread tells the program of a message; `None` if it does not have to.
    pub wakeup: Option<Wakeup>,
    /// How the bytes of long messages travel.
    pub copying: Copying,
    /// Who makes messages reliable.
    pub acks: Acks,
    /// The processor of the thread that makes progress: `FI_NETDYNO_CPU`; `None` for one that fits.
    pub cpu: Option<usize>,
    /// Bytes of unexpected messages beyond which senders keep those of further ones: `FI_NETDYNO_UNEXPECTED` in MiB;
    /// `None` for the engine's own bound.
    pub most_unexpected: Option<usize>,
}

impl Switches {
    /// Reads the switches from the environment.
    ///
    /// # Errors
    /// Returns an error if one has an unknown value.
    pub fn read() -> Result<Self, SettingError> {
        let progress = [
            ("caller", Progress::Caller),
            ("kernel", Progress::Kernel),
            ("interrupt", Progress::Interrupt),
            ("offload", Progress::Offload),
        ];
        let progress = choice("FI_NETDYNO_PROGRESS", progress)?.unwrap_or_default();
        // The kernel copies into a buffer, and the thread out of it.
        let (wire, copying) = match progress {
            Progress::Kernel => (Wire::Udp, Copying::Staged),
            _ => (Wire::Shm, Copying::Direct),
        };
        Ok(Self {
            wire: choice("FI_NETDYNO_WIRE", [("shm", Wire::Shm), ("udp", Wire::Udp)])?.unwrap_or(wire),
            progress,
            wakeup: choice("FI_NETDYNO_WAKEUP", [("event", Wakeup::Event), ("spin", Wakeup::Spin)])?,
            copying: choice("FI_NETDYNO_COPY", [("staged", Copying::Staged), ("direct", Copying::Direct)])?
                .unwrap_or(copying),
            acks: choice("FI_NETDYNO_ACK", [("explicit", Acks::Explicit), ("none", Acks::None)])?
                .unwrap_or_default(),
            cpu: cpu()?,
            most_unexpected: most_unexpected()?,
        })
    }

    /// Returns whether a thread of this provider makes progress.
    pub fn has_thread(&self) -> bool {
        self.progress != Progress::Caller || self.wakeup.is_some()
    }
}

/// Returns the processor of the thread that makes progress.
fn cpu() -> Result<Option<usize>, SettingError> {
    let Ok(text) = env::var("FI_NETDYNO_CPU") else { return Ok(None) };
    let number = text.parse().ok().filter(|cpu| *cpu < MOST_CPUS);
    number.map(Some).ok_or(SettingError::Cpu(text))
}

/// Returns the bound of unexpected messages in bytes.
fn most_unexpected() -> Result<Option<usize>, SettingError> {
    let Ok(text) = env::var("FI_NETDYNO_UNEXPECTED") else { return Ok(None) };
    let bytes = text.parse().ok().and_then(|mebibytes: usize| mebibytes.checked_mul(1 << 20));
    bytes.map(Some).ok_or(SettingError::Unexpected(text))
}

/// Returns the value of a variable that has one of these; `None` if it is not set.
fn choice<T: Copy, const N: usize>(
    variable: &'static str,
    values: [(&'static str, T); N],
) -> Result<Option<T>, SettingError> {
    let Ok(text) = env::var(variable) else { return Ok(None) };
    match values.iter().find(|(name, _)| *name == text) {
        Some((_, value)) => Ok(Some(*value)),
        None => {
            let names = values.map(|(name, _)| name).join(" or ");
            Err(SettingError::Choice { variable, text, names })
        }
    }
}

/// Why a variable cannot be used.
#[derive(Debug, Error)]
pub enum SettingError {
    /// A variable has a value that it cannot have.
    #[error("{variable} is '{text}': use {names}")]
    Choice { variable: &'static str, text: String, names: String },
    /// There is no such processor.
    #[error("FI_NETDYNO_CPU is '{0}': use the number of a processor, from 0")]
    Cpu(String),
    /// There is no such address.
    #[error("FI_NETDYNO_ADDRESS is '{0}': use an address of this host, such as 192.0.2.1")]
    Address(String),
    /// There are no such faults.
    #[error("FI_NETDYNO_FAULTS is '{0}': {1}")]
    Faults(String, FaultsError),
    /// There is no such number of bytes.
    #[error("FI_NETDYNO_UNEXPECTED is '{0}': use a number of MiB, from 0")]
    Unexpected(String),
    /// There is no such time.
    #[error("FI_NETDYNO_TIMEOUT is '{0}': use a number of seconds")]
    Timeout(String),
}

/// Returns an address of this host that peers on other hosts reach: `FI_NETDYNO_ADDRESS`, or that of the default route,
/// or the first.
pub fn own_address() -> Result<IpAddr, SettingError> {
    if let Ok(text) = env::var("FI_NETDYNO_ADDRESS") {
        return text.parse().map_err(|_| SettingError::Address(text));
    }
    let all = interface::addresses().unwrap_or_default();
    let lowest = all.into_iter().find(|ip| !ip.is_loopback());
    Ok(interface::of_default_route().map(IpAddr::V4).or(lowest).unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)))
}

/// Returns the time after which a silent peer is lost over UDP: `FI_NETDYNO_TIMEOUT` in seconds.
pub fn udp_timeout() -> Result<Duration, SettingError> {
    let Ok(text) = env::var("FI_NETDYNO_TIMEOUT") else { return Ok(UDP_TIMEOUT) };
    let seconds = text.parse().ok().filter(|seconds| (1..=86400 * 365).contains(seconds));
    seconds.map(Duration::from_secs).ok_or(SettingError::Timeout(text))
}

/// Makes the file that says that a process has opened this provider: `FI_NETDYNO_MARK`. Who starts a program learns by
/// it that the program uses the provider.
pub fn mark() {
    if let Ok(file) = env::var("FI_NETDYNO_MARK") {
        // A file that cannot be made is one that is missed.
        let _ = std::fs::write(file, []);
    }
}

/// Returns the faults of the network that are made on purpose: `FI_NETDYNO_FAULTS`.
pub fn faults() -> Result<Faults, SettingError> {
    let Ok(text) = env::var("FI_NETDYNO_FAULTS") else { return Ok(Faults::NONE) };
    text.parse().map_err(|error| SettingError::Faults(text, error))
}

/// Returns a value that processes of one user on one host share, and no others.
pub fn host() -> [u8; 8] {
    let user = rustix::process::geteuid().as_raw().to_le_bytes();
    let parts = [machine::host().as_bytes(), &user].concat();
    // FNV-1a (Fowler, Noll and Vo): equal for equal parts, whatever the build.
    let hash = parts.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash.to_le_bytes()
}
