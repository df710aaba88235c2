//! Mail about sessions of users.

use std::sync::Arc;

use crate::shard::mail::channel::Unsubscribe;
use crate::users::{End, Place};

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
