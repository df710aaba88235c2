//! The thread on which all connections of the process live.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::Notify;

use crate::failure::{Failure, Outcome, PfCode};
use crate::tasks::later;

struct Running {
    handle: Handle,
    stop: Arc<Notify>,
    thread: JoinHandle<()>,
}

static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

/// As `RUNNING`, for a process that was forked, in which the lock may be held for ever.
static IS_RUNNING: AtomicBool = AtomicBool::new(false);

/// This process was forked from one with the library's thread, which it does not have.
static IS_FORKED: AtomicBool = AtomicBool::new(false);

/// Whether nothing of the library works, as this process was forked from one that used it.
pub(crate) fn is_forked() -> bool {
    IS_FORKED.load(Ordering::Relaxed)
}

#[cfg(unix)]
fn watch_forks() -> std::io::Result<()> {
    type Handler = Option<unsafe extern "C" fn()>;
    unsafe extern "C" {
        /// POSIX.1-2001.
        fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> i32;
    }
    unsafe extern "C" fn forked() {
        if IS_RUNNING.load(Ordering::Relaxed) {
            IS_FORKED.store(true, Ordering::Relaxed);
        }
    }
    static IS_WATCHED: AtomicBool = AtomicBool::new(false);
    if IS_WATCHED.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    // SAFETY: `forked` only uses atomics, and so is safe where a signal handler is.
    match unsafe { pthread_atfork(None, None, Some(forked)) } {
        0 => Ok(()),
        error => Err(std::io::Error::from_raw_os_error(error)),
    }
}

#[cfg(not(unix))]
fn watch_forks() -> std::io::Result<()> {
    Ok(())
}

/// The runtime of the thread, which is started if there is none.
pub(crate) fn handle() -> Outcome<Handle> {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(running) = &*running {
        return Ok(running.handle.clone());
    }
    let failed = |error: std::io::Error| {
        Failure::new(PfCode::Failed, format!("the library's thread can't be started: {error}"))
    };
    watch_forks().map_err(failed)?;
    let runtime = Builder::new_current_thread()
        .enable_all()
        .on_thread_park(later::flush)
        .build()
        .map_err(failed)?;
    let handle = runtime.handle().clone();
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    let thread = thread::Builder::new()
        .name("playfield".into())
        .spawn(move || {
            later::begin();
            runtime.block_on(stopped.notified());
            runtime.shutdown_timeout(Duration::from_millis(100));
            later::flush();
        })
        .map_err(failed)?;
    *running = Some(Running { handle: handle.clone(), stop, thread });
    IS_RUNNING.store(true, Ordering::Relaxed);
    Ok(handle)
}

/// Stops the thread, and waits for its end.
pub(crate) fn shut_down() {
    let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(Running { stop, thread, .. }) = running {
        stop.notify_one();
        // An error means that it panicked: it has ended in any case.
        let _ = thread.join();
        IS_RUNNING.store(false, Ordering::Relaxed);
    }
}
