//! The identity of the machine and of the host, and the processors that a program may use.

use rustix::thread::{CpuSet, sched_getaffinity};

/// Returns an identifier of the machine. All containers of one machine have the same.
pub fn name() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    boot.trim().to_owned()
}

/// Returns an identifier of the network: the part of a machine whose processes reach each other by the loopback interface.
pub fn network() -> String {
    format!("{} {}", name(), space("net"))
}

/// Returns an identifier of the host: the part of a machine whose processes reach each other by shared memory and by the
/// loopback interface. A container with a network or with processes of its own is a host.
pub fn host() -> String {
    format!("{} {}", network(), space("pid"))
}

/// Returns an identifier of this process's namespace of a kind.
fn space(kind: &str) -> String {
    let link = std::fs::read_link(format!("/proc/self/ns/{kind}")).unwrap_or_default();
    link.to_string_lossy().into_owned()
}

/// Returns the processors that this thread may use, a bit for each, up to the last byte that is not zero. Returns
/// nothing if the system does not say.
pub fn processors() -> Vec<u8> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    let mut bytes = vec![0; CpuSet::MAX_CPU.div_ceil(8)];
    for cpu in (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)) {
        bytes[cpu / 8] |= 1 << (cpu % 8);
    }
    bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
    bytes
}
