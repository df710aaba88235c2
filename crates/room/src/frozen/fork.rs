//! A frozen room that goes on beside the one that it was.

use super::parts::{self, Part};
use super::{FreezeError, Frozen, FrozenWriter, ThawError};
use crate::Settings;

/// The name of a fork's metadata that says what it is a fork of.
pub const FORK_METADATA: &str = "fork";

/// The seats that a fork has beside those of the room, for those who play on.
const MORE_SEATS: u32 = 8;

/// The shortest time for which a fork waits for someone to play on, in milliseconds.
const EMPTY_MS_MIN: u64 = 60_000;

/// Makes a fork of a frozen room: a room with another id, for people who try out what would have
/// been. It is private, has no key, and is not saved. Its players are those of the room, without
/// connections: an entrant with the name of a player takes the seat, unless it belongs to another
/// user. It ends when nobody has been connected for a while. Messages to anyone but its players are
/// dropped.
///
/// # Errors
/// If a part is missing or wrong, or the fork is too large.
pub fn fork(frozen: &Frozen<'_>, id: &str, of: &str) -> Result<Vec<u8>, ForkError> {
    let mut about: parts::About = frozen.value(Part::About)?;
    (about.id, about.key, about.is_code) = (id.to_owned(), None, false);
    (about.private, about.locked) = (true, false);
    let is_known = about.metadata.contains_key(FORK_METADATA);
    if is_known || about.metadata.len() < crate::METADATA_MAX {
        let of = playfield_wire::excerpt(of, crate::METADATA_BYTES_MAX);
        about.metadata.insert(FORK_METADATA.to_owned(), of.to_owned());
    }
    let settings = frozen.settings()?;
    let settings = Settings {
        capacity: settings.capacity.saturating_add(MORE_SEATS),
        empty_ms: settings.empty_ms.max(EMPTY_MS_MIN),
        persist_s: 0,
        ..settings
    };
    let mut clock: parts::Clock = frozen.value(Part::Clock)?;
    clock.empty_since = Some(parts::Time(clock.now.0));
    let mut seats: parts::Seats = frozen.value(Part::Seats)?;
    seats.players.iter_mut().for_each(|player| player.is_connected = false);
    // Others are not answered twice.
    let mut replies: parts::Replies = frozen.value(Part::Replies)?;
    replies.owed.retain(|owed| matches!(owed.to, parts::Asker::Player { .. }));
    let mut form = FrozenWriter::new();
    form.value(Part::About, &about);
    form.value(Part::Settings, &parts::Settings::from(settings));
    form.value(Part::Clock, &clock);
    form.value(Part::Seats, &seats);
    form.value(Part::Reserved, &parts::Reserved { seats: Vec::new() });
    form.value(Part::Replies, &replies);
    form.value(Part::Fork, &parts::Fork { of: of.to_owned() });
    let same = [
        Part::Random,
        Part::Messages,
        Part::Timers,
        Part::Work,
        Part::Rates,
        Part::State,
        Part::Slots,
    ];
    for part in same {
        let content = frozen.part(part)?;
        form.part(part, |out| out.extend(content));
    }
    Ok(form.finish()?)
}

/// Why a frozen room can't be forked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForkError {
    /// The frozen room is not valid.
    Thaw(ThawError),
    /// The fork can't be written.
    Freeze(FreezeError),
}

impl From<ThawError> for ForkError {
    fn from(error: ThawError) -> Self {
        Self::Thaw(error)
    }
}

impl From<FreezeError> for ForkError {
    fn from(error: FreezeError) -> Self {
        Self::Freeze(error)
    }
}

impl std::fmt::Display for ForkError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Thaw(error) => error.fmt(f),
            Self::Freeze(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ForkError {}
