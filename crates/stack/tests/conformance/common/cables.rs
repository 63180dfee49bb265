//! A network of virtual Ethernet cables that one test has for itself: a network namespace with a bridge, to which each
//! interface is connected.
//!
//! All interfaces are in one namespace, so that one process may have endpoints at several. The kernel would not ask for
//! the hardware address of a neighbour in its own namespace, so the test tells it.

use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// The environment variable that makes tests in namespaces mandatory.
const REQUIRED: &str = "NETDYNO_NAMESPACES";

/// Moves this thread, and the threads and processes that it starts, to a namespace with this number of interfaces. If
/// that is not permitted, prints a message and returns `false`.
pub fn connect(count: u8) -> bool {
    // SAFETY: the thread shares no state with others that depends on the namespace.
    let moved = unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.map_err(|error| error.to_string());
    match moved.and_then(|()| ip(&commands(count))) {
        Ok(()) => true,
        Err(error) => {
            assert!(std::env::var_os(REQUIRED).is_none(), "no network namespace: {error}");
            // The message bypasses the capture of the test harness.
            let _ = writeln!(std::io::stderr(), "SKIPPED: nothing was tested over AF_XDP: {error}");
            false
        }
    }
}

fn commands(count: u8) -> String {
    let mut commands = String::from("link set lo up\nlink add bridge type bridge\nlink set bridge up\n");
    for n in 1..=count {
        // Writing to a string never fails.
        let _ = write!(
            commands,
            "link add end{n} address 02:00:00:00:00:{n:02x} type veth peer name port{n}\n\
             link set port{n} master bridge up\n\
             address add 10.88.0.{n}/24 dev end{n}\n\
             link set end{n} up\n"
        );
    }
    for (n, other) in
        (1..=count).flat_map(|n| (1..=count).map(move |other| (n, other))).filter(|(n, other)| n != other)
    {
        let _ = writeln!(
            commands,
            "neighbour add 10.88.0.{other} lladdr 02:00:00:00:00:{other:02x} dev end{n} nud permanent"
        );
    }
    commands
}

/// Runs commands of `ip`.
fn ip(commands: &str) -> Result<(), String> {
    let run = || {
        let mut ip = Command::new("ip");
        let mut ip = ip.args(["-batch", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        if let Some(stdin) = &mut ip.stdin {
            stdin.write_all(commands.as_bytes())?;
        }
        ip.wait_with_output()
    };
    let output = run().map_err(|error: std::io::Error| format!("ip: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}
