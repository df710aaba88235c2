//! Messages of a room, as JSON for the page.

use playfield_server::{Recorded, RecordedKind};
use playfield_state::JsonExchange;
use playfield_wire::RequestNumber;
use playfield_wire::message::MessageRef;
use playfield_wire::schema::RoomSchema;
use playfield_wire::tree::read_value;
use serde_json::{Value, json};

/// The messages, the oldest first. What can't be read has no `value`.
pub(crate) fn shown(messages: &[Recorded], schema: &str) -> Value {
    if messages.is_empty() {
        return Value::Array(Vec::new());
    }
    let exchange = RoomSchema::from_json(schema.as_bytes())
        .ok()
        .and_then(|schema| JsonExchange::new(&schema).ok());
    let one = |message: &Recorded| {
        let (direction, kind, name, request, value) = match &message.kind {
            RecordedKind::Message(of, request) => {
                let (name, value) = sent(exchange.as_ref(), of, message);
                ("in", if request.is_some() { "request" } else { "send" }, name, *request, value)
            }
            RecordedKind::Reply(request) => {
                let value = replied(exchange.as_ref(), messages, *request, message);
                ("out", "reply", Value::Null, Some(*request), value)
            }
            RecordedKind::Event(number) => {
                let (name, value) = raised(exchange.as_ref(), *number, message);
                ("out", "event", name, None, value)
            }
            RecordedKind::Error(code, request) => {
                let text = message.payload.as_deref().map(String::from_utf8_lossy);
                ("out", "error", json!(code.name()), *request, text.map(|text| json!(text)))
            }
        };
        json!({
            "number": message.number,
            "at_ms": message.at.as_millis() as u64,
            "player": message.player.0,
            "direction": direction,
            "kind": kind,
            "name": name,
            "request": request.map(|RequestNumber(number)| number),
            "value": value,
        })
    };
    messages.iter().map(one).collect()
}

fn tree(message: &Recorded) -> Option<Value> {
    read_value(message.format.tree()?, message.payload.as_deref()?).ok()
}

fn sent(
    exchange: Option<&JsonExchange>,
    of: &MessageRef<'_>,
    message: &Recorded,
) -> (Value, Option<Value>) {
    match of {
        MessageRef::Name(name) => (json!(name), tree(message)),
        MessageRef::Index(number) => {
            let read = message.payload.as_deref().zip(exchange);
            let read =
                read.and_then(|(payload, exchange)| exchange.message_value(*number, payload).ok());
            match read {
                Some((name, value)) => (json!(name), Some(value)),
                None => (json!(number), None),
            }
        }
    }
}

fn raised(
    exchange: Option<&JsonExchange>,
    number: u32,
    message: &Recorded,
) -> (Value, Option<Value>) {
    let name = exchange.and_then(|exchange| exchange.event_name(number));
    let name = name.map_or(json!(number), |name| json!(name));
    if message.format.tree().is_some() {
        return (name, tree(message));
    }
    let read = message.payload.as_deref().zip(exchange);
    let read = read.and_then(|(payload, exchange)| exchange.event(number, payload).ok());
    (name, read.map(|(_, value)| value))
}

/// A reply in `packed` is read by the request that it answers, if that is still here.
fn replied(
    exchange: Option<&JsonExchange>,
    messages: &[Recorded],
    request: RequestNumber,
    message: &Recorded,
) -> Option<Value> {
    if message.format.tree().is_some() {
        return tree(message);
    }
    let asked = messages.iter().rev().find_map(|asked| match &asked.kind {
        RecordedKind::Message(MessageRef::Index(number), Some(of))
            if *of == request
                && asked.player == message.player
                && asked.number < message.number =>
        {
            Some(*number)
        }
        _ => None,
    })?;
    exchange?.reply(asked, message.payload.as_deref()?).ok()
}
