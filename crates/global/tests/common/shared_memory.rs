//! The memory that a process shares with others.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The files that a process maps and shares: the inode and the path of each.
pub type Shared = BTreeSet<(String, String)>;

/// Returns the shared memory of a process (proc(5), `maps`).
pub fn of(process: u32) -> Shared {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let shared = maps.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let is_shared = words.nth(1)?.ends_with('s');
        let inode = words.nth(2)?;
        let path = words.collect::<Vec<_>>().join(" ");
        is_shared.then(|| (inode.to_owned(), path))
    });
    shared.collect()
}

/// Returns the paths of shared memory that are still there. Memory without a name has none.
pub fn files(shared: &Shared) -> Vec<&str> {
    shared.iter().map(|(_, path)| &**path).filter(|path| Path::new(path).exists()).collect()
}
