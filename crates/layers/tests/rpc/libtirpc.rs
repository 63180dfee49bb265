//! A program in C over libtirpc calls the servers of the layers. Without a compiler or libtirpc there is no test.

use crate::common::with_server;
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
