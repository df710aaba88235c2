//! A state as bytes that outlive the process.
//!
//! A save has everything but skipped fields, exactly as the server has it: hidden fields too,
//! floats by their bits, nothing masked or quantized. It describes its own types, so a later build
//! reads it. See `docs/state.md#saves`.

mod collections;
mod error;
mod header;
mod layout;
mod saved;
mod shown;
mod skim;
mod turn;

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;

use self::header::{BODY_AT, Header};
use self::layout::Layout;
use crate::State;
use crate::leaf::Atomic;

pub use self::error::LoadError;
pub use self::saved::{Added, AddedAsDefault, AddedByType, Saved, SavedField};
pub use self::shown::saved_as_json;

/// What a save has of a type. For generated code.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be synced",
    note = "derive `State`; keys of maps implement `Key`; elements and values implement `State`"
)]
pub trait Save: Sized {
    /// Its shape in a save.
    fn saved() -> Saved;

    /// Appends it.
    fn write_save(&self, out: &mut Vec<u8>);

    /// Reads what [`write_save`](Self::write_save) wrote.
    ///
    /// # Errors
    /// Anything that doesn't match the shape.
    fn read_save(reader: &mut Reader<'_>) -> Result<Self, DecodeError>;
}

#[diagnostic::do_not_recommend]
impl<T: Atomic> Save for T {
    fn saved() -> Saved {
        Saved::Whole(T::schema())
    }
    #[inline]
    fn write_save(&self, out: &mut Vec<u8>) {
        self.encode(out);
    }
    #[inline]
    fn read_save(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        T::decode(reader)
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

/// As [`save`], into a buffer that may be used again. What it held is removed.
pub fn save_to<S: State>(state: &S, out: &mut Vec<u8>) {
    save_marked(state, 0, out);
}

/// As [`save_to`], with a number that [`load_marked`] returns: what the writer must remember beside
/// the state.
pub fn save_marked<S: State>(state: &S, mark: u64, out: &mut Vec<u8>) {
    let layout = Layout::of::<S>();
    out.clear();
    out.extend_from_slice(&[0; BODY_AT]);
    out.extend_from_slice(&layout.schema);
    state.write_save(out);
    header::finish(out, &layout, mark);
}

/// Reads what [`save`] wrote.
///
/// The save may be of an older build, if the schema of `S` is compatible with it: `S` may have more
/// fields, which get the default of their type, and its enums more variants. Who sees a field, how it is masked and
/// quantized has no influence.
///
/// # Errors
/// If the bytes are not a whole, undamaged save of an `S`. The error says what is wrong, and where.
pub fn load<S: State>(bytes: &[u8]) -> Result<S, LoadError> {
    load_marked(bytes).map(|(state, _)| state)
}

/// As [`load`], with the number that [`save_marked`] was given; 0 from [`save`].
///
/// # Errors
/// As [`load`].
pub fn load_marked<S: State>(bytes: &[u8]) -> Result<(S, u64), LoadError> {
    let header = Header::read(bytes)?;
    body(bytes, &header).map(|state| (state, header.mark))
}

fn body<S: State>(bytes: &[u8], header: &Header) -> Result<S, LoadError> {
    let layout = Layout::of::<S>();
    let body = header.body();
    if header.fingerprint == layout.fingerprint && bytes[header.schema()] == layout.schema[..] {
        let mut reader = Reader::new(&bytes[..body.end]);
        reader.take(body.start).map_err(LoadError::of)?;
        return whole(&mut reader).map_err(|error| {
            let place = skim::place(&layout.shape.schema(), bytes, body.clone(), error.offset());
            LoadError::Invalid { place, error }
        });
    }
    let stored = layout::read(bytes, header.schema()).map_err(LoadError::of)?;
    if stored.name != layout.name {
        return Err(LoadError::OtherType { saved: stored.name, wanted: layout.name.into() });
    }
    turn::check(&stored.of, &layout.shape)?;
    let turned = turn::turned(&stored.of, &layout.shape, bytes, body.clone());
    let turned = turned.map_err(|error| {
        let place = skim::place(&stored.of, bytes, body, error.offset());
        LoadError::Invalid { place, error }
    })?;
    // What is wrong in the converted bytes is wrong in the save too, at a byte that is not known.
    whole(&mut Reader::new(&turned)).map_err(|error| {
        let place = skim::place(&layout.shape.schema(), &turned, 0..turned.len(), error.offset());
        LoadError::Invalid { place, error: error.without_offset() }
    })
}

fn whole<S: State>(reader: &mut Reader<'_>) -> Result<S, DecodeError> {
    let state = S::read_save(reader)?;
    reader.clone().finish()?;
    Ok(state)
}
