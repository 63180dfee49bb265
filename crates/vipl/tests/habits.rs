//! Programs in the manner of those that were written for VIA: two of each, started apart, which find
//! each other by names of hosts. `tests/programs/habit_*.c`.

#![allow(clippy::unwrap_used, reason = "a test")]

mod library;

use library::Library;
use std::net::UdpSocket;
use std::process::{Child, Stdio};

/// What a program of two NICs is told: devices, and hosts.
struct Places {
    devices: [String; 2],
    hosts: [String; 2],
}

impl Places {
    /// Over shared memory a device has any name, and every host is this one.
    fn shared_memory(device: &str) -> Self {
        Self {
            devices: [device.to_owned(), device.to_owned()],
            hosts: ["localhost", "127.0.0.1"].map(str::to_owned),
        }
    }

    /// Over UDP the two of a process are at ports that nobody has.
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

/// Which NICs a program is told of.
#[derive(Clone, Copy)]
enum Nics {
    One,
    Two,
}

/// Runs a program twice, the second as the server of the first.
fn meet(name: &str, nics: Nics) {
    let library = Library::built();
    let program = library.compile(name);
    // Nobody else has this name.
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
