//! Connections between two shards.

use crate::shard::connection::Connection;
use crate::shard::mail::join::Purpose;
use crate::shard::session::Session;

/// A connection between two shards.
pub(crate) struct Moving {
    pub(crate) connection: Box<Connection>,
    pub(crate) session: Option<Box<Session>>,
    pub(crate) purpose: Purpose,
}
