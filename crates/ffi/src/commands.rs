//! Commands to the node: entering rooms, and asking about them.

use playfield_client::Creation;
use playfield_client::session::{CommandError, Session, Target};
use playfield_wire::server::RoomInfo;
use serde_json::{Map, Value, json};

use crate::client::{ClientCell, PfClient};
use crate::failure::{Failure, Outcome, PfCode, call};
use crate::handle;
use crate::node::Link;
use crate::room::message;
use crate::state::{Given, What};
use crate::text::{PfText, place};

/// A room that is created is neither listed nor entered by `pf_client_join_or_create`.
pub const PF_CREATE_PRIVATE: u32 = 1;
/// A room that is created gets a short code as its key, which `pf_room_get_info` tells.
pub const PF_CREATE_CODE: u32 = 2;

/// Begins to enter a room.
///
/// # Safety
/// `request` is null or points to a place.
unsafe fn enter(client: PfClient, request: *mut u64, target: Target) -> Outcome {
    // SAFETY: the caller promises it.
    let out = unsafe { place(request, "the place for the request") }?;
    *out = handle::find::<ClientCell>(client.id)?.act(|state| state.join(target))?;
    Ok(())
}

/// Options; none if the text is empty.
pub(crate) fn options(json: &[u8]) -> Outcome<Option<Value>> {
    if json.is_empty() { Ok(None) } else { message(json).map(Some) }
}

/// Enters an existing room, by its id, or with a reservation or a ticket for it. Like all that
/// enter rooms, it is answered by `PF_EVENT_KIND_JOINED`, whose `room` is to be freed. If the room
/// is at another node of a cluster, the client connects to that node too.
///
/// # Safety
/// `room_id` points to text, `request` to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_client_join(
    client: PfClient,
    room_id: PfText,
    request: *mut u64,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let id = unsafe { room_id.text("the room's id") }?.to_owned();
        // SAFETY: the caller promises it.
        unsafe { enter(client, request, Target::Join { id }) }
    })
}

/// Enters the room of a type that has this key or code.
///
/// # Safety
/// `room_type` and `key` point to text, `request` to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_client_join_by_key(
    client: PfClient,
    room_type: PfText,
    key: PfText,
    request: *mut u64,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let (room_type, key) = unsafe { (room_type.text("the room type")?, key.text("the key")?) };
        let (room_type, key) = (room_type.to_owned(), key.to_owned());
        // SAFETY: the caller promises it.
        unsafe { enter(client, request, Target::JoinByKey { room_type, key }) }
    })
}

/// Enters the room of a type that has this key, or a new one; without a key, any that is not full.
/// `options` is JSON, and may be empty.
///
/// # Safety
/// `room_type`, `key` and `options` point to text, `request` to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_client_join_or_create(
    client: PfClient,
    room_type: PfText,
    key: PfText,
    options: PfText,
    request: *mut u64,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let (room_type, key, json) = unsafe {
            (room_type.text("the room type")?, key.text("the key")?, options.bytes("the options")?)
        };
        let (room_type, options) = (room_type.to_owned(), text(self::options(json)?.as_ref()));
        let key = (!key.is_empty()).then(|| key.to_owned());
        // SAFETY: the caller promises it.
        unsafe { enter(client, request, Target::JoinOrCreate { room_type, key, options }) }
    })
}

/// Options as the session takes them: JSON text, or none.
fn text(options: Option<&Value>) -> Vec<u8> {
    options.map_or_else(Vec::new, |options| options.to_string().into_bytes())
}

/// Creates a room, and enters it. `flags` are `PF_CREATE_PRIVATE` and `PF_CREATE_CODE`; `key` and
/// `options`, which is JSON, may be empty.
///
/// # Safety
/// `room_type`, `key` and `options` point to text, `request` to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_client_create(
    client: PfClient,
    room_type: PfText,
    flags: u32,
    key: PfText,
    options: PfText,
    request: *mut u64,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let (room_type, key, json) = unsafe {
            (room_type.text("the room type")?, key.text("the key")?, options.bytes("the options")?)
        };
        let (room_type, options) = (room_type.to_owned(), text(self::options(json)?.as_ref()));
        if flags & !(PF_CREATE_PRIVATE | PF_CREATE_CODE) != 0 {
            let why = format!("{flags:#x} has bits of no meaning");
            return Err(Failure::argument("a flag", why));
        }
        let mut creation = Creation::new();
        if flags & PF_CREATE_PRIVATE != 0 {
            creation = creation.private();
        }
        if flags & PF_CREATE_CODE != 0 {
            creation = creation.code();
        }
        if !key.is_empty() {
            creation = creation.key(key);
        }
        // SAFETY: the caller promises it.
        unsafe { enter(client, request, Target::Create { room_type, creation, options }) }
    })
}

/// Asks the node something whose answer is a value.
///
/// # Safety
/// `request` is null or points to a place.
pub(crate) unsafe fn ask(
    client: PfClient,
    request: *mut u64,
    act: impl FnOnce(&mut Session) -> Result<Given, CommandError> + Send + 'static,
) -> Outcome {
    // SAFETY: the caller promises it.
    let out = unsafe { place(request, "the place for the request") }?;
    let cell = handle::find::<ClientCell>(client.id)?;
    *out = cell.act(|state| state.ask(None, What::Value, act))?;
    Ok(())
}

/// Lists at most `limit` rooms, 0 means the node's limit: of a type, or of all if it is empty,
/// whose metadata has all members of the JSON object `filter`, which may be empty. The reply is a
/// list of maps with `id`, `room_type`, `key`, `players`, `capacity`, `locked` and `metadata`.
///
/// # Safety
/// `room_type` and `filter` point to text, `request` to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_client_list(
    client: PfClient,
    room_type: PfText,
    filter: PfText,
    limit: u32,
    request: *mut u64,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let (room_type, filter) =
            unsafe { (room_type.text("the room type")?.to_owned(), filter.bytes("the filter")?) };
        let filter = pairs("the filter", options(filter)?)?;
        // SAFETY: the caller promises it.
        unsafe {
            ask(client, request, move |session| {
                let pairs: Vec<_> =
                    filter.iter().map(|(name, value)| (&**name, &**value)).collect();
                let room_type = (!room_type.is_empty()).then_some(&*room_type);
                session.list(room_type, &pairs, limit).map(Given::Request)
            })
        }
    })
}

/// Pairs of text in a JSON object.
pub(crate) fn pairs(what: &str, object: Option<Value>) -> Outcome<Vec<(String, String)>> {
    let wrong = || Failure::argument(what, "it is not an object whose members are strings");
    let Some(object) = object else { return Ok(Vec::new()) };
    let Value::Object(members) = object else { return Err(wrong()) };
    let pair = |(name, value)| match value {
        Value::String(value) => Ok((name, value)),
        _ => Err(wrong()),
    };
    members.into_iter().map(pair).collect()
}

pub(crate) fn room_info(room: &RoomInfo<'_>) -> Value {
    let metadata: Map<_, _> =
        room.metadata.iter().map(|(name, value)| (name.to_string(), json!(value))).collect();
    json!({
        "id": room.id, "room_type": room.room_type, "key": room.key, "players": room.players,
        "capacity": room.capacity, "locked": room.locked, "metadata": metadata,
    })
}

/// Asks for the node's schema of a room type; the reply is its JSON.
///
/// # Safety
/// `room_type` points to text, `request` to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_client_schema(
    client: PfClient,
    room_type: PfText,
    request: *mut u64,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let room_type = unsafe { room_type.text("the room type") }?.to_owned();
        // SAFETY: the caller promises it.
        unsafe {
            ask(client, request, move |session| session.schema(&room_type).map(Given::Request))
        }
    })
}

/// Measures the round trip to the node; the reply is in microseconds.
///
/// # Safety
/// `request` points to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_client_ping(client: PfClient, request: *mut u64) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        unsafe { ask(client, request, |session| session.ping().map(Given::Ping)) }
    })
}

/// The network has changed, or this device was asleep: checks the connection now.
#[unsafe(no_mangle)]
pub extern "C" fn pf_client_suspect(client: PfClient) -> PfCode {
    call(|| {
        handle::find::<ClientCell>(client.id)?.act(|state| {
            state.check_connected()?;
            let others = state.others.iter_mut();
            for node in std::iter::once(&mut state.node).chain(others) {
                if let Link::Open(connection) = &mut node.link {
                    connection.suspect();
                    connection.flush(&mut state.buffers);
                }
            }
            Ok(())
        })
    })
}
