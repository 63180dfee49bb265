//! Two hosts of a test: network namespaces connected by a virtual cable.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Address of `a`.
pub const A: &str = "10.77.0.1";
/// Address of `b`.
pub const B: &str = "10.77.0.2";
/// IPv6 address of `b`.
pub const B6: &str = "fd77::2";
/// An unused address in the same network.
pub const NOBODY: &str = "10.77.0.9";

/// Environment variable that makes these tests mandatory.
const REQUIRED: &str = "NETDYNO_NAMESPACES";

/// Two hosts. A drop removes them.
pub struct Network {
    a: String,
    b: String,
}

impl Network {
    /// Sets up the two hosts. If that is not permitted, prints a message and returns `None`.
    pub fn new() -> Option<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let nth = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = |host| format!("netdyno-{}-{nth}{host}", std::process::id());
        let network = Self { a: name("a"), b: name("b") };
        match network.set_up() {
            Ok(()) => Some(network),
            Err(error) => {
                assert!(std::env::var_os(REQUIRED).is_none(), "no network namespaces: {error}");
                // The message bypasses the capture of the test harness.
                let _ = writeln!(
                    std::io::stderr(),
                    "SKIPPED: nothing was tested between network namespaces: {error}"
                );
                None
            }
        }
    }

    fn set_up(&self) -> Result<(), String> {
        let Self { a, b } = self;
        ip(&["netns", "add", a])?;
        ip(&["netns", "add", b])?;
        ip(&["link", "add", "cable", "netns", a, "type", "veth", "peer", "name", "cable", "netns", b])?;
        for (host, address, address6) in [(a, A, "fd77::1"), (b, B, B6)] {
            ip(&["-n", host, "addr", "add", &format!("{address}/24"), "dev", "cable"])?;
            ip(&["-n", host, "addr", "add", &format!("{address6}/64"), "dev", "cable", "nodad"])?;
            ip(&["-n", host, "link", "set", "lo", "up"])?;
            ip(&["-n", host, "link", "set", "cable", "up"])?;
        }
        Ok(())
    }

    /// Returns the names of the two hosts.
    pub fn names(&self) -> (&str, &str) {
        (&self.a, &self.b)
    }

    /// Returns the built command on host `a`.
    pub fn on_a(&self, args: &[&str]) -> Command {
        on(&self.a, args)
    }

    /// Returns the built command on host `b`.
    pub fn on_b(&self, args: &[&str]) -> Command {
        on(&self.b, args)
    }

    /// Adds pairs of interfaces to `a`, each connected by a cable.
    pub fn add_pairs(&self, count: usize) {
        for pair in 1..=count {
            let end =
                |which: usize| (format!("end{pair}{which}"), format!("02:00:00:00:{pair:02x}:{which:02x}"));
            let [(one, of_one), (other, of_other)] = [end(1), end(2)];
            let host = ["-n", &self.a];
            let at_a = |args: &[&str]| ip(&[&host[..], args].concat()).unwrap();
            at_a(&[
                "link", "add", &one, "address", &of_one, "type", "veth", "peer", "name", &other, "address",
                &of_other,
            ]);
            for (which, name, theirs) in [(1, &one, &of_other), (2, &other, &of_one)] {
                let [ours, peer] = [which, 3 - which].map(|host| format!("10.88.{pair}.{host}"));
                at_a(&["address", "add", &format!("{ours}/24"), "dev", name]);
                at_a(&["link", "set", name, "up"]);
                at_a(&["neighbour", "add", &peer, "lladdr", theirs, "dev", name, "nud", "permanent"]);
            }
        }
    }

    /// Forbids UDP on `a`, as a firewall does.
    pub fn forbid_udp_on_a(&self) {
        for rule in [
            &["add", "pref", "1", "ipproto", "udp", "prohibit"][..],
            &["add", "pref", "2", "lookup", "local"],
            &["delete", "pref", "0"],
        ] {
            ip(&[&["-n", &self.a, "rule"], rule].concat()).unwrap();
        }
    }

    /// Removes the cable.
    pub fn cut(&self) {
        ip(&["-n", &self.a, "link", "delete", "cable"]).unwrap();
    }

    /// Returns whether an XDP program is attached to either end of the cable.
    pub fn has_programs(&self) -> bool {
        [&self.a, &self.b].iter().any(|host| {
            let output = Command::new("ip").args(["-n", host, "link", "show", "cable"]).output().unwrap();
            String::from_utf8_lossy(&output.stdout).contains("prog/xdp")
        })
    }

    /// Takes the link of `a` down, or up.
    pub fn link_of_a(&self, state: &str) {
        ip(&["-n", &self.a, "link", "set", "cable", state]).unwrap();
    }

    /// Takes the link of `b` down, or up. On `a` the link stays up, but nothing arrives.
    pub fn link_of_b(&self, state: &str) {
        ip(&["-n", &self.b, "link", "set", "cable", state]).unwrap();
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // The cable disappears with its ends. A namespace that was never created cannot be removed.
        for host in [&self.a, &self.b] {
            let _ = ip(&["netns", "delete", host]);
        }
    }
}

fn on(host: &str, args: &[&str]) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", host, env!("CARGO_BIN_EXE_netdyno")]).args(args).stdin(Stdio::null());
    command
}

fn ip(args: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(args).output().map_err(|error| format!("ip: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}
