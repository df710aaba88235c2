//! The sessions of users: where each is, and which of them are to end.
//!
//! A session is entered when it opens and taken out when it ends, so that all sessions of a user
//! can be ended without asking every shard. One that is to end is marked here and its shard is
//! informed by mail. A session that is between two shards misses the mail, and meets the mark when
//! it arrives.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use playfield_room::{Error, LeaveReason, OnePerUser};
use playfield_wire::ErrorCode;

use crate::memory::shrink_map;
use crate::shard::keys::ConnectionKey;

/// Of how many sessions that were ended it is known why, for clients that come back to them.
const OVER_MAX: usize = 10_000;

/// Why a session is ended.
#[derive(Debug)]
pub(crate) struct End {
    /// The error that its client is sent.
    pub(crate) error: Error,
    /// The reason that its rooms are told.
    pub(crate) why: LeaveReason,
}

impl End {
    /// The program ends the session, with a text for its client.
    pub(crate) fn kicked(text: String) -> Self {
        Self { error: Error::new(ErrorCode::Kicked, text), why: LeaveReason::Kicked }
    }

    fn taken_over() -> Self {
        let text = "the user has opened another session";
        Self { error: Error::new(ErrorCode::TakenOver, text), why: LeaveReason::TakenOver }
    }
}

/// The location of a session, or of a client that waits for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) shard: u16,
    pub(crate) connection: ConnectionKey,
    /// The session's number.
    pub(crate) session: u64,
}

/// Facts of a hello that opens a session.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Greeted {
    /// The [moment](Users::moment) at which it was read.
    pub(crate) moment: u64,
    /// The session that it wanted back, which is over.
    pub(crate) instead_of: Option<u64>,
}

/// The decision about a session that is about to open.
#[derive(Debug)]
pub(crate) enum Opened {
    /// The session is open, or opens when those of `ending` have ended or given up waiting.
    Granted { is_now: bool, ending: Ending },
    /// The session does not open.
    Refused(Error),
}

/// Sessions that are to end, and why. Some may not be open yet.
pub(crate) type Ending = Vec<(Place, Arc<End>)>;

/// The sessions of users, shared by the shards of a node.
pub(crate) struct Users {
    /// The rule for a second session of a user.
    one_session: OnePerUser,
    taken_over: Arc<End>,
    /// The number of times that sessions of a user were ended.
    ends: AtomicU64,
    /// The time that a hello may be under way.
    hello_max: Duration,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    users: HashMap<Box<str>, OfUser>,
    /// Why sessions were ended that clients may want back.
    over: HashMap<u64, Arc<End>>,
    /// These, the oldest first.
    over_since: VecDeque<u64>,
    /// Users whose sessions were ended lately, the oldest first.
    lately: VecDeque<Lately>,
}

/// The sessions of a user were ended. Those whose hello came before do not open either.
struct Lately {
    user: Box<str>,
    moment: u64,
    at: Duration,
    end: Arc<End>,
}

/// The sessions of one user.
#[derive(Default)]
struct OfUser {
    sessions: Vec<Entry>,
    /// The one that opens when these have ended.
    waiting: Option<Entry>,
}

struct Entry {
    place: Place,
    /// Its client wanted this session back, which was over.
    instead_of: Option<u64>,
    /// Whether it belongs to someone else, or to no user, but has joined a room by a ticket of this
    /// user.
    is_by_ticket: bool,
    /// Why it is to end, if it is.
    end: Option<Arc<End>>,
}

impl Users {
    pub(crate) fn new(hello_timeout: Duration) -> Self {
        Self {
            one_session: OnePerUser::No,
            taken_over: Arc::new(End::taken_over()),
            ends: AtomicU64::new(0),
            // It may be on its way to a session for a moment more.
            hello_max: 2 * hello_timeout,
            inner: Mutex::default(),
        }
    }

    /// Sets how a second session of a user is handled.
    pub(crate) fn keep_one(&mut self, one_session: OnePerUser) {
        self.one_session = one_session;
    }

    /// The present moment, in the order in which sessions of users are ended.
    pub(crate) fn moment(&self) -> u64 {
        self.ends.load(Ordering::SeqCst)
    }

    /// A session of a user is about to open.
    pub(crate) fn open(&self, user: &str, place: Place, hello: &Greeted) -> Opened {
        let mut inner = self.lock();
        if let Some(end) = inner.ended_after(user, hello.moment) {
            return Opened::Refused(end.error.clone());
        }
        let of_user = inner.users.entry(user.into()).or_default();
        let instead_of = hello.instead_of;
        let entry = Entry { place, instead_of, is_by_ticket: false, end: None };
        if self.one_session == OnePerUser::No {
            of_user.sessions.push(entry);
            return Opened::Granted { is_now: true, ending: Vec::new() };
        }
        let is_open = |entry: &&mut Entry| !entry.is_by_ticket && entry.end.is_none();
        let mut others: Vec<_> =
            of_user.sessions.iter_mut().chain(&mut of_user.waiting).filter(is_open).collect();
        // The same client has opened those in place of the same session, and has not heard of it.
        let is_own = |other: &&mut Entry| instead_of.is_some() && other.instead_of == instead_of;
        if !others.iter().all(is_own) {
            if self.one_session == OnePerUser::Refuse {
                let text = "one_session_per_user: this user has another session";
                return Opened::Refused(Error::new(ErrorCode::AlreadyHere, text));
            }
            // A client that comes back by itself must not end the session that has replaced its
            // own, or two clients would replace each other for ever.
            if instead_of.is_some() {
                return Opened::Refused(self.taken_over.error.clone());
            }
        }
        let end = |other: &mut Entry| {
            other.end = Some(Arc::clone(&self.taken_over));
            (other.place, Arc::clone(&self.taken_over))
        };
        let ending: Ending = others.iter_mut().map(|other| end(other)).collect();
        let is_now = of_user.sessions.iter().all(|entry| entry.is_by_ticket);
        if is_now {
            of_user.waiting = None;
            of_user.sessions.push(entry);
        } else {
            of_user.waiting = Some(entry);
        }
        inner.note_over(&ending);
        Opened::Granted { is_now, ending }
    }

    /// A session of a user comes from another process, where it was open.
    pub(crate) fn thaw(&self, user: &str, place: Place, is_by_ticket: bool) {
        let mut inner = self.lock();
        let of_user = inner.users.entry(user.into()).or_default();
        of_user.sessions.push(Entry { place, instead_of: None, is_by_ticket, end: None });
    }

    /// A session that had to wait is about to open. Whether it may.
    pub(crate) fn open_waiting(&self, user: &str, place: Place) -> bool {
        let mut inner = self.lock();
        let Some(of_user) = inner.users.get_mut(user) else { return false };
        let is_it = |entry: &mut Entry| entry.place == place && entry.end.is_none();
        let entry = of_user.waiting.take_if(is_it);
        let may = entry.is_some();
        of_user.sessions.extend(entry);
        may
    }

    /// The client has gone that waited for a session.
    pub(crate) fn give_up(&self, user: &str, place: Place) {
        let mut inner = self.lock();
        let Some(of_user) = inner.users.get_mut(user) else { return };
        drop(of_user.waiting.take_if(|entry| entry.place == place));
        inner.tidy(user);
    }

    /// A session is about to join a room by a ticket of a user who is not its own. The ticket was
    /// read at this [moment](Self::moment).
    ///
    /// # Errors
    /// If the user's sessions were ended since.
    pub(crate) fn join_by_ticket(
        &self,
        user: &str,
        place: Place,
        moment: u64,
    ) -> Result<(), Error> {
        let mut inner = self.lock();
        if let Some(end) = inner.ended_after(user, moment) {
            return Err(end.error.clone());
        }
        let of_user = inner.users.entry(user.into()).or_default();
        if of_user.sessions.iter().all(|entry| entry.place.session != place.session) {
            let entry = Entry { place, instead_of: None, is_by_ticket: true, end: None };
            of_user.sessions.push(entry);
        }
        Ok(())
    }

    /// A session of a user has ended. The one that may open now.
    pub(crate) fn close(&self, user: &str, session: u64) -> Option<Place> {
        let mut inner = self.lock();
        let of_user = inner.users.get_mut(user)?;
        of_user.sessions.retain(|entry| entry.place.session != session);
        let is_free = of_user.sessions.iter().all(|entry| entry.is_by_ticket);
        let next = of_user.waiting.as_ref().filter(|_| is_free).map(|entry| entry.place);
        inner.tidy(user);
        next
    }

    /// A session of a user is there now. Why it is to end, if it is.
    pub(crate) fn moved(&self, user: &str, place: Place) -> Option<Arc<End>> {
        let mut inner = self.lock();
        let mut entries = inner.users.get_mut(user)?.sessions.iter_mut();
        let entry = entries.find(|entry| entry.place.session == place.session)?;
        entry.place = place;
        entry.end.clone()
    }

    /// Ends all sessions of a user, and those of which the hello is under way. `now` is the time
    /// since the node started.
    pub(crate) fn end(&self, user: &str, end: End, now: Duration) -> Ending {
        let end = Arc::new(end);
        let mut inner = self.lock();
        let moment = self.ends.fetch_add(1, Ordering::SeqCst) + 1;
        while inner.lately.front().is_some_and(|of| of.at + self.hello_max < now) {
            inner.lately.pop_front();
        }
        inner.lately.push_back(Lately {
            user: user.into(),
            moment,
            at: now,
            end: Arc::clone(&end),
        });
        let Some(of_user) = inner.users.get_mut(user) else { return Vec::new() };
        let all = of_user.sessions.iter_mut().chain(&mut of_user.waiting);
        let mut ending = Ending::new();
        for entry in all.filter(|entry| entry.end.is_none()) {
            entry.end = Some(Arc::clone(&end));
            ending.push((entry.place, Arc::clone(&end)));
        }
        inner.note_over(&ending);
        ending
    }

    /// Why the session with this number was ended, if it was ended here and is one of the last.
    pub(crate) fn why_over(&self, session: u64) -> Option<Arc<End>> {
        self.lock().over.get(&session).cloned()
    }

    /// The locations of the sessions of a user.
    pub(crate) fn places(&self, user: &str) -> Vec<Place> {
        let inner = self.lock();
        let sessions = inner.users.get(user).map(|of_user| &of_user.sessions);
        sessions.into_iter().flatten().map(|entry| entry.place).collect()
    }

    /// Returns the number of users and the number of sessions.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> (usize, usize) {
        let inner = self.lock();
        let sessions = inner.users.values().map(|of_user| of_user.sessions.len()).sum();
        (inner.users.len(), sessions)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here can panic half-way through a change.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Why the sessions of a user were ended after this moment, if they were.
    fn ended_after(&self, user: &str, moment: u64) -> Option<&End> {
        let is_it = |of: &&Lately| *of.user == *user && of.moment > moment;
        self.lately.iter().find(is_it).map(|lately| &*lately.end)
    }

    fn note_over(&mut self, ending: &Ending) {
        for (place, end) in ending {
            self.over.insert(place.session, Arc::clone(end));
            self.over_since.push_back(place.session);
            if self.over_since.len() > OVER_MAX
                && let Some(oldest) = self.over_since.pop_front()
            {
                self.over.remove(&oldest);
            }
        }
    }

    /// Forgets a user without sessions.
    fn tidy(&mut self, user: &str) {
        if self.users.get(user).is_some_and(|of| of.sessions.is_empty() && of.waiting.is_none()) {
            self.users.remove(user);
            shrink_map(&mut self.users);
        }
    }
}
