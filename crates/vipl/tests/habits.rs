//! Programs in the style of existing VIA programs: `tests/programs/habit_*.c`. Each runs as two processes
//! that are started separately and find each other by host names.

#![allow(clippy::unwrap_used, reason = "a test")]

mod library;

use library::Library;
use std::net::UdpSocket;
use std::process::{Child, Stdio};

/// The devices of a program with two NICs, and the hosts of its peers.
struct Places {
    devices: [String; 2],
    hosts: [String; 2],
}

impl Places {
    /// Over shared memory a device has any name, and every host is this host.
    fn shared_memory(device: &str) -> Self {
        Self {
            devices: [device.to_owned(), device.to_owned()],
            hosts: ["localhost", "127.0.0.1"].map(str::to_owned),
        }
    }

    /// Over UDP the two NICs of each process are at free ports.
    fn udp() -> [Self; 2] {
        let sockets = [(); 4].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let [a, b, c, d] = sockets.each_ref().map(|socket| socket.local_addr().unwrap());
        let place = |devices: [std::net::SocketAddr; 2], hosts: [std::net::SocketAddr; 2]| Self {
            devices: devices.map(|at| format!("udp:{at}")),
            hosts: hosts.map(|at| at.to_string()),
        };
        [place([a, b], [c, d]), place([c, d], [a, b])]
    }
}

/// The number of NICs that a program uses.
#[derive(Clone, Copy)]
enum Nics {
    One,
    Two,
}

/// Runs a program twice; the second process is the server of the first.
fn meet(name: &str, nics: Nics) {
    let library = Library::built();
    let program = library.compile(name);
    // No other test uses this name.
    let job = std::process::id().to_string();
    let ways = [
        ["/dev/via_lo", "VIA_lo"].map(Places::shared_memory),
        ["VINIC", "/dev/clanvi0"].map(Places::shared_memory),
        Places::udp(),
    ];
    for way in ways {
        let [server, client] = way.map(|Places { devices, hosts }| match nics {
            Nics::One => [devices[0].clone(), hosts[0].clone()],
            Nics::Two => [devices.join(","), hosts.join(",")],
        });
        let start = |places: &[String; 2], role: &[&str]| {
            let mut command = library.run(&program);
            command.args(places).arg(&job).args(role).stderr(Stdio::piped()).spawn().unwrap()
        };
        let both = [start(&client, &[]), start(&server, &["s"])];
        let ends = both.map(|child: Child| child.wait_with_output().unwrap());
        let said = ends.each_ref().map(|end| String::from_utf8_lossy(&end.stderr).into_owned());
        let are_well = ends.iter().all(|end| end.status.success());
        assert!(
            are_well,
            "{name} at {server:?}: {:?}\n{}",
            ends.each_ref().map(|end| end.status),
            said.join("")
        );
    }
}

#[test]
fn a_latency_test() {
    meet("habit_latency", Nics::One);
}

#[test]
fn a_library_with_buffers_behind_their_descriptors_over_two_nics() {
    meet("habit_mbufs", Nics::Two);
}

#[test]
fn a_device_of_credits_and_zero_segments_that_ends_in_the_error_callback() {
    meet("habit_control", Nics::One);
}

#[test]
fn a_library_of_one_sided_operations_with_a_server_thread() {
    meet("habit_onesided", Nics::Two);
}
