//! Scripts that subscribe and publish.

use std::time::Duration;

use playfield_client::session::SUBSCRIPTIONS_MAX;
use playfield_load::{Report, script};
use playfield_server::channel::ChannelRule;

use crate::rooms::{config, load, node, server, settings};

/// One of ten connections publishes 20 times; the others subscribe.
const NEWS: &str = r#"
    [[script]]
    steps = [
        { wait = "all" },
        { repeat = 20, every = 0.005, steps = [
            { publish = "CHANNEL", PAYLOAD },
        ] },
        { hold = true },
    ]
    [[script]]
    weight = 9
    steps = [{ subscribe = "CHANNEL" }, { wait = "all" }, { hold = true }]
"#;

fn delivered(report: &Report) -> u64 {
    report.timings("delivery").map_or(0, |timings| timings.count())
}

#[test]
fn what_is_published_is_delivered_to_each_subscription_and_timed_there() {
    let node = node();
    for (scheme, channel, payload) in [
        ("tcp", "open:a", "value = { at = { from = 1, to = 9 } }"),
        ("ws", "open:b", "confirm = true"),
        ("tcp", "open:c", "value = { text = \"hi\" }, confirm = true, ahead = true"),
        ("tcp", "bytes:a", "bytes = 100"),
        ("ws", "bytes:b", "bytes = 53"),
        ("tcp", "bytes:c", "bytes = 1000, confirm = true"),
    ] {
        let text = NEWS.replace("CHANNEL", channel).replace("PAYLOAD", payload);
        let mut settings = settings(scheme, node.local_addr(), 10);
        settings.duration = Some(Duration::from_millis(400));
        let report = load(settings, &text).unwrap_or_else(|error| panic!("{channel}: {error}"));
        let counts = report.counts();
        assert_eq!(report.trouble(), None, "{channel}: {:?}", report.problems());
        assert_eq!((counts.subscribed, counts.in_channels), (9, 0), "{channel}");
        assert_eq!((counts.publications, counts.sent), (20, 20), "{channel}");
        assert_eq!((counts.deliveries, delivered(&report)), (180, 180), "{channel}");
        let confirmed = if payload.contains("confirm") { 20 } else { 0 };
        assert_eq!((counts.requests, counts.replies), (confirmed, confirmed), "{channel}");
        let mut table = Vec::new();
        report.print(&mut table).unwrap();
        let table = String::from_utf8(table).unwrap();
        let line = "channels     9 subscribed, 20 publications";
        assert!(table.contains(line) && table.contains("180 deliveries"), "{table}");
    }
    node.shutdown();
}

#[test]
fn each_connection_has_its_own_channel_or_shares_one() {
    let node = node();
    let text = r#"steps = [
        { subscribe = "open:{n/5}" },
        { subscribe = "open:own:{n}", presence = true },
        { subscribe = "open:own:{n}" },
        { wait = "all" },
        { publish = "open:{n/5}", confirm = true },
        { publish = "open:own:{n}" },
        { unsubscribe = "open:own:{n}" },
        { unsubscribe = true },
        { wait = 0.01 },
    ]"#;
    let report = load(settings("tcp", node.local_addr(), 20), text).unwrap();
    let counts = report.counts();
    assert_eq!(report.trouble(), None, "{:?}", report.problems());
    assert_eq!((counts.subscribed, counts.publications, counts.finished), (40, 40, 20));
    assert_eq!((counts.in_channels, counts.unsubscribed), (0, 0));
    node.shutdown();
}

#[test]
fn a_connection_that_the_node_closes_with_its_last_bytes_has_ended() {
    let node = node();
    // The node acknowledges the publication and closes the connection, in one segment.
    let report =
        load(settings("tcp", node.local_addr(), 20), r#"steps = [{ publish = "open:end" }]"#);
    let report = report.unwrap();
    let load_s = report.to_json()["load_s"].as_f64().unwrap_or(0.0);
    assert!(load_s < 10.0, "the load has waited {load_s} s for what had come");
    node.shutdown();
}

#[test]
fn delivery_counts_from_when_a_publication_was_due() {
    let node = node();
    // The first request takes 400 ms. Each publication after it was due 10 ms after the one before.
    let text = r#"steps = [
        { subscribe = "open:late" },
        { join = "odd", options = { stall_ms = 400 } },
        { repeat = 20, every = 0.01, steps = [
            { publish = "open:late" }, { request = "Stall" },
        ] },
        { hold = true },
    ]"#;
    let mut settings = settings("tcp", node.local_addr(), 1);
    settings.duration = Some(Duration::from_millis(600));
    let report = load(settings, text).unwrap();
    assert_eq!((report.trouble(), report.counts().deliveries), (None, 20));
    let median = report.timings("delivery").map_or(0.0, |timings| timings.percentile_ms(50.0));
    assert!(median >= 200.0, "the median of 20 is {median} ms, but 200 ms had passed by then");
    node.shutdown();
}

#[test]
fn a_publication_that_was_due_and_not_sent_is_trouble_and_no_delivery() {
    let node = node();
    let mut settings = settings("tcp", node.local_addr(), 1);
    settings.duration = Some(Duration::from_millis(300));
    // The second publication is never sent, as the first request is not answered.
    let text = r#"steps = [
        { join = "odd" },
        { repeat = 2, every = 0.01, steps = [{ publish = "open:unsent" }, { request = "Ignore" }] },
    ]"#;
    settings.timeout = Duration::from_millis(500);
    let report = load(settings, text).unwrap();
    let counts = report.counts();
    assert!(counts.unsent >= 1 && counts.publications == 1, "{counts:?}");
    let trouble = report.trouble().unwrap_or_default();
    assert!(trouble.contains("1 messages were due and not sent"), "{trouble}");
    assert_eq!(delivered(&report), 0, "nobody has received it");
    node.shutdown();
}

#[test]
fn refused_subscriptions_and_publications_are_trouble() {
    let node = node();
    let text = r#"steps = [{ subscribe = "closed:{n}" }]"#;
    let report = load(settings("ws", node.local_addr(), 3), text).unwrap();
    assert_eq!(report.trouble().as_deref(), Some("3 subscriptions were refused"));
    assert!(report.problems().keys().any(|text| text.contains("forbidden")));

    let text = r#"steps = [
        { publish = "closed:a", confirm = true }, { publish = "closed:a" }, { ping = true },
    ]"#;
    let report = load(settings("tcp", node.local_addr(), 2), text).unwrap();
    let counts = report.counts();
    assert_eq!((counts.refused, counts.sends_refused, counts.replies), (2, 2, 0));
    assert_eq!(report.trouble().as_deref(), Some("4 messages were refused"));
    assert_eq!(report.to_json()["verified"], false);
    node.shutdown();
}

#[test]
fn a_subscription_past_what_a_client_may_have_is_trouble() {
    let mut config = config();
    for (name, value) in [
        ("limits.session.subscriptions", "2000"),
        ("tuning.subscribes.per_second", "10000"),
        ("limits.session.channels_opened.per_minute", "10000"),
        ("limits.address.channels_opened.per_minute", "10000"),
    ] {
        config.set(name, value).unwrap();
    }
    let node = server(config).channel(ChannelRule::new("open:*")).start().unwrap();
    for (count, trouble) in
        [(SUBSCRIPTIONS_MAX, None), (SUBSCRIPTIONS_MAX + 1, Some("1 steps could not be done"))]
    {
        let steps = (0..count).map(|at| format!("{{ subscribe = \"open:{at}\" }},\n"));
        let text = format!("steps = [\n{}]", steps.collect::<String>());
        let report = load(settings("tcp", node.local_addr(), 1), &text).unwrap();
        assert_eq!(report.trouble().as_deref(), trouble, "{count}: {:?}", report.problems());
        assert_eq!(report.counts().subscribed, SUBSCRIPTIONS_MAX as u64);
    }
    node.shutdown();
}

#[test]
fn a_step_that_is_wrong_is_named_with_its_line_and_value() {
    let node = node();
    for (step, why) in [
        ("{ subscribe = \"a:{m}\" }", "load.toml:2: subscribe = \"a:{m}\" must be a text that is"),
        ("{ subscribe = 3 }", "load.toml:2: subscribe = 3 must be"),
        ("{ subscribe = \"a\", presence = 1 }", "presence = 1 must be true or false"),
        ("{ unsubscribe = \"a\" }", "load.toml:2: no step before this one subscribes"),
        ("{ unsubscribe = true }", "no step before this one subscribes"),
        ("{ publish = \"a\", value = 3 }", "load.toml:2: value = 3 must be a table"),
        ("{ publish = \"a\", value = { load = 3 } }", "the member \"load\""),
        ("{ publish = \"a\", bytes = 52 }", "bytes = 52 must be at least 53"),
        ("{ publish = \"a\", bytes = 1048577 }", "bytes = 1048577 must be a whole number from"),
        ("{ publish = \"a\", bytes = 60, value = {} }", "bytes = 60 must be left out"),
        ("{ publish = \"a\", ahead = true }", "ahead = true must be left out without confirm"),
        ("{ publish = \"a\", to = 1 }", "\"to\" is unknown here"),
        ("{ publish = \"a\", value = { x = { from = 2, to = 1 } } }", "{\"from\":2,\"to\":1} must"),
        ("{ report = true }", "load.toml:2: no step before this one registers a device"),
        ("{ report = 3 }", "report = 3 must be true"),
        ("{ register = \"{n*2}\" }", "register = \"{n*2}\" must be"),
        ("{ register = \"a\", tags = \"b\" }", "tags = \"b\" must be a list of texts"),
        ("{ register = \"a\", tags = [1] }", "a tag = 1 must be"),
        ("{ register = \"a\", metadata = [] }", "metadata = [] must be a table of texts"),
        ("{ register = \"a\", answer = { one_of = [] } }", "must be a list of values"),
    ] {
        let text = format!("steps = [\n{step}\n]");
        let error = script::parse("load.toml", &text).err();
        let error = error.or_else(|| load(settings("tcp", node.local_addr(), 1), &text).err());
        let error = error.unwrap_or_else(|| panic!("{step} is accepted")).to_string();
        assert!(error.contains(why) && error.starts_with("load.toml:2: "), "{step}: {error}");
    }
    node.shutdown();
}
