//! Injected faults: panics of the hook on request, to show how a run ends after a failure.

use std::fmt;
use std::str::FromStr;

/// The kinds of functions of the hook that libfabric or the program calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Opening a domain, an endpoint, a completion queue or a counter.
    Open,
    /// Binding and enabling an endpoint.
    Endpoint,
    /// Sending a message.
    Send,
    /// Posting a receive, and peeking at a message.
    Receive,
    /// RMA and atomic operations.
    OneSided,
    /// Reading a completion queue.
    Queue,
    /// Reading and setting a counter.
    Counter,
    /// `fi_trywait`: asking whether the program may block.
    Wait,
    /// Closing an endpoint, a completion queue or a counter.
    Close,
}

impl Entry {
    /// All variants.
    pub const ALL: [Self; 9] = [
        Self::Open,
        Self::Endpoint,
        Self::Send,
        Self::Receive,
        Self::OneSided,
        Self::Queue,
        Self::Counter,
        Self::Wait,
        Self::Close,
    ];

    /// Returns its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Endpoint => "endpoint",
            Self::Send => "send",
            Self::Receive => "receive",
            Self::OneSided => "one-sided",
            Self::Queue => "queue",
            Self::Counter => "counter",
            Self::Wait => "wait",
            Self::Close => "close",
        }
    }
}

/// The point of the panic, relative to the provider's function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Before the provider is called.
    Before,
    /// After the provider has returned.
    After,
}

/// An injected fault, written as `150`, `queue:150` or `after-send:150`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InjectedFault {
    /// The kind of function that panics.
    pub entry: Entry,
    /// The point of the panic, relative to the provider's function.
    pub side: Side,
    /// The fault strikes once the rank has sent so many messages.
    pub sent: u64,
}

/// The prefix of a fault after the provider's function.
const AFTER: &str = "after-";

impl FromStr for InjectedFault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no fault: write 150, queue:150 or after-send:150");
        let (place, sent) = text.split_once(':').unwrap_or((Entry::Send.name(), text));
        let (side, name) = match place.strip_prefix(AFTER) {
            Some(name) => (Side::After, name),
            None => (Side::Before, place),
        };
        let entry = Entry::ALL.into_iter().find(|entry| entry.name() == name).ok_or_else(wrong)?;
        Ok(Self { entry, side, sent: sent.parse().map_err(|_| wrong())? })
    }
}

impl fmt::Display for InjectedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let after = if self.side == Side::After { AFTER } else { "" };
        write!(f, "{after}{}:{}", self.entry.name(), self.sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_read_as_it_was_written() {
        for entry in Entry::ALL {
            for side in [Side::Before, Side::After] {
                let fault = InjectedFault { entry, side, sent: 7 };
                assert_eq!(fault.to_string().parse(), Ok(fault));
            }
        }
        assert_eq!("150".parse(), Ok(InjectedFault { entry: Entry::Send, side: Side::Before, sent: 150 }));
        for wrong in ["", "send", "nothing:1", "send:-1", "after-:1"] {
            assert!(wrong.parse::<InjectedFault>().unwrap_err().contains("write 150"), "{wrong}");
        }
    }
}
