//! Other rooms: messages to them, new ones, and seats kept for players on the way.

use std::any::TypeId;
use std::sync::Arc;
use std::time::Duration;

use super::Context;
use crate::Message;
use crate::message::{AskId, AskOf};
use crate::{
    Creator, InRoom, InternalMessage, Mail, Reservation, Result, Room, RoomBuilder, SeatFor, Sender,
};

impl<'a, R> Context<'a, R> {
    /// The room that sent the message or request that is being handled in [`On`](crate::On); `None`
    /// if it comes from a timer, from background work or from outside the node's rooms, and in all
    /// other callbacks.
    pub fn sender(&self) -> Option<&Sender> {
        self.context.sender.as_deref()
    }

    /// Returns who had this room created: a player by `create` or `join_or_create`, another room,
    /// or the node.
    ///
    /// It is known in [`Room::create`](crate::Room::create) already. A player's number is not: they
    /// join after that, and [`Room::join`](crate::Room::join) may refuse them.
    ///
    /// ```
    /// # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
    /// # use playfield::prelude::*;
    /// # #[derive(State, Default)]
    /// # struct Lobby { host: String }
    /// #[room()]
    /// impl Room for Lobby {
    ///     fn create((): (), cx: &mut Context<Self>) -> Result<Self> {
    ///         let host = cx.creator().user().ok_or("guests cannot create lobbies")?.to_owned();
    ///         Ok(Self { host })
    ///     }
    /// }
    /// ```
    pub fn creator(&self) -> &Creator {
        &self.context.creator
    }

    /// Creates another room, and returns its id at once. Messages to it from now on follow its
    /// creation. [`new_room`](Self::new_room) says more about it than its options.
    ///
    /// # Errors
    /// As [`RoomBuilder::create`]. If the new room's own [`create`](crate::Room::create) refuses,
    /// that is logged, and requests to it are answered with `room_not_found`.
    pub fn create_room<N: Room>(&mut self, options: &N::Options) -> Result<String> {
        self.new_room::<N>(options).create()
    }

    /// Prepares to create another room, with a key or with reserved seats.
    ///
    /// ```
    /// # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
    /// # use std::time::Duration;
    /// # use playfield::prelude::*;
    /// # use playfield::{Reservation, sim::Sim};
    /// #[derive(State, Default)]
    /// struct Lobby {}
    ///
    /// #[derive(Message)]
    /// struct Play;
    ///
    /// /// The match is about to begin: join it with this.
    /// #[derive(Message)]
    /// struct Called(Reservation);
    ///
    /// #[room(messages(Play), events(Called))]
    /// impl Room for Lobby {}
    ///
    /// impl Handle<Play> for Lobby {
    ///     fn handle(&mut self, _: Play, _: &Player, cx: &mut Context<Self>) -> Result<()> {
    ///         let players: Vec<&Player> = cx.players().collect();
    ///         let mut duel = cx.new_room::<Duel>(&()).private();
    ///         let wait = Duration::from_secs(30);
    ///         let seats: Vec<_> = players.iter().map(|player| duel.reserve(*player, wait)).collect();
    ///         duel.create()?;
    ///         for (player, seat) in players.iter().zip(seats) {
    ///             cx.emit_to(player.id(), &Called(seat));
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// #[derive(State, Default)]
    /// struct Duel {}
    ///
    /// #[room(creation = server, capacity = 2)]
    /// impl Room for Duel {}
    ///
    /// let mut sim = Sim::<Lobby>::new(1);
    /// let ann = sim.join("Ann")?;
    /// sim.request(ann, Play)?;
    /// assert!(sim.created()[0].is::<Duel>());
    /// assert_eq!(sim.events::<Called>(ann).len(), 1);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn new_room<N: Room>(&mut self, options: &N::Options) -> RoomBuilder<InRoom<'_>> {
        let creator = Creator::Room(Arc::clone(&self.context.own));
        RoomBuilder::new::<N>(InRoom::new(self.context, self.out), creator, options)
    }

    /// The id of the room of type `N` that has this key; `None` if there is none, or if it is about
    /// to end. If `N` was added to the node under several names, it is the room of the first. A
    /// room that was found may end before a message arrives there: see [`ask`](Self::ask).
    ///
    /// ```
    /// # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
    /// # use playfield::prelude::*;
    /// # use playfield::sim::Sim;
    /// # #[derive(State, Default)]
    /// # struct Guild {}
    /// # #[room()]
    /// # impl Room for Guild {}
    /// #[derive(Message)]
    /// struct Won(u32);
    ///
    /// #[derive(State, Default)]
    /// struct Match {}
    ///
    /// #[room(messages(Won))]
    /// impl Room for Match {}
    ///
    /// impl Handle<Won> for Match {
    ///     fn handle(&mut self, won: Won, _: &Player, cx: &mut Context<Self>) -> Result<()> {
    ///         if let Some(guild) = cx.find::<Guild>("foxes")? {
    ///             cx.tell(&guild, &won);
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let mut sim = Sim::<Match>::new(1);
    /// sim.other_room::<Guild>("foxes", "G1");
    /// let ann = sim.join("Ann")?;
    /// sim.request(ann, Won(3))?;
    /// assert_eq!(sim.posted()[0].0, "G1");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `unknown_room_type` if the node has no rooms of this type; in [`Room::create`](crate::Room::create),
    /// always.
    pub fn find<N: Room>(&mut self, key: &str) -> Result<Option<String>> {
        if self.context.fork.is_some() {
            return Ok(None);
        }
        self.out.find(TypeId::of::<N>(), key)
    }

    /// Keeps a seat of this room for someone who is about to join. The seat counts against the
    /// capacity until it is taken or `wait` is over.
    ///
    /// While seats are reserved, a room without players stays open.
    ///
    /// # Errors
    /// `room_full` if no seat is free, `limit` beyond
    /// [`RESERVATION_MAX`](crate::RESERVATION_MAX), or `room_closed` if the room is ending.
    pub fn reserve(&mut self, who: impl Into<SeatFor>, wait: Duration) -> Result<Reservation> {
        self.context.reserve_seat(who.into(), wait)
    }

    /// Sends a message to another room, which receives it by [`On`](crate::On). Nothing happens if
    /// that room does not exist.
    pub fn tell<M: Message>(&mut self, room_id: &str, message: &M) {
        let from = Some(Arc::clone(&self.context.own));
        let room_id = self.reached(room_id);
        self.out.post(room_id, Mail::Told { from, message: InternalMessage::of(message) });
    }

    /// Sends a request to another room. The reply, or the error if there is none, arrives by
    /// [`Answer`](crate::Answer).
    ///
    /// # Panics
    /// At [`PENDING_MAX`](crate::PENDING_MAX) tasks and unanswered requests.
    pub fn ask<M: AskOf<R>>(&mut self, room_id: &str, message: &M) -> AskId {
        let ask = self.context.number_or_panic();
        self.context.asks.insert(ask, M::NAME);
        let from = Some(Arc::clone(&self.context.own));
        let room_id = self.reached(room_id);
        self.out.post(room_id, Mail::Asked { from, ask, message: InternalMessage::of(message) });
        AskId(ask)
    }

    /// The room that is reached by an id. A fork reaches none: hosts answer its requests so.
    fn reached<'i>(&self, room_id: &'i str) -> &'i str {
        if self.context.fork.is_some() { NOWHERE } else { room_id }
    }
}

/// The id of no room.
const NOWHERE: &str = "-";
