//! A layer in C that carries less than others.

#![allow(clippy::unwrap_used, reason = "a test")]

use netdyno_host::wait::Wait;
use netdyno_layers::half::{LayerOptions, Role};
use netdyno_layers::plugin::{Extension, PluginHalf};
use netdyno_measure::layer::Face;
use netdyno_plugin::site::{build_in, find_compiler};
use netdyno_plugin::source::Source;
use netdyno_protocol::faults::Faults;
use std::net::{Ipv4Addr, SocketAddr};

#[test]
fn a_message_that_is_too_long_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let compiler = find_compiler(&Source::skeleton(), None).expect("a C compiler is needed");
    let file = build_in(folder.path(), &Source::skeleton(), &compiler).unwrap();
    let options = LayerOptions {
        size_bytes: 70_000,
        face: Face::Requests,
        wait: Wait::Spin,
        faults: Faults::NONE,
        seed: 1,
        bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    };
    let refused = PluginHalf::open(&Extension { file, settings: Vec::new() }, Role::Requester, options);
    let why = "70000 bytes are more than the 65536 that skeleton carries in a message";
    assert_eq!(refused.err().unwrap().to_string(), why);
}
