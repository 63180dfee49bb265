//! The groups of ranks between which messages are dialled: `0-3,4-7` are two racks.

use std::fmt;
use std::str::FromStr;

/// Two groups of ranks. A message is dialled if it goes from one group to the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Between([Group; 2]);

/// Ranks, and hosts. A host stands for all its ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Group(Vec<Member>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Member {
    Ranks {
        first: u64,
        last: u64,
    },
    /// A host name. A short name also matches the host's full name.
    Host(String),
    /// A prefix of host names.
    Hosts(String),
}

/// A process, as the groups identify it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Who {
    /// Its rank, if the launcher passed it.
    pub rank: Option<u64>,
    /// The name of its host.
    pub host: String,
}

/// Why groups cannot be parsed, with examples of correct ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}, as in 0-3,4-7 or 0+2,1+3 or node1,node2 or rack1-*,rack2-*")]
pub struct BetweenError(String);

impl Between {
    /// Returns whether messages between two processes are dialled.
    pub fn dials(&self, one: &Who, other: &Who) -> bool {
        let [first, second] = &self.0;
        first.has(one) && second.has(other) || first.has(other) && second.has(one)
    }
}

impl Between {
    /// Returns the first rank in the groups that a program of `ranks` ranks does not have.
    pub fn rank_beyond(&self, ranks: u64) -> Option<u64> {
        let members = self.0.iter().flat_map(|group| &group.0);
        let beyond = members.filter_map(|member| match member {
            Member::Ranks { first, last } => (*last >= ranks).then_some(ranks.max(*first)),
            Member::Host(_) | Member::Hosts(_) => None,
        });
        beyond.min()
    }
}

impl Group {
    fn has(&self, who: &Who) -> bool {
        self.0.iter().any(|member| match member {
            Member::Ranks { first, last } => who.rank.is_some_and(|rank| (*first..=*last).contains(&rank)),
            Member::Host(name) => who.host == *name || who.host.split('.').next() == Some(name),
            Member::Hosts(beginning) => who.host.starts_with(beginning.as_str()),
        })
    }
}

impl FromStr for Between {
    type Err = BetweenError;

    fn from_str(text: &str) -> Result<Self, BetweenError> {
        match text.split(',').collect::<Vec<_>>().as_slice() {
            [one, other] => Ok(Self([one.parse()?, other.parse()?])),
            groups => Err(BetweenError(format!("'{text}' has {} groups of ranks and not two", groups.len()))),
        }
    }
}

impl FromStr for Group {
    type Err = BetweenError;

    fn from_str(text: &str) -> Result<Self, BetweenError> {
        text.split('+').map(|member| member.trim().parse()).collect::<Result<_, _>>().map(Self)
    }
}

impl FromStr for Member {
    type Err = BetweenError;

    fn from_str(text: &str) -> Result<Self, BetweenError> {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let rank = |text: &str| {
            text.parse().map_err(|_| BetweenError(format!("'{text}' is a larger rank than there can be")))
        };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        if is_number(first) && is_number(last) {
            let (first, last) = (rank(first)?, rank(last)?);
            if first > last {
                return Err(BetweenError(format!("'{text}' ends before it begins")));
            }
            return Ok(Self::Ranks { first, last });
        }
        let (name, is_open) = text.strip_suffix('*').map_or((text, false), |name| (name, true));
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
            && (is_open || name.bytes().any(|byte| byte.is_ascii_alphabetic()));
        match is_name && !text.is_empty() {
            true if is_open => Ok(Self::Hosts(name.to_owned())),
            true => Ok(Self::Host(name.to_owned())),
            false => Err(BetweenError(format!("'{text}' is neither a rank nor a host"))),
        }
    }
}

impl fmt::Display for Between {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, other] = &self.0;
        write!(f, "{one},{other}")
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, member) in self.0.iter().enumerate() {
            f.write_str(if nth == 0 { "" } else { "+" })?;
            match member {
                Member::Ranks { first, last } if first == last => write!(f, "{first}")?,
                Member::Ranks { first, last } => write!(f, "{first}-{last}")?,
                Member::Host(name) => f.write_str(name)?,
                Member::Hosts(beginning) => write!(f, "{beginning}*")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rank(rank: u64) -> Who {
        Who { rank: Some(rank), host: "node1.site".into() }
    }

    #[test]
    fn a_rank_that_a_program_does_not_have_is_found() {
        let beyond = |text: &str, ranks| text.parse::<Between>().unwrap().rank_beyond(ranks);
        assert_eq!(beyond("0,7", 2), Some(7));
        assert_eq!(beyond("0-3,4-7", 6), Some(6));
        assert_eq!(beyond("0-3,4-7", 8), None);
        assert_eq!(beyond("node1,node2", 2), None);
    }

    #[test]
    fn what_crosses_from_one_group_to_the_other_is_dialled() {
        let racks: Between = "0-3,4-6+9".parse().unwrap();
        let dialled: Vec<(u64, u64)> = (0..10)
            .flat_map(|a| (0..10).map(move |b| (a, b)))
            .filter(|&(a, b)| racks.dials(&rank(a), &rank(b)))
            .collect();
        assert_eq!(dialled.len(), 2 * 4 * 4);
        assert!(dialled.contains(&(3, 9)) && dialled.contains(&(9, 3)) && !dialled.contains(&(4, 9)));
        assert!((0..10).any(|other| racks.dials(&rank(4), &rank(other))));
        assert!((0..10).all(|other| !racks.dials(&rank(7), &rank(other))));
        let all: Between = "0-9,0-9".parse().unwrap();
        assert!(all.dials(&rank(1), &rank(2)));
    }

    #[test]
    fn hosts_stand_for_their_ranks() {
        let who = |host: &str| Who { rank: None, host: host.into() };
        let hosts: Between = "node1,rack-b*+2".parse().unwrap();
        assert!(hosts.dials(&who("node1.site"), &who("rack-b7")) && hosts.dials(&rank(2), &who("node1")));
        assert!(
            !hosts.dials(&who("node10"), &who("rack-b7")) && !hosts.dials(&who("node1"), &who("rack-c1"))
        );
    }

    #[test]
    fn each_mistake_is_named() {
        for (text, names) in [
            ("", "1 groups"),
            ("0-3", "1 groups"),
            ("0,1,2", "3 groups"),
            ("0,", "'' is neither"),
            ("3-0,4", "ends before"),
            ("0,a b", "'a b' is neither"),
            ("0,1-", "'1-' is neither"),
            ("0,1-2-3", "'1-2-3' is neither"),
            ("0,99999999999999999999", "larger rank"),
        ] {
            let message = text.parse::<Between>().unwrap_err().to_string();
            assert!(message.contains(names) && message.contains("as in 0-3,4-7"), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        #[cfg_attr(miri, ignore = "takes long")]
        fn what_is_read_is_written_again(text in "[0-9a-z*+,. -]{0,24}") {
            if let Ok(between) = text.parse::<Between>() {
                prop_assert_eq!(between.to_string().parse(), Ok(between));
            }
        }
    }
}
