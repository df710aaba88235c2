//! The events that wait for players who are entering. They count in the budget of the session's
//! connection, and are bounded as what a session has unsent, or keeps while it is away.

use playfield_room::EventHeader;

use crate::shard::keys::{MemberKey, RoomKey};
use crate::shard::rooms::delivery::{Delivery, EVENT_HEADER_BYTES_MAX};
use crate::shard::rooms::member::{HeldEvent, Member, Standing};

impl Delivery<'_> {
    /// Keeps an event for a player who is entering, if there is space for it. If not, the
    /// connection is given up, or the seat if there is no connection.
    pub(super) fn hold_event(
        &mut self,
        place: (RoomKey, MemberKey),
        member: &mut Member,
        event: EventHeader,
        payload: &[u8],
    ) {
        let is_away = self.is_held(&member.link);
        let config = &self.env.node.config;
        let (outbox_bytes_max, resume_bytes_max) =
            (config.limits.session.outbox_bytes.max, config.limits.session.resume_bytes);
        let Standing::Entering(entering) = &mut member.standing else { return };
        if entering.given_up {
            return;
        }
        let bytes = payload.len() + EVENT_HEADER_BYTES_MAX;
        let before = entering.events_bytes;
        // As the log of a session, which keeps one message of any size. With what its other rooms
        // hold, the session's shard counts it.
        let is_over = if is_away {
            before > 0 && before + bytes > resume_bytes_max.min(outbox_bytes_max)
        } else {
            before + bytes > outbox_bytes_max
        };
        if !is_over {
            entering.events_bytes += bytes;
            entering.events.push(HeldEvent { header: event, payload: payload.to_vec() });
            return self.holds(member, before, before + bytes);
        }
        if is_away {
            entering.given_up = true;
            self.queues.given_up.push(place);
            let _ = self.take_held(member);
        } else {
            self.doom(&mut member.link, false);
        }
    }

    /// Takes out the events that a member was to be sent.
    pub(super) fn take_held(&mut self, member: &mut Member) -> Vec<HeldEvent> {
        let Standing::Entering(entering) = &mut member.standing else { return Vec::new() };
        let bytes = std::mem::take(&mut entering.events_bytes);
        let events = std::mem::take(&mut entering.events);
        if bytes > 0 {
            self.holds(member, bytes, 0);
        }
        events
    }
}
