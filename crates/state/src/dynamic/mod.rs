//! The client's side of `packed`, read by a schema that is known only at run time.

mod exchange;

use std::sync::Arc;

use playfield_wire::DecodeError;
use playfield_wire::schema::Type;
use serde_json::Value;

use crate::change::compare;
use crate::profile::Tally;
use crate::walk::{Made, Shape, ShapeError, Walk};
use crate::{Change, PlayerId};

pub use exchange::JsonExchange;

/// A client's copy of a room's state as a JSON tree. Bodies in `packed`, read by the state's
/// schema, keep it up to date.
///
/// It holds what a [`JsonMirror`](crate::JsonMirror) holds: only what the player may see.
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
    copy: Option<Made>,
    /// A patch could not be applied, and the copy was dropped.
    broken: bool,
}

impl DynamicMirror {
    /// Creates an empty copy (`null`) of a state of this type, for this player.
    ///
    /// # Errors
    /// If no state can have this type.
    pub fn new(of: &Type, viewer: PlayerId) -> Result<Self, ShapeError> {
        Ok(Self { shape: Arc::new(Shape::root(of)?), viewer, copy: None, broken: false })
    }

    /// The copy.
    pub fn state(&self) -> &Value {
        self.copy.as_ref().map_or(&Value::Null, |copy| &copy.value)
    }

    /// The copy's digest. It equals the server's if the copy is right. 0 before the first snapshot.
    pub fn digest(&self) -> u64 {
        self.copy.as_ref().map_or(0, |copy| self.shape.digest(&copy.node))
    }

    /// Replaces the copy by a snapshot.
    ///
    /// # Errors
    /// If the body doesn't match this state's schema. The copy is unchanged.
    pub fn snapshot(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        self.replace(body, None)
    }

    /// Reads a snapshot like [`snapshot`](Self::snapshot), and reports how it differs from the copy
    /// that it replaces. The first snapshot reports nothing, nor does the first after a rejected
    /// patch.
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

    /// Applies a patch. The caller ensures that it starts at the copy's version.
    ///
    /// # Errors
    /// If the body doesn't match this state's schema or this copy. The copy is then dropped, and
    /// patches are rejected until the next snapshot.
    pub fn patch(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        self.apply(body, None)
    }

    /// Applies a patch like [`patch`](Self::patch), and reports what changed, place by place.
    ///
    /// # Errors
    /// As [`patch`](Self::patch). More may have changed than was reported before the error.
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
        self.put(Walk::new(body, self.viewer, None), tell)
    }

    fn put(
        &mut self,
        walk: Walk<'_>,
        tell: Option<&mut dyn FnMut(Change)>,
    ) -> Result<(), DecodeError> {
        let made = walk.snapshot(&self.shape)?;
        let before = self.copy.replace(made);
        let known = before.filter(|_| !self.broken);
        self.broken = false;
        if let (Some(before), Some(tell)) = (known, tell) {
            compare(Some(&self.shape), &before.value, self.state(), &mut Vec::new(), tell);
        }
        Ok(())
    }

    fn apply<'a>(
        &mut self,
        body: &'a [u8],
        tell: Option<&'a mut dyn FnMut(Change)>,
    ) -> Result<(), DecodeError> {
        self.change(Walk::new(body, self.viewer, tell))
    }

    fn change(&mut self, walk: Walk<'_>) -> Result<(), DecodeError> {
        if self.broken {
            return Err(DecodeError::other(
                "an earlier patch could not be applied: a snapshot is needed",
            ));
        }
        let Some(mut made) = self.copy.take() else {
            return Err(DecodeError::other("a patch was received before the first snapshot"));
        };
        let read = walk.apply(&self.shape, &mut made);
        // The changes of a rejected body can't be undone, so the copy is dropped.
        self.broken = read.is_err();
        self.copy = (!self.broken).then_some(made);
        read
    }

    /// An empty copy that converts its bodies to the shape's target schema.
    pub(crate) fn turning(shape: Arc<Shape>, viewer: PlayerId) -> Self {
        Self { shape, viewer, copy: None, broken: false }
    }

    /// Reads a snapshot like [`snapshot`](Self::snapshot), and appends the converted body.
    pub(crate) fn turn_snapshot(
        &mut self,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), DecodeError> {
        self.put(Walk::new(body, self.viewer, None).turning(body, out), None)
    }

    /// Applies a patch like [`patch`](Self::patch), and appends the converted body.
    pub(crate) fn turn_patch(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        self.change(Walk::new(body, self.viewer, None).turning(body, out))
    }

    /// An empty copy of the same state for another player.
    pub(crate) fn for_viewer(&self, viewer: PlayerId) -> Self {
        Self::turning(Arc::clone(&self.shape), viewer)
    }

    /// Reads a snapshot like [`snapshot`](Self::snapshot), and counts the bytes by field.
    pub(crate) fn count_snapshot(
        &mut self,
        body: &[u8],
        tally: Tally<'_>,
    ) -> Result<(), DecodeError> {
        self.put(Walk::new(body, self.viewer, None).counting(tally), None)
    }

    /// Applies a patch like [`patch`](Self::patch), and counts the bytes by field.
    pub(crate) fn count_patch(&mut self, body: &[u8], tally: Tally<'_>) -> Result<(), DecodeError> {
        self.change(Walk::new(body, self.viewer, None).counting(tally))
    }
}
