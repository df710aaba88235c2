//! The library's thread: it serves the connections of programs that do not poll, and those that say
//! goodbye. It does nothing while programs poll.

use std::iter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use playfield_client::poll::{Buffers, Connection, Token, Waiter};

use crate::client::ClientCell;
use crate::failure::{Failure, Outcome, PfCode};

/// How often the thread looks.
const INTERVAL: Duration = Duration::from_millis(100);

/// How long the goodbyes of freed clients have when the thread is stopped.
const LAST: Duration = Duration::from_millis(100);

/// The connections of a client that was freed.
pub(crate) struct Farewell {
    pub(crate) connection: Box<Connection>,
    /// The connections to other nodes, and the tokens of their sockets.
    pub(crate) others: Vec<(Box<Connection>, Token)>,
    pub(crate) waiter: Waiter,
    pub(crate) buffers: Buffers,
}

#[derive(Default)]
struct Keeper {
    clients: Vec<Weak<ClientCell>>,
    farewells: Vec<Farewell>,
    thread: Option<JoinHandle<()>>,
    is_stopping: bool,
}

static KEEPER: Mutex<Option<Keeper>> = Mutex::new(None);
static WOKEN: Condvar = Condvar::new();

/// As `KEEPER`, for a process that was forked, in which the lock may be held for ever.
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

fn lock() -> MutexGuard<'static, Option<Keeper>> {
    KEEPER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has the thread look after a client that connects. It is started if there is none.
pub(crate) fn keep(client: &Arc<ClientCell>) -> Outcome {
    let mut guard = lock();
    let keeper = guard.get_or_insert_default();
    if keeper.thread.is_none() {
        let failed = |error: std::io::Error| {
            Failure::new(PfCode::Failed, format!("the library's thread can't be started: {error}"))
        };
        watch_forks().map_err(failed)?;
        let thread = thread::Builder::new().name("playfield".into());
        keeper.thread = Some(thread.spawn(run).map_err(failed)?);
        IS_RUNNING.store(true, Ordering::Relaxed);
    }
    keeper.clients.push(Arc::downgrade(client));
    Ok(())
}

/// Has the thread see a freed client's goodbye through.
pub(crate) fn see_off(farewell: Farewell) {
    if let Some(keeper) = &mut *lock() {
        keeper.farewells.push(farewell);
    }
}

/// Stops the thread, and waits for its end, unless clients use it.
pub(crate) fn shut_down() -> Outcome {
    let mut guard = lock();
    let Some(keeper) = &mut *guard else { return Ok(()) };
    forget_freed(&mut keeper.clients);
    let clients = keeper.clients.len();
    if clients > 0 {
        let text = match clients {
            1 => "1 client that has connected is not freed: free it first".to_owned(),
            _ => format!("{clients} clients that have connected are not freed: free them first"),
        };
        return Err(Failure::new(PfCode::Usage, text));
    }
    keeper.is_stopping = true;
    let thread = keeper.thread.take();
    WOKEN.notify_all();
    drop(guard);
    if let Some(thread) = thread {
        // An error means that it panicked: it has ended in any case.
        let _ = thread.join();
    }
    *lock() = None;
    IS_RUNNING.store(false, Ordering::Relaxed);
    Ok(())
}

fn forget_freed(clients: &mut Vec<Weak<ClientCell>>) {
    clients.retain(|client| client.upgrade().is_some_and(|client| !client.is_freed()));
}

fn run() {
    let mut farewells = Vec::new();
    let mut ends = None;
    loop {
        let mut guard = lock();
        let is_busy = !farewells.is_empty();
        // Goodbyes are answered soon.
        let interval = if is_busy { INTERVAL / 20 } else { INTERVAL };
        if guard.as_ref().is_some_and(|keeper| !keeper.is_stopping || is_busy) {
            let waited = WOKEN.wait_timeout(guard, interval);
            guard = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let Some(keeper) = &mut *guard else { return };
        farewells.append(&mut keeper.farewells);
        forget_freed(&mut keeper.clients);
        let clients: Vec<_> = keeper.clients.iter().filter_map(Weak::upgrade).collect();
        if keeper.is_stopping {
            let ends = *ends.get_or_insert_with(|| Instant::now() + LAST);
            if farewells.is_empty() || Instant::now() >= ends {
                return;
            }
        }
        drop(guard);
        for client in clients {
            client.keep_alive();
        }
        farewells.retain_mut(Farewell::goes_on);
    }
}

impl Farewell {
    /// Goes on as far as it can. Returns whether there is more to do.
    fn goes_on(&mut self) -> bool {
        let Ok(readiness) = self.waiter.wait(Some(Instant::now())) else { return false };
        let news = self.waiter.others();
        let first = (&mut self.connection, readiness);
        let others = self.others.iter_mut();
        let others =
            others.map(|(connection, token)| (connection, readiness.of_other(*token, &news)));
        for (connection, readiness) in iter::once(first).chain(others) {
            connection.pump(readiness, &mut self.buffers);
            while connection.poll_event().is_some() {}
            connection.settle(&mut self.buffers);
        }
        !self.is_over()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.connection.is_over() && self.others.iter().all(|(connection, _)| connection.is_over())
    }
}
