//! The interface of the console's page: JSON over HTTP.
//!
//! | request | answer, or effect |
//! |---|---|
//! | `GET node` | counters of each shard, room types, settings |
//! | `GET rooms?type&find&order&skip&limit` | a page of the list of rooms |
//! | `GET players?find&limit` | players in rooms, by name or user |
//! | `GET rooms/ID?as=PLAYER&messages` | one room: its players, its state, what a player sees, and what goes in and out |
//! | `GET rooms/ID/profile?seconds` | what the room sends to a few players, by field, after so many seconds |
//! | `GET types/NAME` | the schema of a room type |
//! | `POST rooms/ID/kick` | `{player, text}` |
//! | `POST rooms/ID/lock` | `{locked}` |
//! | `POST rooms/ID/record` | `{records}` |
//! | `POST rooms/ID/close` | `{text}` |
//! | `POST rooms/ID/emit` | `{event, value, player}`; to all without a player |
//! | `GET users/USER` | how many sessions a user has |
//! | `POST users/USER/end` | `{text}`: ends all sessions of a user, and says how many |
//! | `POST users/USER/recheck` | asks the rules of channels again |
//! | `POST users/USER/unsubscribe` | `{channels, text}`: a pattern |
//!
//! [Recordings](crate::recordings) have requests of their own.

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Response;
use playfield_server::{NodeHandle, RoomOrder, ShardStats, Subscriber, settings};
use playfield_state::PlayerId;
use serde_json::{Map, Value, json};

use crate::query::{Answered, Refusal, body, number, player, segment};
use crate::recordings;
use crate::request::{self, Request};
use crate::shown;

/// The longest page of the list of rooms.
const ROOMS_MAX: usize = 500;
/// The most players that are found.
const PLAYERS_MAX: usize = 100;
/// The longest that a room is profiled, in seconds.
const PROFILED_S_MAX: usize = 60;
/// The longest text for players, in bytes.
const TEXT_BYTES_MAX: usize = 500;

pub(crate) async fn answer(path: &str, request: &Request, node: &NodeHandle) -> Response {
    let parts: Vec<&str> = path.split('/').collect();
    let answered = match (request.method(), parts.as_slice()) {
        ("GET", ["recordings", file, room, "frames"]) => {
            recordings::frames([file, room], request, node).await
        }
        (method, parts) => value(method, parts, request, node).await.map(|it| it.to_string()),
    };
    match answered {
        Ok(json) => request::json(StatusCode::OK, json),
        Err(refusal) => refusal.into(),
    }
}

async fn value(method: &str, parts: &[&str], request: &Request, node: &NodeHandle) -> Answered {
    match (method, parts) {
        ("GET", ["node"]) => Ok(overview(node)),
        ("GET", ["rooms"]) => rooms(request, node).await,
        ("GET", ["players"]) => players(request, node).await,
        ("GET", ["rooms", id]) => room(id, request, node).await,
        ("GET", ["rooms", id, "profile"]) => profile(id, request, node).await,
        ("GET", ["types", name]) => schema(name, node),
        ("GET", ["recordings"]) => recordings::list(request, node).await,
        ("GET", ["recordings", file, room]) => recordings::facts([file, room], node).await,
        ("GET", ["recordings", file, room, "search"]) => {
            recordings::search([file, room], request, node).await
        }
        ("GET", ["users", user]) => sessions(user, node),
        ("POST", ["recordings", file, room, "fork"]) => {
            recordings::fork([file, room], request, node).await
        }
        ("POST", ["users", user, action]) => moderate(user, action, request, node),
        ("POST", ["rooms", id, action]) => act(id, action, request, node).await,
        _ => Err(Refusal(404, format!("the console has no {method} /api/{}", parts.join("/")))),
    }
}

fn overview(node: &NodeHandle) -> Value {
    let stats = node.stats();
    let mut total = counters(&stats.total());
    total.insert("recordings_lost".to_owned(), stats.recordings_lost.into());
    let operator = node.operator();
    let config = operator.config();
    let settings: Vec<Value> = settings()
        .iter()
        .map(|setting| {
            json!({
                "name": setting.name,
                "help": setting.help,
                "value": config.get(setting.name),
                "default": setting.default(),
            })
        })
        .collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "healthy": stats.healthy,
        "rooms_address": operator.address().map(|address| address.to_string()),
        "tls": operator.has_tls(),
        "total": total,
        "shards": stats.shards.iter().map(counters).collect::<Vec<_>>(),
        "types": operator.schemas().map(|(name, _)| name).collect::<Vec<_>>(),
        "limits": operator.limits().iter().map(shown::limit).collect::<Vec<_>>(),
        "settings": settings,
    })
}

fn counters(of: &ShardStats) -> Map<String, Value> {
    of.counters().map(|(name, value)| (name.to_owned(), value.into())).collect()
}

async fn rooms(request: &Request, node: &NodeHandle) -> Answered {
    let order = match request.query_value("order").as_deref() {
        None | Some("oldest") => RoomOrder::Oldest,
        Some("newest") => RoomOrder::Newest,
        Some("players") => RoomOrder::MostPlayers,
        Some("slowest") => RoomOrder::Slowest,
        Some("latest") => RoomOrder::Latest,
        Some("bytes") => RoomOrder::MostBytes,
        Some(other) => {
            let text = format!(
                "order = {other:?}: give oldest, newest, players, slowest, latest or bytes"
            );
            return Err(Refusal(400, text));
        }
    };
    let skip = number(request, "skip", 0, usize::MAX)?;
    let limit = number(request, "limit", 100, ROOMS_MAX)?;
    let room_type = request.query_value("type").filter(|name| !name.is_empty());
    let find = request.query_value("find").unwrap_or_default();
    let (count, rooms) =
        node.operator().rooms(room_type.as_deref(), &find, order, skip, limit).await;
    Ok(json!({ "count": count, "rooms": rooms.iter().map(shown::listed).collect::<Vec<_>>() }))
}

async fn players(request: &Request, node: &NodeHandle) -> Answered {
    let limit = number(request, "limit", 20, PLAYERS_MAX)?;
    let find = request.query_value("find").unwrap_or_default();
    if find.is_empty() {
        return Err(Refusal(400, "find is missing: give a part of a player's name or user".into()));
    }
    let found = node.operator().find_players(&find, limit).await;
    Ok(json!({
        "players": found.players.iter().map(shown::found).collect::<Vec<_>>(),
        "more": found.has_more,
        "complete": found.is_complete,
    }))
}

async fn room(id: &str, request: &Request, node: &NodeHandle) -> Answered {
    let id = segment(id)?;
    let viewer = player(request, "as")?;
    let records = request.query_value("messages").is_some();
    let inspection = node.operator().inspect(&id, viewer, records).await?;
    let schema = node.operator().schemas().find(|(name, _)| *name == inspection.room_type);
    shown::inspected(&id, &inspection, schema.map_or("", |(_, schema)| schema))
}

async fn profile(id: &str, request: &Request, node: &NodeHandle) -> Answered {
    let seconds = number(request, "seconds", 10, PROFILED_S_MAX)?;
    let lasts = Duration::from_secs(seconds as u64);
    let profile = node.operator().profile(&segment(id)?, lasts).await?;
    Ok(shown::profiled(&profile))
}

fn schema(name: &str, node: &NodeHandle) -> Answered {
    let name = segment(name)?;
    let found = node.operator().schemas().find(|(known, _)| *known == name);
    let unknown = || Refusal(404, format!("the node has no room type {name:?}"));
    let (_, schema) = found.ok_or_else(unknown)?;
    serde_json::from_str(schema).map_err(|error| Refusal(500, error.to_string()))
}

async fn act(id: &str, action: &str, request: &Request, node: &NodeHandle) -> Answered {
    let (id, operator) = (segment(id)?, node.operator());
    let body = body(request)?;
    let text = |default: &str| text(&body, default);
    match action {
        "kick" => {
            let player = body["player"].as_u64().ok_or_else(|| wrong("player, a number"))?;
            operator.kick(&id, PlayerId(player), &text("an operator removed you")?).await?;
        }
        "record" => {
            let records =
                body["records"].as_bool().ok_or_else(|| wrong("records, true or false"))?;
            operator.record(&id, records).await?;
        }
        "lock" => {
            let locked = body["locked"].as_bool().ok_or_else(|| wrong("locked, true or false"))?;
            operator.lock(&id, locked).await?;
        }
        "close" => node.close(&id, text("an operator closed the room")?)?,
        "emit" => {
            let event = body["event"].as_str().ok_or_else(|| wrong("event, a name"))?;
            let player = match &body["player"] {
                Value::Null => None,
                player => Some(PlayerId(player.as_u64().ok_or_else(|| wrong("player, a number"))?)),
            };
            operator.emit(&id, event, &body["value"], player).await?;
        }
        other => return Err(Refusal(404, format!("a room can't {other:?}"))),
    }
    Ok(Value::Object(Map::new()))
}

fn sessions(user: &str, node: &NodeHandle) -> Answered {
    Ok(json!({ "sessions": node.sessions_of(&segment(user)?) }))
}

fn moderate(user: &str, action: &str, request: &Request, node: &NodeHandle) -> Answered {
    let (user, body) = (segment(user)?, body(request)?);
    match action {
        "end" => {
            let ended = node.end_sessions(&user, text(&body, "an operator ended your session")?)?;
            return Ok(json!({ "sessions": ended }));
        }
        "recheck" => node.recheck_access(&user)?,
        "unsubscribe" => {
            let channels = body["channels"].as_str().ok_or_else(|| wrong("channels, a pattern"))?;
            let why = text(&body, "an operator removed you")?;
            node.unsubscribe(Subscriber::User(&user), channels, why)?;
        }
        other => return Err(Refusal(404, format!("a user can't {other:?}"))),
    }
    Ok(Value::Object(Map::new()))
}

/// The text for players in a body, or this one.
fn text(body: &Value, default: &str) -> Result<String, Refusal> {
    match body["text"].as_str() {
        Some(text) if text.len() > TEXT_BYTES_MAX => {
            let bytes = text.len();
            Err(Refusal(400, format!("the text has {bytes} bytes; {TEXT_BYTES_MAX} is the limit")))
        }
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Ok(default.to_owned()),
    }
}

fn wrong(what: &str) -> Refusal {
    Refusal(400, format!("the body needs {what}"))
}
