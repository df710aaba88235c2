//! Promises of the settings as a whole.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{Config, OutboxBytes, RateLimit, keys, setting, settings, tuning};
use crate::memory_limit::MemoryLimit;

fn set(name: &str, value: &str) -> String {
    match Config::default().set(name, value) {
        Ok(()) => "taken".into(),
        Err(error) => error.to_string(),
    }
}

fn toml(text: &str) -> String {
    match Config::from_toml(text) {
        Ok(_) => "taken".into(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_default_can_be_set_and_is_what_is_there_unless_set() {
    let mut config = Config::default();
    for setting in settings().iter().chain(tuning()) {
        assert_eq!(config.get(setting.name), Some(setting.default()), "{}", setting.name);
        config.set(setting.name, &setting.default()).unwrap();
        assert!(!setting.help.is_empty() && !setting.range().is_empty(), "{}", setting.name);
    }
    assert_eq!(config, Config::default());
    assert_eq!(config.check(), Ok(()));
}

#[test]
fn every_number_is_refused_beyond_its_range() {
    for setting in settings().iter().chain(tuning()) {
        let parts = setting.parts.iter().map(|part| Some(*part));
        let parts: Vec<_> = if setting.parts.is_empty() { vec![None] } else { parts.collect() };
        for part in parts {
            let name = part.map_or(setting.name.into(), |part| format!("{}.{part}", setting.name));
            let range = (setting.range)(part);
            let Some((least, most)) = range.split_once("..=") else { continue };
            assert_eq!(set(&name, least), "taken");
            assert_eq!(set(&name, most), "taken");
            let beyond = (most.parse::<u128>().unwrap() + 1).to_string();
            assert!(set(&name, &beyond).contains("too large"), "{name}");
            if let Some(below) = least.parse::<u128>().unwrap().checked_sub(1) {
                assert!(set(&name, &below.to_string()).contains("too small"), "{name}");
            }
        }
    }
}

#[test]
fn an_error_names_the_setting_the_value_and_what_to_give() {
    for (name, value, expected) in [
        (
            "limits.message_bytes",
            "12x",
            r#"limits.message_bytes = "12x": not a whole number; give 64..=16777216"#,
        ),
        (
            "limits.message_bytes",
            "99999999999999999999999",
            r#"limits.message_bytes = "99999999999999999999999": too large; give 64..=16777216"#,
        ),
        (
            "websocket.deflate",
            "yes",
            r#"websocket.deflate = "yes": neither true nor false; give true or false"#,
        ),
        (
            "timeouts.hello",
            "10",
            r#"timeouts.hello = "10": 10 has no unit: ms, s, m or h; give a duration such as "10s", from 10ms to 24h"#,
        ),
        (
            "timeouts.hello",
            "1ms",
            r#"timeouts.hello = "1ms": too short; give a duration such as "10s", from 10ms to 24h"#,
        ),
        (
            "limits.connections",
            "500",
            r#"limits.connections = "500": not a table of total, per_address; give { total = 1..=10000000, per_address = 1..=10000000 }"#,
        ),
        (
            "limits.connections",
            "{ total = 0 }",
            r#"limits.connections = "{ total = 0 }": total is too small; give { total = 1..=10000000, per_address = 1..=10000000 }"#,
        ),
        (
            "limits.connections.per_address",
            "many",
            r#"limits.connections.per_address = "many": not a whole number; give 1..=10000000"#,
        ),
        (
            "limits.connections",
            "{ per_addresses = 1 }",
            r#"limits.connections = "{ per_addresses = 1 }": it has no part per_addresses; did you mean per_address?; give { total = 1..=10000000, per_address = 1..=10000000 }"#,
        ),
        (
            "limits.session.publishes",
            "{ per_second = 1, per_minute = 2 }",
            r#"limits.session.publishes = "{ per_second = 1, per_minute = 2 }": both per_second and per_minute; choose one; give { per_second = 1..=1000000, burst = 1..=1000000 }, or per_minute"#,
        ),
    ] {
        assert_eq!(set(name, value), expected);
    }
    for (name, value, expected) in [
        ("listen", "here", r#"listen = "here": not an address and a port; give "#),
        ("threads.pin_cores", "0,x", r#"threads.pin_cores = "0,x": "x" is not a core's number; "#),
        (
            "websocket.allowed_origins",
            "https://a,*",
            r#"websocket.allowed_origins = "https://a,*": "*" is not an origin: "#,
        ),
        (
            "trusted_proxies",
            "10.0.0.0/8,proxy",
            r#"trusted_proxies = "10.0.0.0/8,proxy": "proxy" is not an address or "#,
        ),
    ] {
        assert!(set(name, value).starts_with(expected), "{}", set(name, value));
    }
}

#[test]
fn no_error_shows_a_secret() {
    for secret in ["short-secret", "a secret with spaces in it"] {
        let error = set("console_token", secret);
        assert!(error.starts_with("console_token: it has "), "{error}");
        let named = [("PLAYFIELD_CONSOLE_TOKEN".to_owned(), secret.to_owned())];
        let by_env = Config::from_env(named).unwrap_err();
        let by_toml = toml(&format!("console_token = \"{secret}\""));
        let broken = toml(&format!("shards = 1\nconsole_token = \"{secret}\nlist_max = 1"));
        assert!(broken.starts_with("not TOML: line 2: "), "{broken}");
        let bare = toml(&format!("console_token = {secret}"));
        for text in [error, by_env.to_string(), format!("{by_env:?}"), by_toml, broken, bare] {
            assert!(!text.contains("secret"), "{text}");
        }
    }
}

#[test]
fn the_memory_for_clients_follows_the_machine_unless_it_is_set() {
    let limit = |bytes| MemoryLimit { bytes, said_by: "/sys/fs/cgroup/memory.max".into() };
    for (set, may_use, expected) in [
        (0, None, 1 << 30),
        (0, Some(4 << 30), 1 << 30),
        (0, Some(512 << 20), 128 << 20),
        (0, Some(1 << 20), 1 << 20),
        (700 << 20, Some(512 << 20), 700 << 20),
    ] {
        let mut config = Config::default();
        config.limits.memory.total = set;
        let (total, said) = config.memory_max(may_use.map(limit).as_ref());
        assert_eq!(total, expected);
        assert_eq!(config.limits.memory.total, set, "what is in force does not count as set");
        assert_eq!(said.is_some(), set == 0 && expected < 1 << 30);
        if expected == 128 << 20 {
            let text = "limits.memory.total is 128 MiB instead of 1024 MiB: the process may use \
                        512 MiB of memory (/sys/fs/cgroup/memory.max), and clients get a \
                        quarter. Set it to choose";
            assert_eq!(said.as_deref(), Some(text));
        }
    }
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let check = |text: &str| Config::from_toml(text).unwrap().check().unwrap_err();
    let error = check("limits.memory.total = 5");
    assert!(error.starts_with("limits.memory.total = 5: less than 1048576"), "{error}");
    let error = check("limits.session.outbox_bytes = { max = 2000, high = 3000 }");
    assert_eq!(error, "limits.session.outbox_bytes.high = 3000: more than max, which is 2000");
    let error = check("limits.address.joins = { per_second = 2, burst = 121 }");
    assert!(error.starts_with("limits.address.joins.burst = 121: more than the 120 "), "{error}");
    assert!(check("tls.cert = \"a\"").contains("tls.key is not"));
}

#[test]
fn an_unknown_setting_is_answered_with_the_one_that_was_meant() {
    let unknown = |meant: &str| format!("no setting has this name; did you mean {meant}?");
    for (wrong, meant) in [
        ("limits.mesage_bytes", "limits.message_bytes"),
        ("limit.rooms", "limits.rooms"),
        ("timeout.hellos", "timeouts.hello"),
        ("http.idle_timeouts", "http.idle_timeout"),
        ("limits.connections.per_addresses", "limits.connections.per_address"),
        ("limits.addresses.joins", "limits.address.joins"),
        ("idle_timeout", "http.idle_timeout"),
        ("shrads", "shards"),
        // Of another group, or with a part that it does not have.
        ("limits.publishes", "limits.session.publishes"),
        ("limits.address.publishes.per_minute", "limits.session.publishes"),
        ("connections.max", "limits.connections"),
    ] {
        assert_eq!(set(wrong, "1"), format!("{wrong}: {}", unknown(meant)));
        assert_eq!(toml(&format!("{wrong} = 1")), format!("{wrong}: {}", unknown(meant)));
    }
    for (wrong, said) in [
        ("verbose", "no setting has this name; `serve --help` and docs/operations.md list them"),
        ("tls.certificate", "no setting has this name; the group has cert, key, self_signed, only"),
        ("tls", "this is a group of settings: cert, key, self_signed, only"),
        ("limits.connections_max", "this is now `limits.connections.total`"),
    ] {
        assert_eq!(set(wrong, "1"), format!("{wrong}: {said}"));
    }
    for (wrong, meant) in [("SHRADS", "SHARDS"), ("TIMEOUTS_HELLOS", "TIMEOUTS_HELLO")] {
        let variable = (format!("PLAYFIELD_{wrong}"), "2".to_owned());
        assert_eq!(
            Config::from_env([variable]).unwrap_err().to_string(),
            format!("PLAYFIELD_{wrong}: {}", unknown(&format!("PLAYFIELD_{meant}")))
        );
    }
}

#[test]
fn an_old_name_is_answered_with_the_new_one() {
    let expected = "hello_timeout_ms: this is now `timeouts.hello`, a duration such as \"10s\"";
    assert_eq!(set("hello_timeout_ms", "10"), expected);
    assert_eq!(toml("hello_timeout_ms = 10"), expected);
    let variable = ("PLAYFIELD_CONNECTIONS_PER_ADDRESS_MAX".to_owned(), "2".to_owned());
    assert_eq!(
        Config::from_env([variable]).unwrap_err().to_string(),
        "PLAYFIELD_CONNECTIONS_PER_ADDRESS_MAX: this is now \
         `PLAYFIELD_LIMITS_CONNECTIONS_PER_ADDRESS`"
    );
}

#[test]
fn what_only_programs_change_has_no_name_in_files_and_variables() {
    assert_eq!(set("tuning.hello_bytes", "100"), "taken");
    assert!(toml("tuning.hello_bytes = 100").contains("no setting has this name"));
    let variable = ("PLAYFIELD_TUNING_HELLO_BYTES".to_owned(), "100".to_owned());
    assert!(Config::from_env([variable]).is_err());
}

#[test]
fn settings_come_from_toml() {
    let text = r#"
        listen = "0.0.0.0:1"
        shards = 2
        limits.rooms = 7

        [threads]
        pin_cores = [0, 1]

        [websocket]
        deflate = true
        allowed_origins = ["https://a", "http://B:80"]

        [timeouts]
        hello = "1m30s"

        [limits.address]
        joins = { per_minute = 6, burst = 3 }

        [limits.connections]
        per_address = 5
    "#;
    let config = Config::from_toml(text).unwrap();
    for (name, value) in [
        ("listen", "0.0.0.0:1"),
        ("shards", "2"),
        ("threads.pin_cores", "0,1"),
        ("websocket.allowed_origins", "https://a,http://b"),
        ("timeouts.hello", "1m30s"),
        ("limits.rooms", "7"),
        ("limits.address.joins", "{ per_minute = 6, burst = 3 }"),
        ("limits.connections", "{ total = 100000, per_address = 5 }"),
    ] {
        assert_eq!(config.get(name).as_deref(), Some(value));
    }
    assert!(config.websocket.deflate);
    assert_eq!(Config::from_toml("").unwrap(), Config::default());

    for (text, expected) in [
        ("shards = -1", r#"shards = "-1": not a whole number; give 0..=1024"#),
        ("shards = [2]", "shards: a list; give one value"),
        ("shards = { all = 1 }", "shards: a table; give one value"),
        ("limits.rooms = 7.0", r#"limits.rooms = "7.0": not a whole number; give 1..=10000000"#),
        (
            "limits.session.messages = { per_second = 0.5 }",
            r#"limits.session.messages.per_second = "0.5": not a whole number; per_minute takes slower rates; give 0..=1000000"#,
        ),
        ("threads.pin_cores = [[0]]", "threads.pin_cores: a list; give one value"),
        (
            "limits.address.joins = { per_second = 1, per_minute = 1 }",
            "limits.address.joins: both per_second and per_minute; choose one",
        ),
        (
            "timeouts.hello = 10",
            r#"timeouts.hello = "10": 10 has no unit: ms, s, m or h; give a duration such as "10s", from 10ms to 24h"#,
        ),
    ] {
        assert_eq!(toml(text), expected);
    }
    assert!(toml("shards = ").starts_with("not TOML: "));
    assert!(toml("[limit]").starts_with("limit: no setting has this name"));
}

#[test]
fn settings_come_from_the_environment() {
    let variables = |name: &str, value: &str| {
        [("HOME".to_owned(), "/".to_owned()), (name.into(), value.into())]
    };
    assert_eq!(Config::from_env(variables("PLAYFIELD_SHARDS", "3")).unwrap().shards, 3);
    let config = Config::from_env(variables("PLAYFIELD_LIMITS_ADDRESS_JOINS_PER_MINUTE", "3"));
    assert_eq!(config.unwrap().limits.address.joins, RateLimit::per_minute(3));
    let config = variables("PLAYFIELD_LIMITS_SESSION_OUTBOX_BYTES", "{ max = 5000, high = 4000 }");
    let outbox_bytes = Config::from_env(config).unwrap().limits.session.outbox_bytes;
    assert_eq!(outbox_bytes, OutboxBytes { max: 5000, high: 4000 });
    assert_eq!(Config::from_env(variables("PLAYFIELD_CONFIG", "a.toml")), Ok(Config::default()));
    let error = Config::from_env(variables("PLAYFIELD_SHARDS", "many")).unwrap_err().to_string();
    assert_eq!(error, r#"PLAYFIELD_SHARDS = "many": not a whole number; give 0..=1024"#);
    let error = Config::from_env(variables("PLAYFIELD_SHARD", "1")).unwrap_err();
    assert_eq!(error.name(), "PLAYFIELD_SHARD");
}

#[test]
fn a_rate_without_a_burst_has_its_number_at_once_wherever_it_comes_from() {
    let messages = |config: Config| config.limits.session.messages;
    let expected = RateLimit::per_second(10);
    for text in [
        "limits.session.messages = { per_second = 10 }",
        "limits.session.messages.per_second = 10",
        "[limits.session.messages]\nper_second = 10",
    ] {
        assert_eq!(messages(Config::from_toml(text).unwrap()), expected, "{text}");
    }
    let number = ("PLAYFIELD_LIMITS_SESSION_MESSAGES_PER_SECOND".to_owned(), "10".to_owned());
    assert_eq!(messages(Config::from_env([number.clone()]).unwrap()), expected);

    let expected = RateLimit { burst: Some(50), ..expected };
    for text in [
        "limits.session.messages = { burst = 50, per_second = 10 }",
        "[limits.session.messages]\nburst = 50\nper_second = 10",
    ] {
        assert_eq!(messages(Config::from_toml(text).unwrap()), expected, "{text}");
    }
    let burst = ("PLAYFIELD_LIMITS_SESSION_MESSAGES_BURST".to_owned(), "50".to_owned());
    assert_eq!(messages(Config::from_env([burst, number.clone()]).unwrap()), expected);

    let other = ("PLAYFIELD_LIMITS_SESSION_MESSAGES_PER_MINUTE".to_owned(), "10".to_owned());
    let error = Config::from_env([number.clone(), other]).unwrap_err().to_string();
    assert_eq!(
        error,
        "PLAYFIELD_LIMITS_SESSION_MESSAGES_PER_MINUTE: both per_second and per_minute; choose one"
    );
    // A part goes before its table.
    let table = "{ per_second = 30, burst = 60 }".to_owned();
    let whole = ("PLAYFIELD_LIMITS_SESSION_MESSAGES".to_owned(), table);
    assert_eq!(messages(Config::from_env([number, whole]).unwrap()), RateLimit::per_second(10));
}

#[test]
fn no_two_settings_have_the_same_variable() {
    let variables: BTreeSet<String> = keys().map(setting::variable).collect();
    assert_eq!(variables.len(), keys().count());
}

/// A value of a setting, within its range if that is of numbers or times.
fn any_value(setting: &'static super::Setting) -> BoxedStrategy<String> {
    let within = |range: &str, most: u64| {
        let (least, end) = range.split_once("..=").expect("a range");
        let (least, end) = (least.parse::<u64>().unwrap(), end.parse::<u64>().unwrap());
        least..=end.min(most.max(least))
    };
    let range = setting.range();
    let default = setting.default();
    if range.contains("per_second") {
        let number = within(&(setting.range)(Some("per_second")), u64::MAX);
        let burst = within(&(setting.range)(Some("burst")), u64::MAX);
        let part = prop_oneof![Just("per_second"), Just("per_minute")];
        return (part, number, proptest::option::of(burst))
            .prop_map(|(part, number, burst)| match burst {
                Some(burst) => format!("{{ {part} = {number}, burst = {burst} }}"),
                None => format!("{{ {part} = {number} }}"),
            })
            .boxed();
    }
    if !setting.parts.is_empty() {
        let numbers: Vec<_> = setting
            .parts
            .iter()
            .map(|part| within(&(setting.range)(Some(part)), u64::MAX))
            .collect();
        return numbers
            .prop_map(|numbers| {
                let parts = setting.parts.iter().zip(numbers);
                let parts: Vec<_> =
                    parts.map(|(part, number)| format!("{part} = {number}")).collect();
                format!("{{ {} }}", parts.join(", "))
            })
            .boxed();
    }
    if range.contains("..=") {
        return within(&range, u64::MAX).prop_map(|number| number.to_string()).boxed();
    }
    if let Some((_, limits)) = range.split_once(", from ") {
        let (least, most) = limits.split_once(" to ").expect("two durations");
        let ms = |text| super::duration::read(text).unwrap().as_millis() as u64;
        let time = |ms| super::duration::text(std::time::Duration::from_millis(ms));
        return (ms(least)..=ms(most)).prop_map(time).boxed();
    }
    let samples: &[&str] = match setting.name {
        "listen" => &["127.0.0.1:1", "[::]:7350"],
        "console" => &["", "127.0.0.1:7351"],
        "log" => &["off", "debug"],
        "threads.pin_cores" => &["", "0,2"],
        "threads.descriptors" => &["shared", "per_shard"],
        "websocket.allowed_origins" => &["", "https://a,http://b:8080"],
        "cluster.engine" => &["", "nats://a:4222,tls://b"],
        "cluster.name" => &["playfield", "a_1"],
        "cluster.node" => &["", "node 1"],
        "cluster.addresses" => &["", "wss://a/node/1,tls://b:7350"],
        "trusted_proxies" | "limits.address.trusted" => &["", "10.0.0.0/8,::1"],
        _ if setting.is_switch() => &["true", "false"],
        _ if range.contains("path") => &["", "some/path"],
        // A secret is not shown, so it can't be read as it is written.
        _ => return Just(default).boxed(),
    };
    proptest::sample::select(samples).prop_map(str::to_owned).boxed()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_setting_is_read_as_it_is_written_from_text_a_file_and_variables(
        values in settings().iter().map(any_value).collect::<Vec<_>>()
    ) {
        let mut config = Config::default();
        let (mut file, mut variables) = (String::new(), Vec::new());
        for (setting, value) in settings().iter().zip(&values) {
            config.set(setting.name, value).unwrap();
            prop_assert_eq!(config.get(setting.name), Some(value.clone()));
            let is_bare = value.starts_with('{') || value.parse::<u64>().is_ok();
            let written = if is_bare { value.clone() } else { format!("{value:?}") };
            file += &format!("{} = {written}\n", setting.name);
            variables.push((setting.variable(), value.clone()));
        }
        prop_assert_eq!(&Config::from_toml(&file).unwrap(), &config);
        prop_assert_eq!(&Config::from_env(variables).unwrap(), &config);
    }
}

/// The tables of `docs/operations.md`.
fn tables() -> String {
    let mut text = String::new();
    for (at, setting) in settings().iter().enumerate() {
        if at == 0 || settings()[at - 1].group.name != setting.group.name {
            if at > 0 {
                text += &format!("\n**`[{}]`** {}\n\n", setting.group.name, setting.group.help);
            }
            text += "| setting | default | meaning |\n|---|---|---|\n";
        }
        let default = match setting.default() {
            text if text.is_empty() => text,
            text => format!("`{text}`"),
        };
        text += &format!("| `{}` | {default} | {} |\n", setting.key(), setting.help);
    }
    text
}

#[test]
fn the_documentation_has_all_settings() {
    const BEGIN: &str = "<!-- settings: written by a test of the settings, PLAYFIELD_WRITE=1 -->\n";
    const END: &str = "<!-- end of settings -->\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let expected = format!("{before}{BEGIN}{}{END}{after}", tables());
    if std::env::var_os("PLAYFIELD_WRITE").is_some() {
        std::fs::write(path, expected).unwrap();
        return;
    }
    assert!(page == expected, "the tables are old: run this test with PLAYFIELD_WRITE=1");
}
