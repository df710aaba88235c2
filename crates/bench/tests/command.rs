//! The benchmarks as a user runs them: everything they count is verified.

use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::process::{Command, Output, Stdio};

use playfield_room::{Context, Handle, Message, Player, Result, Room, RoomType, room};
use playfield_server::{Config, Server};
use playfield_state::State;
use serde_json::Value;

const PLAYFIELD: &str = env!("CARGO_BIN_EXE_playfield-bench");

fn playfield(arguments: &[&str]) -> Output {
    Command::new(PLAYFIELD).args(arguments).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn help_names_every_command() {
    let output = playfield(&["help"]);
    assert!(output.status.success());
    for command in ["bench", "load", "schema", "help"] {
        assert!(text(&output.stdout).contains(&format!("\n  {command} ")), "{command}");
    }
}

#[test]
fn an_unknown_option_is_named() {
    let output = playfield(&["bench", "sync", "--player", "3"]);
    assert_eq!(output.status.code(), Some(2));
    let errors = text(&output.stderr);
    assert!(errors.contains("unknown option --player; did you mean --players?"), "{errors}");
    let output = playfield(&["bench", "sync", "--order=scattered"]);
    assert_eq!(output.status.code(), Some(2));
    let errors = text(&output.stderr);
    assert!(errors.contains("--order has no effect on the workload swift"), "{errors}");
}

/// Both workloads and formats, with few players and few sequences.
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

#[test]
fn bench_sync_verifies_what_it_counts() {
    for case in SMALL {
        let output = small(case, &[]);
        let line = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{case:?}: {line}{}", text(&output.stderr));
        // Two rooms by wall-clock time and eight by CPU time. Each sends snapshots, 105 syncs, and
        // a digest at version 100; the first two send snapshots again.
        let messages = 4 * (10 + 10 * 105 + 10 + 2);
        assert!(
            line.contains(&format!(
                r#""messages":{messages},"compared":{messages},"verified":true"#
            )),
            "{line}"
        );
    }
}

#[test]
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

#[test]
fn bench_sync_notices_one_damaged_message() {
    for case in SMALL {
        let output = small(case, &["--corrupt-one"]);
        let line = text(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{case:?}: {line}");
        assert!(line.contains(r#""verified":false"#), "{line}");
    }
}

#[test]
fn a_report_is_written_with_its_rows_and_left_by_a_run_that_fails() {
    let folder = std::env::temp_dir().join(format!("playfield-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (page, rows) = (folder.join("bench.html"), folder.join("bench.jsonl"));
    let (page_name, rows_name) = (page.to_str().expect("text"), rows.to_str().expect("text"));
    let report = ["--report", page_name];
    let output = small(SMALL[0], &report);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let written = std::fs::read_to_string(&page).expect("a page");
    let row = std::fs::read_to_string(&rows).expect("rows");
    assert_eq!(row, text(&output.stdout));
    let row: Value = serde_json::from_str(&row).expect("one record");
    assert!(row["calibration_us"].is_number() && row["profile"].is_string() && row["results"] == 1);
    for name in ["sync_us_p50", "bytes_per_sync"] {
        assert!(written.contains(&format!("<td class=\"n\">{}</td>", row[name])), "{name}");
    }
    assert!(written.contains("calibration_us"), "the page describes the machine");
    let same = playfield(&["bench", "compare", rows_name, rows_name]);
    assert_eq!(same.status.code(), Some(0), "{}", text(&same.stderr));
    assert!(text(&same.stdout).contains("worse: 0"), "{}", text(&same.stdout));

    assert_eq!(small(SMALL[0], &["--corrupt-one", report[0], report[1]]).status.code(), Some(1));
    assert_eq!(std::fs::read_to_string(&page).expect("the old page"), written);
    for (wrong, why) in [
        ("/nowhere/bench.html", "name a file in a folder that exists"),
        ("", "name a file in a folder that exists"),
        ("rows.jsonl", "name the page, such as rows.html"),
    ] {
        let refused = small(SMALL[0], &["--report", wrong]);
        assert_eq!(refused.status.code(), Some(2), "{wrong}");
        assert!(refused.stdout.is_empty(), "nothing is run");
        assert!(text(&refused.stderr).contains(why), "{}", text(&refused.stderr));
    }
    std::fs::remove_dir_all(&folder).expect("the folder is gone");
}

#[test]
fn bench_audit_finds_each_planted_leak_and_notices_one_that_is_not_found() {
    let output = playfield(&["bench", "audit", "--json"]);
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{lines}{}", text(&output.stderr));
    let all: Value = serde_json::from_str(lines.lines().last().expect("a row")).expect("JSON");
    assert!(all["planted"].as_u64() >= Some(20) && all["found"] == all["planted"], "{lines}");
    assert_eq!((&all["false_alarms"], &all["verified"]), (&0.into(), &true.into()), "{lines}");
    // In each room, one leak does not exist, and one is in another place.
    let output = playfield(&["bench", "audit", "--json", "--corrupt-one"]);
    assert_eq!(output.status.code(), Some(1));
    let lines = text(&output.stdout);
    let fewer: Value = serde_json::from_str(lines.lines().last().expect("a row")).expect("JSON");
    assert_eq!(fewer["found"].as_u64(), all["found"].as_u64().map(|found| found - 4), "{lines}");
    assert_eq!(fewer["verified"], false, "{lines}");
}

#[test]
fn bench_journal_looks_for_every_answer_after_a_kill_and_notices_lost_ones() {
    let arguments = ["bench", "journal", "--quick", "--json", "--window=5"];
    let output = playfield(&arguments);
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{lines}{}", text(&output.stderr));
    let row: Value = serde_json::from_str(lines.trim()).expect("one record");
    assert_eq!((&row["killed"], &row["verified"]), (&8.into(), &true.into()), "{row}");
    assert!(row["fdatasync_us_p50"].as_f64() > Some(0.0), "{row}");
    let output = playfield(&[&arguments[..], &["--corrupt-one"]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains(r#""verified":false"#));
    assert!(text(&output.stderr).contains(" requests were answered, and "));
}

#[test]
fn bench_replay_verifies_what_it_finds_and_notices_a_damaged_recording() {
    let output = playfield(&["bench", "replay", "--quick", "--json"]);
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{lines}{}", text(&output.stderr));
    assert!(lines.lines().all(|line| line.contains(r#""verified":true"#)), "{lines}");
    let output = playfield(&["bench", "replay", "--quick", "--json", "--corrupt-one"]);
    assert_eq!(output.status.code(), Some(1));
    let lines = text(&output.stdout);
    assert!(lines.lines().all(|line| line.contains(r#""verified":false"#)), "{lines}");
}

#[test]
fn bench_worlds_verifies_what_it_counts_and_notices_one_damaged_message() {
    let arguments = ["bench", "worlds", "--json", "--rounds=1", "--syncs=2"];
    let row = ["--row", "windows, players move"];
    let output = playfield(&[&arguments[..], &row].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let ways: Vec<Value> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("one record in each line"))
        .collect();
    assert_eq!(ways.len(), 2);
    assert!(ways.iter().all(|way| way["verified"] == true && way["bytes_per_sync"].is_number()));
    // Both ways send the same.
    assert_eq!(ways[0]["bytes_per_sync"], ways[1]["bytes_per_sync"]);
    let output = playfield(&[&arguments[..], &row, &["--corrupt-one"]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains(r#""verified":false"#));
}

fn few_rooms(more: &[&str]) -> Output {
    let arguments =
        ["bench", "rooms", "--json", "--rooms=2", "--players=3", "--seconds=1", "--warm-up-ms=100"];
    playfield(&[&arguments, more].concat())
}

#[test]
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

#[test]
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

#[test]
fn bench_websocket_verifies_what_it_counts() {
    let output = quick_websocket(&[]);
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{lines}{}", text(&output.stderr));
    // Four sizes, each read and copied, in both forms. Messages compressed and decompressed, with
    // and without context, at two levels.
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
        // Without a context, an idle connection keeps no more than before its first message.
        let has_grown = row["idle_bytes"].as_f64() > row["new_bytes"].as_f64();
        assert_eq!(row["idle_bytes"].is_number(), row["compressed_to"].is_number(), "{line}");
        assert_eq!(has_grown, name.contains("takeover"), "{line}");
        assert!(row["allocations_per_op"].is_number(), "{line}");
    }
}

#[test]
fn bench_websocket_notices_one_damaged_byte() {
    let output = quick_websocket(&["--corrupt-one"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    for line in text(&output.stdout).lines() {
        assert!(line.contains(r#""verified":false"#), "{line}");
    }
}

fn quick_store(more: &[&str]) -> Output {
    let arguments =
        ["bench", "store", "--json", "--rounds=1", "--round-ms=1", "--rooms=40", "--window-ms=1"];
    playfield(&[&arguments, more].concat())
}

#[test]
fn bench_store_verifies_what_it_counts() {
    let output = quick_store(&[]);
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{lines}{}", text(&output.stderr));
    let rows: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    // Three states, each copied, saved, saved again and loaded; keyed rooms; and ticks.
    assert_eq!(rows.len(), 3 * 4 + 1 + 3, "{lines}");
    assert!(rows.iter().all(|row| row["verified"] == true && row["row"].is_string()), "{lines}");
    assert_eq!(rows[12]["rooms"], 40);
    let done: Vec<_> = rows[13..]
        .iter()
        .map(|row| ["saves", "loads"].map(|name| row[name].as_u64() > Some(0)))
        .collect();
    // The first save of a window need not have ended with it.
    assert_eq!((done[0], done[1][1], done[2]), ([false; 2], false, [true; 2]), "{lines}");
    assert!(rows[13..].iter().all(|row| row["late_us_p99"].is_number()), "{lines}");
}

#[test]
fn bench_store_notices_what_is_corrupt_in_every_row() {
    let output = quick_store(&["--corrupt-one"]);
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert_eq!(lines.lines().count(), 16, "{lines}");
    assert!(lines.lines().all(|line| line.contains(r#""verified":false"#)), "{lines}");
}

#[test]
fn bench_store_runs_one_row_and_lists_them_all() {
    let output = quick_store(&["--row", "text, load"]);
    let lines = text(&output.stdout);
    assert_eq!(lines.lines().count(), 1, "{lines}");
    assert!(lines.contains(r#""row":"text, load""#), "{lines}");
    let output = quick_store(&["--row", "books"]);
    assert_eq!(output.status.code(), Some(2));
    let errors = text(&output.stderr);
    let listed = ["unknown row \"books\"", "game, save again;", "keyed rooms;", "saves and loads"];
    assert!(listed.iter().all(|listed| errors.contains(listed)), "{errors}");
}

fn quick_http(more: &[&str]) -> Output {
    let arguments = ["bench", "http", "--json", "--rounds=1", "--round-ms=50", "--connections=4"];
    playfield(&[&arguments, more].concat())
}

#[test]
fn bench_http_verifies_what_it_counts() {
    let output = quick_http(&[]);
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{lines}{}", text(&output.stderr));
    let rows: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    let targets: Vec<_> = rows.iter().map(|row| row["target"].as_str()).collect();
    assert_eq!(targets, [Some("room"), Some("page"), Some("bare")]);
    for row in rows {
        assert!(row["requests"].as_u64() > Some(0) && row["verified"] == true, "{row}");
    }
}

#[test]
fn bench_http_notices_one_damaged_reply() {
    let output = quick_http(&["--corrupt-one"]);
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{lines}");
    assert!(lines.lines().all(|line| line.contains(r#""verified":false"#)), "{lines}");
}

fn quick_tls(more: &[&str]) -> Output {
    let arguments = ["bench", "tls", "--json", "--connections=20", "--handshakes=20", "--rounds=1"];
    playfield(&[&arguments, &["--rooms=1", "--seconds=1"][..], more].concat())
}

#[test]
fn bench_tls_verifies_what_it_counts() {
    let output = quick_tls(&[]);
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{lines}{}", text(&output.stderr));
    let rows: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    let names: Vec<_> = rows.iter().map(|row| row["row"].as_str()).collect();
    assert_eq!(names, [Some("rooms"), Some("handshakes"), Some("held")]);
    for row in rows {
        assert!(row["ratio"].as_f64() > Some(0.0) && row["verified"] == true, "{row}");
    }
}

#[test]
fn bench_tls_notices_one_damaged_byte_in_every_row() {
    for row in ["rooms", "handshakes", "held"] {
        let output = quick_tls(&["--corrupt-one", "--row", row]);
        let lines = text(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{row}: {lines}");
        assert!(lines.contains(r#""verified":false"#), "{lines}");
    }
}

#[test]
fn bench_jwt_verifies_what_it_counts() {
    let arguments = ["bench", "jwt", "--json", "--sessions=20", "--rounds=1"];
    for (more, status) in [(&[][..], 0), (&["--corrupt-one"], 1)] {
        let output = playfield(&[&arguments[..], more].concat());
        let lines = text(&output.stdout);
        assert_eq!(output.status.code(), Some(status), "{lines}{}", text(&output.stderr));
        let verified = format!(r#""verified":{}"#, status == 0);
        assert_eq!(lines.matches(&verified).count(), 4, "{lines}");
    }
}

#[test]
fn bench_resume_verifies_what_it_counts() {
    let arguments = ["bench", "resume", "--json", "--sessions=40", "--rounds=1", "--calm-ms=1200"];
    for (more, status) in [(&[][..], 0), (&["--corrupt-one"], 1)] {
        let output = playfield(&[&arguments[..], more].concat());
        let lines = text(&output.stdout);
        assert_eq!(output.status.code(), Some(status), "{lines}{}", text(&output.stderr));
        assert_eq!(lines.lines().count(), 7, "{lines}");
        let last = lines.lines().next_back().expect("a row");
        let back: Value = serde_json::from_str(last).expect("an object");
        assert_eq!(back["verified"], status == 0, "{back}");
        let [welcomed, settled] = ["welcomed_s", "settled_s"].map(|name| back[name].as_f64());
        assert!(welcomed > Some(0.0) && settled >= welcomed, "{back}");
        // Each of 40 sessions missed an event at least, and received it after all.
        assert!(status != 0 || back["events_since_cut"].as_u64() >= Some(40), "{back}");
    }
}

#[test]
fn bench_upgrade_verifies_what_it_counts() {
    for (more, status) in [(&[][..], 0), (&["--corrupt-one"], 1)] {
        let output = playfield(&[&["bench", "upgrade", "--quick", "--json"], more].concat());
        let lines = text(&output.stdout);
        assert_eq!(output.status.code(), Some(status), "{lines}{}", text(&output.stderr));
        let rows: Vec<Value> =
            lines.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
        let names: Vec<_> = rows.iter().map(|row| row["row"].as_str()).collect();
        assert_eq!(names, [Some("upgrades"), Some("freeze"), Some("thaw")]);
        assert!(rows.iter().all(|row| row["verified"] == (status == 0)), "{lines}");
        assert!(rows[0]["upgrades"] == 2 && rows[0]["snapshots"] == 0, "{lines}");
        assert!(rows[0]["pause_ms_p50"].as_f64() > Some(0.0), "{lines}");
    }
}

#[test]
fn bench_connections_verifies_what_it_counts() {
    for suite in ["connections", "heartbeat", "soak"] {
        let rounds = if suite == "soak" { "--beats=500" } else { "--rounds=2" };
        let arguments = ["bench", suite, "--json", "--count=50", "--heartbeat=1", "--seconds=1"];
        for more in [&[rounds, "--transport=tcp"], &[rounds, "--transport=ws"]] {
            let output = playfield(&[&arguments[..], more].concat());
            let lines = text(&output.stdout);
            assert_eq!(output.status.code(), Some(0), "{lines}{}", text(&output.stderr));
            let row: serde_json::Value = serde_json::from_str(lines.trim()).expect("an object");
            assert_eq!((&row["connected"], &row["lost"]), (&50.into(), &0.into()), "{row}");
            assert!(row["heartbeats"].as_u64() >= Some(90), "{row}");
            let is_soak = suite == "soak";
            assert_eq!(row["rounds"], if is_soak { 1 } else { 2 }, "{row}");
            assert_eq!(row["connect_ratio_max"].is_number(), !is_soak, "{row}");
            assert_eq!(row["complete"] == true && row["rss_growth"].is_number(), is_soak, "{row}");
        }
        let output = playfield(&[&arguments[..], &[rounds, "--corrupt-one"]].concat());
        let lines = text(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{lines}");
        assert!(lines.contains(r#""verified":false"#), "{lines}");
    }
    // What was asked for and not done is not verified, and has no figures.
    for (more, name, expected) in [
        (["soak", "--beats=1000000000"], "complete", serde_json::json!(false)),
        (["heartbeat", "--heartbeat=21600"], "heartbeat_rtt_ms_p99", Value::Null),
    ] {
        let suite = ["bench", more[0], more[1], "--json", "--count=5", "--seconds=1"];
        let output = playfield(&suite);
        let lines = text(&output.stdout);
        let line = lines.lines().next().unwrap_or_default();
        let row: Value = serde_json::from_str(line).expect("an object");
        assert_eq!((&row[name], &row["verified"]), (&expected, &false.into()), "{row}");
        assert_eq!(output.status.code(), Some(1), "{row}");
    }
}

#[test]
fn bench_channel_verifies_what_it_counts() {
    let arguments = ["bench", "channel", "--json", "--subscribers=50", "--seconds=1", "--rounds=4"];
    let output = playfield(&arguments);
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{lines}{}", text(&output.stderr));
    let row: Value = serde_json::from_str(lines.trim()).expect("an object");
    let returned = (&row["recovered"], &row["flagged"], &row["lost"]);
    assert_eq!(returned, (&50.into(), &50.into(), &0.into()), "{row}");
    assert!(row["publications"].as_u64() > Some(0) && row["verified"] == true, "{row}");
    let output = playfield(&[&arguments[..], &["--corrupt-one"]].concat());
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{lines}");
    assert!(lines.contains(r#""verified":false"#), "{lines}");
}

#[test]
fn bench_messages_verifies_what_it_counts() {
    for more in [&["--transport=tcp", "--window=10"], &["--transport=ws", "--window=1"]] {
        let arguments = ["bench", "messages", "--json", "--count=20", "--seconds=1"];
        let output = playfield(&[&arguments[..], more].concat());
        let lines = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{lines}{}", text(&output.stderr));
        let rows = lines.lines().map(|line| serde_json::from_str(line).expect("an object"));
        let rows: Vec<Value> = rows.collect();
        let sizes: Vec<_> = rows.iter().map(|row| row["bytes"].as_u64()).collect();
        assert_eq!(sizes, [Some(100), Some(1_000), Some(10_000)], "{lines}");
        let is_right = |row: &Value| row["messages"].as_u64() > Some(0) && row["verified"] == true;
        assert!(rows.iter().all(is_right), "{lines}");
    }
    let arguments = ["bench", "messages", "--json", "--count=5", "--seconds=1", "--window=2"];
    let output = playfield(&[&arguments[..], &["--bytes=100", "--corrupt-one"]].concat());
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{lines}");
    assert!(lines.contains(r#""verified":false"#), "{lines}");
}

fn echo(case: &[&str]) -> (Option<i32>, String) {
    let arguments = ["bench", "echo", "--json", "--seconds=1", "--rounds=1", "--connections=5"];
    let output = playfield(&[&arguments, case].concat());
    // Standard error may warn that the machine is not quiet.
    let why = if output.status.success() { String::new() } else { text(&output.stderr) };
    (output.status.code(), text(&output.stdout) + &why)
}

#[test]
fn bench_echo_verifies_what_it_counts() {
    let cases: [&[&str]; 8] = [
        &["--class=A", "--frame-bytes=8"],
        &["--class=A", "--transport=ws", "--frame-bytes=8"],
        &["--class=A", "--transport=ws", "--frame-bytes=1024", "--window=1"],
        &["--class=A", "--transport=ws", "--driver=counting", "--rate=2000"],
        &["--class=B", "--mode=send", "--rooms=shared", "--window=20"],
        &["--class=B", "--mode=request", "--payload=1024", "--window=3"],
        &["--class=B", "--mode=callback", "--transport=ws", "--window=1"],
        &["--class=B", "--mode=send", "--transport=ws", "--rate=2000"],
    ];
    for case in cases {
        let (code, lines) = echo(case);
        assert_eq!(code, Some(0), "{case:?}: {lines}");
        let row: Value = serde_json::from_str(&lines).expect("an object");
        let (messages, compared) = (row["messages"].as_u64(), row["compared"].as_u64());
        assert!(messages > Some(0) && row["floor_ratio"].as_f64() > Some(0.0), "{row}");
        if case.contains(&"--driver=counting") {
            assert!(compared.is_none() && row["verified"].is_null(), "{row}");
        } else {
            assert!(compared >= messages && row["verified"] == true, "{row}");
        }
    }
}

#[test]
fn bench_echo_runs_clients_of_sdks_apart() {
    for mode in ["send", "request"] {
        let mode = format!("--mode={mode}");
        let case = ["--class=B", "--client=rust", "--window=4", "--payload=100", &mode];
        let (code, lines) = echo(&case);
        assert_eq!(code, Some(0), "{lines}");
        let row: Value = serde_json::from_str(&lines).expect("an object");
        assert!(
            row["messages"].as_u64() > Some(0)
                && row["compared"].as_u64() >= row["messages"].as_u64()
        );
        assert!(row["client"] == "rust" && row["verified"] == true, "{row}");
        assert!(row["floor_ratio"].is_null(), "{row}");
        let (code, lines) = echo(&[&case[..], &["--corrupt-one"]].concat());
        assert_eq!(code, Some(1), "{lines}");
    }
    let (code, lines) = echo(&["--class=A", "--client=rust"]);
    assert_eq!(code, Some(2), "{lines}");
}

#[cfg(unix)]
#[test]
fn bench_echo_reports_what_the_driver_of_the_cpp_client_prints() {
    let program = concat!("--client-program=", env!("CARGO_MANIFEST_DIR"), "/tests/echo_driver.sh");
    let case = ["--class=B", "--client=cpp", "--window=3", "--mode=callback"];
    for (payload, expected) in [("--payload=64", 0), ("--payload=65", 1)] {
        let (code, lines) = echo(&[&case[..], &[program, payload]].concat());
        assert_eq!(code, Some(expected), "{lines}");
        let row: Value =
            serde_json::from_str(lines.lines().next().unwrap_or_default()).expect("an object");
        assert!(row["messages_per_s"] == 100.0 && row["rtt_us_p99"] == 2.0, "{row}");
        assert_eq!(row["verified"], expected == 0);
    }
    // One connection has the bare client as its baseline, in each round.
    let one = ["--json", "--seconds=1", "--rounds=2", "--connections=1", "--payload=64", program];
    let output = playfield(&[&["bench", "echo"][..], &case, &one].concat());
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{lines}{}", text(&output.stderr));
    let row: Value = serde_json::from_str(&lines).expect("an object");
    for name in ["rate_of_bare", "cpu_of_bare", "bare_client_ns_per_message"] {
        let at = |end: &str| row[format!("{name}{end}")].as_f64().unwrap_or_default();
        assert!(at("_min") > 0.0 && at("_min") <= at("") && at("") <= at("_max"), "{row}");
    }
    assert!(row["compared"].as_u64() > Some(120) && row["verified"] == true, "{row}");
    let (code, lines) = echo(&[&case[..], &["--client-program=/nowhere/echo_driver"]].concat());
    assert!(code == Some(3) && lines.contains("make cpp"), "{code:?}: {lines}");
}

#[test]
fn bench_echo_notices_one_wrong_reply() {
    let (code, lines) = echo(&["--class=room", "--window=10"]);
    assert_eq!(code, Some(0), "{lines}");
    let ws = "--transport=ws";
    let request = "--mode=request";
    let classes: [&[&str]; 6] = [
        &["--class=A"],
        &["--class=A", ws],
        &["--class=B"],
        &["--class=B", ws],
        &["--class=B", request],
        &["--class=room"],
    ];
    for class in classes {
        let (code, lines) = echo(&[class, &["--corrupt-one"]].concat());
        assert_eq!(code, Some(1), "{lines}");
        assert!(lines.contains(r#""verified":false"#), "{lines}");
    }
    for wrong in [["--class=B", "--driver=counting"], ["--driver=counting", "--corrupt-one"]] {
        let (code, lines) = echo(&wrong);
        assert_eq!(code, Some(2), "{lines}");
    }
}

#[test]
fn bench_requests_verifies_what_it_counts() {
    let arguments = ["bench", "requests", "--json", "--requests=30", "--rounds=2"];
    let output = playfield(&arguments);
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{lines}{}", text(&output.stderr));
    let rows = lines.lines().map(|line| serde_json::from_str(line).expect("an object"));
    let rows: Vec<Value> = rows.collect();
    let shards: Vec<_> = rows.iter().map(|row| row["shards"].as_u64()).collect();
    assert_eq!(shards, [Some(1), Some(2), Some(4), Some(8)], "{lines}");
    assert!(rows.iter().all(|row| row["compared"] == 60 && row["verified"] == true), "{lines}");
    let output = playfield(&[&arguments[..], &["--shards=1", "--corrupt-one"]].concat());
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{lines}");
    assert!(lines.contains(r#""verified":false"#), "{lines}");
}

#[test]
fn bench_registry_verifies_what_it_counts() {
    let output = playfield(&["bench", "registry", "--json", "--rounds=1", "--round-ms=1"]);
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{lines}{}", text(&output.stderr));
    assert_eq!(lines.lines().count(), 12, "{lines}");
    assert!(lines.lines().all(|line| line.contains(r#""verified":true"#)), "{lines}");
}

#[test]
fn bench_attacks_verifies_what_it_counts() {
    let arguments = ["bench", "attacks", "--json", "--connections=5", "--round-ms=2000"];
    let arguments = [&arguments[..], &["--missed-percent-max=100"]].concat();
    let output = playfield(&arguments);
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{lines}{}", text(&output.stderr));
    let rows: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    assert_eq!(rows.len(), 20, "{lines}");
    for (at, row) in rows.iter().enumerate() {
        let count = |name: &str| row[name].as_u64();
        assert_eq!(row["verified"], true, "{row}");
        assert!(count("patches") > Some(0) && count("returns") > Some(0), "{row}");
        assert!(row["return_ms"].as_f64() > Some(0.0), "{row}");
        assert_eq!(count("attackers_live"), count("attackers"), "{row}");
        assert!(count("effect_count") >= count("effect_count_min"), "{row}");
        // The first and the last row have no attack, and the others are compared with the first.
        assert_eq!(count("effect_count") > Some(0), at > 0 && at < 19, "{row}");
        assert_eq!(row["p99_ratio"].is_number(), at > 0, "{row}");
    }
}

#[test]
fn bench_attacks_notices_one_damaged_patch_and_an_attack_without_effect() {
    let attack = |more: &[&str]| {
        let row = ["bench", "attacks", "--json", "--round-ms=2000", "--row=pings"];
        let output = playfield(&[&row[..], more].concat());
        let row: Value = serde_json::from_str(&text(&output.stdout)).expect("one row");
        (output.status.code(), row, text(&output.stderr))
    };
    let (status, row, errors) = attack(&["--connections=5", "--corrupt-one"]);
    assert_eq!((status, &row["verified"]), (Some(1), &false.into()), "{row}{errors}");
    let is_fault = |line: &str| line.starts_with("pings: ") && !line.contains("had no effect");
    assert!(errors.lines().any(is_fault), "{errors}");

    let (status, row, errors) = attack(&["--connections=0"]);
    assert_eq!((status, &row["verified"]), (Some(1), &false.into()), "{row}{errors}");
    assert_eq!(row["effect_count"], 0, "{row}");
    assert!(errors.contains("had no effect"), "{errors}");

    // The same attack has its effect, or the machine was too busy to say so.
    let (status, row, errors) = attack(&["--connections=5"]);
    if status == Some(3) {
        assert!(row["verified"].is_null() && errors.contains("not measured"), "{row}{errors}");
        return;
    }
    assert_eq!((status, &row["verified"]), (Some(0), &true.into()), "{row}{errors}");
    assert!(row["effect_count"].as_u64() >= row["effect_count_min"].as_u64(), "{row}");
}

#[test]
fn bench_attacks_names_its_rows() {
    let unknown = playfield(&["bench", "attacks", "--row=nukes"]);
    assert!(text(&unknown.stderr).contains("hellos"), "{}", text(&unknown.stderr));
}

/// A room that a load can drive.
#[derive(State, Default)]
struct Tally {
    sum: u64,
}

#[derive(Message)]
#[reply(u64)]
struct Add {
    number: u8,
}

#[room(messages(Add), capacity = 10)]
impl Room for Tally {}

impl Handle<Add> for Tally {
    fn handle(&mut self, add: Add, _: &Player, _: &mut Context<Self>) -> Result<u64> {
        self.sum += u64::from(add.number);
        Ok(self.sum)
    }
}

fn load(url: &str, more: &[&str]) -> Output {
    playfield(&[&["load", url, "--json"], more].concat())
}

#[test]
fn load_counts_every_reply_in_one_process_and_in_several() {
    let listen = (Ipv4Addr::LOCALHOST, 0).into();
    let config = Config { listen, shards: 1, ..Config::default() };
    let node = Server::new(config).room_type(RoomType::of::<Tally>("tally")).start().unwrap();
    let url = format!("ws://{}", node.local_addr());
    let rate = ["--connections=31", "--room=tally", "--rate=20", "--duration=1"];
    for more in [&["--processes=1"][..], &["--processes=3", "--source=127.0.0.1..127.0.0.3"]] {
        let output = load(&url, &[&rate, more].concat());
        let (line, errors) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{more:?}: {line}{errors}");
        let report: Value = serde_json::from_str(&line).expect("one object");
        assert_eq!((&report["connected"], &report["lost"]), (&31.into(), &0.into()), "{line}");
        assert_eq!(report["requests"], report["replies"]);
        assert!(report["replies"].as_u64() > Some(31), "{line}");
        assert_eq!(report["messages"]["Add"]["replies"], report["replies"]);
        assert_eq!(report["verified"], true);
    }
    node.shutdown();
}

#[test]
fn load_says_what_is_wrong_with_its_arguments_and_with_the_node() {
    let wrong: [(&[&str], &str); 9] = [
        (&[], "load needs the URL of a node: load tcp://127.0.0.1:7350"),
        (&["http://node"], "is none of tcp://, tls://, ws:// and wss://"),
        (&["tcp://node", "--connections=0"], "--connections 0 must be from 1 to 10000000"),
        (&["tcp://node", "--rate=5"], "--rate needs --room, the type of the room"),
        (&["tcp://node", "--room=a", "--value=1"], "--value needs --rate or --total-rate"),
        (&["tcp://node", "--room=a", "--rate=1", "--total-rate=1"], "exclude each other"),
        (&["tcp://node", "--source=127.0.0.9..127.0.0.1"], "must have from 1 to 4096 addresses"),
        (&["tcp://node", "--script=x.toml", "--room=a"], "--room has no effect with --script"),
        (&["tcp://node", "--script=/none.toml"], "/none.toml: No such file"),
    ];
    for (arguments, why) in wrong {
        let output = playfield(&[&["load"], arguments].concat());
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(why), "{errors}");
    }
    let output = load("tcp://127.0.0.1:1", &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("127.0.0.1:1 can't be reached"));
    let report: Value = serde_json::from_str(&text(&output.stdout)).expect("one object");
    assert_eq!(report["verified"], false);
    let problems = report["problems"].as_object().expect("texts, and how often");
    assert!(problems.keys().next().unwrap().contains("127.0.0.1:1 can't be reached"), "{report}");
}

#[test]
fn a_case_ends_with_the_command_that_runs_it() {
    let mut case = Command::new(PLAYFIELD)
        .args(["bench", "sync", "--in-process", "--workload=swift", "--sequences=1000000"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    drop(case.stdin.take());
    assert_eq!(case.wait().expect("it can be waited for").code(), Some(1));
}

#[test]
fn a_server_ends_with_the_suite_that_asked_for_it() {
    for words in [
        &["messages", "bare", "1", "tcp", "1", "8", "1"][..],
        &["messages", "node", "1", "tcp", "1", "8", "1"],
        &["http"],
    ] {
        let mut server = Command::new(PLAYFIELD)
            .arg("role")
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let output = server.stdout.take().expect("it is piped");
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).expect("a line");
        let port = line.split_whitespace().next().map(str::parse::<u16>);
        assert!(matches!(port, Some(Ok(1..))), "{line:?}");
        drop(server.stdin.take());
        assert!(server.wait().expect("it can be waited for").success(), "{words:?}");
    }
    let unknown = playfield(&["role", "nobody"]);
    assert_eq!(unknown.status.code(), Some(2));
}

/// Rows of overload are of as much as a machine carries: on a busy one, rooms are lost, and what
/// was handled is not known in time. Each patch that came is right.
#[test]
fn a_quick_overload_has_all_rows_and_compares_every_patch() {
    let output = playfield(&["bench", "overload", "--quick", "--json"]);
    let lines = text(&output.stdout);
    let rows: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    let names: Vec<_> = rows.iter().map(|row| row["row"].as_str().unwrap_or_default()).collect();
    assert_eq!(names, ["rooms", "joins", "messages", "bytes"], "{}", text(&output.stderr));
    for row in rows {
        assert!(row["patches"].is_number() && row["compared"] == row["patches"], "{row}");
    }
}

/// Of suites that have no other test of all of their rows.
#[test]
fn quick_runs_measure_every_row_and_verify_it() {
    let suites = [("sync", 4), ("constructs", 25), ("packet", 74), ("registry", 12)];
    for (suite, rows) in suites {
        let output = playfield(&["bench", suite, "--quick", "--json"]);
        let lines = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{suite}: {lines}{}", text(&output.stderr));
        assert_eq!(lines.lines().count(), rows, "{suite}: {lines}");
        for line in lines.lines() {
            let row: Value = serde_json::from_str(line).expect("an object");
            assert!(row["suite"] == suite && row["verified"] == true, "{row}");
            assert!(row["cores"].is_number() && row["profile"].is_string(), "{row}");
        }
    }
}

#[test]
fn bench_nats_verifies_every_write_and_message() {
    for (corrupt, code) in [(None, 0), (Some("--corrupt-one"), 1)] {
        let arguments = ["bench", "nats", "--quick", "--json"].into_iter().chain(corrupt);
        let output = playfield(&arguments.collect::<Vec<_>>());
        let (lines, errors) = (text(&output.stdout), text(&output.stderr));
        // Without nats-server it says so; in CI that is an error.
        if errors.contains("nats-server is missing") {
            return;
        }
        assert_eq!(output.status.code(), Some(code), "{lines}{errors}");
        for (line, row) in lines.lines().zip(["creates", "messages"]) {
            let line: Value = serde_json::from_str(line).expect("an object");
            assert!(line["row"] == row && line["verified"] == (code == 0), "{line}");
        }
        assert_eq!(lines.lines().count(), 2, "{lines}");
    }
}

#[test]
fn bench_overload_notices_one_damaged_message_in_every_row() {
    let output = playfield(&["bench", "overload", "--quick", "--json", "--corrupt-one"]);
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert_eq!(lines.lines().count(), 4, "{lines}{}", text(&output.stderr));
    assert!(lines.lines().all(|line| line.contains(r#""verified":false"#)), "{lines}");
}

#[test]
fn bench_overload_names_its_rows() {
    let unknown = playfield(&["bench", "overload", "--row=players"]);
    assert_eq!(unknown.status.code(), Some(2));
    let errors = text(&unknown.stderr);
    assert!(errors.contains("use one of rooms; joins; messages; bytes"), "{errors}");
}

#[test]
fn bench_constructs_notices_one_damaged_patch() {
    let output = playfield(&["bench", "constructs", "--quick", "--json", "--corrupt-one"]);
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(lines.lines().all(|line| line.contains(r#""verified":false"#)), "{lines}");
}
