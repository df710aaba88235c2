//! Fields with a view: `#[sync(view = function, viewer = map)]`.
//!
//! The function gets a value and the viewer's entry in a map keyed by player. It is called again
//! only if the value or that entry was touched. For each viewer, the results are kept with the
//! versions at which values entered and left the view. So a patch from any version can distinguish
//! *entered*, *left* and *changed*, and each viewer has slots and tombstones of their own.

use std::collections::BTreeMap;

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;
use playfield_wire::tree::TreeWriter;
use serde_json::Value;

use crate::change::Watch;
use crate::digest::of_private;
use crate::lens::{Changed, Lens, Sight, Stamps, Step};
use crate::map::Touches;
use crate::ops::Ops;
use crate::patch_kind::read_kind;
use crate::slots::Bind;
use crate::state::{copy_default, default_digest, differs};
use crate::{Key, Map, Part, PlayerId, State};

/// A field with a view. The macro names the form: each entry by itself
/// ([`ByEntry`](crate::map::ByEntry)) or the value as a whole ([`AsWhole`]).
pub trait Viewed {
    /// The field's type.
    type Of: State;
    /// The values at the last sync, and who sees what.
    type Shadow: 'static;

    /// Makes a shadow of it as it is. Nobody sees anything until [`look`](Decided::look).
    fn bind<B: Bind>(value: &mut Self::Of, bind: B) -> Self::Shadow;

    /// Appends the same as [`Compare::put_slots`](crate::state::Compare::put_slots).
    fn put_slots(shadow: &Self::Shadow, out: &mut Vec<u8>);

    /// Appends who sees what, as far as the state does not say it.
    fn put_seen(_: &Self::Shadow, _: &mut Vec<u8>) {}

    /// Reads what [`put_seen`](Self::put_seen) wrote, after the first look.
    fn recall<B: Bind>(_: &mut Self::Shadow, _: B) {}

    /// Returns what was touched since the last sync.
    fn touches(value: &Self::Of, shadow: &Self::Shadow, step: Step) -> Touches;

    /// Brings what was last synced up to date.
    fn diff(value: &mut Self::Of, shadow: &mut Self::Shadow, step: Step) -> Changed;

    /// When it last changed.
    fn stamps(shadow: &Self::Shadow) -> Stamps;

    /// Returns the same as [`Compare::left_out`](crate::state::Compare::left_out).
    fn left_out(_: &Self::Shadow, _: PlayerId) -> u64 {
        0
    }

    /// Writes the same as [`Write::write_owner_patch`](crate::state::Write::write_owner_patch), for
    /// a viewer.
    fn write_patch(shadow: &Self::Shadow, lens: Lens, out: &mut Vec<u8>) -> bool;

    /// Reads what [`write_patch`](Self::write_patch) wrote.
    ///
    /// # Errors
    /// As [`Read::read_patch`](crate::state::Read::read_patch).
    fn read_patch(value: &mut Self::Of, reader: &mut Reader<'_>) -> Result<(), DecodeError>;

    /// Writes the same as [`Write::tree_owner_full`](crate::state::Write::tree_owner_full).
    fn tree_full(shadow: &Self::Shadow, lens: Lens, out: TreeWriter<'_>) -> bool;

    /// Writes the same as [`Write::tree_owner_patch`](crate::state::Write::tree_owner_patch).
    fn tree_patch(shadow: &Self::Shadow, lens: Lens, ops: &mut Ops<'_, '_>);

    /// The digest of a copy.
    fn copy_digest(value: &Self::Of) -> u64;

    /// Returns the same as [`Write::owner_digest`](crate::state::Write::owner_digest).
    fn shadow_digest(shadow: &Self::Shadow, lens: Lens) -> u64;
}

/// A view that a function decides.
pub trait Decided: Viewed {
    /// The type of the function's first argument.
    type Item;

    /// Brings up to date who sees what, after `diff`. `touched` and `moved` say where to look: in
    /// the value, and among viewers.
    fn look<P: Key, A>(
        value: &Self::Of,
        shadow: &mut Self::Shadow,
        touched: &Touches,
        viewers: &Map<P, A>,
        moved: &Touches,
        sees: impl Fn(&Self::Item, &A) -> bool,
        now: u64,
    ) -> Changed;

    /// Returns the same as [`Compare::owner_view`](crate::state::Compare::owner_view). `sees` is
    /// for the viewer.
    fn view(
        value: &Self::Of,
        sight: Sight<'_>,
        sees: impl Fn(&Self::Item) -> bool,
    ) -> Option<Value>;
}

/// A value other than a map: a viewer sees all of it or nothing.
pub struct AsWhole<T>(std::marker::PhantomData<T>);

/// The shadow of [`AsWhole`].
pub struct WholeShadow<S> {
    value: S,
    stamps: Stamps,
    eyes: BTreeMap<PlayerId, Eye>,
}

/// Whether a viewer sees it, and since when.
struct Eye {
    sees: bool,
    since: u64,
}

/// The first byte of the patch of a value with a view.
#[derive(Clone, Copy)]
pub(crate) enum ViewPatch {
    Left = 0,
    Entered = 1,
    Changed = 2,
    /// Changed, and sent whole.
    Replaced = 3,
}

impl ViewPatch {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        read_kind(
            reader,
            &[Self::Left, Self::Entered, Self::Changed, Self::Replaced],
            "the patch of a value with a view begins with 0 to 3",
        )
    }
}

/// The change of the value, for one viewer.
enum ViewChange {
    Nothing,
    Left,
    Entered,
    Changed,
}

impl<S> WholeShadow<S> {
    fn came<T: State<Shadow = S>>(&self, lens: Lens) -> ViewChange {
        let (sees, since) =
            self.eyes.get(&lens.viewer).map_or((false, 0), |eye| (eye.sees, eye.since));
        // For a version that is too old, the present state is sent, whatever it was then.
        let turned = since > lens.since || lens.stale;
        match (lens.part, sees) {
            (Part::Shared, _) => ViewChange::Nothing,
            (_, true) if turned => ViewChange::Entered,
            (_, true) if differs::<T>(&self.value, lens.in_view()) => ViewChange::Changed,
            (_, false) if turned && lens.since > 0 => ViewChange::Left,
            _ => ViewChange::Nothing,
        }
    }
}

impl<T: State + Default> Viewed for AsWhole<T> {
    type Of = T;
    type Shadow = WholeShadow<T::Shadow>;

    fn bind<B: Bind>(value: &mut T, bind: B) -> Self::Shadow {
        WholeShadow {
            value: value.bind(bind),
            stamps: Stamps::new(bind.now(), true),
            eyes: BTreeMap::new(),
        }
    }

    fn put_slots(shadow: &Self::Shadow, out: &mut Vec<u8>) {
        T::put_slots(&shadow.value, out);
    }

    fn touches(_: &T, _: &Self::Shadow, _: Step) -> Touches {
        Touches::All
    }

    fn diff(value: &mut T, shadow: &mut Self::Shadow, step: Step) -> Changed {
        let changed = value.diff(&mut shadow.value, step).to_owner();
        shadow.stamps.note(changed, step.now);
        changed
    }

    fn stamps(shadow: &Self::Shadow) -> Stamps {
        shadow.stamps
    }

    fn write_patch(shadow: &Self::Shadow, lens: Lens, out: &mut Vec<u8>) -> bool {
        match shadow.came::<T>(lens) {
            ViewChange::Nothing => return false,
            ViewChange::Left => out.push(ViewPatch::Left as u8),
            ViewChange::Entered => {
                out.push(ViewPatch::Entered as u8);
                T::write_full(&shadow.value, lens.in_view(), out);
            }
            ViewChange::Changed if T::PLAIN => {
                out.push(ViewPatch::Changed as u8);
                return T::write_patch(&shadow.value, lens.in_view(), out);
            }
            ViewChange::Changed => {
                out.push(ViewPatch::Replaced as u8);
                T::write_full(&shadow.value, lens.in_view(), out);
            }
        }
        true
    }

    fn read_patch(value: &mut T, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        match ViewPatch::read(reader)? {
            ViewPatch::Left => *value = copy_default(),
            ViewPatch::Entered | ViewPatch::Replaced => *value = T::read_full(reader, Part::All)?,
            ViewPatch::Changed => value.read_patch(reader, Part::All, &mut Watch::idle())?,
        }
        Ok(())
    }

    fn tree_full(shadow: &Self::Shadow, lens: Lens, out: TreeWriter<'_>) -> bool {
        let sees =
            lens.part != Part::Shared && shadow.eyes.get(&lens.viewer).is_some_and(|eye| eye.sees);
        if sees {
            T::tree_full(&shadow.value, lens.in_view(), out);
        }
        sees
    }

    fn tree_patch(shadow: &Self::Shadow, lens: Lens, ops: &mut Ops<'_, '_>) {
        match shadow.came::<T>(lens) {
            ViewChange::Nothing => {}
            ViewChange::Left => ops.remove(),
            ViewChange::Changed if T::PLAIN => T::tree_patch(&shadow.value, lens.in_view(), ops),
            ViewChange::Entered | ViewChange::Changed => {
                ops.set(|out| T::tree_full(&shadow.value, lens.in_view(), out));
            }
        }
    }

    fn copy_digest(value: &T) -> u64 {
        of_private(value.digest(Part::All), default_digest::<T>())
    }

    fn shadow_digest(shadow: &Self::Shadow, lens: Lens) -> u64 {
        if lens.part == Part::Shared || !shadow.eyes.get(&lens.viewer).is_some_and(|eye| eye.sees) {
            return 0;
        }
        of_private(T::shadow_digest(&shadow.value, lens.in_view()), default_digest::<T>())
    }
}

impl<T: State + Default> Decided for AsWhole<T> {
    type Item = T;

    fn look<P: Key, A>(
        value: &T,
        shadow: &mut Self::Shadow,
        _: &Touches,
        viewers: &Map<P, A>,
        _: &Touches,
        sees: impl Fn(&T, &A) -> bool,
        now: u64,
    ) -> Changed {
        let mut changed = Changed::NO;
        let mut turn = |eye: &mut Eye, sees: bool| {
            if eye.sees != sees {
                *eye = Eye { sees, since: now };
                changed = Changed { shared: false, owned: true };
            }
        };
        for (player, viewer) in viewers {
            let Some(player) = player.player() else { continue };
            let eye = shadow.eyes.entry(player).or_insert(Eye { sees: false, since: 0 });
            turn(eye, sees(value, viewer));
        }
        shadow.eyes.retain(|player, eye| {
            let is_there = P::of_player(*player).is_some_and(|key| viewers.contains_key(&key));
            if !is_there {
                turn(eye, false);
            }
            is_there || !Lens::forgotten(eye.since, now)
        });
        shadow.stamps.note(changed, now);
        changed
    }

    fn view(value: &T, sight: Sight<'_>, sees: impl Fn(&T) -> bool) -> Option<Value> {
        sees(value).then(|| value.view(sight))
    }
}
