//! MPI, where there is one: this test again, as two processes of a job. The compilers in
//! NETDYNO_TEST_MPICC (a list like PATH), or `mpicc`; each MPI's own `mpiexec` lies beside.

use crate::messages::exercise;
use crate::steps::{Alone, stream_to};
use crate::{bulk, check, logp, options, overlap};
use netdyno_host::wait::Wait;
use netdyno_layers::catalogue::Layer;
use netdyno_layers::group::{Gathering, Place};
use netdyno_layers::half::{self, Role};
use netdyno_layers::plugin::bootstrap::Bootstrap;
use netdyno_layers::plugin::{Extension, PluginGathering};
use netdyno_measure::layer::Face;
use netdyno_measure::task::Data;
use netdyno_plugin::site::{build_in, find_compiler};
use netdyno_plugin::source::Source;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Names the file for the result, and what is to be measured, in a process of a job.
const RESULT: &str = "NETDYNO_TEST_RESULT";
const TASK: &str = "NETDYNO_TEST_TASK";
const LARGEST: usize = 256 << 10;
/// The replier is gone soon.
const DEATH: &str = "death";

/// The compilers of all MPIs to be tested.
fn compilers() -> Vec<PathBuf> {
    match std::env::var_os("NETDYNO_TEST_MPICC") {
        Some(list) => std::env::split_paths(&list).collect(),
        None => find_compiler(&Source::mpi(), None).into_iter().collect(),
    }
}

/// The launcher that belongs to a compiler: mpiexec, mpiexec.openmpi.
fn launcher(compiler: &Path) -> PathBuf {
    let name = compiler.file_name().unwrap().to_str().unwrap();
    compiler.with_file_name(name.replace("mpicc", "mpiexec").replace("_abi", ""))
}

fn skip(why: &str) {
    // Past what the test harness captures.
    let _ = writeln!(std::io::stderr(), "SKIPPED: nothing was measured over MPI: {why}");
}

/// Runs a job of this test's processes, to its end, in a bounded time.
fn run(mpi: &Mpi, task: &str, processes: &str, result: &Path, variables: &[(&str, &str)]) -> Output {
    let mut job = Command::new(&mpi.launcher)
        .args(["-n", processes])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "job::one_process_of_a_job", "--nocapture"])
        .env("NETDYNO_PLUGIN_MPI", &mpi.plugin)
        .env(RESULT, result)
        .env(TASK, task)
        .envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")])
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while job.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            job.kill().unwrap();
            panic!("{task} does not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    job.wait_with_output().unwrap()
}

/// One process of a job, where this is one.
#[test]
fn one_process_of_a_job() {
    let Some(result) = std::env::var_os(RESULT) else { return };
    let task = std::env::var(TASK).unwrap();
    let said = match &task[..] {
        "gather" => Some(gather()),
        "crowd" => Some(crowd()),
        _ => None,
    };
    if let Some(said) = said {
        return fs::write(&result, said).unwrap();
    }
    let (size, face) = match &task[..] {
        "bulk" => (LARGEST, Face::Sized),
        "messages" | "overlap" => (LARGEST, Face::Messages),
        _ => (32, Face::Requests),
    };
    // Which side it is, MPI says.
    let half = match half::open(Layer::Mpi, Role::Requester, options(size, face, Wait::Yield)) {
        Ok(half) => half,
        Err(error) => return fs::write(&result, error.to_string()).unwrap(),
    };
    assert!(half.library().unwrap().ends_with("thread=funneled"));
    let other = |rank: u32| rank.to_le_bytes();
    if half.address() == other(0) && task == "messages" {
        exercise(&mut *half.messenger(&other(1)).unwrap());
        fs::write(&result, "all was as it should be").unwrap();
    } else if half.address() == other(0) {
        let mut subject = half.requester(&other(1)).unwrap();
        let ordered = match &task[..] {
            "bulk" => bulk(LARGEST),
            "overlap" => overlap(),
            _ => logp(),
        };
        let data = subject.measure(&ordered, &mut |_| {}).unwrap();
        fs::write(&result, serde_json::to_string(&data).unwrap()).unwrap();
    } else {
        let mut replier = half.replier(&other(0)).unwrap();
        if task == DEATH {
            std::thread::spawn(|| {
                std::thread::sleep(Duration::from_millis(200));
                std::process::abort();
            });
        }
        // Until the job ends.
        panic!("{:?}", replier.serve(&AtomicBool::new(false)));
    }
}

/// Every process tells all others its rank.
fn gather() -> String {
    let mut bootstrap = Bootstrap::open().unwrap();
    let rank = bootstrap.place().rank as u8;
    let all = bootstrap.gather(&[rank, 10 + rank]).unwrap();
    assert_eq!(all, [[0, 10], [1, 11]]);
    // MPI can be opened while it is open, and again.
    let again = || half::open(Layer::Mpi, Role::Requester, options(32, Face::Requests, Wait::Yield)).unwrap();
    drop(again());
    again().library().unwrap().to_owned()
}

/// Process 0 of a crowd streams to process 1, which has rank 0 of the job.
fn crowd() -> String {
    let rank_in_job = ["PMI_RANK", "OMPI_COMM_WORLD_RANK"].iter().find_map(|name| std::env::var(name).ok());
    let rank = 1 - rank_in_job.unwrap().parse::<usize>().unwrap();
    let place = Place { rank, procs: 2 };
    let gathering =
        PluginGathering::open(&Extension::mpi().unwrap(), place, options(100, Face::Requests, Wait::Yield));
    let gathering: Box<dyn Gathering> = Box::new(gathering.unwrap());
    assert_eq!(gathering.addresses()[1 - rank], (1 - rank as u32).to_le_bytes());
    let mut attendant = gathering.meet(&[vec![1, 0, 0, 0], vec![0, 0, 0, 0]]).unwrap();
    let mut cues = Alone::default();
    match rank {
        0 => attendant.perform(&stream_to(1), &mut cues).unwrap(),
        // Nobody tells it to stop.
        _ => attendant.serve(&[0], &mut cues).unwrap(),
    }
    format!("{:?}", cues.counted.unwrap())
}

/// An MPI to be tested.
struct Mpi {
    launcher: PathBuf,
    folder: TempDir,
    plugin: PathBuf,
}

impl Mpi {
    /// All that are here.
    fn all() -> Vec<Self> {
        let compilers = compilers();
        if compilers.is_empty() {
            skip("there is no mpicc");
        }
        compilers.iter().filter_map(|compiler| Self::of(compiler)).collect()
    }

    fn of(compiler: &Path) -> Option<Self> {
        let launcher = launcher(compiler);
        if !launcher.is_file() {
            skip(&format!("there is no {}", launcher.display()));
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let plugin = build_in(folder.path(), &Source::mpi(), compiler).unwrap();
        Some(Self { launcher, folder, plugin })
    }

    /// What a job wrote, if it did, and what else it said.
    fn job(&self, task: &str, processes: &str, variables: &[(&str, &str)]) -> (Option<String>, String) {
        let result = self.folder.path().join(task);
        let output = run(self, task, processes, &result, variables);
        (fs::read_to_string(result).ok(), format!("{output:?}"))
    }

    fn says(&self, task: &str) -> String {
        let (text, output) = self.job(task, "2", &[]);
        text.unwrap_or_else(|| panic!("{output}"))
    }
}

#[test]
fn mpi_is_built_and_measured() {
    for mpi in Mpi::all() {
        for task in ["logp", "bulk", "overlap"] {
            let text = mpi.says(task);
            let data: Data = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
            check(&data, LARGEST);
        }
    }
}

#[test]
fn the_processes_of_a_job_find_each_other() {
    for mpi in Mpi::all() {
        let library = mpi.says("gather");
        assert!(library.contains("MPI") && library.ends_with("thread=funneled"), "{library}");
        assert!(mpi.says("crowd").contains("times"));
    }
}

#[test]
fn the_processes_of_a_job_exchange_messages() {
    for mpi in Mpi::all() {
        assert_eq!(mpi.says("messages"), "all was as it should be");
    }
}

#[test]
fn what_goes_wrong_in_a_job_is_told_or_ends_it() {
    for mpi in Mpi::all() {
        let (alone, output) = mpi.job("logp", "1", &[]);
        assert!(alone.as_deref().unwrap_or(&output).starts_with("mpi sees one process alone"), "{alone:?}");
        let (refused, output) = mpi.job("bulk", "2", &[("NETDYNO_MPI_THREAD", "many")]);
        assert!(
            refused.as_deref().unwrap_or(&output).starts_with("'thread=many' is no setting of mpi"),
            "{refused:?}"
        );
        let (measured, output) = mpi.job(DEATH, "2", &[]);
        assert_eq!(measured, None, "{output}");
    }
}
