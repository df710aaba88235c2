//! Rooms with types: what may be asked of a room is checked when the client is compiled.

use playfield_room::{Accepts, Emits, Message, Room as RoomType, schema};
use playfield_state::Data;
use playfield_wire::Format;
use playfield_wire::message::MessageRef;
use playfield_wire::schema::{Type, fingerprint};

use crate::Error;
use crate::connection::{Build, Connect, Connection, Door, Room, RoomEvent};

/// Typed rooms. `R` is the type of room that the node was built with, or an older one from which
/// the node's has [grown](playfield_wire::schema::check_compatible): then the client asks the node for
/// its schema and turns all that comes and goes from one into the other. A room of any other build
/// is not entered. The connection has to be of the format `packed`.
impl Connection {
    /// Enters a room that exists.
    ///
    /// # Errors
    /// If the node or the room refuses, the node's rooms of this type are of a build that does not
    /// [fit](Error::is_incompatible), or the connection is over.
    ///
    /// # Cancel safety
    /// The room is left again, should it be entered.
    pub async fn join<R: RoomType + Default + Sync>(&self, id: &str) -> Result<Room<R>, Error> {
        self.enter_typed(Door::Join { id: id.to_owned() }).await
    }

    /// Creates a room and enters it. A private one is neither listed nor entered by
    /// [`join_or_create`](Self::join_or_create).
    ///
    /// The first time that a connection creates a room with options of its own, of a room type of
    /// which it knows no fingerprint yet, it asks the node for the schema: so that options reach a
    /// node of another build in its form.
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
        let options = self.options::<R>(options);
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
        let options = self.options::<R>(options);
        self.enter_typed(Door::JoinOrCreate { room_type: room_type.to_owned(), options }).await
    }

    async fn enter_typed<R: RoomType + Default + Sync>(
        &self,
        door: Door,
    ) -> Result<Room<R>, Error> {
        match self.format() {
            Format::Packed => self.enter(door, Some(Build::new(schema::<R>()))).await,
            Format::Msgpack | Format::Json => Err(Error::usage(
                "a typed room needs a connection of the format packed; in msgpack and json there are dynamic rooms",
            )),
        }
    }

    /// Options that say nothing are the default, of whatever form the node's are.
    fn options<R: RoomType>(&self, options: &R::Options) -> Vec<u8> {
        let mut out = Vec::new();
        if <R::Options as Data>::schema() != Type::Unit {
            options.write(self.format(), &mut out);
        }
        out
    }
}

impl Connect {
    /// Names in the hello what this client was built with, of rooms of type `R` under a name. If
    /// the node has grown since, it tells its schema at once, and nothing has to wait for it later.
    pub fn built_with<R: RoomType>(mut self, room_type: &str) -> Self {
        self.schemas.push((room_type.to_owned(), fingerprint(&schema::<R>())));
        self
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
        let (index, payload) = self.written(<R as Accepts<M>>::INDEX, &message)?;
        let mut reply = self.request_raw(index, M::NAME.into(), payload).await?;
        if let Some(transcoder) = self.transcoder() {
            let of_node = std::mem::take(&mut reply);
            transcoder
                .reply(<R as Accepts<M>>::INDEX, &of_node, &mut reply)
                .map_err(|error| Error::payload("the reply", error))?;
        }
        M::Reply::read(self.format(), &reply).map_err(|error| Error::payload("the reply", error))
    }

    /// Sends a message that is not answered. If the room refuses it,
    /// [`next_event`](Self::next_event) says so.
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
        let (index, payload) = self.written(<R as Accepts<M>>::INDEX, &message)?;
        self.send_raw(index, M::NAME.into(), payload).await
    }

    /// A message in the node's form, and the number that it has there.
    fn written(&self, index: u32, message: &impl Data) -> Result<(u32, Vec<u8>), Error> {
        let mut payload = Vec::new();
        message.write(self.format(), &mut payload);
        let Some(transcoder) = self.transcoder() else { return Ok((index, payload)) };
        let mut of_node = Vec::new();
        let index = transcoder.message(index, &payload, &mut of_node);
        let index = index.map_err(|error| Error::payload("the message", error))?;
        Ok((index, of_node))
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
        E::read(self.format, &self.payload)
            .map(Some)
            .map_err(|error| Error::payload("the event", error))
    }
}
