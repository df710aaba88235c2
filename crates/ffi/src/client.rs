//! A client: its connection, its events and what it waits for.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use playfield_client::poll::{Connection, Dialer, Readiness, Registration, Token, Waiter};
use playfield_client::session::Url;

use crate::channel::ChannelCell;
use crate::device::DeviceCell;
use crate::event::{PfEvent, PfEventKind, Report};
use crate::failure::{Failure, Outcome, PfCode, call};
use crate::handle::{self, Object};
use crate::joins::Ways;
use crate::node::{Link, Node};
use crate::room::RoomCell;
use crate::runtime::{self, Farewell};
use crate::settings::Settings;
use crate::state::{News, PackedReply, State};
use crate::text::{PfText, place, places};
use crate::value::{PfValue, Tree};

/// A program that has not polled for this long is taken to do something else: the library's thread
/// serves the connection.
const IDLE: Duration = Duration::from_millis(200);

/// How long a look at the socket stays fresh. A call of `pf_client_next` with no timeout, right
/// after an event, skips the second look within this time: so a turn that ends with no event looks
/// once.
const FRESH: Duration = Duration::from_millis(1);

/// The most events that come together.
const EVENTS_MAX: usize = 256;

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
    /// Events of rooms that were reported.
    pub events: u64,
    /// Updates of states that were applied.
    pub updates: u64,
    /// Publications that were reported.
    pub publications: u64,
    /// How often the connection was restored.
    pub reconnects: u64,
    /// Requests and sends that wait.
    pub waiting: u64,
    /// Rooms that the program holds.
    pub rooms: u64,
    /// The connection to the first node is there: not lost, and not at its end.
    pub is_connected: bool,
}

/// A client in the table of handles.
pub(crate) struct ClientCell {
    state: Mutex<State>,
    /// Of the thread that is in `pf_client_next`; the connections' end of the goodbye takes it.
    waiter: Mutex<Option<Waiter>>,
    registration: Registration,
    /// The events that `pf_client_next` returned last, which their pointers refer to.
    current: Mutex<Vec<Current>>,
    is_in_next: AtomicBool,
    /// A thread waits for the socket.
    is_waiting: AtomicBool,
    is_interrupted: AtomicBool,
    is_freed: AtomicBool,
    began: Instant,
    /// When the connection was last served, in milliseconds since `began`.
    served_ms: AtomicU64,
}

/// An event that the program has.
enum Current {
    Reply(PackedReply),
    Report(Box<Report>, Trees),
}

/// The trees of an event, which go with it.
#[derive(Default)]
struct Trees([u64; 2]);

impl Current {
    /// The event, which points to the report.
    fn publish(&mut self) -> PfEvent {
        match self {
            Self::Reply(PackedReply { request, room, bytes }) => PfEvent {
                kind: PfEventKind::Reply,
                request: *request,
                room: PfRoom { id: *room },
                bytes: PfText::of_bytes(bytes),
                ..PfEvent::default()
            },
            Self::Report(report, trees) => trees.publish(report),
        }
    }
}

impl Trees {
    fn publish(&mut self, report: &mut Report) -> PfEvent {
        let mut value = |place: usize, value: Option<serde_json::Value>| {
            let Some(value) = value else { return PfValue::default() };
            match Tree::Own(value).publish() {
                Ok(root) => {
                    self.0[place] = root.tree;
                    root
                }
                Err(failure) => {
                    report.failure.get_or_insert(Box::new(failure));
                    PfValue::default()
                }
            }
        };
        let (value, old) = (value(0, report.value.take()), value(1, report.old.take()));
        let failure = report.failure.as_ref();
        let text = failure.map_or(&report.text, |failure| &failure.message);
        let reason = failure.map_or(&report.reason, |failure| &failure.reason);
        PfEvent {
            kind: report.kind,
            code: failure.map_or(PfCode::Ok, |failure| failure.code),
            change: report.change,
            request: report.request,
            watch: report.watch,
            number: report.number,
            version: report.version,
            retry_after_ms: failure.map_or(0, |failure| failure.retry_after_ms),
            room: PfRoom { id: report.room },
            channel: PfChannel { id: report.channel },
            device: PfDevice { id: report.device },
            name: PfText::of(&report.name),
            text: PfText::of(text),
            reason: PfText::of(reason),
            said: PfText::of(failure.map_or("", |failure| &failure.said)),
            value,
            old,
            bytes: PfText::of_bytes(&report.bytes),
        }
    }
}

impl Drop for Trees {
    fn drop(&mut self) {
        for tree in self.0.into_iter().filter(|tree| *tree != 0) {
            // The program may have freed it.
            let _ = handle::remove::<Tree>(tree);
        }
    }
}

impl Object for ClientCell {
    const KIND: u8 = 1;
    const NAME: &'static str = "a client";
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ClientCell {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(crate) fn registration(&self) -> &Registration {
        &self.registration
    }

    pub(crate) fn is_freed(&self) -> bool {
        self.is_freed.load(Ordering::Acquire)
    }

    /// Gives a command.
    pub(crate) fn act<T>(&self, command: impl FnOnce(&mut State) -> Outcome<T>) -> Outcome<T> {
        let state = &mut *self.lock();
        let given = command(state)?;
        self.changed(state);
        Ok(given)
    }

    /// The state was changed by a command: whoever waits may have something to do.
    pub(crate) fn changed(&self, state: &State) {
        if !self.is_waiting.load(Ordering::Relaxed) {
            return;
        }
        let is_due = state.due_at().is_some_and(|at| at < state.waits_until);
        if is_due || !state.news.is_empty() {
            self.registration.wake();
        }
    }

    /// Serves the connections. Returns when that was.
    fn serve(
        self: &Arc<Self>,
        state: &mut State,
        readiness: Readiness,
        others: &[(Token, Readiness)],
    ) -> Instant {
        let now = Instant::now();
        let served = u64::try_from((now - self.began).as_millis()).unwrap_or(u64::MAX);
        self.served_ms.store(served, Ordering::Relaxed);
        state.drive(self, Some(readiness), others);
        now
    }

    /// Serves the connection if the program does not.
    pub(crate) fn keep_alive(self: &Arc<Self>) {
        let served = Duration::from_millis(self.served_ms.load(Ordering::Relaxed));
        if self.is_in_next.load(Ordering::Acquire) || self.began.elapsed() < served + IDLE {
            return;
        }
        // If it is locked, somebody is here.
        let Ok(mut waiter) = self.waiter.try_lock() else { return };
        let Some(waiter) = &mut *waiter else { return };
        let Ok(readiness) = waiter.wait(Some(Instant::now())) else { return };
        let others = waiter.others();
        let state = &mut *self.lock();
        // The node must have its answers, also while the program holds back what it sends.
        let is_corked = std::mem::take(&mut state.is_corked);
        self.serve(state, readiness, &others);
        state.is_corked = is_corked;
    }

    /// Writes the next events into `events`. Returns how many; none if there were none in time.
    fn next(
        self: &Arc<Self>,
        timeout: Duration,
        events: &mut [MaybeUninit<PfEvent>],
    ) -> Outcome<usize> {
        // Nothing is locked while this waits.
        let mut current = std::mem::take(&mut *lock(&self.current));
        current.clear();
        let mut until = None;
        loop {
            if self.is_freed() {
                return Err(Failure::new(PfCode::Freed, "the client was freed meanwhile"));
            }
            let mut state = self.lock();
            self.take(&mut state, events.len(), &mut current);
            if !current.is_empty() {
                drop(state);
                let count = current.len();
                for (current, event) in current.iter_mut().zip(events) {
                    event.write(current.publish());
                }
                *lock(&self.current) = current;
                return Ok(count);
            }
            self.uncork(&mut state);
            // Only who has nothing to report asks for the time.
            let now = Instant::now();
            let is_late = until.is_some_and(|until| now >= until);
            let until = *until.get_or_insert_with(|| {
                now.checked_add(timeout).unwrap_or_else(|| now + Duration::from_secs(1 << 30))
            });
            let due_at = state.due_at();
            let wait_until = due_at.map_or(until, |due_at| due_at.min(until));
            // The events before were all that there was a moment ago.
            let is_fresh = state.looked_at.take().is_some_and(|at| now < at + FRESH);
            let is_done = is_fresh && timeout.is_zero() && due_at.is_none_or(|due_at| due_at > now);
            if self.is_interrupted.swap(false, Ordering::AcqRel) || is_late || is_done {
                return Ok(0);
            }
            state.waits_until = wait_until;
            self.is_waiting.store(true, Ordering::Relaxed);
            drop(state);
            let readiness = match &mut *lock(&self.waiter) {
                Some(waiter) => {
                    waiter.wait(Some(wait_until)).map(|readiness| (readiness, waiter.others()))
                }
                None => Ok((Readiness::at(Instant::now()), Vec::new())),
            };
            self.is_waiting.store(false, Ordering::Relaxed);
            let failed =
                |error| Failure::new(PfCode::Failed, format!("the system can't wait: {error}"));
            let (readiness, others) = readiness.map_err(failed)?;
            let state = &mut *self.lock();
            state.looked_at = Some(self.serve(state, readiness, &others));
        }
    }

    /// Lets go what is held back.
    fn uncork(&self, state: &mut State) {
        if std::mem::take(&mut state.is_corked) {
            state.flush_all();
        }
    }

    /// Takes the next report, and those that come with it.
    fn take(&self, state: &mut State, most: usize, taken: &mut Vec<Current>) {
        while taken.len() < most
            && let Some(news) = state.news.front()
        {
            let is_alone = !news.comes_together(&state.rooms);
            if is_alone && !taken.is_empty() {
                return;
            }
            let report = match state.news.pop_front() {
                None => return,
                Some(News::Reply(reply)) => {
                    state.taken_reply();
                    taken.push(Current::Reply(reply));
                    continue;
                }
                Some(News::Report(report)) => Some(report),
                Some(News::Room(room)) => RoomCell::take(state, room).map(Box::new),
                Some(News::State(room)) => RoomCell::refresh(state, room).map(Box::new),
                Some(News::Channel(channel)) => ChannelCell::take(state, channel).map(Box::new),
                Some(News::Device(device)) => DeviceCell::take(state, device).map(Box::new),
            };
            let Some(report) = report else { continue };
            // The event can't be read.
            if !taken.is_empty() && report.kind == PfEventKind::Error {
                return state.news.push_front(News::Report(report));
            }
            let is_alone = is_alone || report.kind == PfEventKind::Error;
            state.taken(&report);
            taken.push(Current::Report(report, Trees::default()));
            if is_alone {
                return;
            }
        }
    }

    /// Ends everything. What other threads wait for returns.
    fn end(&self) {
        self.is_freed.store(true, Ordering::Release);
        self.registration.wake();
        let mut state = self.lock();
        for handle in std::mem::take(&mut state.rooms).into_keys() {
            if let Ok(room) = handle::remove::<RoomCell>(handle) {
                room.forget();
            }
        }
        for handle in std::mem::take(&mut state.channels).into_keys() {
            let _ = handle::remove::<ChannelCell>(handle);
        }
        for handle in std::mem::take(&mut state.devices).into_keys() {
            let _ = handle::remove::<DeviceCell>(handle);
        }
        state.news.clear();
        let link = std::mem::replace(&mut state.node.link, Link::Over);
        let others = std::mem::take(&mut state.others);
        let mut buffers = std::mem::take(&mut state.buffers);
        drop(state);
        lock(&self.current).clear();
        if let Link::Open(mut connection) = link {
            // Whoever waited with it has returned, or is about to.
            let waiter = lock(&self.waiter).take();
            connection.close(&mut buffers);
            let mut others: Vec<_> = others.into_iter().filter_map(Node::into_connection).collect();
            others.iter_mut().for_each(|(connection, _)| connection.close(&mut buffers));
            let farewell = |waiter| Farewell { connection, others, waiter, buffers };
            if let Some(farewell) = waiter.map(farewell).filter(|farewell| !farewell.is_over()) {
                runtime::see_off(farewell);
            }
        }
    }
}

/// Makes a client for the node at a URL: `tcp://host:port`, `tls://host:port`,
/// `ws://host:port/path` or `wss://host:port/path`. Nothing is connected until `pf_client_connect`.
///
/// # Safety
/// `url` points to text, `out` to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_client_new(url: PfText, out: *mut PfClient) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let (url, out) = unsafe { (url.text("the URL")?, place(out, "the place for the client")?) };
        *out = PfClient::default();
        let parsed: Result<Url, _> = url.parse();
        parsed.map_err(|error| Failure::argument("the URL", error))?;
        let (waiter, registration) = Waiter::new().map_err(|error| {
            let text = format!("the system has no descriptors for another client: {error}");
            Failure::new(PfCode::Failed, text)
        })?;
        out.id = handle::insert(Arc::new(ClientCell {
            state: Mutex::new(State::new(Settings::new(url))),
            waiter: Mutex::new(Some(waiter)),
            registration,
            current: Mutex::default(),
            is_in_next: AtomicBool::new(false),
            is_waiting: AtomicBool::new(false),
            is_interrupted: AtomicBool::new(false),
            is_freed: AtomicBool::new(false),
            began: Instant::now(),
            served_ms: AtomicU64::new(0),
        }))?;
        Ok(())
    })
}

/// Begins to connect. `PF_EVENT_KIND_CONNECTED` follows, or `PF_EVENT_KIND_ENDED`.
#[unsafe(no_mangle)]
pub extern "C" fn pf_client_connect(client: PfClient) -> PfCode {
    call(|| {
        let cell = handle::find::<ClientCell>(client.id)?;
        let mut state = cell.lock();
        if cell.is_freed() {
            return Err(Failure::new(PfCode::Freed, "the client was freed meanwhile"));
        }
        let settings = match &state.node.link {
            Link::Setup(settings) => settings.clone(),
            Link::Over => {
                let text = "the client was closed; make another";
                return Err(Failure::new(PfCode::Usage, text));
            }
            Link::Open(_) => {
                return Err(Failure::new(PfCode::Usage, "pf_client_connect was called before"));
            }
        };
        runtime::keep(&cell)?;
        match Dialer::new(&settings.url, &settings.root_certificates) {
            Ok(dialer) => {
                let registration = cell.registration.clone();
                let (dialer, connect) = (Arc::new(dialer), settings.connect.clone());
                let connection = Connection::open(Arc::clone(&dialer), connect, registration);
                state.node.link = Link::Open(Box::new(connection));
                state.ways = Some(Ways::new(settings, dialer));
            }
            Err(error) => {
                state.node.link = Link::Over;
                state.report(Report::new(PfEventKind::Ended).because(error));
            }
        }
        state.drive(&cell, None, &[]);
        // Another thread that waits must look at the socket.
        cell.registration.wake();
        Ok(())
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
        let events = unsafe { places(event, 1, "the place for the event") }?;
        events[0].write(PfEvent::default());
        next(client, timeout_ms, events).map(drop)
    })
}

/// Does the same for several events: writes up to `capacity` of them, and sets `count` to how many.
/// Only replies, and events of rooms in `packed`, come together; all else comes alone. So states
/// move only in this call, what is set after `PF_EVENT_KIND_JOINED` holds for all events of the
/// room, and
/// `pf_room_set_packed` for all events that were not taken. Events of a room that was freed since
/// remain in the array.
///
/// # Safety
/// `events` points to `capacity` places, which need not be initialized; `count` to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_client_next_many(
    client: PfClient,
    timeout_ms: u32,
    events: *mut PfEvent,
    capacity: usize,
    count: *mut usize,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let count = unsafe { place(count, "the place for the count") }?;
        *count = 0;
        if capacity == 0 {
            return Err(Failure::argument("the capacity", "it is 0"));
        }
        let capacity = capacity.min(EVENTS_MAX);
        // SAFETY: the caller promises it.
        let events = unsafe { places(events, capacity, "the place for the events") }?;
        *count = next(client, timeout_ms, events)?;
        Ok(())
    })
}

fn next(client: PfClient, timeout_ms: u32, events: &mut [MaybeUninit<PfEvent>]) -> Outcome<usize> {
    let cell = handle::find::<ClientCell>(client.id)?;
    if cell.is_in_next.swap(true, Ordering::AcqRel) {
        let text = "another thread is in pf_client_next of this client";
        return Err(Failure::new(PfCode::InUse, text));
    }
    // Also after a panic.
    let next = std::panic::AssertUnwindSafe(|| {
        cell.next(Duration::from_millis(u64::from(timeout_ms)), events)
    });
    let next = std::panic::catch_unwind(next);
    cell.is_in_next.store(false, Ordering::Release);
    next.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Has `pf_client_next` of another thread return at once; or the next call, if none is in it.
#[unsafe(no_mangle)]
pub extern "C" fn pf_client_wake(client: PfClient) -> PfCode {
    call(|| {
        let cell = handle::find::<ClientCell>(client.id)?;
        cell.is_interrupted.store(true, Ordering::Release);
        cell.registration.wake();
        Ok(())
    })
}

/// Holds back what is sent from now on, or lets it go. What a program sends while it handles
/// several events then leaves in one write, which takes less time. `pf_client_next` lets it go
/// before it waits, and the library's thread when the program has not polled for 200 ms: so the
/// connection lives on.
#[unsafe(no_mangle)]
pub extern "C" fn pf_client_cork(client: PfClient, is_corked: bool) -> PfCode {
    call(|| {
        let cell = handle::find::<ClientCell>(client.id)?;
        let mut state = cell.lock();
        state.is_corked = is_corked;
        state.flush_all();
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
        let mut state = cell.lock();
        if request == 0 || !state.nodes().any(|node| node.takes_token(request, token)) {
            let text = format!("no token is wanted by the request {request}, or no longer");
            return Err(Failure::new(PfCode::Usage, text));
        }
        state.drive(&cell, None, &[]);
        cell.registration.wake();
        Ok(())
    })
}

/// Says goodbye, to all nodes. What was sent before is delivered. `PF_EVENT_KIND_ENDED` follows,
/// within 5 seconds.
#[unsafe(no_mangle)]
pub extern "C" fn pf_client_close(client: PfClient) -> PfCode {
    call(|| {
        let cell = handle::find::<ClientCell>(client.id)?;
        let mut state = cell.lock();
        let early = |text| Failure::new(PfCode::Closed, text);
        match &state.node.link {
            Link::Setup(_) => {
                state.node.link = Link::Over;
                let failure = early("this client was closed before it was connected");
                state.report(Report::new(PfEventKind::Ended).because(failure));
            }
            Link::Open(_) if !state.node.is_welcomed && state.ended.is_none() => {
                state.node.link = Link::Over;
                let failure = early("this client closed the connection while it was connecting");
                state.report(Report::new(PfEventKind::Ended).because(failure));
            }
            Link::Open(_) if state.ended.is_none() => {
                state.leave();
                state.is_corked = false;
                state.drive(&cell, None, &[]);
            }
            Link::Open(_) | Link::Over => {}
        }
        cell.changed(&state);
        Ok(())
    })
}

/// Frees a client, with its rooms and channels, from any thread. If it is connected, it says
/// goodbye in the background. Requests without an answer get none.
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
        let state = cell.lock();
        let mut found = state.counts;
        let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        if let Link::Open(connection) = &state.node.link {
            found.is_connected = state.node.is_welcomed && connection.is_connected();
            if let Some((round_trip, node_time)) = connection.clock() {
                (found.round_trip_us, found.node_time_us) = (us(round_trip), us(node_time));
            }
        }
        found.rooms = state.rooms.len() as u64;
        found.waiting = state.waits() as u64;
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
