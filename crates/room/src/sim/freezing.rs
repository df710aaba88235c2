//! A simulated room that is frozen, and goes on.

use std::time::Duration;

use playfield_state::PlayerId;

use super::Sim;
use super::record::Record;
use crate::core::RoomCore;
use crate::frozen::{FreezeError, Frozen, FrozenWriter, ThawError};
use crate::{AnyRoom, Error, Link, Room, Thaw};

impl<R: Room + Default> Sim<R> {
    /// Freezes the room, as a node does before it is upgraded or before a room moves to another
    /// node: syncs, and returns all that the room is as bytes. It goes on with
    /// [`thaw`](Self::thaw), as if nothing had happened.
    ///
    /// A room that keeps everything in its state needs no code for this. One with
    /// [skipped fields](playfield_state::State#skipped-fields) makes these again in
    /// [`Room::moved`]. A test shows whether it does: freeze it anywhere, and
    /// nobody must notice.
    ///
    /// ```
    /// # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
    /// use std::collections::BTreeSet;
    /// use std::time::Duration;
    ///
    /// # use playfield::prelude::*;
    /// # use playfield::sim::Sim;
    /// #[derive(State, Default)]
    /// struct Quiz {
    ///     answers: List<String>,
    ///     over: bool,
    ///     #[sync(skip)]
    ///     given: BTreeSet<String>,
    /// }
    ///
    /// #[derive(Message)]
    /// #[reply(bool)]
    /// struct Guess(String);
    ///
    /// #[derive(Message)]
    /// struct TimeIsUp;
    ///
    /// #[room(messages(Guess), internal(TimeIsUp))]
    /// impl Room for Quiz {
    ///     fn create((): (), cx: &mut Context<Self>) -> Result<Self> {
    ///         cx.after(Duration::from_secs(10), TimeIsUp);
    ///         Ok(Self::default())
    ///     }
    ///
    ///     fn rebuild(&mut self, _: &mut Context<Self>) {
    ///         self.given = self.answers.iter().cloned().collect();
    ///     }
    /// }
    ///
    /// impl Handle<Guess> for Quiz {
    ///     fn handle(&mut self, guess: Guess, _: &Player, _: &mut Context<Self>) -> Result<bool> {
    ///         let is_new = self.given.insert(guess.0.clone());
    ///         if is_new {
    ///             self.answers.push(guess.0);
    ///         }
    ///         Ok(is_new)
    ///     }
    /// }
    ///
    /// impl On<TimeIsUp> for Quiz {
    ///     fn on(&mut self, _: TimeIsUp, _: &mut Context<Self>) -> Result<()> {
    ///         self.over = true;
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let mut sim = Sim::<Quiz>::new(1);
    /// let ann = sim.join("Ann")?;
    /// assert!(sim.request(ann, Guess("tea".into()))?);
    ///
    /// let frozen = sim.freeze().unwrap();
    /// sim.thaw(&frozen).unwrap();
    ///
    /// assert!(!sim.request(ann, Guess("tea".into()))?);
    /// sim.advance(Duration::from_secs(10));
    /// assert!(sim.copy(ann).over);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// If the room has ended or ends, or if work is in flight: see
    /// [`run_background`](Self::run_background) and [`freeze_after`](Self::freeze_after).
    pub fn freeze(&mut self) -> Result<Vec<u8>, FreezeError> {
        self.freeze_by(|core, now, form, out| core.freeze(now, form, out))
    }

    /// Freezes the room like [`freeze`](Self::freeze), and gives up the work in flight, as a node
    /// does that can't wait for it: players who wait to join are refused with `why`, and the room
    /// learns in [`Room::moved`] of [tasks that are given up](crate::Context::given_up).
    ///
    /// # Errors
    /// If the room has ended or ends. A room that has not opened yet ends by this.
    pub fn freeze_after(&mut self, why: &Error) -> Result<Vec<u8>, FreezeError> {
        let frozen = self.freeze_by(|core, now, form, out| core.freeze_after(now, why, form, out));
        self.out.tasks.clear();
        self.out.jobs.clear();
        self.out.take_saved();
        frozen
    }

    fn freeze_by(
        &mut self,
        freeze: impl FnOnce(
            &mut RoomCore<R>,
            Duration,
            &mut FrozenWriter,
            &mut Record,
        ) -> Result<(), FreezeError>,
    ) -> Result<Vec<u8>, FreezeError> {
        let mut form = FrozenWriter::new();
        let frozen = freeze(&mut self.core, self.now, &mut form, &mut self.out);
        if frozen.is_ok() {
            self.follow_sync();
        }
        self.follow_up();
        frozen?;
        form.finish()
    }

    /// The room goes on from what [`freeze`](Self::freeze) returned just before. A player whose
    /// copy was not of that version, as one who is [stalled](Self::stall), gets a snapshot.
    ///
    /// # Errors
    /// If the bytes are not a frozen room of this type. The room is as it was.
    pub fn thaw(&mut self, frozen: &[u8]) -> Result<(), ThawError> {
        let frozen = Frozen::read(frozen)?;
        let players = &self.players;
        let mut link =
            |player: PlayerId| players.get(&player).map_or(Link(0), |copies| copies.link);
        let thaw = Thaw { frozen: &frozen, store: self.store.clone(), link: &mut link };
        self.core = RoomCore::thaw_with(thaw, self.tracking)?;
        self.core.moved(self.now, &mut self.out);
        self.reopen();
        self.follow_up();
        Ok(())
    }
}
