//! Settings from the environment.

use crate::lock::held;
use netdyno_host::interface;
use netdyno_host::wait::Wait;
use netdyno_stack::am::{Config, Faults, Wire};
use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Mutex;
use std::time::Duration;

/// The address that peers on other hosts reach this process by.
const ADDRESS: &str = "NETDYNO_AM_ADDRESS";
/// The transport between all endpoints: `shm` or `udp`.
const WIRE: &str = "NETDYNO_AM_WIRE";
/// The time after which a peer that answers nothing is lost, in seconds.
const TIMEOUT: &str = "NETDYNO_AM_TIMEOUT";
/// Faults to inject into the datagrams that this process sends, for tests of programs.
const FAULTS: &str = "NETDYNO_AM_FAULTS";

/// The prefixes of settings of AMUDP: the first one that is set holds.
const PREFIXES: [&str; 3] = ["GASNET_", "AMUDP_", ""];

/// A rank computes between its calls, and answers nothing meanwhile.
const PEER_TIMEOUT: Duration = Duration::from_secs(120);
/// Bytes of a piece of a message over shared memory. Longer pieces need much memory for each peer, shorter ones more
/// handlers for each message.
const PIECE_BYTES: u32 = 4096;
/// Unanswered requests to a peer, whatever a program expects. With 64 or 128 a short round trip takes 4 % longer, for a
/// reason that is not known.
pub const OUTSTANDING: u32 = 256;

/// The address that the program has set.
static SET: Mutex<Option<Ipv4Addr>> = Mutex::new(None);

/// Sets the address of this process.
pub fn set_address(address: Ipv4Addr) {
    *held(&SET) = Some(address);
}

/// Returns the address that the program or the environment demands.
///
/// # Errors
/// Returns an error text if the environment has no IPv4 address.
pub fn demanded_address() -> Result<Option<Ipv4Addr>, String> {
    if let Some(address) = *held(&SET) {
        return Ok(Some(address));
    }
    let Ok(text) = std::env::var(ADDRESS) else { return Ok(None) };
    let address =
        text.parse().map_err(|_| format!("{ADDRESS}='{text}' is no IPv4 address: give one as in 192.0.2.1"));
    address.map(Some)
}

/// Returns the address of this process: the one that is demanded, or the one from which other hosts are reached. On a host
/// without a default route that is the lowest one of its interfaces, but none that holds on a link alone.
///
/// # Errors
/// Returns an error text if the environment has no IPv4 address.
pub fn address() -> Result<Ipv4Addr, String> {
    if let Some(address) = demanded_address()? {
        return Ok(address);
    }
    let found = interface::of_default_route().or_else(lowest_of_interfaces);
    Ok(found.unwrap_or(Ipv4Addr::LOCALHOST))
}

fn lowest_of_interfaces() -> Option<Ipv4Addr> {
    let addresses = interface::addresses().unwrap_or_default();
    addresses.into_iter().find_map(|address| match address {
        IpAddr::V4(address) if !address.is_link_local() => Some(address),
        _ => None,
    })
}

/// Returns the transport that the environment demands.
///
/// # Errors
/// Returns an error text if the environment names another one.
pub fn wire() -> Result<Option<Wire>, String> {
    match std::env::var(WIRE).as_deref() {
        Err(_) => Ok(None),
        Ok("shm") => Ok(Some(Wire::Shm)),
        Ok("udp") => Ok(Some(Wire::Udp)),
        Ok(other) => Err(format!("{WIRE}='{other}' is no transport: use shm or udp")),
    }
}

/// Returns the time after which a peer that answers nothing is lost.
///
/// # Errors
/// Returns an error text if the environment has no number of seconds.
pub fn peer_timeout() -> Result<Duration, String> {
    let Ok(text) = std::env::var(TIMEOUT) else { return Ok(PEER_TIMEOUT) };
    let seconds = text.parse().ok().filter(|seconds| (1..=86_400).contains(seconds));
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| format!("{TIMEOUT}='{text}' is no number of seconds from 1 to 86400"))
}

/// Returns the settings that ranks on all hosts must share, each as `NAME=value`. The address is that of a host.
pub fn of_all_hosts() -> Vec<OsString> {
    let set = [WIRE, FAULTS, TIMEOUT].into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    set.map(|(name, value)| [OsStr::new(name), OsStr::new("="), &value].into_iter().collect()).collect()
}

/// Returns a setting of AMUDP, whose name may have a prefix.
pub fn of_amudp(name: &str) -> Option<OsString> {
    let set = PREFIXES.into_iter().find_map(|prefix| std::env::var_os(format!("{prefix}{name}")));
    set.filter(|value| !value.is_empty())
}

fn faults() -> Result<Faults, String> {
    let Ok(text) = std::env::var(FAULTS) else { return Ok(Faults::NONE) };
    text.parse().map_err(|error| format!("{FAULTS}='{text}': {error}"))
}

/// Returns the configuration of an endpoint that is reached at `address`, and shares the processors of its host with `here`
/// ranks.
///
/// # Errors
/// Returns an error text if the environment is not valid.
pub fn config(address: Ipv4Addr, here: usize) -> Result<Config, String> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let shares = here > processors;
    Ok(Config::new()
        .window(OUTSTANDING)
        .medium_bytes(PIECE_BYTES)
        .peer_timeout(peer_timeout()?)
        .faults(faults()?)
        // Another one for each rank.
        .seed(std::process::id().into())
        .wait(if shares { Wait::Yield } else { Wait::Spin })
        // A peer that may have to be woken costs every sender over shared memory half a round trip. Where each rank has a
        // processor, a rank that waits naps instead.
        .is_woken(shares)
        .bind(SocketAddr::new(IpAddr::V4(address), 0)))
}
