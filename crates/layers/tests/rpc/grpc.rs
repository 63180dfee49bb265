//! gRPC against a client and a server in Python, by the library grpcio. Where it is not installed, nothing is tested.
//! `NETDYNO_TEST_PYTHON` names a Python that has it.

use crate::common::{LARGEST, options, with_server};
use netdyno_layers::catalogue::{Layer, half};
use netdyno_layers::half::Role;
use netdyno_measure::bulk::data::Direction;
use netdyno_measure::bulk::pattern::BulkPlan;
use netdyno_measure::layer::{Face, LayerError};
use netdyno_measure::logp::pattern::{BATCH_MESSAGES, LONGEST_BURST, Plan};
use netdyno_measure::task::{Data, Task};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A process that is killed at the end of a test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the program in Python with its arguments, if there is a Python with grpcio.
fn program(args: &[&str]) -> Option<Command> {
    let named = std::env::var_os("NETDYNO_TEST_PYTHON");
    let python = named.clone().unwrap_or_else(|| "python3".into());
    let found = Command::new(&python).args(["-c", "import grpc"]).stderr(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        assert!(named.is_none(), "NETDYNO_TEST_PYTHON has no grpcio");
        println!("SKIPPED: no Python with grpcio");
        return None;
    }
    let mut command = Command::new(python);
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rpc/grpc.py")).args(args);
    Some(command)
}

fn measure(server: &str, face: Face, task: &Task) -> Result<Data, LayerError> {
    let half = half::open(Layer::Grpc, Role::Requester, options(LARGEST, face)).unwrap();
    half.requester(server.as_bytes())?.measure(task, &mut |_| {})
}

fn signature() -> Task {
    Task::Logp(Plan {
        launch: 0,
        shape: None,
        budget_ns: 1e8,
        precision: 0.5,
        confidence: 0.95,
        seed: 1,
        longest_burst: LONGEST_BURST,
        batch_messages: BATCH_MESSAGES,
    })
}

#[test]
fn a_client_in_python_is_served() {
    let Some(mut client) = program(&["client"]) else { return };
    let unused = "127.0.0.1:1".parse().unwrap();
    let output = with_server(Layer::Grpc, unused, |server| client.arg(server.to_string()).output().unwrap());
    let expected = "Echo: OK, 0a0568656c6c6f\n\
        Echo of nothing: OK, \n\
        Transfer: OK, 0a035a5a5a\n\
        Transfer of too much: INVALID_ARGUMENT\n\
        Echo of another message: INTERNAL\n\
        another method: UNIMPLEMENTED\n\
        another service: UNIMPLEMENTED\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{output:?}");
}

#[test]
fn a_server_in_python_is_measured() {
    let Some(mut serving) = program(&["server"]) else { return };
    let mut serving = serving.stdout(Stdio::piped()).spawn().unwrap();
    let mut port = String::new();
    BufReader::new(serving.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let _killed = Killed(serving);
    let server = format!("127.0.0.1:{}", port.trim());
    let Data::Logp(data) = measure(&server, Face::Requests, &signature()).unwrap() else { panic!("no LogP") };
    assert_eq!(data.shape.window, 64);
    assert!(data.rtt.samples > 0);
    let bulk = BulkPlan {
        launch: 0,
        shape: None,
        largest_bytes: LARGEST,
        direction: Direction::Store,
        signatures: Vec::new(),
        budget_ns: 1e8,
        precision: 0.5,
        confidence: 0.95,
        seed: 1,
    };
    assert!(matches!(measure(&server, Face::Sized, &Task::Bulk(bulk)).unwrap(), Data::Bulk(_)));
}

#[test]
fn servers_that_fail_are_told_apart() {
    let refused = measure("127.0.0.1:1", Face::Requests, &signature()).err().unwrap();
    assert!(
        refused.0.contains("cannot connect to 127.0.0.1:1") && refused.0.contains("refused"),
        "{refused}"
    );
    let unused = "127.0.0.1:1".parse().unwrap();
    let other = with_server(Layer::OncRpcTcp, unused, |server| {
        measure(&server.to_string(), Face::Requests, &signature()).err().unwrap()
    });
    assert!(other.0.contains("did not execute a call"), "{other}");
    let Some(mut serving) = program(&["other"]) else { return };
    let mut serving = serving.stdout(Stdio::piped()).spawn().unwrap();
    let mut port = String::new();
    BufReader::new(serving.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let _killed = Killed(serving);
    let missing = measure(&format!("127.0.0.1:{}", port.trim()), Face::Requests, &signature()).err().unwrap();
    assert!(missing.0.contains("does not have the service netdyno.Echo"), "{missing}");
}
