//! The command as seen by a new user: help, mistakes, places of results, messages.

use crate::common::{names, netdyno, run, stdout_of};
use netdyno_measure::record::Record;
use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

const TRUTH: &str = "o_s=1us,o_r=2us,g=5us,L=7us";
const VERBS: &[&str] = &[
    "logp",
    "breakdown",
    "bulk",
    "completion",
    "contention",
    "memory",
    "onesided",
    "overlap",
    "paper",
    "registration",
    "run",
    "sweep",
    "utilisation",
    "validate",
    "launch",
    "layers",
    "report",
    "serve",
    "compare",
    "export",
    "plugin",
    "soak",
    "completions",
    "man",
];

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs `netdyno` in a shell; `redirected` has its arguments and redirections.
fn by_shell(redirected: &str) -> Output {
    let netdyno = env!("CARGO_BIN_EXE_netdyno");
    Command::new("sh").args(["-c", &format!("exec '{netdyno}' {redirected}")]).output().unwrap()
}

#[test]
fn a_short_help_fits_a_terminal_and_begins_with_examples() {
    for verb in VERBS.iter().map(|verb| vec![*verb]).chain([vec![]]) {
        let text = stdout_of(&[&verb[..], &["-h"]].concat());
        // The prompt takes the last line.
        assert!(text.lines().count() <= 23, "{verb:?}: {} lines\n{text}", text.lines().count());
        let full = stdout_of(&[&verb[..], &["--help"]].concat());
        for text in [&text, &full] {
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{verb:?}:\n{text}");
            let (before, after) = text.split_once("Examples:\n").unwrap();
            assert!(before.lines().count() <= 6, "{verb:?}: the examples come first\n{text}");
            assert!(
                after.lines().take(3).all(|line| line.starts_with("  ") && line.contains("# ")),
                "{text}"
            );
        }
        assert!(full.contains("Exit codes:") && full.contains("130"), "{verb:?}:\n{full}");
    }
}

#[test]
fn options_have_headings_and_braces_stay() {
    let verbs = [
        "logp",
        "bulk",
        "completion",
        "contention",
        "memory",
        "onesided",
        "overlap",
        "registration",
        "utilisation",
    ];
    for verb in verbs {
        let text = stdout_of(&[verb, "--help"]);
        for heading in [
            "What to measure:",
            "How precisely:",
            "Where:",
            "Output:",
            "A link made slow:",
            "Hosts and launchers:",
        ] {
            assert!(text.lines().any(|line| line == heading), "{verb}: {heading}\n{text}");
        }
        // The usage line has the option too, so the test looks at its last occurrence.
        let over = text.rsplit("--over <").next().unwrap();
        assert!(over.lines().nth(1).unwrap().contains("netdyno layers"), "{verb}:\n{text}");
        assert!(text.contains("'mpiexec -n {n}'"), "{verb}:\n{text}");
    }
    assert!(!stdout_of(&["logp", "--help"]).contains("\nOptions:"), "every option has a heading");
}

#[test]
fn help_of_a_verb_is_its_help() {
    assert_eq!(stdout_of(&["help", "logp"]), stdout_of(&["logp", "--help"]));
    assert_eq!(stdout_of(&["help"]), stdout_of(&["--help"]));
}

/// Mistakes: the arguments, the exit code, a part of the error, and a text that the error must not contain.
const MISTAKES: &[(&[&str], i32, &str, &str)] = &[
    (&["logp", "--over", "udp", "--size", "-1"], 2, "--size '-1': not a size, as in 64", "unexpected"),
    (&["logp", "--over", "udp", "--size", "5XB"], 2, "as in 64, 5kB or 64KiB", "digit"),
    (&["logp", "--over", "udp", "--launches", "-1"], 2, "--launches '-1'", "unexpected"),
    (&["logp", "--over", "udp", "--out", "/nonexistent/x.json"], 2, "no folder /nonexistent", ".tmp"),
    (&["logp", "--over", ""], 2, "there is no layer without a name: name one", "did you mean"),
    (
        &["logp", "--over", "udp", "--label", "x=y"],
        2,
        "'x' before the = is no layer: say LAYER=TEXT",
        "did you",
    ),
    (&["logp", "--over", "am+shm", "--faults", "loss=0.1"], 2, "not for am+shm: use --over am+udp", "add"),
    (&["overlap", "--over", "am+shm", "--sizes", "64MiB"], 2, "name a smaller size", "launch"),
    (&["logp", "--over", "udp", "--key-file", "x"], 2, "name that host too, as in --peer HOST", "following"),
    (&["logp", "--over", "udp", "--out", "run.xlsx"], 2, "the ending .xlsx names no form", "xlsx'"),
    (&["report", "run.json", "--out", "run.xlsx"], 2, "the ending .xlsx names no form", "xlsx'"),
    (&["--size", "64", "logp", "--over", "udp"], 2, "--size stands before 'logp'", "unexpected"),
    (&["--max-time", "10s", "run", "--", "true"], 125, "--max-time stands before 'run'", "unexpected"),
    (&["--over", "sim"], 2, "netdyno logp --over sim --truth", "--over '"),
    (&["logp"], 2, "--over <LAYER[,LAYER…]>; as in `netdyno logp --over", "following"),
    (&["sweep", "--latency", "+0:1000000:1us", "--", "true"], 125, "more than 1000 values", "does not rise"),
    (&["sweep", "--latency", "+1000000s", "--", "true"], 125, "which is 0 to 1s", "to ="),
    (&["run", "--latency", "+1000000s", "--", "true"], 125, "which is 0 to 1s", "to ="),
    (
        &["sweep", "--latency", "+1us", "--metric", "(", "--", "true"],
        125,
        "(unclosed group), as in 'Loop",
        "parse",
    ),
    (
        &["sweep", "--latency", "+1us", "--metric", "x", "--", "true"],
        125,
        "has no group, as in 'Loop",
        "parse",
    ),
    (&["sweep", "--latency", "+1us", "--out", "a.xlsx", "--", "true"], 125, "names no form", "hook"),
    (
        &["run", "--latency", "+1us", "--provider", "nosuch", "--", "true"],
        125,
        "no provider of that name",
        "hook",
    ),
    (&["run", "true", "--latency", "+10us"], 125, "--latency stands behind the program", "hook"),
    (&["run", "true", "--latency=+10us"], 125, "--latency stands behind the program", "hook"),
    (&["sweep", "true", "--send-gap", "=1us"], 125, "--send-gap stands behind the program", "no dial"),
    (
        &["run", "--latancy", "+1us", "--", "true"],
        125,
        "'--latancy' is neither an option nor a program",
        "run '",
    ),
    (&["logp", "--over", "udp", "--seed", "x"], 2, "--seed 'x': invalid number: use a whole one", "digit"),
    (&["launch", "-n", "0", "true"], 125, "--procs '0': must be from 1 to 65536, as in 4", "digit"),
    (&["launch", "-n", "65537", "true"], 125, "must be from 1 to 65536", "digit"),
    (&["launch", "-n", "-1", "true"], 125, "must be from 1 to 65536", "unexpected"),
    (&["launch", "true"], 125, "required arguments are missing: --procs <N>; as in `netdyno launch", "were"),
    (&["launch", "-n", "2", "/nonexistent/x"], 127, "cannot run '/nonexistent/x'", "rank"),
    (&["launch", "-n", "2", "/etc/passwd"], 126, "cannot run '/etc/passwd'", "rank"),
    (&["launch", "-n", "2", "--", "sh", "-c", "exit 3"], 3, "ended with exit code 3", "signal"),
    (&["launch", "-n", "2", "--", "sh", "-c", "kill -9 $$"], 137, "was killed by signal 9", "code"),
    (&["plugin"], 2, "a command is missing, as in `netdyno plugin show skeleton`", "Build"),
    (
        &["run", "--latency", "+10us"],
        125,
        "required arguments are missing: <COMMAND>...; as in `netdyno run",
        "were",
    ),
];

#[test]
fn a_mistake_is_one_line_that_says_what_to_do() {
    for (args, code, says, never) in MISTAKES {
        let output = run(args);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(*code), "{args:?}: {text}");
        assert!(text.starts_with("error: ") && text.lines().count() == 1, "{args:?}: {text}");
        assert!(text.contains(says) && !text.contains(never), "{args:?}: {text}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn a_sweep_has_its_result_and_its_journal_in_two_files() {
    let folder = tempfile::tempdir().unwrap();
    let mut command =
        netdyno(&["sweep", "--latency", "+1us", "--out", "s.json", "--journal", "./s.json", "--", "true"]);
    let output = command.current_dir(&folder).output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
    assert!(
        stderr(&output).starts_with("error: --out names the journal: name another"),
        "{}",
        stderr(&output)
    );
    assert!(!folder.path().join("s.json").exists());
}

#[test]
fn variables_of_a_launcher_that_contradict_each_other_are_refused() {
    for (rank, procs) in [("5", "2"), ("abc", "2"), ("-1", "2"), ("0", "")] {
        let mut command = netdyno(&["logp", "--over", "sim", "--truth", TRUTH]);
        let output = command.env("PMI_RANK", rank).env("PMI_SIZE", procs).output().unwrap();
        let line = stderr(&output);
        assert_eq!((output.status.code(), line.lines().count()), (Some(2), 1), "{line}");
        assert!(line.contains(&format!("PMI_RANK='{rank}' and PMI_SIZE='{procs}'")), "{line}");
    }
}

#[test]
fn a_launcher_that_starts_nothing_is_told_from_one() {
    let output = netdyno(&["logp", "--over", "am+shm", "--launcher", "false {n}"]).output().unwrap();
    let text = stderr(&output);
    assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{text}");
    assert!(text.contains("does --launcher start processes, as 'mpiexec -n {n}' does?"), "{text}");
}

#[test]
fn what_cannot_be_written_is_told() {
    let sim = format!("logp --over sim --truth {TRUTH} --launches 1");
    for (redirected, code, says) in [
        ("--help >/dev/full".to_owned(), 1, "No space left on device"),
        ("--help >&-".to_owned(), 1, "standard output: it is closed"),
        ("layers >&-".to_owned(), 1, "standard output: it is closed"),
        (format!("{sim} >/dev/full"), 1, "No space left on device"),
        (format!("{sim} >&-"), 2, "standard output is closed: name a file with --out"),
    ] {
        let output = by_shell(&redirected);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{redirected}: {text}");
        assert!(text.contains(says) && text.lines().count() == 1, "{redirected}: {text}");
    }
    // A result in a file needs no standard output.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    assert!(by_shell(&format!("{sim} --out {} >&-", file.display())).status.success());
    assert!(file.exists());
}

#[test]
fn a_size_has_a_unit() {
    for (size, bytes) in [("64KiB", 65536), ("5kB", 5000), ("64", 64)] {
        let args = [
            "logp",
            "--over",
            "sim",
            "--truth",
            TRUTH,
            "--launches",
            "1",
            "--format",
            "json",
            "--size",
            size,
        ];
        assert_eq!(Record::from_json(&stdout_of(&args)).unwrap().results[0].size_bytes, bytes);
    }
}

#[test]
fn a_record_keeps_the_command_line() {
    let args = ["logp", "--over", "sim", "--truth", TRUTH, "--launches", "1", "--format", "json"];
    let record = Record::from_json(&stdout_of(&args)).unwrap();
    assert_eq!(record.command_line[1..], args);
}

#[test]
fn quiet_is_quiet_and_verbose_tells_each_launch() {
    let sim = ["logp", "--over", "sim", "--truth", TRUTH, "--launches", "3"];
    assert_eq!(stderr(&run(&sim)), "");
    let verbose = stderr(&run(&[&sim[..], &["-v"]].concat()));
    assert!(verbose.contains("sim launch 1") && verbose.contains("sim launch 3"), "{verbose}");
    assert_eq!(stderr(&run(&[&["-q"], &sim[..]].concat())), "");
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    assert!(stderr(&run(&["man", folder])).contains("wrote"));
    assert_eq!(stderr(&run(&["-q", "man", folder])), "");
    assert!(stderr(&run(&["-q", "lopg"])).starts_with("error: "), "errors are said");
}

#[test]
fn colours_are_for_terminals() {
    let of = |variables: &[(&str, &str)], args: &[&str]| {
        let mut command = netdyno(args);
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").envs(variables.iter().copied());
        let output = command.output().unwrap();
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat()
    };
    let sim = ["logp", "--over", "sim", "--truth", TRUTH, "--launches", "1"];
    for args in [&["lopg"][..], &["logp", "-h"], &sim] {
        assert!(!of(&[], args).contains('\x1b'), "{args:?}");
        assert!(of(&[("CLICOLOR_FORCE", "1")], args).contains('\x1b'), "{args:?}");
    }
    assert!(of(&[("CLICOLOR_FORCE", "1")], &["logp", "--help"]).contains("'mpiexec -n {"));
}

#[test]
fn a_terminal_has_colours_unless_it_is_told_not_to() {
    let netdyno = env!("CARGO_BIN_EXE_netdyno");
    let on_terminal = |variable: &str| {
        let command = format!("env -u CLICOLOR_FORCE -u NO_COLOR TERM=xterm {variable} '{netdyno}' lopg");
        Command::new("script").args(["-qec", &command, "/dev/null"]).output()
    };
    let Ok(plain) = on_terminal("NO_COLOR=1") else {
        println!("SKIPPED: there is no script(1), which has a terminal");
        return;
    };
    assert!(String::from_utf8_lossy(&plain.stdout).contains("error: "));
    assert!(!plain.stdout.contains(&b'\x1b'));
    assert!(on_terminal("").unwrap().stdout.contains(&b'\x1b'));
}

#[test]
fn completions_and_pages_come_from_the_options() {
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout_of(&["completions", shell]);
        assert!(
            ["registration", "max-time", "gap-per-byte"].iter().all(|word| script.contains(word)),
            "{shell}"
        );
    }
    let bash = stdout_of(&["completions", "bash"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("netdyno");
    fs::write(&file, bash).unwrap();
    assert!(Command::new("bash").arg("-n").arg(&file).status().unwrap().success());

    let pages = folder.path().join("man1");
    stdout_of(&["man", pages.to_str().unwrap()]);
    let names = names(&pages);
    assert!(
        names.contains(&"netdyno.1".into()) && names.contains(&"netdyno-plugin-build.1".into()),
        "{names:?}"
    );
    assert!(VERBS.iter().all(|verb| names.contains(&format!("netdyno-{verb}.1"))), "{names:?}");
    assert!(!names.iter().any(|name| name.contains("worker") || name.contains("help")), "{names:?}");
    let logp = fs::read_to_string(pages.join("netdyno-logp.1")).unwrap();
    assert!(logp.contains(".SH EXAMPLES") && logp.contains("{n}") && !logp.contains('\x1b'), "{logp}");
}

#[test]
fn a_run_without_a_dial_warns_and_words_behind_two_dashes_are_the_programs() {
    let output = netdyno(&["run", "--", "true"]).output().unwrap();
    assert!(stderr(&output).starts_with("warning: no dial is turned"), "{}", stderr(&output));
    assert!(!stderr(&netdyno(&["-q", "run", "--", "true"]).output().unwrap()).contains("warning"));
    for args in [&["run", "--latency", "+1us", "--"][..], &["run", "--"]] {
        let output = netdyno(&[args, &["true", "--latency", "+1us"]].concat()).output().unwrap();
        assert!(!stderr(&output).contains("stands behind"), "{}", stderr(&output));
    }
    let output = netdyno(&["run", "--latency", "+1us", "true", "--bandwidth", "9"]).output().unwrap();
    assert!(stderr(&output).starts_with("warning: --bandwidth stands behind"), "{}", stderr(&output));
}

#[test]
fn rank_0_of_a_launch_has_the_standard_input() {
    let mut command = netdyno(&["launch", "-n", "3", "--", "sh", "-c", "sed s/^/$PMI_RANK/"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"word\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"0word\n"[..]));
}
