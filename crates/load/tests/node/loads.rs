//! Loads that go well: everything that was sent arrived, and everything that was due was answered.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use playfield_load::{Progress, run, script};
use playfield_server::SelfSigned;
use serde_json::json;

use crate::rooms::{HANDLED, config, load, node, settings, start};

/// Every connection sends ten messages without waiting for their replies.
const ADDS: &str = r#"steps = [
    { join = "tally" },
    { wait = "all" },
    { repeat = 10, steps = [{ request = "Add", ahead = true }] },
]"#;

#[test]
fn every_message_is_counted_at_both_ends_over_each_transport() {
    let signed = SelfSigned::new(&["127.0.0.1"]).unwrap();
    let file = |end: &str| -> PathBuf {
        std::env::temp_dir().join(format!("playfield-load-{}.{end}", std::process::id()))
    };
    let (tls_cert, tls_key) = (file("cert"), file("key"));
    std::fs::write(&tls_cert, signed.certificate_pem()).unwrap();
    std::fs::write(&tls_key, signed.key_pem()).unwrap();
    let mut config = config();
    config.set("tls.cert", &tls_cert.display().to_string()).unwrap();
    config.set("tls.key", &tls_key.display().to_string()).unwrap();
    let node = start(config);
    for scheme in ["tcp", "ws", "tls", "wss"] {
        let before = HANDLED.load(Ordering::Relaxed);
        let mut settings = settings(scheme, node.local_addr(), 25);
        settings.root = ["tls", "wss"].contains(&scheme).then(|| tls_cert.clone());
        let report = load(settings, ADDS).unwrap_or_else(|error| panic!("{scheme}: {error}"));
        let counts = report.counts();
        assert_eq!(report.trouble(), None, "{scheme}: {:?}", report.problems());
        assert_eq!((counts.connected, counts.joined, counts.finished), (25, 25, 25));
        assert_eq!((counts.requests, counts.replies, counts.unsent), (250, 250, 0));
        assert_eq!(HANDLED.load(Ordering::Relaxed) - before, 250, "{scheme}");
        assert!(counts.snapshots >= 25 && counts.wrong == 0);
        assert_eq!((counts.open, counts.in_rooms), (0, 0));
        assert_eq!(report.timings("reply").map(|timings| timings.count()), Some(250));
    }
    [tls_cert, tls_key].iter().for_each(|path| drop(std::fs::remove_file(path)));
    node.shutdown();
}

#[test]
fn connections_are_kept_alive_and_pinged() {
    let mut config = config();
    config.set("timeouts.heartbeat", "100ms").unwrap();
    let node = start(config);
    let mut settings = settings("ws", node.local_addr(), 10);
    settings.duration = Some(Duration::from_millis(700));
    settings.ping = Some(Duration::from_millis(50));
    let report = load(settings, "steps = [{ wait = \"all\" }, { hold = true }]").unwrap();
    assert_eq!(report.trouble(), None);
    let counts = report.counts();
    assert_eq!((counts.connected, counts.lost, counts.failed), (10, 0, 0));
    assert!(counts.pings >= 10 && counts.pings == counts.pongs, "{counts:?}");
    node.shutdown();
}

#[test]
fn scripts_share_connections_by_weight_and_rooms_by_number() {
    let node = node();
    let text = r#"
        [[script]]
        weight = 3
        steps = [{ join = "counter", key = "r-", per_room = 4 }, { request = "Add" }]
        [[script]]
        steps = [{ join = "odd", create = true, options = { stall_ms = 0 } }, { send = "Stall" }]
    "#;
    let report = load(settings("tcp", node.local_addr(), 40), text).unwrap();
    assert_eq!(report.trouble(), None, "{:?}", report.problems());
    assert_eq!((report.counts().requests, report.counts().sent), (30, 40));
    let json = report.to_json();
    assert_eq!(json["messages"]["counter.Add"]["replies"], 30);
    assert_eq!((&json["verified"], &json["connections"]), (&json!(true), &json!(40)));
    let mut table = Vec::new();
    report.print(&mut table).unwrap();
    let table = String::from_utf8(table).unwrap();
    assert!(table.contains("40 sent") && table.contains("counter.Add"), "{table}");
    node.shutdown();
}

#[test]
fn a_load_is_the_same_for_the_same_seed() {
    let node = node();
    let bytes = |seed| {
        let mut settings = settings("tcp", node.local_addr(), 5);
        (settings.seed, settings.resumable) = (seed, false);
        let text = r#"steps = [{ join = "counter" }, { repeat = 50, steps = [{ send = "Add" }] }]"#;
        load(settings, text).unwrap().counts().bytes_out
    };
    // Pings do not disturb it: the load is shorter than a heartbeat.
    assert_eq!(bytes(7), bytes(7));
    assert_ne!(bytes(7), bytes(8));
    node.shutdown();
}

#[test]
fn latency_counts_from_when_a_message_was_due() {
    let node = node();
    // The first reply takes 400 ms. Each of the others was due 10 ms after the one before.
    let text = r#"steps = [
        { join = "odd", options = { stall_ms = 400 } },
        { repeat = 20, every = 0.01, steps = [{ request = "Stall" }] },
    ]"#;
    let report = load(settings("tcp", node.local_addr(), 1), text).unwrap();
    assert_eq!((report.trouble(), report.counts().replies), (None, 20));
    let median = report.timings("reply").map_or(0.0, |timings| timings.percentile_ms(50.0));
    assert!(median >= 200.0, "the median of 20 is {median} ms, but 200 ms had passed by then");
    node.shutdown();
}

#[test]
fn a_load_stops_when_it_is_asked_to() {
    let node = node();
    let mut settings = settings("tcp", node.local_addr(), 3);
    settings.duration = Some(Duration::from_secs(3600));
    settings.scripts = script::parse(
        "load.toml",
        r#"steps = [{ join = "counter" },
            { repeat = "forever", every = 0.01, steps = [{ request = "Add", ahead = true }] }]"#,
    )
    .unwrap();
    let stop = AtomicBool::new(false);
    let report = run(&settings, &stop, &mut |progress: &Progress| {
        assert!(progress.line(&Progress::default()).contains("3 of 3 connected"));
        stop.store(true, Ordering::Relaxed);
    })
    .unwrap();
    assert_eq!(report.trouble(), None);
    let counts = report.counts();
    assert!(counts.requests > 0 && counts.requests == counts.replies, "{counts:?}");
    node.shutdown();
}
