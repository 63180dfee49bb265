//! Layers with mistakes are refused before any of their functions is called, with an error of one line.

#![allow(clippy::unwrap_used, reason = "a test")]

use netdyno_plugin::plugin::Plugin;
use netdyno_plugin::site::{build_in, find_compiler};
use netdyno_plugin::source::Source;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A layer that is complete except for the initialisers in `{}`. Its functions are never called.
const STUB: &str = r#"
#include "layer.h"
#include <stdlib.h>
static struct netdyno_channel *open_(struct netdyno_options *o) { (void)o; abort(); }
static void describe(struct netdyno_channel *c, char *t, size_t r) { (void)c; (void)t; (void)r; abort(); }
static int receive(struct netdyno_channel *c, uint32_t s, int32_t r, void *b, size_t n)
{ (void)c; (void)s; (void)r; (void)b; (void)n; abort(); }
static int send_(struct netdyno_channel *c, uint32_t s, int32_t r, const void *b, size_t n)
{ (void)c; (void)s; (void)r; (void)b; (void)n; abort(); }
static int test(struct netdyno_channel *c, uint32_t s, struct netdyno_arrival *a)
{ (void)c; (void)s; (void)a; abort(); }
static int of_slot(struct netdyno_channel *c, uint32_t s) { (void)c; (void)s; abort(); }
static int close_(struct netdyno_channel *c) { (void)c; abort(); }
const struct netdyno_layer netdyno_layer = {
    .version = NETDYNO_LAYER_VERSION, .size = sizeof netdyno_layer, .name = "stub",
    .capabilities = NETDYNO_HAS_LAUNCHER, .open = open_, .describe = describe,
    .post_receive = receive, .post_send = send_, .test_receive = test, .test_send = of_slot,
    .cancel_receive = of_slot, .close = close_,
    {}
};
"#;

fn compiler() -> PathBuf {
    find_compiler(&Source::skeleton(), None).expect("a C compiler is needed")
}

/// Writes the source to a file.
fn source(folder: &TempDir, name: &str, text: &str) -> Source {
    let file = folder.path().join(name);
    fs::write(&file, text).unwrap();
    Source::named(file.to_str().unwrap()).unwrap()
}

/// Returns the error of loading a file.
fn refusal(path: &Path) -> String {
    let error = Plugin::load(path).err().unwrap().to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

#[test]
fn what_does_not_fit_is_refused() {
    let folder = TempDir::new().unwrap();
    for (rest, why) in [
        (".version = 2", "is of version 2 of the interface, this netdyno of version 1: build it again"),
        (".size = 16", "is too small for version 1"),
        (".test_send = NULL", "lacks the function test_send"),
        (".capabilities = 0", "lacks the function address"),
        (".capabilities = NETDYNO_HAS_LAUNCHER | NETDYNO_BLOCKS", "lacks the function block"),
        (".capabilities = NETDYNO_HAS_LAUNCHER | NETDYNO_GATHERS", "lacks the function gather"),
        (".capabilities = NETDYNO_HAS_LAUNCHER | NETDYNO_REGISTERS", "lacks the function register_memory"),
        (".capabilities = NETDYNO_HAS_LAUNCHER | NETDYNO_ONE_SIDED", "lacks the function key"),
        (
            ".capabilities = NETDYNO_HAS_LAUNCHER | NETDYNO_ONE_SIDED, .key = (void *)1, \
             .put = (void *)1, .get = (void *)1, .flush = (void *)1",
            "without registering memory",
        ),
        (".capabilities = NETDYNO_HAS_LAUNCHER | NETDYNO_FENCE", "lacks the function open_epoch"),
        (
            ".capabilities = NETDYNO_HAS_LAUNCHER | NETDYNO_POST, .open_epoch = (void *)1, \
             .close_epoch = (void *)1, .expose = (void *)1",
            "epochs without put and get",
        ),
        (".capabilities = NETDYNO_HAS_LAUNCHER | NETDYNO_ALLOCATES", "lacks the function allocate_memory"),
        (".name = NULL", "has no name"),
    ] {
        // In C the last of two initialisers of a member counts.
        let stub = source(&folder, "stub.c", &STUB.replace("{}", rest));
        let error = refusal(&build_in(folder.path(), &stub, &compiler()).unwrap());
        assert!(error.contains(why), "{rest}: {error}");
    }
    let whole = source(&folder, "whole.c", &STUB.replace("{}", ""));
    let whole = Plugin::load(&build_in(folder.path(), &whole, &compiler()).unwrap()).unwrap();
    assert!(whole.has_launcher() && !whole.blocks() && whole.name() == "stub");
    // One layer uses the first header of this version, and another a later header with more members at the
    // end.
    let first = ".size = offsetof(struct netdyno_layer, register_memory)";
    let loaded = source(&folder, "first.c", &STUB.replace("{}", first));
    assert!(!Plugin::load(&build_in(folder.path(), &loaded, &compiler()).unwrap()).unwrap().one_sided());
    // Members behind the end of a shorter table are not read.
    let more = "    .capabilities = NETDYNO_HAS_LAUNCHER | NETDYNO_REGISTERS, \
                .register_memory = (void *)1, .deregister_memory = (void *)1";
    let beyond = source(&folder, "beyond.c", &STUB.replace("{}", &format!("{first}, {more}")));
    let error = refusal(&build_in(folder.path(), &beyond, &compiler()).unwrap());
    assert!(error.contains("lacks the function register_memory"), "{error}");
    let longer = source(&folder, "longer.c", &STUB.replace("{}", ".size = sizeof netdyno_layer + 8"));
    assert!(Plugin::load(&build_in(folder.path(), &longer, &compiler()).unwrap()).is_ok());
}

#[test]
fn what_is_no_layer_is_refused() {
    let folder = TempDir::new().unwrap();
    assert!(refusal(&folder.path().join("nowhere.so")).contains("cannot be loaded"));
    let text = folder.path().join("text.so");
    fs::write(&text, "no library\n").unwrap();
    assert!(refusal(&text).contains("cannot be loaded"));
    let other = source(&folder, "other.c", "int x;\n");
    let other = build_in(folder.path(), &other, &compiler()).unwrap();
    assert!(refusal(&other).contains("has no symbol netdyno_layer"));
}

#[test]
fn a_layer_is_built_once_until_it_changes() {
    let folder = TempDir::new().unwrap();
    let build = |source: &Source| build_in(folder.path(), source, &compiler()).unwrap();
    let first = build(&Source::skeleton());
    let written = fs::metadata(&first).unwrap().modified().unwrap();
    assert_eq!(build(&Source::skeleton()), first);
    assert_eq!(fs::metadata(&first).unwrap().modified().unwrap(), written);
    let changed = format!("{}\nint more;\n", String::from_utf8_lossy(Source::skeleton().text()));
    assert_ne!(build(&source(&folder, "skeleton.c", &changed)), first);
    // Building leaves no temporary files behind.
    let kept: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(kept.iter().all(|path| path.is_file()), "{kept:?}");
}

#[test]
fn what_cannot_be_built_is_told_in_one_line() {
    let folder = TempDir::new().unwrap();
    let told = |error: netdyno_plugin::PluginError, why: &str| {
        let error = error.to_string();
        assert!(error.lines().count() == 1 && error.contains(why), "{error}");
    };
    let broken = source(&folder, "broken.c", "#include \"layer.h\"\nint x = nothing;\n");
    told(build_in(folder.path(), &broken, &compiler()).unwrap_err(), "broken.c:2");
    told(find_compiler(&Source::mpi(), Some(Path::new("no-such-cc"))).unwrap_err(), "pip install mpich");
    told(
        find_compiler(&Source::skeleton(), Some(Path::new("/no/cc"))).unwrap_err(),
        "there is no compiler /no/cc",
    );
    told(Source::named("nothing").unwrap_err(), "use mpi, ofi, ucx, skeleton");
    told(Source::named("/no/file.c").unwrap_err(), "cannot read /no/file.c");
}
