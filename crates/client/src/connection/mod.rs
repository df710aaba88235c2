//! A connection on tokio: one task per connection owns its socket and drives the session; handles
//! send it commands.

mod command;
mod commands;
mod connect;
mod dial;
mod following;
mod nodes;
mod reconnect;
mod registry;
mod requests;
mod status;
mod stream;
mod task;
mod token;

use std::sync::Arc;
use std::time::Duration;

use playfield_wire::schema::RoomSchema;
use playfield_wire::server::RoomInfo;

pub use connect::{Connect, connect};
pub use status::{ConnectionEvent, ConnectionEvents};

use crate::Error;
use crate::queue::QueueLimits;
use crate::session::{Event, Session};
use command::{Answer, Signal};
pub(crate) use command::{Command, Entered, Line, Obligation, Subscription};
pub(crate) use following::Copies;
use nodes::Nodes;
pub(crate) use requests::{asked, reply_of};
pub(crate) use task::Task;

/// A connection to a node, made by [`connect`].
///
/// A handle: clones refer to the same connection. When the last of them and of its
/// [rooms](crate::Room) is dropped, the client says goodbye.
///
/// If the connection is lost, the client [reconnects by itself](Connect::reconnect_timeout), and
/// the session goes on: rooms stay, events and replies from the time between are delivered, and
/// what was sent is carried out once. [`events`](Self::events) reports it.
///
/// If the node is in a cluster, a room may be at another node. [`join`](Self::join) and the like
/// then connect to that node, with the same settings, and close that connection 10 seconds after
/// its last room. It is [`Room::connection`](crate::Room::connection). Channels, lists and the
/// device stay with this one.
///
/// Commands go through a bounded queue; a method waits while it is full,
/// which it soon is while the connection is lost. All futures may be dropped at any time. Unless
/// the method says otherwise, a command that was queued is still carried out.
///
/// ```no_run
/// # async fn example() -> Result<(), playfield_client::Error> {
/// let connection = playfield_client::connect("tcp://127.0.0.1:7350").name("Ann").await?;
/// for room in connection.list(Some("counter"), &[], 10).await? {
///     println!("{}: {} of {} players", room.id, room.players, room.capacity);
/// }
/// connection.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Connection {
    pub(crate) line: Line,
    pub(crate) queue_limits: QueueLimits,
    /// The connections to other nodes.
    nodes: Arc<Nodes>,
    /// The first connection, if this is one to another node: it lasts as long as this.
    first: Option<Line>,
}

impl Connection {
    /// Lists rooms: of one type or of all, whose metadata has all pairs in `filter`, and at most
    /// `limit`; 0 means the node's limit.
    ///
    /// # Errors
    /// If the node refuses, or the connection has ended.
    pub async fn list(
        &self,
        room_type: Option<&str>,
        filter: &[(&str, &str)],
        limit: u32,
    ) -> Result<Vec<RoomInfo<'static>>, Error> {
        let own = |text: &str| text.to_owned();
        let room_type = room_type.map(own);
        let filter: Vec<_> = filter.iter().map(|&(name, value)| (own(name), own(value))).collect();
        let list = move |client: &mut Session| {
            let filter: Vec<_> = filter.iter().map(|(name, value)| (&**name, &**value)).collect();
            client.list(room_type.as_deref(), &filter, limit)
        };
        let read = |event: Event<'_>| match event {
            Event::Listed(listed) => Some(listed.into_owned().rooms),
            _ => None,
        };
        self.line.request(None, list, read).await
    }

    /// The node's schema of a room type: the types of its state, options, messages and events.
    ///
    /// # Errors
    /// If the node refuses, the schema can't be read, or the connection has ended.
    pub async fn schema(&self, room_type: &str) -> Result<RoomSchema, Error> {
        let room_type = room_type.to_owned();
        let read = |event: Event<'_>| match event {
            Event::Schema(schema) => Some(RoomSchema::from_json(&schema.schema)),
            _ => None,
        };
        let schema = self.line.request(None, move |client| client.schema(&room_type), read).await?;
        schema.map_err(Error::schema)
    }

    /// Reports what happens to the connection from now on: when it is lost, and how it is restored.
    #[must_use]
    pub fn events(&self) -> ConnectionEvents {
        self.line.status.events()
    }

    /// Returns whether the connection is there: not lost, and not at its end.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.line.status.is_connected()
    }

    /// The network has changed, or this device was asleep: the connection may be dead. The client
    /// checks it, and connects again if the node does not answer within 5 seconds. It finds out by
    /// itself too, but later: within two heartbeats.
    pub fn suspect(&self) {
        self.line.handles.put(Signal::Suspect);
    }

    /// The shortest round trip of the last eight pings. The client sends the first right after the
    /// node's welcome, and others to keep the connection alive. `None` until the first answer on the
    /// present connection; see [`ping`](Self::ping).
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.line.status.round_trip()
    }

    /// The node's clock now: how long ago the node started, off by at most half the [round
    /// trip](Self::round_trip). `None` until the first answer to a ping on the present connection.
    #[must_use]
    pub fn node_time(&self) -> Option<Duration> {
        self.line.status.node_time()
    }

    /// Measures the round trip to the node.
    ///
    /// # Errors
    /// If 64 pings wait for an answer, or the connection has ended.
    pub async fn ping(&self) -> Result<Duration, Error> {
        let ping = |task: &mut Task, answer: Answer<Duration>| match task.client.ping() {
            Ok(nonce) => drop(task.registry.pings.insert(nonce, answer)),
            Err(error) => drop(answer.send(Err(error.into()))),
        };
        self.line.ask(None, ping).await
    }

    /// Says goodbye, and waits until the node has answered, and on WebSocket has closed the
    /// transport, but at most 5 seconds. All handles of the connection and its rooms fail after
    /// that, also of rooms at other nodes that were joined by it.
    pub async fn close(self) {
        let is_first = self.first.is_none();
        if is_first {
            self.nodes.close();
        }
        self.line.close().await;
        if is_first {
            self.nodes.until_closed().await;
        }
    }
}
