//! The awaitables that `recv` and `send` return.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyStopIteration, PyTimeoutError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyType};

use crate::AsyncConnection;
use crate::async_connection::Next;
use crate::exit;

/// The part of a message that a receiver wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Message,
    /// The first fragment of a message.
    Fragment,
    /// Another fragment of the same message.
    Rest,
}

/// Awaits one message of a connection, or a fragment of one.
///
/// The message leaves the queue only when the task that awaits takes it, so a canceled task loses
/// none.
#[pyclass(frozen, module = "playfield._playfield")]
#[derive(Debug)]
pub struct Receive {
    connection: Py<AsyncConnection>,
    decode: Option<bool>,
    wanted: Wanted,
    /// The wakeup that the task waits for, since it found no message.
    wakeup: Mutex<Option<Py<Wakeup>>>,
}

impl Receive {
    pub(crate) fn new(
        connection: Py<AsyncConnection>,
        decode: Option<bool>,
        wanted: Wanted,
    ) -> Self {
        Self { connection, decode, wanted, wakeup: Mutex::new(None) }
    }

    fn wakeup(&self, py: Python<'_>) -> MutexGuard<'_, Option<Py<Wakeup>>> {
        self.wakeup.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Receive {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.connection)?;
        let Ok(wakeup) = self.wakeup.try_lock() else { return Ok(()) };
        visit.call(&*wakeup)
    }

    fn __clear__(&self) {
        let wakeup = self.wakeup.try_lock().ok().and_then(|mut wakeup| wakeup.take());
        drop(wakeup);
    }

    fn __await__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(slf: &Bound<'_, Self>) -> PyResult<Py<Wakeup>> {
        let py = slf.py();
        let this = slf.get();
        let own = this.wakeup(py).take();
        let connection = this.connection.bind(py);
        match AsyncConnection::next(connection, own, this.decode, this.wanted)? {
            Next::Message(message) => Err(PyStopIteration::new_err((message.unbind(),))),
            Next::Wait(wakeup) => {
                *this.wakeup(py) = Some(wakeup.clone_ref(py));
                Ok(wakeup)
            }
        }
    }

    fn send(slf: &Bound<'_, Self>, _value: Py<PyAny>) -> PyResult<Py<Wakeup>> {
        Self::__next__(slf)
    }

    #[pyo3(signature = (kind, value=None, traceback=None))]
    fn throw(
        slf: &Bound<'_, Self>,
        kind: Bound<'_, PyAny>,
        value: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let _ = traceback;
        Self::close(slf);
        Err(thrown(kind, value)?)
    }

    /// Ends the wait with ``TimeoutError``, unless there is a message.
    fn expire(slf: &Bound<'_, Self>) -> PyResult<()> {
        let wakeup = slf.get().wakeup(slf.py()).as_ref().map(|wakeup| wakeup.clone_ref(slf.py()));
        match wakeup {
            Some(wakeup) => Wakeup::give_up(wakeup.bind(slf.py()), End::Expired).map(drop),
            None => Ok(()),
        }
    }

    fn close(slf: &Bound<'_, Self>) {
        let this = slf.get();
        let wakeup = this.wakeup(slf.py()).take();
        if let Some(wakeup) = wakeup {
            this.connection.get().forget(wakeup.bind(slf.py()));
        }
    }
}

/// The error that is thrown into a coroutine.
fn thrown(kind: Bound<'_, PyAny>, value: Option<Bound<'_, PyAny>>) -> PyResult<PyErr> {
    let error = match value {
        Some(value) if !value.is_none() => value,
        _ if kind.is_instance_of::<PyType>() => kind.call0()?,
        _ => kind,
    };
    Ok(PyErr::from_value(error))
}

/// The object that a task waits for when it awaits a [`Receive`]: the methods of a future that
/// `asyncio` calls. The connection's reader runs the task at once, without a turn of the loop
/// between.
#[pyclass(frozen, module = "playfield._playfield")]
#[derive(Debug)]
pub struct Wakeup {
    connection: Py<AsyncConnection>,
    blocking: AtomicBool,
    waiting: Mutex<Waiting>,
}

/// Whom to call, and in which context.
type Callback = (Py<PyAny>, Option<Py<PyAny>>);

#[derive(Debug, Default)]
struct Waiting {
    callback: Option<Callback>,
    end: Option<End>,
}

/// The end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Woken,
    Canceled,
    Expired,
}

impl Wakeup {
    pub(crate) fn new(connection: Py<AsyncConnection>) -> Self {
        Self { connection, blocking: AtomicBool::new(true), waiting: Mutex::default() }
    }

    /// Runs the task that waits. Called by the reader, when no task runs on its loop.
    pub(crate) fn wake(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        let Some((callback, context)) = slf.get().complete(py, End::Woken) else { return Ok(()) };
        exit::call(|| match context {
            Some(context) => context.call_method1(py, intern!(py, "run"), (callback, slf)),
            None => callback.call1(py, (slf,)),
        })?;
        Ok(())
    }

    /// Works like [`wake`](Self::wake), in a later turn of the loop: a task may be running.
    pub(crate) fn wake_later(slf: &Bound<'_, Self>) -> PyResult<()> {
        match slf.get().complete(slf.py(), End::Woken) {
            Some(callback) => Self::schedule(slf, callback),
            None => Ok(()),
        }
    }

    pub(crate) fn is_done(&self, py: Python<'_>) -> bool {
        self.waiting(py).end.is_some()
    }

    /// Marks it done, and returns whom to call.
    fn complete(&self, py: Python<'_>, end: End) -> Option<Callback> {
        let mut waiting = self.waiting(py);
        waiting.end = Some(end);
        waiting.callback.take()
    }

    /// Ends the wait without a message. Returns whether it had not ended yet.
    fn give_up(slf: &Bound<'_, Self>, end: End) -> PyResult<bool> {
        let this = slf.get();
        if this.is_done(slf.py()) {
            return Ok(false);
        }
        this.connection.get().forget(slf);
        if let Some(callback) = this.complete(slf.py(), end) {
            Self::schedule(slf, callback)?;
        }
        Ok(true)
    }

    fn waiting(&self, py: Python<'_>) -> MutexGuard<'_, Waiting> {
        self.waiting.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the loop call back in a later turn.
    fn schedule(slf: &Bound<'_, Self>, (callback, context): Callback) -> PyResult<()> {
        let py = slf.py();
        let named = PyDict::new(py);
        named.set_item(intern!(py, "context"), context)?;
        let event_loop = slf.get().connection.get().event_loop(py);
        let name = intern!(py, "call_soon");
        exit::call(|| event_loop.call_method(name, (callback, slf), Some(&named)))?;
        Ok(())
    }
}

#[pymethods]
impl Wakeup {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.connection)?;
        let Ok(waiting) = self.waiting.try_lock() else { return Ok(()) };
        let Some((callback, context)) = &waiting.callback else { return Ok(()) };
        visit.call(callback)?;
        visit.call(context)
    }

    fn __clear__(&self) {
        let callback = self.waiting.try_lock().ok().and_then(|mut waiting| waiting.callback.take());
        drop(callback);
    }

    #[getter(_asyncio_future_blocking)]
    fn blocking(&self) -> bool {
        self.blocking.load(Ordering::Relaxed)
    }

    #[setter(_asyncio_future_blocking)]
    fn set_blocking(&self, blocking: bool) {
        self.blocking.store(blocking, Ordering::Relaxed);
    }

    fn get_loop<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.connection.get().event_loop(py).clone()
    }

    #[pyo3(signature = (callback, *, context=None))]
    fn add_done_callback(
        slf: &Bound<'_, Self>,
        callback: Py<PyAny>,
        context: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let mut waiting = slf.get().waiting(slf.py());
        if waiting.end.is_some() {
            drop(waiting);
            return Self::schedule(slf, (callback, context));
        }
        waiting.callback = Some((callback, context));
        Ok(())
    }

    fn remove_done_callback(&self, py: Python<'_>, callback: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut waiting = self.waiting(py);
        let removed = match &waiting.callback {
            Some((own, _)) if own.bind(py).eq(callback)? => waiting.callback.take(),
            _ => None,
        };
        drop(waiting);
        Ok(usize::from(removed.is_some()))
    }

    #[pyo3(signature = (msg=None))]
    fn cancel(slf: &Bound<'_, Self>, msg: Option<Py<PyAny>>) -> PyResult<bool> {
        let _ = msg;
        Self::give_up(slf, End::Canceled)
    }

    fn done(&self, py: Python<'_>) -> bool {
        self.is_done(py)
    }

    fn cancelled(&self, py: Python<'_>) -> bool {
        self.waiting(py).end == Some(End::Canceled)
    }

    fn result(&self, py: Python<'_>) -> PyResult<()> {
        let end = self.waiting(py).end;
        match end {
            Some(End::Canceled) => {
                let asyncio = py.import("asyncio")?;
                Err(PyErr::from_value(asyncio.getattr("CancelledError")?.call0()?))
            }
            Some(End::Expired) => Err(PyTimeoutError::new_err("no message came in time")),
            Some(End::Woken) | None => Ok(()),
        }
    }

    fn exception(&self, py: Python<'_>) -> PyResult<()> {
        self.result(py)
    }
}

/// The result of `send` when there is nothing to wait for.
#[pyclass(frozen, module = "playfield._playfield")]
#[derive(Debug)]
pub struct Done {}

#[pymethods]
#[expect(clippy::unused_self, reason = "methods of a coroutine")]
impl Done {
    fn __await__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self) -> Option<Py<PyAny>> {
        None
    }

    fn send(&self, _value: Py<PyAny>) -> PyResult<Py<PyAny>> {
        Err(PyStopIteration::new_err(()))
    }

    #[pyo3(signature = (kind, value=None, traceback=None))]
    fn throw(
        &self,
        kind: Bound<'_, PyAny>,
        value: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let _ = traceback;
        Err(thrown(kind, value)?)
    }

    fn close(&self) {}
}
