//! The options that a process opens a layer with.

use netdyno_host::wait::Wait;
use netdyno_measure::layer::Face;
use netdyno_measure::onesided::data::Access;
use netdyno_measure::overlap::data::ProgressBy;
use netdyno_protocol::dial::parameters::Dials;
use netdyno_protocol::dial::profile::Profile;
use netdyno_protocol::faults::Faults;
use std::net::SocketAddr;
use std::path::PathBuf;

/// How a layer is to be measured.
#[derive(Clone, Debug)]
pub struct LayerOptions {
    /// Bytes of user data in a message. Where messages differ in size, the largest size.
    pub size_bytes: usize,
    /// The face that the measurement uses.
    pub face: Face,
    /// How one-sided operations reach memory, for a layer that has a choice.
    pub access: Access,
    /// Where messages make progress that can be posted, for a layer that has a progress thread.
    pub progress_by: ProgressBy,
    /// What a process does while nothing arrives.
    pub wait: Wait,
    /// The injected faults, for a layer that takes faults.
    pub faults: Faults,
    /// The dial settings, for a layer that has dials.
    pub dials: DialOptions,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The socket's address, for a layer that has sockets: an address of this host and a port, 0 for any
    /// port.
    pub bind: SocketAddr,
}

/// How a link is dialled.
#[derive(Clone, Debug, Default)]
pub struct DialOptions {
    /// The dial settings, of which one is in force at a time.
    pub settings: Vec<Dials>,
    /// The file, and the offset in it, of the word that selects the dial setting. Without a word, the first
    /// setting is in force.
    pub word: Option<(PathBuf, usize)>,
    /// How the dials change with time.
    pub profile: Option<Profile>,
}

impl DialOptions {
    /// Returns whether the link is left as it is.
    pub fn are_none(&self) -> bool {
        self.settings.iter().all(Dials::are_none) && self.profile.is_none()
    }
}
