//! What this connection knows of the node's schemas, and what follows for rooms of other builds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use playfield_state::{Transcoder, TranscoderError};
use playfield_wire::schema::{RoomSchema, SchemaError, Type, fingerprint};

use crate::Error;

/// What this client was built with, of one type of room.
#[derive(Clone, Debug)]
pub(crate) enum Build {
    /// A schema, and its fingerprint.
    Of(u64, Arc<RoomSchema>),
    /// With nothing: it takes the node's schema, whatever that is.
    Any,
}

impl Build {
    pub(crate) fn new(schema: RoomSchema) -> Self {
        Self::Of(fingerprint(&schema), Arc::new(schema))
    }

    /// Whether these options of a room that is created say anything, so that they have to be in the
    /// node's form.
    pub(crate) fn has_options(&self, options: &[u8]) -> bool {
        match self {
            Self::Of(_, schema) => schema.options != Type::Unit,
            Self::Any => !options.is_empty(),
        }
    }
}

/// How a client and a node that may be of different builds get on.
#[derive(Debug)]
pub(super) enum Fit {
    /// They have the same schema.
    Same,
    /// The node's has grown from this client's.
    Grown(Arc<Transcoder>),
    /// The node's is this client's from now on.
    Learned(Arc<RoomSchema>),
    /// The node has to be asked for its schema first.
    Unknown,
    /// Not at all.
    Not(Error),
}

/// The node's schemas, by room type.
#[derive(Debug, Default)]
pub(super) struct Schemas {
    /// Room types that this client named in its hello: of these the node may tell unasked.
    named: BTreeSet<String>,
    known: BTreeMap<String, Known>,
}

#[derive(Debug)]
struct Known {
    fingerprint: u64,
    /// `None` while only the fingerprint is known.
    told: Option<Told>,
}

#[derive(Debug)]
struct Told {
    schema: Result<Arc<RoomSchema>, SchemaError>,
    /// To clients of these builds.
    transcoders: Vec<(u64, Arc<Transcoder>)>,
}

impl Schemas {
    pub(super) fn new(named: impl IntoIterator<Item = String>) -> Self {
        Self { named: named.into_iter().collect(), ..Self::default() }
    }

    /// A room that was joined has this fingerprint.
    pub(super) fn met(&mut self, room_type: &str, fingerprint: u64) {
        let is_known =
            self.known.get(room_type).is_some_and(|known| known.fingerprint == fingerprint);
        if !is_known {
            self.known.insert(room_type.to_owned(), Known { fingerprint, told: None });
        }
    }

    /// The node tells its schema unasked, after the hello. Says whether it counts: whether the
    /// hello named the room type.
    pub(super) fn told(&mut self, room_type: &str, text: &[u8]) -> bool {
        let is_named = self.named.contains(room_type);
        if is_named {
            self.learn(room_type, text);
        }
        is_named
    }

    /// The node tells its schema, as it was asked to.
    pub(super) fn learn(&mut self, room_type: &str, text: &[u8]) {
        let schema = RoomSchema::from_json(text).map(Arc::new);
        let fingerprint = match &schema {
            Ok(schema) => fingerprint(schema),
            Err(_) => self.known.get(room_type).map_or(0, |known| known.fingerprint),
        };
        let told = Some(Told { schema, transcoders: Vec::new() });
        self.known.insert(room_type.to_owned(), Known { fingerprint, told });
    }

    /// How this client and the node's rooms of a type get on, as far as is known. A room that was
    /// joined has told its fingerprint.
    pub(super) fn fit(&mut self, room_type: &str, build: &Build, joined: Option<u64>) -> Fit {
        let own = match build {
            Build::Of(fingerprint, _) => Some(*fingerprint),
            Build::Any => None,
        };
        if own.is_some() && joined == own {
            return Fit::Same;
        }
        let Some(known) = self.known.get_mut(room_type) else { return Fit::Unknown };
        if joined.is_none() && Some(known.fingerprint) == own {
            return Fit::Same;
        }
        let Some(told) = &mut known.told else { return Fit::Unknown };
        let schema = match &told.schema {
            Ok(schema) => schema,
            Err(error) => return Fit::Not(Error::schema(error.clone())),
        };
        if let Some(stated) = joined.filter(|joined| *joined != known.fingerprint) {
            return Fit::Not(Error::schema(SchemaError::Fingerprint {
                stated,
                own: known.fingerprint,
            }));
        }
        let Build::Of(own, build) = build else { return Fit::Learned(Arc::clone(schema)) };
        if let Some((_, transcoder)) = told.transcoders.iter().find(|(known, _)| known == own) {
            return Fit::Grown(Arc::clone(transcoder));
        }
        match Transcoder::new(schema, build) {
            Ok(transcoder) => {
                let transcoder = Arc::new(transcoder);
                told.transcoders.push((*own, Arc::clone(&transcoder)));
                Fit::Grown(transcoder)
            }
            Err(TranscoderError::Incompatible(error)) => Fit::Not(Error::incompatible(error)),
            Err(TranscoderError::Shape(error)) => Fit::Not(Error::shape(error)),
        }
    }
}
