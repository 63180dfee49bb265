//! What the layers over AF_XDP need of this host.

use crate::options::LayerOptions;
use netdyno_host::datagram::try_permission;
use std::net::{Ipv4Addr, SocketAddr};

/// Returns why this process may not use AF_XDP, if it may not.
pub(crate) fn is_missing() -> Option<String> {
    let advice =
        "run netdyno as root, or once `setcap cap_net_admin,cap_net_raw,cap_bpf,cap_ipc_lock+ep` on it";
    try_permission().err().map(|error| format!("no AF_XDP sockets: {error}; {advice}"))
}

/// Returns the options with the address of an Ethernet interface. The loopback interface is none, so that any
/// interface takes its place.
pub(crate) fn at_an_interface(options: LayerOptions) -> LayerOptions {
    if !options.bind.ip().is_loopback() {
        return options;
    }
    LayerOptions { bind: SocketAddr::from((Ipv4Addr::UNSPECIFIED, options.bind.port())), ..options }
}
