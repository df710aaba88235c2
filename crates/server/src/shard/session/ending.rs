//! Sessions that end, or wait to open, because of their user.

use std::sync::Arc;

use playfield_room::Error;

use crate::shard::keys::ConnectionKey;
use crate::shard::mail::resume::Opening;
use crate::shard::mail::user::UserMail;
use crate::shard::session::Session;
use crate::shard::session::greeting::Greeting;
use crate::shard::session::outlet::Outlet;
use crate::users::{End, Ending, Opened, Place};

impl Outlet<'_> {
    /// A session with this number is about to open. What it is opened with, if that is now; if not,
    /// the client waits, or is refused.
    pub(super) fn enter_users(
        &mut self,
        key: ConnectionKey,
        opening: Opening,
        session: u64,
    ) -> Option<Opening> {
        let Some(user) = &opening.identity.user else { return Some(opening) };
        let place = self.place_of(key, session);
        match self.env.node.users.open(user, place, &opening.greeted) {
            Opened::Refused(error) => {
                self.refuse_hello(key, &error);
                None
            }
            Opened::Granted { is_now, ending } => {
                self.post_endings(ending);
                if is_now {
                    return Some(opening);
                }
                self.keep_greeting(key, Greeting::waiting(opening, session));
                None
            }
        }
    }

    /// A session has ended: another of its user may open.
    pub(in crate::shard) fn leave_users(&mut self, session: &Session) {
        let node = Arc::clone(&self.env.node);
        for user in users_of(session) {
            if let Some(place) = node.users.close(user, session.number) {
                let mail = UserMail::Open(place, user.into());
                self.sessions.user_posts.push_back((place.shard, mail));
            }
        }
    }

    /// A session is about to join a room by a ticket of this user, which was read at this
    /// [moment](crate::users::Users::moment).
    ///
    /// # Errors
    /// If the user's sessions were ended since.
    pub(in crate::shard) fn join_users(
        &mut self,
        key: ConnectionKey,
        user: &str,
        moment: u64,
    ) -> Result<(), Error> {
        let Some(session) = self.sessions.get_mut(key) else { return Ok(()) };
        if users_of(session).any(|known| known == user) {
            return Ok(());
        }
        let place = Place { shard: self.env.shard, connection: key, session: session.number };
        self.env.node.users.join_by_ticket(user, place, moment)?;
        session.extras_mut().ticket_users.push(user.into());
        Ok(())
    }

    /// A session has come from another shard. If it was to end on the way, it does so now.
    pub(in crate::shard) fn note_place(&mut self, key: ConnectionKey) {
        let Some(session) = self.sessions.get(key) else { return };
        let place = self.place_of(key, session.number);
        let users = &self.env.node.users;
        if let Some(end) = users_of(session).filter_map(|user| users.moved(user, place)).last() {
            self.post_endings(vec![(place, end)]);
        }
    }

    /// Has these sessions ended, once the shard is done with what it does.
    fn post_endings(&mut self, ending: Ending) {
        let mail = |(place, end): (Place, _)| (place.shard, UserMail::End(place, end));
        self.sessions.user_posts.extend(ending.into_iter().map(mail));
    }

    pub(in crate::shard) fn end_by_force(&mut self, place: Place, end: &End) {
        let key = place.connection;
        let error = &end.error;
        if self.sessions.number(key) == Some(place.session) {
            self.end_session(key, end.why);
            return self.goodbye(key, error.code(), error.text(), None);
        }
        let waits = self.sessions.greetings.get(&key).and_then(Greeting::waits_for);
        if let Some((user, session)) = waits
            && session == place.session
        {
            self.env.node.users.give_up(user, place);
            self.refuse_hello(key, error);
        }
    }

    pub(in crate::shard) fn open_waiting(&mut self, place: Place, user: &str) {
        let key = place.connection;
        let is_it = |of: &Greeting| of.waits_for() == Some((user, place.session));
        let greeting = self.take_greeting_if(key, is_it);
        let users = &self.env.node.users;
        let Some((opening, session)) = greeting.and_then(|of| of.into_opening()) else {
            // Its client has gone.
            return users.give_up(user, place);
        };
        if users.open_waiting(user, place) {
            self.begin_session(key, opening, session);
            self.links.resumed.push(key);
        } else {
            // It is to end, or another has opened a session first, and it hears of it.
            self.keep_greeting(key, Greeting::waiting(opening, session));
        }
    }

    fn place_of(&self, key: ConnectionKey, session: u64) -> Place {
        Place { shard: self.env.shard, connection: key, session }
    }
}

/// The user of a session, and those by whose tickets it has joined rooms.
fn users_of(session: &Session) -> impl Iterator<Item = &str> {
    let by_ticket = session.extras().map_or(&[][..], |extras| &extras.ticket_users);
    session.user().into_iter().chain(by_ticket.iter().map(|user| &**user))
}
