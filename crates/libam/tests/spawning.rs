//! Jobs whose ranks the program starts: by a function of its own, by ssh, or by a command of the user.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "../../global/tests/programs/cable.rs"]
mod cable;
mod library;

use cable::Hosts;
use library::{Library, nobody_runs};
use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// No job of these tests takes this long.
const TOO_LONG: Duration = Duration::from_secs(200);

/// Settings of AMUDP that the user of these tests may have.
const SETTINGS: [&str; 9] = [
    "SSH_SERVERS",
    "SSH_CMD",
    "SSH_OPTIONS",
    "SSH_REMOTE_PATH",
    "CSPAWN_CMD",
    "CSPAWN_SERVERS",
    "SPAWNFN",
    "AMUDP_SPAWNFN",
    "GASNET_SPAWNFN",
];

/// A process that a drop kills.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program, and folders for scripts and what they write.
struct Spawned {
    library: Library,
    program: PathBuf,
    folder: tempfile::TempDir,
}

/// How a job went.
struct Ended {
    code: Option<i32>,
    output: String,
    errors: String,
}

impl Spawned {
    fn built() -> Self {
        let library = Library::built();
        let program = library.compile("spawned");
        Self { library, program, folder: tempfile::tempdir().unwrap() }
    }

    /// Returns the command that starts a job. `by` names a function of the program, if not empty.
    fn command(&self, by: &str, arguments: &[&str]) -> Command {
        let mut command = self.library.command(&self.program);
        command.args(arguments).env("TEST_FOLDER", self.folder.path());
        for name in SETTINGS {
            command.env_remove(name);
        }
        if !by.is_empty() {
            command.env("BY", by);
        }
        command
    }

    /// Runs a job. No process of it is left then.
    fn run(&self, by: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
        self.wait(self.command(by, arguments).envs(variables.iter().copied()))
    }

    fn wait(&self, command: &mut Command) -> Ended {
        let Output { status, stdout, stderr } = output(command);
        self.await_nobody();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ended { code: status.code(), output: text(stdout), errors: text(stderr) }
    }

    /// Waits until so many ranks watch their connection to the first process.
    fn await_connected(&self, ranks: usize) {
        let watches = |task: io::Result<fs::DirEntry>| {
            let name = task.and_then(|task| fs::read_to_string(task.path().join("comm")));
            name.is_ok_and(|name| name == "netdyno-launche\n")
        };
        let is_connected = |process: &PathBuf| {
            fs::read_link(process.join("exe")).is_ok_and(|exe| exe == self.program)
                && fs::read_dir(process.join("task")).is_ok_and(|mut tasks| tasks.any(watches))
        };
        let until = Instant::now() + TOO_LONG;
        let processes = || fs::read_dir("/proc").unwrap().flatten().map(|process| process.path());
        while processes().filter(is_connected).count() < ranks {
            assert!(Instant::now() < until, "the ranks do not connect");
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn await_nobody(&self) {
        let until = Instant::now() + TOO_LONG;
        while !nobody_runs(&self.program) {
            assert!(Instant::now() < until, "a process is left");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Writes a script.
    fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// A shell instead of ssh: it leaves its arguments in a file, and runs the last one in another folder.
    fn ssh(&self) -> PathBuf {
        let script = r#"{ echo "call"; printf '[%s]\n' "$@"; } > "$TEST_FOLDER/call-$$"
for last; do :; done
cd / && exec sh -c "$last""#;
        self.script("ssh", script)
    }

    /// Returns the arguments of all calls of the script instead of ssh, one a line, in brackets.
    fn calls(&self) -> Vec<String> {
        let files = fs::read_dir(self.folder.path()).unwrap().map(|file| file.unwrap().path());
        let files = files.filter(|path| path.to_str().unwrap().contains("/call-"));
        files.map(|path| fs::read_to_string(path).unwrap()).collect()
    }
}

impl Ended {
    fn passed(&self, says: &str) {
        let Self { code, output, errors } = self;
        assert_eq!((*code, &output[..], &errors[..]), (Some(0), says, ""));
    }

    /// Asserts that the job has failed with that code and said one line.
    fn failed(&self, code: i32, says: &str) {
        let Self { output, errors, .. } = self;
        assert_eq!(self.code, Some(code), "{output}{errors}");
        assert!(errors.contains(says) && errors.lines().count() == 1, "'{says}': {output}{errors}");
    }
}

/// Waits for a process, and for all that have its output.
fn output(command: &mut Command) -> Output {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id() as i32;
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || done.send(child.wait_with_output()));
    is_done.recv_timeout(TOO_LONG).map(Result::unwrap).unwrap_or_else(|_| {
        // SAFETY: the process has not been waited for.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        panic!("{command:?} does not end")
    })
}

#[test]
fn a_function_of_the_program_starts_the_ranks() {
    let spawned = Spawned::built();
    for variables in [&[][..], &[("NETDYNO_AM_WIRE", "udp")], &[("NETDYNO_AM_TIMEOUT", "60")]] {
        for by in ["own", "here", "later"] {
            for ranks in ["1", "2", "4"] {
                let ended = spawned.run(by, &[ranks, "word", "a 'b'  \"c\"", ""], variables);
                ended.passed(&format!("{ranks} ranks: [{ranks}] [word] [a 'b'  \"c\"] []\n"));
            }
        }
    }
}

/// The name of the program need not be that of a file.
#[test]
fn a_program_that_was_found_by_its_name_starts_the_ranks() {
    let spawned = Spawned::built();
    let mut command = Command::new("sh");
    command.args(["-c", r#"PATH="$0:$PATH"; exec spawned 2 word"#]).arg(spawned.program.parent().unwrap());
    command.env("LD_LIBRARY_PATH", spawned.library.folder()).env("BY", "own");
    spawned.wait(&mut command).passed("2 ranks: [2] [word]\n");
}

/// Others connect with wrong keys, with nonsense, and in silence.
#[test]
fn strangers_keep_no_rank_out() {
    let spawned = Spawned::built();
    spawned.run("strangers", &["3", "word"], &[]).passed("3 ranks: [3] [word]\n");
}

#[test]
fn a_rank_too_many_is_refused() {
    let spawned = Spawned::built();
    let Ended { code, output, errors } = spawned.run("many", &["2", "word"], &[]);
    assert_eq!((code, &output[..]), (Some(0), "2 ranks: [2] [word]\n"), "{errors}");
    let says = ["cannot reach the process that has started the job at", "does not take this rank"];
    assert!(says.iter().any(|text| errors.contains(text)) && errors.lines().count() == 1, "{errors}");
}

#[test]
fn what_starts_no_ranks_is_told() {
    let spawned = Spawned::built();
    for (by, arguments, variables, says) in [
        ("zero", &["2", "word"][..], &[][..], "the program's function to start ranks has returned 0"),
        ("rexec", &["2", "word"], &[], "ranks are not started by rexec: use S, L or C"),
        ("glunix", &["2", "word"], &[], "ranks are not started by GLUnix: use S, L or C"),
        ("", &["2", "R", "word"], &[], "ranks are not started by rexec: use S, L or C"),
        ("", &["2", "g", "word"], &[], "ranks are not started by GLUnix: use S, L or C"),
        ("", &["2", "word"], &[("SPAWNFN", "X")], "SPAWNFN='X' is no way to start ranks: use S, L or C"),
        ("", &["2", "S", "word"], &[], "SSH_SERVERS names no host"),
        ("", &["2", "S", "word"], &[("SSH_SERVERS", " ,;")], "SSH_SERVERS names no host"),
        ("", &["2", "C", "word"], &[], "CSPAWN_CMD is not set"),
        ("", &["2", "C", "word"], &[("CSPAWN_CMD", "run %M %C")], "%M in CSPAWN_CMD needs hosts"),
        ("own", &["2", "word"], &[("NETDYNO_AM_ADDRESS", "198.51.100.7")], "cannot listen at 198.51.100.7"),
        ("own", &["-2", "word"], &[], "AM_ERR_BAD_ARG: the number of ranks is not above 0"),
        ("own", &["70000", "word"], &[], "70000 processes cannot be started"),
    ] {
        let ended = spawned.run(by, arguments, variables);
        assert_eq!(ended.output, "");
        ended.failed(3, says);
    }
}

#[test]
fn a_job_ends_as_its_ranks_do() {
    let spawned = Spawned::built();
    for variables in [&[][..], &[("NETDYNO_AM_WIRE", "udp")]] {
        for by in ["own", "here"] {
            let Ended { code, output, errors } = spawned.run(by, &["3", "fail"], variables);
            assert_eq!(code, Some(5), "{output}{errors}");
            assert!(errors.contains("has aborted the job with exit code 5"), "{output}{errors}");
            assert_eq!(errors.lines().count(), 1, "{errors}");
            for what in ["kill", "leave", "quit"] {
                let Ended { code, output, errors } = spawned.run(by, &["3", what], variables);
                assert!(code.is_some_and(|code| code != 0), "{output}{errors}");
                assert_eq!(errors.lines().count(), 1, "{what}: {errors}");
                // Where the first process has started the ranks itself, it names a process that fails.
                let is_named = errors.contains("rank 1 has ended before the job") || by == "here";
                assert!(is_named, "{what}: {errors}");
            }
        }
    }
}

/// The first process has fewer descriptors than the job has ranks.
#[test]
fn a_lack_of_descriptors_ends_the_job_at_once() {
    let spawned = Spawned::built();
    let mut command = Command::new("sh");
    command.args(["-c", r#"ulimit -n 20; exec "$@""#, "sh"]).arg(&spawned.program).args(["40", "word"]);
    for name in SETTINGS {
        command.env_remove(name);
    }
    command.envs([("BY", "own"), ("LD_LIBRARY_PATH", spawned.library.folder().to_str().unwrap())]);
    let began = Instant::now();
    let Ended { code, output, errors } = spawned.wait(&mut command);
    // Ranks that do not come are awaited for 120 s.
    assert!(began.elapsed() < Duration::from_secs(100), "{errors}");
    assert_eq!(code, Some(1), "{output}{errors}");
    let is_told = |line: &str| {
        line.contains("cannot take more ranks: ") && line.ends_with("raise the limit (ulimit -n)")
    };
    assert!(errors.lines().any(is_told), "{errors}");
}

/// The first process does not see how ranks end that a function of the program has started.
#[test]
fn ranks_that_cannot_start_fail_the_job() {
    let spawned = Spawned::built();
    let Ended { code, output, errors } = spawned.run("own", &["2", "word"], &[("NETDYNO_AM_FAULTS", "x")]);
    assert_eq!(code, Some(1), "{output}{errors}");
    assert!(errors.contains("NETDYNO_AM_FAULTS='x'"), "{errors}");
    assert!(errors.contains(" has aborted the job with exit code 1"), "{errors}");
}

/// A rank that polls nothing ends with the others, too.
#[test]
fn a_rank_that_does_not_come_ends_the_job() {
    let spawned = Spawned::built();
    let ended = spawned.run("few", &["3", "compute"], &[("NETDYNO_AM_TIMEOUT", "10")]);
    ended.failed(1, "only 2 of 3 ranks have connected to ");
    assert!(ended.errors.contains(" within 10 s: see whether they start and reach it"), "{}", ended.errors);
}

/// The first process is killed while the ranks poll, compute, or start.
#[test]
fn the_ranks_end_with_the_process_that_has_started_them() {
    let spawned = Spawned::built();
    for (by, what) in [("own", "poll"), ("own", "compute"), ("here", "poll"), ("few", "poll")] {
        let mut command = spawned.command(by, &["3", what]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut master = Killed(command.spawn().unwrap());
        if by == "few" {
            spawned.await_connected(2);
        } else {
            let mut line = String::new();
            BufReader::new(master.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
            assert_eq!(line, format!("3 ranks: [3] [{what}]\n"));
        }
        master.0.kill().unwrap();
        let mut errors = String::new();
        master.0.stderr.as_mut().unwrap().read_to_string(&mut errors).unwrap();
        spawned.await_nobody();
        let says = "the process that has started the job is gone";
        assert!(errors.lines().all(|line| line.contains(says)), "{by} {what}: {errors}");
        // The kernel kills the children of the first process itself.
        assert!(!errors.is_empty() || by == "here", "{by} {what}");
    }
}

#[test]
fn ssh_starts_the_ranks() {
    let spawned = Spawned::built();
    let ssh = spawned.ssh();
    let ssh = ssh.to_str().unwrap();
    let folder = spawned.folder.path().join("it's here");
    fs::create_dir(&folder).unwrap();
    fs::copy(&spawned.program, folder.join("the program")).unwrap();
    // The program lies in the folder from which it is started, and its name has no other one.
    let mut command = Command::new("./the program");
    command.current_dir(&folder).args(["3", "s", "word", "it's", "$HOME \"`x`\\", "*", ""]);
    command.env("LD_LIBRARY_PATH", spawned.library.folder()).env("TEST_FOLDER", spawned.folder.path());
    command.envs([("SSH_CMD", ssh), ("AMUDP_SSH_SERVERS", "node1.invalid, node2.invalid")]);
    command.envs([("SSH_OPTIONS", "-p 22 -o 'A  b'"), ("NETDYNO_AM_TIMEOUT", "100")]);
    spawned.wait(&mut command).passed("3 ranks: [word] [it's] [$HOME \"`x`\\] [*] []\n");
    assert!(nobody_runs(&folder.join("the program")));
    let calls = spawned.calls();
    let to = |host: &str| {
        let begin = format!("call\n[-p]\n[22]\n[-o]\n[A  b]\n[{host}]\n[cd '");
        calls.iter().filter(|call| call.starts_with(&begin)).count()
    };
    assert_eq!((to("node1.invalid"), to("node2.invalid")), (2, 1), "{calls:?}");
    let has = |text: &str| calls.iter().all(|call| call.contains(text));
    assert!(has("it'\\''s here' && exec env 'NETDYNO_AM_TIMEOUT=100' './the program' '--netdyno-rank-of="));
}

#[test]
fn settings_of_ssh_have_prefixes() {
    let spawned = Spawned::built();
    let ssh = spawned.ssh();
    let settings = [
        ("GASNET_SSH_CMD", ssh.to_str().unwrap()),
        ("AMUDP_SSH_CMD", "false"),
        ("SSH_SERVERS", "a:b;c"),
        ("AMUDP_SSH_REMOTE_PATH", "/usr"),
        ("GASNET_SPAWNFN", "S"),
    ];
    spawned.run("", &["2", "word"], &settings).passed("2 ranks: [word]\n");
    let calls = spawned.calls();
    assert!(
        calls.len() == 2 && calls.iter().all(|call| call.contains("\n[cd '/usr' && exec '/")),
        "{calls:?}"
    );
    // A function of the program may call that of ssh.
    spawned.run("ssh", &["2", "word"], &settings).passed("2 ranks: [2] [word]\n");
    spawned.run("ssh", &["2", "fail"], &settings).failed(5, "has aborted the job with exit code 5");
}

/// Returns the words of a command for a shell.
fn words(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let quoted = words.map(|word| format!("'{}'", word.to_str().unwrap().replace('\'', r"'\''")));
    quoted.collect::<Vec<_>>().join(" ")
}

/// The first process is at one host, and the ranks are at both. They have no address but that of their connections.
#[test]
fn ssh_starts_ranks_on_two_hosts() {
    let Some(hosts) = Hosts::new() else { return };
    let spawned = Spawned::built();
    let [a, b] = [0, 1].map(|host| words(&hosts.enter(host)));
    let script = format!(
        r#"for last; do :; done
if [ "$1" = a ]; then exec {a} sh -c "$last"; else exec {b} sh -c "$last"; fi"#
    );
    let ssh = spawned.script("hosts", &script);
    for (ranks, what, code) in [("2", "word", 0), ("5", "word", 0), ("3", "fail", 5), ("3", "kill", 1)] {
        let mut command = hosts.enter(0);
        command
            .arg(&spawned.program)
            .args([ranks, "S", what])
            .env("LD_LIBRARY_PATH", spawned.library.folder());
        // No route leads to other networks from these hosts. So the address of their interface is taken.
        command.env("SSH_SERVERS", "a b").env_remove("NETDYNO_AM_ADDRESS");
        let Ended { code: ended, output, errors } = spawned.wait(command.env("SSH_CMD", &ssh));
        assert_eq!(output, format!("{ranks} ranks: [{what}]\n"), "{errors}");
        assert_eq!(ended.map(|ended| ended != 0), Some(code != 0), "{ended:?} {errors}");
        assert!(code == 1 || ended == Some(code), "{ended:?} {errors}");
        assert_eq!(errors.is_empty(), code == 0, "{errors}");
    }
}

/// The first one that fails ends the job, whatever the others do.
#[test]
fn an_ssh_that_fails_ends_the_job() {
    let spawned = Spawned::built();
    for (end, code, says) in
        [("exit 7", 7, "bad' ended with exit code 7"), ("kill -9 $$", 137, "bad' was killed by signal 9")]
    {
        let ssh = spawned.script("fails", &format!("[ \"$1\" = good ] || {end}\nexec sleep 1000"));
        let settings = [("SSH_CMD", ssh.to_str().unwrap()), ("SSH_SERVERS", "good bad")];
        spawned.run("", &["2", "S", "compute"], &settings).failed(code, says);
    }
    let settings = [("SSH_CMD", "/nowhere/ssh"), ("SSH_SERVERS", "node")];
    let Ended { code, errors, .. } = spawned.run("", &["1", "S", "word"], &settings);
    // The shell says a line of its own.
    assert!(code == Some(127) && errors.contains("'/nowhere/ssh node' ended with exit code 127"), "{errors}");
}

/// A launcher of the user: it starts as many processes as it is told, and makes each believe that it is alone.
const LAUNCHER: &str = r#"[ "$1" = -n ] && [ "$3" = "$HOSTS" ] && [ "$4" = "$PWD" ] && [ "$5" = 100% ] || exit 99
count=$2
shift 5
export PMI_RANK=0 PMI_SIZE=1
for nth in $(seq "$count"); do "$@" & pids="$pids $!"; done
for pid in $pids; do wait "$pid" || exit $?; done"#;

#[test]
fn a_command_of_the_user_starts_the_ranks() {
    let spawned = Spawned::built();
    let launcher = spawned.script("launcher", LAUNCHER);
    let pattern = format!("{} -n %N '%M' \"%D\" 100%% %C", launcher.display());
    for (servers, hosts, ranks) in [("a, b, c", "a", "1"), ("a,b,c", "a,b,c", "3"), ("a b", "a b", "4")] {
        let settings = [("CSPAWN_CMD", &pattern[..]), ("CSPAWN_SERVERS", servers), ("HOSTS", hosts)];
        let ended = spawned.run("", &[ranks, "C", "word", "it's", "%N  $x"], &settings);
        ended.passed(&format!("{ranks} ranks: [word] [it's] [%N  $x]\n"));
    }
    let settings = [("CSPAWN_CMD", &pattern[..]), ("CSPAWN_SERVERS", "a b"), ("HOSTS", "c")];
    let ended = spawned.run("", &["2", "C", "word"], &settings);
    ended.failed(99, "ended with exit code 99");
    let settings = [("CSPAWN_CMD", &pattern[..]), ("CSPAWN_SERVERS", "a b"), ("HOSTS", "a b")];
    spawned.run("", &["2", "c", "fail"], &settings).failed(5, "has aborted the job with exit code 5");
    let Ended { code, errors, .. } = spawned.run("", &["2", "c", "kill"], &settings);
    assert!(code.is_some_and(|code| code != 0) && !errors.is_empty(), "{errors}");
}

#[test]
fn a_command_of_the_user_runs_the_program_by_its_name() {
    let spawned = Spawned::built();
    let settings = [("CSPAWN_CMD", "test -x '%P' && %C")];
    spawned.run("", &["1", "C", "word"], &settings).passed("1 ranks: [word]\n");
}
