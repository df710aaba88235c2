//! The schemas that clients use to speak to the previous process.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use playfield_room::RoomType;
use playfield_state::{Data, Format, Transcoder};
use playfield_wire::RoomNumber;
use playfield_wire::schema::{RoomSchema, SchemaError};

use crate::node::Node;
use crate::shard::Shard;
use crate::shard::keys::ConnectionKey;
use crate::shard::session::Session;
use crate::shard::session::switches::{Earlier, Switch, Switches};

/// A schema of a room type.
#[derive(Clone, Data, Debug, PartialEq, Eq)]
pub(super) struct SchemaPart {
    room_type: String,
    fingerprint: u64,
    json: String,
    /// The schema that the process used last.
    is_last: bool,
}

impl From<&RoomType> for SchemaPart {
    fn from(of: &RoomType) -> Self {
        let RoomType { name, fingerprint, schema, .. } = of;
        let (room_type, json) = (name.clone(), schema.to_string());
        Self { room_type, fingerprint: *fingerprint, json, is_last: true }
    }
}

impl From<&Earlier> for SchemaPart {
    fn from(of: &Earlier) -> Self {
        let Earlier { room_type, fingerprint, json, schema: _ } = of;
        let (room_type, json) = (room_type.clone(), json.clone());
        Self { room_type, fingerprint: *fingerprint, json, is_last: false }
    }
}

/// A change of schema that the client of a session has not confirmed.
#[derive(Data, Debug)]
pub(super) struct SwitchPart {
    /// `None` if the client does not know of it.
    at: Option<u64>,
    room_type: String,
    /// The fingerprint of the previous schema.
    from: u64,
    rooms: Vec<u32>,
}

impl From<&Switch> for SwitchPart {
    fn from(of: &Switch) -> Self {
        let Switch { at, from, rooms, by: _ } = of;
        let Earlier { room_type, fingerprint, .. } = &**from;
        let rooms = rooms.iter().map(|room| room.0).collect();
        Self { at: *at, room_type: room_type.clone(), from: *fingerprint, rooms }
    }
}

/// The schemas that clients use where they differ from those of this process.
#[derive(Default)]
pub(super) struct Schemas {
    earlier: HashMap<(String, u64), Arc<Earlier>>,
    /// The previous process's last schema, by the room type's number in this process.
    changed: BTreeMap<u16, Arc<Earlier>>,
    transcoders: HashMap<(u16, u64, u64), Result<Arc<Transcoder>, String>>,
}

/// A change of the schema of a room type, for a session.
struct Change {
    at: Option<u64>,
    room_type: u16,
    from: Arc<Earlier>,
    rooms: Vec<RoomNumber>,
}

impl Schemas {
    /// Reads the frozen schemas.
    ///
    /// # Errors
    /// If one can't be read.
    pub(super) fn read(frozen: &[Vec<u8>], node: &Node) -> Result<Self, String> {
        let mut this = Self::default();
        for bytes in frozen {
            let part = SchemaPart::read(Format::Packed, bytes)
                .map_err(|error| format!("a schema can't be read: {error}"))?;
            let SchemaPart { room_type, fingerprint, json, is_last } = part;
            let Some(number) = node.room_type(&room_type) else { continue };
            let here = &node.room_types[usize::from(number)];
            if is_last && here.fingerprint == fingerprint {
                continue;
            }
            let schema = read_schema(&room_type, &json)?;
            let of = (room_type.clone(), fingerprint);
            let earlier = Arc::new(Earlier { room_type, fingerprint, json, schema });
            if is_last {
                this.changed.insert(number, Arc::clone(&earlier));
            }
            this.earlier.insert(of, earlier);
        }
        Ok(this)
    }

    /// Returns whether the previous process used another schema of a room type.
    pub(super) fn has_changed(&self, room_type: u16) -> bool {
        self.changed.contains_key(&room_type)
    }

    /// Returns whether all clients use this process's schemas.
    pub(super) fn is_empty(&self) -> bool {
        self.earlier.is_empty()
    }

    /// Returns the converter from an earlier schema to the `next` one, or to this process's schema.
    fn transcoder(
        &mut self,
        node: &Node,
        room_type: u16,
        from: &Earlier,
        next: Option<&Earlier>,
    ) -> Result<Arc<Transcoder>, String> {
        let here = &node.room_types[usize::from(room_type)];
        let to = next.map_or(here.fingerprint, |next| next.fingerprint);
        let of = (room_type, from.fingerprint, to);
        if let Some(known) = self.transcoders.get(&of) {
            return known.clone();
        }
        let made = match next {
            Some(next) => Transcoder::new(&next.schema, &from.schema),
            None => Transcoder::new(&read_schema(&here.name, &here.schema)?, &from.schema),
        };
        let made = made.map(Arc::new).map_err(|error| {
            let name = &here.name;
            format!(
                "room type {name:?}: its clients speak by the schema of this process: {error}; or \
                 stop this process and start the new one: clients come back by themselves"
            )
        });
        self.transcoders.insert(of, made.clone());
        made
    }
}

fn read_schema(room_type: &str, json: &str) -> Result<RoomSchema, String> {
    let read = RoomSchema::from_json(json.as_bytes());
    read.map_err(|error: SchemaError| format!("the schema of room type {room_type:?}: {error}"))
}

impl Shard {
    /// The schemas of all room types, and those that clients of sessions use.
    pub(super) fn schema_parts(&self) -> Vec<SchemaPart> {
        let sessions = self.sessions.keys().filter_map(|key| self.sessions.get(key));
        let switches = sessions.filter_map(Session::switches).flat_map(Switches::iter);
        let earlier: BTreeMap<(&str, u64), &Earlier> = switches
            .map(|switch| ((&*switch.from.room_type, switch.from.fingerprint), &*switch.from))
            .collect();
        let types = self.env.node.room_types.iter().map(SchemaPart::from);
        types.chain(earlier.into_values().map(SchemaPart::from)).collect()
    }

    /// Has a session's messages converted to this process's schemas, if the previous process used
    /// others. Sends its client the schemas of its rooms. `before` has the changes that the client
    /// had not confirmed there.
    ///
    /// # Errors
    /// The place where a schema of such a room is incompatible with the previous one.
    pub(super) fn switch_schemas(
        &mut self,
        key: ConnectionKey,
        before: Vec<SwitchPart>,
        schemas: &mut Schemas,
    ) -> Result<(), String> {
        let node = Arc::clone(&self.env.node);
        let format = self.links.get(key).map(|connection| connection.dialect.format);
        let Some(session) = self.sessions.get(key) else { return Ok(()) };
        if format != Some(Format::Packed) {
            return Ok(());
        }
        let mut of_types: BTreeMap<u16, Vec<RoomNumber>> = BTreeMap::new();
        for room in &session.rooms {
            if let Some(place) = node.directory.find(room.id)
                && schemas.has_changed(place.room_type)
            {
                of_types.entry(place.room_type).or_default().push(room.number);
            }
        }
        let mut all = Vec::new();
        for SwitchPart { at, room_type, from, rooms } in before {
            let Some(number) = node.room_type(&room_type) else { continue };
            let from = schemas.earlier.get(&(room_type, from)).ok_or("a schema is missing")?;
            let (from, rooms) = (Arc::clone(from), rooms.into_iter().map(RoomNumber).collect());
            all.push(Change { at, room_type: number, from, rooms });
        }
        all.extend(schemas.changed.iter().map(|(room_type, from)| Change {
            at: None,
            room_type: *room_type,
            from: Arc::clone(from),
            rooms: of_types.get(room_type).cloned().unwrap_or_default(),
        }));
        // A client that does not know of a change uses the schema that this process has again.
        let mut reverted = BTreeSet::new();
        all.retain(|Change { at, room_type, from, .. }| {
            let is_untold = at.is_none() && !of_types.contains_key(room_type);
            if is_untold && from.fingerprint == node.room_types[usize::from(*room_type)].fingerprint
            {
                reverted.insert(*room_type);
            }
            !(is_untold && reverted.contains(room_type))
        });
        let mut switches = Vec::new();
        for (index, Change { at, room_type, from, rooms }) in all.iter().enumerate() {
            let next = all[index + 1..].iter().find(|next| next.room_type == *room_type);
            let by = schemas.transcoder(&node, *room_type, from, next.map(|next| &*next.from));
            if !rooms.is_empty() {
                by.clone()?;
            }
            let (from, rooms, by) = (Arc::clone(from), rooms.clone(), by.ok());
            switches.push(Switch { at: *at, from, rooms, by });
        }
        if let (Some(session), Some(switches)) =
            (self.sessions.get_mut(key), Switches::new(switches))
        {
            session.extras_mut().switches = Some(switches);
        }
        for (room_type, rooms) in of_types {
            outlet!(self).switch(key, &node.room_types[usize::from(room_type)].name, &rooms);
        }
        Ok(())
    }
}
