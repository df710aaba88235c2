//! The lines of a script, as messages in the client's format. Rooms are those of the type `lab`.

use std::collections::HashMap;
use std::sync::LazyLock;

use playfield::prelude::*;
use playfield::{Format, RoomSchema, Tracker, Tracking, TreeFormat, schema};
use playfield_wire::message::MessageRef;
use playfield_wire::schema::fingerprint;
use playfield_wire::server::ServerMessage;
use playfield_wire::tree::TreeWriter;
use serde_json::{Value, json};

use super::peer::Heard;
use super::{Outcome, said};
use crate::lab::change::Change;
use crate::lab::{Do, Everything, Hold, Lab, Note, Number, Said};

static SCHEMA: LazyLock<RoomSchema> = LazyLock::new(schema::<Lab>);

/// The player that the client is.
const PLAYER: PlayerId = PlayerId(1);

/// The node's knowledge of the session.
pub(super) struct Session {
    lab: Lab,
    tracker: Tracker<Lab>,
    /// The number of counted messages that were heard.
    heard: u64,
    /// The number of the last request, of any type and of each; and of the first of each type, as
    /// `join 1`, the second, and so on.
    last_request: Value,
    requests: HashMap<String, Value>,
    /// Events that were said, in each room.
    events: HashMap<u64, u64>,
}

impl Default for Session {
    fn default() -> Self {
        let mut lab = Lab::with_player(PLAYER, "ann");
        let tracker = Tracker::new(&mut lab, Tracking::On);
        let (requests, events) = (HashMap::new(), HashMap::new());
        Self { lab, tracker, heard: 0, last_request: Value::Null, requests, events }
    }
}

impl Session {
    /// Notes a message of the client. Returns the answer to what scripts don't answer themselves.
    pub(super) fn hear(&mut self, heard: &Heard) -> Option<Value> {
        self.heard += u64::from(heard.is_counted);
        if let Some(request) = heard.json.get("request") {
            self.last_request = request.clone();
            self.requests.insert(heard.kind().to_owned(), request.clone());
            let places = (1..).map(|place| format!("{} {place}", heard.kind()));
            let place = places.into_iter().find(|place| !self.requests.contains_key(place));
            self.requests.extend(place.map(|place| (place, request.clone())));
        }
        match heard.kind() {
            "ping" => Some(json!({ "type": "pong", "nonce": heard.json["nonce"], "time_us": 1 })),
            "schema" => Some(json!({ "type": "schema", "request": "schema" })),
            "goodbye" => Some(json!({ "type": "goodbye", "code": "left", "text": "" })),
            _ => None,
        }
    }

    /// Returns whether the client has asked for the schema, and so has it.
    pub(super) fn told_schema(&self) -> bool {
        self.requests.contains_key("schema")
    }

    /// A message of a script, in the client's format. Members that are absent have usual values.
    pub(super) fn message(&mut self, say: &Value, format: Format) -> Outcome<Vec<u8>> {
        let kind = say["type"].as_str().ok_or("it has no type")?.to_owned();
        let mut message = self.usual(&kind);
        for (name, value) in say.as_object().into_iter().flatten() {
            message[name] = value.clone();
        }
        if let Some(name) = message["request"].as_str() {
            message["request"] = self.requests.get(name).cloned().unwrap_or_default();
        }
        if message["request"].is_null() {
            message.as_object_mut().map(|members| members.remove("request"));
        }
        let mut body = Vec::new();
        match kind.as_str() {
            "welcome" => self.welcome(&mut message),
            "event" => {
                let room = message["room"].as_u64().unwrap_or_default();
                let sequence = self.events.entry(room).or_default();
                *sequence = message["sequence"].as_u64().unwrap_or(*sequence + 1);
                message["sequence"] = (*sequence).into();
                let name = message["message"].as_str().unwrap_or_default().to_owned();
                body = payload(&name, &message["payload"], format)?;
            }
            "reply" => body = payload("reply", &message["payload"], format)?,
            "publication" | "command" => body = json_in(format, &message["payload"]),
            "snapshot" | "patch" => body = self.state(&kind, &mut message, format)?,
            "check" => {
                let wrong = u64::from(message["digest"] == "wrong");
                message["digest"] =
                    (self.tracker.digest(PLAYER, format) ^ wrong).to_string().into();
                if message["version"].is_null() {
                    message["version"] = self.tracker.version().into();
                }
            }
            _ => {}
        }
        message.as_object_mut().map(|members| members.remove("payload"));
        encoded(&message, body, format)
    }

    /// The members that most messages of a type have.
    fn usual(&self, kind: &str) -> Value {
        let request = &self.last_request;
        let version = self.tracker.version();
        match kind {
            "welcome" => json!({
                "type": kind, "protocol": 1, "session": 7, "resume": "dDE=", "heartbeat_ms": 30_000,
                "max_message_bytes": 65_536, "grace_ms": 60_000,
            }),
            "joined" => json!({
                "type": kind, "request": request, "room": 1, "id": "r1", "room_type": "lab",
                "player": 1, "epoch": 3, "tick_hz": 0, "sync_hz": 50, "silence_ms": 0,
                "grace_ms": 60_000, "fingerprint": fingerprint(&SCHEMA).to_string(),
            }),
            "schema" => {
                let text: Value = serde_json::from_str(&SCHEMA.to_json()).unwrap_or_default();
                json!({ "type": kind, "room_type": "lab", "schema": text })
            }
            "snapshot" => json!({ "type": kind, "room": 1, "epoch": 3 }),
            "event" => json!({ "type": kind, "room": 1, "version": version }),
            "patch" | "check" => json!({ "type": kind, "room": 1 }),
            "left" => json!({ "type": kind, "room": 1, "text": "" }),
            "error" | "goodbye" => json!({ "type": kind, "text": "" }),
            "reply" | "listed" | "subscribed" | "published" | "registered" | "members"
            | "history" => json!({ "type": kind, "request": request }),
            _ => json!({ "type": kind }),
        }
    }

    /// In `resumed`, the messages that were heard count as handled, but for the last `unhandled`.
    /// Without it, the session is new.
    fn welcome(&mut self, message: &mut Value) {
        let Some(resumed) = message.get_mut("resumed").and_then(Value::as_object_mut) else {
            (self.heard, self.events) = (0, HashMap::new());
            return;
        };
        let unhandled = resumed.remove("unhandled").and_then(|unhandled| unhandled.as_u64());
        self.heard -= unhandled.unwrap_or(0).min(self.heard);
        resumed.entry("received").or_insert(self.heard.into());
        resumed.entry("lost").or_insert_with(|| json!([]));
    }

    /// The body of a snapshot or a patch, after its `changes`.
    fn state(&mut self, kind: &str, message: &mut Value, format: Format) -> Outcome<Vec<u8>> {
        let base = self.tracker.version();
        let changes = message.as_object_mut().and_then(|members| members.remove("changes"));
        for change in changes.as_ref().and_then(Value::as_array).into_iter().flatten() {
            let change = Change::from_json(change).map_err(said)?;
            self.lab.change(change, PLAYER).map_err(said)?;
        }
        if changes.is_some() {
            self.tracker.sync(&mut self.lab);
        }
        let mut body = Vec::new();
        if kind == "patch" {
            if message["base"].is_null() {
                message["base"] = base.into();
            }
            self.tracker.patch(PLAYER, base, format, &mut body);
        } else {
            self.tracker.snapshot(PLAYER, format, &mut body);
        }
        if message["version"].is_null() {
            message["version"] = self.tracker.version().into();
        }
        message["ops"] = json!([]);
        match message.as_object_mut().and_then(|members| members.remove("body")) {
            Some(_) => Ok(unreadable(format)),
            None => Ok(body),
        }
    }
}

/// A body that is none, in a message that can be read.
fn unreadable(format: Format) -> Vec<u8> {
    match format {
        Format::Packed => vec![0xff; 3],
        _ => json_in(format, &json!([[7]])),
    }
}

/// Encodes a message whose payload or body is this.
fn encoded(json: &Value, body: Vec<u8>, format: Format) -> Outcome<Vec<u8>> {
    let text = json.to_string();
    let mut message = ServerMessage::decode(Format::Json, text.as_bytes()).map_err(said)?;
    match &mut message {
        ServerMessage::Event(event) => {
            let index = event_index(json["message"].as_str().unwrap_or_default());
            if let (Format::Packed, Some(index)) = (format, index) {
                event.message = MessageRef::Index(index);
            }
            event.payload = body.into();
        }
        ServerMessage::Reply(reply) => reply.payload = body.into(),
        ServerMessage::Publication(publication) => publication.payload = body.into(),
        ServerMessage::Command(command) => command.payload = body.into(),
        ServerMessage::Snapshot(snapshot) => snapshot.body = body.into(),
        ServerMessage::Patch(patch) => patch.body = body.into(),
        _ => {}
    }
    let mut out = Vec::new();
    message.encode(format, &mut out);
    Ok(out)
}

/// The name of a message of the type `lab`.
pub(super) fn message_name(index: u32) -> &'static str {
    SCHEMA.messages.get(index as usize).map_or("", |message| &message.name)
}

fn event_index(name: &str) -> Option<u32> {
    let index = SCHEMA.events.iter().position(|event| *event.name == *name)?;
    u32::try_from(index).ok()
}

/// A payload of a message or of an event of the type `lab`. Replies are numbers, or nothing.
pub(super) fn payload(name: &str, value: &Value, format: Format) -> Outcome<Vec<u8>> {
    fn of<T: Data>(value: &Value, format: Format) -> Outcome<Vec<u8>> {
        let mut out = Vec::new();
        T::from_json(value).map_err(said)?.write(format, &mut out);
        Ok(out)
    }
    match name {
        "Do" => of::<Do>(value, format),
        "Note" => of::<Note>(value, format),
        "Hold" => of::<Hold>(value, format),
        "Said" => of::<Said>(value, format),
        "Number" => of::<Number>(value, format),
        "reply" if value.is_object() => of::<Everything>(value, format),
        "reply" if value.is_u64() => of::<u32>(value, format),
        _ if value.is_null() => Ok(Vec::new()),
        _ => Err(format!("scripts have no payloads of {name:?}")),
    }
}

/// A JSON value in a format, as channels carry it.
fn json_in(format: Format, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    match format {
        Format::Msgpack => TreeWriter::new(TreeFormat::Msgpack, &mut out).value(value),
        _ => out = value.to_string().into_bytes(),
    }
    out
}

/// Bytes that no client may take for a message, from the vectors of the protocol. There are as many
/// as anyone asks for: they start over.
pub(super) fn refused(number: usize, format: Format) -> Outcome<Vec<u8>> {
    const VECTORS: &str = include_str!("../../../vectors/protocol/server.json");
    let vectors: Value = serde_json::from_str(VECTORS).map_err(said)?;
    let is_of = |vector: &&Value| vector["format"] == *format.to_string();
    let vectors = vectors["refused"].as_array().into_iter().flatten();
    // The transport has no empty frames, and only the room of a patch can refuse it.
    let is_message = |vector: &&Value| {
        let bytes = vector["bytes"].as_str().unwrap_or_default();
        !bytes.is_empty() && !bytes.starts_with("48") && !bytes.contains("patch")
    };
    let vectors = vectors.filter(is_of).filter(is_message);
    let vectors: Vec<&str> = vectors.filter_map(|vector| vector["bytes"].as_str()).collect();
    let bytes = vectors.get(number % vectors.len().max(1)).ok_or("there are none")?;
    if format == Format::Json { Ok(bytes.as_bytes().to_vec()) } else { hex(bytes) }
}

pub(super) fn hex(text: &str) -> Outcome<Vec<u8>> {
    let digits: Vec<char> = text.chars().filter(|digit| !digit.is_whitespace()).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16);
    digits.chunks(2).map(|pair| byte(pair).map_err(said)).collect()
}
