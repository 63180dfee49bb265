//! `netdyno export` end to end. The output for SimGrid is simulated if SimGrid is installed.

use crate::common::folder::Folder;
use crate::common::{error_of, run, stdout_of};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

const TRUTH: &str = "o_s=1us,o_r=2us,g=5us,L=7us";

/// Measures one launch of `truth` and writes a record.
fn measured(folder: &Folder, name: &str, truth: &str, size: &str) -> String {
    folder.measured(name, truth, &["--launches", "1", "--size", size])
}

/// Returns the output of an export, and its notes.
fn exported(args: &[&str]) -> (String, String) {
    let output = run(&[&["export"], args].concat());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{args:?}: {stderr}");
    assert!(stderr.lines().all(|line| line.starts_with("note: ")), "{stderr}");
    (String::from_utf8(output.stdout).unwrap(), stderr)
}

/// Returns the options of LogGOPSim by letter.
fn options(line: &str) -> BTreeMap<String, i64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.chunks(2).map(|pair| (pair[0].to_owned(), pair[1].parse().unwrap())).collect()
}

#[test]
fn loggopsim_gets_integers_that_give_the_round_trip_back() {
    let folder = Folder::new();
    let file = measured(&folder, "a.json", TRUTH, "32");
    let (text, notes) = exported(&[&file, "--to", "loggopsim"]);
    assert_eq!(text.lines().count(), 1, "{text}");
    let options = options(&text);
    assert_eq!(options.keys().map(String::as_str).collect::<String>(), "-G-L-O-S-g-o");
    let near = |name: &str, ns: i64| (options[name] - ns).abs() * 100 <= ns;
    assert!(near("-o", 1500) && near("-L", 7000) && near("-g", 5000), "{text}");
    assert!((options["-L"] + 2 * options["-o"] - 10_000).abs() <= 1, "{text}");
    assert_eq!((options["-G"], options["-O"]), (0, 0));
    assert!(
        notes.contains("G = 0: it is not measured") && notes.contains("o is half of o_s + o_r"),
        "{notes}"
    );

    let (text, _) = exported(&[&file, "--to", "loggopsim", "--time-unit", "ps"]);
    assert!((self::options(&text)["-o"] - 1_500_000).abs() < 15_000, "{text}");
}

#[test]
fn bounds_and_gaps_are_told_and_never_made_up() {
    let folder = Folder::new();
    let of = |truth: &str| {
        let file = measured(&folder, "a.json", truth, "32");
        let (text, notes) = exported(&[&file, "--to", "loggopsim"]);
        (options(&text), notes)
    };
    let (bound, notes) = of("o_s=4us,o_r=5us,g=2us,L=7us");
    assert!((8_900..9_100).contains(&bound["-g"]) && notes.contains("g is an upper bound"), "{notes}");
    let (windowed, notes) = of("o_s=1us,o_r=2us,g=5us,L=70us,window=4");
    assert!((36_000..37_000).contains(&windowed["-g"]) && notes.contains("g is an upper bound"), "{notes}");

    // The overheads overlap with the latency, as on loopback.
    let file = measured(&folder, "b.json", TRUTH, "32");
    let overlapping = folder.edited(&file, "overlapping.json", |record| {
        record["results"][0]["parameters"]["rtt"]["value_ns"] = 5_000.0.into();
    });
    let (text, notes) = exported(&[&overlapping, "--to", "loggopsim"]);
    assert_eq!(options(&text)["-L"], 0);
    assert!(notes.contains("longer than measured"), "{notes}");
    let (platform, notes) = exported(&[&overlapping, "--to", "simgrid"]);
    assert!(
        platform.contains("latency=\"0.000000e0s\"") && notes.contains("longer than measured"),
        "{platform}"
    );
}

#[test]
fn sizes_of_several_records_make_a_curve() {
    let folder = Folder::new();
    let small = measured(&folder, "small.json", TRUTH, "32");
    let large = measured(&folder, "large.json", "o_s=2us,o_r=4us,g=9us,L=10us", "4128");
    let (text, notes) = exported(&[&large, &small, "--to", "loggopsim", "--time-unit", "ps"]);
    let options = options(&text);
    // 6 µs in 4096 bytes, and o is half of the additional 3 µs.
    assert!((options["-G"] - 1465).abs() < 15 && (options["-O"] - 366).abs() < 4, "{text}");
    assert!(notes.contains("the gap itself is not measured"), "{notes}");

    let (csv, _) = exported(&[&large, &small, "--to", "csv"]);
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(&rows[0][..6], &["layer", "verb", "wait", "size_bytes", "T_status", "T_ns"]);
    assert_eq!((rows.len(), rows[1].len(), rows[1][3], rows[2][3]), (3, rows[0].len(), "32", "4128"));
    assert_eq!(&rows[0][rows[0].len() - 3..], &["label", "faults", "dials"]);
    let one_way: f64 = rows[2][5].parse().unwrap();
    assert!((one_way / 16_000.0 - 1.0).abs() < 0.01, "{csv}");
    assert!(csv.contains(",unobservable,,,"), "G has no figure: {csv}");

    let line = error_of(&["export", &small, &small, "--to", "simgrid"], 2);
    assert!(line.contains("32 B more than once"), "{line}");
}

#[test]
fn bulk_gives_the_gap_per_byte_and_every_size() {
    let folder = Folder::new();
    let file = folder.path("bulk.json");
    let truth = format!("{TRUTH},G=0.5ns/B,change=8KiB,change_G=0.25ns/B,change_L=2us");
    let args = ["bulk", "--over", "sim", "--truth", &truth, "--launches", "1", "--largest", "64KiB"];
    stdout_of(&[&args[..], &["--out", &file]].concat());
    let (text, notes) = exported(&[&file, "--to", "loggopsim", "--time-unit", "ps"]);
    assert!((options(&text)["-G"] - 250).abs() <= 3, "{text}");
    assert!(notes.contains("off by up to -14"), "{notes}");
    let (text, notes) = exported(&[&file, "--to", "loggopsim"]);
    assert_eq!(options(&text)["-G"], 0);
    assert!(notes.contains("G = 0, rounded from 0.25") && notes.contains("--time-unit ps"), "{notes}");

    let (csv, _) = exported(&[&file, "--to", "csv"]);
    let of_size =
        |size: &str| csv.lines().find(|line| line.starts_with(&format!("sim,bulk,virtual,{size},")));
    let per_byte =
        |size: &str| -> f64 { of_size(size).unwrap().split(',').nth_back(5).unwrap().parse().unwrap() };
    assert!((per_byte("1024") - 0.5).abs() < 0.01 && (per_byte("65536") - 0.25).abs() < 0.005, "{csv}");

    let (platform, _) = exported(&[&file, "--to", "simgrid"]);
    let Some(trips) = simulated(folder.0.path(), &platform, &["4096", "65536"]) else { return };
    let expected = [(4096, 20e3 + 4095.0), (65_536, 24e3 + 65_535.0 / 2.0)];
    for (size, ns) in expected {
        assert!(
            (trips.get(&size).unwrap_or(&0.0) / ns - 1.0).abs() < 0.01,
            "{size} B: {trips:?}; {platform}"
        );
    }
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let folder = Folder::new();
    let file = measured(&folder, "a.json", TRUTH, "32");
    let with = |name: &str, edit: fn(&mut Value)| folder.edited(&file, name, edit);
    let two = with("two.json", |record| {
        let mut result = record["results"][0].clone();
        result["layer"] = "udp".into();
        record["results"].as_array_mut().unwrap().push(result);
    });
    let none = with("none.json", |record| record["results"] = Value::Array(Vec::new()));
    let unseen = with("unseen.json", |record| {
        let o_r = &mut record["results"][0]["parameters"]["o_r"];
        (o_r["status"], o_r["value_ns"]) = ("unobservable".into(), Value::Null);
    });
    let negative = with("negative.json", |record| {
        record["results"][0]["parameters"]["o_s"]["value_ns"] = (-3.0).into();
    });
    let endless = with("endless.json", |record| {
        record["results"][0]["parameters"]["rtt"]["value_ns"] = 1e12.into();
    });
    let eternal = with("eternal.json", |record| {
        record["results"][0]["parameters"]["rtt"]["value_ns"] = 1e300.into();
    });
    let dialled = with("dialled.json", |record| {
        let result = &mut record["results"][0];
        (result["size_bytes"], result["dials"]) = (64.into(), "latency=1us".into());
    });
    let gets = folder.path("gets.json");
    let args = ["bulk", "--over", "sim", "--truth", TRUTH, "--largest", "1KiB", "--direction", "get"];
    stdout_of(&[&args[..], &["--launches", "1", "--max-time", "1s", "--out", &gets]].concat());
    let cases: &[(&[&str], &str)] = &[
        (&[&file], "--to"),
        (&[&file, &dialled, "--to", "loggopsim"], "sim differ in the dials"),
        (&[&gets, "--to", "simgrid"], "measured by gets"),
        (&["--to", "csv"], "FILE"),
        (&[&file, "--to", "matlab"], "loggopsim, simgrid, csv"),
        (&["/nonexistent.json", "--to", "csv"], "/nonexistent.json"),
        (&[&two, "--to", "simgrid"], "sim, udp"),
        (&[&format!("{two}:tcp"), "--to", "simgrid"], "no layer 'tcp'"),
        (&[&none, "--to", "loggopsim"], "no result"),
        (&[&unseen, "--to", "loggopsim"], "o_r of sim"),
        (&[&unseen, "--to", "simgrid"], "o_r of sim"),
        (&[&negative, "--to", "simgrid"], "-3.0 ns"),
        (&[&endless, "--to", "loggopsim"], "32 bits"),
        (&[&eternal, "--to", "loggopsim"], "0 to 1e15 ns"),
        (&[&eternal, "--to", "simgrid"], "0 to 1e15 ns"),
        (&[&file, "--to", "csv", "--out", "/nonexistent/file"], "/nonexistent/file"),
    ];
    for (args, names) in cases {
        let line = error_of(&[&["export"], *args].concat(), 2);
        assert!(line.contains(names), "{args:?}: {line}");
    }
    exported(&[&format!("{two}:udp"), "--to", "simgrid"]);
    exported(&[&endless, "--to", "simgrid"]);
    exported(&[&unseen, "--to", "csv"]);
}

/// A ping-pong of each size in its arguments; prints the size and the round trip.
const PING_PONG: &str = r#"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 1; i < argc; i++) {
        int n = atoi(argv[i]), trips = 100;
        char *data = malloc(n + 1);
        double began = MPI_Wtime();
        for (int trip = 0; trip < trips; trip++) {
            for (int turn = 0; turn < 2; turn++) {
                if (rank == turn) MPI_Send(data, n, MPI_BYTE, 1 - turn, 0, MPI_COMM_WORLD);
                else MPI_Recv(data, n, MPI_BYTE, turn, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
        }
        if (rank == 0) printf("%d %.12g\n", n, (MPI_Wtime() - began) / trips * 1e9);
        free(data);
    }
    MPI_Finalize();
    return 0;
}
"#;

/// Returns the simulated round trips of `sizes` on an exported platform, or `None` without SimGrid.
fn simulated(folder: &Path, platform: &str, sizes: &[&str]) -> Option<BTreeMap<usize, f64>> {
    let run = |command: &mut Command| {
        let output = command.current_dir(folder).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        Some(text)
    };
    for (name, text) in [("pp.c", PING_PONG), ("hosts", "requester\nreplier\n"), ("platform.xml", platform)] {
        fs::write(folder.join(name), text).unwrap();
    }
    run(Command::new("smpicc").args(["pp.c", "-o", "pp"]))?;
    let fixed = ["--cfg=smpi/simulate-computation:no", "--cfg=smpi/wtime:0"];
    let where_ = ["-np", "2", "-platform", "platform.xml", "-hostfile", "hosts", "./pp"];
    let text = run(Command::new("smpirun").args(fixed).args(where_).args(sizes))?;
    let pair = |line: &str| {
        let (size, ns) = line.split_once(' ')?;
        Some((size.parse().ok()?, ns.parse().ok()?))
    };
    Some(text.lines().filter_map(pair).collect())
}

#[test]
fn simgrid_simulates_the_round_trips_that_were_measured() {
    let folder = Folder::new();
    let small = measured(&folder, "small.json", "o_s=28ns,o_r=34ns,g=70ns,L=85ns", "32");
    let medium = measured(&folder, "medium.json", "o_s=128ns,o_r=134ns,g=300ns,L=300ns", "1024");
    let large = measured(&folder, "large.json", "o_s=1us,o_r=2us,g=5us,L=1us", "4096");
    let (platform, notes) = exported(&[&small, &medium, &large, "--to", "simgrid"]);
    assert!(platform.contains("<prop id=\"smpi/or\" value=\"0:"), "{platform}");
    assert!(notes.contains("g is not in it"), "{notes}");
    let sizes = ["1", "32", "528", "1024", "2560", "4096", "8192"];
    let Some(trips) = simulated(folder.0.path(), &platform, &sizes) else {
        println!("no SimGrid: not simulated");
        return;
    };
    // The sizes are those measured, those halfway between, and a larger one.
    let expected = [
        (1, 294.0),
        (32, 294.0),
        (528, (294.0 + 1124.0) / 2.0),
        (1024, 1124.0),
        (2560, (1124.0 + 8_000.0) / 2.0),
        (4096, 8_000.0),
        (8192, 8_000.0 + (8_000.0 - 1124.0) / 3.0 * 4.0),
    ];
    for (size, ns) in expected {
        assert!(
            (trips.get(&size).unwrap_or(&0.0) / ns - 1.0).abs() < 0.02,
            "{size} B: {trips:?}; {platform}"
        );
    }
}
