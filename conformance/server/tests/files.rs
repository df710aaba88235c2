//! The files of scenarios and of clients.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use serde_json::{Map, Value};

/// The members of each action beside `do` and `client`; those with a question mark may be absent.
const ACTIONS: &[(&str, &[&str])] = &[
    (
        "connect",
        &["link?", "reconnects?", "name?", "token?", "tokens?", "tls?", "trusts?", "refused?"],
    ),
    ("join", &["room?", "id?", "ticket?", "refused?"]),
    ("join_by_key", &["room?", "type", "key", "refused?"]),
    ("create", &["room?", "type", "key?", "private?", "code?", "options?", "refused?"]),
    ("join_or_create", &["room?", "type", "key?", "options?", "refused?"]),
    ("leave", &["room?", "refused?"]),
    ("send", &["room?", "message", "payload?", "refused?"]),
    ("request", &["room?", "message", "payload?", "reply?", "as?", "refused?"]),
    ("watch", &["room?"]),
    ("close", &[]),
    ("cut", &[]),
    ("cut_after", &["bytes"]),
    ("restore", &[]),
    ("hold", &[]),
    ("move", &[]),
    ("alone", &[]),
    ("stop", &[]),
    ("lose_patch", &[]),
    ("spoil_check", &[]),
    ("list", &["type?", "filter?", "limit?", "rooms?", "refused?"]),
    ("schema", &["type", "has?", "refused?"]),
    ("subscribe", &["channel", "presence?", "refused?"]),
    ("unsubscribe", &["channel"]),
    ("publish", &["channel", "payload", "refused?"]),
    ("members", &["channel", "names?", "refused?"]),
    ("history", &["channel", "limit?", "payloads?", "refused?"]),
    ("register", &["device", "metadata?", "tags?", "is_new?", "refused?"]),
    ("report", &["payload", "reply?", "refused?"]),
    ("push", &["device", "payload"]),
    ("end_sessions", &["user", "text"]),
    ("take_out", &["user", "channel"]),
    ("command", &["device", "payload", "answer"]),
];

/// The members of each expectation beside `expect` and `client`.
const EXPECTATIONS: &[(&str, &[&str])] = &[
    ("state", &["room?", "at?", "is?", "absent?"]),
    ("info", &["room?", "member", "is"]),
    ("event", &["room?", "event", "payload?"]),
    ("missed", &["room?", "events?"]),
    ("error", &["room?", "code"]),
    ("answer", &["as", "reply?", "refused?", "lost?"]),
    ("changes", &["room?", "are", "in_any_order?"]),
    ("left", &["room?", "code?", "text?"]),
    ("status", &["status", "code?"]),
    ("lost_patch", &[]),
    ("spoiled_check", &[]),
    ("snapshot", &[]),
    ("all_cut", &[]),
    ("played", &[]),
    ("publication", &["channel", "payload"]),
    ("publications", &["channel", "payloads", "some_missed?"]),
    ("presence", &["channel", "name", "joined"]),
    ("subscribed", &["channel", "recovered"]),
    ("unsubscribed", &["channel", "code"]),
    ("commanded", &["payload"]),
];

/// A scenario: its name and its steps.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) steps: Vec<Map<String, Value>>,
}

/// All scenarios, in the order of the files' names.
pub(crate) fn scenarios() -> Vec<Scenario> {
    json_files("scenarios").values().flat_map(scenarios_of).collect()
}

/// The scenarios of a group.
pub(crate) fn scenarios_of(group: &Value) -> Vec<Scenario> {
    assert!(group["about"].is_string(), "{group}");
    let scenarios = group["scenarios"].as_array().expect("a list of scenarios").iter();
    let scenario = |scenario: &Value| {
        let name = scenario["name"].as_str().expect("a name").to_owned();
        let steps = scenario["steps"].as_array().expect("a list of steps").iter();
        let steps = steps.map(|step| step.as_object().expect("a step").clone()).collect();
        assert!(scenario["about"].is_string(), "{name}");
        Scenario { name, steps }
    };
    scenarios.map(scenario).collect()
}

/// The steps that a client does not do, and why.
#[derive(Debug)]
pub(crate) struct LeftOut {
    pub(crate) formats: Vec<String>,
    pub(crate) transports: Vec<String>,
    pub(crate) steps: BTreeMap<String, String>,
    pub(crate) scenarios: BTreeMap<String, String>,
}

impl LeftOut {
    pub(crate) fn of(client: &str) -> Self {
        let file = json_files("clients").remove(&format!("{client}.json")).expect("its file");
        let list = |name: &str| -> Vec<String> {
            let values = file[name].as_array().expect("a list").iter();
            values.map(|value| value.as_str().expect("a name").to_owned()).collect()
        };
        let reasons = |name: &str| -> BTreeMap<String, String> {
            let reasons = file[name].as_object().expect("an object").iter();
            reasons
                .map(|(name, why)| (name.clone(), why.as_str().expect("a reason").to_owned()))
                .collect()
        };
        Self {
            formats: list("formats"),
            transports: list("transports"),
            steps: reasons("steps"),
            scenarios: reasons("scenarios"),
        }
    }

    /// Why a scenario is not played, if it is not.
    pub(crate) fn why_not(&self, scenario: &Scenario) -> Option<&str> {
        let action = |step: &Map<String, Value>| {
            let action = step.get("do")?.as_str().filter(|action| *action != "watch");
            action.map(str::to_owned)
        };
        let by_step =
            || scenario.steps.iter().filter_map(action).find_map(|action| self.steps.get(&action));
        self.scenarios.get(&scenario.name).or_else(by_step).map(String::as_str)
    }
}

fn json_files(folder: &str) -> BTreeMap<String, Value> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(&folder).expect("a folder") {
        let path = entry.expect("a readable folder").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("a readable file");
        let file = serde_json::from_str(&text);
        files.insert(name.clone(), file.unwrap_or_else(|error| panic!("{name}: {error}")));
    }
    files
}

#[test]
fn scenarios_have_only_steps_that_the_contract_knows() {
    let mut names = BTreeSet::new();
    let generated = playfield_conformance::plays(200, true);
    for Scenario { name, steps } in scenarios().into_iter().chain(scenarios_of(&generated)) {
        assert!(names.insert(name.clone()), "two scenarios have the name {name}");
        let is_plain =
            |byte: u8| byte == b'-' || byte.is_ascii_lowercase() || byte.is_ascii_digit();
        assert!(name.bytes().all(is_plain), "{name}");
        let mut connected = BTreeSet::new();
        for step in &steps {
            if let Err(why) = check(step, &mut connected) {
                panic!("{name}: {why}: {}", Value::from(step.clone()));
            }
        }
    }
}

fn check(step: &Map<String, Value>, connected: &mut BTreeSet<String>) -> Result<(), String> {
    let (kind, known) = match (step.get("do"), step.get("expect")) {
        (Some(action), None) => (action, ACTIONS),
        (None, Some(expectation)) => (expectation, EXPECTATIONS),
        _ => return Err("it has not one of do and expect".to_owned()),
    };
    let kind = kind.as_str().ok_or("it has no kind")?;
    let client = step.get("client").and_then(Value::as_str).ok_or("it has no client")?;
    if kind == "connect" && !connected.insert(client.to_owned()) {
        return Err(format!("{client} connects twice"));
    }
    if !connected.contains(client) {
        return Err(format!("{client} has not connected"));
    }
    let (_, members) = known.iter().find(|(name, _)| *name == kind).ok_or("its kind is unknown")?;
    let is_known = |name: &str| {
        ["do", "expect", "client"].contains(&name)
            || members.iter().any(|member| member.trim_end_matches('?') == name)
    };
    if let Some(name) = step.keys().find(|name| !is_known(name)) {
        return Err(format!("{kind} has no member {name}"));
    }
    let needed = members.iter().find(|name| !name.ends_with('?') && !step.contains_key(**name));
    if let Some(name) = needed {
        return Err(format!("{kind} needs {name}"));
    }
    let outcomes = |names: &[&str]| names.iter().filter(|name| step.contains_key(**name)).count();
    match kind {
        "state" if outcomes(&["is", "absent"]) != 1 => Err("it needs is or absent".to_owned()),
        "join" if outcomes(&["id", "ticket"]) != 1 => Err("it needs id or ticket".to_owned()),
        "answer" if outcomes(&["reply", "refused", "lost"]) != 1 => {
            Err("it needs reply, refused or lost".to_owned())
        }
        "request" if step.contains_key("as") && outcomes(&["reply", "refused"]) != 0 => {
            Err("its answer is expected later".to_owned())
        }
        _ => Ok(()),
    }
}

#[test]
fn what_clients_leave_out_exists_and_has_reasons() {
    let scenarios: BTreeSet<String> = scenarios().into_iter().map(|one| one.name).collect();
    for file in json_files("clients").keys() {
        let left_out = LeftOut::of(file.trim_end_matches(".json"));
        let is_step = |name: &String| ACTIONS.iter().chain(EXPECTATIONS).any(|(of, _)| of == name);
        let unknown = left_out.steps.keys().find(|name| !is_step(name));
        assert_eq!(unknown, None, "{file}: there is no such step");
        let unknown = left_out.scenarios.keys().find(|name| !scenarios.contains(*name));
        assert_eq!(unknown, None, "{file}: there is no such scenario");
        let mut reasons = left_out.steps.iter().chain(&left_out.scenarios);
        let bare = reasons.find(|(_, why)| why.trim().is_empty());
        assert_eq!(bare, None, "{file}: there is no reason");
        assert!(!left_out.formats.is_empty() && !left_out.transports.is_empty(), "{file}");
    }
}
