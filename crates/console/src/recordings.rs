//! Recordings of rooms: their list, their states and what led to them.
//!
//! | request | answer, or effect |
//! |---|---|
//! | `GET recordings?find&skip&limit` | the files in the folder of recordings, the latest first |
//! | `GET recordings/FILE/ROOM` | a recording: its room, its begin and its end |
//! | `GET recordings/FILE/ROOM/frames?input&tick&at_ms&before&count&every_ms&as` | the room at a moment, and what changed after it |
//! | `GET recordings/FILE/ROOM/search?from&back&for&player&path&as` | the next moment at which something happens |
//! | `POST recordings/FILE/ROOM/fork` | `{input}`: the room goes on from there as another one |

use std::time::Duration;

use playfield_room::recording::{
    Described, Difference, Excerpt, ExcerptOf, Found, Frame, Moment, Position, Search, Shown,
    Wanted,
};
use playfield_server::{NodeHandle, RecordingFacts, RecordingFile, RecordingSource};
use playfield_state::{Change, ChangeKind, PathStep};
use serde_json::{Value, json};

use crate::messages;
use crate::query::{Answered, Refusal, body, number, player, segment};
use crate::request::Request;
use crate::shown::seat;

/// The longest page of the list.
const LISTED_MAX: usize = 100;
/// The most frames in an answer.
const FRAMES_MAX: usize = 1_000;
/// The approximate number of bytes that an answer has before the moment, and after it, besides the
/// state at its start.
const FRAMES_BYTES: usize = 1 << 20;
/// The most inputs before a moment with which an answer begins.
const BEFORE_MAX: usize = 200;
/// The longest time from one frame to the next.
const EVERY_MS_MAX: usize = 60_000;

pub(crate) async fn list(request: &Request, node: &NodeHandle) -> Answered {
    let skip = number(request, "skip", 0, usize::MAX)?;
    let limit = number(request, "limit", 50, LISTED_MAX)?;
    let find = request.query_value("find").unwrap_or_default().into_owned();
    let (count, files) = node.operator().recordings(find, skip, limit).await?;
    Ok(json!({ "count": count, "recordings": files.iter().map(file).collect::<Vec<_>>() }))
}

pub(crate) async fn facts(source: [&str; 2], node: &NodeHandle) -> Answered {
    let of = node.operator().recording(named(source)?).await?;
    let RecordingFacts { about, bytes, end, fault, first, last, gaps, is_other_schema } = of;
    let gap = |(at, why): &(Position, String)| json!({ "to": position(at), "why": why });
    Ok(json!({
        "room": about.room_id,
        "type": about.room_type,
        "key": about.key,
        "build": about.build,
        "began_ms": about.unix_ms,
        "why": about.why,
        "bytes": bytes,
        "end": end.map(|end| json!({ "failed": end.has_failed, "why": end.why })),
        "fault": fault,
        "first": position(&first),
        "last": position(&last),
        "gaps": gaps.iter().map(gap).collect::<Vec<_>>(),
        "other_schema": is_other_schema,
    }))
}

/// The answer as text. It may be large, so the serving thread has no work left.
pub(crate) async fn frames(
    source: [&str; 2],
    request: &Request,
    node: &NodeHandle,
) -> Result<String, Refusal> {
    let moment = moment(request)?;
    let before = number(request, "before", 0, BEFORE_MAX)? as u64;
    let viewer = player(request, "as")?;
    let frames = number(request, "count", 100, FRAMES_MAX)?;
    let every = number(request, "every_ms", 0, EVERY_MS_MAX)?;
    let every = Duration::from_millis(every as u64);
    let of = ExcerptOf { moment, before, viewer, frames, every, bytes: FRAMES_BYTES };
    let shown = |excerpt: &_, schema: &_| excerpted(excerpt, schema).to_string();
    Ok(node.operator().excerpt(named(source)?, of, shown).await?)
}

pub(crate) async fn search(source: [&str; 2], request: &Request, node: &NodeHandle) -> Answered {
    let from = number(request, "from", 0, usize::MAX)? as u64;
    let is_back = request.query_value("back").is_some();
    let wanted = match request.query_value("for").as_deref() {
        Some("input") => Wanted::Input(player(request, "player")?),
        Some("error") => Wanted::Error,
        Some("internal") => Wanted::InternalError,
        Some("difference") => Wanted::Difference,
        Some("change") => {
            let pointer = request.query_value("path").unwrap_or_default().into_owned();
            Wanted::Change { pointer, viewer: player(request, "as")? }
        }
        other => {
            let text = format!(
                "for = {:?}: give input, error, internal, change or difference",
                other.unwrap_or_default()
            );
            return Err(Refusal(400, text));
        }
    };
    let search = Search { from, is_back, wanted };
    Ok(match node.operator().search_recording(named(source)?, search).await? {
        Found::At(at) => json!({ "found": position(&at) }),
        Found::Nothing => json!({ "found": null }),
        Found::Until(inputs) => json!({ "found": null, "until": inputs }),
        Found::Differs(of) => json!({ "found": null, "difference": difference(&of) }),
    })
}

pub(crate) async fn fork(source: [&str; 2], request: &Request, node: &NodeHandle) -> Answered {
    let wrong = || Refusal(400, "the body needs input, a number".into());
    let inputs = body(request)?["input"].as_u64().ok_or_else(wrong)?;
    let room = node.operator().fork_recording(named(source)?, inputs).await?;
    Ok(json!({ "room": room }))
}

fn named([file, room]: [&str; 2]) -> Result<RecordingSource, Refusal> {
    Ok(RecordingSource { file: segment(file)?, room: segment(room)? })
}

/// The moment that a request names.
fn moment(request: &Request) -> Result<Moment, Refusal> {
    let given = |name: &str| match request.query_value(name) {
        Some(_) => number(request, name, 0, usize::MAX).map(|number| Some(number as u64)),
        None => Ok(None),
    };
    match (given("input")?, given("tick")?, given("at_ms")?) {
        (Some(inputs), None, None) => Ok(Moment::Inputs(inputs)),
        (None, Some(tick), None) => Ok(Moment::Tick(tick)),
        (None, None, Some(ms)) => Ok(Moment::At(Duration::from_millis(ms))),
        _ => Err(Refusal(400, "give one of input, tick and at_ms".into())),
    }
}

fn file(of: &RecordingFile) -> Value {
    let mut shown = json!({
        "file": of.file,
        "bytes": of.bytes,
        "changed_ms": of.changed.as_millis() as u64,
        "too_large": of.too_large,
    });
    match &of.glance {
        Ok(glance) => {
            shown["room"] = json!(glance.about.room_id);
            shown["type"] = json!(glance.about.room_type);
            shown["key"] = json!(glance.about.key);
            shown["began_ms"] = json!(glance.about.unix_ms);
            shown["why"] = json!(glance.about.why);
            shown["length_ms"] = json!(glance.length.map(|length| length.as_millis() as u64));
            shown["end"] = json!(glance.end.as_ref().map(|end| &end.why));
        }
        Err(error) => shown["error"] = json!(error),
    }
    shown
}

fn position(of: &Position) -> Value {
    json!({ "input": of.inputs, "tick": of.tick, "at_ms": of.at.as_millis() as u64 })
}

fn difference(of: &Difference) -> Value {
    json!({
        "same_until": position(&of.same_until),
        "position": position(&of.position),
        "input": of.input,
        "fields": of.fields,
        "text": of.to_string(),
    })
}

fn excerpted(of: &Excerpt, schema: &str) -> Value {
    let mut all = of.requests.clone();
    all.extend(of.frames.iter().flat_map(|frame| frame.messages.iter().cloned()));
    let Value::Array(shown) = messages::shown(&all, schema) else { return Value::Null };
    let mut shown = shown.into_iter().skip(of.requests.len());
    let mut one = |of: &Frame| {
        let messages: Vec<Value> = shown.by_ref().take(of.messages.len()).collect();
        frame(of, messages)
    };
    json!({
        "input": of.inputs,
        "begin": of.begin.as_ref().map(|Shown { position: at, state, view, players, differs }| {
            let mut begin = position(at);
            begin["differs"] = json!(differs);
            begin["state"] = state.clone();
            begin["view"] = view.clone();
            begin["seats"] = players.iter().map(seat).collect();
            begin
        }),
        "frames": of.frames.iter().map(&mut one).collect::<Vec<_>>(),
        "over": of.is_over,
        "difference": of.difference.as_deref().map(difference),
        "verified": of.is_verified,
        "other_type": of.is_other_type,
    })
}

fn frame(of: &Frame, messages: Vec<Value>) -> Value {
    let input = |(of, message): &(Described, Option<u64>)| {
        json!({
            "kind": of.kind.name(),
            "player": of.player.map(|player| player.0),
            "text": of.text,
            "message": message,
        })
    };
    let mut shown = position(&of.position);
    shown["inputs"] = of.inputs.iter().map(input).collect();
    shown["more_inputs"] = json!(of.more_inputs);
    shown["messages"] = messages.into();
    shown["changes"] = of.changes.iter().map(change).collect();
    shown["view_changes"] = of.view_changes.iter().map(change).collect();
    shown["gap"] = json!(of.gap);
    shown["error"] = json!(of.has_error);
    shown["unheard"] = json!(of.unheard);
    shown["differs"] = json!(of.differs);
    if let Some(players) = &of.players {
        shown["seats"] = players.iter().map(seat).collect();
    }
    shown
}

fn change(of: &Change) -> Value {
    let step = |step: &PathStep| match step {
        PathStep::Name(name) => json!(**name),
        PathStep::Index(index) => json!(index),
    };
    let path: Vec<Value> = of.path.steps().iter().map(step).collect();
    match of.kind {
        ChangeKind::Entered => json!({ "path": path, "kind": "entered", "new": of.new }),
        ChangeKind::Left => json!({ "path": path, "kind": "left", "old": of.old }),
        ChangeKind::Changed => {
            json!({ "path": path, "kind": "changed", "old": of.old, "new": of.new })
        }
        ChangeKind::Moved { from } => json!({ "path": path, "kind": "moved", "from": from }),
    }
}
