//! The command as people run it. This program is both the command, when it is given arguments
//! that a test gives it, and its test: a benchmark executes itself once more, and so must be the
//! whole program.

use std::alloc::System;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, ExitCode, Output, Stdio};

use playfield_bench::workloads::colyseus::Table;
use playfield_room::{RoomType, schema};
use playfield_server::{Config, Server};
use playfield_wire::schema::RoomSchema;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

/// Counts, as that of the tool does.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const TESTS: &[(&str, fn())] = &[
    ("help_names_every_command", help_names_every_command),
    ("an_unknown_option_is_named", an_unknown_option_is_named),
    ("bench_sync_verifies_what_it_counts", bench_sync_verifies_what_it_counts),
    ("bench_sync_verifies_entities_and_windows", bench_sync_verifies_entities_and_windows),
    ("bench_sync_notices_one_damaged_message", bench_sync_notices_one_damaged_message),
    ("bench_rooms_verifies_what_it_counts", bench_rooms_verifies_what_it_counts),
    ("bench_rooms_notices_one_damaged_message", bench_rooms_notices_one_damaged_message),
    ("bench_websocket_verifies_what_it_counts", bench_websocket_verifies_what_it_counts),
    ("bench_websocket_notices_one_damaged_byte", bench_websocket_notices_one_damaged_byte),
    ("a_case_ends_with_the_command_that_runs_it", a_case_ends_with_the_command_that_runs_it),
    ("a_nodes_schema_is_shown", a_nodes_schema_is_shown),
    (
        "it_serves_without_a_command_until_it_is_told_to_stop",
        it_serves_without_a_command_until_it_is_told_to_stop,
    ),
];

fn main() -> ExitCode {
    if matches!(
        std::env::args().nth(1).as_deref(),
        Some("bench" | "schema" | "help" | "serve" | "--listen")
    ) {
        playfield_cli::count_allocations_by(|| {
            let stats = ALLOCATOR.stats();
            playfield_cli::Allocations {
                count: (stats.allocations + stats.reallocations) as u64,
                live_bytes: (stats.bytes_allocated - stats.bytes_deallocated) as u64,
            }
        });
        return playfield_cli::main(Server::new);
    }
    let filter =
        std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    for (name, test) in TESTS.iter().filter(|(name, _)| name.contains(&filter)) {
        test();
        println!("test {name} ... ok");
    }
    ExitCode::SUCCESS
}

fn playfield(arguments: &[&str]) -> Output {
    let this = std::env::current_exe().expect("this program has a path");
    Command::new(this).args(arguments).output().expect("this program can be run")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn help_names_every_command() {
    let output = playfield(&["help"]);
    assert!(output.status.success());
    for command in ["serve", "bench", "schema", "help"] {
        assert!(text(&output.stdout).contains(&format!("\n  {command} ")), "{command}");
    }
}

fn an_unknown_option_is_named() {
    let output = playfield(&["bench", "sync", "--player", "3"]);
    assert_eq!(output.status.code(), Some(2));
    let errors = text(&output.stderr);
    assert!(errors.contains("--player;") && errors.contains("--players, --cards"), "{errors}");
    let output = playfield(&["bench", "sync", "--order=scattered"]);
    assert_eq!(output.status.code(), Some(2));
    let errors = text(&output.stderr);
    assert!(errors.contains("the workload swift has nothing that --order is about"), "{errors}");
}

/// Both workloads and formats, few players, few sequences.
const SMALL: &[&[&str]] = &[
    &["--workload=swift", "--scenario=A", "--format=packed"],
    &["--workload=swift", "--scenario=B", "--format=json"],
    &["--workload=swift", "--scenario=B", "--tracking=off"],
    &["--workload=colyseus", "--scenario=A", "--format=json"],
    &["--workload=colyseus", "--scenario=B", "--hands=0.8"],
];

fn small(case: &[&str], more: &[&str]) -> Output {
    let arguments = ["bench", "sync", "--json", "--players=4", "--sequences=2"];
    playfield(&[&arguments, case, more].concat())
}

fn bench_sync_verifies_what_it_counts() {
    for case in SMALL {
        let output = small(case, &[]);
        let line = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{case:?}: {line}{}", text(&output.stderr));
        // Two rooms by the wall clock and eight by the processor's, each with snapshots, 105 syncs,
        // at the hundredth version a digest, and for the first two snapshots again.
        let messages = 4 * (10 + 10 * 105 + 10 + 2);
        assert!(
            line.contains(&format!(
                r#""messages":{messages},"compared":{messages},"verified":true"#
            )),
            "{line}"
        );
    }
}

fn bench_sync_verifies_entities_and_windows() {
    for workload in ["entities", "windows"] {
        let size = ["--entities=300", "--changed=20", "--moving=2"];
        let case = format!("--workload={workload}");
        let output = small(&[&case], &size);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains(r#""verified":true"#));
        let output = small(&[&case], &[&size[..], &["--corrupt-one"]].concat());
        assert_eq!(output.status.code(), Some(1));
    }
}

fn bench_sync_notices_one_damaged_message() {
    for case in SMALL {
        let output = small(case, &["--corrupt-one"]);
        let line = text(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{case:?}: {line}");
        assert!(line.contains(r#""verified":false"#), "{line}");
    }
}

fn few_rooms(more: &[&str]) -> Output {
    let arguments =
        ["bench", "rooms", "--json", "--rooms=2", "--players=3", "--seconds=1", "--warm-up-ms=100"];
    playfield(&[&arguments, more].concat())
}

fn bench_rooms_verifies_what_it_counts() {
    for more in [&["--transport=ws"][..], &["--transport=tcp"], &["--inputs-hz=10"], &["--hz=50"]] {
        let output = few_rooms(more);
        let line = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{more:?}: {line}{}", text(&output.stderr));
        for expected in [r#""clients":6,"#, r#""lost":0,"#, r#""verified":true,"#, r#""ratio":"#] {
            assert!(line.contains(expected), "{expected} is not in {line}");
        }
    }
}

fn bench_rooms_notices_one_damaged_message() {
    for transport in ["--transport=ws", "--transport=tcp"] {
        let output = few_rooms(&[transport, "--corrupt-one"]);
        let line = text(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{line}");
        assert!(line.contains(r#""verified":false"#), "{line}");
    }
}

fn quick_websocket(more: &[&str]) -> Output {
    let arguments = ["bench", "websocket", "--json", "--rounds=1", "--round-ms=1"];
    playfield(&[&arguments, more].concat())
}

fn bench_websocket_verifies_what_it_counts() {
    let output = quick_websocket(&[]);
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{lines}{}", text(&output.stderr));
    // Four sizes, read and copied in both forms; messages compressed and decompressed, without and
    // with context, at two levels.
    assert_eq!(lines.lines().count(), 4 * 2 * 2 + 2 * 2 * 2, "{lines}");
    for line in lines.lines() {
        assert!(line.contains(r#""verified":true"#), "{line}");
        let row: Value = serde_json::from_str(line).expect("an object");
        let name = row["row"].as_str().expect("a name");
        assert!(
            row["ns_per_op"].as_f64() > Some(0.0) && row["bytes_per_s"].as_f64() > Some(0.0),
            "{line}"
        );
        assert_eq!(row["of_memcpy"].is_number(), name.starts_with("parse"), "{line}");
        assert_eq!(
            row["compressed_to"].is_number(),
            name.contains("press") || name.contains("inflate"),
            "{line}"
        );
        // Who keeps no context keeps nothing more than before the first message.
        let has_grown = row["idle_bytes"].as_f64() > row["new_bytes"].as_f64();
        assert_eq!(row["idle_bytes"].is_number(), row["compressed_to"].is_number(), "{line}");
        assert_eq!(has_grown, name.contains("takeover"), "{line}");
        assert!(row["allocations_per_op"].is_number(), "{line}");
    }
}

fn bench_websocket_notices_one_damaged_byte() {
    let output = quick_websocket(&["--corrupt-one"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    for line in text(&output.stdout).lines() {
        assert!(line.contains(r#""verified":false"#), "{line}");
    }
}

fn a_case_ends_with_the_command_that_runs_it() {
    let this = std::env::current_exe().expect("this program has a path");
    let mut case = Command::new(this)
        .args(["bench", "sync", "--in-process", "--workload=swift", "--sequences=1000000"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("this program can be run");
    drop(case.stdin.take());
    assert_eq!(case.wait().expect("it can be waited for").code(), Some(1));
}

fn a_nodes_schema_is_shown() {
    let config = Config {
        listen: "127.0.0.1:0".parse().expect("an address"),
        shards: 1,
        ..Config::default()
    };
    let node =
        Server::new(config).room_type(RoomType::of::<Table>("table")).start().expect("it starts");
    for scheme in ["tcp", "ws"] {
        let url = format!("{scheme}://{}", node.local_addr());
        let output = playfield(&["schema", &url, "table"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), schema::<Table>().to_json_pretty() + "\n");
        RoomSchema::from_json(&output.stdout).expect("a schema");
        let output = playfield(&["schema", &url, "chair"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("unknown_room_type"), "{}", text(&output.stderr));
    }
    assert_eq!(playfield(&["schema", "tcp://127.0.0.1"]).status.code(), Some(2));
}

fn it_serves_without_a_command_until_it_is_told_to_stop() {
    let this = std::env::current_exe().expect("this program has a path");
    let mut server = Command::new(this)
        .args(["--listen", "127.0.0.1:0", "--shards=1"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program can be run");
    let mut line = String::new();
    let output = server.stdout.take().expect("its output is piped");
    BufReader::new(output).read_line(&mut line).expect("it says where it listens");
    let address = line.trim().strip_prefix("listening on ").expect("an address");

    let mut client = TcpStream::connect(address).expect("it listens there");
    client.write_all(b"HEAD /nothing HTTP/1.1\r\nHost: here\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("it answers, and closes");
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    let id = i32::try_from(server.id()).ok().and_then(Pid::from_raw).expect("it has a number");
    kill_process(id, Signal::TERM).expect("it still runs");
    assert!(server.wait().expect("it can be waited for").success());
}
