//! The operator's view of a room, and operations on it.

use std::borrow::Cow;
use std::time::Duration;

use playfield_state::save_kept;
use playfield_wire::ErrorCode;

use super::guard::guard;
use super::{Live, RoomCore};
use crate::frozen::parts;
use crate::hash::hash;
use crate::{AnyRoom as _, Error, EventHeader, Operation, Player, Result, Room, RoomOutput};

impl<R: Room> RoomCore<R> {
    /// Appends all of the state as a save; `false` if it has none now.
    pub(super) fn write_whole(&self, out: &mut Vec<u8>) -> bool {
        // A panic in the code of a type must not take the shard with it.
        let Some(state) = self.state() else { return false };
        guard(|| playfield_state::save_to(state, out)).is_ok()
    }

    /// Appends its save.
    pub(super) fn write_save(&mut self, out: &mut Vec<u8>) -> bool {
        let mark = self.mark();
        let Some(Live { state, kept, .. }) = &mut self.live else { return false };
        guard(|| save_kept(state, mark, kept, out)).is_ok()
    }

    /// A hash of the state, and of all that decides what the room does next.
    pub(super) fn hash_now(&self) -> Option<u64> {
        let mut bytes = Vec::new();
        if !self.write_whole(&mut bytes) {
            return None;
        }
        let parts::Random { room, ids } = self.context.freeze_random();
        bytes.extend([room, ids].concat());
        let wake_at = self.wake_at().map_or(0, |at| at.as_nanos() as u64);
        let numbers = [self.context.tick, self.context.version, self.next_player, wake_at];
        bytes.extend(numbers.into_iter().flat_map(u64::to_le_bytes));
        Some(hash(&bytes))
    }

    pub(super) fn operate_now(
        &mut self,
        at: Duration,
        operation: Operation,
        out: &mut dyn RoomOutput,
    ) -> Result<()> {
        let over = || Error::new(ErrorCode::RoomClosed, "the room has ended, or is about to");
        if !self.begin(at, out) || !self.is_open() {
            return Err(over());
        }
        match operation {
            Operation::Kick { player, text } => {
                self.seated(player)?;
                self.act(out, |_, cx| cx.kick(player, text)).ok_or_else(over)?;
            }
            Operation::Record(_) => {
                let text = "the room can't be recorded: set recordings.folder, and its type must \
                            not have `record = never`";
                return Err(Error::new(ErrorCode::Refused, text));
            }
            Operation::Lock(locked) => self.context.summary.locked = locked,
            Operation::Emit { event, payloads, to } => {
                if let Some(player) = to {
                    self.seated(player)?;
                }
                let header = self.header_of(event)?;
                let is_for = |player: &&Player| to.is_none_or(|to| player.id == to);
                for player in self.seats.iter().filter(is_for) {
                    let payload = &payloads[usize::from(player.format.number())];
                    out.event(player.link, header, payload);
                }
            }
        }
        self.settle(out);
        Ok(())
    }

    fn seated(&self, player: playfield_state::PlayerId) -> Result<()> {
        if self.seats.get(player).is_some() {
            return Ok(());
        }
        let text = format!("the room has no player {}", player.0);
        Err(Error::new(ErrorCode::Refused, text))
    }

    fn header_of(&self, index: u32) -> Result<EventHeader> {
        let events = crate::schema::<R>().events;
        match events.into_iter().nth(index as usize).map(|event| event.name) {
            Some(Cow::Borrowed(name)) => {
                Ok(EventHeader { index, name, version: self.context.version })
            }
            _ => {
                let text = format!("the room has no event with the number {index}");
                Err(Error::new(ErrorCode::BadPayload, text))
            }
        }
    }
}
