//! Subscriptions that the program ends.

use playfield_room::Error;
use playfield_wire::ErrorCode;
use playfield_wire::server::{self, ServerMessage};

use crate::shard::keys::ConnectionKey;
use crate::shard::mail::channel::{Unsubscribe, Whose};
use crate::shard::session::Session;
use crate::shard::session::outlet::Outlet;
use crate::shard::subscriptions::Stage;
use crate::shard::topics::Topics;
use crate::users::Place;

impl Topics {
    /// Ends subscriptions of sessions of this shard.
    pub(in crate::shard) fn end_subscriptions_of(
        &mut self,
        out: &mut Outlet<'_>,
        what: &Unsubscribe,
    ) {
        let error = Error::new(ErrorCode::Kicked, what.text.clone());
        for key in out.keys_of(&what.whose) {
            let is_over = |_: &Session, name: &str, _| what.channels.matches(name);
            self.end_subscriptions(out, key, is_over, &error);
        }
    }

    /// Ends those subscriptions of a session that the rules no longer allow.
    pub(in crate::shard) fn recheck_access(&mut self, out: &mut Outlet<'_>, place: Place) {
        let node = std::sync::Arc::clone(&out.env.node);
        let text = "the session may no longer subscribe to this channel";
        let error = Error::new(ErrorCode::Forbidden, text);
        for key in out.keys_of(&Whose::At(vec![place])) {
            let is_over = |session: &Session, name: &str, wants_presence: bool| {
                let rule = node.channel_rule(name);
                !rule.is_ok_and(|rule| {
                    session.asks(|asker| {
                        rule.may_subscribe(asker, name)
                            && (!wants_presence || rule.may_see_members(asker, name))
                    })
                })
            };
            self.end_subscriptions(out, key, is_over, &error);
        }
    }
}

impl Outlet<'_> {
    /// The connections of those of these sessions that are on this shard.
    fn keys_of(&self, whose: &Whose) -> Vec<ConnectionKey> {
        let sessions = &self.sessions;
        let number = |key: ConnectionKey| sessions.number(key);
        match whose {
            Whose::At(places) => {
                let here = places.iter().filter(|place| place.shard == self.env.shard);
                let there = |place: &&Place| number(place.connection) == Some(place.session);
                here.filter(there).map(|place| place.connection).collect()
            }
            // Only sessions that can be resumed are found by their number. Few are asked for.
            Whose::Session(session) => {
                sessions.keys().filter(|key| number(*key) == Some(*session)).collect()
            }
        }
    }
}

impl Topics {
    /// Ends the subscriptions of a session for which this is so, given the channel's name and
    /// whether the session wants to know its members.
    fn end_subscriptions(
        &mut self,
        out: &mut Outlet<'_>,
        key: ConnectionKey,
        is_over: impl Fn(&Session, &str, bool) -> bool,
        error: &Error,
    ) {
        let (topics, sessions) = (&mut *self, &mut *out.sessions);
        let channels = &mut topics.channels;
        let Some(session) = sessions.get_mut(key) else { return };
        let number = session.number;
        let wants_presence = |stage: &Stage| match *stage {
            Stage::Pending { wants_presence, .. } => wants_presence,
            Stage::Live { channel, place } => {
                let subscribers = channels.local.get(&channel).map(|local| &local.subscribers);
                let subscriber = subscribers.and_then(|subscribers| subscribers.get(place));
                subscriber.is_some_and(|subscriber| subscriber.wants_presence)
            }
            Stage::Away { .. } => false,
        };
        // The rules are asked about the session, so nothing of it changes meanwhile.
        let Some(own) = session.channels() else { return };
        let mut subscriptions = std::mem::take(&mut own.subscriptions);
        let over: Vec<_> = subscriptions
            .extract_if(.., |of| is_over(session, &of.name, wants_presence(&of.stage)))
            .collect();
        if let Some(own) = session.channels() {
            own.subscriptions = subscriptions;
        }
        for subscription in over {
            self.leave_channel(out, number, &subscription.name, &subscription.stage, true);
            match subscription.stage {
                Stage::Pending { request, .. } => {
                    out.refuse_request(key, Some(request), error);
                }
                Stage::Live { channel, .. } => {
                    let (code, text) = (error.code(), error.text().into());
                    out.send(
                        key,
                        &ServerMessage::Unsubscribed(server::Unsubscribed { channel, code, text }),
                    );
                }
                // Its client is away. When it is back, it subscribes again, if it may.
                Stage::Away { .. } => {}
            }
        }
    }
}
