//! A simulated player's copies of the state, and how they are verified.

use std::time::Duration;

use playfield_state::{
    DynamicMirror, Format, JsonMirror, Mirror, PlayerId, State, TreeFormat, view_after,
};

use super::audit::Log;
use crate::core::RoomCore;
use crate::{AnyRoom, Link, Room};

/// The copies of the state that one player has received.
pub(super) struct Copies<R> {
    pub(super) link: Link,
    pub(super) typed: Mirror<R>,
    untyped: Option<Untyped>,
    tree_format: TreeFormat,
    /// The version of all copies; `None` before the first snapshot.
    version: Option<u64>,
    pub(super) is_stalled: bool,
    /// Their connection is cut, and they leave then unless they come back.
    pub(super) away_until: Option<Duration>,
    /// Events and replies after this one wait until they come back.
    pub(super) hears_until: u64,
}

/// Copies that exist to be compared with the state. They hold exactly what was sent, whereas
/// evaluating a view or a mask on the typed copy could fail where the room is right (a view may
/// read what the player does not see) and hide a leak.
struct Untyped {
    packed: DynamicMirror,
    tree: JsonMirror,
}

impl Untyped {
    fn new<R: State>(player: PlayerId, tree_format: TreeFormat) -> Self {
        let packed = DynamicMirror::new(&R::schema(), player)
            .unwrap_or_else(|error| panic!("clients could not read the room's schema: {error}"));
        Self { packed, tree: JsonMirror::of(tree_format) }
    }
}

impl<R: Room + Default> Copies<R> {
    /// `format` is the player's; the tree copy is in JSON if that is not a tree format.
    pub(super) fn new(link: Link, format: Format) -> Self {
        Self {
            link,
            typed: Mirror::new(),
            untyped: None,
            tree_format: format.tree().unwrap_or(TreeFormat::Json),
            version: None,
            is_stalled: false,
            away_until: None,
            hears_until: u64::MAX,
        }
    }

    /// Brings the copies to the room's version, and verifies them if asked to.
    pub(super) fn follow(
        &mut self,
        player: PlayerId,
        core: &mut RoomCore<R>,
        verify: bool,
        log: Option<&mut Log>,
    ) {
        if verify != self.untyped.is_some() {
            self.untyped = verify.then(|| Untyped::new::<R>(player, self.tree_format));
            // The new copies need a snapshot.
            self.version = self.version.filter(|_| !verify);
        }
        self.receive(player, core, log);
        if core.has_failed() {
            return;
        }
        self.version = Some(core.version());
        self.verify(player, core);
    }

    fn receive(&mut self, player: PlayerId, core: &mut RoomCore<R>, mut log: Option<&mut Log>) {
        // After the room was frozen, a copy that was behind needs a snapshot.
        let since = self.version.filter(|since| core.reaches(*since));
        let link = self.link;
        let mut sent = |format, body: &[u8]| {
            if let Some(log) = &mut log {
                log.body(link, format, since.is_none(), body);
            }
        };
        if let Some(body) = body(core, player, since, Format::Packed) {
            sent(Format::Packed, &body);
            let read = match since {
                None => self.typed.snapshot(&body),
                Some(_) => self.typed.patch(&body),
            };
            read.expect("the typed copy takes what the room sent");
            let read = self.untyped.as_mut().map(|Untyped { packed, .. }| match since {
                None => packed.snapshot(&body),
                Some(_) => packed.patch(&body),
            });
            read.transpose().expect("the copy by schema takes what the room sent");
        }
        let Some(Untyped { tree, .. }) = &mut self.untyped else { return };
        if let Some(body) = body(core, player, since, self.tree_format.into()) {
            sent(self.tree_format.into(), &body);
            let read = match since {
                None => tree.snapshot(&body),
                Some(_) => tree.patch(&body),
            };
            read.expect("the tree copy takes what the room sent");
        }
    }

    fn verify(&self, player: PlayerId, core: &mut RoomCore<R>) {
        const HINT: &str = "what a view or a mask returns must depend on its arguments alone";
        let Some(Untyped { packed, tree }) = &self.untyped else { return };
        let Some(state) = core.state() else { return };
        // With hysteresis, what a player sees depends on what the player saw. A copy shows that.
        let visible = |format, copy| view_after(format, state, player, copy);
        assert_eq!(
            *packed.state(),
            visible(TreeFormat::Json, packed.state()),
            "player {player}'s packed copy differs from what they may see; {HINT}"
        );
        assert_eq!(
            *tree.state(),
            visible(self.tree_format, tree.state()),
            "player {player}'s copy in {} differs from what they may see; {HINT}",
            Format::from(self.tree_format)
        );
        assert_eq!(
            Some(self.typed.digest()),
            core.digest(player, Format::Packed),
            "player {player}'s typed copy has a wrong digest"
        );
    }
}

/// The body that the room sends this player: a snapshot, or a patch from version `since`. `None` if
/// there is nothing to send or the room failed.
fn body<R: Room>(
    core: &mut RoomCore<R>,
    player: PlayerId,
    since: Option<u64>,
    format: Format,
) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    match since {
        Some(since) => core.patch(player, since, format, &mut body).then_some(body),
        None => {
            core.snapshot(player, format, &mut body);
            (!core.has_failed()).then_some(body)
        }
    }
}
