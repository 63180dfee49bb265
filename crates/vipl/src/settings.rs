//! Settings from the environment and from device names.

use netdyno_stack::vi::{UdpOptions, WireKind};
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::Duration;

/// The environment variable that overrides the wire of a device name.
const WIRE: &str = "NETDYNO_VIPL_WIRE";
/// The environment variable for the time that a waiting thread spins before it sleeps, in microseconds.
const SPIN: &str = "NETDYNO_VIPL_SPIN_US";

/// The environment variable that refuses uses outside the specification that programs rely on.
const STRICT: &str = "NETDYNO_VIPL_STRICT";

/// The processors that are online, as "0-3,6". The affinity of this process would not do,
/// because a process bound to one processor mostly waits for a process bound to another.
const ONLINE: &str = "/sys/devices/system/cpu/online";

/// About the time to fall asleep and be woken. A wait that spins that long before it sleeps takes at most
/// twice as long as the best choice with foreknowledge. (Karlin et al. 1991, "Empirical studies of
/// competitive spinning")
const SPIN_DEFAULT: Duration = Duration::from_micros(100);

/// Returns the wire of a device: UDP if its name contains "udp", else shared memory. The environment
/// variable overrides that. `udp:IP:PORT` gives the address of the socket.
///
/// # Errors
/// Returns one line, with what to write instead, if there is no such wire or address.
pub fn wire(device: &str) -> Result<WireKind, String> {
    wire_of(device, std::env::var(WIRE).ok().as_deref())
}

fn wire_of(device: &str, asked: Option<&str>) -> Result<WireKind, String> {
    let is_udp = match asked {
        None => device.to_ascii_lowercase().contains("udp"),
        Some("udp") => true,
        Some("shm") => false,
        Some(other) => return Err(format!("{WIRE}={other} is no wire: set it to shm or udp")),
    };
    if !is_udp {
        return Ok(WireKind::Shm);
    }
    let bind = device.strip_prefix("udp:").map(|place| {
        place.parse().map_err(|_| format!("'{device}' is no place for a socket: say udp:IP:PORT"))
    });
    Ok(udp(bind.transpose()?))
}

/// Returns the wire over UDP. All programs that open an address share it.
pub fn udp(bind: Option<SocketAddr>) -> WireKind {
    WireKind::Udp(UdpOptions::new().bind(bind).shared())
}

/// Returns the name that `VipQueryNic` reports for a NIC on that wire.
pub fn name(wire: WireKind) -> &'static str {
    match wire {
        WireKind::Shm => "netdyno-shm",
        WireKind::Udp(_) => "netdyno-udp",
    }
}

/// Returns whether NULL is refused as a protection tag and as memory attributes, as in the specification.
pub fn is_strict() -> bool {
    static STRICTLY: OnceLock<bool> = OnceLock::new();
    *STRICTLY.get_or_init(|| std::env::var_os(STRICT).is_some_and(|text| text == "1"))
}

/// Returns how long a waiting thread spins before it sleeps.
pub fn spin() -> Duration {
    static LENGTH: OnceLock<Duration> = OnceLock::new();
    *LENGTH.get_or_init(|| {
        let processors = std::fs::read_to_string(ONLINE).unwrap_or_default();
        spin_of(std::env::var(SPIN).ok().as_deref(), &processors)
    })
}

fn spin_of(asked: Option<&str>, processors: &str) -> Duration {
    let is_only_one = processors.trim().parse::<u32>().is_ok();
    match asked.and_then(|text| text.trim().parse().ok()) {
        Some(spin_us) => Duration::from_micros(spin_us),
        // The thread that is waited for needs the only processor.
        None if is_only_one => Duration::ZERO,
        None => SPIN_DEFAULT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_on_the_wire_that_its_name_says_and_the_environment_overrules_it() {
        for device in ["", "nic0", "/dev/via0", "VINIC"] {
            assert_eq!(wire_of(device, None), Ok(WireKind::Shm), "{device}");
            assert_eq!(wire_of(device, Some("udp")), Ok(udp(None)), "{device}");
        }
        assert_eq!(wire_of("udp:127.0.0.1:7", None), Ok(udp("127.0.0.1:7".parse().ok())));
        assert_eq!(wire_of("/dev/UDP0", None), Ok(udp(None)));
        assert_eq!(wire_of("udp:127.0.0.1:7", Some("shm")), Ok(WireKind::Shm));
        assert!(wire_of("udp:here", None).is_err() && wire_of("nic0", Some("tin")).is_err());
    }

    #[test]
    fn a_thread_spins_as_long_as_is_asked_and_not_on_the_only_processor() {
        assert_eq!(spin_of(None, "0\n"), Duration::ZERO);
        for several in ["0-1\n", "0,2\n", "1-3,7\n", ""] {
            assert_eq!(spin_of(None, several), SPIN_DEFAULT);
        }
        assert_eq!(spin_of(Some("0"), "0-1\n"), Duration::ZERO);
        assert_eq!(spin_of(Some(" 7 "), "0\n"), Duration::from_micros(7));
        assert_eq!(spin_of(Some("long"), "0-1\n"), SPIN_DEFAULT);
    }
}
