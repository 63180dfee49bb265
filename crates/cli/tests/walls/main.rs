//! The dependency rules of the workspace, as ARCHITECTURE.md defines them.

#![allow(clippy::unwrap_used, reason = "a test")]

mod circles;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const ALLOWED: &[(&str, &[&str])] = &[
    ("protocol", &[]),
    ("clock", &[]),
    ("measure", &[]),
    ("plugin", &[]),
    ("host", &["protocol", "clock"]),
    ("stack", &["protocol", "clock", "host"]),
    ("job", &["host", "clock"]),
    ("layers", &["stack", "host", "clock", "protocol", "measure", "plugin", "global"]),
    ("report", &["measure"]),
    ("libfabric", &[]),
    ("apparatus", &["protocol", "clock", "libfabric"]),
    ("provider", &["stack", "host", "libfabric"]),
    ("vipl", &["stack", "host"]),
    ("global", &["protocol", "host", "stack", "job"]),
    ("libam", &["host", "stack", "job"]),
    (
        "netdyno",
        &["protocol", "clock", "host", "stack", "job", "measure", "plugin", "layers", "report", "apparatus"],
    ),
];

/// Crates with `unsafe`; all others forbid it.
const UNSAFE: &[&str] = &["clock", "host", "stack", "plugin", "apparatus", "provider", "vipl", "libam"];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn cargo(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(args).current_dir(crates()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the normal dependencies of each crate on other crates of the workspace.
fn edges() -> BTreeMap<String, BTreeSet<String>> {
    let metadata: serde_json::Value =
        serde_json::from_str(&cargo(&["metadata", "--format-version", "1", "--no-deps"])).unwrap();
    let room = |name: &str| name.strip_prefix("netdyno-").unwrap_or(name).to_owned();
    let mut edges = BTreeMap::new();
    for package in metadata["packages"].as_array().unwrap() {
        let known = package["dependencies"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|dependency| dependency["kind"].is_null());
        let known = known
            .filter_map(|dependency| dependency["name"].as_str())
            .filter(|name| name.starts_with("netdyno"));
        edges.insert(room(package["name"].as_str().unwrap()), known.map(room).collect());
    }
    edges
}

#[test]
fn rooms_know_only_whom_they_may() {
    let edges = edges();
    let rooms: BTreeSet<&str> = ALLOWED.iter().map(|(room, _)| *room).collect();
    assert_eq!(
        edges.keys().map(String::as_str).collect::<BTreeSet<_>>(),
        rooms,
        "a room is missing in the list"
    );
    for (room, allowed) in ALLOWED {
        for known in &edges[*room] {
            assert!(allowed.contains(&known.as_str()), "{room} may not know {known}");
        }
    }
}

#[test]
fn the_protocol_depends_on_libm_alone_and_has_no_std() {
    let tree = cargo(&["tree", "-p", "netdyno-protocol", "--edges", "normal", "--prefix", "none"]);
    let names: Vec<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["netdyno-protocol", "libm"], "{tree}");
    let lib = fs::read_to_string(crates().join("protocol/src/lib.rs")).unwrap();
    assert!(lib.contains("#![no_std]") && !lib.contains("extern crate std"));
}

#[test]
fn unsafe_lives_where_it_may() {
    for (room, _) in ALLOWED {
        let folder = if *room == "netdyno" { "cli" } else { room };
        let root = if *room == "netdyno" { "main.rs" } else { "lib.rs" };
        let text = fs::read_to_string(crates().join(folder).join("src").join(root)).unwrap();
        assert_ne!(text.contains("#![forbid(unsafe_code)]"), UNSAFE.contains(room), "{room}");
    }
}

/// Permitted beginnings of the body of a function that C calls: a guard against panics, a constant, or the
/// store of one system call's result. The entry `crate::fake_calls::called` belongs to a fake provider.
const GUARDS: &[&str] = &[
    "answer(",
    "answer_with(",
    "answer_gam(",
    "answer_shortly(",
    "quietly(",
    "crate::guard::quietly(",
    "guard::enter_first(",
    "FAILED }",
    "WAS_CLOSED.store(",
    "PROVIDER.0.get()",
    "crate::fake_calls::called(",
];

/// A panic that leaves an `extern "C"` function aborts the program that has loaded the library. The hook
/// declares its functions with the macro `guard::entries`, whose function has no name to be found here.
#[test]
fn no_function_that_c_calls_is_left_by_a_panic() {
    let mut found = 0;
    for file in sources(&crates()) {
        let text = fs::read_to_string(&file).unwrap();
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        for (_, function) in
            text.match_indices("extern \"C\" fn ").map(|(at, start)| text[at..].split_at(start.len()))
        {
            // Without a name the match is the type of a parameter, not a function.
            let name: String = function.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if name.is_empty() {
                continue;
            }
            let body = body(function);
            assert!(
                GUARDS.iter().any(|guard| body.starts_with(guard)),
                "{}: {name} begins with '{}' and not with a guard",
                file.display(),
                body.chars().take(40).collect::<String>(),
            );
            found += 1;
        }
    }
    assert!(found > 40, "{found}");
}

/// Returns the sources of all crates, without their tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_apart = |path: &Path| {
        path.ends_with("tests") || path.ends_with("benches") || path.ends_with("apparatus/src/fakes.rs")
    };
    entries
        .filter(|path| !is_apart(path))
        .flat_map(|path| match path.is_dir() {
            true => sources(&path),
            false => vec![path].into_iter().filter(|path| path.extension() == Some("rs".as_ref())).collect(),
        })
        .collect()
}

/// Returns the body of a function without comments, with its words separated by single blanks.
fn body(function: &str) -> String {
    let body = function.split_once('{').map_or("", |(_, body)| body);
    let lines = body.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}
