//! The rules of who may take a seat.

use playfield_state::Format;
use playfield_wire::ErrorCode;

use super::guard::guard;
use super::{RoomCore, read_options};
use crate::{Entrant, Error, OnePerUser, ReservedSeat, Result, Room};

impl<R: Room> RoomCore<R> {
    /// Whether there is a seat for someone who wants to join. A reservation is used up.
    pub(super) fn admit(&mut self, entrant: &Entrant) -> Result<()> {
        if let Some(secret) = &entrant.reservation {
            let (now, user) = (self.context.now, entrant.user.as_deref());
            self.context.reserved.take(secret, &entrant.name, user, now)?;
            self.free_reserved_seats();
            return Ok(());
        }
        self.free_reserved_seats();
        // A lock keeps new players out, not the one whose seat it is.
        if self.takes_over(entrant) {
            return Ok(());
        }
        if self.context.summary.locked {
            return Err(Error::new(ErrorCode::RoomLocked, "the room is locked"));
        }
        self.context.check_free_seat()
    }

    /// Returns whether someone takes the seat of another player, so that no further one is needed.
    fn takes_over(&self, entrant: &Entrant) -> bool {
        if self.settings.one_per_user != OnePerUser::TakeOver || entrant.user.is_none() {
            return false;
        }
        let waiting = self.waiting.values().map(|waiting| &waiting.player);
        self.seats.iter().chain(waiting).any(|other| other.user == entrant.user)
    }

    /// Frees reserved seats whose time has run out.
    pub(super) fn free_reserved_seats(&mut self) {
        self.context.reserved.expire(self.context.now);
        self.context.summary.reserved = self.context.reserved.count();
    }

    /// Reserves seats in a room that has just been created.
    pub(super) fn reserve_first(&mut self, seats: Vec<ReservedSeat>) -> Result<()> {
        for ReservedSeat { secret, who, wait } in seats {
            self.context.check_free_seat()?;
            self.context.reserve(secret, who, wait);
        }
        Ok(())
    }

    /// The values of the options that are criteria.
    pub(crate) fn criteria(format: Format, options: &[u8]) -> Result<Vec<u8>> {
        // Decoders are user code.
        let criteria = guard(|| {
            let mut criteria = Vec::new();
            R::criteria(&read_options::<R>(format, options)?, &mut criteria);
            Ok(criteria)
        });
        criteria.unwrap_or_else(|panic| {
            log::error!("the options of a room could not be read: {panic}");
            Err(Error::new(ErrorCode::Internal, "the options could not be read"))
        })
    }
}
