//! The node's schemas, and how this client works with rooms of other builds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use playfield_wire::schema::{RoomSchema, SchemaError};

use super::shared::Schema;
use super::{Build, Translation, Unusable};
use crate::session::entering::Granted;
use crate::session::switch::Speech;

/// The node's schemas, by room type.
#[derive(Debug, Default)]
pub(in crate::session) struct Schemas {
    /// Room types named in the hello, whose schemas the node may send unasked.
    named: BTreeSet<String>,
    known: BTreeMap<String, Known>,
}

#[derive(Debug)]
struct Known {
    fingerprint: u64,
    /// `None` while only the fingerprint is known.
    schema: Option<Result<Arc<Schema>, SchemaError>>,
}

impl Schemas {
    pub(in crate::session) fn new(named: impl IntoIterator<Item = String>) -> Self {
        Self { named: named.into_iter().collect(), ..Self::default() }
    }

    /// Forgets all: the node may be another build by now.
    pub(in crate::session) fn clear(&mut self) {
        self.known.clear();
    }

    /// Notes the fingerprint of a room that was joined.
    pub(in crate::session) fn joined(&mut self, room_type: &str, fingerprint: u64) {
        let is_known =
            self.known.get(room_type).is_some_and(|known| known.fingerprint == fingerprint);
        if !is_known {
            self.known.insert(room_type.to_owned(), Known { fingerprint, schema: None });
        }
    }

    /// Stores a schema that the node sent unasked: after the hello, or because it switched to
    /// another. Returns whether it was expected: whether the hello named the room type, or this
    /// client knew another schema of it.
    pub(in crate::session) fn store_unasked(&mut self, room_type: &str, text: &[u8]) -> bool {
        let is_expected = self.named.contains(room_type) || self.known.contains_key(room_type);
        if is_expected {
            self.store(room_type, text);
        }
        is_expected
    }

    /// The schema by which a joined room is read and written, if it is known.
    pub(in crate::session) fn speech(&self, granted: &Granted, build: &Build) -> Option<Speech> {
        let &Granted { ref room_type, fingerprint, player, .. } = granted;
        let own = match (build, self.known.get(room_type)) {
            (Build::Of(own, schema), _) if *own == fingerprint => schema,
            (_, Some(Known { fingerprint: of, schema: Some(Ok(schema)) }))
                if *of == fingerprint =>
            {
                schema.schema()
            }
            _ => return None,
        };
        let (room_type, own) = (room_type.clone(), Arc::clone(own));
        Some(Speech { room_type, player, own, fingerprint, since: None })
    }

    /// The node's schema of a room type, with its fingerprint, if it is known: to this client, or
    /// as that of one of these builds.
    pub(in crate::session) fn written<'a>(
        &self,
        room_type: &str,
        builds: impl IntoIterator<Item = &'a Build>,
    ) -> Option<(u64, Arc<RoomSchema>)> {
        let Known { fingerprint, schema } = self.known.get(room_type)?;
        let schema = match schema {
            Some(Ok(schema)) => schema.schema(),
            Some(Err(_)) => return None,
            None => builds.into_iter().find_map(|build| match build {
                Build::Of(own, schema) => (own == fingerprint).then_some(schema),
                Build::Any => None,
            })?,
        };
        Some((*fingerprint, Arc::clone(schema)))
    }

    /// Stores a schema that the node was asked for.
    pub(in crate::session) fn store(&mut self, room_type: &str, text: &[u8]) {
        let schema = RoomSchema::from_json(text).map(Schema::shared);
        let fingerprint = match &schema {
            Ok(schema) => schema.fingerprint(),
            Err(_) => self.known.get(room_type).map_or(0, |known| known.fingerprint),
        };
        self.known.insert(room_type.to_owned(), Known { fingerprint, schema: Some(schema) });
    }

    /// Returns the translation with which this client works with the node's rooms of a type.
    /// `joined` is the fingerprint of the room, if it was joined already. `None` if the node's
    /// schema is needed first.
    ///
    /// # Errors
    /// If the schemas are incompatible, or the node's is invalid.
    pub(in crate::session) fn translation(
        &self,
        room_type: &str,
        build: &Build,
        joined: Option<u64>,
    ) -> Result<Option<Translation>, Unusable> {
        let own = match build {
            Build::Of(fingerprint, _) => Some(*fingerprint),
            Build::Any => None,
        };
        if own.is_some() && joined == own {
            return Ok(Some(Translation::None));
        }
        let Some(known) = self.known.get(room_type) else { return Ok(None) };
        if joined.is_none() && Some(known.fingerprint) == own {
            return Ok(Some(Translation::None));
        }
        let schema = match &known.schema {
            None => return Ok(None),
            Some(Err(error)) => return Err(Unusable::Schema(error.clone())),
            Some(Ok(schema)) => schema,
        };
        if let Some(stated) = joined.filter(|joined| *joined != known.fingerprint) {
            let own = known.fingerprint;
            return Err(Unusable::Schema(SchemaError::Fingerprint { stated, own }));
        }
        let translation = match build {
            Build::Of(own, build) => Translation::Transcoded(schema.transcoder(*own, build)?),
            Build::Any => Translation::Learned(schema.learned()?),
        };
        Ok(Some(translation))
    }
}
