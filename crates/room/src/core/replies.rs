//! Replies that the room gives later: their deadlines, and their end with the room.

use playfield_wire::ErrorCode;

use super::RoomCore;
use crate::context::replies::send_reply;
use crate::deferred::unpack;
use crate::{Error, Room, RoomOutput};

impl<R: Room> RoomCore<R> {
    /// Fails the replies that have been owed for too long.
    pub(super) fn expire_replies(&mut self, out: &mut dyn RoomOutput) {
        while let Some(to) = self.context.replies.take_due(self.context.now) {
            let ms = self.settings.reply_ms;
            let text = format!("reply_ms = {ms}: the room did not answer in time");
            send_reply(&to, Err(Error::new(ErrorCode::Timeout, text)), out);
        }
    }

    /// Fails all replies that are still owed. Players who are gone wait for none.
    pub(super) fn fail_replies(&mut self, why: &Error, out: &mut dyn RoomOutput) {
        while let Some(to) = self.context.replies.take_due(std::time::Duration::MAX) {
            send_reply(&to, Err(why.clone()), out);
        }
    }

    /// Sends what background work has replied.
    pub(super) fn send_packed(&mut self, number: u64, packed: &[u8], out: &mut dyn RoomOutput) {
        if let Some(to) = self.context.replies.remove(number) {
            send_reply(&to, unpack(packed), out);
        }
    }
}
