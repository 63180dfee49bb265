//! Two network namespaces with a virtual cable between them, which may pass for hosts.

use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The environment variable that makes tests in namespaces mandatory.
const REQUIRED: &str = "NETDYNO_NAMESPACES";

/// The addresses of the two ends.
pub const ADDRESSES: [&str; 2] = ["10.78.0.1", "10.78.0.2"];

/// A cable between two namespaces. A drop removes them.
pub struct Cable {
    names: [String; 2],
}

impl Cable {
    /// Sets up the namespaces. If that is not permitted, prints a message and returns `None`.
    pub fn new() -> Option<Self> {
        static CABLES: AtomicU32 = AtomicU32::new(0);
        let nth = CABLES.fetch_add(1, Ordering::Relaxed);
        let names = ["a", "b"].map(|end| format!("netdyno-global-{}-{nth}{end}", std::process::id()));
        let cable = Self { names };
        match cable.set_up() {
            Ok(()) => Some(cable),
            Err(error) => skip(&error),
        }
    }

    fn set_up(&self) -> Result<(), String> {
        let [a, b] = &self.names;
        ip(&["netns", "add", a])?;
        ip(&["netns", "add", b])?;
        ip(&["link", "add", "cable", "netns", a, "type", "veth", "peer", "name", "cable", "netns", b])?;
        for (name, address) in self.names.iter().zip(ADDRESSES) {
            ip(&["-n", name, "addr", "add", &format!("{address}/24"), "dev", "cable"])?;
            ip(&["-n", name, "link", "set", "cable", "up"])?;
            // What an end sends to its own address.
            ip(&["-n", name, "link", "set", "lo", "up"])?;
        }
        Ok(())
    }

    /// Returns the beginning of a command in a namespace.
    pub fn enter(&self, end: usize) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[end]]);
        command
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        // The cable disappears with its ends. A namespace that was never created cannot be removed.
        for name in &self.names {
            let _ = ip(&["netns", "delete", name]);
        }
    }
}

/// Two namespaces that pass for hosts of their own, with a cable between them. The library tells hosts apart by their boot
/// identifiers.
pub struct Hosts {
    cable: Cable,
    boot_ids: [tempfile::NamedTempFile; 2],
}

impl Hosts {
    /// Sets up the hosts. If that is not permitted, prints a message and returns `None`.
    pub fn new() -> Option<Self> {
        let cable = Cable::new()?;
        let boot_ids = ["a", "b"].map(|host| {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            writeln!(file, "netdyno-test-host-{host}").unwrap();
            file
        });
        let hosts = Self { cable, boot_ids };
        // A machine may permit namespaces and refuse mounts.
        match done(hosts.enter(0).arg("true")) {
            Ok(()) => Some(hosts),
            Err(error) => skip(&error),
        }
    }

    /// Returns the beginning of a command at a host. Its boot identifier is there in a mount namespace that ends with the
    /// command.
    pub fn enter(&self, host: usize) -> Command {
        const MOUNT: &str = r#"mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@""#;
        let mut command = self.cable.enter(host);
        command.args(["sh", "-c", MOUNT]).arg(self.boot_ids[host].path());
        command
    }
}

fn ip(args: &[&str]) -> Result<(), String> {
    done(Command::new("ip").args(args))
}

/// Runs a command that must succeed.
fn done(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// Says that this machine does not permit namespaces. Panics if the tests in them are mandatory.
fn skip<T>(error: &str) -> Option<T> {
    assert!(std::env::var_os(REQUIRED).is_none(), "no network namespaces: {error}");
    // The message bypasses the capture of the test harness.
    let _ = writeln!(std::io::stderr(), "SKIPPED: no program ran between namespaces: {error}");
    None
}
