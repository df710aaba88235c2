//! Rooms with types: what may be asked of a room is checked when the client is compiled.

use playfield_room::{Accepts, Emits, Message, Room as RoomType, schema};
use playfield_state::Data;
use playfield_wire::Format;
use playfield_wire::message::MessageRef;
use playfield_wire::schema::fingerprint;

use crate::Error;
use crate::connection::{Connection, Door, Room, RoomEvent};

/// Typed rooms. `R` is the type of room that the node was built with: of another, the node's fingerprint differs, and it is not
/// entered. The connection has to be of the format `packed`.
impl Connection {
    /// Enters a room that exists.
    ///
    /// # Errors
    /// If the node or the room refuses, the node's rooms of this type are of another build (`schema_mismatch`), or the connection is over.
    ///
    /// # Cancel safety
    /// The room is left again, should it be entered.
    pub async fn join<R: RoomType + Default + Sync>(&self, id: &str) -> Result<Room<R>, Error> {
        self.enter_typed(Door::Join { id: id.to_owned() }).await
    }

    /// Creates a room and enters it. A private one is neither listed nor entered by [`join_or_create`](Self::join_or_create).
    ///
    /// # Errors
    /// As [`join`](Self::join).
    ///
    /// # Cancel safety
    /// As [`join`](Self::join).
    pub async fn create<R: RoomType + Default + Sync>(
        &self,
        room_type: &str,
        private: bool,
        options: &R::Options,
    ) -> Result<Room<R>, Error> {
        let options = self.written(options);
        self.enter_typed(Door::Create { room_type: room_type.to_owned(), private, options }).await
    }

    /// Enters any room of a type that has a place, or a new one with these options.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    ///
    /// # Cancel safety
    /// As [`join`](Self::join).
    pub async fn join_or_create<R: RoomType + Default + Sync>(
        &self,
        room_type: &str,
        options: &R::Options,
    ) -> Result<Room<R>, Error> {
        let options = self.written(options);
        self.enter_typed(Door::JoinOrCreate { room_type: room_type.to_owned(), options }).await
    }

    async fn enter_typed<R: RoomType + Default + Sync>(&self, door: Door) -> Result<Room<R>, Error> {
        match self.format() {
            Format::Packed => self.enter(door, Some(fingerprint(&schema::<R>()))).await,
            Format::Msgpack | Format::Json => Err(Error::usage(
                "a typed room needs a connection of the format packed; in msgpack and json there are dynamic rooms",
            )),
        }
    }

    fn written(&self, options: &impl Data) -> Vec<u8> {
        let mut out = Vec::new();
        options.write(self.format(), &mut out);
        out
    }
}

impl<R: RoomType + Default + Sync> Room<R> {
    /// Sends a message, and waits for the reply.
    ///
    /// # Errors
    /// If the room [refuses](Error::is_refused), or this client is no longer in the room.
    ///
    /// # Cancel safety
    /// Once it is queued the message is sent, and its reply is passed over.
    pub async fn request<M: Message>(&self, message: M) -> Result<M::Reply, Error>
    where
        R: Accepts<M>,
    {
        let payload = self.written(&message);
        let reply = self.request_raw(<R as Accepts<M>>::INDEX, M::NAME.into(), payload).await?;
        M::Reply::read(self.format(), &reply).map_err(|error| Error::payload("the reply", error))
    }

    /// Sends a message that is not answered. If the room refuses it, [`next_event`](Self::next_event) says so.
    ///
    /// # Errors
    /// If this client is no longer in the room.
    ///
    /// # Cancel safety
    /// The message is sent if it was queued, or not at all.
    pub async fn send<M: Message>(&self, message: M) -> Result<(), Error>
    where
        R: Accepts<M>,
    {
        let payload = self.written(&message);
        self.send_raw(<R as Accepts<M>>::INDEX, M::NAME.into(), payload).await
    }

    fn written(&self, message: &impl Data) -> Vec<u8> {
        let mut out = Vec::new();
        message.write(self.format(), &mut out);
        out
    }
}

impl<R: RoomType + Default + Sync> RoomEvent<R> {
    /// The event, if it is an `E`.
    ///
    /// # Errors
    /// If it is one but can't be read.
    pub fn decode<E: Message>(&self) -> Result<Option<E>, Error>
    where
        R: Emits<E>,
    {
        let is_it = match &self.message {
            MessageRef::Index(index) => *index == <R as Emits<E>>::INDEX,
            MessageRef::Name(name) => name == E::NAME,
        };
        if !is_it {
            return Ok(None);
        }
        E::read(self.format, &self.payload).map(Some).map_err(|error| Error::payload("the event", error))
    }
}
