//! Checks that `libam.so` exports what its headers declare, that docs/am2.md has every function, and that all compilers
//! take the headers.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

const HEADERS: [&str; 9] = [
    "am2_const.h",
    "am2.h",
    "am2_spmd.h",
    "ammpi.h",
    "ammpi_spmd.h",
    "amudp_const.h",
    "amudp.h",
    "amudp_spmd.h",
    "am.h",
];

fn header(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("include").join(name)).unwrap()
}

/// Returns the names that the headers declare `extern`.
fn declared() -> BTreeSet<String> {
    let texts = HEADERS.map(header).join("\n");
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let declarations =
        texts.split('\n').filter_map(|line| line.strip_prefix("extern ")).filter(|line| !line.contains('"'));
    declarations
        .map(|line| {
            // The name stands before the parameters, or in the brackets of a pointer to a function.
            let words: Vec<&str> = line.split(|c| !is_part(c)).collect();
            (*words.iter().find(|word| word.starts_with("AM") || word.starts_with("am_")).unwrap()).to_owned()
        })
        .filter(|name| !name.ends_with("_t"))
        .collect()
}

#[test]
fn the_library_exports_what_the_headers_declare_and_nothing_else() {
    let library = std::env::current_exe().unwrap().with_file_name("libam.so");
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(&library).output().unwrap();
    let symbols = String::from_utf8(output.stdout).unwrap();
    let exported: BTreeSet<String> =
        symbols.lines().filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect();
    assert_eq!(exported, declared(), "{}", library.display());
    assert!(exported.len() > 60, "{}", exported.len());
}

#[test]
fn every_function_is_in_the_document() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/am2.md");
    let document = fs::read_to_string(document).unwrap();
    for name in declared() {
        // What the headers use inside of macros and inline functions is described by the name that programs use.
        let shown = match &name[..] {
            "AMX_SendRequest" => "AM_RequestM",
            "AMX_SendShortRequest" => "AM_RequestM",
            "AMX_SendReply" | "AMX_SendShortReply" => "AM_ReplyM",
            "AMX_Fail" => "AMX_FatalErr",
            "AMX_Map" => "AM_Map",
            "AMX_MapAny" => "AM_MapAny",
            "AMX_SetHandler" => "AM_SetHandler",
            "AMX_SetHandlerAny" => "AM_SetHandlerAny",
            "am_request_words" => "am_request_M",
            "am_reply_words" => "am_reply_M",
            "AMMPI_SPMDStartup" | "AMUDP_SPMDStartup" => "SPMDStartup",
            name => name,
        };
        assert!(document.contains(shown), "docs/am2.md does not have {shown}");
    }
}

#[test]
fn all_compilers_take_the_headers_without_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("all.c");
    let (mpi, udp) = ("#include <ammpi_spmd.h>\n", "#include <amudp_spmd.h>\n");
    // Programs for later versions of AMUDP have functions with another type.
    let own = [udp, "int f(int n, int c, char **v);\namudp_spawnfn_t g = f;\n"].concat();
    let later = "#define AMUDP_SPAWN_EXTRA_ENV\n";
    let later = [later, udp, "int f(int n, int c, char **v, char **e);\namudp_spawnfn_t g = f;\n"].concat();
    let both = [[mpi, udp].concat(), [udp, mpi].concat()];
    for headers in [mpi, udp, &both[0], &both[1], "#include <am.h>\n", &own, &later] {
        fs::write(&source, format!("{headers}int main(void) {{ return 0; }}\n")).unwrap();
        for (language, standards) in
            [("c", ["c90", "c99", "c11", "gnu17"]), ("c++", ["c++98", "c++11", "c++17", "gnu++17"])]
        {
            for standard in standards {
                let output = Command::new("cc")
                    .args(["-x", language, &format!("-std={standard}"), "-Wall", "-Wextra", "-Werror"])
                    .arg(concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include"))
                    .args(["-fsyntax-only".as_ref(), source.as_os_str()])
                    .output()
                    .unwrap();
                let complaint = String::from_utf8_lossy(&output.stderr);
                let has_no_compiler = complaint.contains("cc1plus");
                assert!(
                    has_no_compiler || output.status.success() && complaint.is_empty(),
                    "{headers} {standard}: {complaint}"
                );
            }
        }
    }
}
