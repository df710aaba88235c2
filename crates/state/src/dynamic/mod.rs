//! The client's end of `packed`, by a schema that is known only at run time.
//!
//! ```text
//!  schema::Type ──▶ shape ─┐
//!                   body ──┴──▶ state (JSON) and, beside it, nodes: the slots of maps, the digests of leaves
//! ```

mod columns;
mod exchange;
mod map;
mod node;
mod plain;
mod read;
mod shape;
mod whole;

use std::sync::Arc;

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;
use playfield_wire::schema::Type;
use serde_json::Value;

use crate::change::{Watch, compare};
use crate::{Change, Part, PlayerId};
use node::Made;
use read::Reading;

pub use exchange::JsonExchange;
pub(crate) use shape::Shape;
pub use shape::{ShapeError, explicit_default_digest};

/// How many places a body may leave to be made without saying anything of them: so many, and so
/// many more for each of its bytes.
const UNSAID_MIN: usize = 1 << 16;
const UNSAID_PER_BYTE: usize = 16;

/// A client's copy of a room's state as a JSON tree, kept in step by bodies in `packed`, which it
/// reads by the state's schema.
///
/// It holds what a [`JsonMirror`](crate::JsonMirror) holds: what the player may not see is not
/// there.
///
/// ```
/// use playfield_state::{DynamicMirror, Format, Map, PlayerId, State, Tracker, Tracking};
/// use serde_json::json;
///
/// #[derive(State, Default)]
/// struct Table {
///     seats: Map<PlayerId, u8>,
/// }
///
/// let ann = PlayerId(1);
/// let mut table = Table::default();
/// let mut tracker = Tracker::new(&mut table, Tracking::On);
/// table.seats.insert(ann, 7);
/// tracker.sync(&mut table);
/// let mut body = Vec::new();
/// tracker.snapshot(ann, Format::Packed, &mut body);
///
/// let mut mirror = DynamicMirror::new(&Table::schema(), ann)?;
/// mirror.snapshot(&body)?;
/// assert_eq!(*mirror.state(), json!({"seats": {"1": 7}}));
/// assert_eq!(mirror.digest(), tracker.digest(ann, Format::Packed));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct DynamicMirror {
    shape: Arc<Shape>,
    viewer: PlayerId,
    copy: Option<Copy>,
    /// A patch could not be applied: what it had changed is thrown away.
    broken: bool,
}

#[derive(Clone, Debug)]
struct Copy {
    value: Value,
    node: node::Node,
}

impl DynamicMirror {
    /// A copy of nothing yet (`null`), of a state of this type, for this player.
    ///
    /// # Errors
    /// A type that no state has.
    pub fn new(of: &Type, viewer: PlayerId) -> Result<Self, ShapeError> {
        Ok(Self { shape: Arc::new(Shape::root(of)?), viewer, copy: None, broken: false })
    }

    /// The copy.
    pub fn state(&self) -> &Value {
        self.copy.as_ref().map_or(&Value::Null, |copy| &copy.value)
    }

    /// A number that is the server's own for this copy, if the copy is right; 0 before the first
    /// snapshot.
    pub fn digest(&self) -> u64 {
        self.copy.as_ref().map_or(0, |copy| self.shape.digest(&copy.node))
    }

    /// Replaces the copy by a snapshot.
    ///
    /// # Errors
    /// A body that isn't one of this state's; the copy is as before.
    pub fn snapshot(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        self.replace(body, None)
    }

    /// As [`snapshot`](Self::snapshot), and tells what is different from the copy that it replaces.
    /// The first one tells nothing, nor does one that comes after a patch was refused.
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot).
    pub fn snapshot_with(
        &mut self,
        body: &[u8],
        mut tell: impl FnMut(Change),
    ) -> Result<(), DecodeError> {
        self.replace(body, Some(&mut tell))
    }

    /// Takes the copy to the patch's version. That the patch begins at the copy's version is the
    /// caller's to see to.
    ///
    /// # Errors
    /// A body that isn't one of this state's, or doesn't fit this copy. There is then no copy any
    /// more, and no further patch is taken: only a snapshot mends it.
    pub fn patch(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        self.apply(body, None)
    }

    /// As [`patch`](Self::patch), and tells what changed, place by place.
    ///
    /// # Errors
    /// As [`patch`](Self::patch). What was told before the error is not all that may be different.
    pub fn patch_with(
        &mut self,
        body: &[u8],
        mut tell: impl FnMut(Change),
    ) -> Result<(), DecodeError> {
        self.apply(body, Some(&mut tell))
    }

    fn replace(
        &mut self,
        body: &[u8],
        tell: Option<&mut dyn FnMut(Change)>,
    ) -> Result<(), DecodeError> {
        let shape = Arc::clone(&self.shape);
        let mut reading = self.reading(body, None);
        let mut made = reading.whole(&shape, Part::Shared)?;
        read_own(&mut reading, &shape, &mut made)?;
        reading.reader.finish()?;
        let before = self.copy.replace(Copy { value: made.value, node: made.node });
        let known = before.filter(|_| !self.broken);
        self.broken = false;
        if let (Some(before), Some(tell)) = (known, tell) {
            compare(Some(&shape), &before.value, self.state(), &mut Vec::new(), tell);
        }
        Ok(())
    }

    fn apply(
        &mut self,
        body: &[u8],
        tell: Option<&mut dyn FnMut(Change)>,
    ) -> Result<(), DecodeError> {
        if self.broken {
            return Err(DecodeError::other(
                "a patch before it could not be applied: a snapshot is needed",
            ));
        }
        let Some(Copy { value, node }) = self.copy.take() else {
            return Err(DecodeError::other("a patch came before the first snapshot"));
        };
        let shape = Arc::clone(&self.shape);
        let mut made = Made { value, node };
        let mut reading = self.reading(body, tell);
        let read = (|| {
            reading.patch(&shape, made.target(), Part::Shared)?;
            read_own(&mut reading, &shape, &mut made)?;
            reading.reader.finish()
        })();
        // What a body had changed before it was refused can't be taken back: there is no copy any
        // more.
        self.broken = read.is_err();
        self.copy = (!self.broken).then_some(Copy { value: made.value, node: made.node });
        read
    }

    fn reading<'a, 'b>(
        &self,
        body: &'b [u8],
        tell: Option<&'a mut dyn FnMut(Change)>,
    ) -> Reading<'a, 'b> {
        Reading {
            reader: Reader::new(body),
            viewer: self.viewer,
            owner: None,
            watch: Watch::new(tell),
            unsaid_left: UNSAID_MIN + UNSAID_PER_BYTE * body.len(),
        }
    }
}

/// The second part of a body is there if bytes are left.
fn read_own(
    reading: &mut Reading<'_, '_>,
    shape: &Shape,
    made: &mut Made,
) -> Result<(), DecodeError> {
    if reading.reader.is_empty() {
        return Ok(());
    }
    reading.patch(shape, made.target(), Part::Owned)
}
