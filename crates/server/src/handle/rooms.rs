//! Rooms by a handle: created, found, listed, and seats reserved in them.

use std::time::Duration;

use playfield_room::{
    Creator, Error, Founder, NewRoom, Reservation, Result, Room, RoomBuilder, RoomSummary, SeatFor,
};
use playfield_state::{Data, Format};
use playfield_wire::ErrorCode;

use super::{NodeHandle, Pending, Waiting};
use crate::asks::Answer;
use crate::directory::Listing;
use crate::founding::Founding;
use crate::shard::mail::ShardMail;
use crate::shard::mail::join::{RETRIES, RoomSpec};
use crate::shard::work;

/// The number of searches for the room with a key: it may be about to end.
pub(crate) const SEARCHES: u8 = 1 + RETRIES;

impl NodeHandle {
    /// Creates a room. The output of the returned future is its id, once the room is open: its save
    /// is loaded, and what its `create` waits for is done. [`new_room`](Self::new_room) says more
    /// about it than its options.
    ///
    /// # Errors
    /// The room's refusal, `timeout` if it does not open within its `join_wait_ms`, or as
    /// [`RoomBuilder::create`].
    pub fn create_room<R: Room>(&self, options: &R::Options) -> Pending<String> {
        self.new_room::<R>(options).create()
    }

    /// Prepares to create a room, with a key or with reserved seats. It may be of a type that is
    /// closed to creation by clients.
    pub fn new_room<R: Room>(&self, options: &R::Options) -> RoomBuilder<AtNode> {
        RoomBuilder::new::<R>(AtNode { node: self.clone(), searches: 0 }, Creator::Node, options)
    }

    /// The id of the room that has this key, once it is open. If there is none, it is created with
    /// these options. If the room with the key is about to end, this waits for that, and creates
    /// the next one, as joins by key do. The room is of the first type that was added with `R`.
    ///
    /// # Errors
    /// As [`create_room`](Self::create_room), except `room_exists`. `timeout` if the room with the
    /// key does not end within its `closing_ms`, or does not open within its `join_wait_ms`;
    /// `room_closed` if each room that is found closes before it opens.
    pub fn find_or_create<R: Room>(&self, key: &str, options: &R::Options) -> Pending<String> {
        let founder = AtNode { node: self.clone(), searches: SEARCHES };
        RoomBuilder::new::<R>(founder, Creator::Node, options).key(key).create()
    }

    /// The id of the room of a type that has this key or code; `None` if there is none, or if it is
    /// about to end.
    #[must_use]
    pub fn find(&self, room_type: &str, key: &str) -> Option<String> {
        let room_type = self.node.room_type(room_type)?;
        self.node.directory.find_by_key(room_type, key).map(|id| id.to_string())
    }

    /// Up to `limit` rooms of one type or of all, whose metadata has all pairs in `filter`, oldest
    /// first. Private rooms are not among them.
    #[must_use]
    pub fn list(
        &self,
        room_type: Option<&str>,
        filter: &[(&str, &str)],
        limit: usize,
    ) -> Vec<ListedRoom> {
        let room_type = match room_type {
            None => None,
            Some(name) => match self.node.room_type(name) {
                Some(room_type) => Some(room_type),
                None => return Vec::new(),
            },
        };
        let listed = |Listing { id, room_type, summary }: Listing| {
            let room_type = self.node.room_types[usize::from(room_type)].name.clone();
            ListedRoom { id: id.to_string(), room_type, summary }
        };
        self.node.directory.list(room_type, filter, limit).into_iter().map(listed).collect()
    }

    /// Reserves a seat in a room for someone, for so long: see
    /// [`Context::reserve`](playfield_room::Context::reserve).
    ///
    /// # Errors
    /// `room_full` if no seat is free, `limit` beyond
    /// [`RESERVATION_MAX`](playfield_room::RESERVATION_MAX), `room_closed` if the room ends, or as
    /// [`ask`](Self::ask).
    pub fn reserve(
        &self,
        room_id: &str,
        who: impl Into<SeatFor>,
        wait: Duration,
    ) -> Pending<Reservation> {
        let who = who.into();
        let begun =
            self.begin(room_id, |room, answers| ShardMail::Reserve { room, who, wait, answers });
        Pending::new(reservation, begun)
    }

    /// The id of a new room, once it is open; or of the one with its key, which is looked for so
    /// often.
    pub(crate) fn found_for(
        &self,
        spec: RoomSpec,
        creator: Creator,
        searches: u8,
    ) -> Pending<String> {
        let mut random = [0; 10];
        getrandom::fill(&mut random).expect("the system's random source worked at the start");
        let id = self.node.room_id(random);
        let founding = Founding::new(id, spec, creator, work::Founder::Program, searches);
        let placed = founding.placed(&self.node, 0);
        Pending::new(read_id, placed.and_then(|(shard, of)| self.await_room(shard, of)))
    }

    fn found(&self, new: Result<NewRoom>, searches: u8) -> Result<Waiting> {
        let (shard, founding) =
            Founding::register(&self.node, 0, new?, work::Founder::Program, searches)?;
        self.await_room(shard, founding)
    }

    fn await_room(&self, shard: u16, mut founding: Founding) -> Result<Waiting> {
        let (id, is_new) = (founding.id, founding.found.is_none());
        let settings = &self.node.room_types[usize::from(founding.spec.room_type)].settings;
        let closing_ms = if founding.searches > 0 { settings.closing_ms } else { 0 };
        let more = Duration::from_millis(settings.join_wait_ms.saturating_add(closing_ms));
        let waiting = self.wait_for(shard, more).and_then(|waiting| {
            founding.answers = Some(waiting.number);
            self.post(shard, ShardMail::Found(Box::new(founding)))?;
            Ok(waiting)
        });
        if waiting.is_err() && is_new {
            self.node.remove_room(id);
        }
        waiting
    }
}

/// A room as [`NodeHandle::list`] shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRoom {
    /// Its id.
    pub id: String,
    /// The name of its type.
    pub room_type: String,
    /// Its players, its key, its metadata.
    pub summary: RoomSummary,
}

/// The node, as the creator of a room: see [`NodeHandle::new_room`].
#[derive(Clone, Debug)]
pub struct AtNode {
    node: NodeHandle,
    /// The number of times that another room with the key is looked for, if one would do.
    searches: u8,
}

impl Founder for AtNode {
    type Founded = Pending<String>;

    fn new_id(&mut self) -> String {
        let mut random = [0; 10];
        getrandom::fill(&mut random).expect("the system's random source worked at the start");
        self.node.node.room_id(random).to_string()
    }

    fn found(self, new: Result<NewRoom>) -> Pending<String> {
        Pending::new(read_id, self.node.found(new, self.searches))
    }
}

/// The id of a room that was created.
fn read_id(answer: Answer) -> Result<String> {
    String::from_utf8(answer?).map_err(unreadable)
}

fn reservation(answer: Answer) -> Result<Reservation> {
    Reservation::read(Format::Packed, &answer?).map_err(unreadable)
}

fn unreadable(error: impl ToString) -> Error {
    Error::new(ErrorCode::Internal, error.to_string())
}
