//! A state as bytes that outlive the process.
//!
//! A save has everything but skipped fields, exactly as the server has it: hidden fields too,
//! floats by their bits, nothing masked or quantized. It describes its own types, so a later build
//! reads it. See `docs/state.md#saves`.

mod collections;
mod error;
#[cfg(test)]
mod evolutions;
mod fate;
mod header;
mod kept;
mod layout;
mod saved;
mod shown;
mod skim;
mod turn;

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;
use playfield_wire::schema::Type;

use self::header::{BODY_AT, Header};
use self::layout::Layout;
use self::turn::{Failed, Turned};
use crate::State;
use crate::leaf::Atomic;

pub use self::error::LoadError;
pub use self::fate::{SaveDifference, SaveFate, save_differences};
pub use self::kept::{Follow, Kept, Node};
pub use self::layout::{describe_type, described_type};
pub use self::saved::{Added, AddedAsDefault, AddedByType, Saved, SavedField};
pub use self::shown::saved_as_json;

/// The form of a type in a save. For generated code.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be synced",
    note = "derive `State`; keys of maps implement `Key`; elements and values implement `State`"
)]
pub trait Save: Sized {
    /// Says that it has [skipped fields](State#skipped-fields), itself or inside.
    const SKIPS: bool = false;

    /// Its shape in a save.
    fn saved() -> Saved;

    /// Appends it.
    fn write_save(&self, out: &mut Vec<u8>);

    /// Reads what [`write_save`](Self::write_save) wrote.
    ///
    /// # Errors
    /// Anything that doesn't match the shape.
    fn read_save(reader: &mut Reader<'_>) -> Result<Self, DecodeError>;

    /// Finds again what is kept beside this value and inside it, and forgets the rest.
    fn follow(&self, kept: &mut Node, how: &mut Follow);
}

#[diagnostic::do_not_recommend]
impl<T: Atomic> Save for T {
    fn saved() -> Saved {
        T::schema().into()
    }
    #[inline]
    fn write_save(&self, out: &mut Vec<u8>) {
        self.encode(out);
    }
    #[inline]
    fn read_save(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        T::decode(reader)
    }
    fn follow(&self, kept: &mut Node, how: &mut Follow) {
        kept.follow_atomic(self, how);
    }
}

/// Writes a state, or any part of one, to bytes that [`load`] reads back, in this build or a later
/// one.
///
/// It has everything but skipped fields, exactly as it is: hidden fields too, floats by their bits,
/// nothing masked or quantized. The versions of syncs and the [ids](crate::ElementId) of list
/// elements are not part of a state.
///
/// ```
/// use playfield_state::{List, Map, State, load, save};
///
/// #[derive(State, Default, Debug, PartialEq)]
/// struct Document {
///     title: String,
///     #[sync(quantize = 0.01)]
///     zoom: f64,
///     #[sync(hidden)]
///     history: List<String>,
/// }
///
/// let document = Document { title: "Plan".into(), zoom: 1.23456, ..Document::default() };
/// let bytes = save(&document);
/// assert_eq!(load::<Document>(&bytes)?, document);
/// # Ok::<_, playfield_state::LoadError>(())
/// ```
#[must_use]
pub fn save<S: State>(state: &S) -> Vec<u8> {
    let mut out = Vec::new();
    save_to(state, &mut out);
    out
}

/// Saves like [`save`], into a buffer that may be used again. What it held is removed.
pub fn save_to<S: State>(state: &S, out: &mut Vec<u8>) {
    save_kept(state, 0, &mut Kept::default(), out);
}

/// Saves like [`save_to`], with a number that [`restore`] returns, what the writer must remember
/// beside the state, and with what was [kept](Kept) when the state was read.
pub fn save_kept<S: State>(state: &S, mark: u64, kept: &mut Kept, out: &mut Vec<u8>) {
    let layout = Layout::of::<S>();
    out.clear();
    out.extend_from_slice(&[0; BODY_AT]);
    out.extend_from_slice(&layout.schema);
    state.write_save(out);
    let kept_at = out.len();
    kept.write(state, out);
    header::finish(out, &layout, mark, kept_at);
}

/// The type of a state in its saves, for [`save_differences`].
#[must_use]
pub fn saved_type<S: State>() -> Type {
    Layout::of::<S>().shape.schema()
}

/// Reads what [`save`] wrote.
///
/// The save may be of an older build, if the schema of `S` is compatible with it: `S` may have more
/// fields, which get the default of their type, and its enums more variants. Who sees a field, how
/// it is masked and quantized has no influence. [`restore`] also reads saves of newer builds.
///
/// # Errors
/// If the bytes are not a whole, undamaged save of an `S`, or if another build's fields are
/// [kept](Kept) in it that `S` lacks: the next save would be without them. The error says what is
/// wrong, and where.
pub fn load<S: State>(bytes: &[u8]) -> Result<S, LoadError> {
    let Restored { state, mut kept, dropped, .. } = read::<S>(bytes, true)?;
    if let Some(Dropped { place, why, .. }) = dropped.into_iter().next() {
        return Err(LoadError::Incompatible { place, why });
    }
    kept.bind(&state);
    match kept.fields().into_keys().next() {
        Some(place) => Err(LoadError::Incompatible { place, why: fate::lacks("field") }),
        None => Ok(state),
    }
}

/// Reads a save of this build, of an older one, or of a newer one as far as this build has its
/// types: for a program that goes on with the state and saves it again.
///
/// Fields that this build lacks are [kept](Kept). A value that this build can't read, such as an
/// unknown variant of an enum, is dropped: the field has its default, an option is none, and an
/// element of a list or an entry of a map is left out.
///
/// ```
/// use playfield_state::{Kept, State, Tracker, Tracking, restore, save, save_kept};
///
/// mod newer {
///     #[derive(playfield_state::State, Default)]
///     pub struct Town {
///         pub houses: u32,
///         pub motto: String,
///     }
/// }
///
/// #[derive(State, Default)]
/// struct Town {
///     houses: u32,
/// }
///
/// let newer = save(&newer::Town { houses: 3, motto: "Onward".into() });
/// let mut older = restore::<Town>(&newer)?;
/// older.state.houses = 4;
/// let mut bytes = Vec::new();
/// save_kept(&older.state, older.mark, &mut older.kept, &mut bytes);
///
/// let town = restore::<newer::Town>(&bytes)?.state;
/// assert_eq!((town.houses, town.motto.as_str()), (4, "Onward"));
/// # Ok::<_, playfield_state::LoadError>(())
/// ```
///
/// # Errors
/// If the bytes are not a whole, undamaged save of a type with this name.
pub fn restore<S: State>(bytes: &[u8]) -> Result<Restored<S>, LoadError> {
    let mut restored = read::<S>(bytes, false)?;
    restored.kept.bind(&restored.state);
    Ok(restored)
}

/// The result of [`restore`].
#[derive(Debug)]
pub struct Restored<S> {
    /// The state.
    pub state: S,
    /// The number that [`save_kept`] was given; 0 from [`save`].
    pub mark: u64,
    /// The fields that this build lacks.
    pub kept: Kept,
    /// The values that this build can't read. They will not be in the next save.
    pub dropped: Vec<Dropped>,
    /// The save is of another build: its types are not those of this build.
    pub is_foreign: bool,
}

/// Values of a save that this build can't read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The place of the values, such as `units.*.kind`.
    pub place: String,
    /// Why this build can't read them.
    pub why: String,
    /// The number of values.
    pub count: u64,
}

fn read<S: State>(bytes: &[u8], is_strict: bool) -> Result<Restored<S>, LoadError> {
    let header = Header::read(bytes)?;
    let (layout, body, mark) = (Layout::of::<S>(), header.body(), header.mark);
    let kept = Kept::of_save(bytes, &header)?;
    if header.fingerprint == layout.fingerprint && bytes[header.schema()] == layout.schema[..] {
        let mut reader = Reader::new(&bytes[..body.end]);
        reader.take(body.start).map_err(LoadError::of)?;
        let state = whole(&mut reader).map_err(|error| {
            let place = skim::place(&layout.shape.schema(), bytes, body.clone(), error.offset());
            LoadError::Invalid { place, error }
        })?;
        return Ok(Restored { state, mark, kept, dropped: Vec::new(), is_foreign: false });
    }
    let stored = layout::read(bytes, header.schema()).map_err(LoadError::of)?;
    if stored.name != layout.name {
        return Err(LoadError::OtherType { saved: stored.name, wanted: layout.name.to_string() });
    }
    let here = &layout.shape;
    if is_strict && let Some(first) = fate::differences(&stored.of, here).into_iter().next() {
        return Err(LoadError::Incompatible { place: first.place, why: first.why });
    }
    let turned = turn::turned(&stored.of, kept, here, bytes, body.clone());
    let Turned { body, kept, dropped } = turned.map_err(|failed| match failed {
        Failed::Load(error) => error,
        Failed::Bytes(error) => {
            let place = skim::place(&stored.of, bytes, body, error.offset());
            LoadError::Invalid { place, error }
        }
    })?;
    // What is wrong in the converted bytes is wrong in the save too, at a byte that is not known.
    let state = whole(&mut Reader::new(&body)).map_err(|error| {
        let place = skim::place(&layout.shape.schema(), &body, 0..body.len(), error.offset());
        LoadError::Invalid { place, error: error.without_offset() }
    })?;
    Ok(Restored { state, mark, kept, dropped, is_foreign: true })
}

fn whole<S: State>(reader: &mut Reader<'_>) -> Result<S, DecodeError> {
    let state = S::read_save(reader)?;
    reader.clone().finish()?;
    Ok(state)
}
