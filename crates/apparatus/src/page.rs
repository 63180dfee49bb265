//! What the command asks of the hook: a file that every rank of a host maps.
//!
//! ```text
//! 0  "netdyno", 0    8  layout, u32           12  the turn in force, u32
//!                   16  furthest departure, u64    64  the plan, as text
//! ```
//!
//! The plan stands as long as the run; which of its turns is in force can be changed at any time by
//! writing one word, which all ranks see at their next message.

use crate::between::Between;
use crate::fault::InjectedFault;
use netdyno_protocol::dial::profile::Profile;
use netdyno_protocol::dial::setting::{Dial, Setting};
use netdyno_protocol::dial::terms::{Dials, Own};
use std::fmt::{self, Write as _};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::str::FromStr;

/// The variable that names the folder of a run.
pub const FOLDER: &str = "NETDYNO_APPARATUS";
/// The page in that folder.
pub const NAME: &str = "page";
/// Of page and accounts: changes whenever their form does.
pub const LAYOUT: u32 = 3;
/// How the file begins.
pub const MAGIC: [u8; 8] = *b"netdyno\0";
/// Where the turn in force stands.
pub const CURRENT: usize = 12;
/// A turn that does not exist: everything passes.
pub const NO_TURN: u32 = u32::MAX;
/// Where the furthest departure stands, in ticks of the host's clock.
pub const FURTHEST: usize = 16;
/// Where the text begins.
pub const TEXT: usize = 64;
/// The longest page.
pub const MOST_BYTES: usize = 1 << 20;

/// How departure times travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carrier {
    /// As stamps where all ranks share a host, and otherwise not at all.
    #[default]
    Auto,
    /// In the spare half of the data that completions bring.
    Stamp,
    /// Not at all: the time of arrival serves.
    Arrival,
}

impl Carrier {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Stamp, Self::Arrival];

    /// As it is spelled.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Stamp => "stamp",
            Self::Arrival => "arrival",
        }
    }
}

/// When a send ends that ends with its delivery because its endpoint says so of all operations. The
/// library that opened the endpoint may have chosen that for its one-sided operations alone, as MPICH
/// does, and nothing tells whether the program waits for the delivery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Completion {
    /// With its departure, as LogGP has it, and not before the undialled link ends it.
    #[default]
    Local,
    /// When the receiver's answer is back, a second latency after it is due there.
    Delivered,
}

impl Completion {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Local, Self::Delivered];

    /// Returns its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Delivered => "delivered",
        }
    }
}

/// Where a message waits for its departure behind the gap of the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GapAt {
    /// In the network interface, whose queue has no end: the sender goes on at once.
    #[default]
    Interface,
    /// At the sender, whose next send waits, as behind a full queue.
    Sender,
}

impl GapAt {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Interface, Self::Sender];

    /// Returns its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interface => "interface",
            Self::Sender => "sender",
        }
    }
}

/// Dials that are in force together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Turn {
    /// How they are turned.
    pub dials: Dials,
    /// What the link has of its own, as far as it was measured.
    pub own: Own,
    /// Messages of a process that may be on their way at once; 0 for as many as it likes.
    pub capacity: u32,
}

/// What a run is under.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// How departure times travel.
    pub carrier: Carrier,
    /// The turns, of which the first is in force at the start; none, and messages are counted only.
    pub turns: Vec<Turn>,
    /// What changes with time in every turn.
    pub profile: Option<Profile>,
    /// Of what varies by chance; each rank makes one of its own of it.
    pub seed: u64,
    /// How far ticks are shifted in stamps: all ranks must do the same.
    pub grain_shift: u32,
    /// Between which ranks dials are turned; without it, between all.
    pub between: Option<Between>,
    /// When sends end whose endpoint asks for delivery.
    pub completion: Completion,
    /// Where a message waits for the gap of the one before it.
    pub gap_at: GapAt,
    /// Where the hook is to panic, to see what happens then.
    pub fail_at: Option<InjectedFault>,
}

/// Why a page cannot be used. One line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PageError(pub(crate) String);

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "carrier {}", self.carrier.name())?;
        writeln!(f, "grain {}", self.grain_shift)?;
        writeln!(f, "completion {}", self.completion.name())?;
        writeln!(f, "gap-at {}", self.gap_at.name())?;
        if let Some(between) = &self.between {
            writeln!(f, "between {between}")?;
        }
        if let Some(fault) = self.fail_at {
            writeln!(f, "fail-at {fault}")?;
        }
        for Turn { dials, own, capacity } in &self.turns {
            writeln!(f, "turn {dials};{};{capacity}", spell_own(own))?;
        }
        writeln!(f, "seed {}", self.seed)?;
        let profile = self.profile.as_ref().map(Profile::to_string).unwrap_or_default();
        profile.lines().try_for_each(|line| writeln!(f, "profile {line}"))
    }
}

/// What a link has, spelled as dials that are set to it.
pub fn spell_own(own: &Own) -> Dials {
    Dial::ALL.into_iter().fold(Dials::NONE, |dials, dial| match own.get(dial) {
        Some(value) => dials.with(dial, Setting::Set(value.max(0.0))),
        None => dials,
    })
}

/// The parameters of a link, spelled as dials that are set to them: `latency=1.2us,send-gap=300ns`.
///
/// # Errors
/// What cannot be read, and what adds instead.
pub fn read_own(text: &str) -> Result<Own, PageError> {
    let dials: Dials = text.parse().map_err(|error| PageError(format!("{error}")))?;
    let mut own = Own::UNKNOWN;
    for dial in Dial::ALL {
        match (dials.get(dial), dials.spread(dial)) {
            (Some(_), Some(_)) => {
                return Err(PageError(format!("{dial}: write what the link has on average, without '±'")));
            }
            (Some(Setting::Set(value)), None) => own.note(dial, value),
            (Some(Setting::Add(_)), None) => {
                return Err(PageError(format!("{dial}: write what the link has with '='")));
            }
            (None, _) => {}
        }
    }
    Ok(own)
}

fn read_turn(text: &str) -> Result<Turn, PageError> {
    let mut parts = text.split(';');
    let mut part = || parts.next().ok_or_else(|| PageError(format!("turn '{text}' is cut short")));
    Ok(Turn {
        dials: part()?.parse().map_err(|error| PageError(format!("{error}")))?,
        own: read_own(part()?)?,
        capacity: part()?.parse().map_err(|_| PageError(format!("turn '{text}' has no capacity")))?,
    })
}

impl FromStr for Plan {
    type Err = PageError;

    fn from_str(text: &str) -> Result<Self, PageError> {
        let mut plan = Self::default();
        let mut profile = String::new();
        for line in text.lines() {
            let (key, value) = line.split_once(' ').unwrap_or((line, ""));
            let strange = || PageError(format!("the page says '{line}', which means nothing here"));
            match key {
                "carrier" => {
                    let named = Carrier::ALL.into_iter().find(|carrier| carrier.name() == value);
                    plan.carrier = named.ok_or_else(strange)?;
                }
                "completion" => {
                    let named = Completion::ALL.into_iter().find(|completion| completion.name() == value);
                    plan.completion = named.ok_or_else(strange)?;
                }
                "gap-at" => {
                    let named = GapAt::ALL.into_iter().find(|gap_at| gap_at.name() == value);
                    plan.gap_at = named.ok_or_else(strange)?;
                }
                "grain" => plan.grain_shift = value.parse().map_err(|_| strange())?,
                "between" => plan.between = Some(value.parse().map_err(|_| strange())?),
                "fail-at" => plan.fail_at = Some(value.parse().map_err(|_| strange())?),
                "turn" => plan.turns.push(read_turn(value)?),
                "seed" => plan.seed = value.parse().map_err(|_| strange())?,
                "profile" => profile.extend([value, "\n"]),
                _ => return Err(strange()),
            }
        }
        if !profile.is_empty() {
            plan.profile = Some(profile.parse().map_err(|error| PageError(format!("the profile: {error}")))?);
        }
        Ok(plan)
    }
}

impl Plan {
    /// Reads the plan of a page.
    ///
    /// # Errors
    /// What is no page, or one of another version of netdyno.
    pub fn read(page: &[u8]) -> Result<Self, PageError> {
        let text = page.get(TEXT..).filter(|_| page.starts_with(&MAGIC));
        let text = text.ok_or_else(|| PageError("the page is none of netdyno's".into()))?;
        let layout = u32::from_ne_bytes([page[8], page[9], page[10], page[11]]);
        if layout != LAYOUT {
            return Err(PageError(format!(
                "the page has layout {layout} and the hook {LAYOUT}: they are of different versions of netdyno"
            )));
        }
        let text = std::str::from_utf8(text).map_err(|_| PageError("the page is not text".into()))?;
        text.parse()
    }

    /// The page, with the first turn in force.
    fn page(&self) -> Vec<u8> {
        let mut page = vec![0; TEXT];
        page[..8].copy_from_slice(&MAGIC);
        page[8..12].copy_from_slice(&LAYOUT.to_ne_bytes());
        let mut text = String::new();
        let _ = write!(text, "{self}");
        page.extend_from_slice(text.as_bytes());
        page
    }
}

/// The page of a run, in the hand of whoever turns the dials.
#[derive(Debug)]
pub struct Page(File);

impl Page {
    /// Writes the page into the folder of a run.
    ///
    /// # Errors
    /// That of the file, and a plan that is too long.
    pub fn create(folder: &Path, plan: &Plan) -> io::Result<Self> {
        let page = plan.page();
        if page.len() > MOST_BYTES {
            return Err(io::Error::other("the plan has too many turns"));
        }
        let path = folder.join(NAME);
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        file.write_all_at(&page, 0)?;
        Ok(Self(file))
    }

    /// Opens the page of a run that has begun.
    ///
    /// # Errors
    /// That of the file.
    pub fn open(folder: &Path) -> io::Result<Self> {
        OpenOptions::new().read(true).write(true).open(folder.join(NAME)).map(Self)
    }

    /// Puts another turn in force: ranks see it at their next message. Where the hook of one has
    /// failed, none is put in force any more.
    ///
    /// # Errors
    /// That of the file.
    pub fn turn(&self, turn: u32) -> io::Result<()> {
        let mut current = [0; 4];
        self.0.read_exact_at(&mut current, CURRENT as u64)?;
        if u32::from_ne_bytes(current) == NO_TURN {
            return Ok(());
        }
        self.0.write_all_at(&turn.to_ne_bytes(), CURRENT as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_plan_is_read_as_it_was_written() {
        let mut own = Own::UNKNOWN;
        own.note(Dial::SendGap, 312.5);
        let turns = vec![
            Turn::default(),
            Turn { dials: "latency=20us±3us,gap-per-byte+0.5ns/B".parse().unwrap(), own, capacity: 4 },
        ];
        let between = Some("0-1,2+node7".parse().unwrap());
        let profile = "repeat 9us # again\nidle 1s\nat 0us recv-gap=5us\nat 9us recv-gap=0us".parse().ok();
        let seed = u64::MAX;
        let plan = Plan {
            carrier: Carrier::Arrival,
            turns,
            profile,
            seed,
            grain_shift: 5,
            between,
            completion: Completion::Delivered,
            gap_at: GapAt::Sender,
            fail_at: "after-queue:7".parse().ok(),
        };
        assert!(plan.profile.is_some() && plan.fail_at.is_some());
        assert_eq!(Plan::read(&plan.page()).unwrap(), plan);
        let steady = Plan { profile: None, ..plan };
        assert_eq!(Plan::read(&steady.page()).unwrap(), steady);
    }

    #[test]
    fn a_profile_that_is_none_is_named() {
        let error = "profile at 1us latency+1us".parse::<Plan>().unwrap_err().to_string();
        assert_eq!(error, "the profile: line 1: the first point is at 0us");
    }

    #[test]
    fn another_version_is_named() {
        let mut page = Plan::default().page();
        page[8] = 99;
        assert!(Plan::read(&page).unwrap_err().to_string().contains("different versions"));
        assert!(Plan::read(b"").is_err());
        assert!(read_own("latency+1us").is_err());
        assert!(read_own("latency=2us±1us").unwrap_err().to_string().contains("without '±'"));
    }

    #[test]
    #[cfg_attr(miri, ignore = "writes files")]
    fn one_word_changes_the_turn() {
        let folder = tempfile::tempdir().unwrap();
        let page = Page::create(folder.path(), &Plan::default()).unwrap();
        page.turn(3).unwrap();
        Page::open(folder.path()).unwrap().turn(5).unwrap();
        let bytes = std::fs::read(folder.path().join(NAME)).unwrap();
        assert_eq!(bytes[CURRENT..CURRENT + 4], 5u32.to_ne_bytes());
        assert!(Page::create(folder.path(), &Plan::default()).is_err(), "a page is not overwritten");
    }

    proptest! {
        #[test]
        #[cfg_attr(miri, ignore = "takes long")]
        fn no_page_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in "((turn|profile|seed) [ -~]{0,40}\n)?[ -~\n]{0,60}") {
            let _ = Plan::read(&bytes);
            let mut page = Plan::default().page();
            page.extend_from_slice(text.as_bytes());
            let _ = Plan::read(&page);
        }
    }
}
