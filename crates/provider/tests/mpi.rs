//! MPI programs over the provider, on every installed MPI.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "../../cli/tests/common/mpi.rs"]
mod installed;

use installed::{compilers, launcher, prepare};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

/// Ranks that poll take the processors of others.
static PROCESSORS: Mutex<()> = Mutex::new(());

/// Compiles a program of the tests.
fn compile(compiler: &Path, name: &str, folder: &Path) -> PathBuf {
    let source = format!("{}/tests/programs/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let program = folder.join(name);
    let built = Command::new(compiler)
        .args(["-O1", "-Wall", "-Werror", "-o"])
        .arg(&program)
        .arg(source)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program
}

/// Runs a program with this number of ranks over the provider. Without a provider the run fails.
fn run(
    compiler: &Path,
    folder: &Path,
    program: &Path,
    ranks: usize,
    arguments: &[&str],
    wire: &str,
) -> Output {
    let library = std::env::current_exe().unwrap().with_file_name("libnetdyno_provider_fi.so");
    let place = folder.join("libnetdyno_provider_fi.so");
    if !place.exists() {
        symlink(&library, &place).unwrap();
    }
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "120"]).arg(launcher(compiler));
    command.args(["-n", &ranks.to_string()]).arg(program).args(arguments);
    prepare(&mut command, compiler);
    command.env("FI_PROVIDER_PATH", folder).env("FI_PROVIDER", "netdyno").env("FI_NETDYNO_WIRE", wire);
    // MPICH: libfabric also within a host.
    command.env("MPIR_CVAR_CH4_NETMOD", "ofi").env("MPIR_CVAR_NOLOCAL", "1");
    // Open MPI: libfabric for messages and collective operations, more ranks than processors.
    command.env("OMPI_MCA_pml", "cm").env("OMPI_MCA_mtl", "ofi").env("OMPI_MCA_coll", "^sm,han");
    command.env("OMPI_MCA_btl", "^ofi").env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
    for list in ["OMPI_MCA_opal_common_ofi_provider_include", "OMPI_MCA_mtl_ofi_provider_include"] {
        command.env(list, "netdyno");
    }
    command.output().unwrap()
}

fn assert_well(output: &Output) {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("all is well"), "{}: {out}{err}", output.status);
}

#[test]
fn messages_collectives_and_windows_are_what_mpi_promises() {
    let _alone = PROCESSORS.lock();
    for compiler in compilers() {
        let folder = tempfile::tempdir().unwrap();
        let program = compile(&compiler, "semantics", folder.path());
        for (ranks, wire) in [(2, "shm"), (3, "shm"), (2, "udp")] {
            assert_well(&run(&compiler, folder.path(), &program, ranks, &["5000"], wire));
        }
    }
}

#[test]
fn nothing_stays_in_shared_memory() {
    let _alone = PROCESSORS.lock();
    let files = || {
        let all = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        let ours =
            all.map(|entry| entry.file_name()).filter(|name| name.to_string_lossy().contains("netdyno"));
        ours.collect::<Vec<_>>()
    };
    let before = files();
    for compiler in compilers() {
        let folder = tempfile::tempdir().unwrap();
        let program = compile(&compiler, "semantics", folder.path());
        assert_well(&run(&compiler, folder.path(), &program, 2, &["100"], "shm"));
    }
    assert_eq!(files(), before);
}

#[test]
fn a_wrong_wire_is_named() {
    let _alone = PROCESSORS.lock();
    for compiler in compilers() {
        let folder = tempfile::tempdir().unwrap();
        let program = compile(&compiler, "semantics", folder.path());
        let output = run(&compiler, folder.path(), &program, 1, &["100"], "ether");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && said.contains("FI_NETDYNO_WIRE is 'ether': use shm or udp"),
            "{said}"
        );
    }
}
