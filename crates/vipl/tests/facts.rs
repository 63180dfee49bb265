//! A test for each statement about the interface that a program can check, over each wire. Each function
//! of `tests/programs/facts_*.c` tests one statement. docs/vipl.md has the table.

#![allow(clippy::unwrap_used, reason = "a test")]

mod library;

use library::{run, run_on};
use std::fs;
use std::path::Path;

#[test]
fn descriptors() {
    run("facts_descriptor", &[]);
}

#[test]
fn states_and_return_codes() {
    run("facts_states", &[]);
}

#[test]
fn asynchronous_errors() {
    run("facts_errors", &[]);
}

#[test]
fn reliability_levels() {
    run("facts_levels", &[]);
}

/// Over UDP a killed peer is only noticed after 30 s of silence, so the test runs over shared memory
/// alone.
#[test]
fn peers_that_are_killed() {
    for what in ["send", "write", "read"] {
        run_on(&["shm"], "facts_killed", &[what]);
    }
}

fn texts(folder: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
    files.filter(|file| file.is_file()).map(|file| fs::read_to_string(file).unwrap()).collect()
}

/// Returns the function names among the words in backquotes.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let is_name =
        |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    text.split('`').skip(1).step_by(2).filter(is_name)
}

#[test]
fn the_document_names_every_test_of_a_statement_and_no_other() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/vipl.md");
    let document = fs::read_to_string(document).unwrap();
    let (_, table) = document.split_once("## Statements").unwrap();
    let all =
        ["tests/programs", "tests", "src", "src/nic", "../protocol/tests/vi/conformance"].map(texts).concat();
    for name in table.lines().filter(|line| line.starts_with("| ")).flat_map(names) {
        assert!(all.contains(&format!("{name}(")), "there is no {name}");
    }
    let facts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    for file in ["descriptor", "states", "errors", "levels"] {
        let text = fs::read_to_string(facts.join(format!("facts_{file}.c"))).unwrap();
        let (_, main) = text.split_once("int main(").unwrap();
        let called = main.lines().filter_map(|line| line.trim().strip_suffix(");"));
        let called = called.map(|call| call.rsplit('(').find(|name| !name.is_empty()).unwrap_or(call));
        let is_test = |name: &&str| text.contains(&format!("static void {name}(void)"));
        for name in called.filter(is_test) {
            assert!(table.contains(&format!("`{name}`")), "{name} is not in the document");
        }
    }
}
