//! Sessions that end, or wait to open, because of their user.

use std::sync::Arc;

use playfield_room::Error;

use crate::shard::Shard;
use crate::shard::channels::Unsubscribe;
use crate::shard::keys::ConnectionKey;
use crate::shard::mail::ShardMail;
use crate::shard::session::Session;
use crate::shard::session::greeting::Greeting;
use crate::shard::session::hello::Opening;
use crate::users::{End, Ending, Opened, Place};

/// Messages to shards about sessions of users.
pub(crate) enum UserMail {
    /// A session is to end, or does not open.
    End(Place, Arc<End>),
    /// A session of this user may open now: the others have ended.
    Open(Place, Box<str>),
    /// The rules of channels are to be asked again about what a session subscribes to.
    Recheck(Place),
    /// Subscriptions of sessions are to end.
    Unsubscribe(Arc<Unsubscribe>),
}

impl Shard {
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
        match self.delivery.node.users.open(user, place, &opening.greeted) {
            Opened::Refused(error) => {
                self.refuse_hello(key, &error);
                None
            }
            Opened::Granted { is_now, ending } => {
                self.post_endings(ending);
                if is_now {
                    return Some(opening);
                }
                if let Some(connection) = self.delivery.connections.get_mut(key) {
                    connection.greeting = Some(Box::new(Greeting::waiting(opening, session)));
                }
                None
            }
        }
    }

    /// A session has ended: another of its user may open.
    pub(in crate::shard) fn leave_users(&mut self, session: &Session) {
        let node = Arc::clone(&self.delivery.node);
        for user in users_of(session) {
            if let Some(place) = node.users.close(user, session.number) {
                let mail = UserMail::Open(place, user.into());
                self.user_posts.push_back((place.shard, mail));
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
        let Some(session) = self.delivery.connections.session_mut(key) else { return Ok(()) };
        if users_of(session).any(|known| known == user) {
            return Ok(());
        }
        let place = Place { shard: self.delivery.shard, connection: key, session: session.number };
        self.delivery.node.users.join_by_ticket(user, place, moment)?;
        session.extras_mut().ticket_users.push(user.into());
        Ok(())
    }

    /// A session has come from another shard. If it was to end on the way, it does so now.
    pub(in crate::shard) fn note_place(&mut self, key: ConnectionKey) {
        let connection = self.delivery.connections.get(key);
        let Some(session) = connection.and_then(|of| of.session.as_deref()) else { return };
        let place = self.place_of(key, session.number);
        let users = &self.delivery.node.users;
        if let Some(end) = users_of(session).filter_map(|user| users.moved(user, place)).last() {
            self.post_endings(vec![(place, end)]);
        }
    }

    /// Has these sessions ended, once the shard is done with what it does.
    fn post_endings(&mut self, ending: Ending) {
        let mail = |(place, end): (Place, _)| (place.shard, UserMail::End(place, end));
        self.user_posts.extend(ending.into_iter().map(mail));
    }

    /// Carries out what concerns sessions of this shard, and passes on the rest.
    pub(in crate::shard) fn deliver_user_mail(&mut self) {
        while let Some((shard, mail)) = self.user_posts.pop_front() {
            if shard == self.delivery.shard {
                self.user_mail(mail);
            } else {
                self.delivery.post(shard, ShardMail::User(mail));
            }
        }
    }

    pub(in crate::shard) fn user_mail(&mut self, mail: UserMail) {
        match mail {
            UserMail::End(place, end) => self.end_by_force(place, &end),
            UserMail::Open(place, user) => self.open_waiting(place, &user),
            UserMail::Recheck(place) => self.recheck_access(place),
            UserMail::Unsubscribe(what) => self.end_subscriptions(&what),
        }
    }

    fn end_by_force(&mut self, place: Place, end: &End) {
        let key = place.connection;
        let Some(connection) = self.delivery.connections.get_mut(key) else { return };
        let error = &end.error;
        if connection.session.as_deref().is_some_and(|of| of.number == place.session) {
            self.end_session(key, end.why);
            return self.goodbye(key, error.code(), error.text(), None);
        }
        let waits = connection.greeting.as_deref().and_then(Greeting::waits_for);
        if let Some((user, session)) = waits
            && session == place.session
        {
            self.delivery.node.users.give_up(user, place);
            self.refuse_hello(key, error);
        }
    }

    fn open_waiting(&mut self, place: Place, user: &str) {
        let key = place.connection;
        let users = &self.delivery.node.users;
        let connection = self.delivery.connections.get_mut(key);
        let greeting = connection.and_then(|connection| {
            let is_it = |of: &mut Box<Greeting>| of.waits_for() == Some((user, place.session));
            connection.greeting.take_if(is_it)
        });
        let Some((opening, session)) = greeting.and_then(|of| of.into_opening()) else {
            // Its client has gone.
            return users.give_up(user, place);
        };
        if users.open_waiting(user, place) {
            self.begin_session(key, opening, session);
            self.resumed.push(key);
        } else if let Some(connection) = self.delivery.connections.get_mut(key) {
            // It is to end, or another has opened a session first, and it hears of it.
            connection.greeting = Some(Box::new(Greeting::waiting(opening, session)));
        }
    }

    fn place_of(&self, key: ConnectionKey, session: u64) -> Place {
        Place { shard: self.delivery.shard, connection: key, session }
    }
}

/// The user of a session, and those by whose tickets it has joined rooms.
fn users_of(session: &Session) -> impl Iterator<Item = &str> {
    let by_ticket = session.extras().map_or(&[][..], |extras| &extras.ticket_users);
    session.user().into_iter().chain(by_ticket.iter().map(|user| &**user))
}
