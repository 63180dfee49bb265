//! Checks that `libvipl.so` and `vipl.h` offer the 41 functions, under every version of C.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

const HEADER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/include/vipl.h");

/// Returns the words of a text that begin with `Vip`: the names of functions.
fn functions(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c| !is_part(c)).filter(|word| word.starts_with("Vip")).collect()
}

#[test]
fn the_library_exports_what_the_header_declares_and_nothing_else() {
    let library = std::env::current_exe().unwrap().with_file_name("libvipl.so");
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(&library).output().unwrap();
    let symbols = String::from_utf8(output.stdout).unwrap();
    let exported: BTreeSet<&str> =
        symbols.lines().filter_map(|line| line.split_whitespace().last()).collect();
    let header = fs::read_to_string(HEADER).unwrap();
    assert_eq!(exported, functions(&header), "{}", library.display());
    assert_eq!(exported.len(), 41);
}

#[test]
fn every_function_is_in_the_document() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/vipl.md");
    let document = fs::read_to_string(document).unwrap();
    let header = fs::read_to_string(HEADER).unwrap();
    let table: String = document.lines().filter(|line| line.starts_with("| `Vip")).collect();
    assert_eq!(functions(&table), functions(&header));
}

#[test]
fn the_header_is_taken_without_a_word_by_old_and_new_compilers() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("both.c");
    fs::write(
        &source,
        "#include <vipl.h>\n\
         int both(VIP_DESCRIPTOR *d);\n\
         int both(VIP_DESCRIPTOR *d)\n\
         {\n\
         \x20   d->CS.Status = 0;\n\
         \x20   d->Control.Length = 0;\n\
         \x20   d->DS[1].Local.Length = 1;\n\
         \x20   d->DS[0].Remote.Handle = 2;\n\
         \x20   d->Data[0].Data.Address = 0;\n\
         \x20   return (int) d->Data[1].Length;\n\
         }\n",
    )
    .unwrap();
    for (language, standards) in
        [("c", ["c90", "c99", "c11", "gnu17"]), ("c++", ["c++98", "c++11", "c++17", "gnu++17"])]
    {
        for standard in standards {
            let output = Command::new("cc")
                .args([
                    "-x",
                    language,
                    &format!("-std={standard}"),
                    "-pedantic",
                    "-Wall",
                    "-Wextra",
                    "-Werror",
                ])
                .arg(concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include"))
                .args(["-fsyntax-only".as_ref(), source.as_os_str()])
                .output()
                .unwrap();
            let complaint = String::from_utf8_lossy(&output.stderr);
            let has_no_compiler = complaint.contains("cc1plus");
            assert!(
                has_no_compiler || output.status.success() && complaint.is_empty(),
                "{standard}: {complaint}"
            );
        }
    }
}
