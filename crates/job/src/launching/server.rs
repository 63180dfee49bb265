//! The launcher's side of PMI version 1.1, without sockets and processes: it takes the bytes of each rank, and returns
//! the answers. [`crate::pmi`] is the other side, and describes the lines.

use crate::pmi::argument;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use thiserror::Error;

/// The longest line, in bytes. It exceeds the longest put.
pub const LONGEST_LINE: usize = 4096;
/// The longest name of a space of values, key and value, in bytes: those of Hydra, because MPI libraries know them.
const SPACE_AT_MOST: usize = 256;
const KEY_AT_MOST: usize = 64;
const VALUE_AT_MOST: usize = 1024;
/// The most bytes in the keys and values of a rank.
pub const KEPT_AT_MOST: usize = 4 << 20;
/// The most bytes of a refused line that an error shows.
const SHOWN_AT_MOST: usize = 80;

/// An answer to a rank: one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The rank.
    pub to: usize,
    /// The line with its end.
    pub line: String,
}

/// The reason why a rank cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Misuse {
    /// A line that is no command of PMI 1.1, or a command that this launcher does not have.
    #[error("sent '{0}', which is no command of PMI 1.1 that netdyno answers")]
    Command(String),
    /// A line without an end.
    #[error("sent a line of more than {LONGEST_LINE} bytes")]
    TooLong,
    /// More values than a rank may put.
    #[error("has put more than {KEPT_AT_MOST} bytes of keys and values")]
    TooMuch,
    /// A second entry before the others have entered.
    #[error("has entered a barrier twice")]
    Barrier,
    /// A command after the last one.
    #[error("sent a command after cmd=finalize")]
    Finalized,
}

/// A request of a rank that ends the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The rank asks for the end of the job, with this exit code.
    Abort(i32),
    /// The rank does not keep the protocol.
    Misuse(Misuse),
}

impl From<Misuse> for Stop {
    fn from(misuse: Misuse) -> Self {
        Self::Misuse(misuse)
    }
}

/// The values of a job, and what each rank has said.
#[derive(Debug)]
pub struct Server {
    space: String,
    values: HashMap<String, String>,
    ranks: Vec<Rank>,
    in_barrier: usize,
}

#[derive(Clone, Debug, Default)]
struct Rank {
    /// The bytes of a line that has not ended.
    unread: Vec<u8>,
    kept: usize,
    is_in_barrier: bool,
    has_initialized: bool,
    has_finalized: bool,
}

impl Server {
    /// Creates the server of a job with so many ranks. `space` is the name of its values, which no other job on this
    /// host has.
    pub fn new(space: String, procs: usize) -> Self {
        // MPI libraries read from this value which ranks share a host: here all of them do.
        let mapping = ("PMI_process_mapping".to_owned(), format!("(vector,(0,1,{procs}))"));
        Self { space, values: HashMap::from([mapping]), ranks: vec![Rank::default(); procs], in_barrier: 0 }
    }

    /// Takes bytes of a rank, and returns the answers to all lines that they complete.
    ///
    /// # Errors
    /// Returns a `Stop` if the rank aborts the job or does not keep the protocol. Serve none of the ranks afterwards.
    pub fn hear(&mut self, rank: usize, mut bytes: &[u8]) -> Result<Vec<Answer>, Stop> {
        let mut answers = Vec::new();
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.keep(rank, &bytes[..end])?;
            bytes = &bytes[end + 1..];
            let line = std::mem::take(&mut self.ranks[rank].unread);
            self.obey(rank, &String::from_utf8_lossy(&line), &mut answers)?;
        }
        self.keep(rank, bytes)?;
        Ok(answers)
    }

    fn keep(&mut self, rank: usize, bytes: &[u8]) -> Result<(), Misuse> {
        let unread = &mut self.ranks[rank].unread;
        if unread.len() + bytes.len() > LONGEST_LINE {
            return Err(Misuse::TooLong);
        }
        unread.extend_from_slice(bytes);
        Ok(())
    }

    fn obey(&mut self, rank: usize, line: &str, answers: &mut Vec<Answer>) -> Result<(), Stop> {
        if self.ranks[rank].has_finalized {
            return Err(Misuse::Finalized.into());
        }
        let procs = self.ranks.len();
        let line = match argument(line, "cmd") {
            Some("init") => {
                self.ranks[rank].has_initialized = true;
                "response_to_init pmi_version=1 pmi_subversion=1 rc=0".into()
            }
            Some("get_maxes") => {
                format!(
                    "maxes kvsname_max={SPACE_AT_MOST} keylen_max={KEY_AT_MOST} vallen_max={VALUE_AT_MOST} rc=0"
                )
            }
            Some("get_appnum") => "appnum appnum=0 rc=0".into(),
            Some("get_universe_size") => format!("universe_size size={procs} rc=0"),
            Some("get_my_kvsname") => format!("my_kvsname kvsname={} rc=0", self.space),
            Some("put") => self.put(rank, line)?,
            Some("get") => self.get(line),
            Some("barrier_in") => return Ok(self.enter(rank, answers)?),
            Some("finalize") => {
                self.ranks[rank].has_finalized = true;
                "finalize_ack rc=0".into()
            }
            Some("abort") => {
                let code = argument(line, "exitcode").and_then(|code| code.parse().ok());
                return Err(Stop::Abort(code.unwrap_or(1)));
            }
            _ => return Err(Misuse::Command(shown(line)).into()),
        };
        answers.push(Answer { to: rank, line: format!("cmd={line}\n") });
        Ok(())
    }

    fn put(&mut self, rank: usize, line: &str) -> Result<String, Misuse> {
        let [space, key, value] = ["kvsname", "key", "value"].map(|name| argument(line, name));
        let refused = |why| Ok(format!("put_result rc=-1 msg={why}"));
        let (Some(key), Some(value)) = (key, value) else { return refused("no_key_or_no_value") };
        if space != Some(&self.space) {
            return refused("no_such_kvsname");
        }
        if key.len() > KEY_AT_MOST || value.len() > VALUE_AT_MOST {
            return refused("key_or_value_too_long");
        }
        let kept = self.ranks[rank].kept + key.len() + value.len();
        match self.values.entry(key.to_owned()) {
            Entry::Occupied(_) => refused("duplicate_key"),
            Entry::Vacant(_) if kept > KEPT_AT_MOST => Err(Misuse::TooMuch),
            Entry::Vacant(place) => {
                place.insert(value.to_owned());
                self.ranks[rank].kept = kept;
                Ok("put_result rc=0 msg=success".into())
            }
        }
    }

    fn get(&self, line: &str) -> String {
        let key = argument(line, "key").filter(|_| argument(line, "kvsname") == Some(&self.space));
        match key.and_then(|key| self.values.get(key)) {
            Some(value) => format!("get_result rc=0 msg=success value={value}"),
            None => "get_result rc=-1 msg=key_not_found".into(),
        }
    }

    /// Lets a rank wait in the barrier, or all ranks out of it.
    fn enter(&mut self, rank: usize, answers: &mut Vec<Answer>) -> Result<(), Misuse> {
        if std::mem::replace(&mut self.ranks[rank].is_in_barrier, true) {
            return Err(Misuse::Barrier);
        }
        self.in_barrier += 1;
        if self.in_barrier == self.ranks.len() {
            self.in_barrier = 0;
            for (to, rank) in self.ranks.iter_mut().enumerate() {
                rank.is_in_barrier = false;
                answers.push(Answer { to, line: "cmd=barrier_out rc=0\n".into() });
            }
        }
        Ok(())
    }

    /// Returns a rank that waits in the barrier, if one does.
    pub fn waiting(&self) -> Option<usize> {
        self.ranks.iter().position(|rank| rank.is_in_barrier)
    }

    /// Reports whether a rank is in the barrier.
    pub fn is_in_barrier(&self, rank: usize) -> bool {
        self.ranks[rank].is_in_barrier
    }

    /// Reports whether a rank has begun its part in the job and not ended it.
    pub fn is_taking_part(&self, rank: usize) -> bool {
        self.ranks[rank].has_initialized && !self.ranks[rank].has_finalized
    }

    /// Reports whether a rank has said that it will send nothing more.
    pub fn has_finalized(&self, rank: usize) -> bool {
        self.ranks[rank].has_finalized
    }

    /// Returns the bytes that the server keeps for all ranks.
    pub fn kept(&self) -> usize {
        self.ranks.iter().map(|rank| rank.kept + rank.unread.len()).sum()
    }
}

/// Returns the beginning of a foreign line for an error.
fn shown(line: &str) -> String {
    let mut shown: String = line.chars().take(SHOWN_AT_MOST).flat_map(char::escape_debug).collect();
    if line.chars().nth(SHOWN_AT_MOST).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Returns the answers to a rank's bytes, as one text for each rank.
    fn heard(server: &mut Server, rank: usize, text: &str) -> Result<String, Stop> {
        let answers = server.hear(rank, text.as_bytes())?;
        Ok(answers.iter().map(|answer| format!("{}: {}", answer.to, answer.line)).collect())
    }

    fn server() -> Server {
        Server::new("space".into(), 2)
    }

    #[test]
    fn every_command_has_its_answer() {
        for (line, answer) in [
            (
                "cmd=init pmi_version=1 pmi_subversion=1",
                "response_to_init pmi_version=1 pmi_subversion=1 rc=0",
            ),
            ("cmd=get_maxes", "maxes kvsname_max=256 keylen_max=64 vallen_max=1024 rc=0"),
            ("cmd=get_appnum", "appnum appnum=0 rc=0"),
            ("cmd=get_universe_size", "universe_size size=2 rc=0"),
            ("cmd=get_my_kvsname", "my_kvsname kvsname=space rc=0"),
            ("cmd=put kvsname=space key=a value=b", "put_result rc=0 msg=success"),
            ("cmd=put kvsname=other key=a value=b", "put_result rc=-1 msg=no_such_kvsname"),
            ("cmd=put kvsname=space key=a", "put_result rc=-1 msg=no_key_or_no_value"),
            (
                "cmd=get kvsname=space key=PMI_process_mapping",
                "get_result rc=0 msg=success value=(vector,(0,1,2))",
            ),
            ("cmd=get kvsname=space key=a", "get_result rc=-1 msg=key_not_found"),
            ("cmd=get kvsname=other key=PMI_process_mapping", "get_result rc=-1 msg=key_not_found"),
            ("cmd=finalize", "finalize_ack rc=0"),
        ] {
            assert_eq!(heard(&mut server(), 1, &format!("{line}\n")), Ok(format!("1: cmd={answer}\n")));
        }
    }

    #[test]
    fn a_value_reaches_the_other_rank_once_and_lines_may_come_in_pieces() {
        let mut server = server();
        assert_eq!(heard(&mut server, 0, "cmd=put kvsname=space "), Ok(String::new()));
        let put = heard(&mut server, 0, "key=a value=b\ncmd=put kvsname=space key=a value=c\n").unwrap();
        assert_eq!(put, "0: cmd=put_result rc=0 msg=success\n0: cmd=put_result rc=-1 msg=duplicate_key\n");
        let got = heard(&mut server, 1, "cmd=get kvsname=space key=a\n").unwrap();
        assert_eq!(got, "1: cmd=get_result rc=0 msg=success value=b\n");
    }

    #[test]
    fn a_barrier_lets_out_all_at_once_and_again() {
        let mut server = server();
        for _ in 0..2 {
            assert_eq!(heard(&mut server, 1, "cmd=barrier_in\n"), Ok(String::new()));
            assert_eq!((server.waiting(), server.is_in_barrier(0)), (Some(1), false));
            let out = heard(&mut server, 0, "cmd=barrier_in\n").unwrap();
            assert_eq!(out, "0: cmd=barrier_out rc=0\n1: cmd=barrier_out rc=0\n");
            assert_eq!(server.waiting(), None);
        }
    }

    #[test]
    fn an_abort_and_every_misuse_stop() {
        let long = format!("cmd=put kvsname=space key=a value={}", "x".repeat(LONGEST_LINE));
        for (text, stop) in [
            ("cmd=abort exitcode=7\n", Stop::Abort(7)),
            ("cmd=abort\n", Stop::Abort(1)),
            ("\n", Misuse::Command(String::new()).into()),
            ("cmd=\n", Misuse::Command("cmd=".into()).into()),
            ("mcmd=spawn\n", Misuse::Command("mcmd=spawn".into()).into()),
            ("\u{1b}[31m\n", Misuse::Command("\\u{1b}[31m".into()).into()),
            (&long, Misuse::TooLong.into()),
            ("cmd=barrier_in\ncmd=barrier_in\n", Misuse::Barrier.into()),
            ("cmd=finalize\ncmd=get_appnum\n", Misuse::Finalized.into()),
        ] {
            assert_eq!(heard(&mut server(), 0, text), Err(stop), "{text:?}");
        }
        let nonsense = "é".repeat(200) + "\n";
        let Err(Stop::Misuse(Misuse::Command(shown))) = heard(&mut server(), 0, &nonsense) else {
            panic!("nonsense was obeyed")
        };
        assert_eq!(shown.chars().count(), SHOWN_AT_MOST + 1);
    }

    #[test]
    fn the_values_of_a_rank_are_bounded() {
        let (mut server, value) = (server(), "x".repeat(VALUE_AT_MOST));
        let end = (0..).find_map(|nth| {
            heard(&mut server, 0, &format!("cmd=put kvsname=space key={nth} value={value}\n")).err()
        });
        assert_eq!(end, Some(Misuse::TooMuch.into()));
        assert!(server.kept() <= KEPT_AT_MOST);
        assert!(heard(&mut server, 1, "cmd=put kvsname=space key=x value=y\n").unwrap().contains("rc=0"));
    }

    /// Pieces of commands.
    const WORDS: &[&str] = &[
        "cmd=",
        "put",
        "get",
        "barrier_in",
        "init",
        "finalize",
        " kvsname=space",
        " key=",
        " value=",
        "a",
        "\n",
    ];

    /// Returns bytes that a rank may send: pieces of commands and of anything else.
    fn said() -> impl Strategy<Value = Vec<u8>> {
        let word = prop::sample::select(WORDS).prop_map(|word| word.as_bytes().to_vec());
        prop_oneof![4 => word, 1 => vec(any::<u8>(), 0..40), 1 => (0..5000usize).prop_map(|len| vec![b'x'; len])]
    }

    proptest! {
        #[test]
        fn bytes_in_any_pieces_have_the_same_answers(
            said in vec((0..2usize, said()), 0..60),
            piece in 1..50usize,
        ) {
            let (mut whole, mut pieces) = (server(), server());
            for (rank, bytes) in said {
                let mut answers = Ok(Vec::new());
                for piece in bytes.chunks(piece) {
                    answers = answers.and_then(|mut before| {
                        before.extend(pieces.hear(rank, piece)?);
                        Ok(before)
                    });
                }
                let at_once = whole.hear(rank, &bytes);
                prop_assert_eq!(&at_once, &answers);
                prop_assert!(whole.kept() <= 2 * (KEPT_AT_MOST + LONGEST_LINE));
                if at_once.is_err() {
                    break;
                }
            }
        }
    }
}
