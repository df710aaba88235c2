//! A simulated player's copies of the state, and what they are held to.

use playfield_state::{Format, JsonMirror, Mirror, PlayerId, TreeFormat, view, view_in};

use crate::core::RoomCore;
use crate::{AnyRoom, Link, Room};

/// What one player has.
pub(super) struct Copies<R> {
    pub(super) link: Link,
    pub(super) packed: Mirror<R>,
    /// In the format that the player speaks if it is one of trees, or else in JSON.
    pub(super) tree: JsonMirror,
    pub(super) format: TreeFormat,
    pub(super) version: u64,
    pub(super) stalled: bool,
}

impl<R: Room + Default> Copies<R> {
    pub(super) fn new(link: Link, format: Format) -> Self {
        let format = format.tree().unwrap_or(TreeFormat::Json);
        Self {
            link,
            packed: Mirror::new(),
            tree: JsonMirror::of(format),
            format,
            version: 0,
            stalled: false,
        }
    }

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
        assert_eq!(
            view(self.packed.state(), Some(player)),
            view(state, Some(player)),
            "player {player}'s packed copy is not what they may see"
        );
        assert_eq!(
            *self.tree.state(),
            view_in(self.format, state, Some(player)),
            "player {player}'s copy in {} is not what they may see",
            Format::from(self.format)
        );
    }

    fn begin(&mut self, player: PlayerId, core: &mut RoomCore<R>) {
        let mut body = Vec::new();
        core.snapshot(player, Format::Packed, &mut body);
        let packed = self.packed.snapshot(&body);
        body.clear();
        core.snapshot(player, self.format.into(), &mut body);
        let tree = self.tree.snapshot(&body);
        if !core.has_failed() {
            packed.and(tree).expect("a snapshot fits");
        }
    }

    fn patch(&mut self, player: PlayerId, core: &mut RoomCore<R>) {
        let mut body = Vec::new();
        if core.patch(player, self.version, Format::Packed, &mut body) {
            self.packed.patch(&body).expect("a patch fits");
        }
        body.clear();
        if core.patch(player, self.version, self.format.into(), &mut body) {
            self.tree.patch(&body).expect("a patch fits");
        }
    }
}
