//! A client of a scenario, and what it does.

use std::collections::HashMap;
use std::sync::Arc;

use playfield::client::{
    Changes, Channel, ChannelEvent, Connection, ConnectionEvents, Creation, Device, Dynamic, Error,
    Room,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::values::{contained, equal, room_name, said, taken, text};
use super::{Outcome, Step, control};

/// A client of a scenario.
pub(super) struct Client {
    pub(super) link: String,
    pub(super) connection: Connection,
    pub(super) statuses: ConnectionEvents,
    pub(super) rooms: HashMap<String, Arc<Room<Dynamic>>>,
    pub(super) changes: HashMap<String, Changes>,
    pub(super) answers: HashMap<String, JoinHandle<Result<Value, Error>>>,
    pub(super) channels: HashMap<String, Channel>,
    pub(super) device: Option<Arc<Device>>,
    /// The commands that came.
    pub(super) commands: Option<mpsc::UnboundedReceiver<Value>>,
}

impl Client {
    pub(super) fn room(&self, name: &str) -> Outcome<&Arc<Room<Dynamic>>> {
        self.rooms.get(name).ok_or_else(|| format!("it is in no room {name}"))
    }

    /// A control of this client's link.
    pub(super) fn action(&self, action: &str) -> String {
        let port = self.link.rsplit(':').next().unwrap_or_default();
        format!("/links/{port}/{action}")
    }

    pub(super) async fn act(&mut self, controls: &str, step: &Step) -> Outcome<()> {
        let room = room_name(step);
        let option = |name: &str| step.get(name).and_then(Value::as_str);
        let is = |name: &str| step.get(name) == Some(&Value::Bool(true));
        match text(step, "do")? {
            "join" => {
                let id = match step.get("ticket").and_then(Value::as_object) {
                    Some(ticket) => {
                        let part = |name| text(ticket, name);
                        let path =
                            format!("/ticket/{}/{}/{}", part("type")?, part("key")?, part("name")?);
                        control(controls, &path).await?
                    }
                    None => text(step, "id")?.to_owned(),
                };
                self.joined(step, self.connection.join_dynamic(&id).await)
            }
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
            action @ ("cut" | "restore" | "hold" | "move" | "alone" | "stop" | "lose_patch"
            | "spoil_check") => control(controls, &self.action(action)).await.map(drop),
            "cut_after" => {
                let action = self.action(&format!("cut_after/{}", text(step, "bytes")?));
                control(controls, &action).await.map(drop)
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
                let expected = step["names"].as_array().ok_or("names is not a list")?.iter();
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
            "register" => self.register(step).await,
            "report" => {
                let device = Arc::clone(self.device.as_ref().ok_or("the client is not a device")?);
                let reply = taken(step, device.report(step["payload"].clone()).await)?;
                match (reply, step.get("reply")) {
                    (Some(reply), Some(expected)) => equal(expected, &reply.value().map_err(said)?),
                    _ => Ok(()),
                }
            }
            action @ ("push" | "command") => {
                let what = if action == "push" { "push" } else { "request" };
                let path = format!("/devices/{}/{what}/{}", text(step, "device")?, step["payload"]);
                let answer = control(controls, &path).await?;
                let expected = step.get("answer").map_or("done".to_owned(), Value::to_string);
                if answer == expected { Ok(()) } else { Err(format!("the answer is {answer}")) }
            }
            "end_sessions" => {
                let path = format!("/users/{}/end/{}", text(step, "user")?, text(step, "text")?);
                control(controls, &path).await.map(drop)
            }
            "take_out" => {
                let (user, channel) = (text(step, "user")?, text(step, "channel")?);
                control(controls, &format!("/users/{user}/take_out/{channel}")).await.map(drop)
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
            // This is queued before the next step begins.
            tokio::task::yield_now().await;
            return Ok(());
        }
        let answer = room.request(&message, &payload).await;
        let Some(reply) = taken(step, answer)? else { return Ok(()) };
        step.get("reply").map_or(Ok(()), |expected| equal(expected, &reply))
    }

    /// Registers a device that answers each command by the number after it.
    async fn register(&mut self, step: &Step) -> Outcome<()> {
        let metadata = step.get("metadata").and_then(Value::as_object).into_iter().flatten();
        let metadata: Vec<(&str, &str)> =
            metadata.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))).collect();
        let tags = step.get("tags").and_then(Value::as_array).into_iter().flatten();
        let tags: Vec<&str> = tags.filter_map(Value::as_str).collect();
        let registered = self.connection.register(text(step, "device")?, &metadata, &tags).await;
        let Some(device) = taken(step, registered)? else { return Ok(()) };
        let device = Arc::new(device);
        if let Some(expected) = step.get("is_new") {
            equal(expected, &Value::from(device.is_new()))?;
        }
        let (came, commands) = mpsc::unbounded_channel();
        let serving = Arc::clone(&device);
        tokio::spawn(async move {
            while let Some(command) = serving.next_command().await {
                let value = command.payload().value().unwrap_or_default();
                let answer = value.as_i64().map_or(Value::Null, |number| Value::from(number + 1));
                let _ = came.send(value);
                if command.wants_answer() {
                    // An error means that the session has ended.
                    let _ = command.answer(answer).await;
                }
            }
        });
        (self.device, self.commands) = (Some(device), Some(commands));
        Ok(())
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
        let expected = step["rooms"].as_array().ok_or("rooms is not a list")?;
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
}
