//! The transport statistics of a layer that keeps them, in one line.

use netdyno_measure::logp::data::Transport;
use netdyno_measure::record::Logp;
use netdyno_measure::show::percent;

/// Describes the messages, the retransmitted ones, stray datagrams, and the memory of a connection. Returns
/// `None` if the layer keeps no statistics.
pub fn transport(logp: &Logp) -> Option<String> {
    let launches: Vec<Transport> = logp.launches.iter().filter_map(|launch| launch.transport).collect();
    if launches.is_empty() {
        return None;
    }
    // A record is a file that others may have written: its counts may have any value.
    let sum = |of: fn(&Transport) -> u64| launches.iter().map(of).fold(0, u64::saturating_add);
    let (sent, again) = (sum(|t| t.sent), sum(|t| t.retransmitted));
    let share = if sent > 0 { again as f64 / sent as f64 } else { 0.0 };
    let mut text = format!("{sent} messages sent, {} of them again", percent(share));
    for (what, count) in [
        ("malformed", sum(|t| t.malformed)),
        ("foreign", sum(|t| t.foreign)),
        ("refused by the system", sum(|t| t.refused)),
    ] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    let memory = launches.iter().map(|t| t.memory_bytes).max().unwrap_or(0);
    Some(format!("{text}; a connection holds {} KiB", memory.div_ceil(1024)))
}
