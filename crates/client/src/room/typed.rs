//! Typed rooms: the compiler checks which messages a room accepts.

use playfield_state::{Accepts, Data, Emits, Message, RoomInterface, Transcoder};
use playfield_wire::Format;
use playfield_wire::message::MessageRef;
use playfield_wire::schema::{Type, fingerprint};

use super::{Kind, Payload, Room, RoomEvent};
use crate::Error;
use crate::connection::{Connect, Connection};
use crate::session::{Build, Creation, Target, Translation};

/// Typed rooms. `R` is the room type that the node was built with, or an older version of it with
/// which the node's is [compatible](playfield_wire::schema::check_compatible): then the client asks
/// for the node's schema, and converts everything it receives and sends. A room of any other build
/// is not entered.
impl Connection {
    /// Enters an existing room, by its id, or with a reservation or a ticket for it. If the room is
    /// at another node of a cluster, the client connects to that node; see [`Connection`].
    ///
    /// # Errors
    /// If the node or the room refuses, the node's room type is
    /// [incompatible](Error::is_incompatible), the room's node can't be
    /// [reached](Error::is_unreachable), or the connection has ended.
    ///
    /// # Cancel safety
    /// If the room is entered after all, the client leaves it.
    pub async fn join<R: RoomInterface + Kind>(&self, id: &str) -> Result<Room<R>, Error> {
        self.enter_typed(Target::Join { id: id.to_owned() }).await
    }

    /// Enters the room of a type that has this key. The case of a code does not matter.
    ///
    /// # Errors
    /// Same as [`join`](Self::join).
    ///
    /// # Cancel safety
    /// Same as [`join`](Self::join).
    pub async fn join_by_key<R: RoomInterface + Kind>(
        &self,
        room_type: &str,
        key: &str,
    ) -> Result<Room<R>, Error> {
        let (room_type, key) = (room_type.to_owned(), key.to_owned());
        self.enter_typed(Target::JoinByKey { room_type, key }).await
    }

    /// Creates a room and enters it. `creation` is a [`Creation`], or just whether the room is
    /// private.
    ///
    /// If the room type has options, and the connection doesn't know the node's fingerprint of the
    /// room type yet, it first asks for the schema, to send options in the node's form.
    ///
    /// # Errors
    /// Same as [`join`](Self::join).
    ///
    /// # Cancel safety
    /// Same as [`join`](Self::join).
    pub async fn create<R: RoomInterface + Kind>(
        &self,
        room_type: &str,
        creation: impl Into<Creation>,
        options: &R::CreateOptions,
    ) -> Result<Room<R>, Error> {
        let (room_type, creation) = (room_type.to_owned(), creation.into());
        let options = encode_options::<R>(options);
        self.enter_typed(Target::Create { room_type, creation, options }).await
    }

    /// Enters any room of a type that is not full and has no key, or a new one with these options.
    ///
    /// # Errors
    /// Same as [`join`](Self::join); `busy` if eight rooms in a row end before anyone can join.
    ///
    /// # Cancel safety
    /// Same as [`join`](Self::join).
    pub async fn join_or_create<R: RoomInterface + Kind>(
        &self,
        room_type: &str,
        options: &R::CreateOptions,
    ) -> Result<Room<R>, Error> {
        let (room_type, options) = (room_type.to_owned(), encode_options::<R>(options));
        self.enter_typed(Target::JoinOrCreate { room_type, key: None, options }).await
    }

    /// Enters the room of a type that has this key, or a new one with it and these options.
    ///
    /// # Errors
    /// Same as [`join`](Self::join); `busy` if eight rooms in a row end before anyone can join.
    ///
    /// # Cancel safety
    /// Same as [`join`](Self::join).
    pub async fn join_or_create_by_key<R: RoomInterface + Kind>(
        &self,
        room_type: &str,
        key: &str,
        options: &R::CreateOptions,
    ) -> Result<Room<R>, Error> {
        let (room_type, options) = (room_type.to_owned(), encode_options::<R>(options));
        self.enter_typed(Target::JoinOrCreate { room_type, key: Some(key.to_owned()), options })
            .await
    }

    async fn enter_typed<R: RoomInterface + Kind>(&self, target: Target) -> Result<Room<R>, Error> {
        self.enter_room(target, Build::new(R::room_schema())).await
    }
}

impl Connect {
    /// Sends the fingerprint of `R` in the hello, as the type of the rooms called `room_type`. If
    /// the node's schema differs, the node sends it at once, and entering such a room need not wait
    /// for it.
    pub fn built_with<R: RoomInterface>(mut self, room_type: &str) -> Self {
        self.schemas.push((room_type.to_owned(), fingerprint(&R::room_schema())));
        self
    }
}

impl<R: RoomInterface + Kind> Room<R> {
    /// Sends a message, and waits for the reply.
    ///
    /// # Errors
    /// If the room [refuses](Error::is_refused), or this client is no longer in the room.
    ///
    /// # Cancel safety
    /// Once queued, the message is sent, and its reply is dropped.
    pub async fn request<M: Message>(&self, message: M) -> Result<M::Reply, Error>
    where
        R: Accepts<M>,
    {
        let (index, payload) = self.encode(<R as Accepts<M>>::INDEX, &message)?;
        let mut reply = self.request_raw(index, payload).await?;
        if let Some(transcoder) = self.transcoder() {
            let of_node = std::mem::take(&mut reply);
            transcoder
                .reply(<R as Accepts<M>>::INDEX, &of_node, &mut reply)
                .map_err(|error| Error::payload("the reply", error))?;
        }
        M::Reply::read(Format::Packed, &reply).map_err(|error| Error::payload("the reply", error))
    }

    /// Sends a message without a reply. If the room refuses it, [`next_event`](Self::next_event)
    /// returns the error.
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
        let (index, payload) = self.encode(<R as Accepts<M>>::INDEX, &message)?;
        self.send_raw(index, payload).await
    }

    /// A message's index and payload, in the node's form.
    fn encode(&self, index: u32, message: &impl Data) -> Result<(u32, Vec<u8>), Error> {
        let mut payload = Vec::new();
        message.encode(&mut payload);
        let Some(transcoder) = self.transcoder() else { return Ok((index, payload)) };
        let mut of_node = Vec::new();
        let index = transcoder.message(index, &payload, &mut of_node);
        let index = index.map_err(|error| Error::payload("the message", error))?;
        Ok((index, of_node))
    }

    fn transcoder(&self) -> Option<&Transcoder> {
        match &self.entered.translation {
            Translation::Transcoded(transcoder) => Some(transcoder),
            Translation::None | Translation::Learned(_) => None,
        }
    }
}

impl<R: RoomInterface + Kind> RoomEvent<R> {
    /// The event, if it is an `E`.
    ///
    /// # Errors
    /// If it is an `E` but can't be read.
    pub fn decode<E: Message>(&self) -> Result<Option<E>, Error>
    where
        R: Emits<E>,
    {
        let is_e = match &self.message {
            MessageRef::Index(index) => *index == <R as Emits<E>>::INDEX,
            MessageRef::Name(name) => name == E::NAME,
        };
        let (true, Payload::Bytes(payload)) = (is_e, &self.payload) else { return Ok(None) };
        E::read(Format::Packed, payload)
            .map(Some)
            .map_err(|error| Error::payload("the event", error))
    }
}

/// Unit options are sent as none, which means the default in any build.
fn encode_options<R: RoomInterface>(options: &R::CreateOptions) -> Vec<u8> {
    let mut out = Vec::new();
    if <R::CreateOptions as Data>::schema() != Type::Unit {
        options.encode(&mut out);
    }
    out
}
