//! A client: its connection, its events and what it waits for.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use playfield_client::{Connection, ConnectionEvent, Error};
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinHandle};

use crate::channel::ChannelCell;
use crate::device::DeviceCell;
use crate::event::{Happening, PfEvent, PfEventKind};
use crate::failure::{Failure, Outcome, PfCode, call};
use crate::handle::{self, Object};
use crate::room::RoomCell;
use crate::runtime::{self, Use};
use crate::settings::Settings;
use crate::tasks::{Ready, Tasks};
use crate::text::{PfText, milliseconds, place};
use crate::turn::Turn;
use crate::value::{PfValue, Tree};

/// The most commands of a client that may wait for an answer, or for their place in the queue.
pub const PF_WAITING_MAX: usize = 65_536;

/// A client. Any thread may use it; `pf_client_next` is for one at a time.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PfClient {
    /// The handle; 0 is none.
    pub id: u64,
}

/// A room that a client is in.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PfRoom {
    /// The handle; 0 is none.
    pub id: u64,
}

/// A channel that a client subscribes to.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PfChannel {
    /// The handle; 0 is none.
    pub id: u64,
}

/// What a client is registered as.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PfDevice {
    /// The handle; 0 is none.
    pub id: u64,
}

/// What a client has done, and how its connection is.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PfStatistics {
    /// The shortest round trip of the last eight pings, in microseconds; 0 if unknown.
    pub round_trip_us: u64,
    /// The node's clock, in microseconds since it started; 0 if unknown.
    pub node_time_us: u64,
    /// Requests that were made, joins and the like among them.
    pub requests: u64,
    /// Requests that were answered.
    pub answers: u64,
    /// Messages that were sent without an answer.
    pub sends: u64,
    /// Events of rooms that arrived.
    pub events: u64,
    /// Updates of states that were applied.
    pub updates: u64,
    /// Publications that arrived.
    pub publications: u64,
    /// How often the connection was restored.
    pub reconnects: u64,
    /// Requests and sends that wait.
    pub waiting: u64,
    /// Rooms that the program holds.
    pub rooms: u64,
    /// Whether the connection is there: not lost, and not at its end.
    pub is_connected: bool,
}

/// Where a client is in its life.
pub(crate) enum Link {
    Setup(Box<Settings>),
    Connecting(AbortHandle),
    Open(Connection),
    Over,
}

type Begin = Box<dyn FnOnce(&mut Tasks) + Send>;

/// What the client and its tasks share.
pub(crate) struct Shared {
    pub(crate) ready: Arc<Ready>,
    pub(crate) link: Mutex<Link>,
    happened: Mutex<VecDeque<Happening>>,
    /// How many of these are answers to requests.
    answers: AtomicUsize,
    /// What is to be added to the tasks, which are locked while one of them runs.
    begun: Mutex<Vec<Begin>>,
    tokens: Mutex<HashMap<u64, oneshot::Sender<Vec<u8>>>>,
    /// The end of the connection, until all else is reported.
    ending: Mutex<Option<Happening>>,
    /// From `pf_client_connect` until the client is freed.
    use_of_runtime: Mutex<Option<Use>>,
    pub(crate) rooms: Mutex<HashMap<u64, Arc<RoomCell>>>,
    pub(crate) channels: Mutex<HashMap<u64, Arc<ChannelCell>>>,
    pub(crate) devices: Mutex<HashMap<u64, Arc<DeviceCell>>>,
    pub(crate) counts: Mutex<PfStatistics>,
    requests: AtomicU64,
    is_corked: AtomicBool,
    is_freed: AtomicBool,
}

/// A client in the table of handles.
pub(crate) struct ClientCell {
    pub(crate) shared: Arc<Shared>,
    pub(crate) tasks: Mutex<Tasks>,
    /// The event that `pf_client_next` returned last, which its pointers refer to, and its trees.
    current: Mutex<(Happening, [u64; 2])>,
    is_in_next: AtomicBool,
}

impl Object for ClientCell {
    const KIND: u8 = 1;
    const NAME: &'static str = "a client";
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Keeps an event for `pf_client_next`.
    pub(crate) fn happens(&self, happening: Happening) {
        lock(&self.happened).push_back(happening);
        self.ready.nudge();
    }

    /// Keeps events for `pf_client_next`, in this order, before all that wait.
    pub(crate) fn happen_next(&self, happenings: Vec<Happening>) {
        let mut happened = lock(&self.happened);
        happenings.into_iter().rev().for_each(|happening| happened.push_front(happening));
    }

    /// Keeps the last event, which is reported after everything else.
    fn ends(&self, failure: impl Into<Failure>, unconfirmed: u64) {
        let number = unconfirmed;
        let happening = Happening { number, ..Happening::new(PfEventKind::Ended) };
        *lock(&self.ending) = Some(happening.because(failure));
    }

    /// Drops events that the program has not taken. Answers stay.
    pub(crate) fn drop_events(&self, is_dropped: impl Fn(&Happening) -> bool) {
        lock(&self.happened)
            .retain(|happening| happening.kind.is_answer() || !is_dropped(happening));
    }

    /// Reports that a command without an answer failed, unless what it was for was freed.
    fn command_failed(&self, happening: Happening) {
        let is_freed = happening.room != 0 && !lock(&self.rooms).contains_key(&happening.room)
            || happening.device != 0 && !lock(&self.devices).contains_key(&happening.device);
        if !is_freed {
            self.happens(happening);
        }
    }

    /// Adds tasks, from within a task: by `spawn_after`, so that its answer comes before what they
    /// report.
    pub(crate) fn begins(&self, begin: impl FnOnce(&mut Tasks) + Send + 'static) {
        lock(&self.begun).push(Box::new(begin));
    }

    pub(crate) fn next_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn count(&self, count: impl FnOnce(&mut PfStatistics)) {
        count(&mut lock(&self.counts));
    }

    /// Asks the program for a token.
    pub(crate) fn want_token(&self) -> oneshot::Receiver<Vec<u8>> {
        let (give, given) = oneshot::channel();
        let request = self.next_request();
        let mut tokens = lock(&self.tokens);
        // Whoever wanted an earlier one has given up.
        tokens.clear();
        if !self.is_freed.load(Ordering::Acquire) {
            tokens.insert(request, give);
        }
        drop(tokens);
        self.happens(Happening::answer(PfEventKind::TokenWanted, request));
        given
    }

    /// Holds back what is sent, or lets it go.
    pub(crate) fn cork(&self, is_corked: bool) {
        if self.is_corked.swap(is_corked, Ordering::AcqRel) != is_corked
            && let Link::Open(connection) = &*lock(&self.link)
        {
            connection.cork(is_corked);
        }
    }

    pub(crate) fn connection(&self) -> Outcome<Connection> {
        let text = match &*lock(&self.link) {
            Link::Open(connection) => return Ok(connection.clone()),
            Link::Setup(_) => {
                "the client is not connected: call pf_client_connect, and wait for PF_EVENT_KIND_CONNECTED"
            }
            Link::Connecting(_) => {
                "the client is still connecting: wait for PF_EVENT_KIND_CONNECTED"
            }
            Link::Over => {
                return Err(Failure::new(PfCode::Closed, "the connection has ended"));
            }
        };
        Err(Failure::new(PfCode::Usage, text))
    }
}

/// Waits for a future, at least until it is polled again. If it is ready at once, others that became
/// ready before it are polled first.
async fn not_at_once<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let (mut is_first, mut early) = (true, None);
    poll_fn(move |cx| {
        if let Some(output) = early.take() {
            return Poll::Ready(output);
        }
        match future.as_mut().poll(cx) {
            Poll::Ready(output) if is_first => {
                early = Some(output);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            polled => {
                is_first = false;
                polled
            }
        }
    })
    .await
}

impl ClientCell {
    /// Adds a future that answers a request. Returns the request's number.
    pub(crate) fn ask<F>(&self, future: impl FnOnce(u64) -> F) -> Outcome<u64>
    where
        F: Future<Output = Happening> + Send + 'static,
    {
        let mut tasks = self.tasks()?;
        self.check_waiting(&tasks)?;
        let request = self.shared.next_request();
        self.shared.count(|counts| counts.requests += 1);
        let (future, shared) = (future(request), Arc::clone(&self.shared));
        tasks.command(async move {
            let answer = not_at_once(future).await;
            shared.count(|counts| counts.answers += 1);
            shared.answers.fetch_add(1, Ordering::Relaxed);
            shared.happens(answer);
        });
        // The answer may have come already, if this thread was interrupted.
        self.begin(&mut tasks);
        Ok(request)
    }

    /// The tasks, unless another thread has freed the client meanwhile: what was added to them then
    /// would never end.
    fn tasks(&self) -> Outcome<MutexGuard<'_, Tasks>> {
        let tasks = lock(&self.tasks);
        if self.shared.is_freed.load(Ordering::Acquire) {
            return Err(Failure::new(PfCode::Freed, "the client was freed meanwhile"));
        }
        Ok(tasks)
    }

    /// Adds what tasks have begun. Call it after polling tasks, before they are unlocked: what is
    /// freed before it was added would last until the program polls.
    fn begin(&self, tasks: &mut Tasks) {
        let begun = std::mem::take(&mut *lock(&self.shared.begun));
        begun.into_iter().for_each(|begin| begin(tasks));
    }

    /// Polls a future that sends something. If it has to wait, it goes on in `pf_client_next`, where
    /// `failed` reports an error.
    pub(crate) fn tell<F>(
        &self,
        future: F,
        failed: impl FnOnce(Error) -> Happening + Send + 'static,
    ) -> Outcome
    where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let mut tasks = self.tasks()?;
        // What waits for its place may find it now, and is first.
        tasks.run_commands();
        self.begin(&mut tasks);
        let mut future = Box::pin(future);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        if let Poll::Ready(sent) = future.as_mut().poll(&mut context) {
            sent?;
        } else {
            self.check_waiting(&tasks)?;
            let shared = Arc::clone(&self.shared);
            tasks.command(async move {
                if let Err(error) = future.await {
                    shared.command_failed(failed(error));
                }
            });
        }
        self.shared.count(|counts| counts.sends += 1);
        Ok(())
    }

    /// Answers that nobody has taken count, as some come before the program polls.
    fn check_waiting(&self, tasks: &Tasks) -> Outcome {
        if tasks.commands() + self.shared.answers.load(Ordering::Relaxed) >= PF_WAITING_MAX {
            let text = format!("{PF_WAITING_MAX} commands wait already; call pf_client_next");
            return Err(Failure::new(PfCode::Busy, text));
        }
        Ok(())
    }

    /// Ends what a handle waits for: `forget` takes the handle out of its table, and returns the
    /// number of its task. Meanwhile no task begins, so it is the handle's last. Events of the handle
    /// that wait are dropped.
    pub(crate) fn cancel(
        &self,
        forget: impl FnOnce() -> u64,
        is_of_handle: impl Fn(&Happening) -> bool,
    ) {
        let mut tasks = lock(&self.tasks);
        let task = forget();
        tasks.cancel(task);
        self.shared.drop_events(is_of_handle);
    }

    fn next(&self, timeout: Duration) -> Outcome<PfEvent> {
        let until = Instant::now().checked_add(timeout);
        let until = until.unwrap_or_else(|| Instant::now() + Duration::from_secs(1 << 30));
        self.forget_current();
        let mut turns = 0;
        loop {
            if self.shared.is_freed.load(Ordering::Acquire) {
                return Err(Failure::new(PfCode::Freed, "the client was freed meanwhile"));
            }
            let happening = lock(&self.shared.happened).pop_front();
            if let Some(happening) = happening {
                match self.arrive(happening) {
                    Some(happening) => return self.publish(happening),
                    None => continue,
                }
            }
            let mut tasks = lock(&self.tasks);
            let commands = tasks.commands();
            tasks.run();
            self.begin(&mut tasks);
            if tasks.is_empty()
                && let Some(ending) = lock(&self.shared.ending).take()
            {
                self.shared.happens(ending);
            }
            drop(tasks);
            if !lock(&self.shared.happened).is_empty() {
                continue;
            }
            if self.shared.ready.take_interrupt() {
                return Ok(PfEvent::default());
            }
            // Commands that wait for a place in the queue wait for one another: all that can go now
            // do so, also without time to wait.
            turns += 1;
            if turns <= commands && self.shared.ready.is_ready() {
                continue;
            }
            if Instant::now() >= until {
                return Ok(PfEvent::default());
            }
            self.shared.cork(false);
            self.shared.ready.wait(until);
        }
    }

    /// What the program finds changed with an event changes now. `None` if that is too late.
    fn arrive(&self, happening: Happening) -> Option<Happening> {
        if happening.kind != PfEventKind::State {
            return Some(happening);
        }
        let room = lock(&self.shared.rooms).get(&happening.room).map(Arc::clone);
        let (number, changes) = room?.refresh()?;
        self.shared.happen_next(changes);
        Some(Happening { number, ..happening })
    }

    /// Makes the event that points to a happening, which is kept until the next.
    fn publish(&self, mut happening: Happening) -> Outcome<PfEvent> {
        if happening.kind.is_answer() {
            self.shared.answers.fetch_sub(1, Ordering::Relaxed);
        }
        let mut trees = [0; 2];
        let mut tree = |place: usize, value: Option<serde_json::Value>| {
            let Some(value) = value else { return Outcome::Ok(PfValue::default()) };
            let root = Tree::Own(value).publish()?;
            trees[place] = root.tree;
            Ok(root)
        };
        let value = tree(0, happening.value.take())?;
        let old = tree(1, happening.old.take())?;
        let mut current = lock(&self.current);
        *current = (happening, trees);
        let happening = &current.0;
        let failure = happening.failure.as_ref();
        let text = failure.map_or(&happening.text, |failure| &failure.message);
        let reason = failure.map_or(&happening.reason, |failure| &failure.reason);
        Ok(PfEvent {
            kind: happening.kind,
            code: failure.map_or(PfCode::Ok, |failure| failure.code),
            change: happening.change,
            request: happening.request,
            watch: happening.watch,
            number: happening.number,
            version: happening.version,
            retry_after_ms: failure.map_or(0, |failure| failure.retry_after_ms),
            room: PfRoom { id: happening.room },
            channel: PfChannel { id: happening.channel },
            device: PfDevice { id: happening.device },
            name: PfText::of(&happening.name),
            text: PfText::of(text),
            reason: PfText::of(reason),
            said: PfText::of(failure.map_or("", |failure| &failure.said)),
            value,
            old,
            bytes: PfText::of_bytes(&happening.bytes),
        })
    }

    fn forget_current(&self) {
        let mut current = lock(&self.current);
        for tree in std::mem::take(&mut current.1) {
            // The program may have freed it.
            let _ = handle::remove::<Tree>(tree);
        }
    }

    /// Ends everything. What other threads wait for returns.
    fn end(&self) {
        self.shared.is_freed.store(true, Ordering::Release);
        // While they are locked, no task enters or begins anything.
        let mut tasks = lock(&self.tasks);
        tasks.clear();
        lock(&self.shared.begun).clear();
        for (handle, room) in std::mem::take(&mut *lock(&self.shared.rooms)) {
            let _ = handle::remove::<RoomCell>(handle);
            room.forget();
        }
        for (handle, channel) in std::mem::take(&mut *lock(&self.shared.channels)) {
            let _ = handle::remove::<ChannelCell>(handle);
            channel.forget();
        }
        for (handle, device) in std::mem::take(&mut *lock(&self.shared.devices)) {
            let _ = handle::remove::<DeviceCell>(handle);
            device.forget();
        }
        drop(tasks);
        if let Link::Connecting(task) = std::mem::replace(&mut *lock(&self.shared.link), Link::Over)
        {
            task.abort();
        }
        lock(&self.shared.tokens).clear();
        self.forget_current();
        self.shared.ready.interrupt();
        // Last: what was dropped before has said goodbye.
        *lock(&self.shared.use_of_runtime) = None;
    }
}

/// Makes a client for the node at a URL: `tcp://host:port`, `tls://host:port`, `ws://host:port/path`
/// or `wss://host:port/path`. Nothing is connected until `pf_client_connect`.
///
/// # Safety
/// `url` points to text, `out` to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_client_new(url: PfText, out: *mut PfClient) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let (url, out) = unsafe { (url.text("the URL")?, place(out, "the place for the client")?) };
        *out = PfClient::default();
        let parsed: Result<playfield_client::session::Url, _> = url.parse();
        parsed.map_err(|error| Failure::argument("the URL", error))?;
        let ready = Arc::new(Ready::default());
        let shared = Arc::new(Shared {
            ready: Arc::clone(&ready),
            link: Mutex::new(Link::Setup(Box::new(Settings::new(url)))),
            happened: Mutex::default(),
            answers: AtomicUsize::new(0),
            begun: Mutex::default(),
            tokens: Mutex::default(),
            ending: Mutex::default(),
            use_of_runtime: Mutex::default(),
            rooms: Mutex::default(),
            channels: Mutex::default(),
            devices: Mutex::default(),
            counts: Mutex::default(),
            requests: AtomicU64::new(0),
            is_corked: AtomicBool::new(false),
            is_freed: AtomicBool::new(false),
        });
        out.id = handle::insert(Arc::new(ClientCell {
            shared,
            tasks: Mutex::new(Tasks::new(ready)),
            current: Mutex::default(),
            is_in_next: AtomicBool::new(false),
        }))?;
        Ok(())
    })
}

/// Begins to connect. `PF_EVENT_KIND_CONNECTED` follows, or `PF_EVENT_KIND_ENDED`.
#[unsafe(no_mangle)]
pub extern "C" fn pf_client_connect(client: PfClient) -> PfCode {
    call(|| {
        let cell = handle::find::<ClientCell>(client.id)?;
        // Meanwhile no other thread frees the client.
        let mut tasks = cell.tasks()?;
        let mut link = lock(&cell.shared.link);
        match &*link {
            Link::Setup(_) => {}
            Link::Over => {
                let text = "the client was closed; make another";
                return Err(Failure::new(PfCode::Usage, text));
            }
            Link::Connecting(_) | Link::Open(_) => {
                return Err(Failure::new(PfCode::Usage, "pf_client_connect was called before"));
            }
        }
        let used = runtime::begin()?;
        let Link::Setup(settings) = std::mem::replace(&mut *link, Link::Over) else {
            return Ok(());
        };
        let connect = settings.connect(&cell.shared);
        let connecting = used.handle().spawn(async move { connect.await });
        *lock(&cell.shared.use_of_runtime) = Some(used);
        *link = Link::Connecting(connecting.abort_handle());
        drop(link);
        tasks.spawn(follow(Arc::clone(&cell.shared), connecting));
        Ok(())
    })
}

/// Waits for the connection, and reports what happens to it until its end.
async fn follow(shared: Arc<Shared>, connecting: JoinHandle<Result<Connection, Error>>) {
    let connected = connecting.await;
    let connection = match connected {
        Ok(Ok(connection)) => Some(connection),
        Ok(Err(error)) => {
            *lock(&shared.link) = Link::Over;
            return shared.ends(error, 0);
        }
        Err(_) => None,
    };
    let connection = connection.and_then(|connection| {
        let mut link = lock(&shared.link);
        // It may have been closed when the connection was there already.
        let is_wanted = matches!(*link, Link::Connecting(_));
        is_wanted.then(|| {
            *link = Link::Open(connection.clone());
            connection
        })
    });
    let Some(connection) = connection else {
        let text = "this client closed the connection while it was connecting";
        return shared.ends(Failure::new(PfCode::Closed, text), 0);
    };
    let mut events = connection.events();
    shared.happens(Happening::new(PfEventKind::Connected));
    let mut turn = Turn::default();
    while let Some(event) = events.next().await {
        if let ConnectionEvent::Ended { error, unconfirmed } = event {
            return shared.ends(error, unconfirmed);
        }
        if let Some(happening) = connection_event(&shared, event) {
            shared.happens(happening);
        }
        turn.report(0);
        turn.pause().await;
    }
    // It had ended before the first poll. Whatever it is asked, it answers why.
    match connection.ping().await {
        Err(error) => shared.ends(error, 0),
        Ok(_) => shared.ends(Failure::new(PfCode::Closed, "the connection has ended"), 0),
    }
}

/// An event of the connection; none if it is of a kind that the C ABI does not have.
fn connection_event(shared: &Shared, event: ConnectionEvent) -> Option<Happening> {
    let of = |kind, error: Error| Happening::new(kind).because(error);
    Some(match event {
        ConnectionEvent::Lost { error } => of(PfEventKind::Lost, error),
        ConnectionEvent::AttemptFailed { error } => of(PfEventKind::AttemptFailed, error),
        ConnectionEvent::Resumed { away, .. } => {
            shared.count(|counts| counts.reconnects += 1);
            Happening { number: milliseconds(away), ..Happening::new(PfEventKind::Resumed) }
        }
        ConnectionEvent::NewSession { unconfirmed, .. } => {
            shared.count(|counts| counts.reconnects += 1);
            Happening { number: unconfirmed, ..Happening::new(PfEventKind::NewSession) }
        }
        ConnectionEvent::Weak => Happening::new(PfEventKind::Weak),
        ConnectionEvent::Back => Happening::new(PfEventKind::Back),
        ConnectionEvent::Refused { code, text } => {
            let (reason, said) = (code.name().into_owned(), text.clone());
            let failure = Failure::new(PfCode::Refused, text);
            Happening::new(PfEventKind::Error).because(Failure { reason, said, ..failure })
        }
        _ => return None,
    })
}

/// Waits for the next event, for at most `timeout_ms` milliseconds; 0 does not wait. If there is
/// none, `event` is of `PF_EVENT_KIND_NONE`. What the event before pointed to is gone.
///
/// A game calls this in each frame until there is none.
///
/// # Errors
/// `PF_CODE_IN_USE` if another thread is in it; `PF_CODE_FREED` if another thread freed the client.
///
/// # Safety
/// `event` points to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_client_next(
    client: PfClient,
    timeout_ms: u32,
    event: *mut PfEvent,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let event = unsafe { place(event, "the place for the event") }?;
        *event = PfEvent::default();
        let cell = handle::find::<ClientCell>(client.id)?;
        if cell.is_in_next.swap(true, Ordering::AcqRel) {
            let text = "another thread is in pf_client_next of this client";
            return Err(Failure::new(PfCode::InUse, text));
        }
        // Also after a panic.
        let next = std::panic::AssertUnwindSafe(|| {
            cell.next(Duration::from_millis(u64::from(timeout_ms)))
        });
        let next = std::panic::catch_unwind(next);
        cell.is_in_next.store(false, Ordering::Release);
        *event = next.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(())
    })
}

/// Has `pf_client_next` of another thread return at once; or the next call, if none is in it.
#[unsafe(no_mangle)]
pub extern "C" fn pf_client_wake(client: PfClient) -> PfCode {
    call(|| {
        handle::find::<ClientCell>(client.id)?.shared.ready.interrupt();
        Ok(())
    })
}

/// Holds back what is sent from now on, or lets it go. What a program sends while it handles several
/// events then leaves in one write, which takes less time. `pf_client_next` lets it go before it
/// waits.
#[unsafe(no_mangle)]
pub extern "C" fn pf_client_cork(client: PfClient, is_corked: bool) -> PfCode {
    call(|| {
        handle::find::<ClientCell>(client.id)?.shared.cork(is_corked);
        Ok(())
    })
}

/// Answers `PF_EVENT_KIND_TOKEN_WANTED`.
///
/// # Safety
/// `token` points to bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_client_give_token(
    client: PfClient,
    request: u64,
    token: PfText,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let token = unsafe { token.bytes("the token") }?;
        let cell = handle::find::<ClientCell>(client.id)?;
        let give = lock(&cell.shared.tokens).remove(&request);
        let is_given = give.is_some_and(|give| give.send(token.to_vec()).is_ok());
        if !is_given {
            let text = format!("no token is wanted by the request {request}, or no longer");
            return Err(Failure::new(PfCode::Usage, text));
        }
        Ok(())
    })
}

/// Says goodbye. What was sent before is delivered. `PF_EVENT_KIND_ENDED` follows, within 5 seconds.
#[unsafe(no_mangle)]
pub extern "C" fn pf_client_close(client: PfClient) -> PfCode {
    call(|| {
        let cell = handle::find::<ClientCell>(client.id)?;
        let mut link = lock(&cell.shared.link);
        match &*link {
            Link::Setup(_) => {
                *link = Link::Over;
                let text = "this client was closed before it was connected";
                let failure = Failure::new(PfCode::Closed, text);
                cell.shared.happens(Happening::new(PfEventKind::Ended).because(failure));
            }
            Link::Connecting(task) => {
                task.abort();
                *link = Link::Over;
            }
            Link::Open(connection) => {
                let connection = connection.clone();
                // Not a task, which would go on only in pf_client_next.
                if let Some(used) = &*lock(&cell.shared.use_of_runtime) {
                    used.handle().spawn(connection.close());
                }
            }
            Link::Over => {}
        }
        Ok(())
    })
}

/// Frees a client, with its rooms and channels, from any thread. If it is connected, it says goodbye
/// in the background. Requests without an answer get none.
#[unsafe(no_mangle)]
pub extern "C" fn pf_client_free(client: PfClient) -> PfCode {
    call(|| {
        handle::remove::<ClientCell>(client.id)?.end();
        Ok(())
    })
}

/// What the client has done, and how its connection is.
///
/// # Safety
/// `out` points to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_client_statistics(client: PfClient, out: *mut PfStatistics) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let out = unsafe { place(out, "the place for the statistics") }?;
        let cell = handle::find::<ClientCell>(client.id)?;
        let mut found = *lock(&cell.shared.counts);
        let microseconds = |time: Option<Duration>| {
            time.map_or(0, |time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
        };
        if let Link::Open(connection) = &*lock(&cell.shared.link) {
            found.is_connected = connection.is_connected();
            found.round_trip_us = microseconds(connection.round_trip());
            found.node_time_us = microseconds(connection.node_time());
        }
        found.rooms = lock(&cell.shared.rooms).len() as u64;
        found.waiting = lock(&cell.tasks).commands() as u64;
        *out = found;
        Ok(())
    })
}

/// Stops the library's thread, and waits for it: before the library is unloaded, or so that a leak
/// checker finds nothing. The goodbyes of clients that were freed have 100 ms. The next
/// `pf_client_connect` starts the thread again.
///
/// # Errors
/// `PF_CODE_USAGE` if there are clients that have connected, also those whose connection has ended:
/// free them first. Nothing is done then.
#[unsafe(no_mangle)]
pub extern "C" fn pf_shut_down() -> PfCode {
    call(runtime::shut_down)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn unconnected() -> (PfClient, Arc<ClientCell>) {
        let mut client = PfClient::default();
        let url = "tcp://127.0.0.1:1";
        let url = PfText { data: url.as_ptr(), length: url.len() };
        // SAFETY: the text outlives the call, and the client is a place.
        assert_eq!(unsafe { pf_client_new(url, &raw mut client) }, PfCode::Ok);
        (client, handle::find::<ClientCell>(client.id).expect("a client"))
    }

    /// A reply that came while its request was made overtook those that waited to be polled.
    #[test]
    fn an_answer_that_comes_at_once_is_reported_after_those_that_came_before() {
        let (client, cell) = unconnected();
        let (give, given) = oneshot::channel();
        let kind = PfEventKind::Reply;
        let first = cell.ask(|request| async move {
            given.await.expect("it is given");
            Happening::answer(kind, request)
        });
        give.send(()).expect("it is awaited");
        let second = cell.ask(|request| async move { Happening::answer(kind, request) });
        for request in [first, second] {
            let next = cell.next(Duration::ZERO).expect("an answer");
            assert_eq!(Some(next.request), request.ok());
        }
        assert_eq!(pf_client_free(client), PfCode::Ok);
    }

    /// A program met `PF_EVENT_KIND_SUBSCRIBED` of a channel that it did not know yet.
    #[test]
    fn an_answer_that_comes_at_once_is_reported_before_what_it_begins() {
        let (client, cell) = unconnected();
        let shared = Arc::clone(&cell.shared);
        let asked = cell.ask(move |request| async move {
            let reports = Arc::clone(&shared);
            shared.begins(move |tasks| {
                tasks.spawn_after(async move {
                    reports.happens(Happening::new(PfEventKind::Subscribed));
                });
            });
            Happening::answer(PfEventKind::Subscribing, request)
        });
        assert!(asked.is_ok());
        for kind in [PfEventKind::Subscribing, PfEventKind::Subscribed] {
            assert_eq!(cell.next(Duration::ZERO).expect("an event").kind, kind);
        }
        assert_eq!(pf_client_free(client), PfCode::Ok);
    }

    /// A program met events of rooms that it had freed.
    #[test]
    fn what_waits_to_be_reported_of_a_freed_handle_is_dropped_but_for_answers() {
        let (client, cell) = unconnected();
        let (event, reply) = (PfEventKind::Event, PfEventKind::Reply);
        for (kind, room) in [(event, 1), (event, 2), (reply, 1), (event, 1)] {
            cell.shared.happens(Happening { room, ..Happening::new(kind) });
        }
        cell.cancel(|| 0, |happening| happening.room == 1);
        for (kind, room) in [(event, 2), (reply, 1), (PfEventKind::None, 0)] {
            let next = cell.next(Duration::ZERO).expect("an event");
            assert_eq!((next.kind, next.room.id), (kind, room));
        }
        // A send that waited for its place has found none.
        let failed = Happening { room: 1, ..Happening::new(PfEventKind::Error) };
        cell.shared.command_failed(failed);
        assert_eq!(cell.next(Duration::ZERO).expect("no event").kind, PfEventKind::None);
        assert_eq!(pf_client_free(client), PfCode::Ok);
    }

    /// A thread that was in a command when another freed the client left it a handle and a
    /// connection for ever.
    #[test]
    fn nothing_begins_once_the_client_is_freed() {
        let (client, cell) = unconnected();
        assert_eq!(pf_client_free(client), PfCode::Ok);
        let asked = cell.ask(|_| async { panic!("it is polled") });
        assert_eq!(asked.unwrap_err().code, PfCode::Freed);
        let sent = cell.tell(async { panic!("it is polled") }, |_| Happening::default());
        assert_eq!(sent.unwrap_err().code, PfCode::Freed);
    }

    /// The end of the connection was reported before what had happened until then.
    #[test]
    fn the_end_is_reported_after_everything_else() {
        let (client, cell) = unconnected();
        cell.shared.ends(Failure::new(PfCode::Closed, "over"), 0);
        let (give, given) = oneshot::channel();
        let asked = cell.ask(|request| async move {
            given.await.expect("it is given");
            Happening::answer(PfEventKind::Reply, request)
        });
        assert!(asked.is_ok());
        assert_eq!(cell.next(Duration::ZERO).expect("no event").kind, PfEventKind::None);
        give.send(()).expect("it is awaited");
        for kind in [PfEventKind::Reply, PfEventKind::Ended, PfEventKind::None] {
            assert_eq!(cell.next(Duration::ZERO).expect("an event").kind, kind);
        }
        assert_eq!(pf_client_free(client), PfCode::Ok);
    }

    /// A subscription whose answer came within the command itself was held until the next poll,
    /// also when it was freed: the node counted a member that was gone.
    #[test]
    fn what_an_answer_begins_can_be_ended_when_the_command_returns() {
        let (client, cell) = unconnected();
        let (shared, held) = (Arc::clone(&cell.shared), Arc::new(()));
        let (holds, begun) = (Arc::clone(&held), Arc::new(AtomicU64::new(0)));
        let task = Arc::clone(&begun);
        let asked = cell.ask(move |request| async move {
            shared.begins(move |tasks| {
                let follow = async move {
                    std::future::pending::<()>().await;
                    drop(holds);
                };
                task.store(tasks.spawn_after(follow), Ordering::Relaxed);
            });
            Happening::answer(PfEventKind::Subscribing, request)
        });
        assert!(asked.is_ok());
        cell.cancel(|| begun.load(Ordering::Relaxed), |_| false);
        assert_eq!(Arc::strong_count(&held), 1, "it waits for a poll");
        assert_eq!(pf_client_free(client), PfCode::Ok);
    }
}
