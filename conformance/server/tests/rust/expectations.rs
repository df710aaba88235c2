//! Expectations: what a client must see.

use std::time::Duration;

use playfield::client::{
    Change, ChangeKind, Channel, ChannelEvent, ConnectionEvent, Dynamic, PathStep, Room,
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::client::Client;
use super::values::{equal, is_code, room_name, said, text};
use super::{Outcome, STEP_MAX, Step};

impl Client {
    pub(super) async fn expect_status(&mut self, step: &Step) -> Outcome<()> {
        loop {
            let event = self.statuses.next().await.ok_or("the connection has ended")?;
            let (status, error) = match event {
                ConnectionEvent::Lost { error } => ("lost", Some(error)),
                ConnectionEvent::Resumed { .. } => ("resumed", None),
                ConnectionEvent::NewSession { .. } => ("new_session", None),
                ConnectionEvent::Weak => ("weak", None),
                ConnectionEvent::Back => ("back", None),
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

    pub(super) async fn expect_in_room(&mut self, kind: &str, step: &Step) -> Outcome<()> {
        let room = self.room(room_name(step))?;
        match kind {
            "state" => expect_state(room, step).await,
            "info" => {
                let (info, member) = (room.joined().to_value(), text(step, "member")?);
                equal(&step["is"], info.get(member).unwrap_or(&Value::Null))
            }
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
                let expected = step["are"].as_array().ok_or("are is not a list")?;
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

    pub(super) async fn expect_in_channel(&mut self, kind: &str, step: &Step) -> Outcome<()> {
        let channel = self.channels.get(text(step, "channel")?).ok_or("it does not subscribe")?;
        if kind == "publications" {
            return expect_publications(channel, step).await;
        }
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

async fn expect_publications(channel: &Channel, step: &Step) -> Outcome<()> {
    let expected = step["payloads"].as_array().ok_or("payloads is not a list")?;
    let mut place = 0;
    while place < expected.len() {
        let missed = match channel.next().await.ok_or("the subscription has ended")? {
            ChannelEvent::Publication(publication) => {
                equal(&expected[place], &publication.payload.value().map_err(said)?)?;
                place += 1;
                0
            }
            ChannelEvent::Subscribed { recovered: true, .. } => 0,
            ChannelEvent::Subscribed { missed, .. } => missed,
            ChannelEvent::Missed { publications } => publications,
            other => return Err(format!("{other:?} came")),
        };
        if missed > 0 && step.get("some_missed") != Some(&Value::Bool(true)) {
            return Err(format!("{missed} were missed after {place}"));
        }
        place += missed as usize;
    }
    Ok(())
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
