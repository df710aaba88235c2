//! Users, from outside the node's rooms: what ends their sessions and subscriptions.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use playfield_room::{Error, Result};
use playfield_wire::ErrorCode;

use super::NodeHandle;
use crate::asks;
use crate::channel::Pattern;
use crate::shard::mail::ShardMail;
use crate::shard::mail::channel::Unsubscribe;
use crate::shard::mail::channel::Whose;
use crate::shard::mail::user::UserMail;
use crate::users::End;

/// The sessions whose subscriptions end: see [`NodeHandle::unsubscribe`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subscriber<'a> {
    /// All sessions of a user.
    User(&'a str),
    /// The session with this number, which members of a channel see.
    Session(u64),
}

impl NodeHandle {
    /// Ends all sessions of a user: those that are connected, those that are away, and those whose
    /// hello is under way. How many there are.
    ///
    /// Their clients are sent `goodbye` with the code `kicked` and this text, and do not connect
    /// again by themselves. One that is away hears it when it comes back for its session. Rooms are
    /// told [`LeaveReason::Kicked`](playfield_room::LeaveReason::Kicked). Sessions that have joined
    /// a room by a ticket of the user end too.
    ///
    /// The user may open a new session at once. To keep one out, refuse them from now on, and call
    /// this after that: see [`Server::admit`](crate::Server::admit).
    ///
    /// This returns at once; the shards do it in their next turns.
    ///
    /// # Errors
    /// `shutting_down` after the node's end.
    pub fn end_sessions(&self, user: &str, why: impl Into<String>) -> Result<usize> {
        self.check_running()?;
        let ending = self.node.users.end(user, End::kicked(why.into()), self.shared.clock.now());
        let count = ending.len();
        for (place, end) in ending {
            self.inform(place.shard, UserMail::End(place, end));
        }
        Ok(count)
    }

    /// Returns the number of sessions of a user, including those that are away.
    #[must_use]
    pub fn sessions_of(&self, user: &str) -> usize {
        self.node.users.places(user).len()
    }

    /// Asks the rules of channels again about all that a user's sessions subscribe to, and ends the
    /// subscriptions that they no longer allow: clients are sent `unsubscribed` with the code
    /// `forbidden`. Otherwise a rule is asked once, when a client subscribes. Returns at once.
    ///
    /// Claims are those of the session. If a token says otherwise now, [end](Self::end_sessions)
    /// the sessions.
    ///
    /// # Errors
    /// `shutting_down` after the node's end.
    pub fn recheck_access(&self, user: &str) -> Result<()> {
        self.check_running()?;
        for place in self.node.users.places(user) {
            self.inform(place.shard, UserMail::Recheck(place));
        }
        Ok(())
    }

    /// Ends subscriptions to a channel, or to all whose names match a [`Pattern`]; in it, `{user}`
    /// is any segment. Clients are sent `unsubscribed` with the code `kicked` and this text, and do
    /// not subscribe again by themselves. Returns at once.
    ///
    /// A client that subscribes again is asked about as any other: let the rule refuse it, before
    /// this is called.
    ///
    /// ```no_run
    /// # use playfield_server::{NodeHandle, Subscriber};
    /// # fn mute(node: &NodeHandle, user: &str) -> Result<(), playfield_room::Error> {
    /// node.unsubscribe(Subscriber::User(user), "chat:*", "you are muted")
    /// # }
    /// ```
    ///
    /// # Errors
    /// `refused` if the text is not a pattern, `shutting_down` after the node's end.
    pub fn unsubscribe(
        &self,
        who: Subscriber<'_>,
        channels: &str,
        why: impl Into<String>,
    ) -> Result<()> {
        self.check_running()?;
        let channels = Pattern::new(channels)
            .map_err(|error| Error::new(ErrorCode::Refused, error.to_string()))?;
        let whose = match who {
            Subscriber::User(user) => Whose::At(self.node.users.places(user)),
            Subscriber::Session(session) => Whose::Session(session),
        };
        let what = Arc::new(Unsubscribe { whose, channels, text: why.into() });
        for shard in 0..self.node.shards {
            self.inform(shard as u16, UserMail::Unsubscribe(Arc::clone(&what)));
        }
        Ok(())
    }

    fn check_running(&self) -> Result<()> {
        if self.node.asks.has_ended() { Err(asks::ended()) } else { Ok(()) }
    }

    /// Informs a shard, however full its mailbox is: few do this, and nobody else will.
    fn inform(&self, shard: u16, mail: UserMail) {
        let index = usize::from(shard);
        if !self.published[index].pulse.failed.load(Ordering::Relaxed) {
            self.shared.mailboxes[index].push_promised(ShardMail::User(mail));
        }
    }
}
