//! The client on tokio: one task per connection owns its socket, and handles talk to it.

mod changes;
mod command;
mod connect;
mod copy;
mod dispatch;
mod joined_room;
mod room;
mod schema_requests;
mod schemas;
mod shared;
mod task;

use std::sync::Arc;
use std::time::Duration;

use playfield_wire::Format;
use playfield_wire::schema::RoomSchema;
use playfield_wire::server::RoomInfo;

pub use changes::{Changes, Subscription};
pub use connect::{Connect, connect};
pub use room::{Kind, Room, RoomEvent, StateRef};

use crate::Error;
pub(crate) use command::Door;
pub(crate) use schemas::Build;

use command::{Command, Enter, Line, Query};
use shared::Shared;

/// A connection to a node. Made by [`connect`].
///
/// It is a handle: clones are the same connection. When the last of them and of its rooms is
/// dropped, the client says goodbye.
///
/// Commands go through a bounded queue; a method whose command finds it full waits for a place. A
/// method's future that is dropped leaves the connection in order. Unless the method says
/// otherwise, what it asked for is then done all the same, if it was queued already.
#[derive(Clone, Debug)]
pub struct Connection {
    line: Line,
    events_max: usize,
}

impl Connection {
    /// The format of everything that is said.
    #[must_use]
    pub fn format(&self) -> Format {
        self.line.format
    }

    /// Which rooms there are: of one type or of all, whose metadata is equal in all of `filter`,
    /// and no more than `limit`; 0 leaves it to the node.
    ///
    /// # Errors
    /// If the node refuses, or the connection is over.
    pub async fn list(
        &self,
        room_type: Option<&str>,
        filter: &[(&str, &str)],
        limit: u32,
    ) -> Result<Vec<RoomInfo<'static>>, Error> {
        let filter =
            filter.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let query = Query { room_type: room_type.map(str::to_owned), filter, limit };
        self.line.ask(|answer| Command::List { query, answer }).await
    }

    /// The schema of a room type, as the node has it: what its state, options, messages and events
    /// are made of.
    ///
    /// # Errors
    /// If the node refuses, tells what is no schema, or the connection is over.
    pub async fn schema(&self, room_type: &str) -> Result<RoomSchema, Error> {
        let room_type = room_type.to_owned();
        self.line.ask(|answer| Command::Schema { room_type, answer }).await
    }

    /// How long a message to the node and its answer take.
    ///
    /// # Errors
    /// If 64 pings are on their way, or the connection is over.
    pub async fn ping(&self) -> Result<Duration, Error> {
        self.line.ask(|answer| Command::Ping { answer }).await
    }

    /// Says goodbye, and waits until the connection is over: until the node has answered, and on
    /// WebSocket has closed the transport, or 5 seconds. All handles of the connection and its
    /// rooms are of no use then.
    pub async fn close(self) {
        // That it is closed already is what was wanted.
        let _ = self.line.tell(Command::Close).await;
        self.line.until_closed().await;
    }

    /// Enters a room, and waits for its first snapshot. With a build, only if the node's schema has
    /// grown from it.
    pub(crate) async fn enter<R: Kind>(
        &self,
        door: Door,
        build: Option<Build>,
    ) -> Result<Room<R>, Error> {
        let shared = Arc::new(Shared::new(R::mirror(self.format()), self.events_max));
        let sink = Arc::clone(&shared);
        let entered =
            self.line.ask(|answer| Command::Enter(Enter { door, build, sink, answer })).await?;
        Ok(Room::new(self.line.clone(), shared, entered))
    }
}
