//! What the environment says: the variables of the provider, and the addresses of this host.

use netdyno_host::interface;
use netdyno_stack::vi::{Faults, FaultsError};
use std::env;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::Duration;
use thiserror::Error;

/// Time without an answer after which a process is lost over UDP. Nobody answers while it computes without a call.
const UDP_TIMEOUT: Duration = Duration::from_secs(600);

/// The wire of a VI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    /// Shared memory.
    Shm,
    /// UDP.
    Udp,
}

/// Why a variable cannot be used.
#[derive(Debug, Error)]
pub enum SettingError {
    /// There is no such wire.
    #[error("FI_NETDYNO_WIRE is '{0}': use shm or udp")]
    Wire(String),
    /// There is no such address.
    #[error("FI_NETDYNO_ADDRESS is '{0}': use an address of this host, such as 192.0.2.1")]
    Address(String),
    /// There are no such faults.
    #[error("FI_NETDYNO_FAULTS is '{0}': {1}")]
    Faults(String, FaultsError),
    /// There is no such time.
    #[error("FI_NETDYNO_TIMEOUT is '{0}': use a number of seconds")]
    Timeout(String),
}

/// Returns the wire within this host: `FI_NETDYNO_WIRE`.
pub fn own_wire() -> Result<Wire, SettingError> {
    match env::var("FI_NETDYNO_WIRE") {
        Err(_) => Ok(Wire::Shm),
        Ok(name) if name == "shm" => Ok(Wire::Shm),
        Ok(name) if name == "udp" => Ok(Wire::Udp),
        Ok(name) => Err(SettingError::Wire(name)),
    }
}

/// Returns an address of this host that peers on other hosts reach: `FI_NETDYNO_ADDRESS`, or that of the default route,
/// or the first.
pub fn own_address() -> Result<IpAddr, SettingError> {
    if let Ok(text) = env::var("FI_NETDYNO_ADDRESS") {
        return text.parse().map_err(|_| SettingError::Address(text));
    }
    let all = interface::addresses().unwrap_or_default();
    let lowest = all.into_iter().find(|ip| !ip.is_loopback());
    Ok(default_address().or(lowest).unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)))
}

/// Returns the address from which this host sends to hosts outside of its networks; `None` without such a route.
fn default_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // This sends nothing: it chooses the route. The address is one of those for documentation (RFC 5737).
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|ip| !ip.is_loopback())
}

/// Returns the time after which a silent peer is lost over UDP: `FI_NETDYNO_TIMEOUT` in seconds.
pub fn udp_timeout() -> Result<Duration, SettingError> {
    let Ok(text) = env::var("FI_NETDYNO_TIMEOUT") else { return Ok(UDP_TIMEOUT) };
    let seconds = text.parse().ok().filter(|seconds| (1..=86400 * 365).contains(seconds));
    seconds.map(Duration::from_secs).ok_or(SettingError::Timeout(text))
}

/// Returns the faults of the network that are made on purpose: `FI_NETDYNO_FAULTS`.
pub fn faults() -> Result<Faults, SettingError> {
    let Ok(text) = env::var("FI_NETDYNO_FAULTS") else { return Ok(Faults::NONE) };
    text.parse().map_err(|error| SettingError::Faults(text, error))
}

/// Returns a value that processes of one user on one host share, and no others.
pub fn host() -> [u8; 8] {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space =
        std::fs::read_link("/proc/self/ns/net").map(|path| path.into_os_string().into_encoded_bytes());
    let user = rustix::process::geteuid().as_raw().to_le_bytes();
    let parts = [boot.trim().as_bytes(), &space.unwrap_or_default(), &user].concat();
    // FNV-1a (Fowler, Noll and Vo): equal for equal parts, whatever the build.
    let hash = parts.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash.to_le_bytes()
}
