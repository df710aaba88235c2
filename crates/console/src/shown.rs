//! The node's rooms as JSON for the page.

use std::time::Duration;

use playfield_room::{Player, RoomSummary};
use playfield_server::{
    FoundPlayer, Inspection, Limit, LiveProfile, OperatedRoom, RoomCost, RoomLoad,
};
use playfield_state::{
    FieldCounts, FieldProfile, JsonMirror, MessageCounts, MessageProfile, Saving, saved_as_json,
};
use serde_json::{Value, json};

use crate::messages;
use crate::query::Refusal;

pub(crate) fn listed(room: &OperatedRoom) -> Value {
    let mut shown = summary(&room.summary);
    shown["id"] = json!(room.id);
    shown["type"] = json!(room.room_type);
    shown["shard"] = json!(room.shard);
    shown["load"] = room.load.map_or(Value::Null, load);
    shown
}

fn summary(of: &RoomSummary) -> Value {
    json!({
        "players": of.players,
        "capacity": of.capacity,
        "reserved": of.reserved,
        "locked": of.locked,
        "private": of.private,
        "closing": of.closing,
        "key": of.key.as_deref(),
        "metadata": of.metadata,
    })
}

pub(crate) fn inspected(id: &str, of: &Inspection, schema: &str) -> Result<Value, Refusal> {
    let mut shown = summary(&of.summary);
    shown["id"] = json!(id);
    shown["type"] = json!(of.room_type);
    shown["version"] = json!(of.version);
    shown["age_ms"] = json!(of.age.as_millis() as u64);
    shown["tick_hz"] = json!(of.rates.0);
    shown["sync_hz"] = json!(of.rates.1);
    shown["load"] = load(of.load);
    shown["recording"] = json!(of.recording);
    shown["journaled"] = json!(of.is_journaled);
    shown["seats"] = of.players.iter().map(seat).collect();
    shown["state"] = match &of.whole {
        Some(save) => saved_as_json(save).map_err(|error| unreadable(&error))?,
        None => Value::Null,
    };
    shown["view"] = match &of.view {
        Some(body) => {
            let mut mirror = JsonMirror::new();
            mirror.snapshot(body).map_err(|error| unreadable(&error))?;
            mirror.state().clone()
        }
        None => Value::Null,
    };
    shown["messages"] = messages::shown(&of.messages, schema);
    Ok(shown)
}

fn load(of: RoomLoad) -> Value {
    let us = |time: Duration| time.as_micros() as u64;
    let longest = of.longest.map(|RoomCost { ticks, sync, patches }| {
        json!({ "ticks_us": us(ticks), "sync_us": us(sync), "patches_us": us(patches) })
    });
    json!({
        "longest": longest,
        "late_us": us(of.late_max),
        "syncs_missed": of.syncs_missed,
        "bytes_in": of.bytes_in,
        "bytes_out": of.bytes_out,
        "bytes_in_per_s": of.bytes_in_per_s,
        "bytes_out_per_s": of.bytes_out_per_s,
    })
}

/// The bytes that a room sent, by field, and those of its messages and events. What was not sent is
/// left out.
pub(crate) fn profiled(of: &LiveProfile) -> Value {
    let counts = |FieldCounts { writes, shared, own }: FieldCounts| json!({ "writes": writes, "shared": shared, "own": own });
    let saving = |saving: &Saving| json!({ "to": saving.to, "snapshots": saving.snapshots, "patches": saving.patches });
    let field = |field: &FieldProfile| {
        json!({
            "path": field.path,
            "type": field.of,
            "snapshots": counts(field.snapshots),
            "patches": counts(field.patches),
            "savings": field.savings.iter().map(saving).collect::<Vec<_>>(),
        })
    };
    let exchanged = |MessageProfile { name, counts }: &MessageProfile| {
        let MessageCounts { count, shared, own, time } = counts;
        json!({ "name": name, "count": count, "shared": shared, "own": own, "us": time.as_micros() as u64 })
    };
    let exchanged = |all: &[MessageProfile]| {
        let sent = all.iter().filter(|one| one.counts.count > 0);
        sent.map(exchanged).collect::<Vec<_>>()
    };
    let has_bytes =
        |field: &&FieldProfile| field.snapshots.bytes() > 0 || field.patches.bytes() > 0;
    json!({
        "players": of.players,
        "syncs": of.syncs,
        "counted": of.counted,
        "lasted_ms": of.lasted.as_millis() as u64,
        "room_us": of.room_time.as_micros() as u64,
        "profile_us": of.profile_time.as_micros() as u64,
        "snapshots": counts(of.snapshots),
        "patches": counts(of.patches),
        "messages": exchanged(of.exchange.messages()),
        "events": exchanged(of.exchange.events()),
        "fields": of.fields.iter().filter(has_bytes).map(field).collect::<Vec<_>>(),
    })
}

pub(crate) fn limit(of: &Limit) -> Value {
    let Limit { name, max, now, reached } = *of;
    let reached = reached.map(|(counter, times)| json!({ "counter": counter, "times": times }));
    json!({ "name": name, "max": max, "now": now, "reached": reached })
}

pub(crate) fn seat(player: &Player) -> Value {
    json!({
        "id": player.id().0,
        "name": player.name(),
        "user": player.user(),
        "seat": player.seat(),
        "connected": player.is_connected(),
    })
}

pub(crate) fn found(of: &FoundPlayer) -> Value {
    let mut shown = seat(&of.player);
    shown["room"] = json!(of.room_id);
    shown["type"] = json!(of.room_type);
    shown
}

fn unreadable(error: &impl ToString) -> Refusal {
    Refusal(500, format!("the state can't be shown: {}", error.to_string()))
}
