//! Layers in C: built, measured, refused.

use crate::common::{beside, netdyno};
use netdyno_measure::record::Record;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Returns a command that keeps its built plugins in `folder`.
fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = netdyno(args);
    command.env("XDG_CACHE_HOME", folder);
    for variable in ["NETDYNO_PLUGIN", "NETDYNO_PLUGIN_MPI", "NETDYNO_PLUGIN_SETTINGS", "NETDYNO_MPICC"] {
        command.env_remove(variable);
    }
    command
}

fn stdout_of(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Asserts bad input: one line that contains `why`, exit code 2, nothing on standard output.
fn refused(command: &mut Command, why: &str) {
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(output.stdout.is_empty() && stderr.lines().count() == 1 && stderr.contains(why), "{stderr}");
}

fn skeleton(folder: &Path) -> String {
    let built = command(folder, &["plugin", "build", "skeleton"]).output().unwrap();
    stdout_of(&built).trim_end().to_owned()
}

#[test]
fn a_layer_of_ones_own_is_built_and_measured_by_every_verb() {
    let _beside = beside();
    for (source, procs) in [("skeleton", "2"), ("requests", "3")] {
        let folder = tempfile::tempdir().unwrap();
        // The source comes from the command, because a user may have nothing else.
        let mine = folder.path().join("mine.c");
        let shown = command(folder.path(), &["plugin", "show", source]).output().unwrap();
        fs::write(&mine, stdout_of(&shown)).unwrap();
        let built = command(folder.path(), &["plugin", "build", mine.to_str().unwrap()]).output().unwrap();
        let built = stdout_of(&built).trim_end().to_owned();
        assert!(built.starts_with(folder.path().to_str().unwrap()) && built.ends_with(".so"), "{built}");
        for verb in [&["logp"][..], &["bulk", "--largest", "4KiB"], &["contention", "--procs", procs]] {
            let rest = ["--over", "plugin", "--wait", "yield", "--launches", "1", "--max-time", "300ms"];
            let args = [verb, &rest, &["--format", "json"]].concat();
            let output = command(folder.path(), &args).env("NETDYNO_PLUGIN", &built).output().unwrap();
            let record = Record::from_json(&stdout_of(&output)).unwrap();
            assert_eq!((&record.results[0].layer[..], record.results[0].verb()), ("plugin", verb[0]));
            assert!(record.results[0].parameters.rtt.value_ns.unwrap() > 0.0, "{source}");
        }
    }
}

#[test]
fn what_is_built_is_listed_and_what_is_missing_says_how_to_get_it() {
    let _beside = beside();
    let folder = tempfile::tempdir().unwrap();
    let layers = command(folder.path(), &["layers"]).env("PATH", "/nowhere").output().unwrap();
    let layers = stdout_of(&layers);
    assert!(
        layers.contains("\nmpi ") && layers.contains("not available here: no mpicc: pip install mpich"),
        "{layers}"
    );
    let built = skeleton(folder.path());
    let layers = command(folder.path(), &["layers"]).env("NETDYNO_PLUGIN", built).output().unwrap();
    assert!(!stdout_of(&layers).contains("NETDYNO_PLUGIN names no"));
}

#[test]
fn bad_input_is_told_in_one_line() {
    let _beside = beside();
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.so");
    fs::write(&text, "no library\n").unwrap();
    let on = |args: &[&str]| command(folder.path(), args);
    refused(
        &mut on(&["plugin", "build", "grpc"]),
        "there is no layer 'grpc' to build: use mpi, ofi, ucx, skel",
    );
    refused(&mut on(&["plugin", "build", "no.c"]), "cannot read no.c");
    refused(
        &mut on(&["plugin", "build", "mpi", "--cc", "/no/mpicc"]),
        "there is no compiler /no/mpicc: pip install",
    );
    refused(on(&["plugin", "build", "mpi"]).env("PATH", "/nowhere"), "no mpicc: pip install mpich");
    refused(on(&["plugin", "build", "skeleton"]).env("CC", "/bin/false"), "/bin/false failed");
    refused(&mut on(&["logp", "--over", "plugin"]), "NETDYNO_PLUGIN names no built layer");
    let over = ["logp", "--over", "plugin"];
    refused(on(&over).env("NETDYNO_PLUGIN", &text), "text.so cannot be loaded");
    refused(&mut on(&["logp", "--over", "mpi"]), "mpi needs the launcher of its library: --launcher");
    let over = ["logp", "--over", "mpi", "--launcher", "mpiexec -n {n}"];
    refused(on(&over).env("PATH", "/nowhere"), "no mpicc: pip install mpich");
    refused(on(&over).env("NETDYNO_PLUGIN_MPI", &text), "text.so cannot be loaded");
}

#[test]
fn a_setting_that_a_layer_does_not_know_is_bad_input() {
    let _beside = beside();
    let folder = tempfile::tempdir().unwrap();
    let built = skeleton(folder.path());
    let output = command(folder.path(), &["logp", "--over", "plugin"])
        .envs([("NETDYNO_PLUGIN", &built[..]), ("NETDYNO_PLUGIN_SETTINGS", "speed=high")])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.lines().count() == 1 && stderr.contains("skeleton has no settings"), "{stderr}");
}
