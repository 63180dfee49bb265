//! The memory that this process may still use.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the bytes that are available without reclaim from other programs, if the system reports them: the fewest
/// of those of the machine and of the control groups of this process.
pub fn available_bytes() -> Option<usize> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let left = groups.lines().flat_map(|group| left_in_group(Path::new("/sys/fs/cgroup"), group));
    left.chain(available_on_machine()).min()
}

fn available_on_machine() -> Option<usize> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
}

/// Returns the bytes that are left in a group of this process and in those around it, by a line of
/// `/proc/self/cgroup`: number, controllers, path (cgroups(7)).
fn left_in_group(root: &Path, line: &str) -> Vec<usize> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
    let (root, [limit, usage]) = match controllers {
        "" => (root.to_owned(), ["memory.max", "memory.current"]),
        _ if controllers.split(',').any(|controller| controller == "memory") => {
            (root.join("memory"), ["memory.limit_in_bytes", "memory.usage_in_bytes"])
        }
        _ => return Vec::new(),
    };
    let own: PathBuf = root.join(path.trim_start_matches('/'));
    let around = own.ancestors().take_while(|folder| folder.starts_with(&root));
    around.filter_map(|folder| left_in(folder, limit, usage)).collect()
}

/// Returns the bytes that are left below a limit. The system takes back the contents of files that were not used lately.
fn left_in(folder: &Path, limit: &str, usage: &str) -> Option<usize> {
    // A group without a limit has the word `max`.
    let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<usize>().ok();
    let (limit, usage) = (number(limit)?, number(usage)?);
    let statistics = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let unused = statistics.lines().find_map(|line| line.strip_prefix("inactive_file ")?.parse().ok());
    Some(limit.saturating_sub(usage.saturating_sub(unused.unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "it reads files")]
    fn the_groups_of_both_versions_limit_the_memory() {
        let folder = std::env::temp_dir().join(format!("netdyno-memory-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("a/b/memory.max", "max\n");
        write("a/b/memory.current", "7\n");
        write("a/memory.max", "1000\n");
        write("a/memory.current", "300\n");
        write("a/memory.stat", "anon 1\ninactive_file 100\n");
        write("memory/c/memory.limit_in_bytes", "50\n");
        write("memory/c/memory.usage_in_bytes", "60\n");
        assert_eq!(left_in_group(&folder, "0::/a/b"), [800]);
        assert_eq!(left_in_group(&folder, "0::/../other"), []);
        assert_eq!(left_in_group(&folder, "4:cpu,memory:/c"), [0]);
        assert_eq!(left_in_group(&folder, "3:cpuset:/c"), []);
        assert_eq!(left_in_group(&folder, "nonsense"), []);
        fs::remove_dir_all(folder).unwrap();
        assert!(available_bytes().is_none_or(|bytes| bytes > 0));
    }
}
