//! The peak of the way between two processes: the bandwidth that no layer over that way exceeds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a peak was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PeakSource {
    /// The user gave it.
    Given,
    /// It is the speed of the network interface, as its driver reports it.
    Link,
    /// It is the rate at which one processor copies a block of a message's size.
    Copy,
    /// It is 1/G of the simulated interface.
    Model,
    /// No peak is known.
    #[default]
    Unknown,
}

/// The peak of the way between two processes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Peak {
    /// How the peak was found.
    pub source: PeakSource,
    /// The peak; null if it is not known, or if each size has its own.
    pub peak_bytes_per_s: Option<f64>,
    /// The source in words, such as `the speed of eth0`; the reason, if no peak is known.
    pub how: String,
}

impl Peak {
    /// Returns a peak that is the same at every size.
    pub fn of(source: PeakSource, bytes_per_s: f64, how: &str) -> Self {
        Self { source, peak_bytes_per_s: Some(bytes_per_s), how: how.into() }
    }

    /// Returns the peak of a way through the memory of one host. No message reaches another process with less
    /// than one copy, and each launch measures its time.
    pub fn of_one_copy() -> Self {
        let how = "one copy of a message by one processor".into();
        Self { source: PeakSource::Copy, peak_bytes_per_s: None, how }
    }

    /// Returns a peak that the requester finds out on its host: the speed of the interface of its sockets.
    pub fn of_requester() -> Self {
        let how = "the speed of the requester's interface".into();
        Self { source: PeakSource::Link, peak_bytes_per_s: None, how }
    }

    /// Reports whether the requester has to find out the peak on its host.
    pub fn is_left_to_requester(&self) -> bool {
        self.source == PeakSource::Link && self.peak_bytes_per_s.is_none()
    }

    /// Returns that no peak is known, and why.
    pub fn unknown(why: &str) -> Self {
        Self { source: PeakSource::Unknown, peak_bytes_per_s: None, how: why.into() }
    }
}
