//! Connects endpoints of Active Messages, in one process or between two.

use super::process::{Child, Parent, from_hex, to_hex};
use netdyno_stack::am::{Endpoint, PeerId, Wire};

/// Connects two endpoints of this process.
pub fn connect<S>(wire: Wire, a: &mut Endpoint<S>, b: &mut Endpoint<S>) -> (PeerId, PeerId) {
    let (port_a, port_b) = (a.open_port(wire).unwrap(), b.open_port(wire).unwrap());
    let (address_a, address_b) = (port_a.address(), port_b.address());
    (a.connect(port_a, &address_b).unwrap(), b.connect(port_b, &address_a).unwrap())
}

/// Connects each endpoint with every other one. `peers[i][j]` is the ID of `j` at `i`.
pub fn connect_all<S>(wire: Wire, endpoints: &mut [Endpoint<S>]) -> Vec<Vec<Option<PeerId>>> {
    let count = endpoints.len();
    let mut peers = vec![vec![None; count]; count];
    for (i, j) in (0..count).flat_map(|i| (0..i).map(move |j| (i, j))) {
        let [a, b] = endpoints.get_disjoint_mut([i, j]).unwrap();
        let (to_b, to_a) = connect(wire, a, b);
        (peers[i][j], peers[j][i]) = (Some(to_b), Some(to_a));
    }
    peers
}

impl Child {
    /// Connects an endpoint of this process with the child's endpoint.
    pub fn connect<S>(&mut self, wire: Wire, endpoint: &mut Endpoint<S>) -> PeerId {
        let port = endpoint.open_port(wire).unwrap();
        self.tell(&to_hex(&port.address()));
        let peer = endpoint.connect(port, &from_hex(&self.hear())).unwrap();
        self.tell("connected");
        peer
    }
}

impl Parent {
    /// The child's side of [`Child::connect`].
    pub fn connect<S>(&self, wire: Wire, endpoint: &mut Endpoint<S>) -> PeerId {
        let port = endpoint.open_port(wire).unwrap();
        let address = port.address();
        let theirs = from_hex(&self.hear());
        let peer = endpoint.connect(port, &theirs).unwrap();
        self.say(&to_hex(&address));
        assert_eq!(self.hear(), "connected");
        peer
    }
}
