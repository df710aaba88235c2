//! Rooms that rooms and the node create.

use std::any::TypeId;

use playfield_room::{Creator, Error, NewRoom, ReservedSeat};
use playfield_wire::{ErrorCode, Format, excerpt};

use crate::directory::Plan;
use crate::directory::keys::Key;
use crate::node::Node;
use crate::room_id::RoomId;
use crate::shard::mail::join::Reading;
use crate::shard::mail::join::RoomSpec;
use crate::shard::work::Founder;

/// A room that is registered, on its way to the shard that creates it; or a search for the room
/// with a key, on its way to that room's shard.
pub(crate) struct Founding {
    pub(crate) id: RoomId,
    pub(crate) spec: RoomSpec,
    pub(crate) creator: Creator,
    /// The party that the room's time is charged to.
    pub(crate) founder: Founder,
    pub(crate) seats: Vec<ReservedSeat>,
    /// The number of the request from outside that is answered when the room is open.
    pub(crate) answers: Option<u64>,
    /// Another room with its key would do, and how often one is looked for.
    pub(crate) searches: u8,
    /// The room that has its key already.
    pub(crate) found: Option<RoomId>,
}

impl Founding {
    /// Registers a room in the directory, and says which shard is to create it: `preferred`, unless
    /// another has less load. If it `searches`, a room that has its key already does as well.
    pub(crate) fn register(
        node: &Node,
        preferred: u16,
        new: NewRoom,
        founder: Founder,
        searches: u8,
    ) -> Result<(u16, Self), Error> {
        let room_type = node.type_of(&new)?;
        new.check_seats(node.room_types[usize::from(room_type)].settings.capacity)?;
        let NewRoom { id, key, private, options, creator, seats, .. } = new;
        let id = RoomId::parse(&id)
            .ok_or_else(|| Error::new(ErrorCode::Internal, format!("{id:?} is not a room id")))?;
        let key = key.map(|text| Key { text, is_code: false });
        let criteria = node.criteria(room_type, Format::Packed, &options)?;
        let (format, reading) = (Format::Packed, Reading::Literal);
        let spec =
            RoomSpec { room_type, key, code: false, reading, private, criteria, options, format };
        let founding = Self { seats, ..Self::new(id, spec, creator, founder, searches) };
        founding.placed(node, preferred)
    }

    /// A room without reserved seats, or a search for the one with its key.
    pub(crate) fn new(
        id: RoomId,
        spec: RoomSpec,
        creator: Creator,
        founder: Founder,
        searches: u8,
    ) -> Self {
        let (seats, answers, found) = (Vec::new(), None, None);
        Self { id, spec, creator, founder, seats, answers, searches, found }
    }

    /// [Places](Self::place) it.
    pub(crate) fn placed(mut self, node: &Node, preferred: u16) -> Result<(u16, Self), Error> {
        Ok((self.place(node, preferred)?, self))
    }

    /// Registers it, or finds the room that has its key: on which shard.
    pub(crate) fn place(&mut self, node: &Node, preferred: u16) -> Result<u16, Error> {
        let plan = Plan { seats: 0, ..Plan::new(node, self.id, &self.spec, preferred) };
        let choice = match self.searches {
            0 => node.directory.plan(&plan)?,
            _ => node.directory.find_or_plan(&plan)?,
        };
        self.found = (!choice.new).then_some(choice.id);
        Ok(choice.shard)
    }
}

impl Node {
    /// The number of the room type of a new room.
    fn type_of(&self, new: &NewRoom) -> Result<u16, Error> {
        let Some(name) = &new.room_type else { return self.first_of(new.rust_type) };
        let is_it = |found: &u16| self.room_types[usize::from(*found)].rust_type == new.rust_type;
        self.room_type(name).filter(is_it).ok_or_else(|| {
            let text =
                format!("the node has no room type {:?} for this Rust type", excerpt(name, 64));
            Error::new(ErrorCode::UnknownRoomType, text)
        })
    }

    /// The number of the first room type that was added with a Rust type.
    pub(crate) fn first_of(&self, rust_type: TypeId) -> Result<u16, Error> {
        let found = self.room_types.iter().position(|of| of.rust_type == rust_type);
        found.map(|found| found as u16).ok_or_else(|| {
            let text = "the node has no room type for this Rust type; add it";
            Error::new(ErrorCode::UnknownRoomType, text)
        })
    }

    /// The values of the options that are criteria of a room type.
    pub(crate) fn criteria(
        &self,
        room_type: u16,
        format: Format,
        options: &[u8],
    ) -> Result<Vec<u8>, Error> {
        match self.room_types[usize::from(room_type)].criteria {
            Some(criteria) => criteria(format, options),
            None => Ok(Vec::new()),
        }
    }
}
