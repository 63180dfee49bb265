//! What a rank says of itself: a file of words that the hook counts in, and that outlives the rank
//! however it ends.

use std::fs;
use std::io;
use std::path::Path;

/// How the names of accounts begin.
pub const PREFIX: &str = "rank-";

/// Where each figure stands. Times are in ticks of the rank's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// That it is an account, and of which layout.
    Magic,
    /// How far the hook has come: a [`State`].
    State,
    /// The process.
    Pid,
    /// Its rank, and how many there are, altogether and on its host; plus 1, and 0 if nobody said.
    Rank,
    /// See [`Word::Rank`].
    Ranks,
    /// See [`Word::Rank`].
    LocalRanks,
    /// Whether departure times travel as stamps.
    Stamps,
    /// The length of a tick, as the bits of a floating-point number of nanoseconds.
    TickNs,
    /// Messages sent.
    Sent,
    /// And their bytes.
    SentBytes,
    /// Messages received.
    Received,
    /// And their bytes.
    ReceivedBytes,
    /// Writes, reads and atomic operations.
    OneSided,
    /// And their bytes.
    OneSidedBytes,
    /// Messages that were held back until they were due.
    Held,
    /// For how long altogether.
    HeldTicks,
    /// Ends of sends and of one-sided operations that were held back.
    HeldEnds,
    /// Processor time taken by send overheads.
    SendOverheadTicks,
    /// Processor time taken by receive overheads.
    RecvOverheadTicks,
    /// Messages that arrived later than the dials asked for, while the program was looking.
    Late,
    /// Messages without a stamp although stamps are in force.
    Unstamped,
    /// Messages whose departure lay too far ahead to be written down.
    TooFarAhead,
    /// Sends refused for want of capacity, until there was some.
    Refused,
    /// Messages between ranks whose link is left as it is.
    Spared,
    /// Completion queues that say too little to dial what they bring.
    BareQueues,
    /// Counters that count what arrives, undialled.
    Counters,
    /// Endpoints of a kind that is not dialled.
    OtherEndpoints,
    /// Sends of endpoints that ask for delivery, which were taken to be over with their departure.
    EndedLocally,
    /// Sends that were held until their delivery was known.
    EndedDelivered,
    /// How many bytes of the failure's text are used.
    FailureBytes,
}

/// Words before the text.
const TEXT_AT: usize = 32;
/// Words of the text of a failure.
const TEXT_WORDS: usize = 32;
/// Where the counts of lateness begin.
const LATENESS_AT: usize = TEXT_AT + TEXT_WORDS;
/// Parts of an octave that are told apart.
const PARTS: u64 = 16;
/// Counts of lateness.
const LATENESS: usize = PARTS as usize * 48;
/// Words of an account.
pub const WORDS: usize = LATENESS_AT + LATENESS;
/// Bytes of an account.
pub const BYTES: usize = WORDS * size_of::<u64>();
/// "netdyno", and the layout.
pub const MAGIC: u64 = u64::from_be_bytes(*b"netdyno\0") | super::page::LAYOUT as u64;

/// How far the hook has come in a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// libfabric has loaded it.
    Loaded,
    /// And given it a fabric.
    Chosen,
    /// Messages go through it.
    InForce,
    /// It has failed, and lets messages pass.
    Failed,
}

impl State {
    const ALL: [Self; 4] = [Self::Loaded, Self::Chosen, Self::InForce, Self::Failed];
}

/// The count for something that was so many ticks late: exact to a part in [`PARTS`].
pub(crate) fn lateness_at(ticks: u64) -> usize {
    let octave = u64::from((ticks / PARTS).checked_ilog2().map_or(0, |log| log + 1));
    let part = if octave == 0 { ticks } else { (ticks >> (octave - 1)) - PARTS };
    LATENESS_AT + ((octave * PARTS + part) as usize).min(LATENESS - 1)
}

/// The middle of what a count stands for.
fn lateness_of(at: usize) -> f64 {
    let (octave, part) = (at as u64 / PARTS, at as u64 % PARTS);
    if octave == 0 {
        part as f64
    } else {
        ((PARTS + part) << (octave - 1)) as f64 + (1u64 << (octave - 1)) as f64 / 2.0 - 0.5
    }
}

/// Where the text of a failure goes, in words.
pub(crate) fn failure_words(text: &str) -> (u64, impl Iterator<Item = (usize, u64)> + '_) {
    let bytes = &text.as_bytes()[..text.len().min(8 * TEXT_WORDS)];
    let words = bytes.chunks(8).enumerate().map(|(nth, part)| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        (TEXT_AT + nth, u64::from_ne_bytes(word))
    });
    (bytes.len() as u64, words)
}

/// An account, as it is found after a run.
#[derive(Clone, Debug)]
pub struct Account(Vec<u64>);

impl Account {
    /// Reads one.
    ///
    /// # Errors
    /// That of the file, and one that is no account of this version.
    pub fn read(path: &Path) -> io::Result<Self> {
        Self::from_bytes(&fs::read(path)?)
            .ok_or_else(|| io::Error::other("it is no account of this version of netdyno"))
    }

    /// All of a folder, by rank.
    ///
    /// # Errors
    /// That of the folder or of a file.
    pub fn read_all(folder: &Path) -> io::Result<Vec<Self>> {
        let mut accounts = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(PREFIX) {
                accounts.push(Self::read(&entry.path())?);
            }
        }
        accounts.sort_by_key(|account| (account.get(Word::Rank), account.get(Word::Pid)));
        Ok(accounts)
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let words = bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()));
        let words: Vec<u64> = words.collect();
        (words.len() == WORDS && words[0] == MAGIC).then_some(Self(words))
    }

    /// A figure.
    pub fn get(&self, word: Word) -> u64 {
        self.0[word as usize]
    }

    /// A figure that may not have been said.
    pub fn said(&self, word: Word) -> Option<u64> {
        self.get(word).checked_sub(1)
    }

    /// A time, in nanoseconds.
    pub fn ns(&self, word: Word) -> f64 {
        self.get(word) as f64 * self.tick_ns()
    }

    fn tick_ns(&self) -> f64 {
        f64::from_bits(self.get(Word::TickNs))
    }

    /// How far the hook has come.
    pub fn state(&self) -> Option<State> {
        State::ALL.get(self.get(Word::State) as usize).copied()
    }

    /// What it died of.
    pub fn failure(&self) -> String {
        let bytes: Vec<u8> =
            self.0[TEXT_AT..LATENESS_AT].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let length = (self.get(Word::FailureBytes) as usize).min(bytes.len());
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    /// How long after they were due held messages were released: counts and nanoseconds, rising.
    pub fn lateness(&self) -> Vec<(f64, u64)> {
        let counts = self.0[LATENESS_AT..].iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(at, &count)| (lateness_of(at) * self.tick_ns(), count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_words_have_room() {
        assert!((Word::FailureBytes as usize) < TEXT_AT);
    }

    #[test]
    fn a_failure_is_read_as_it_was_written() {
        let mut words = vec![0; WORDS];
        words[0] = MAGIC;
        let text = "the hook has failed";
        let (bytes, parts) = failure_words(text);
        words[Word::FailureBytes as usize] = bytes;
        parts.for_each(|(at, word)| words[at] = word);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(Account::from_bytes(&bytes).unwrap().failure(), text);
        assert!(Account::from_bytes(&bytes[8..]).is_none());
    }

    proptest! {
        #[test]
        #[cfg_attr(miri, ignore = "takes long")]
        fn lateness_is_kept_to_a_sixteenth(ticks in 0..1u64 << 46) {
            let at = lateness_at(ticks);
            prop_assert!(at < WORDS);
            let kept = lateness_of(at - LATENESS_AT);
            prop_assert!((kept - ticks as f64).abs() <= 0.5 + ticks as f64 / 16.0, "{ticks} {kept}");
        }

        #[test]
        #[cfg_attr(miri, ignore = "takes long")]
        fn no_file_panics(mut words in proptest::collection::vec(any::<u64>(), WORDS)) {
            words[0] = MAGIC;
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let account = Account::from_bytes(&bytes).unwrap();
            let _ = (account.failure(), account.state(), account.lateness());
        }
    }
}
