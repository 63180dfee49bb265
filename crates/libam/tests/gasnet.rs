//! The test programs for AM-2 of GASNet, which are not part of this repository, run unchanged over the library.

#![allow(clippy::unwrap_used, reason = "a test")]

mod library;

use library::{Ended, INCLUDE, Library};
use netdyno_job::launching::End;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder with GASNet's sources.
const FOLDER: &str = "NETDYNO_TEST_GASNET";

/// The programs, and their arguments: mostly a number of iterations.
const PROGRAMS: [(&str, &[&str]); 10] = [
    ("testam", &["50"]),
    ("testbounce", &["100"]),
    ("testbulk", &["100"]),
    ("testgetput", &["100"]),
    ("testlatency", &["100"]),
    ("testlatencyM", &["100"]),
    ("testoutput", &["20"]),
    ("testping", &["100"]),
    ("testreadwrite", &["100"]),
    ("testreduce", &[]),
];

/// Compiles a program as GASNet does. `names` are those of AMMPI or AMUDP.
fn compile(library: &Library, sources: &Path, name: &str, names: &str, into: &Path) -> PathBuf {
    let program = into.join(format!("{name}-{names}"));
    let mut command = Command::new("cc");
    command.args(["-w", "-O2", "-pthread", INCLUDE, &format!("-D{names}=1"), "-I"]).arg(sources);
    command.arg("-I").arg(sources.join(".."));
    command.args([sources.join(format!("{name}.c")), sources.join("apputils.c")]);
    command.arg("-o").arg(&program).arg("-L").arg(library.folder()).args(["-lam", "-lm"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    program
}

#[test]
fn the_programs_of_gasnet_run() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        // The message bypasses the capture of the test harness.
        let _ = writeln!(std::io::stderr(), "SKIPPED: {FOLDER} names no sources of GASNet");
        return;
    };
    let sources = Path::new(&folder).join("other/amx");
    let library = Library::built();
    let programs = tempfile::tempdir().unwrap();
    let (mut passed, mut refused) = (0, 0);
    for (name, arguments) in PROGRAMS {
        for names in ["AMMPI", "AMUDP"] {
            let program = compile(&library, &sources, name, names, programs.path());
            for wire in ["shm", "udp"] {
                for ranks in 1..=5 {
                    let Ended { end, output, errors, .. } =
                        library.run(&program, ranks, arguments, &[("NETDYNO_AM_WIRE", wire)]);
                    // Some programs need pairs of ranks, and say so.
                    if ranks % 2 == 1 && output.contains("requires an even ") {
                        refused += 1;
                        continue;
                    }
                    let what = format!("{name} of {names} with {ranks} ranks over {wire}");
                    let is_wrong = ["ERROR", "Error calling"].iter().any(|word| output.contains(word));
                    assert!(end == End::Done && !is_wrong, "{what}: {end}\n{output}{errors}");
                    passed += 1;
                }
            }
        }
    }
    let _ = writeln!(
        std::io::stderr(),
        "{passed} runs of GASNet's programs passed, {refused} need an even number of ranks"
    );
    assert!(passed > refused, "{passed} of {}", passed + refused);
}
