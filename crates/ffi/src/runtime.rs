//! The thread on which all connections of the process live.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::Notify;

use crate::failure::{Failure, Outcome, PfCode};

struct Running {
    handle: Handle,
    stop: Arc<Notify>,
    thread: JoinHandle<()>,
}

static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

/// The runtime of the thread, which is started if there is none.
pub(crate) fn handle() -> Outcome<Handle> {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(running) = &*running {
        return Ok(running.handle.clone());
    }
    let failed = |error: std::io::Error| {
        Failure::new(PfCode::Failed, format!("the library's thread can't be started: {error}"))
    };
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let handle = runtime.handle().clone();
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    let thread = thread::Builder::new()
        .name("playfield".into())
        .spawn(move || {
            runtime.block_on(stopped.notified());
            runtime.shutdown_timeout(Duration::from_millis(100));
        })
        .map_err(failed)?;
    *running = Some(Running { handle: handle.clone(), stop, thread });
    Ok(handle)
}

/// Stops the thread, and waits for its end.
pub(crate) fn shut_down() {
    let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(Running { stop, thread, .. }) = running {
        stop.notify_one();
        // An error means that it panicked: it has ended in any case.
        let _ = thread.join();
    }
}
