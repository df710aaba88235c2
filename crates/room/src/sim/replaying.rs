//! A simulated room that goes on from a recording.

use std::fmt;
use std::path::Path;

use playfield_state::{Format, Tracking};

use super::Sim;
use super::copies::Copies;
use super::record::Record;
use crate::core::RoomCore;
use crate::recording::{Recording, Replay};
use crate::{AnyRoom as _, Room, Thaw, schema};

impl<R: Room + Default> Sim<R> {
    /// Runs a recorded room to the end of its recording, from where it goes on: a recorded case
    /// becomes a test. The players of that moment are here, under their numbers.
    ///
    /// ```no_run
    /// # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
    /// # use playfield::prelude::*;
    /// # use playfield::sim::Sim;
    /// # #[derive(State, Default)]
    /// # struct Duel { score: u32 }
    /// # #[room()]
    /// # impl Room for Duel {}
    /// let sim = Sim::<Duel>::replay("tests/bug-481.rec").unwrap();
    /// assert!(!sim.is_closed());
    /// assert_eq!(sim.room().score, 3);
    /// ```
    ///
    /// The room may do otherwise than when it was recorded: that is what a fix is for. Whether it
    /// does says [`Replay::verify`].
    ///
    /// # Errors
    /// If the file can't be read, or the room can't go on from it in this build.
    pub fn replay(file: impl AsRef<Path>) -> Result<Self, SimReplayError> {
        let file = file.as_ref();
        let replayed = std::fs::read(file).map_err(|error| error.to_string());
        let replayed = replayed.and_then(|bytes| Self::replay_bytes(&bytes));
        replayed.map_err(|why| SimReplayError { file: file.display().to_string(), why })
    }

    fn replay_bytes(bytes: &[u8]) -> Result<Self, String> {
        let recording = Recording::read(bytes).map_err(|error| error.to_string())?;
        let messages = schema::<R>().messages.into_iter();
        let messages: Vec<_> = messages.map(|message| message.name.into_owned()).collect();
        let thaw = |thaw: Thaw<'_>| RoomCore::thaw_with(thaw, Tracking::On).map(Box::new);
        let mut replay = Replay::<RoomCore<R>>::with(&recording, thaw, &messages)
            .map_err(|error| error.to_string())?;
        let mut out = Record::default();
        while replay.step(Some(&mut out)).map_err(|error| error.to_string())?.is_some() {}
        let (position, links) = (replay.position(), replay.links());
        let core = *replay.into_room();
        // Output of that time is not sent again.
        let mut sim = Self::of(core, Record::default(), Tracking::On, None);
        sim.now = position.at;
        sim.next_tick = position.tick + 1;
        let syncs = position.at.as_nanos() * u128::from(sim.core.sync_hz()) / 1_000_000_000;
        sim.next_sync = syncs as u64 + 1;
        sim.links = links;
        for player in sim.core.players(&mut |_| true) {
            if player.format != Format::Packed {
                sim.out.formats.insert(player.link, player.format);
            }
            sim.players.insert(player.id, Copies::new(player.link, player.format));
        }
        if !sim.is_closed() {
            sim.sync_now();
        }
        Ok(sim)
    }
}

/// Why [`Sim::replay`] failed.
#[derive(Debug)]
pub struct SimReplayError {
    file: String,
    why: String,
}

impl fmt::Display for SimReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, why } = self;
        write!(f, "{file}: {why}")
    }
}

impl std::error::Error for SimReplayError {}
