//! Connects Active Messages endpoints of two processes.

use super::process::{Child, Parent, from_hex, to_hex};
use crate::WIRE;
use netdyno_stack::am::{Endpoint, PeerId};

impl Child {
    /// Connects an endpoint of this process with the child's endpoint.
    pub fn connect<S>(&mut self, endpoint: &mut Endpoint<S>) -> PeerId {
        let port = endpoint.open_port(WIRE).unwrap();
        self.tell(&to_hex(&port.address()));
        let peer = endpoint.connect(port, &from_hex(&self.hear())).unwrap();
        self.tell("connected");
        peer
    }
}

impl Parent {
    /// The child's side of [`Child::connect`].
    pub fn connect<S>(&self, endpoint: &mut Endpoint<S>) -> PeerId {
        let port = endpoint.open_port(WIRE).unwrap();
        let address = port.address();
        let theirs = from_hex(&self.hear());
        let peer = endpoint.connect(port, &theirs).unwrap();
        self.say(&to_hex(&address));
        assert_eq!(self.hear(), "connected");
        peer
    }
}
