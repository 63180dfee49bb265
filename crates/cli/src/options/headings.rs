//! The headings of the options in the help.

/// Heading of the options for the subject of the measurement.
pub const WHAT: &str = "What to measure";
/// Heading of the options for precision and time.
pub const HOW_PRECISELY: &str = "How precisely";
/// Heading of the options for processors and waiting.
pub const WHERE: &str = "Where";
/// Heading of the options for the form and place of the result, and for messages.
pub const OUTPUT: &str = "Output";
/// Heading of the options for dials and injected faults.
pub const SLOW: &str = "A link made slow";
/// Heading of the options for the hosts and launchers of processes.
pub const HOSTS: &str = "Hosts and launchers";
