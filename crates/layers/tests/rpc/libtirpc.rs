//! Programs over libtirpc call the servers of the layers: one in C, and `rpcinfo`. What is not installed is not
//! tested.

use crate::common::{PROGRAM, with_server};
use netdyno_layers::catalogue::Layer;
use std::path::Path;
use std::process::Command;

#[test]
fn a_client_over_libtirpc_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let Some(client) = build(folder.path()) else { return println!("SKIPPED: no compiler, or no libtirpc") };
    let unused = "127.0.0.1:1".parse().unwrap();
    for (layer, over) in [(Layer::OncRpcUdp, "udp"), (Layer::OncRpcTcp, "tcp")] {
        let output = with_server(layer, unused, |server| {
            Command::new(&client).args([over, &server.port().to_string()]).output().unwrap()
        });
        let said = String::from_utf8_lossy(&output.stdout);
        let expected = "NULL: RPC: Success\n\
            echo: RPC: Success, hello\n\
            procedure 9: RPC: Procedure unavailable\n\
            no argument: RPC: Server can't decode arguments\n\
            version 0: 1, 1 to 1\n\
            program: 1\n\
            AUTH_SYS: 1, 2\n";
        assert_eq!(said, expected, "{over}");
    }
}

/// `rpcinfo -a` calls a universal address: the bytes of the IP address, and of the port (RFC 5665, section
/// 5.2.3.3).
#[test]
fn rpcinfo_finds_the_program() {
    let unused = "127.0.0.1:1".parse().unwrap();
    for (layer, netid) in [(Layer::OncRpcUdp, "udp"), (Layer::OncRpcTcp, "tcp")] {
        with_server(layer, unused, |server| {
            let [high, low] = server.port().to_be_bytes();
            let ask = |version: &[&str]| {
                let args = ["-a", &format!("127.0.0.1.{high}.{low}"), "-T", netid, &PROGRAM.to_string()];
                Command::new("rpcinfo").args(args).args(version).output()
            };
            let Ok(output) = ask(&["1"]) else { return println!("SKIPPED: no rpcinfo") };
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(said, format!("program {PROGRAM} version 1 ready and waiting\n"), "{output:?}");
            // Without a version, rpcinfo calls version 0, and the reply says which versions there are.
            let all = ask(&[]).unwrap();
            assert_eq!(String::from_utf8_lossy(&all.stdout), said, "{all:?}");
            let other = ask(&["2"]).unwrap();
            let refused = String::from_utf8_lossy(&other.stderr).into_owned();
            assert!(refused.contains("low version = 1, high version = 1"), "{other:?}");
        });
    }
}

/// Builds the client with the C compiler and the flags that pkg-config names.
fn build(folder: &Path) -> Option<std::path::PathBuf> {
    let flags = Command::new("pkg-config").args(["--cflags", "--libs", "libtirpc"]).output().ok()?;
    let flags = String::from_utf8(flags.stdout).ok().filter(|_| flags.status.success())?;
    let client = folder.join("client");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rpc/client.c");
    let status =
        Command::new("cc").arg("-o").arg(&client).arg(source).args(flags.split_whitespace()).status().ok()?;
    status.success().then_some(client)
}
