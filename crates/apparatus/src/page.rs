//! The control block: a file by which the command controls the hooks, mapped by every rank of a host.
//!
//! ```text
//! 0  "netdyno", 0    8  layout, u32           12  number of the dial setting in force, u32
//!                   16  upper bound on departures, u64    64  the plan, as text
//! ```
//!
//! The plan does not change during the run. The number of the dial setting in force can change at any
//! time by the write of one word. Each rank reads it at its next message.

use crate::between::Between;
use crate::fault::InjectedFault;
use netdyno_protocol::dial::parameters::{Dials, Own};
use netdyno_protocol::dial::profile::Profile;
use netdyno_protocol::dial::setting::Setting;
use netdyno_protocol::dial::table::Dial;
use std::fmt::{self, Write as _};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::str::FromStr;

/// The environment variable that names the folder of a run.
pub const FOLDER: &str = "NETDYNO_APPARATUS";
/// The name of the control block's file in that folder.
pub const NAME: &str = "page";
/// The layout version of control block and statistics. It changes whenever either format does.
pub const LAYOUT: u32 = 4;
/// The first bytes of the file.
pub const MAGIC: [u8; 8] = *b"netdyno\0";
/// The offset of the number of the setting in force.
pub const CURRENT: usize = 12;
/// The number of no setting: nothing is dialled.
pub const NO_SETTING: u32 = u32::MAX;
/// The offset of the upper bound on departures, in ticks of the host's clock.
pub const FURTHEST: usize = 16;
/// The offset of the plan's text.
pub const TEXT: usize = 64;
/// The maximum length of the file.
pub const MOST_BYTES: usize = 1 << 20;

/// How departure times reach the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carrier {
    /// As stamps where all ranks share a host, and otherwise not at all.
    #[default]
    Auto,
    /// As stamps in the upper half of the completion data (`FI_REMOTE_CQ_DATA`).
    Stamp,
    /// Not at all: the receiver uses the time of arrival.
    Arrival,
}

impl Carrier {
    /// All variants.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Stamp, Self::Arrival];

    /// Returns its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Stamp => "stamp",
            Self::Arrival => "arrival",
        }
    }
}

/// When a send completes whose endpoint has `FI_DELIVERY_COMPLETE` as a default flag. The MPI library may
/// have set the flag for its one-sided operations alone, as MPICH does. The hook cannot tell whether the
/// program waits for the delivery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Completion {
    /// At its departure, as in LogGP, and not before the undialled link completes it.
    #[default]
    Local,
    /// When the acknowledgement is back, one latency after the message is due at the receiver.
    Delivered,
}

impl Completion {
    /// All variants.
    pub const ALL: [Self; 2] = [Self::Local, Self::Delivered];

    /// Returns its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Delivered => "delivered",
        }
    }
}

/// Where a message waits for the gap of the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GapAt {
    /// In the network interface, which has an unbounded queue: the send returns at once.
    #[default]
    Interface,
    /// At the sender: the next send waits, as behind a full queue.
    Sender,
}

impl GapAt {
    /// All variants.
    pub const ALL: [Self; 2] = [Self::Interface, Self::Sender];

    /// Returns its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interface => "interface",
            Self::Sender => "sender",
        }
    }
}

/// A dial setting: the values of all dials that are in force together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DialSetting {
    /// The values of the dials.
    pub dials: Dials,
    /// The parameters of the undialled link, as far as they were measured.
    pub own: Own,
    /// The maximum number of messages of a process in flight; 0 for no limit.
    pub capacity: u32,
}

/// The parameters of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// How departure times reach the receiver.
    pub carrier: Carrier,
    /// The dial settings; the first one is in force at the start. Without any, the hook only counts
    /// messages.
    pub settings: Vec<DialSetting>,
    /// The time profile, which applies to every setting.
    pub profile: Option<Profile>,
    /// The seed of the random spread. Each rank derives a seed of its own from it.
    pub seed: u64,
    /// The bits by which stamps shift ticks right. All ranks must use the same value.
    pub grain_shift: u32,
    /// The groups of ranks between which messages are dialled; `None` for all ranks.
    pub between: Option<Between>,
    /// When sends of endpoints with `FI_DELIVERY_COMPLETE` complete.
    pub completion: Completion,
    /// Where a message waits for the gap of the one before it.
    pub gap_at: GapAt,
    /// An injected panic of the hook.
    pub fail_at: Option<InjectedFault>,
}

/// Why a control block cannot be used, in one line.
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
        for DialSetting { dials, own, capacity } in &self.settings {
            writeln!(f, "turn {dials};{};{capacity}", spell_own(own))?;
        }
        writeln!(f, "seed {}", self.seed)?;
        let profile = self.profile.as_ref().map(Profile::to_string).unwrap_or_default();
        profile.lines().try_for_each(|line| writeln!(f, "profile {line}"))
    }
}

/// Returns the parameters of a link, written as dials that are set to them.
pub fn spell_own(own: &Own) -> Dials {
    Dial::ALL.into_iter().fold(Dials::NONE, |dials, dial| match own.get(dial) {
        Some(value) => dials.with(dial, Setting::Set(value.max(0.0))),
        None => dials,
    })
}

/// Reads the parameters of a link, written as dials that are set to them: `latency=1.2us,send-gap=300ns`.
///
/// # Errors
/// Returns `PageError` if the text cannot be parsed, or if a value has a spread or is added with `+`.
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

fn read_setting(text: &str) -> Result<DialSetting, PageError> {
    let mut parts = text.split(';');
    let mut part = || parts.next().ok_or_else(|| PageError(format!("turn '{text}' is cut short")));
    Ok(DialSetting {
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
                "turn" => plan.settings.push(read_setting(value)?),
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
    /// Reads the plan of a control block.
    ///
    /// # Errors
    /// Returns `PageError` if `page` is not a control block or is of another version of netdyno.
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

    /// Returns the bytes of the control block, with the first setting in force.
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

/// The control block of a run, as the command uses it.
#[derive(Debug)]
pub struct Page(File);

impl Page {
    /// Writes the control block into the folder of a run.
    ///
    /// # Errors
    /// Returns the error of the file, or an error if the plan is too long.
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

    /// Opens the control block of a run that has begun.
    ///
    /// # Errors
    /// Returns the error of the file.
    pub fn open(folder: &Path) -> io::Result<Self> {
        OpenOptions::new().read(true).write(true).open(folder.join(NAME)).map(Self)
    }

    /// Puts the dial setting of that number in force. Each rank applies it from its next message on. If
    /// the hook of a rank has failed, the call has no effect.
    ///
    /// # Errors
    /// Returns the error of the file.
    pub fn select(&self, setting: u32) -> io::Result<()> {
        let mut current = [0; 4];
        self.0.read_exact_at(&mut current, CURRENT as u64)?;
        if u32::from_ne_bytes(current) == NO_SETTING {
            return Ok(());
        }
        self.0.write_all_at(&setting.to_ne_bytes(), CURRENT as u64)
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
        let dials = "latency=20us±3us,gap-per-byte+0.5ns/B".parse().unwrap();
        let settings = vec![DialSetting::default(), DialSetting { dials, own, capacity: 4 }];
        let between = Some("0-1,2+node7".parse().unwrap());
        let profile = "repeat 9us # again\nidle 1s\nat 0us recv-gap=5us\nat 9us recv-gap=0us".parse().ok();
        let seed = u64::MAX;
        let plan = Plan {
            carrier: Carrier::Arrival,
            settings,
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
    fn one_word_changes_the_setting() {
        let folder = tempfile::tempdir().unwrap();
        let page = Page::create(folder.path(), &Plan::default()).unwrap();
        page.select(3).unwrap();
        Page::open(folder.path()).unwrap().select(5).unwrap();
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
