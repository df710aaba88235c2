//! A simulated player's copies of the state, and what they are held to.

use playfield_state::{Format, JsonMirror, Mirror, PlayerId, view};

use crate::core::RoomCore;
use crate::{AnyRoom, Link, Room};

/// What one player has.
pub(super) struct Copies<R> {
    pub(super) link: Link,
    pub(super) packed: Mirror<R>,
    pub(super) json: JsonMirror,
    pub(super) version: u64,
    pub(super) stalled: bool,
}

impl<R: Room + Default> Copies<R> {
    /// Takes the copies to the room's version, and checks them.
    pub(super) fn follow(&mut self, player: PlayerId, core: &mut RoomCore<R>) {
        if self.version == 0 {
            self.begin(player, core);
        } else {
            self.patch(player, core);
        }
        if core.has_failed() {
            return;
        }
        self.version = core.version();
        let Some(state) = core.state() else { return };
        let seen = view(state, Some(player));
        assert_eq!(
            view(self.packed.state(), Some(player)),
            seen,
            "player {player}'s packed copy is not what they may see"
        );
        assert_eq!(*self.json.state(), seen, "player {player}'s JSON copy is not what they may see");
    }
    fn begin(&mut self, player: PlayerId, core: &mut RoomCore<R>) {
        let mut body = Vec::new();
        core.snapshot(player, Format::Packed, &mut body);
        let packed = self.packed.snapshot(&body);
        body.clear();
        core.snapshot(player, Format::Json, &mut body);
        let json = self.json.snapshot(&body);
        if !core.has_failed() {
            packed.and(json).expect("a snapshot fits");
        }
    }

    fn patch(&mut self, player: PlayerId, core: &mut RoomCore<R>) {
        let mut body = Vec::new();
        if core.patch(player, self.version, Format::Packed, &mut body) {
            self.packed.patch(&body).expect("a patch fits");
        }
        body.clear();
        if core.patch(player, self.version, Format::Json, &mut body) {
            self.json.patch(&body).expect("a patch fits");
        }
    }
}
