//! The checks over each installed MPI. This test binary runs again as the two processes of an MPI job.
//!
//! `NETDYNO_TEST_MPICC` lists the compilers of the MPIs, separated as in PATH. Without it, `mpicc` is used.
//! The `mpiexec` of an MPI is in the folder of its compiler.

use crate::conforms;
use crate::grounds::{Ground, Told, half_for, perform};
use netdyno_layers::catalogue::{Layer, group, half};
use netdyno_layers::group::Place;
use netdyno_layers::half::{Half, Role};
use netdyno_layers::options::LayerOptions;
use netdyno_layers::plugin::bootstrap::Bootstrap;
use netdyno_measure::contention::step::{Counted, Cue};
use netdyno_measure::layer::{Face, Messenger};
use netdyno_measure::task::{Data, Task};
use netdyno_plugin::channel::{self, Channel, Opening, Transfer, Uses};
use netdyno_plugin::plugin::Plugin;
use netdyno_plugin::site::{build_in, find_compiler};
use netdyno_plugin::source::Source;
use std::cell::Cell;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The environment variable with a folder that both processes of a job see.
const FOLDER: &str = "NETDYNO_TEST_FOLDER";
/// The environment variable with the task of a job's processes.
const TASK: &str = "NETDYNO_TEST_TASK";
/// The timeout of a job.
const LONG: Duration = Duration::from_secs(180);

/// Returns the compilers of all MPIs to be tested.
fn compilers() -> Vec<PathBuf> {
    match std::env::var_os("NETDYNO_TEST_MPICC") {
        Some(list) => std::env::split_paths(&list).collect(),
        None => find_compiler(&Source::mpi(), None).into_iter().collect(),
    }
}

/// Returns the launcher of a compiler's MPI: `mpiexec` for `mpicc`, `mpiexec.openmpi` for `mpicc.openmpi`.
fn launcher(compiler: &Path) -> PathBuf {
    let name = compiler.file_name().unwrap().to_str().unwrap();
    compiler.with_file_name(name.replace("mpicc", "mpiexec").replace("_abi", ""))
}

fn skip(why: &str) {
    // The test harness captures the print macros, but not this.
    let _ = writeln!(std::io::stderr(), "SKIPPED: nothing was tested over MPI: {why}");
}

/// An MPI to be tested.
struct Mpi {
    launcher: PathBuf,
    folder: TempDir,
    plugin: PathBuf,
}

impl Mpi {
    /// Returns all installed MPIs.
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

    /// Runs a job of this test's processes to its end. Panics after [`LONG`].
    fn job(&self, task: &str, processes: &str, variables: &[(&str, &str)]) -> Output {
        let variable = |name, value: &OsStr| (name, value.to_owned());
        let job = Command::new(&self.launcher)
            .args(["-n", processes])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "job::one_process_of_a_job", "--nocapture"])
            .envs([
                variable("NETDYNO_PLUGIN_MPI", self.plugin.as_os_str()),
                variable(FOLDER, self.folder.path().as_os_str()),
                variable(TASK, task.as_ref()),
                // Open MPI asks for both if the user is root.
                variable("OMPI_ALLOW_RUN_AS_ROOT", "1".as_ref()),
                variable("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1".as_ref()),
            ])
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Pipes hold little, so a thread reads them. It also sees the end of the job.
        let until = Instant::now() + LONG;
        let pid = job.id();
        let (say_end, end) = mpsc::channel();
        thread::spawn(move || drop(say_end.send(job.wait_with_output().unwrap())));
        end.recv_timeout(until - Instant::now()).unwrap_or_else(|_| {
            let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            panic!("{task} does not end: {:?}", end.recv_timeout(Duration::from_secs(5)))
        })
    }

    /// Runs a job that must succeed. Returns the text that it wrote to the file of the task's name.
    fn says(&self, task: &str) -> String {
        let output = self.job(task, "2", &[]);
        fs::read_to_string(self.folder.path().join(task)).unwrap_or_else(|_| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            panic!("{} {}", text(&output.stdout), text(&output.stderr))
        })
    }
}

pub fn conforms_in_jobs() {
    for mpi in Mpi::all() {
        println!("{}", mpi.launcher.display());
        print!("{}", mpi.says("conform"));
    }
}

/// Runs the task of one process of a job. Does nothing outside a job. A process that fails aborts, and the
/// launcher ends the job.
#[test]
fn one_process_of_a_job() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let task = std::env::var(TASK).unwrap();
    let done = std::panic::catch_unwind(|| match &task[..] {
        "conform" => conform(&folder),
        "gather" => gather(&folder),
        "one_sided" => one_sided(&folder.join(&task), false),
        "one_sided allocated" => one_sided(&folder.join(&task), true),
        "fence" => epochs(&folder.join(&task), Uses::Fence, false),
        "fence allocated" => epochs(&folder.join(&task), Uses::Fence, true),
        "post" => epochs(&folder.join(&task), Uses::Post, false),
        "post allocated" => epochs(&folder.join(&task), Uses::Post, true),
        "open" => open(),
        "death" => death(),
        other => panic!("what is {other}?"),
    });
    if done.is_err() {
        std::process::abort();
    }
}

fn conform(folder: &Path) {
    let mut bootstrap = Bootstrap::open().unwrap();
    let rank = bootstrap.place().rank;
    conforms(&InJob { rank, folder: folder.into(), steps: Cell::new(0) });
    bootstrap.gather(&[0]).unwrap();
    if rank == 0 {
        fs::write(folder.join("conform"), "all that is promised\n").unwrap();
    }
}

/// One of two processes of a job.
struct InJob {
    rank: usize,
    folder: PathBuf,
    /// The number of steps so far. It is the same in both processes.
    steps: Cell<usize>,
}

impl InJob {
    /// Hands this half's address to the other process, through a file. Returns the other's address.
    fn meet(&self, half: &dyn Half) -> Vec<u8> {
        let of = |rank: usize| self.folder.join(format!("address-{}-{rank}", self.steps.get()));
        let new = self.folder.join(format!("new-{}", self.rank));
        fs::write(&new, half.address()).unwrap();
        fs::rename(new, of(self.rank)).unwrap();
        while !of(1 - self.rank).exists() {
            thread::sleep(Duration::from_millis(2));
        }
        fs::read(of(1 - self.rank)).unwrap()
    }

    /// Opens this process's half. MPI says which side it is, and the accounts of processor time must be told.
    fn half(&self, task: Option<&Task>, options: LayerOptions) -> Box<dyn Half> {
        let role = if self.rank == 0 { Role::Requester } else { Role::Replier };
        half_for(task, Layer::Mpi, role, options)
    }

    /// As rank 0, runs `work` and tells the other process when it is done. As rank 1, serves until then.
    fn step(&self, work: impl FnOnce(), serve: impl FnOnce(&AtomicBool)) {
        let done = self.folder.join(format!("step-{}", self.steps.replace(self.steps.get() + 1)));
        if self.rank == 0 {
            work();
            fs::write(done, "").unwrap();
            return;
        }
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let watch = thread::spawn(move || {
            while !done.exists() {
                thread::sleep(Duration::from_millis(2));
            }
            is_over.store(true, Ordering::Relaxed);
        });
        serve(&over);
        watch.join().unwrap();
    }
}

impl Ground for InJob {
    fn layer(&self) -> Layer {
        Layer::Mpi
    }

    fn measure(&self, options: LayerOptions, task: &Task) -> Option<Data> {
        let half = self.half(Some(task), options);
        let other = self.meet(&*half);
        let half = Cell::new(Some(half));
        let half = || half.take().unwrap();
        let mut measured = None;
        let mut subject = None;
        self.step(
            || {
                let subject = subject.insert(half().requester(&other).unwrap());
                measured = Some(subject.measure(task, &mut |_| {}).unwrap());
            },
            |over| half().replier(&other).unwrap().serve(over).unwrap(),
        );
        measured
    }

    fn exchange(&self, options: LayerOptions, work: &mut dyn FnMut(&mut dyn Messenger)) {
        let half = self.half(None, options);
        let other = self.meet(&*half);
        let half = Cell::new(Some(half));
        let half = || half.take().unwrap();
        let mut worker = None;
        self.step(
            || work(&mut **worker.insert(half().messenger(&other).unwrap())),
            |over| half().replier(&other).unwrap().serve(over).unwrap(),
        );
    }

    fn stream(&self, options: LayerOptions) -> Option<Counted> {
        let gathering = group::open(Layer::Mpi, Place { rank: self.rank, procs: 2 }, options).unwrap();
        assert_eq!(gathering.addresses()[1 - self.rank], (self.rank as u32).to_le_bytes());
        let mut addresses = vec![Vec::new(), Vec::new()];
        addresses[1 - self.rank] = (1 - self.rank as u32).to_le_bytes().to_vec();
        let attendant = std::cell::RefCell::new(gathering.meet(&addresses).unwrap());
        let mut counted = None;
        self.step(
            || counted = Some(perform(&mut **attendant.borrow_mut())),
            |over| {
                let (stop, told) = mpsc::channel();
                thread::scope(|scope| {
                    scope.spawn(move || {
                        while !over.load(Ordering::Relaxed) {
                            thread::sleep(Duration::from_millis(2));
                        }
                        let _ = stop.send(Cue::Stop);
                    });
                    attendant.borrow_mut().serve(&[0], &mut Told(told)).unwrap();
                });
            },
        );
        counted
    }
}

/// Each process sends its rank to all others.
fn gather(folder: &Path) {
    let mut bootstrap = Bootstrap::open().unwrap();
    let rank = bootstrap.place().rank as u8;
    let all = bootstrap.gather(&[rank, 10 + rank]).unwrap();
    assert_eq!(all, [[0, 10], [1, 11]]);
    let half = half::open(Layer::Mpi, Role::Requester, crate::grounds::options(32, Face::Requests)).unwrap();
    fs::write(folder.join("gather"), half.library().unwrap()).unwrap();
}

#[test]
fn the_processes_of_a_job_find_each_other() {
    for mpi in Mpi::all() {
        let library = mpi.says("gather");
        assert!(library.contains("MPI") && library.ends_with("thread=funneled"), "{library}");
    }
}

/// Returns MPI for one-sided operations, with memory that MPI allocates if `allocates`. The launcher assigns the
/// ranks.
fn open_one_sided(uses: Uses, allocates: bool) -> Channel {
    let file = std::env::var_os("NETDYNO_PLUGIN_MPI").unwrap();
    let opening = Opening {
        place: channel::Place { rank: 0, ranks: 2 },
        slots: 8,
        largest: 64,
        memory: (64, 64),
        uses,
        blocks: false,
        allocates,
        settings: &[],
    };
    Channel::open(Plugin::load(Path::new(&file)).unwrap(), &opening).unwrap()
}

/// Each process puts into the other's memory and gets from it, without calls of the other for that.
fn one_sided(said: &Path, allocates: bool) {
    const BYTES: usize = 1 << 20;
    let mut channel = open_one_sided(Uses::OneSided, allocates);
    let (rank, other) = (channel.place().rank, 1 - channel.place().rank);
    let region = channel.make_region(2 * BYTES).unwrap();
    channel.write_region(region, 0, &vec![rank as u8; 2 * BYTES]).unwrap();
    let key = channel.key(region).unwrap();
    let keys = channel.gather(&key).unwrap().unwrap();
    // Puts the second half of this region into the first half of the other's, but for its first byte.
    let transfer =
        Transfer { region, offset: BYTES, rank: other, key: &keys[other], key_offset: 1, bytes: BYTES - 1 };
    channel.put(0, &transfer).unwrap();
    complete(&mut channel, 0);
    channel.flush(other).unwrap();
    channel.gather(&[0]).unwrap();
    let mut expected = vec![other as u8; BYTES];
    expected[0] = rank as u8;
    assert_eq!(channel.read_region(region, 0, BYTES).unwrap(), expected);
    // Gets the second half of the other's region, which no process has put into.
    channel.get(1, &Transfer { offset: 0, key_offset: BYTES, bytes: BYTES, ..transfer }).unwrap();
    complete(&mut channel, 1);
    assert_eq!(channel.read_region(region, 0, BYTES).unwrap(), vec![other as u8; BYTES]);
    channel.gather(&[0]).unwrap();
    // Both processes count in the last word of rank 0, by 1 and by 2.
    channel.write_region(region, 2 * BYTES - 8, &[0; 8]).unwrap();
    channel.gather(&[0]).unwrap();
    let word = 2 * BYTES - 8;
    let key = &keys[0];
    let transfer = Transfer { region, offset: 8, rank: 0, key, key_offset: word, bytes: 8 };
    for _ in 0..100 {
        channel.fetch_add(0, &transfer, 1 + rank as u64).unwrap();
        complete(&mut channel, 0);
    }
    channel.gather(&[0]).unwrap();
    channel.fetch_add(0, &transfer, 0).unwrap();
    complete(&mut channel, 0);
    assert_eq!(channel.read_region(region, 8, 8).unwrap(), 300u64.to_le_bytes());
    channel.gather(&[0]).unwrap();
    channel.deregister(region).unwrap();
    if rank == 0 {
        fs::write(said, "reached\n").unwrap();
    }
}

fn complete(channel: &mut Channel, slot: usize) {
    let until = Instant::now() + LONG;
    while !channel.test_send(slot).unwrap() {
        assert!(Instant::now() < until, "it does not complete");
    }
}

#[test]
fn memory_is_reached_by_put_and_get() {
    for mpi in Mpi::all() {
        for task in ["one_sided", "one_sided allocated"] {
            assert_eq!(mpi.says(task), "reached\n", "{task}");
        }
    }
}

/// In epochs of rank 0, bytes of odd ranges reach the memory of rank 1 and come from there. Rank 1 looks at its memory
/// as soon as its part of the epoch is over.
fn epochs(said: &Path, uses: Uses, allocates: bool) {
    const LARGEST: usize = 600_001;
    const ROOM: usize = LARGEST + 16;
    let mut channel = open_one_sided(uses, allocates);
    let (rank, other) = (channel.place().rank, 1 - channel.place().rank);
    let region = channel.make_region(ROOM).unwrap();
    let key = channel.key(region).unwrap();
    let keys = channel.gather(&key).unwrap().unwrap();
    let bytes_of = |rank: usize, from: usize, bytes: usize| -> Vec<u8> {
        (from..from + bytes).map(|at| (at * (5 + 2 * rank) / 3) as u8).collect()
    };
    let transfer = Transfer { region, offset: 0, rank: other, key: &keys[other], key_offset: 0, bytes: 0 };
    for bytes in [1, 7, 63, 1001, 4097, 65_537, LARGEST] {
        channel.write_region(region, 0, &bytes_of(rank, 0, ROOM)).unwrap();
        channel.gather(&[0]).unwrap();
        if rank == 1 {
            expose(&mut channel, other);
            let mut expected = bytes_of(1, 0, ROOM);
            expected[3..3 + bytes].copy_from_slice(&bytes_of(0, 5, bytes));
            assert_eq!(channel.read_region(region, 0, ROOM).unwrap(), expected, "put of {bytes}");
            channel.write_region(region, 0, &bytes_of(1, 0, ROOM)).unwrap();
            expose(&mut channel, other);
            continue;
        }
        // The range is put in two pieces, which one epoch holds.
        let first = bytes / 2;
        channel.open_epoch(other).unwrap();
        channel.put(0, &Transfer { offset: 5, key_offset: 3, bytes: first, ..transfer }).unwrap();
        let second = Transfer { offset: 5 + first, key_offset: 3 + first, bytes: bytes - first, ..transfer };
        channel.put(1, &second).unwrap();
        assert!(!channel.test_send(0).unwrap() && !channel.test_send(1).unwrap(), "the epoch is open");
        channel.close_epoch(other).unwrap();
        assert!(channel.test_send(0).unwrap() && channel.test_send(1).unwrap());
        channel.flush(other).unwrap();
        channel.open_epoch(other).unwrap();
        channel.get(0, &Transfer { offset: 1, key_offset: 9, bytes, ..transfer }).unwrap();
        channel.close_epoch(other).unwrap();
        assert!(channel.test_send(0).unwrap());
        assert_eq!(channel.read_region(region, 1, bytes).unwrap(), bytes_of(1, 9, bytes), "get of {bytes}");
    }
    // Four in an epoch count in a word, and the value before each is another.
    channel.write_region(region, 0, &[0; 64]).unwrap();
    channel.gather(&[0]).unwrap();
    if rank == 1 {
        expose(&mut channel, other);
        assert_eq!(channel.read_region(region, 8, 8).unwrap(), 100u64.to_le_bytes());
    } else {
        channel.open_epoch(other).unwrap();
        for (slot, operand) in [10, 20, 30, 40].into_iter().enumerate() {
            let word = Transfer { offset: 8 + 8 * slot, key_offset: 8, bytes: 8, ..transfer };
            channel.fetch_add(slot, &word, operand).unwrap();
        }
        channel.close_epoch(other).unwrap();
        assert!((0..4).all(|slot| channel.test_send(slot).unwrap()));
        let mut before: Vec<u64> =
            channel.read_region(region, 8, 32).unwrap().chunks(8).map(|word| u64::from(word[0])).collect();
        before.sort_unstable();
        assert!(before[0] == 0 && before.windows(2).all(|two| two[0] < two[1]), "{before:?}");
    }
    channel.gather(&[0]).unwrap();
    channel.deregister(region).unwrap();
    if rank == 0 {
        fs::write(said, "reached\n").unwrap();
    }
}

/// Takes part in the next epoch of the other process.
fn expose(channel: &mut Channel, other: usize) {
    let until = Instant::now() + LONG;
    while !channel.expose(other).unwrap() {
        assert!(Instant::now() < until, "no epoch was announced");
    }
}

#[test]
fn memory_is_reached_in_epochs() {
    for mpi in Mpi::all() {
        for task in ["fence", "fence allocated", "post", "post allocated"] {
            assert_eq!(mpi.says(task), "reached\n", "{task}");
        }
    }
}

fn open() {
    let half = half::open(Layer::Mpi, Role::Requester, crate::grounds::options(32, Face::Requests));
    println!("{}", half.err().unwrap());
}

/// Rank 0 serves. Rank 1 aborts after 200 ms, which must end the job.
fn death() {
    let half = half::open(Layer::Mpi, Role::Requester, crate::grounds::options(32, Face::Requests)).unwrap();
    if half.address() == 0u32.to_le_bytes() {
        let mut worker = half.replier(&1u32.to_le_bytes()).unwrap();
        worker.serve(&AtomicBool::new(false)).unwrap();
    } else {
        thread::sleep(Duration::from_millis(200));
        std::process::abort();
    }
}

#[test]
fn what_goes_wrong_in_a_job_is_told_or_ends_it() {
    for mpi in Mpi::all() {
        let said = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
        let alone = said(&mpi.job("open", "1", &[]));
        assert!(alone.contains("mpi sees one process alone"), "{alone}");
        let refused = said(&mpi.job("open", "2", &[("NETDYNO_MPI_THREAD", "many")]));
        assert!(refused.contains("'thread=many' is no setting of mpi"), "{refused}");
        assert!(!mpi.job("death", "2", &[]).status.success());
    }
}
