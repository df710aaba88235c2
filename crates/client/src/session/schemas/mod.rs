//! The node's schemas: what this client makes of them, and the requests for them.

mod known;
mod requests;
mod shared;

use std::sync::Arc;
use std::time::Duration;

use playfield_state::{JsonExchange, ShapeError, Transcoder};
use playfield_wire::DecodeError;
use playfield_wire::schema::{Incompatible, RoomSchema, SchemaError, Type, fingerprint};

use super::Failure;

pub(super) use known::Schemas;
pub(super) use requests::SchemaRequests;
pub(super) use shared::Schema;

/// The schema that a program was built with, for one type of room.
#[derive(Clone, Debug)]
pub enum Build {
    /// A schema, and its fingerprint.
    Of(u64, Arc<RoomSchema>),
    /// No schema: it takes the node's.
    Any,
}

impl Build {
    /// A program with this schema.
    #[must_use]
    pub fn new(schema: RoomSchema) -> Self {
        Self::Of(fingerprint(&schema), Arc::new(schema))
    }

    /// Returns whether the options of a new room hold anything, so that they must be in the node's
    /// form.
    pub(super) fn has_options(&self, options: &[u8]) -> bool {
        match self {
            Self::Of(_, schema) => schema.options != Type::Unit,
            Self::Any => !options.is_empty(),
        }
    }
}

/// The client's way to read and write the messages, events and updates of a node of some build.
#[derive(Clone, Debug)]
pub enum Translation {
    /// Both have the same schema.
    None,
    /// The node's schema is a compatible later one.
    Transcoded(Arc<Transcoder>),
    /// The client takes the node's schema.
    Learned(Arc<Learned>),
}

/// A schema that was learned from the node.
#[derive(Debug)]
pub struct Learned {
    /// The schema.
    pub schema: Arc<RoomSchema>,
    /// Reads and writes messages, replies, events and options as JSON values.
    pub exchange: JsonExchange,
}

impl PartialEq for Translation {
    /// Returns whether both are by the same schema of the node.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Transcoded(one), Self::Transcoded(other)) => Arc::ptr_eq(one, other),
            (Self::Learned(one), Self::Learned(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Eq for Translation {}

impl Translation {
    /// Converts options to the node's form. Empty options are the default in any form.
    pub(super) fn options(&self, options: &mut Vec<u8>) -> Result<(), DecodeError> {
        match self {
            Self::None => {}
            Self::Transcoded(transcoder) => {
                let mut of_node = Vec::new();
                transcoder.options(options, &mut of_node)?;
                *options = of_node;
            }
            Self::Learned(_) if options.is_empty() => {}
            Self::Learned(learned) => {
                let value = serde_json::from_slice(options)
                    .map_err(|error| DecodeError::new(error.column(), error.to_string()))?;
                *options = learned.exchange.options(&value)?;
            }
        }
        Ok(())
    }
}

/// Why this client can't use a room.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unusable {
    /// The node's schema is incompatible with the one that the program was built with.
    Incompatible(Incompatible),
    /// The node's schema is invalid.
    Schema(SchemaError),
    /// A type of the schema can't be read.
    Shape(ShapeError),
    /// The node did not send its schema in time.
    NoSchema {
        /// The room type.
        room_type: String,
        /// The time that the client has waited.
        waited: Duration,
    },
    /// The options do not fit the node's schema.
    Options(DecodeError),
    /// Two snapshots in a row can't be read.
    State(DecodeError),
    /// The request for the node's schema failed.
    NotSent(Box<Failure<'static>>),
}

impl From<Failure<'static>> for Unusable {
    /// The reason why a room that waits for a schema can't be used: the request for it failed so.
    fn from(failure: Failure<'static>) -> Self {
        match failure {
            Failure::Unusable(why) => why,
            failure => Self::NotSent(Box::new(failure)),
        }
    }
}

impl std::fmt::Display for Unusable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Incompatible(error) => error.fmt(f),
            Self::Schema(error) => write!(f, "the node's schema: {error}"),
            Self::Shape(error) => write!(f, "the node's schema: {error}"),
            Self::NoSchema { room_type, waited } => {
                write!(f, "the node sent no schema of {room_type:?} within {waited:?}")
            }
            Self::Options(error) => write!(f, "the options: {error}"),
            Self::State(error) => write!(f, "the room's state can't be read: {error}"),
            Self::NotSent(failure) => write!(f, "the node sent no schema: {failure}"),
        }
    }
}
