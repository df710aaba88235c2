//! The Rust client plays the scenarios.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use playfield::Format;
use playfield::client::{
    Change, ChangeKind, Changes, Channel, ChannelEvent, Connection, ConnectionEvent,
    ConnectionEvents, Creation, Dynamic, Error, PathStep, Room, connect,
};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::files::{LeftOut, Scenario, scenarios};

/// A step that takes longer has failed.
const STEP_MAX: Duration = Duration::from_secs(20);

type Step = Map<String, Value>;
type Outcome<T> = Result<T, String>;

#[test]
fn the_rust_client_plays_all_scenarios() {
    let server = playfield_conformance::start().expect("a free port");
    let (url, left_out) = (server.url(), LeftOut::of("rust"));
    let (all, runs) = (scenarios(), AtomicUsize::new(1));
    for scenario in &all {
        if let Some(why) = left_out.why_not(scenario) {
            println!("left out: {}: {why}", scenario.name);
        }
    }
    let play_all = |format: &str, transport: &str| -> Vec<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a thread's runtime");
        let mut failed = Vec::new();
        for scenario in all.iter().filter(|one| left_out.why_not(one).is_none()) {
            let run = runs.fetch_add(1, Ordering::Relaxed);
            let mut play = Play::new(&url, format, transport, run, &left_out);
            if let Err(why) = runtime.block_on(play.all(scenario)) {
                failed.push(format!("{} in {format} over {transport}: {why}", scenario.name));
            }
        }
        failed
    };
    let failed: Vec<String> = thread::scope(|scope| {
        let mut threads = Vec::new();
        for format in &left_out.formats {
            for transport in &left_out.transports {
                threads.push(scope.spawn(|| play_all(format, transport)));
            }
        }
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    server.shutdown();
    let runs = runs.into_inner() - 1;
    assert!(failed.is_empty(), "{} of {runs} failed:\n{}", failed.len(), failed.join("\n"));
}

/// A scenario that is played.
struct Play<'a> {
    controls: &'a str,
    format: Format,
    transport: &'a str,
    run: String,
    left_out: &'a LeftOut,
    clients: HashMap<String, Client>,
}

/// A client of a scenario.
struct Client {
    link: String,
    connection: Connection,
    statuses: ConnectionEvents,
    rooms: HashMap<String, Arc<Room<Dynamic>>>,
    changes: HashMap<String, Changes>,
    answers: HashMap<String, JoinHandle<Result<Value, Error>>>,
    channels: HashMap<String, Channel>,
}

impl<'a> Play<'a> {
    fn new(
        url: &'a str,
        format: &str,
        transport: &'a str,
        run: usize,
        left_out: &'a LeftOut,
    ) -> Self {
        let format = match format {
            "packed" => Format::Packed,
            "msgpack" => Format::Msgpack,
            _ => Format::Json,
        };
        let controls = url.trim_start_matches("http://");
        let run = format!("r{run}");
        Self { controls, format, transport, run, left_out, clients: HashMap::new() }
    }

    async fn all(&mut self, scenario: &Scenario) -> Outcome<()> {
        for (index, step) in scenario.steps.iter().enumerate() {
            let step = Value::from(step.clone());
            let played = match self.filled(&step) {
                Ok(Value::Object(step)) => timeout(STEP_MAX, self.step(&step)).await,
                Ok(_) => Ok(Err("it is no object".to_owned())),
                Err(why) => Ok(Err(why)),
            };
            let played = played.unwrap_or_else(|_| Err(format!("nothing in {STEP_MAX:?}")));
            played.map_err(|why| format!("step {}, {step}: {why}", index + 1))?;
        }
        for (_, client) in self.clients.drain() {
            drop((client.rooms, client.answers, client.channels));
            client.connection.close().await;
        }
        Ok(())
    }

    /// A step with its references replaced.
    fn filled(&self, value: &Value) -> Outcome<Value> {
        Ok(match value {
            Value::String(text) => Value::from(self.filled_text(text)?),
            Value::Array(values) => {
                values.iter().map(|value| self.filled(value)).collect::<Outcome<_>>()?
            }
            Value::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|(name, value)| Ok((name.clone(), self.filled(value)?)))
                    .collect::<Outcome<_>>()?,
            ),
            other => other.clone(),
        })
    }

    fn filled_text(&self, text: &str) -> Outcome<String> {
        let Some((before, rest)) = text.split_once("${") else { return Ok(text.to_owned()) };
        let (name, after) = rest.split_once('}').ok_or("a reference has no end")?;
        let parts: Vec<&str> = name.split('.').collect();
        let filling = match parts[..] {
            ["run"] => self.run.clone(),
            [client, room, member] => {
                let room = self.client(client)?.room(room)?;
                match member {
                    "id" => room.id().to_owned(),
                    "key" => room.key().ok_or("the room has no key")?.to_owned(),
                    "player" => room.player().to_string(),
                    _ => return Err(format!("a room has no {member}")),
                }
            }
            _ => return Err(format!("{name} refers to nothing")),
        };
        Ok(format!("{before}{filling}{}", self.filled_text(after)?))
    }

    fn client(&self, name: &str) -> Outcome<&Client> {
        self.clients.get(name).ok_or_else(|| format!("{name} is not connected"))
    }

    async fn step(&mut self, step: &Step) -> Outcome<()> {
        let kind = step.get("expect").or_else(|| step.get("do")).and_then(Value::as_str);
        if kind.is_some_and(|kind| self.left_out.steps.contains_key(kind)) {
            return Ok(());
        }
        if step.contains_key("expect") {
            return self.expect(text(step, "expect")?, step).await;
        }
        let name = text(step, "client")?;
        if text(step, "do")? == "connect" {
            let link = control(self.controls, "/link").await?;
            let connected = connect(&format!("{}://{link}", self.transport))
                .name(step.get("name").and_then(Value::as_str).unwrap_or(name))
                .token(step.get("token").and_then(Value::as_str).unwrap_or_default().as_bytes())
                .format(self.format)
                .backoff(Duration::from_millis(5), Duration::from_millis(20))
                .await;
            let Some(connection) = taken(step, connected)? else { return Ok(()) };
            let client = Client {
                link,
                statuses: connection.events(),
                connection,
                rooms: HashMap::new(),
                changes: HashMap::new(),
                answers: HashMap::new(),
                channels: HashMap::new(),
            };
            self.clients.insert(name.to_owned(), client);
            return Ok(());
        }
        let controls = self.controls;
        if text(step, "do")? == "close" {
            let client = self.clients.get(name).ok_or("it is not connected")?;
            client.connection.clone().close().await;
            return Ok(());
        }
        self.clients.get_mut(name).ok_or("it is not connected")?.act(controls, step).await
    }

    async fn expect(&mut self, kind: &str, step: &Step) -> Outcome<()> {
        let controls = self.controls;
        let client = self.clients.get_mut(text(step, "client")?).ok_or("it is not connected")?;
        match kind {
            "lost_patch" => control(controls, &client.action("lost_patch")).await.map(drop),
            "answer" => {
                let answer = client.answers.remove(text(step, "as")?).ok_or("no such request")?;
                let answer = answer.await.map_err(said)?;
                if step.get("lost").is_some() {
                    let error = answer.err().ok_or("it was answered")?;
                    let is_unknown =
                        error.is_lost() || error.code().is_some_and(is_connection_lost);
                    return if is_unknown { Ok(()) } else { Err(format!("{error:?}")) };
                }
                let Some(reply) = taken(step, answer)? else { return Ok(()) };
                equal(&step["reply"], &reply)
            }
            "status" => client.expect_status(step).await,
            "publication" | "presence" | "subscribed" | "unsubscribed" => {
                client.expect_in_channel(kind, step).await
            }
            _ => client.expect_in_room(kind, step).await,
        }
    }
}

impl Client {
    fn room(&self, name: &str) -> Outcome<&Arc<Room<Dynamic>>> {
        self.rooms.get(name).ok_or_else(|| format!("it is in no room {name}"))
    }

    /// A control of this client's link.
    fn action(&self, action: &str) -> String {
        let port = self.link.rsplit(':').next().unwrap_or_default();
        format!("/links/{port}/{action}")
    }

    async fn act(&mut self, controls: &str, step: &Step) -> Outcome<()> {
        let room = room_name(step);
        let option = |name: &str| step.get(name).and_then(Value::as_str);
        let is = |name: &str| step.get(name) == Some(&Value::Bool(true));
        match text(step, "do")? {
            "join" => self.joined(step, self.connection.join_dynamic(text(step, "id")?).await),
            "join_by_key" => {
                let (of, key) = (text(step, "type")?, text(step, "key")?);
                self.joined(step, self.connection.join_by_key_dynamic(of, key).await)
            }
            "create" => {
                let mut creation = Creation::new();
                if is("private") {
                    creation = creation.private();
                }
                if is("code") {
                    creation = creation.code();
                }
                if let Some(key) = option("key") {
                    creation = creation.key(key);
                }
                let of = text(step, "type")?;
                let made = self.connection.create_dynamic(of, creation, step.get("options")).await;
                self.joined(step, made)
            }
            "join_or_create" => {
                let (of, options) = (text(step, "type")?, step.get("options"));
                let made = match option("key") {
                    Some(key) => {
                        self.connection.join_or_create_by_key_dynamic(of, key, options).await
                    }
                    None => self.connection.join_or_create_dynamic(of, options).await,
                };
                self.joined(step, made)
            }
            "leave" => {
                self.changes.remove(room);
                let room = self.rooms.remove(room).ok_or("it is not in the room")?;
                let room = Arc::into_inner(room).ok_or("requests to the room wait")?;
                taken(step, room.leave().await).map(drop)
            }
            "send" => {
                let payload = step.get("payload").unwrap_or(&Value::Null);
                taken(step, self.room(room)?.send(text(step, "message")?, payload).await).map(drop)
            }
            "request" => self.request(step).await,
            "watch" => {
                let changes = self.room(room)?.changes().await.map_err(said)?;
                self.changes.insert(room.to_owned(), changes);
                Ok(())
            }
            action @ ("cut" | "mend" | "move" | "alone" | "stop" | "lose_patch") => {
                control(controls, &self.action(action)).await.map(drop)
            }
            "list" => self.list(step).await,
            "schema" => {
                let schema = self.connection.schema(text(step, "type")?).await;
                let Some(schema) = taken(step, schema)? else { return Ok(()) };
                let messages = schema.messages.iter().map(|message| message.name.to_string());
                let events = schema.events.iter().map(|event| event.name.to_string());
                let named = json!({
                    "messages": messages.collect::<Vec<_>>(),
                    "events": events.collect::<Vec<_>>(),
                });
                contained(&step["has"], &named)
            }
            "subscribe" => {
                let mut subscribing = self.connection.subscribe(text(step, "channel")?);
                if is("presence") {
                    subscribing = subscribing.presence();
                }
                let Some(channel) = taken(step, subscribing.await)? else { return Ok(()) };
                match channel.next().await {
                    Some(ChannelEvent::Subscribed { .. }) => {}
                    other => return Err(format!("{other:?} came first")),
                }
                self.channels.insert(channel.name().to_owned(), channel);
                Ok(())
            }
            "unsubscribe" => {
                let channel = self.channels.remove(text(step, "channel")?);
                channel.ok_or("it does not subscribe to it")?.unsubscribe();
                Ok(())
            }
            "publish" => {
                let (channel, payload) = (text(step, "channel")?, &step["payload"]);
                taken(step, self.connection.publish(channel, payload).await).map(drop)
            }
            "members" => {
                let members = self.connection.members(text(step, "channel")?).await;
                let Some(members) = taken(step, members)? else { return Ok(()) };
                let named = members.members.iter().map(|member| member.name.to_string());
                let expected = step["names"].as_array().ok_or("names is no list")?.iter();
                let expected = expected.filter_map(|name| name.as_str().map(str::to_owned));
                let (mut named, mut expected) =
                    (named.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
                named.sort();
                expected.sort();
                if named == expected { Ok(()) } else { Err(format!("they are {named:?}")) }
            }
            "history" => {
                let limit = step.get("limit").and_then(Value::as_u64).unwrap_or(0) as u32;
                let history = self.connection.history(text(step, "channel")?, None, limit).await;
                let Some(history) = taken(step, history)? else { return Ok(()) };
                let values = history.publications.iter().map(|one| one.payload.value());
                let values = values.collect::<Result<Vec<_>, _>>().map_err(said)?;
                equal(&step["payloads"], &Value::from(values))
            }
            other => Err(format!("the Rust client can't {other}")),
        }
    }

    fn joined(&mut self, step: &Step, joined: Result<Room<Dynamic>, Error>) -> Outcome<()> {
        if let Some(room) = taken(step, joined)? {
            self.rooms.insert(room_name(step).to_owned(), Arc::new(room));
        }
        Ok(())
    }

    async fn request(&mut self, step: &Step) -> Outcome<()> {
        let room = Arc::clone(self.room(room_name(step))?);
        let message = text(step, "message")?.to_owned();
        let payload = step.get("payload").cloned().unwrap_or_default();
        if let Some(name) = step.get("as").and_then(Value::as_str) {
            let asking = tokio::spawn(async move { room.request(&message, &payload).await });
            self.answers.insert(name.to_owned(), asking);
            // It is queued before the next step begins.
            tokio::task::yield_now().await;
            return Ok(());
        }
        let answer = room.request(&message, &payload).await;
        let Some(reply) = taken(step, answer)? else { return Ok(()) };
        step.get("reply").map_or(Ok(()), |expected| equal(expected, &reply))
    }

    async fn list(&mut self, step: &Step) -> Outcome<()> {
        let filter = step.get("filter").and_then(Value::as_object);
        let filter: Vec<(&str, &str)> = filter
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
            .collect();
        let limit = step.get("limit").and_then(Value::as_u64).unwrap_or(0) as u32;
        let of = step.get("type").and_then(Value::as_str);
        let Some(listed) = taken(step, self.connection.list(of, &filter, limit).await)? else {
            return Ok(());
        };
        let mut listed: Vec<Value> = listed
            .iter()
            .map(|room| {
                let metadata = room.metadata.iter();
                let metadata =
                    metadata.map(|(name, value)| (name.to_string(), value.as_ref().into()));
                json!({
                    "id": room.id, "room_type": room.room_type, "key": room.key,
                    "players": room.players, "capacity": room.capacity, "locked": room.locked,
                    "metadata": Value::Object(metadata.collect()),
                })
            })
            .collect();
        let expected = step["rooms"].as_array().ok_or("rooms is no list")?;
        if listed.len() != expected.len() {
            return Err(format!("it has {}", Value::from(listed)));
        }
        for room in expected {
            let found = listed.iter().position(|listed| contained(room, listed).is_ok());
            let found = found.ok_or_else(|| format!("{room} is not in {listed:?}"))?;
            listed.remove(found);
        }
        Ok(())
    }

    async fn expect_status(&mut self, step: &Step) -> Outcome<()> {
        loop {
            let event = self.statuses.next().await.ok_or("the connection has ended")?;
            let (status, error) = match event {
                ConnectionEvent::Lost { error } => ("lost", Some(error)),
                ConnectionEvent::Resumed { .. } => ("resumed", None),
                ConnectionEvent::NewSession { .. } => ("new_session", None),
                ConnectionEvent::Ended { error, .. } => ("ended", Some(error)),
                _ => continue,
            };
            if step["status"] != status {
                return Err(format!("it is {status}: {error:?}"));
            }
            let code = error.and_then(|error| error.code());
            return match step.get("code").and_then(Value::as_str) {
                Some(expected) if code.is_none_or(|code| code.name() != expected) => {
                    Err(format!("the code is {code:?}"))
                }
                _ => Ok(()),
            };
        }
    }

    async fn expect_in_room(&mut self, kind: &str, step: &Step) -> Outcome<()> {
        let room = self.room(room_name(step))?;
        match kind {
            "state" => expect_state(room, step).await,
            "event" => {
                let event = room.next_event().await.map_err(said)?;
                if step["event"] != event.name() {
                    return Err(format!("{} came: {:?}", event.name(), event.value()));
                }
                let payload = event.value().map_err(said)?;
                step.get("payload").map_or(Ok(()), |expected| equal(expected, &payload))
            }
            "missed" => match room.next_event().await {
                Err(error) if error.is_missed() => Ok(()),
                other => Err(format!("{other:?} came")),
            },
            "error" => match room.next_event().await {
                Err(error) if error.is_refused() => is_code(step, &error),
                other => Err(format!("{other:?} came")),
            },
            "left" => loop {
                if let Err(error) = room.changed().await {
                    if !error.is_left() {
                        return Err(format!("it is not left: {error:?}"));
                    }
                    is_code(step, &error)?;
                    return match step.get("text").and_then(Value::as_str) {
                        Some(text) if text != error.text() => Err(error.text().to_owned()),
                        _ => Ok(()),
                    };
                }
            },
            "changes" => {
                let expected = step["are"].as_array().ok_or("are is no list")?;
                let changes = self.changes.get_mut(room_name(step)).ok_or("it does not watch")?;
                let mut found = Vec::new();
                for _ in expected {
                    found.push(told(&changes.next().await.map_err(said)?));
                }
                if step.contains_key("in_any_order") {
                    let mut left = found.clone();
                    for change in expected {
                        let at = left.iter().position(|found| equal(change, found).is_ok());
                        left.remove(at.ok_or_else(|| Value::from(found.clone()).to_string())?);
                    }
                    return Ok(());
                }
                equal(&step["are"], &Value::from(found))
            }
            other => Err(format!("the Rust client does not expect {other}")),
        }
    }

    async fn expect_in_channel(&mut self, kind: &str, step: &Step) -> Outcome<()> {
        let channel = self.channels.get(text(step, "channel")?).ok_or("it does not subscribe")?;
        let event = channel.next().await.ok_or("the subscription has ended")?;
        let named = |name: &str, joined: bool| step["name"] == name && step["joined"] == joined;
        let is_so = match (kind, &event) {
            ("publication", ChannelEvent::Publication(publication)) => {
                return equal(&step["payload"], &publication.payload.value().map_err(said)?);
            }
            ("presence", ChannelEvent::Joined { member, .. }) => named(&member.name, true),
            ("presence", ChannelEvent::Left { member, .. }) => named(&member.name, false),
            ("subscribed", ChannelEvent::Subscribed { recovered, .. }) => {
                step["recovered"] == *recovered
            }
            ("unsubscribed", ChannelEvent::Unsubscribed { code, .. }) => {
                step["code"] == *code.name()
            }
            _ => false,
        };
        if is_so { Ok(()) } else { Err(format!("{event:?} came")) }
    }
}

async fn expect_state(room: &Room<Dynamic>, step: &Step) -> Outcome<()> {
    let mut last = Value::Null;
    let so = async {
        loop {
            {
                let state = room.state();
                let found = match step.get("at").and_then(Value::as_array) {
                    None => Some(&*state),
                    Some(path) => path.iter().try_fold(&*state, |value, step| match step {
                        Value::String(name) => value.get(name.as_str()),
                        step => value.get(usize::try_from(step.as_u64()?).ok()?),
                    }),
                };
                let is_so = match (step.get("is"), found) {
                    (Some(expected), Some(found)) => equal(expected, found).is_ok(),
                    (expected, found) => expected.is_none() && found.is_none(),
                };
                if is_so {
                    return Ok(());
                }
                last = state.clone();
            }
            room.changed().await.map_err(said)?;
        }
    };
    // So that the state can be shown.
    let so = timeout(STEP_MAX - Duration::from_secs(1), so).await;
    so.unwrap_or_else(|_| Err(format!("the state is {last}")))
}

fn told(change: &Change) -> Value {
    let path: Vec<Value> = change
        .path
        .steps()
        .iter()
        .map(|step| match step {
            PathStep::Name(name) => Value::from(&**name),
            PathStep::Index(index) => Value::from(*index),
        })
        .collect();
    let kind = match change.kind {
        ChangeKind::Entered => "entered",
        ChangeKind::Left => "left",
        ChangeKind::Changed => "changed",
        ChangeKind::Moved { .. } => "moved",
    };
    let mut told = json!({ "path": path, "kind": kind });
    for (name, value) in [("old", &change.old), ("new", &change.new)] {
        if let Some(value) = value {
            told[name] = value.clone();
        }
    }
    told
}

/// What was made, or `None` if it was refused as the step says.
fn taken<T>(step: &Step, made: Result<T, Error>) -> Outcome<Option<T>> {
    let Some(refused) = step.get("refused") else { return made.map(Some).map_err(said) };
    let error = made.err().ok_or("it was not refused")?;
    let refused = refused.as_object().ok_or("refused is no object")?;
    is_code(refused, &error)?;
    match refused.get("text").and_then(Value::as_str) {
        Some(text) if text != error.text() => Err(format!("the text is {:?}", error.text())),
        _ => Ok(None),
    }
}

fn is_code(step: &Step, error: &Error) -> Outcome<()> {
    let code = error.code().map(|code| code.name().into_owned());
    match code {
        _ if !step.contains_key("code") => Ok(()),
        Some(code) if step["code"] == *code => Ok(()),
        code => Err(format!("the code is {code:?}: {error}")),
    }
}

fn is_connection_lost(code: playfield::ErrorCode) -> bool {
    code == playfield::ErrorCode::ConnectionLost
}

/// Whether values are equal, however their integers are written.
fn equal(expected: &Value, found: &Value) -> Outcome<()> {
    if is_equal(expected, found) { Ok(()) } else { Err(format!("it is {found}")) }
}

fn is_equal(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::Array(expected), Value::Array(found)) => {
            expected.len() == found.len()
                && expected.iter().zip(found).all(|(expected, found)| is_equal(expected, found))
        }
        (Value::Object(expected), Value::Object(found)) => {
            let names: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
            names.into_iter().all(|name| match (expected.get(name), found.get(name)) {
                (Some(expected), Some(found)) => is_equal(expected, found),
                _ => false,
            })
        }
        (Value::Number(one), Value::String(other)) | (Value::String(other), Value::Number(one)) => {
            one.to_string() == *other
        }
        (Value::Number(one), Value::Number(other)) => {
            one == other
                || one.as_f64() == other.as_f64()
                || (one.is_f64() && one.as_f64().map(narrow) == other.as_f64().map(narrow))
        }
        (expected, found) => expected == found,
    }
}

fn narrow(number: f64) -> f32 {
    number as f32
}

/// Whether the members of one object are those of another, which may have more.
fn contained(expected: &Value, found: &Value) -> Outcome<()> {
    let members = expected.as_object().ok_or("it is no object")?;
    members.iter().try_for_each(|(name, value)| equal(value, &found[name]))
}

fn text<'s>(step: &'s Step, name: &str) -> Outcome<&'s str> {
    step.get(name).and_then(Value::as_str).ok_or_else(|| format!("it has no {name}"))
}

fn room_name(step: &Step) -> &str {
    step.get("room").and_then(Value::as_str).unwrap_or("room")
}

fn said(error: impl Display) -> String {
    error.to_string()
}

/// Asks the scenario server for something.
async fn control(server: &str, path: &str) -> Outcome<String> {
    let mut stream = TcpStream::connect(server).await.map_err(said)?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(said)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.map_err(said)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("the control did not answer")?;
    if head.starts_with("HTTP/1.1 200 ") { Ok(body.to_owned()) } else { Err(body.to_owned()) }
}
