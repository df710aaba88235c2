//! Tickets, with which a backend admits players to rooms.

use playfield_room::Error;

/// Checks tickets: texts that a client presents in place of a room's id.
pub trait TicketChecker: Send + Sync {
    /// Verifies a ticket for a session that belongs to a user, or to a guest, and uses it. It runs
    /// on a shard's thread, so it must not block.
    ///
    /// # Errors
    /// Why it is refused, usually with the code `bad_ticket`.
    fn redeem(&self, ticket: &str, user: Option<&str>) -> Result<TicketPass, Error>;

    /// Returns the tickets that were used, in any form, for the checker of a process that
    /// [takes over](crate::NodeHandle::upgrade). By default there are none.
    fn used(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Notes the tickets that were used in another process, as its [`used`](Self::used) returned
    /// them. By default it forgets them.
    fn restore(&self, used: &[u8]) {
        let _ = used;
    }
}

/// The content of a verified ticket.
pub struct TicketPass {
    /// The room.
    pub room: TicketRoom,
    /// The user that the player is in the room; `None` leaves it to the session.
    pub user: Option<String>,
    /// The player's display name in the room; `None` leaves it to the session.
    pub name: Option<String>,
    /// The seat or role, for [`Player::seat`](playfield_room::Player::seat).
    pub seat: Option<String>,
    /// Makes the ticket valid again. It is called if the room can't be entered.
    pub give_back: Box<dyn FnOnce() + Send>,
}

/// The room that a ticket is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TicketRoom {
    /// The room with this id, or a reservation in it.
    Id(String),
    /// The room of this type with this key.
    Key {
        /// The name of the room type.
        room_type: String,
        /// The key, or the code.
        key: String,
    },
}

/// Returns whether the text in a `join` is a ticket: a JSON Web Token has two periods, a reservation one,
/// and an id none.
pub(crate) fn is_ticket(text: &str) -> bool {
    text.bytes().filter(|byte| *byte == b'.').count() == 2
}
