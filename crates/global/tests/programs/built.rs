//! The examples that were built beside a test or benchmark.

use std::path::{Path, PathBuf};

/// Returns the built example. `cargo test` with a test's name does not build it.
pub fn example(name: &str) -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let file = here.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    // Cargo lists the sources of an example beside it.
    let sources = std::fs::read_to_string(file.with_extension("d")).unwrap_or_default();
    let changed = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
    let last_change = sources.split_whitespace().skip(1).filter_map(|source| changed(source.as_ref())).max();
    let is_new = last_change.is_some_and(|change| changed(&file).is_some_and(|built| built >= change));
    let profile = if cfg!(debug_assertions) { "" } else { " --release" };
    assert!(
        is_new,
        "{} is old or missing: cargo build{profile} -p netdyno-global --examples",
        file.display()
    );
    file
}
