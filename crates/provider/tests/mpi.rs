//! MPI programs over the provider, on every installed MPI.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "../../cli/tests/common/mpi.rs"]
mod installed;

use installed::{compilers, launcher, prepare};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Ranks that poll take the processors of others.
static PROCESSORS: Mutex<()> = Mutex::new(());

/// Time after which a run has failed.
const LIMIT: Duration = Duration::from_secs(120);

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

/// A run of a program over the provider.
struct Run<'a> {
    compiler: &'a Path,
    folder: &'a Path,
    program: &'a Path,
    ranks: usize,
    /// Words before the program, and behind it.
    wrapper: &'a [&'a str],
    arguments: &'a [&'a str],
    wire: &'a str,
    faults: Option<&'a str>,
    /// Switches of the provider.
    switches: &'a [(&'a str, &'a str)],
}

impl Run<'_> {
    /// Runs the program. Without a provider the run fails.
    fn output(&self) -> Output {
        let library = std::env::current_exe().unwrap().with_file_name("libnetdyno_provider_fi.so");
        let place = self.folder.join("libnetdyno_provider_fi.so");
        if !place.exists() {
            symlink(&library, &place).unwrap();
        }
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", &LIMIT.as_secs().to_string()]).arg(launcher(self.compiler));
        command.args(["-n", &self.ranks.to_string()]).args(self.wrapper);
        command.arg(self.program).args(self.arguments);
        prepare(&mut command, self.compiler);
        command.env("FI_PROVIDER_PATH", self.folder).env("FI_PROVIDER", "netdyno");
        command.env("FI_NETDYNO_WIRE", self.wire).envs(self.switches.iter().copied());
        command.envs(self.faults.map(|faults| ("FI_NETDYNO_FAULTS", faults)));
        // MPICH: libfabric also within a host.
        command.env("MPIR_CVAR_CH4_NETMOD", "ofi").env("MPIR_CVAR_NOLOCAL", "1");
        // Open MPI: libfabric for messages and collective operations, more ranks than processors.
        command.env("OMPI_MCA_pml", "cm").env("OMPI_MCA_mtl", "ofi").env("OMPI_MCA_coll", "^sm,han");
        command.env("OMPI_MCA_btl", "^ofi").env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
        command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
        for list in ["OMPI_MCA_opal_common_ofi_provider_include", "OMPI_MCA_mtl_ofi_provider_include"] {
            command.env(list, "netdyno");
        }
        command.output().unwrap()
    }
}

/// Calls `test` with a run of a program for each installed MPI, which it may change.
fn on_each_mpi(name: &str, test: impl Fn(Run<'_>)) {
    let _alone = PROCESSORS.lock();
    for compiler in compilers() {
        let folder = tempfile::tempdir().unwrap();
        let program = compile(&compiler, name, folder.path());
        test(Run {
            compiler: &compiler,
            folder: folder.path(),
            program: &program,
            ranks: 2,
            wrapper: &[],
            arguments: &[],
            wire: "shm",
            faults: None,
            switches: &[],
        });
    }
}

fn assert_well(output: &Output) {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("all is well"), "{}: {out}{err}", output.status);
}

#[test]
fn messages_collectives_and_windows_are_what_mpi_promises() {
    on_each_mpi("semantics", |run| {
        for (ranks, wire) in [(2, "shm"), (3, "shm"), (2, "udp")] {
            assert_well(&Run { ranks, wire, arguments: &["5000"], ..run }.output());
        }
    });
}

#[test]
fn threads_send_at_once_and_all_ranks_accumulate() {
    on_each_mpi("threads", |run| {
        for (ranks, wire) in [(2, "shm"), (4, "shm"), (2, "udp")] {
            assert_well(&Run { ranks, wire, ..run }.output());
        }
    });
}

#[test]
fn a_rank_that_ends_leaves_its_messages_behind() {
    on_each_mpi("parting", |run| {
        // Few messages have room in queues and sockets. Many make the sender wait.
        for (wire, arguments) in [("shm", ["50", "1"]), ("shm", ["300", "1"]), ("udp", ["50", "3"])] {
            assert_well(&Run { ranks: 3, wire, arguments: &arguments, ..run }.output());
        }
    });
}

#[test]
fn what_the_network_loses_is_sent_again() {
    on_each_mpi("semantics", |run| {
        let faults = Some("loss=0.05,dup=0.02,reorder=0.05,corrupt=0.01");
        assert_well(&Run { wire: "udp", faults, arguments: &["500"], ..run }.output());
    });
}

/// The ways to make progress, and the switches of Speight et al. (1999), section 5.
const SWITCHES: &[&[(&str, &str)]] = &[
    &[("FI_NETDYNO_PROGRESS", "kernel")],
    &[("FI_NETDYNO_PROGRESS", "interrupt")],
    &[("FI_NETDYNO_PROGRESS", "offload")],
    &[("FI_NETDYNO_ACK", "explicit"), ("FI_NETDYNO_COPY", "staged"), ("FI_NETDYNO_WAKEUP", "event")],
    &[("FI_NETDYNO_WAKEUP", "spin")],
];

#[test]
fn every_switch_leaves_mpi_as_it_is() {
    for (name, arguments) in [("semantics", &["300"][..]), ("threads", &[]), ("parting", &["100", "1"])] {
        on_each_mpi(name, |run| {
            for &switches in SWITCHES {
                let is_kernel = switches[0].1 == "kernel";
                let wire = if is_kernel { "udp" } else { "shm" };
                let ranks = if name == "parting" { 3 } else { 2 };
                assert_well(&Run { ranks, wire, arguments, switches, ..run }.output());
            }
        });
    }
}

#[test]
fn the_message_layer_repeats_what_an_unreliable_network_loses() {
    on_each_mpi("semantics", |run| {
        let switches = &[("FI_NETDYNO_ACK", "explicit")];
        let faults = Some("loss=0.02,dup=0.02,reorder=0.05,corrupt=0.01");
        assert_well(&Run { wire: "udp", faults, switches, arguments: &["60"], ..run }.output());
    });
}

#[test]
fn unexpected_messages_beyond_the_bound_stay_with_their_senders() {
    on_each_mpi("semantics", |run| {
        for (ranks, wire, most) in [(2, "shm", "0"), (3, "shm", "1"), (2, "udp", "0")] {
            let switches = &[("FI_NETDYNO_UNEXPECTED", most)];
            assert_well(&Run { ranks, wire, switches, arguments: &["5000"], ..run }.output());
        }
    });
}

#[test]
fn every_one_of_64_ranks_talks_to_every_other() {
    on_each_mpi("many", |run| {
        for wire in ["shm", "udp"] {
            assert_well(&Run { ranks: 64, wire, ..run }.output());
        }
    });
}

/// MPICH gives each rank an open socket to its launcher, so a rank may live in another network.
#[test]
fn ranks_in_two_networks_find_each_other() {
    if std::env::var_os("NETDYNO_NAMESPACES").is_none() {
        println!("SKIPPED: no network namespaces");
        return;
    }
    let system = |words: &str| Command::new("sh").args(["-c", words]).status().unwrap().success();
    let name = format!("nd{}", std::process::id());
    let made = system(&format!(
        "ip netns add {name}-0 && ip netns add {name}-1 && \
         ip -n {name}-0 link add eth type veth peer name eth netns {name}-1 && \
         for n in 0 1; do ip -n {name}-$n address add 10.99.7.$((n + 1))/24 dev eth && ip -n {name}-$n link set eth up && \
         ip -n {name}-$n link set lo up; done"
    ));
    let wrapper = ["sh", "-c", &format!("exec ip netns exec {name}-$PMI_RANK \"$0\" \"$@\"")];
    let outcome = std::panic::catch_unwind(|| {
        assert!(made, "cannot make two networks");
        on_each_mpi("semantics", |run| {
            let version = Command::new(launcher(run.compiler)).arg("--version").output().unwrap();
            if String::from_utf8_lossy(&version.stdout).contains("HYDRA") {
                assert_well(&Run { wrapper: &wrapper, arguments: &["500"], ..run }.output());
            }
        });
    });
    system(&format!("ip netns delete {name}-0; ip netns delete {name}-1"));
    outcome.unwrap();
}

#[test]
fn a_killed_rank_ends_the_job_and_nothing_stays() {
    let files = || {
        let all = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        let ours =
            all.map(|entry| entry.file_name()).filter(|name| name.to_string_lossy().contains("netdyno"));
        ours.collect::<Vec<_>>()
    };
    let before = files();
    on_each_mpi("semantics", |run| assert_well(&Run { arguments: &["100"], ..run }.output()));
    on_each_mpi("killed", |run| {
        let began = Instant::now();
        let output = Run { ranks: 3, ..run }.output();
        // The launcher passes on the rank's status, or has one of its own.
        assert!(!output.status.success() && began.elapsed() < LIMIT, "{}", output.status);
    });
    assert_eq!(files(), before);
}

#[test]
fn a_wrong_variable_is_named() {
    on_each_mpi("semantics", |run| {
        let output = Run { ranks: 1, wire: "ether", ..run }.output();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{said}");
        assert!(said.contains("FI_NETDYNO_WIRE is 'ether': use shm or udp"), "{said}");
    });
}
