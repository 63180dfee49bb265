//! Virtual Ethernet cables that one test has for itself: a network namespace with a bridge, to which each interface is
//! connected, or two namespaces with a cable between them.
//!
//! On the bridge all interfaces are in one namespace, so that one process may have endpoints at several. The kernel
//! would not ask for the hardware address of a neighbour in its own namespace, so the test tells it.

use rustix::thread::{UnshareFlags, gettid, unshare_unsafe};
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;

/// The queues of either end of a cable between two namespaces.
const QUEUES: u32 = 4;

/// The environment variable that makes tests in namespaces mandatory.
const REQUIRED: &str = "NETDYNO_NAMESPACES";

/// Moves this thread, and the threads and processes that it starts, to a namespace with this number of interfaces. If
/// that is not permitted, prints a message and returns `false`.
pub fn connect(count: u8) -> bool {
    is_permitted(enter_namespace().and_then(|()| ip(&commands(count)))).is_some()
}

/// Connects two namespaces by a cable. Calls `make` in each of them, with the address of that end. If that is not
/// permitted, prints a message and returns `None`.
pub fn between_namespaces<T: Send>(make: impl Fn(Ipv4Addr) -> T + Sync) -> Option<[T; 2]> {
    const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 89, 0, 1), Ipv4Addr::new(10, 89, 0, 2)];
    let set_up = |end: usize| ip(&format!("address add {}/24 dev end\nlink set end up\n", ADDRESSES[end]));
    let (tell, hear) = channel();
    let (connect, connected) = channel::<()>();
    let made = thread::scope(|scope| {
        let make = &make;
        let first = scope.spawn(move || {
            tell.send(enter_namespace().map(|()| gettid())).map_err(|error| error.to_string())?;
            // The other thread ends without a word if it failed.
            connected.recv().map_err(|error| error.to_string())?;
            set_up(0)?;
            Ok::<T, String>(make(ADDRESSES[0]))
        });
        let second = || {
            let thread = hear.recv().map_err(|error| error.to_string())??.as_raw_nonzero();
            enter_namespace()?;
            let queues = format!("numrxqueues {QUEUES} numtxqueues {QUEUES}");
            ip(&format!("link add end {queues} type veth peer name end {queues} netns {thread}\n"))?;
            set_up(1)?;
            connect.send(()).map_err(|error| error.to_string())?;
            Ok::<T, String>(make(ADDRESSES[1]))
        };
        let second = second();
        drop(connect);
        let first = first.join().unwrap();
        second.and_then(|second| Ok([first?, second]))
    });
    is_permitted(made)
}

fn enter_namespace() -> Result<(), String> {
    // SAFETY: the thread shares no state with others that depends on the namespace.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.map_err(|error| error.to_string())
}

fn is_permitted<T>(outcome: Result<T, String>) -> Option<T> {
    outcome
        .inspect_err(|error| {
            assert!(std::env::var_os(REQUIRED).is_none(), "no network namespace: {error}");
            // The message bypasses the capture of the test harness.
            let _ = writeln!(std::io::stderr(), "SKIPPED: nothing was tested over AF_XDP: {error}");
        })
        .ok()
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

/// Runs commands of `ip` in the namespace of this thread.
pub fn ip(commands: &str) -> Result<(), String> {
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
