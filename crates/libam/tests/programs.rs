//! C programs over the library: one for each part of the interface, over shared memory and UDP.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "../../global/tests/programs/cable.rs"]
mod cable;
mod library;
#[path = "../../global/tests/programs/mpich.rs"]
mod mpich;

use cable::{Cable, Hosts};
use library::{Ended, Library};
use netdyno_job::launching::End;
use std::path::Path;
use std::time::{Duration, Instant};

type Variables = &'static [(&'static str, &'static str)];

const SHM: Variables = &[];
const UDP: Variables = &[("NETDYNO_AM_WIRE", "udp")];
/// A network that loses, duplicates, reorders and damages datagrams.
const BAD_UDP: Variables =
    &[("NETDYNO_AM_WIRE", "udp"), ("NETDYNO_AM_FAULTS", "loss=0.02,dup=0.02,reorder=0.05,corrupt=0.005")];

/// Runs a program with these numbers of ranks over all transports, under the names of AMMPI and of AMUDP.
fn passes(name: &str, all_ranks: &[usize]) {
    let library = Library::built();
    let (mpi, udp) = (library.compile(name), library.compile_under_udp_names(name));
    for (program, variables) in [(&mpi, SHM), (&udp, UDP), (&mpi, BAD_UDP)] {
        for ranks in all_ranks {
            library.passes(program, *ranks, variables);
        }
    }
}

#[test]
fn messages_of_every_kind_and_length_arrive() {
    passes("messages", &[1, 2, 3]);
}

/// C++ has other types for functions.
#[test]
fn programs_in_cpp_link() {
    let library = Library::built();
    for name in ["errors", "returned", "waits"] {
        if let Some(program) = library.compile_as_cpp(name) {
            library.passes(&program, 2, SHM);
        }
    }
}

#[test]
fn every_error_has_its_code() {
    passes("errors", &[1, 2]);
}

#[test]
fn a_handler_uses_no_other_bundle() {
    passes("nested", &[1, 2, 3]);
}

/// What is lost on one bundle is sent again while its rank polls another one.
#[test]
fn a_bundle_that_is_not_polled_keeps_nobody_waiting() {
    let library = Library::built();
    let program = library.compile("unpolled");
    let lossy = [("NETDYNO_AM_WIRE", "udp"), ("NETDYNO_AM_FAULTS", "loss=0.1")];
    for variables in [SHM, UDP, &lossy] {
        for ranks in [1, 2, 3] {
            library.passes(&program, ranks, variables);
        }
    }
}

#[test]
fn a_runtime_over_amudp_finds_what_it_asks_for() {
    passes("runtime", &[1, 2, 3]);
}

#[test]
fn handlers_ask_about_their_messages() {
    passes("questions", &[1, 2, 3]);
}

#[test]
fn an_endpoint_answers_one_that_it_has_not_mapped() {
    passes("unmapped", &[1, 2, 3]);
}

#[test]
fn messages_that_are_not_taken_come_back() {
    passes("returned", &[1, 2, 3]);
}

/// The process of another endpoint is killed, which is no rank of the job.
#[test]
fn messages_to_a_killed_process_come_back() {
    let library = Library::built();
    let program = library.compile("unreached");
    for variables in [SHM, UDP, BAD_UDP] {
        for ranks in [1, 2] {
            let variables = [variables, &[("NETDYNO_AM_TIMEOUT", "2")]].concat();
            library.passes(&program, ranks, &variables);
            assert!(library::nobody_runs(&program));
        }
    }
}

/// Without a handler of returned messages, the process says so in one line and ends the job.
#[test]
fn a_message_that_nobody_wants_back_ends_the_job() {
    let library = Library::built();
    let program = library.compile("unhandled");
    for variables in [SHM, UDP] {
        for ranks in [1, 2] {
            let Ended { end, errors, .. } = library.run(&program, ranks, &[], variables);
            assert_eq!(end.code(), 1, "{errors}");
            assert!(
                errors.contains("a message came back (EBADHANDLER") && errors.contains("to handler 77 of"),
                "{errors}"
            );
            // The other rank may learn that this one is lost, before the launcher ends it.
            assert_eq!(errors.lines().filter(|line| !line.contains("is lost")).count(), 1, "{errors}");
        }
    }
}

#[test]
fn a_process_has_many_endpoints() {
    passes("endpoints", &[1, 2]);
}

#[test]
fn a_slow_receiver_gets_everything_in_order() {
    passes("flood", &[2]);
}

/// The requests that no reply has come to yet are counted.
#[test]
fn unanswered_requests_are_bounded() {
    let library = Library::built();
    let folder = tempfile::tempdir().unwrap();
    for program in [library.compile("outstanding"), library.compile_under_udp_names("outstanding")] {
        for (nth, variables) in [SHM, UDP].into_iter().enumerate() {
            let file = folder.path().join(nth.to_string());
            let ended = library.run(&program, 2, &[file.to_str().unwrap()], variables);
            ended.passed("256 unanswered requests");
            std::fs::remove_file(file).unwrap();
        }
    }
}

#[test]
fn variadic_functions_send_what_the_macros_send() {
    passes("variadic", &[1, 2, 3]);
}

#[test]
fn a_thread_waits_for_messages() {
    passes("waits", &[1, 2, 3]);
}

#[test]
fn threads_share_bundles() {
    passes("bundles", &[1]);
    passes("threads", &[1, 2]);
    passes("freed", &[1]);
    passes("crossing", &[1]);
    passes("moves", &[1]);
}

/// A child of a rank that uses no Active Messages may end in any way.
#[test]
fn a_child_of_a_rank_does_not_end_the_job() {
    passes("forks", &[1, 3]);
}

#[test]
fn connections_of_strangers_keep_nobody_out() {
    passes("strangers", &[2]);
}

/// A caller that knows an endpoint's key and says nonsense to it.
#[test]
fn a_hostile_caller_disturbs_nobody() {
    passes("hostile", &[2]);
}

/// As on two hosts: the ranks of an end reach those of the other by a cable.
#[test]
fn between_two_network_namespaces() {
    let Some(cable) = Cable::new() else { return };
    let library = Library::built();
    for (name, ranks) in [("messages", 2), ("nested", 3), ("unpolled", 3), ("returned", 2), ("gam", 4)] {
        let program = library.compile(name);
        let ended = library.run_ranks(ranks, |rank| {
            let mut command = cable.enter(rank % 2);
            command.arg(&program).env("NETDYNO_AM_WIRE", "udp");
            command.env("NETDYNO_AM_ADDRESS", cable::ADDRESSES[rank % 2]);
            command.env("LD_LIBRARY_PATH", library.folder());
            command
        });
        ended.passed(&format!("{name} with {ranks} ranks between namespaces"));
    }
}

/// Containers of one machine with networks of their own: the ranks find addresses at which they reach each other, and
/// do not take the machine for one host.
#[test]
fn between_containers_of_a_machine() {
    let Some(cable) = Cable::new() else { return };
    let library = Library::built();
    for (name, ranks) in [("messages", 2), ("gam", 4)] {
        let program = library.compile(name);
        let ended = library.run_ranks(ranks, |rank| {
            let mut command = cable.enter(rank % 2);
            command.arg(&program).env("LD_LIBRARY_PATH", library.folder());
            command
        });
        ended.passed(&format!("{name} with {ranks} ranks in containers"));
    }
}

/// Without a setting, ranks use shared memory on a host, and UDP between hosts.
#[test]
fn within_and_between_hosts() {
    let Some(hosts) = Hosts::new() else { return };
    let library = Library::built();
    for name in ["messages", "returned", "gam"] {
        let program = library.compile(name);
        for places in [[0, 0, 1], [0, 1, 0]] {
            let ended = library.run_ranks(3, |rank| {
                let host = places[rank];
                let mut command = hosts.enter(host);
                command.arg(&program).env("NETDYNO_AM_ADDRESS", cable::ADDRESSES[host]);
                command.env("LD_LIBRARY_PATH", library.folder());
                command
            });
            ended.passed(&format!("{name} with ranks at hosts {places:?}"));
        }
    }
}

#[test]
fn functions_are_called_by_their_address() {
    passes("gam", &[1, 2, 3]);
}

#[test]
fn ranks_meet_and_gather() {
    passes_job(&[1, 2, 5, 8]);
}

fn passes_job(all_ranks: &[usize]) {
    let library = Library::built();
    let program = library.compile("job");
    for variables in [SHM, UDP, BAD_UDP] {
        for ranks in all_ranks {
            let Ended { end, output, errors, .. } = library.run(&program, *ranks, &[], variables);
            assert!(end == End::Done && errors.is_empty(), "{end}: {output}{errors}");
            assert_eq!(
                output.lines().filter(|line| line.ends_with("ends with 0")).count(),
                *ranks,
                "{output}"
            );
        }
    }
}

#[test]
fn one_rank_ends_the_job_with_its_code() {
    let library = Library::built();
    let program = library.compile("job");
    for variables in [SHM, UDP] {
        let Ended { end, output, .. } = library.run(&program, 3, &["1", "42"], variables);
        assert_eq!(end.code(), 42, "{end}: {output}");
        assert!(output.contains("last words of rank 1"), "{output}");
    }
}

#[test]
fn a_handler_ends_the_job_with_its_code() {
    let library = Library::built();
    let program = library.compile("ends");
    for variables in [SHM, UDP] {
        for (ranks, code) in [(1, 0), (2, 0), (4, 0), (3, 5)] {
            let Ended { end, output, errors, .. } =
                library.run(&program, ranks, &[&code.to_string()], variables);
            assert_eq!(end.code(), code, "{ranks} ranks: {output}{errors}");
            assert!(output.is_empty() && errors.is_empty(), "{ranks} ranks: {output}{errors}");
        }
    }
}

#[test]
fn a_rank_that_takes_no_message_does_not_keep_the_job_from_ending() {
    let library = Library::built();
    let program = library.compile("full");
    for variables in [SHM, UDP] {
        for how in ["pause", "stop"] {
            let ends = (0..3).map(|_| {
                let Ended { end, took, errors, .. } = library.run(&program, 4, &[how], variables);
                assert_eq!((end.code(), errors.as_str()), (7, ""), "{how}");
                // The rank would count as lost after 120 s.
                assert!(took < Duration::from_secs(60), "{how}: {took:?}");
                end
            });
            // A busy machine may make the rank late that has ended the job.
            assert!(ends.filter(|end| *end == End::Aborted { rank: 0, code: 7 }).count() > 0, "{how}");
        }
    }
}

#[test]
fn the_job_ends_at_ranks_that_poll_another_bundle() {
    let library = Library::built();
    let program = library.compile("elsewhere");
    for variables in [SHM, UDP] {
        for how in ["alone", "thread"] {
            let Ended { end, took, errors, .. } = library.run(&program, 3, &[how], variables);
            assert_eq!((end.code(), errors.as_str()), (0, ""), "{how}");
            assert!(took < Duration::from_secs(60), "{how}: {took:?}");
        }
    }
}

#[test]
fn the_endpoint_of_the_job_may_move() {
    passes("moved_job", &[1, 2, 3]);
}

#[test]
fn a_rank_that_fails_says_why() {
    let library = Library::built();
    let program = library.compile("ends");
    for variables in [SHM, UDP] {
        let Ended { end, errors, .. } = library.run(&program, 3, &["fatal", "0"], variables);
        assert_eq!(end.code(), 1, "{errors}");
        assert_eq!(errors, "netdyno-am: rank 2 has no more\n");
    }
}

#[test]
fn a_function_of_the_program_ends_each_process() {
    let library = Library::built();
    let program = library.compile("ends");
    for variables in [SHM, UDP] {
        let Ended { end, output, errors, .. } = library.run(&program, 3, &["own", "0"], variables);
        let mut lines: Vec<&str> = output.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, [0, 1, 2].map(|rank| format!("rank {rank} of its own with 0")), "{errors}");
        assert!(end == End::Done && errors.is_empty(), "{end}: {errors}");
    }
    // A launcher may end the process first if the code is not 0. Here is none.
    let output = library.command(&program).args(["own", "6"]).output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{output:?}");
    assert_eq!(output.stdout, b"rank 0 of its own with 6\n");
}

#[test]
fn a_rank_ends_while_a_thread_of_it_reads() {
    let library = Library::built();
    let program = library.compile("reads");
    for code in ["0", "3"] {
        let Ended { end, took, output, errors } = library.run(&program, 2, &[code], &[]);
        assert_eq!(end.code().to_string(), code, "{end}: {output}{errors}");
        assert!(output.contains("ends"), "{output}");
        assert!(took < Duration::from_secs(60), "{took:?}");
    }
}

/// A message to a rank that has ended the job well is no error.
#[test]
fn a_rank_ends_the_job_while_others_send_to_it() {
    let library = Library::built();
    let program = library.compile("job");
    for variables in [SHM, UDP] {
        let Ended { end, output, errors, .. } = library.run(&program, 3, &["1", "0", "flood"], variables);
        assert!(end == End::Done && errors.is_empty(), "{end}: {output}{errors}");
    }
}

/// A rank may call AM_Terminate before the end of the job. A rank that then returns from `main` is missed by those alone
/// that wait for it.
#[test]
fn the_library_may_be_terminated_before_the_job_ends() {
    let library = Library::built();
    let program = library.compile("terminated");
    for variables in [SHM, UDP] {
        for (how, ranks, code, says) in [
            ("exit", 3, 0, ""),
            ("exit", 1, 0, ""),
            ("code", 3, 3, ""),
            ("return", 3, 0, ""),
            ("missed", 2, 1, "rank 1: waits for rank 0 of 2, which has closed its endpoint"),
        ] {
            let Ended { end, output, errors, .. } = library.run(&program, ranks, &[how], variables);
            assert_eq!(end.code(), code, "{how}: {output}{errors}");
            assert!(errors.contains(says) && errors.is_empty() == says.is_empty(), "{how}: {errors}");
        }
    }
}

/// Has rank 1 of the program `killed` end, by this word or by a signal, in each way in which the others wait for it, over
/// both transports. Gives each job to `check`.
fn in_each_way(word: Option<&'static str>, check: impl Fn(&str, &Path, Ended)) {
    let library = Library::built();
    let program = library.compile("killed");
    for variables in [SHM, UDP] {
        for how in ["poll", "request", "barrier"] {
            let arguments: Vec<&str> = [how].into_iter().chain(word).collect();
            check(how, &program, library.run(&program, 3, &arguments, variables));
        }
    }
}

#[test]
fn a_killed_rank_ends_the_job() {
    in_each_way(None, |how, program, Ended { end, took, errors, .. }| {
        assert_eq!(end.to_string(), "rank 1 was killed by signal 9", "{how}: {errors}");
        // The launcher names the killed rank, and nobody else says more.
        assert_eq!(errors, "", "{how}");
        assert!(took < Duration::from_secs(60), "{how}: {took:?}");
        assert!(library::nobody_runs(program), "{how}");
    });
}

/// It has exit code 0, but has not ended its part in the job.
#[test]
fn a_rank_that_vanishes_ends_the_job() {
    in_each_way(Some("vanishes"), |how, _, Ended { end, errors, .. }| {
        assert_eq!((end, errors.as_str()), (End::Left { rank: 1 }, ""), "{how}");
    });
}

/// The rank that ends the job is named, also if others end first.
#[test]
fn the_rank_that_aborts_is_named() {
    let library = Library::built();
    let program = library.compile("job");
    let named = |variables: Variables| {
        let ends = (0..5).map(|_| library.run(&program, 4, &["2", "42"], variables).end);
        ends.filter(|end| *end == End::Aborted { rank: 2, code: 42 }).count()
    };
    // A busy machine may make it late.
    let named = [named(SHM), named(UDP)];
    assert!(named.iter().all(|named| *named >= 4), "{named:?} of 5");
}

/// The library notices the death of a rank by itself: here a shell hides it from the launcher.
#[test]
fn a_rank_whose_death_the_launcher_does_not_see_ends_the_job() {
    const HIDE: &str = r#""$0" "$@"; code=$?; [ $code != 137 ] || sleep 100; exit $code"#;
    let library = Library::built();
    let program = library.compile("killed");
    for (variables, hows) in [(SHM, &["poll", "request", "barrier"][..]), (UDP, &["request", "barrier"])] {
        for how in hows {
            let variables = [variables, &[("NETDYNO_AM_TIMEOUT", "2")]].concat();
            let program = [Path::new("sh"), Path::new("-c"), Path::new(HIDE), &program];
            let Ended { end, took, errors, .. } = library.run_by(&program, 3, &[how], &variables);
            assert_eq!(end.code(), 1, "{how}: {errors}");
            assert!(errors.contains("rank 1 of 3 is lost"), "{how}: {errors}");
            let others = errors.lines().filter(|line| !line.contains("rank 1 of 3 is lost"));
            // The shell's own word.
            assert!(others.into_iter().all(|line| line == "Killed"), "{how}: {errors}");
            assert!(took < Duration::from_secs(60), "{how}: {took:?}");
        }
    }
}

/// A rank that returns from `main` or calls `exit`, and has not ended the job, is missed by all others.
#[test]
fn a_rank_that_leaves_ends_the_job() {
    in_each_way(Some("leaves"), |how, _, Ended { end, took, errors, .. }| {
        assert_eq!(end.code(), 1, "{how}: {errors}");
        assert!(errors.lines().all(|line| line.contains("rank 1 of 3 ")), "{how}: {errors}");
        assert!(errors.contains("rank 1 of 3 "), "{how}: {errors}");
        assert!(took < Duration::from_secs(60), "{how}: {took:?}");
    });
}

#[test]
fn mpiexec_of_mpich_starts_the_ranks() {
    let Some(compiler) = mpich::compiler() else { return };
    let library = Library::built();
    for (name, arguments, code) in
        [("messages", &[][..], 0), ("gam", &[], 0), ("job", &["1", "42"], 42), ("killed", &["barrier"], 1)]
    {
        let program = library.compile(name);
        let mut command = library.command(&compiler.with_file_name("mpiexec.hydra"));
        let began = Instant::now();
        let output = command.args(["-n", "3"]).arg(&program).args(arguments).output().unwrap();
        assert_eq!(output.status.success(), code == 0, "{name}: {output:?}");
        // The launcher gives the code of the rank that has ended the job, or of one that it ended.
        assert!(code != 42 || output.status.code() == Some(code), "{name}: {output:?}");
        assert!(began.elapsed() < Duration::from_secs(60), "{name}: {:?}", began.elapsed());
    }
}

/// Without a launcher, over names of AMUDP, the program starts its ranks itself.
#[test]
fn a_program_starts_its_own_ranks() {
    let library = Library::built();
    let program = library.compile("spawns");
    for (arguments, code, says) in [
        (&["3", "L", "word"][..], 0, "3 ranks: word"),
        (&["2", "word"], 0, "2 ranks: word"),
        (&["1", "l", "word"], 0, "1 ranks: word"),
        (&["3", "L", "fail"], 5, "3 ranks: fail"),
        (&["x", "L", "word"], 1, "AM_ERR_BAD_ARG: the number of ranks is not above 0"),
        (&["0", "L", "word"], 1, "AM_ERR_BAD_ARG: the number of ranks is not above 0"),
        (&[], 1, "AM_ERR_BAD_ARG: the number of ranks is not above 0"),
    ] {
        let output = library.command(&program).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
}

/// A wrong setting is told in one line, if the program wants errors to be told.
#[test]
fn a_wrong_setting_is_told() {
    let library = Library::built();
    let program = library.compile("spawns");
    for (name, value, says) in [
        ("NETDYNO_AM_WIRE", "tcp", "NETDYNO_AM_WIRE='tcp' is no transport: use shm or udp"),
        ("NETDYNO_AM_ADDRESS", "nowhere", "NETDYNO_AM_ADDRESS='nowhere' is no IPv4 address"),
        ("NETDYNO_AM_TIMEOUT", "0", "NETDYNO_AM_TIMEOUT='0' is no number of seconds"),
        ("NETDYNO_AM_FAULTS", "lost=1", "NETDYNO_AM_FAULTS='lost=1': "),
    ] {
        let mut command = library.command(&program);
        let output = command.args(["2", "L", "word"]).env(name, value).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}={value}: {said}");
        assert!(said.contains(says), "{said}");
    }
}
