//! Plain state, compared at sync.
//!
//! A [`State`] is a tree of plain data: structs, numbers, text, options, [`Map`]s and [`List`]s.
//! The server keeps a second tree beside it, the *shadow*: what was last synced, each part stamped
//! with the version at which it last changed.
//!
//! ```text
//!  state ──diff──▶ shadow ──write──▶ patch (from any version) or snapshot ──read──▶ mirror
//! ```
//!
//! [`Tracker`] is the server's end, [`Mirror`], [`JsonMirror`] and [`DynamicMirror`] are the
//! client's. Patches and snapshots are written from the shadow alone, so live players, slow readers
//! and late joiners are all served by one mechanism.

mod array;
mod bytes;
mod change;
mod column;
mod data;
mod digest;
mod dynamic;
pub mod generate;
mod json_mirror;
mod key;
mod leaf;
mod lens;
mod list;
mod map;
mod message;
mod mirror;
mod nested;
mod ops;
mod option;
mod patch_kind;
mod player_id;
mod profile;
mod quantized;
mod save;
mod set;
mod slots;
mod state;
mod tracker;
mod transcode;
mod viewed;
mod walk;

pub use bytes::Bytes;
pub use change::{Change, ChangeKind, Path, PathStep, Pattern, PatternError, differences};
pub use data::Data;
pub use dynamic::{DynamicMirror, JsonExchange};
pub use json_mirror::JsonMirror;
pub use key::Key;
pub use lens::{Part, Tracking};
pub use list::{ElementId, List};
pub use map::{MAP_SLOTS_MAX, Map, NEAREST_DEFAULT};
pub use message::{Accepts, Emits, Message, MessageRate, RoomInterface};
pub use mirror::Mirror;
pub use player_id::PlayerId;
pub use playfield_derive::{Data, Key, State};
pub use playfield_wire::tree::TreeWriter;
pub use playfield_wire::{DecodeError, Format, TreeFormat};
pub use profile::{
    Beside, ExchangeProfile, FieldCounts, FieldProfile, MessageCounts, MessageProfile, PlaceTime,
    Probing, RoomProfile, Saving, Spent, StateProfile, SyncProbe, beside,
};
pub use save::{
    Dropped, Kept, LoadError, Restored, SaveDifference, SaveFate, describe_type, described_type,
    load, restore, save, save_differences, save_kept, save_to, saved_as_json, saved_type,
};
pub use set::Set;
pub use state::{State, view, view_after, view_in};
pub use tracker::Tracker;
pub use transcode::{StateTranscoder, Transcoder, TranscoderError};
pub use walk::ShapeError;

/// Names that generated code uses. Not for people.
#[doc(hidden)]
pub mod __rt {
    pub use crate::change::Watch as ChangeWatch;
    pub use crate::data::{Data, element, elements, member, members, only_member};
    pub use crate::digest::{of_private, weight};
    pub use crate::key::Key;
    pub use crate::leaf::Atomic;
    pub use crate::lens::{Changed, Lens, Part, Sight, Stamps, Step, Tracking};
    pub use crate::map::{
        ByEntry, NEAREST_DEFAULT, Near, Placing, Reach, Spot, Touches, Viewers, Watch,
    };
    pub use crate::map::{coordinate, same_axes, same_type, spot};
    pub use crate::nested::nested;
    pub use crate::ops::Ops;
    pub use crate::player_id::PlayerId;
    pub use crate::quantized::{Quantize, Quantized};
    pub use crate::save::{
        Added, AddedAsDefault, AddedByType, Follow, Node, Save, Saved, SavedField,
    };
    pub use crate::slots::{Bind, New};
    pub use crate::state::{
        Compare, Describe, Read, State, Write, check_root, copy_default, default_digest, first,
    };
    pub use crate::state::{check_key, check_skipped, check_state};
    pub use crate::viewed::{AsWhole, Decided, Viewed};
    pub use crate::walk::explicit_default_digest;
    pub use playfield_wire::DecodeError;
    pub use playfield_wire::packet;
    pub use playfield_wire::reader::Reader;
    pub use playfield_wire::schema;
    pub use playfield_wire::tree::TreeWriter;
    pub use playfield_wire::writer;
    pub use serde_json::{Map as JsonMap, Value};
}
