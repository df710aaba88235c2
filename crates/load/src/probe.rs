//! Asks the node for schemas, before the load begins. It shows whether the node is there.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};
use playfield_client::session::{ClientConfig, Event, Failure, Session};
use playfield_wire::schema::RoomSchema;
use playfield_wire::server;

use crate::dial::Dial;
use crate::name::token_of;
use crate::random::Random;
use crate::settings::{LoadError, Settings};

/// Connects, and asks for the schemas of these room types.
pub(crate) fn schemas(
    settings: &Settings,
    dial: &Dial,
    room_types: &[String],
) -> Result<BTreeMap<String, RoomSchema>, LoadError> {
    let authority = &settings.url.authority;
    let failed = |why: String| {
        LoadError::Work(format!("{authority} can't be used: {why}; check the URL and the node"))
    };
    let began = Instant::now();
    let mut poll = Poll::new()?;
    let mut stream = dial.open(None).map_err(|error| LoadError::unreachable(authority, &error))?;
    stream.register(poll.registry(), Token(0))?;
    let mut config = ClientConfig::new(dial.transport(&mut Random::new(0, 0)));
    config.name = settings.name.clone();
    let of_script = settings.scripts.iter().find_map(|script| script.token.as_deref());
    config.token = token_of(of_script.map_or(&*settings.token, str::as_bytes), 0);
    config.resumable = false;
    let mut client = Session::new(config).map_err(|error| failed(error.to_string()))?;
    for room_type in room_types {
        let asked = client.schema(room_type);
        asked.map_err(|error| failed(format!("asking for schemas: {error}")))?;
    }
    let (mut found, mut is_welcomed, mut is_connected) = (BTreeMap::new(), false, false);
    let mut events = Events::with_capacity(8);
    let (mut input, mut output) = (vec![0; 64 << 10], Vec::new());
    loop {
        is_connected = is_connected
            || stream.is_connected().map_err(|error| LoadError::unreachable(authority, &error))?;
        if is_connected {
            client.advance(began.elapsed());
            loop {
                match stream.read(&mut input) {
                    Ok(0) => {
                        client.ended();
                        break;
                    }
                    Ok(count) => client.received(&input[..count]),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(failed(error.to_string())),
                }
            }
        }
        while let Some(event) = client.poll_event() {
            match event {
                Event::Welcome(_) => is_welcomed = true,
                Event::Schema(server::Schema { room_type, schema, .. }) => {
                    let schema = RoomSchema::from_json(&schema);
                    let schema = schema.map_err(|error| {
                        failed(format!("the schema of {room_type:?} is invalid: {error}"))
                    })?;
                    found.insert(room_type.into_owned(), schema);
                }
                Event::Failed { failure: Failure::Refused { code, text, .. }, .. } => {
                    return Err(failed(format!("it refuses: {} {text}", code.name())));
                }
                Event::Goodbye(server::Goodbye { code, text }) => {
                    return Err(failed(format!("it says goodbye: {} {text}", code.name())));
                }
                Event::Closed { error } => {
                    let why = error.map_or("it closed the connection".into(), |error| {
                        let source = std::error::Error::source(&error);
                        let source = source.map(|source| format!(": {source}"));
                        format!("{error}{}", source.unwrap_or_default())
                    });
                    return Err(failed(why));
                }
                _ => {}
            }
        }
        if is_welcomed && found.len() == room_types.len() {
            client.goodbye();
        }
        output.clear();
        client.take_output(&mut output);
        if is_connected {
            stream.write(&output).map_err(|error| failed(error.to_string()))?;
        }
        if is_welcomed && found.len() == room_types.len() {
            return Ok(found);
        }
        let left = settings.timeout.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Err(failed(format!("it did not answer within {:?}", settings.timeout)));
        }
        let wait = left.min(Duration::from_millis(100));
        match poll.poll(&mut events, Some(wait)) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error.into()),
            _ => {}
        }
        let has_ended = events.iter().any(|event| event.is_read_closed() || event.is_error());
        if has_ended && !is_connected && !stream.is_connected()? {
            return Err(failed("it closed the connection at once".into()));
        }
    }
}
