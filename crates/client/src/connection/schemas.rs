//! The node's schemas, and how this client works with rooms of other builds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use playfield_wire::schema::{RoomSchema, SchemaError, Type, fingerprint};

use super::schema::Schema;
use super::sink::Translation;
use crate::Error;

/// What this client was built with, for one type of room.
#[derive(Clone, Debug)]
pub(crate) enum Build {
    /// A schema, and its fingerprint.
    Of(u64, Arc<RoomSchema>),
    /// No schema: it takes the node's.
    Any,
}

impl Build {
    pub(crate) fn new(schema: RoomSchema) -> Self {
        Self::Of(fingerprint(&schema), Arc::new(schema))
    }

    /// Whether the options of a new room hold anything, so that they must be in the node's form.
    pub(super) fn has_options(&self, options: &[u8]) -> bool {
        match self {
            Self::Of(_, schema) => schema.options != Type::Unit,
            Self::Any => !options.is_empty(),
        }
    }
}

/// The node's schemas, by room type.
#[derive(Debug, Default)]
pub(super) struct Schemas {
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
    pub(super) fn new(named: impl IntoIterator<Item = String>) -> Self {
        Self { named: named.into_iter().collect(), ..Self::default() }
    }

    /// Notes the fingerprint of a room that was joined.
    pub(super) fn joined(&mut self, room_type: &str, fingerprint: u64) {
        let is_known =
            self.known.get(room_type).is_some_and(|known| known.fingerprint == fingerprint);
        if !is_known {
            self.known.insert(room_type.to_owned(), Known { fingerprint, schema: None });
        }
    }

    /// Stores a schema that the node sent unasked, after the hello. Returns whether it was
    /// expected: whether the hello named the room type.
    pub(super) fn store_unasked(&mut self, room_type: &str, text: &[u8]) -> bool {
        let is_named = self.named.contains(room_type);
        if is_named {
            self.store(room_type, text);
        }
        is_named
    }

    /// Stores a schema that the node was asked for.
    pub(super) fn store(&mut self, room_type: &str, text: &[u8]) {
        let schema = RoomSchema::from_json(text).map(Schema::shared);
        let fingerprint = match &schema {
            Ok(schema) => schema.fingerprint(),
            Err(_) => self.known.get(room_type).map_or(0, |known| known.fingerprint),
        };
        self.known.insert(room_type.to_owned(), Known { fingerprint, schema: Some(schema) });
    }

    /// How this client works with the node's rooms of a type. `joined` is the fingerprint of the
    /// room, if it was joined already. `None` if the node's schema is needed first.
    ///
    /// # Errors
    /// If the schemas are incompatible, or the node's is invalid.
    pub(super) fn translation(
        &self,
        room_type: &str,
        build: &Build,
        joined: Option<u64>,
    ) -> Result<Option<Translation>, Error> {
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
            Some(Err(error)) => return Err(Error::schema(error.clone())),
            Some(Ok(schema)) => schema,
        };
        if let Some(stated) = joined.filter(|joined| *joined != known.fingerprint) {
            let own = known.fingerprint;
            return Err(Error::schema(SchemaError::Fingerprint { stated, own }));
        }
        let translation = match build {
            Build::Of(own, build) => Translation::Transcoded(schema.transcoder(*own, build)?),
            Build::Any => Translation::Learned(schema.learned()?),
        };
        Ok(Some(translation))
    }
}
