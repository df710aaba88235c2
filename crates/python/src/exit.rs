//! Calls into Python while the interpreter exits, and after a fork.
//!
//! At its exit, an interpreter before 3.14 ends a daemon thread by unwinding its stack wherever the
//! thread next takes the interpreter's lock. Where Rust has called Python, that unwinds Rust's
//! frames too, and aborts the process. So such calls are counted: the exit waits for those under
//! way, and raises `SystemExit` in those that take long. From then on another thread gets
//! `SystemExit` from each call, which ends it quietly.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use pyo3::exceptions::PySystemExit;
use pyo3::prelude::*;

/// The time that the exit waits for calls under way before it interrupts them. Those of this
/// package take microseconds; a program's iterator, or a task that a message has woken, may take
/// longer.
const QUIET_WAIT: Duration = Duration::from_millis(100);

/// The time that the exit then waits for those that it has interrupted. One that waits in C code,
/// such as `time.sleep`, notices it only afterwards.
const EXIT_WAIT: Duration = Duration::from_secs(1);

static EXITING: AtomicBool = AtomicBool::new(false);
static EXIT: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// The threads that have called Python.
static CALLERS: Mutex<Vec<Weak<Caller>>> = Mutex::new(Vec::new());

/// A thread that calls Python.
struct Caller {
    /// Python's number of the thread.
    ident: Option<u64>,
    /// The number of calls under way, one inside the other.
    calls: AtomicUsize,
}

impl Caller {
    fn register() -> Arc<Self> {
        let ident = Python::attach(|py| {
            let ident = py.import("threading")?.call_method0("get_ident")?;
            ident.extract::<u64>()
        });
        let caller = Arc::new(Self { ident: ident.ok(), calls: AtomicUsize::new(0) });
        let mut callers = CALLERS.lock().unwrap_or_else(PoisonError::into_inner);
        callers.retain(|caller| caller.strong_count() > 0);
        callers.push(Arc::downgrade(&caller));
        caller
    }
}

thread_local! {
    /// This thread carries out the exit.
    static EXITS: Cell<bool> = const { Cell::new(false) };
    static CALLER: Arc<Caller> = Caller::register();
}

/// Carries out a call into Python, which may run code of Python or let go of the interpreter.
///
/// # Errors
/// `SystemExit` if the interpreter exits in another thread; else as `run`.
pub(crate) fn call<R>(run: impl FnOnce() -> PyResult<R>) -> PyResult<R> {
    struct Leave<'a>(&'a Caller);
    impl Drop for Leave<'_> {
        fn drop(&mut self) {
            // A fork may have begun to count again.
            let less = |calls: usize| Some(calls.saturating_sub(1));
            let _ = self.0.calls.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
            if EXITING.load(Ordering::SeqCst) {
                let (turn, done) = &EXIT;
                drop(turn.lock());
                done.notify_all();
            }
        }
    }
    CALLER.with(|caller| {
        caller.calls.fetch_add(1, Ordering::SeqCst);
        let _leave = Leave(caller);
        check()?;
        run()
    })
}

/// Ends a thread that outlives the program.
///
/// # Errors
/// `SystemExit` if the interpreter exits in another thread.
pub(crate) fn check() -> PyResult<()> {
    if EXITING.load(Ordering::SeqCst) && !EXITS.get() {
        return Err(PySystemExit::new_err(()));
    }
    Ok(())
}

/// Returns the number of forks between the first process and this one.
pub(crate) fn forks() -> usize {
    FORKS.load(Ordering::Relaxed)
}

/// The threads that are inside a call.
fn under_way() -> Vec<Arc<Caller>> {
    let callers = CALLERS.lock().unwrap_or_else(PoisonError::into_inner);
    let callers = callers.iter().filter_map(Weak::upgrade);
    callers.filter(|caller| caller.calls.load(Ordering::SeqCst) > 0).collect()
}

/// Waits until no call is under way, for at most `limit`.
fn wait_for_calls(py: Python<'_>, limit: Duration) {
    py.detach(|| {
        let (turn, done) = &EXIT;
        let turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        drop(done.wait_timeout_while(turn, limit, |_: &mut ()| !under_way().is_empty()));
    });
}

/// Called by `atexit`.
#[pyfunction]
fn _exiting(py: Python<'_>) -> PyResult<()> {
    EXITS.set(true);
    EXITING.store(true, Ordering::SeqCst);
    wait_for_calls(py, QUIET_WAIT);
    let idents: Vec<_> = under_way().iter().filter_map(|caller| caller.ident).collect();
    if idents.is_empty() {
        return Ok(());
    }
    // An interpreter may be built without it; then the exit only waits.
    if let Ok(ctypes) = py.import("ctypes") {
        let raise = ctypes.getattr("pythonapi")?.getattr("PyThreadState_SetAsyncExc")?;
        let exit = ctypes.call_method1("py_object", (py.get_type::<PySystemExit>(),))?;
        for ident in idents {
            raise.call1((ctypes.call_method1("c_ulong", (ident,))?, &exit))?;
        }
    }
    wait_for_calls(py, EXIT_WAIT);
    Ok(())
}

/// Called in the child of a fork, which has one thread.
#[pyfunction]
fn _forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    // A thread of the parent may have held it; then the exit waits for calls that are not there.
    let Ok(callers) = CALLERS.try_lock() else { return };
    for caller in callers.iter().filter_map(Weak::upgrade) {
        caller.calls.store(0, Ordering::SeqCst);
    }
}

/// Has the interpreter call the two.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let exiting = wrap_pyfunction!(_exiting, module)?;
    py.import("atexit")?.call_method1("register", (exiting,))?;
    let named = pyo3::types::PyDict::new(py);
    named.set_item("after_in_child", wrap_pyfunction!(_forked, module)?)?;
    py.import("os")?.call_method("register_at_fork", (), Some(&named))?;
    Ok(())
}
