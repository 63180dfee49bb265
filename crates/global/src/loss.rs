//! The words by which a rank tells the others that it has lost one: the rank, the loss, and its time in milliseconds.

use netdyno_protocol::global::message::Words;
use netdyno_stack::am::Loss;
use std::time::Duration;

const ENDED: u64 = 0;
const CLOSED: u64 = 1;
const SILENT: u64 = 2;
const MISBEHAVED: u64 = 3;

/// Returns the words for the loss of a rank.
pub(crate) fn written(rank: u32, loss: Loss) -> Words {
    let (kind, time_ms) = match loss {
        Loss::Ended => (ENDED, 0),
        Loss::Silent(time) => (SILENT, u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        Loss::Misbehaved => (MISBEHAVED, 0),
        _ => (CLOSED, 0),
    };
    [u64::from(rank), kind, time_ms, 0]
}

/// Returns the lost rank and the loss, or `None` if the words are not those of this version.
pub(crate) fn read([rank, kind, time_ms, _]: Words) -> Option<(u32, Loss)> {
    let loss = match kind {
        ENDED => Loss::Ended,
        CLOSED => Loss::Closed,
        SILENT => Loss::Silent(Duration::from_millis(time_ms)),
        MISBEHAVED => Loss::Misbehaved,
        _ => return None,
    };
    Some((u32::try_from(rank).ok()?, loss))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_loss_is_read_as_it_was_written() {
        for loss in [Loss::Ended, Loss::Closed, Loss::Silent(Duration::from_millis(1500)), Loss::Misbehaved] {
            assert_eq!(read(written(7, loss)), Some((7, loss)));
        }
        assert_eq!(read([7, 4, 0, 0]), None);
        assert_eq!(read([1 << 32, CLOSED, 0, 0]), None);
    }
}
