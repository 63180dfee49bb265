//! The library exports the entry that libfabric looks for, and nothing else.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::process::Command;

#[test]
fn the_library_exports_its_entry_and_nothing_else() {
    let library = std::env::current_exe().unwrap().with_file_name("libnetdyno_provider_fi.so");
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(&library).output().unwrap();
    let symbols = String::from_utf8(output.stdout).unwrap();
    let exported: Vec<&str> = symbols.lines().filter_map(|line| line.split_whitespace().last()).collect();
    assert_eq!(exported, ["fi_prov_ini"], "{}", library.display());
}
