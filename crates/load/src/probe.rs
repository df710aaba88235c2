//! Asks the node for schemas, before the load begins. It shows whether the node is there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use playfield_client::poll::{self, Buffers, Connection, Waiter};
use playfield_client::session::{Event, Failure};
use playfield_wire::schema::RoomSchema;
use playfield_wire::server;

use crate::dial::{Dial, explain};
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
    let (mut waiter, registration) = Waiter::new()?;
    let mut buffers = Buffers::default();
    let of_script = settings.scripts.iter().find_map(|script| script.token.as_deref());
    let login = dial.settings(settings, 0, of_script);
    let login = poll::Settings { is_resumable: false, source: None, ..login };
    let mut connection = Connection::open(Arc::clone(&dial.dialer), login, registration);
    let ends = began.checked_add(settings.timeout);
    let mut found = BTreeMap::new();
    loop {
        let mut is_welcome = false;
        while let Some((event, why)) = connection.poll_event() {
            match event {
                Event::Welcome(_) => is_welcome = true,
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
                Event::Closed { .. } => {
                    return Err(match why {
                        Some(why) if why.is_unreachable() => LoadError::Work(format!(
                            "{}; check that the node runs there",
                            explain(&why)
                        )),
                        why => failed(
                            why.map_or("it closed the connection".into(), |why| explain(&why)),
                        ),
                    });
                }
                _ => {}
            }
        }
        if let Some(session) = connection.session().filter(|_| is_welcome) {
            for room_type in room_types {
                let asked = session.schema(room_type);
                asked.map_err(|error| failed(format!("asking for schemas: {error}")))?;
            }
        }
        let is_done = connection.is_connected() && found.len() == room_types.len();
        if is_done {
            connection.close(&mut buffers);
            return Ok(found);
        }
        connection.settle(&mut buffers);
        if ends.is_some_and(|ends| Instant::now() >= ends) {
            return Err(failed(format!("it did not answer within {:?}", settings.timeout)));
        }
        let until = connection.due_at().into_iter().chain(ends).min();
        let readiness = waiter.wait(until)?;
        connection.pump(readiness, &mut buffers);
    }
}
