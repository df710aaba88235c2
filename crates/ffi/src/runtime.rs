//! The thread on which all connections of the process live.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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
    /// How many clients use it.
    used: Arc<AtomicUsize>,
}

/// A client uses the thread until this is dropped.
pub(crate) struct Use {
    handle: Handle,
    used: Arc<AtomicUsize>,
}

impl Use {
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Running {
    fn used(&self) -> Use {
        self.used.fetch_add(1, Ordering::Relaxed);
        Use { handle: self.handle.clone(), used: Arc::clone(&self.used) }
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.used.fetch_sub(1, Ordering::Release);
    }
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

/// Has a client use the thread, which is started if there is none.
pub(crate) fn begin() -> Outcome<Use> {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(running) = &*running {
        return Ok(running.used());
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
    let begun = running.insert(Running { handle, stop, thread, used: Arc::default() });
    IS_RUNNING.store(true, Ordering::Relaxed);
    Ok(begun.used())
}

/// Stops the thread, and waits for its end, unless clients use it.
pub(crate) fn shut_down() -> Outcome {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    let clients = running.as_ref().map_or(0, |running| running.used.load(Ordering::Acquire));
    if clients > 0 {
        let text = match clients {
            1 => "1 client that has connected is not freed: free it first".to_owned(),
            _ => format!("{clients} clients that have connected are not freed: free them first"),
        };
        return Err(Failure::new(PfCode::Usage, text));
    }
    let taken = running.take();
    drop(running);
    if let Some(Running { stop, thread, .. }) = taken {
        stop.notify_one();
        // An error means that it panicked: it has ended in any case.
        let _ = thread.join();
        IS_RUNNING.store(false, Ordering::Relaxed);
    }
    Ok(())
}
