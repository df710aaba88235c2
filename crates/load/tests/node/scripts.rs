//! Scripts that the node's schemas refute, and rooms that refuse.

use std::time::Duration;

use playfield_load::{LoadError, script};

use crate::rooms::{load, node, settings};

#[test]
fn a_step_that_does_not_fit_the_schema_is_named_with_its_line() {
    let node = node();
    for (steps, why) in [
        ("{ request = \"Add\" }", "load.toml:2: no step before this one joins a room; add one"),
        ("{ leave = \"odd\" }", "load.toml:2: no step before this one joins \"odd\""),
        (
            "{ join = \"counter\" },\n{ request = \"Sub\" }",
            "load.toml:3: rooms of type \"counter\" take no message \"Sub\"; they take Add",
        ),
        ("{ join = \"counter\" },\n{ send = \"Add\", value = { by = \"x\" } }", "load.toml:3: "),
        (
            "{ join = \"counter\" },\n{ send = \"Add\", value = { of = 1 } }",
            "Add has no field \"of\"; its fields are by, note",
        ),
        ("{ join = \"odd\", options = { stall = 1 } }", "load.toml:2: "),
        (
            "{ join = \"counter\" },\n{ repeat = 2, steps = [\n{ request = \"Sub\" }] }",
            "load.toml:4: ",
        ),
        (
            "{ join = \"counter\" },\n{ leave = true },\n{ send = \"Add\" }",
            "load.toml:4: no step before",
        ),
        ("{ join = \"counter\" },\n{ repeat = 2, steps = [] }", "load.toml:3: repeat has no steps"),
    ] {
        let text = format!("steps = [\n{steps}\n]");
        let error = load(settings("tcp", node.local_addr(), 1), &text).expect_err(steps);
        assert!(matches!(&error, LoadError::Usage(text) if text.contains(why)), "{error}");
    }
    let text = r#"steps = [{ join = "chess" }]"#;
    let error = load(settings("tcp", node.local_addr(), 1), text).expect_err("no such type");
    assert!(error.to_string().contains("unknown_room_type"), "{error}");
    node.shutdown();
}

#[test]
fn the_scripts_of_the_documentation_can_be_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/load.md");
    let text = std::fs::read_to_string(path).unwrap();
    let blocks: Vec<_> = text.split("```toml\n").skip(1).collect();
    assert_eq!(blocks.len(), 4);
    for block in blocks {
        let block = block.split("```").next().unwrap_or_default();
        let scripts = script::parse("load.md", block).unwrap_or_else(|error| panic!("{error}"));
        assert!(!scripts.is_empty());
    }
}

#[test]
fn refused_messages_and_joins_are_trouble() {
    let node = node();
    let text =
        r#"steps = [{ join = "odd" }, { request = "Cheat" }, { send = "Cheat" }, { ping = true }]"#;
    let report = load(settings("ws", node.local_addr(), 4), text).unwrap();
    let counts = report.counts();
    assert_eq!((counts.refused, counts.sends_refused, counts.replies), (4, 4, 0));
    assert_eq!(report.trouble().as_deref(), Some("8 messages were refused"));
    assert!(report.problems().keys().any(|text| text.contains("no cheating")));

    // A room has ten seats.
    let text = r#"steps = [{ join = "counter", key = "full" }, { wait = "all" }]"#;
    let report = load(settings("tcp", node.local_addr(), 13), text).unwrap();
    assert_eq!(report.trouble().as_deref(), Some("3 joins were refused"));
    assert_eq!((report.counts().joined, report.counts().finished), (10, 10));
    let text = r#"steps = [{ join = "counter", id = "nowhere" }]"#;
    let report = load(settings("tcp", node.local_addr(), 2), text).unwrap();
    assert_eq!(report.trouble().as_deref(), Some("2 joins were refused"));
    node.shutdown();
}

#[test]
fn what_is_never_answered_is_trouble_and_does_not_hang() {
    let node = node();
    let mut one = settings("tcp", node.local_addr(), 2);
    one.timeout = Duration::from_millis(300);
    // One waits for each answer; the other for none.
    for (ahead, unanswered) in [("", 2 * 2), (", ahead = true", 2 * 2)] {
        let text = format!(
            "steps = [{{ join = \"odd\" }}, \
             {{ repeat = 2, steps = [{{ request = \"Ignore\"{ahead} }}] }}]"
        );
        let mut settings = one.clone();
        settings.duration = Some(Duration::from_secs(2));
        let report = load(settings, &text).unwrap();
        let trouble = format!("{unanswered} requests were not answered");
        assert_eq!(report.trouble(), Some(trouble), "{:?}", report.counts());
        let timings = report.timings("reply").expect("it is timed");
        assert_eq!(timings.count(), unanswered, "what waited in vain counts, too");
        assert!(timings.percentile_ms(1.0) >= 299.0);
    }
    node.shutdown();
}

#[test]
fn the_number_of_requests_in_flight_is_limited_and_the_rest_is_counted() {
    let node = node();
    let mut settings = settings("tcp", node.local_addr(), 1);
    settings.timeout = Duration::from_millis(200);
    settings.duration = Some(Duration::from_millis(500));
    let text = r#"steps = [{ join = "odd", options = { stall_ms = 2000 } },
        { repeat = 1025, steps = [{ request = "Stall", ahead = true }] }]"#;
    let report = load(settings, text).unwrap();
    let counts = report.counts();
    assert_eq!((counts.requests, counts.unanswered, counts.unsent), (1024, 1024, 1), "{counts:?}");
    node.shutdown();
}

#[test]
fn a_player_comes_back_to_a_room_after_leaving_it() {
    let node = node();
    let text = r#"steps = [{ repeat = 3, steps = [
        { join = "counter" }, { request = "*" }, { leave = "counter" }, { wait = [0, 0.001] },
    ] }]"#;
    let report = load(settings("ws", node.local_addr(), 6), text).unwrap();
    let counts = report.counts();
    assert_eq!(report.trouble(), None, "{:?}", report.problems());
    assert_eq!((counts.joined, counts.replies, counts.removed), (18, 18, 0));
    node.shutdown();
}
