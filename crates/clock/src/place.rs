//! CPU placement: the processors that a process may use, pinning, and the distance of two processors.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;

/// The topological distance of two processors, from near to far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// The same processor.
    Same,
    /// Hardware threads of one core.
    SmtSibling,
    /// Cores that share a second-level cache.
    SharedL2,
    /// Cores that share a third-level cache.
    SharedL3,
    /// Cores of one socket without a common cache.
    SameSocket,
    /// Different sockets.
    OtherSocket,
    /// The system does not report the topology.
    Unknown,
}

impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Same => "same processor",
            Self::SmtSibling => "SMT sibling",
            Self::SharedL2 => "shared L2",
            Self::SharedL3 => "shared L3",
            Self::SameSocket => "same socket",
            Self::OtherSocket => "other socket",
            Self::Unknown => "unknown",
        })
    }
}

/// Returns the processors that this thread may use, in ascending order.
pub fn allowed() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Pins this thread, and the threads that it starts later, to `cpu`.
pub fn pin(cpu: usize) -> io::Result<()> {
    keep_to(&[cpu])
}

/// Restricts this thread, and the threads that it starts later, to `cpus`.
pub fn keep_to(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        set.set(cpu);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// Returns the topological distance of `a` and `b`.
pub fn distance(a: usize, b: usize) -> Distance {
    if a == b {
        return Distance::Same;
    }
    let shares = |file: &str| cpu_list(a, file).is_some_and(|cpus| cpus.contains(&b));
    if shares("topology/thread_siblings_list") {
        return Distance::SmtSibling;
    }
    for index in 0..8 {
        let level = read(a, &format!("cache/index{index}/level"));
        let kind = read(a, &format!("cache/index{index}/type"));
        if kind.as_deref() == Some("Instruction") || !shares(&format!("cache/index{index}/shared_cpu_list")) {
            continue;
        }
        match level.as_deref() {
            Some("1" | "2") => return Distance::SharedL2,
            Some("3" | "4") => return Distance::SharedL3,
            _ => {}
        }
    }
    match (read(a, "topology/physical_package_id"), read(b, "topology/physical_package_id")) {
        (Some(x), Some(y)) if x == y => Distance::SameSocket,
        (Some(_), Some(_)) => Distance::OtherSocket,
        _ => Distance::Unknown,
    }
}

/// Chooses two of `allowed` that are near each other without sharing a core. Returns the same processor twice
/// if there is no other.
pub fn choose_pair(allowed: &[usize]) -> Option<(usize, usize)> {
    let &first = allowed.first()?;
    let nearest = allowed.iter().copied().filter(|&cpu| cpu != first).min_by_key(|&cpu| {
        let distance = distance(first, cpu);
        (distance == Distance::SmtSibling, distance)
    });
    Some((first, nearest.unwrap_or(first)))
}

fn read(cpu: usize, file: &str) -> Option<String> {
    let path = PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}")).join(file);
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

fn cpu_list(cpu: usize, file: &str) -> Option<Vec<usize>> {
    parse_list(&read(cpu, file)?)
}

/// Parses a list of processors such as `0-2,5`.
pub fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last >= CpuSet::MAX_CPU {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_parse_strictly() {
        assert_eq!(parse_list("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        for bad in ["", "a", "2-1", "0,", "-1", "0-99999999"] {
            assert_eq!(parse_list(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_pair_is_two_processors_where_there_are_two() {
        assert_eq!(choose_pair(&[]), None);
        assert_eq!(choose_pair(&[3]), Some((3, 3)));
        let allowed = allowed().unwrap();
        let (a, b) = choose_pair(&allowed).unwrap();
        assert!(allowed.contains(&a) && allowed.contains(&b));
        assert_eq!(a == b, allowed.len() == 1);
    }
}
