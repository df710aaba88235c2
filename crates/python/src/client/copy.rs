//! Copies of rooms' states, and the schemas by which they, messages and events are read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use playfield_client::Mirror as _;
use playfield_client::session::{self, CommandError, Learned, Translation, Update, UpdateKind};
use playfield_state::{Change, DynamicMirror, Pattern, PlayerId, ShapeError};
use playfield_wire::schema::{RoomSchema, Type};
use playfield_wire::{DecodeError, RoomNumber};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyAny, PyTuple};
use serde_json::Value;

use super::check;
use super::values::{Shape, object, step};
use super::{mismatch, refused};

/// The most bytes of updates that wait for the schema. Past it they are dropped, and a snapshot is
/// needed.
const HELD_BYTES_MAX: usize = 1 << 20;

/// The copy of a room's state, which the session keeps up to date, and the room's schema. It
/// outlives the stay in the room.
#[pyclass(frozen, module = "playfield._playfield")]
#[derive(Clone, Debug, Default)]
pub struct RoomCopy(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    /// Both are `None` while the schema is unknown. While objects of the state are made, the mirror
    /// is shared, and an update then goes to a copy of it.
    mirror: Option<Arc<DynamicMirror>>,
    learned: Option<Arc<Learned>>,
    /// 0 while there is no state.
    version: u64,
    /// Updates that wait for the schema, with their versions.
    held: Vec<(UpdateKind, u64, Vec<u8>)>,
    held_bytes: usize,
    /// The changes that are wanted.
    patterns: Vec<Pattern>,
    /// The changes of the last update.
    changes: Vec<Change>,
}

/// A change: the number of the pattern, the path, and the old and the new value.
type Changed<'py> = (usize, Bound<'py, PyTuple>, Bound<'py, PyAny>, Bound<'py, PyAny>);

#[pymethods]
impl RoomCopy {
    /// A copy that no session keeps.
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// The version; 0 while there is no state.
    #[getter]
    fn version(&self) -> u64 {
        self.lock().version
    }

    /// The state; `None` while there is none. Nothing is locked while its objects are made: that
    /// may collect garbage, and a finalizer may read the state.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (mirror, learned) = {
            let inner = self.lock();
            (inner.mirror.clone(), inner.learned.clone())
        };
        let Some(mirror) = mirror else { return Ok(None) };
        object(py, mirror.state(), learned.as_deref().map(state_shape)).map(Some)
    }

    /// The schema as JSON; `None` while it is unknown.
    #[getter]
    fn schema(&self) -> Option<String> {
        let learned = self.learned();
        learned.map(|learned| learned.schema.to_json())
    }

    /// Keeps the changes of places that match one of these patterns, from the next update on.
    fn watch(&self, patterns: Vec<String>) -> PyResult<()> {
        let patterns: Result<_, _> = patterns.iter().map(|pattern| pattern.parse()).collect();
        self.lock().patterns =
            patterns.map_err(|error| PyValueError::new_err(format!("{error}")))?;
        Ok(())
    }

    /// The changes of the last update.
    fn changes<'py>(&self, py: Python<'py>) -> PyResult<Vec<Changed<'py>>> {
        let (patterns, changes, learned) = {
            let inner = &mut *self.lock();
            let changes = std::mem::take(&mut inner.changes);
            (inner.patterns.clone(), changes, inner.learned.clone())
        };
        let mut found = Vec::new();
        for change in &changes {
            let (mut path, mut shape) = (Vec::new(), learned.as_deref().map(state_shape));
            for place in change.path.steps() {
                let (place, to) = step(py, place, shape)?;
                path.push(place);
                shape = to;
            }
            let path = PyTuple::new(py, path)?;
            let value = |value: &Option<Value>| match value {
                Some(value) => object(py, value, shape),
                None => Ok(py.None().into_bound(py)),
            };
            let (old, new) = (value(&change.old)?, value(&change.new)?);
            let matching = patterns.iter().enumerate().filter(|(_, of)| of.matches(&change.path));
            found.extend(
                matching.map(|(number, _)| (number, path.clone(), old.clone(), new.clone())),
            );
        }
        Ok(found)
    }

    /// The name of an event; `None` if the schema, or an event of this number, is unknown.
    fn event_name(&self, number: u32) -> Option<String> {
        self.learned()?.exchange.event_name(number).map(str::to_owned)
    }

    /// The payload of an event.
    fn event<'py>(
        &self,
        py: Python<'py>,
        number: u32,
        payload: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let learned = self.known()?;
        let (_, value) = learned.exchange.event(number, payload).map_err(unreadable)?;
        let shape = learned.schema.events.get(number as usize).map(|event| Shape::Of(&event.of));
        object(py, &value, shape)
    }

    /// The reply to a message.
    fn reply<'py>(
        &self,
        py: Python<'py>,
        message: &str,
        payload: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let learned = self.known()?;
        let messages = &learned.schema.messages;
        let Some(number) = messages.iter().position(|known| known.name == *message) else {
            return Err(PyValueError::new_err(format!("the room has no message {message:?}")));
        };
        let value = learned.exchange.reply(number as u32, payload).map_err(unreadable)?;
        object(py, &value, Some(Shape::Of(&messages[number].reply)))
    }
}

impl RoomCopy {
    /// A message as it is sent, of its JSON.
    pub(super) fn message(
        &self,
        py: Python<'_>,
        room: RoomNumber,
        name: &str,
        json: &[u8],
    ) -> PyResult<(u32, Vec<u8>)> {
        let learned = self.learned().ok_or_else(|| refused(CommandError::NotJoined { room }))?;
        check::message(&learned, name, json).map_err(|wrong| mismatch(py, wrong))
    }

    fn learned(&self) -> Option<Arc<Learned>> {
        self.lock().learned.clone()
    }

    fn known(&self) -> PyResult<Arc<Learned>> {
        self.learned().ok_or_else(|| PyValueError::new_err("the room's schema is unknown"))
    }

    /// Locks it. Another thread may have it while it waits for the interpreter, so this waits
    /// without that.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        Python::attach(|py| self.0.lock_py_attached(py)).unwrap_or_else(PoisonError::into_inner)
    }
}

fn unreadable(error: DecodeError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn state_shape(learned: &Learned) -> Shape<'_> {
    let RoomSchema { state, .. } = &*learned.schema;
    let of: &Type = state;
    Shape::Of(of)
}

impl session::RoomCopy for RoomCopy {
    fn apply(&mut self, update: &Update<'_>) -> Result<(), DecodeError> {
        self.lock().apply(update.kind, update.version, update.body)
    }

    fn digest_is(&mut self, digest: u64) -> bool {
        self.lock().mirror.as_ref().is_none_or(|mirror| mirror.digest() == digest)
    }

    fn translate(
        &mut self,
        translation: &Translation,
        player: PlayerId,
    ) -> Result<bool, ShapeError> {
        let inner = &mut *self.lock();
        if let Translation::Learned(learned) = translation {
            inner.mirror = Some(Arc::new(DynamicMirror::new(&learned.schema.state, player)?));
            inner.learned = Some(Arc::clone(learned));
        }
        let mut held = std::mem::take(&mut inner.held).into_iter();
        Ok(held.try_for_each(|(kind, version, body)| inner.apply(kind, version, &body)).is_err())
    }

    fn is_filled(&self) -> bool {
        self.lock().version > 0
    }

    fn check_options(&self, learned: &Learned, options: &[u8]) -> Result<(), DecodeError> {
        check::options(learned, options).map_err(DecodeError::other)
    }
}

impl Inner {
    fn apply(&mut self, kind: UpdateKind, version: u64, body: &[u8]) -> Result<(), DecodeError> {
        let Some(mirror) = &mut self.mirror else { return self.hold(kind, version, body) };
        let (patterns, changes) = (&self.patterns, &mut self.changes);
        changes.clear();
        let is_wanted = |change: &Change| patterns.iter().any(|of| of.matches(&change.path));
        let tell: &mut dyn FnMut(Change) =
            &mut |change| changes.extend(Some(change).filter(is_wanted));
        Arc::make_mut(mirror).apply(kind, body, (!patterns.is_empty()).then_some(tell))?;
        self.version = version;
        Ok(())
    }

    fn hold(&mut self, kind: UpdateKind, version: u64, body: &[u8]) -> Result<(), DecodeError> {
        if kind == UpdateKind::Snapshot {
            (self.held_bytes, self.held) = (0, Vec::new());
        }
        self.held_bytes += body.len();
        if kind == UpdateKind::Patch && self.held_bytes > HELD_BYTES_MAX {
            self.held = Vec::new();
            return Err(DecodeError::other("too many patches came before the schema"));
        }
        self.held.push((kind, version, body.to_vec()));
        Ok(())
    }
}
