//! Scripts in TOML: each error names the file, the line and the value.

mod source;

use std::fmt::Display;
use std::io::Read;
use std::path::Path;

use playfield_state::generate::LENGTH_MAX;
use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

use self::source::{Item, Source, Table};
use crate::settings::{Action, Answer, Content, Enter, LoadError, MessageKind, Script, Step};

/// The longest script file, in bytes.
pub const SCRIPT_BYTES_MAX: usize = 1 << 20;

/// The greatest depth to which repetitions, and values, may be nested.
pub const SCRIPT_DEPTH_MAX: usize = 32;

/// The greatest weight of a script.
const WEIGHT_MAX: u64 = 1_000_000;

/// The words that name a step.
const STEPS: &str = "join, leave, wait, send, request, subscribe, unsubscribe, publish, \
                     register, report, ping, repeat, hold";

/// Reads the scripts of a file.
///
/// # Errors
/// If the file can't be read, or is no script: with the file, the line, the value and what to do.
pub fn read(path: &Path) -> Result<Vec<Script>, LoadError> {
    let refuse = |why: &dyn Display| LoadError::Usage(format!("{}: {why}", path.display()));
    let file = std::fs::File::open(path).map_err(|error| refuse(&error))?;
    let mut text = String::new();
    // A pipe or a device does not say how much there is.
    let mut start = file.take(SCRIPT_BYTES_MAX as u64 + 1);
    let read = start.read_to_string(&mut text);
    if start.limit() == 0 {
        let why = format!("the script is longer than {SCRIPT_BYTES_MAX} bytes; split it");
        return Err(refuse(&why));
    }
    read.map_err(|error| refuse(&error))?;
    parse(&path.display().to_string(), &text)
}

/// Reads scripts; `file` is their name in errors.
///
/// # Errors
/// Same as [`read`].
pub fn parse(file: &str, text: &str) -> Result<Vec<Script>, LoadError> {
    let source = Source { file, text };
    let table = DeTable::parse(text).map_err(|error| {
        source.refuse(error.span().map_or(0, |span| span.start), &error.message())
    })?;
    let scripts = source.scripts(table.get_ref())?;
    if scripts.iter().all(|script| script.weight == 0) {
        return Err(source.refuse(0, &"all scripts have the weight 0; give one a greater one"));
    }
    Ok(scripts)
}

impl Source<'_> {
    /// The file: one list of steps, or several scripts.
    fn scripts(&self, table: &Table<'_>) -> Result<Vec<Script>, LoadError> {
        if table.contains_key("steps") {
            return Ok(vec![self.script(table)?]);
        }
        self.known(table, &["script"], "a script file has steps, or tables [[script]]")?;
        let Some(scripts) = table.get("script") else {
            return Err(self.refuse(0, &"the script has no steps; add steps = [ ... ]"));
        };
        let DeValue::Array(scripts) = scripts.get_ref() else {
            return Err(self.wrong(scripts, "script", "a list of tables, each headed [[script]]"));
        };
        let each = scripts.iter().map(|script| match script.get_ref() {
            DeValue::Table(table) => self.script(table),
            _ => Err(self.wrong(script, "script", "a table headed [[script]]")),
        });
        each.collect()
    }

    fn script(&self, table: &Table<'_>) -> Result<Script, LoadError> {
        self.known(
            table,
            &["name", "weight", "token", "steps"],
            "a script has a name, a weight, a token and steps",
        )?;
        let weight = match table.get("weight") {
            None => 1,
            Some(item) => self.whole(item, "weight", WEIGHT_MAX)?,
        };
        let Some(steps) = table.get("steps") else {
            return Err(self.refuse(0, &"a script has no steps; add steps = [ ... ]"));
        };
        let token = table.get("token").map(|item| self.text(item, "token")).transpose()?;
        Ok(Script { weight: weight as u32, token, steps: self.steps(steps, 0)? })
    }

    fn steps(&self, item: &Item<'_>, depth: usize) -> Result<Vec<Step>, LoadError> {
        if depth >= SCRIPT_DEPTH_MAX {
            let why = format!("steps are nested deeper than {SCRIPT_DEPTH_MAX}; use fewer repeats");
            return Err(self.refuse(item.span().start, &why));
        }
        let DeValue::Array(steps) = item.get_ref() else {
            return Err(self.wrong(item, "steps", "a list of steps"));
        };
        steps.iter().map(|step| self.step(step, depth)).collect()
    }

    fn step(&self, item: &Item<'_>, depth: usize) -> Result<Step, LoadError> {
        let DeValue::Table(table) = item.get_ref() else {
            return Err(self.wrong(item, "a step", &format!("a table with one of {STEPS}")));
        };
        let words = STEPS.split(", ").filter(|word| table.contains_key(*word));
        let [word] = words.collect::<Vec<_>>()[..] else {
            let named: Vec<_> = table.iter().map(|(name, _)| name.get_ref().as_ref()).collect();
            let why = format!("a step has one of {STEPS}; this one has {}", named.join(", "));
            return Err(self.refuse(item.span().start, &why));
        };
        let place = self.place(item.span().start);
        Ok(Step { place, action: self.action(table, word, depth)? })
    }

    fn action(&self, table: &Table<'_>, word: &str, depth: usize) -> Result<Action, LoadError> {
        let what = &table[word];
        let known = |names: &[&str]| {
            let all: Vec<_> = [&[word], names].concat();
            let shown = if names.is_empty() { "nothing else".into() } else { names.join(", ") };
            self.known(table, &all, &format!("a step {word} takes {shown}"))
        };
        let room_type = || match table.get("room") {
            Some(item) => self.text(item, "room").map(Some),
            None => Ok(None),
        };
        let json = |name| table.get(name).map(|item| self.json(item, 0)).transpose();
        Ok(match word {
            "join" => {
                known(&["key", "id", "create", "per_room", "options"])?;
                let (room_type, options) = (self.text(what, "join")?, json("options")?);
                Action::Join { room_type, enter: self.enter(table)?, options }
            }
            "leave" => {
                known(&[])?;
                match what.get_ref() {
                    DeValue::Boolean(true) => Action::Leave { room_type: None },
                    _ => Action::Leave { room_type: Some(self.text(what, "leave")?) },
                }
            }
            "wait" => {
                known(&[])?;
                self.wait(what)?
            }
            "send" | "request" => {
                let is_send = word == "send";
                known(if is_send { &["value", "room"] } else { &["value", "room", "ahead"] })?;
                let ahead =
                    table.get("ahead").map(|item| self.switch(item, "ahead")).transpose()?;
                let kind = match (is_send, ahead) {
                    (true, _) => MessageKind::Send,
                    (false, Some(true)) => MessageKind::RequestAhead,
                    (false, _) => MessageKind::Request,
                };
                let name = Some(self.text(what, word)?).filter(|name| name != "*");
                let value = json("value")?;
                if let (None, Some(item)) = (&name, table.get("value")) {
                    let wanted = "left out, as \"*\" is any message";
                    return Err(self.wrong(item, "value", wanted));
                }
                Action::Message { room_type: room_type()?, name, value, kind }
            }
            "subscribe" => {
                known(&["presence"])?;
                let presence = table.get("presence").map(|item| self.switch(item, "presence"));
                let presence = presence.transpose()?.unwrap_or(false);
                Action::Subscribe { channel: self.name(what, "subscribe")?, presence }
            }
            "unsubscribe" => {
                known(&[])?;
                let channel = match what.get_ref() {
                    DeValue::Boolean(true) => None,
                    _ => Some(self.name(what, "unsubscribe")?),
                };
                Action::Unsubscribe { channel }
            }
            "publish" => {
                known(&["value", "bytes", "confirm", "ahead"])?;
                let content = self.content(table, || Value::Object(Map::new()))?;
                let kind = self.kind(table, "confirm")?;
                Action::Publish { channel: self.name(what, "publish")?, content, kind }
            }
            "register" => {
                known(&["tags", "metadata", "answer"])?;
                self.register(what, table)?
            }
            "report" => {
                known(&["value", "bytes", "reply", "ahead"])?;
                if !self.switch(what, word)? {
                    return Err(self.wrong(what, word, "true"));
                }
                let any = || serde_json::json!({ "from": 0, "to": 100 });
                let content = self.content(table, any)?;
                Action::Report { content, kind: self.kind(table, "reply")? }
            }
            "ping" | "hold" => {
                known(&[])?;
                if !self.switch(what, word)? {
                    return Err(self.wrong(what, word, "true"));
                }
                if word == "ping" { Action::Ping } else { Action::Hold }
            }
            _ => {
                known(&["every", "steps"])?;
                let times = match what.get_ref() {
                    DeValue::String(text) if text == "forever" => None,
                    DeValue::Integer(_) => Some(self.whole(what, "repeat", u64::from(u32::MAX))?),
                    _ => return Err(self.wrong(what, "repeat", "a number or \"forever\"")),
                };
                let every = table.get("every").map(|item| self.every(item)).transpose()?;
                let Some(steps) = table.get("steps") else {
                    let why = "repeat has no steps; add steps = [ ... ]";
                    return Err(self.refuse(what.span().start, &why));
                };
                Action::Repeat { times, every, steps: self.steps(steps, depth + 1)? }
            }
        })
    }

    fn register(&self, what: &Item<'_>, table: &Table<'_>) -> Result<Action, LoadError> {
        let tags = match table.get("tags").map(|item| (item, item.get_ref())) {
            None => Vec::new(),
            Some((_, DeValue::Array(tags))) => {
                tags.iter().map(|tag| self.name(tag, "a tag")).collect::<Result<_, _>>()?
            }
            Some((item, _)) => return Err(self.wrong(item, "tags", "a list of texts")),
        };
        let metadata = match table.get("metadata").map(|item| (item, item.get_ref())) {
            None => Vec::new(),
            Some((_, DeValue::Table(members))) => {
                let members = members.iter().map(|(name, item)| {
                    let name = name.get_ref().clone().into_owned();
                    self.name(item, &name).map(|value| (name, value))
                });
                members.collect::<Result<_, _>>()?
            }
            Some((item, _)) => return Err(self.wrong(item, "metadata", "a table of texts")),
        };
        let answer = match table.get("answer").map(|item| (item, item.get_ref())) {
            None => Answer::Echo,
            Some((_, DeValue::Boolean(false))) => Answer::Never,
            Some((item, _)) => Answer::Value(self.json(item, 0)?),
        };
        Ok(Action::Register { device: self.name(what, "register")?, metadata, tags, answer })
    }

    /// A payload without a schema: `value` or `bytes`.
    fn content(
        &self,
        table: &Table<'_>,
        otherwise: impl FnOnce() -> Value,
    ) -> Result<Content, LoadError> {
        Ok(match (table.get("value"), table.get("bytes")) {
            (None, None) => Content::Json(otherwise()),
            (Some(value), None) => Content::Json(self.json(value, 0)?),
            (None, Some(item)) => Content::Bytes(self.whole(item, "bytes", LENGTH_MAX)? as usize),
            (Some(_), Some(item)) => {
                return Err(self.wrong(item, "bytes", "left out where value is given"));
            }
        })
    }

    /// Reads whether an answer is expected, as this word and `ahead` say.
    fn kind(&self, table: &Table<'_>, word: &str) -> Result<MessageKind, LoadError> {
        let switch = |name| table.get(name).map(|item| self.switch(item, name)).transpose();
        let expects = switch(word)?.unwrap_or(false);
        let ahead = switch("ahead")?.unwrap_or(false);
        match (expects, ahead, table.get("ahead")) {
            (false, true, Some(item)) => {
                Err(self.wrong(item, "ahead", &format!("left out without {word} = true")))
            }
            (false, ..) => Ok(MessageKind::Send),
            (true, true, _) => Ok(MessageKind::RequestAhead),
            (true, false, _) => Ok(MessageKind::Request),
        }
    }

    fn enter(&self, table: &Table<'_>) -> Result<Enter, LoadError> {
        let names = ["id", "create", "key", "per_room"];
        let given: Vec<_> =
            names.iter().filter_map(|name| Some((*name, table.get(*name)?))).collect();
        Ok(match given[..] {
            [] => Enter::Any,
            [("id", item)] => Enter::Id(self.text(item, "id")?),
            [("create", item)] => match self.switch(item, "create")? {
                true => Enter::Create,
                false => Enter::Any,
            },
            [("key", item)] => Enter::Key(self.text(item, "key")?),
            [("per_room", item)] => self.shared(String::new(), item)?,
            [("key", key), ("per_room", item)] => self.shared(self.text(key, "key")?, item)?,
            [_, (name, item), ..] => {
                return Err(self.wrong(
                    item,
                    name,
                    "left out: a join has one of id, create and key",
                ));
            }
            [(name, item)] => return Err(self.wrong(item, name, "left out")),
        })
    }

    fn shared(&self, key: String, item: &Item<'_>) -> Result<Enter, LoadError> {
        let connections = self.whole(item, "per_room", u64::from(u32::MAX))?;
        if connections == 0 {
            return Err(self.wrong(item, "per_room", "at least 1"));
        }
        Ok(Enter::Shared { key, connections: connections as usize })
    }

    fn wait(&self, item: &Item<'_>) -> Result<Action, LoadError> {
        match item.get_ref() {
            DeValue::String(text) if text == "all" => Ok(Action::WaitForAll),
            DeValue::Array(bounds) if bounds.len() == 2 => {
                let least = self.seconds(&bounds[0], "wait")?;
                let most = self.seconds(&bounds[1], "wait")?;
                if least > most {
                    return Err(self.wrong(item, "wait", "[shortest, longest]"));
                }
                Ok(Action::Wait { least, most })
            }
            DeValue::Integer(_) | DeValue::Float(_) => {
                let time = self.seconds(item, "wait")?;
                Ok(Action::Wait { least: time, most: time })
            }
            _ => Err(self.wrong(item, "wait", "seconds, [shortest, longest] or \"all\"")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::{SCRIPT_DEPTH_MAX, parse};
    use crate::settings::{Action, Enter, MessageKind, Step};

    fn actions(text: &str) -> Vec<Action> {
        let scripts = parse("load.toml", text).unwrap_or_else(|error| panic!("{error}"));
        scripts.into_iter().flat_map(|script| script.steps).map(|step| step.action).collect()
    }

    #[test]
    fn steps_are_read() {
        let text = r#"
            steps = [
                { join = "arena", options = { size = 3 }, key = "k-", per_room = 10 },
                { wait = "all" },
                { wait = [0.5, 2] },
                { repeat = 3, every = 0.25, steps = [
                    { send = "steer", value = { turn = { from = -1, to = 1.5 } } },
                    { request = "*", ahead = true },
                ] },
                { leave = true },
            ]"#;
        let seconds = Duration::from_secs_f64;
        let turn = json!({"turn": {"from": -1, "to": 1.5}});
        let message = |name: Option<&str>, value, kind| Action::Message {
            room_type: None,
            name: name.map(str::to_owned),
            value,
            kind,
        };
        let repeated = [
            message(Some("steer"), Some(turn), MessageKind::Send),
            message(None, None, MessageKind::RequestAhead),
        ];
        let places = ["load.toml:7", "load.toml:8"].map(str::to_owned);
        let steps = places.into_iter().zip(repeated);
        let expected = [
            Action::Join {
                room_type: "arena".into(),
                enter: Enter::Shared { key: "k-".into(), connections: 10 },
                options: Some(json!({"size": 3})),
            },
            Action::WaitForAll,
            Action::Wait { least: seconds(0.5), most: seconds(2.0) },
            Action::Repeat {
                times: Some(3),
                every: Some(seconds(0.25)),
                steps: steps.map(|(place, action)| Step { place, action }).collect(),
            },
            Action::Leave { room_type: None },
        ];
        assert_eq!(actions(text), expected);
    }

    #[test]
    fn scripts_have_weights() {
        let text = "[[script]]\nweight = 3\nsteps = [{ping = true}]\n\
                    [[script]]\nname = \"idle\"\nsteps = [{hold = true}]\n";
        let scripts = parse("load.toml", text).unwrap();
        assert_eq!(scripts.iter().map(|script| script.weight).collect::<Vec<_>>(), [3, 1]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_value() {
        let deep = "{ repeat = 1, steps = [".repeat(SCRIPT_DEPTH_MAX);
        let deep = format!("steps = [{deep}{}]", "] }".repeat(SCRIPT_DEPTH_MAX));
        for (text, why) in [
            ("", "load.toml:1: the script has no steps; add steps = [ ... ]"),
            ("steps = [", "load.toml:1: "),
            ("\nstep = []", "load.toml:2: \"step\" is unknown here: a script file has steps"),
            ("steps = 3", "load.toml:1: steps = 3 must be a list of steps"),
            ("steps = [\n3]", "load.toml:2: a step = 3 must be a table with one of join"),
            ("steps = [{enter = \"a\"}]", "a step has one of join, leave, wait, send, request"),
            ("steps = [{join = \"a\", leave = true}]", "this one has join, leave"),
            ("steps = [{join = \"\"}]", "join = \"\" must be a text that is not empty"),
            ("steps = [\n\n{join = \"a\", kye = 1}]", "load.toml:3: \"kye\" is unknown here"),
            ("steps = [{join = \"a\", id = \"i\", key = \"k\"}]", "key = \"k\" must be left out"),
            ("steps = [{join = \"a\", per_room = 0}]", "per_room = 0 must be at least 1"),
            ("steps = [{wait = -1}]", "wait = -1 must be seconds, from 0 to 2592000"),
            ("steps = [{wait = [2, 1]}]", "wait = [2, 1] must be [shortest, longest]"),
            ("steps = [{wait = nan}]", "wait = nan must be seconds"),
            ("steps = [{repeat = -1, steps = []}]", "repeat = -1 must be a whole number"),
            ("steps = [{repeat = 1}]", "repeat has no steps"),
            (
                "steps = [{repeat = 1, every = 1e-300, steps = []}]",
                "every = 1e-300 must be 0, for as fast as answers come, or at least 0.000001",
            ),
            ("steps = [{send = \"*\", value = 1}]", "value = 1 must be left out"),
            ("steps = [{send = \"a\", ahead = true}]", "\"ahead\" is unknown here"),
            ("steps = [{request = \"a\", value = 1979-05-27}]", "must be in quotes"),
            ("steps = [{ping = false}]", "ping = false must be true"),
            ("[[script]]\nweight = 0\nsteps = []", "all scripts have the weight 0"),
            ("[[script]]\nweight = 1000001\nsteps = []", "a whole number from 0 to 1000000"),
            (&deep, "steps are nested deeper than 32"),
        ] {
            let error = parse("load.toml", text).expect_err(text).to_string();
            assert!(error.contains(why), "{text:?}: {error}");
            assert!(error.starts_with("load.toml:"), "{error}");
        }
    }
}
