//! The identity of the machine.

/// Returns an identifier of the machine. All containers of one machine have the same.
pub fn name() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    boot.trim().to_owned()
}
