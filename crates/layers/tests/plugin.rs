//! Tests of C layers that lack a capability.

#![allow(clippy::unwrap_used, reason = "a test")]

use netdyno_host::wait::Wait;
use netdyno_layers::half::Role;
use netdyno_layers::options::{DialOptions, LayerOptions};
use netdyno_layers::plugin::extension::Extension;
use netdyno_layers::plugin::half::PluginHalf;
use netdyno_measure::layer::Face;
use netdyno_measure::onesided::data::Access;
use netdyno_measure::overlap::data::ProgressBy;
use netdyno_plugin::site::{build_in, find_compiler};
use netdyno_plugin::source::Source;
use netdyno_protocol::faults::Faults;
use std::net::{Ipv4Addr, SocketAddr};

#[test]
fn a_layer_of_requests_has_no_overlap() {
    let folder = tempfile::tempdir().unwrap();
    let compiler = find_compiler(&Source::requests(), None).expect("a C compiler is needed");
    let file = build_in(folder.path(), &Source::requests(), &compiler).unwrap();
    let extension = Extension { file, settings: Vec::new() };
    let refused = PluginHalf::open(&extension, Role::Requester, options(1000, Face::Messages));
    let why = "requests has requests and replies only: there is no overlap to measure";
    assert_eq!(refused.err().unwrap().to_string(), why);
}

fn options(size_bytes: usize, face: Face) -> LayerOptions {
    let bind = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    LayerOptions {
        size_bytes,
        face,
        access: Access::default(),
        progress_by: ProgressBy::default(),
        wait: Wait::Spin,
        faults: Faults::NONE,
        dials: DialOptions::default(),
        seed: 1,
        bind,
    }
}

#[test]
fn a_message_that_is_too_long_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let compiler = find_compiler(&Source::skeleton(), None).expect("a C compiler is needed");
    let file = build_in(folder.path(), &Source::skeleton(), &compiler).unwrap();
    let extension = Extension { file, settings: Vec::new() };
    let refused = PluginHalf::open(&extension, Role::Requester, options(70_000, Face::Requests));
    let why = "70000 bytes are more than the 65536 that skeleton carries in a message";
    assert_eq!(refused.err().unwrap().to_string(), why);
}
