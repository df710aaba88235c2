//! Scripts that register devices.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use playfield_load::{LoadError, script};
use playfield_room::{Error, Result};
use playfield_server::device::Device;
use playfield_server::{
    Authenticator, Decision, Fleet, FleetSettings, Identity, NodeHandle, Pending,
};
use playfield_wire::ErrorCode;
use playfield_wire::client::Hello;
use serde_json::json;

use crate::rooms::{config, load, server, settings};

/// Sends two commands to each device that reports: a push, and a request.
#[derive(Clone, Default)]
struct Drivers(Arc<State>);

#[derive(Default)]
struct State {
    node: OnceLock<NodeHandle>,
    /// Reports, and the tags of who reported.
    reports: Mutex<Vec<(String, String)>>,
    answers: Mutex<Vec<Pending<f64>>>,
}

impl Fleet for Drivers {
    fn started(&self, node: &NodeHandle) {
        self.0.node.get_or_init(|| node.clone());
    }

    fn report(&self, device: &Device, report: &[u8]) -> Result<Vec<u8>> {
        let report = String::from_utf8_lossy(report).into_owned();
        let tags = format!(
            "{} {}",
            device.tags().join(" "),
            device.metadata_of("model").unwrap_or_default()
        );
        self.0.reports.lock().unwrap().push((report, tags));
        let devices = self.0.node.get().expect("it has started").devices();
        devices.push(device.id(), &"go".to_owned())?;
        let answer = devices.request(device.id(), &2.5, Duration::from_secs(30));
        self.0.answers.lock().unwrap().push(answer);
        Ok(b"7".to_vec())
    }
}

impl Drivers {
    fn answers(&self) -> Vec<Result<f64>> {
        let answers = std::mem::take(&mut *self.0.answers.lock().unwrap());
        answers.into_iter().map(Pending::wait).collect()
    }
}

#[test]
fn devices_register_report_and_answer_commands() {
    for scheme in ["tcp", "ws"] {
        let drivers = Drivers::default();
        let settings_of_fleet = FleetSettings::new().ids("pump:*");
        let node = server(config()).fleet(drivers.clone(), settings_of_fleet).start().unwrap();
        let text = r#"steps = [
            { register = "pump:{n}", tags = ["pump", "zone-{n%2}"], metadata = { model = "x{n/4}" } },
            { wait = "all" },
            { repeat = 3, every = 0.01, steps = [
                { report = true, value = { celsius = { from = -10, to = 40 } }, reply = true },
            ] },
            { report = true },
            { wait = 0.2 },
        ]"#;
        let report = load(settings(scheme, node.local_addr(), 8), text).unwrap();
        let counts = report.counts();
        assert_eq!(report.trouble(), None, "{:?}", report.problems());
        assert_eq!((counts.registered, counts.reports, counts.finished), (8, 32, 8));
        assert_eq!((counts.requests, counts.replies), (24, 24));
        assert_eq!((counts.commands, counts.answers), (64, 32), "a push wants no answer");
        let answers = drivers.answers();
        assert!(answers.len() == 32 && answers.iter().all(|answer| *answer == Ok(2.5)));
        let reports = std::mem::take(&mut *drivers.0.reports.lock().unwrap());
        assert!(reports.iter().any(|(_, tags)| tags == "pump zone-1 x1"), "{reports:?}");
        assert!(reports.iter().filter(|(text, _)| text.contains("celsius")).count() == 24);
        let json = report.to_json();
        assert_eq!(json["messages"]["report"]["replies"], json!(24));
        assert_eq!(json["messages"]["register"]["replies"], json!(8));
        let mut table = Vec::new();
        report.print(&mut table).unwrap();
        let table = String::from_utf8(table).unwrap();
        assert!(table.contains("devices      8 registered, 32 reports"), "{table}");
        node.shutdown();
    }
}

/// The token is the user.
struct Users;

impl Authenticator for Users {
    fn authenticate(&self, hello: &Hello<'_>) -> Decision {
        match String::from_utf8_lossy(&hello.token) {
            user if user.is_empty() => Err(Error::new(ErrorCode::Unauthorized, "no user")).into(),
            user => Ok(Identity::user(user, "")).into(),
        }
    }
}

#[test]
fn connections_and_scripts_have_tokens_of_their_own() {
    let settings_of_fleet = || FleetSettings::new().ids("{user}:*");
    let start = || {
        let node = server(config()).authenticator(Box::new(Users));
        node.fleet(Drivers::default(), settings_of_fleet()).start().unwrap()
    };
    let node = start();
    let mut each = settings("tcp", node.local_addr(), 6);
    each.token = b"user-{n}".to_vec();
    let text = r#"steps = [{ register = "user-{n}:pump" }, { wait = "all" }]"#;
    let report = load(each.clone(), text).unwrap();
    assert_eq!((report.trouble(), report.counts().registered), (None, 6));
    // A script's token is that of its connections; the others have the load's.
    let text = r#"
        [[script]]
        token = "boss"
        steps = [{ register = "boss:{n}" }, { wait = "all" }]
        [[script]]
        steps = [{ register = "user-{n}:pump" }, { wait = "all" }]
    "#;
    let report = load(each.clone(), text).unwrap();
    assert_eq!((report.trouble(), report.counts().registered), (None, 6));
    each.token = Vec::new();
    let report = load(each, text).unwrap();
    assert_eq!((report.counts().registered, report.counts().failed), (3, 3));
    node.shutdown();
}

#[test]
fn a_device_answers_with_a_generated_value_or_not_at_all() {
    for (answer, is_answered) in [("{ from = 3, to = 5 }", true), ("false", false)] {
        let drivers = Drivers::default();
        let node = server(config()).fleet(drivers.clone(), FleetSettings::new()).start().unwrap();
        let text = format!(
            "steps = [{{ register = \"{{n}}\", answer = {answer} }}, \
             {{ report = true, reply = true }}, {{ wait = 0.1 }}]"
        );
        let report = load(settings("tcp", node.local_addr(), 2), &text).unwrap();
        let counts = report.counts();
        assert_eq!((report.trouble(), counts.commands), (None, 4));
        assert_eq!(counts.answers, if is_answered { 2 } else { 0 });
        for answer in drivers.answers() {
            match answer {
                Ok(value) => assert!(is_answered && (3.0..=5.0).contains(&value)),
                Err(error) => assert!(!is_answered, "{error}"),
            }
        }
        node.shutdown();
    }
}

#[test]
fn a_refused_registration_is_trouble() {
    let node = server(config())
        .fleet(Drivers::default(), FleetSettings::new().ids("pump:*"))
        .start()
        .unwrap();
    let text = r#"steps = [{ register = "valve-{n}" }, { report = true }]"#;
    let report = load(settings("tcp", node.local_addr(), 3), text).unwrap();
    assert_eq!(report.trouble().as_deref(), Some("3 registrations were refused"));
    assert_eq!((report.counts().registered, report.counts().reports), (0, 0));
    assert!(script::parse("load.toml", text).is_ok());
    node.shutdown();
}

#[test]
fn a_value_as_the_answer_does_not_fit_a_fleet_of_bytes() {
    let fleet = FleetSettings::new().bytes();
    let node = server(config()).fleet(Drivers::default(), fleet).start().unwrap();
    let text =
        "steps = [\n{ register = \"{n}\", answer = { from = 3, to = 5 } },\n{ hold = true }]";
    let error = load(settings("tcp", node.local_addr(), 2), text).expect_err("a fleet of bytes");
    let (LoadError::Usage(why), place) = (&error, "load.toml:2: answer = {\"from\":3,\"to\":5}: ")
    else {
        panic!("{error}")
    };
    assert!(why.starts_with(place) && why.contains("this fleet are bytes"), "{why}");

    // A script that shows it is refused before anything is sent.
    let text = "steps = [\n{ register = \"{n}\", answer = 7 },\n{ report = true, bytes = 9 }]";
    let error = load(settings("tcp", node.local_addr(), 1), text).expect_err("bytes and a value");
    let why = "load.toml:3: it reports bytes, but answers by a value (load.toml:2: answer = 7)";
    assert!(matches!(&error, LoadError::Usage(text) if text.starts_with(why)), "{error}");

    for answer in ["", ", answer = false"] {
        let text =
            format!("steps = [{{ register = \"{{n}}\"{answer} }}, {{ report = true, bytes = 9 }}]");
        let report = load(settings("tcp", node.local_addr(), 1), &text).unwrap();
        // The fleet pushes a value back, which is refused.
        let counts = report.counts();
        assert_eq!((counts.registered, counts.registrations_refused), (1, 0));
    }
    node.shutdown();
}
