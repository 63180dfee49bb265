//! The statistics of a rank: a file of 64-bit words, mapped by the hook, which counts in it. The file
//! stays however the rank ends.

use std::fs;
use std::io;
use std::path::Path;

/// The prefix of the file names.
pub const PREFIX: &str = "rank-";

/// The index of each figure. Times are in ticks of the rank's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The magic number, which includes the layout version.
    Magic,
    /// The state of the hook: a [`State`].
    State,
    /// The process ID.
    Pid,
    /// Its rank, the number of ranks, and the number of ranks on its host; each plus 1, and 0 if unknown.
    Rank,
    /// See [`Word::Rank`].
    Ranks,
    /// See [`Word::Rank`].
    LocalRanks,
    /// Whether departure times travel as stamps.
    Stamps,
    /// The length of a tick in nanoseconds, as the bits of an `f64`.
    TickNs,
    /// Messages sent.
    Sent,
    /// Bytes of these messages.
    SentBytes,
    /// Messages received.
    Received,
    /// Bytes of these messages.
    ReceivedBytes,
    /// RMA and atomic operations.
    OneSided,
    /// Bytes of these operations.
    OneSidedBytes,
    /// Messages that were held until they were due.
    Held,
    /// The sum of the times for which they were held.
    HeldTicks,
    /// Completions of sends and of one-sided operations that were held.
    HeldEnds,
    /// Processor time spent on send overheads.
    SendOverheadTicks,
    /// Processor time spent on receive overheads.
    RecvOverheadTicks,
    /// Messages that arrived after they were due although the program was polling.
    Late,
    /// Messages that arrived without a stamp although stamps are in use.
    Unstamped,
    /// Messages whose departure lay too far ahead for a stamp.
    TooFarAhead,
    /// Sends that returned `FI_EAGAIN`, because the capacity was used up or the gap was too long to wait
    /// for.
    Refused,
    /// Messages and operations on links that are not dialled.
    Spared,
    /// Completion queues whose format has too few members to dial their messages.
    BareQueues,
    /// Counters that count arrivals. The hook does not delay these counts.
    Counters,
    /// Endpoints of a kind that is not dialled.
    OtherEndpoints,
    /// Sends of endpoints with `FI_DELIVERY_COMPLETE` that completed at their departure.
    EndedLocally,
    /// Sends that completed at their delivery.
    EndedDelivered,
    /// The number of bytes used of the failure's text.
    FailureBytes,
    /// Messages sent and one-sided operations that have no bytes.
    Empty,
}

/// The index of the failure's text.
const TEXT_AT: usize = 32;
/// The length of the failure's text, in words.
const TEXT_WORDS: usize = 32;
/// The index of the histogram of lateness.
const LATENESS_AT: usize = TEXT_AT + TEXT_WORDS;
/// Bins of the histogram in each octave.
const PARTS: u64 = 16;
/// Bins of the histogram.
const LATENESS: usize = PARTS as usize * 48;
/// Words of a statistics file.
pub const WORDS: usize = LATENESS_AT + LATENESS;
/// Bytes of a statistics file.
pub const BYTES: usize = WORDS * size_of::<u64>();
/// "netdyno", and the layout version in the last byte.
pub const MAGIC: u64 = u64::from_be_bytes(*b"netdyno\0") | super::page::LAYOUT as u64;

/// The state of the hook in a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// libfabric has loaded the library.
    Loaded,
    /// libfabric has passed a fabric to the hook.
    Chosen,
    /// An endpoint with a hooked receive queue is enabled: messages pass through the hook.
    InForce,
    /// The hook has failed and dials nothing any more.
    Failed,
}

impl State {
    const ALL: [Self; 4] = [Self::Loaded, Self::Chosen, Self::InForce, Self::Failed];
}

/// Returns the index of the bin for a lateness in ticks. Bins are exact to one part in [`PARTS`].
pub(crate) fn lateness_at(ticks: u64) -> usize {
    let octave = u64::from((ticks / PARTS).checked_ilog2().map_or(0, |log| log + 1));
    let part = if octave == 0 { ticks } else { (ticks >> (octave - 1)) - PARTS };
    LATENESS_AT + ((octave * PARTS + part) as usize).min(LATENESS - 1)
}

/// Returns the middle of the bin with that number, in ticks.
fn lateness_of(at: usize) -> f64 {
    let (octave, part) = (at as u64 / PARTS, at as u64 % PARTS);
    if octave == 0 {
        part as f64
    } else {
        ((PARTS + part) << (octave - 1)) as f64 + (1u64 << (octave - 1)) as f64 / 2.0 - 0.5
    }
}

/// Returns the length of a failure's text in bytes, cut to fit, and its words with their indices.
pub(crate) fn failure_words(text: &str) -> (u64, impl Iterator<Item = (usize, u64)> + '_) {
    let bytes = &text.as_bytes()[..text.len().min(8 * TEXT_WORDS)];
    let words = bytes.chunks(8).enumerate().map(|(nth, part)| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        (TEXT_AT + nth, u64::from_ne_bytes(word))
    });
    (bytes.len() as u64, words)
}

/// The statistics of a rank, as read after a run.
#[derive(Clone, Debug)]
pub struct Account(Vec<u64>);

impl Account {
    /// Reads all statistics files of a folder, sorted by rank. Leaves out the files that were never begun:
    /// a launcher may kill a rank before its hook has written the magic number.
    ///
    /// # Errors
    /// Returns the error of the folder or of a file, or an error if a file's size or layout version is not that
    /// of this netdyno.
    pub fn read_all(folder: &Path) -> io::Result<Vec<Self>> {
        let mut accounts = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(PREFIX) {
                let bytes = fs::read(entry.path())?;
                if is_begun(&bytes) {
                    let other_version = "the statistics file of a rank is not of this version of netdyno";
                    accounts.push(Self::from_bytes(&bytes).ok_or_else(|| io::Error::other(other_version))?);
                }
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

    /// Returns a figure.
    pub fn get(&self, word: Word) -> u64 {
        self.0[word as usize]
    }

    /// Returns a figure that is stored plus 1, or `None` if it is unknown.
    pub fn said(&self, word: Word) -> Option<u64> {
        self.get(word).checked_sub(1)
    }

    /// Returns a time in nanoseconds.
    pub fn ns(&self, word: Word) -> f64 {
        self.get(word) as f64 * self.tick_ns()
    }

    fn tick_ns(&self) -> f64 {
        f64::from_bits(self.get(Word::TickNs))
    }

    /// Returns the state of the hook.
    pub fn state(&self) -> Option<State> {
        State::ALL.get(self.get(Word::State) as usize).copied()
    }

    /// Returns the text of the failure.
    pub fn failure(&self) -> String {
        let bytes: Vec<u8> =
            self.0[TEXT_AT..LATENESS_AT].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let length = (self.get(Word::FailureBytes) as usize).min(bytes.len());
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    /// Returns the lateness of released messages: nanoseconds after they were due, with counts, rising.
    pub fn lateness(&self) -> Vec<(f64, u64)> {
        let counts = self.0[LATENESS_AT..].iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(at, &count)| (lateness_of(at) * self.tick_ns(), count)).collect()
    }
}

/// Reports whether a hook has written the magic number of a statistics file, which it writes last.
fn is_begun(bytes: &[u8]) -> bool {
    bytes.first_chunk().is_some_and(|magic| u64::from_ne_bytes(*magic) != 0)
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

    #[test]
    #[cfg_attr(miri, ignore = "uses files")]
    fn a_rank_killed_before_its_first_word_leaves_no_statistics() {
        let folder = std::env::temp_dir().join(format!("netdyno-account-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut words = vec![0; WORDS];
        let write = |name: &str, words: &[u64]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            fs::write(folder.join(name), bytes).unwrap();
        };
        write("rank-here-1", &[]);
        write("rank-here-2", &words);
        write("at-10.0.0.1", &[7]);
        words[0] = MAGIC;
        words[Word::Pid as usize] = 3;
        write("rank-here-3", &words);
        let read: Vec<u64> =
            Account::read_all(&folder).unwrap().iter().map(|account| account.get(Word::Pid)).collect();
        words[0] = MAGIC + 1;
        write("rank-here-4", &words);
        let other = Account::read_all(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(read, [3]);
        assert!(other.is_err());
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
