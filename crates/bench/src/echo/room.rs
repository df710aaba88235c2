//! The rooms of class B.

use playfield_derive::State;
use playfield_room::{Context, Handle, Message, Player, Result, Room, RoomType, Settings, room};
use playfield_state::Bytes;

/// Is answered with an event.
#[derive(Message)]
pub(super) struct Say {
    pub(super) data: Bytes,
}

/// Is answered with a reply.
#[derive(Message)]
#[reply(Bytes)]
pub(super) struct Ask {
    pub(super) data: Bytes,
}

/// What a player said.
#[derive(Message)]
pub(super) struct Said {
    pub(super) data: Bytes,
}

/// Sends what players say back to them.
#[derive(State, Default)]
pub(super) struct Hall {
    nothing: u8,
}

#[room(messages(Say, Ask), events(Said), empty_ms = 600_000)]
impl Room for Hall {}

impl Handle<Say> for Hall {
    fn handle(&mut self, say: Say, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        cx.emit_to(player.id(), &Said { data: say.data });
        Ok(())
    }
}

impl Handle<Ask> for Hall {
    fn handle(&mut self, ask: Ask, _: &Player, _: &mut Context<Self>) -> Result<Bytes> {
        Ok(ask.data)
    }
}

/// Halls for this many players.
pub(super) fn halls(capacity: u32) -> RoomType {
    let usual = RoomType::of::<Hall>("hall");
    RoomType { settings: Settings { capacity, ..usual.settings }, ..usual }
}
