//! The trait of everything that can be kept in step.

use playfield_wire::reader::Reader;
use playfield_wire::schema::Type;
use playfield_wire::tree::TreeWriter;
use playfield_wire::{DecodeError, TreeFormat};
use serde_json::Value;

use crate::lens::{Changed, Lens, Sight, Stamps, Step, Tracking};
use crate::ops::Ops;
use crate::{Part, PlayerId};

/// A tree of plain data that can be kept in step. Derive it: `#[derive(State)]`.
///
/// Fields may say who sees them: `#[sync(owner)]` (the player whose entry this is: the key of the
/// nearest enclosing map keyed by player, or, on such a map itself, each player their own entry),
/// `#[sync(hidden)]` (never leaves the server), `#[sync(mask = f)]` (everyone sees what `f: fn(&T)
/// -> T` returns, which must hang on the value alone) and `#[sync(view = f, viewer = map)]` (those
/// see it of whom `f: fn(&T, &Viewer) -> bool` says so, where `map` is a field of the same struct,
/// keyed by player, with a `Viewer` for each). A float may be sent in steps, with an error of half
/// a step: `#[sync(quantize = 0.01)]`, `#[sync(quantize = 0.01, range = -50.0..=50.0)]`, or, in
/// radians, `#[sync(angle = 0.01)]`.
///
/// ```
/// use playfield_state::{List, Map, PlayerId, State, Tracker, Tracking};
///
/// #[derive(State, Default)]
/// struct Table {
///     round: u32,
///     seats: Map<PlayerId, Seat>,
///     #[sync(hidden)]
///     deck: List<u8>,
/// }
///
/// #[derive(State, Default)]
/// struct Seat {
///     name: String,
///     #[sync(owner)]
///     hand: List<u8>,
/// }
///
/// Tracker::new(&mut Table::default(), Tracking::On);
/// ```
///
/// What can't be kept in step doesn't compile. There are no other policies than these:
///
/// ```compile_fail
/// #[derive(playfield_state::State, Default)]
/// struct Seat {
///     #[sync(secret)]
///     hand: u8,
/// }
/// ```
///
/// A type has one schema, so it has no parameters:
///
/// ```compile_fail
/// #[derive(playfield_state::State, Default)]
/// struct Seat<T> {
///     hand: T,
/// }
/// ```
///
/// Every `owner` field has an owner:
///
/// ```compile_fail
/// use playfield_state::{Map, State, Tracker, Tracking};
///
/// #[derive(State, Default)]
/// struct Table {
///     seats: Map<u32, Seat>, // keyed by a number, not by a player
/// }
///
/// #[derive(State, Default)]
/// struct Seat {
///     #[sync(owner)]
///     hand: u8,
/// }
///
/// Tracker::new(&mut Table::default(), Tracking::On);
/// ```
///
/// In JSON an option is `null` or its value, so it holds no other option, and a map holds none:
///
/// ```compile_fail
/// use playfield_state::{State, Tracker, Tracking};
///
/// #[derive(State, Default)]
/// struct Table {
///     choice: Option<Option<u8>>,
/// }
///
/// Tracker::new(&mut Table::default(), Tracking::On);
/// ```
///
/// ```compile_fail
/// use playfield_state::{Map, State, Tracker, Tracking};
///
/// #[derive(State, Default)]
/// struct Table {
///     choices: Map<u32, Option<u8>>,
/// }
///
/// Tracker::new(&mut Table::default(), Tracking::On);
/// ```
///
/// The methods are for generated code and for the collections; an application calls none of them.
/// They come in three groups: the server compares (`bind`, `diff`, `same_shared`, `look`), the
/// server writes from the shadow alone (`write_*`, `tree_*`), the client reads (`read_*`).
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be kept in step",
    note = "derive it: `#[derive(State)]`; collections are `playfield::Map`, `playfield::Set` and `playfield::List`, an enum is `#[derive(State, Data, Clone)]`"
)]
pub trait State: Sized + 'static {
    /// What was last synced, stamped with versions.
    type Shadow: 'static;

    /// There is an `owner` field in it whose owner an enclosing map keyed by player has to tell:
    /// what to say if there is none.
    const UNOWNED: Option<&'static str>;
    /// There is something in it that only an owner sees.
    const HAS_OWNED: bool;
    /// There is a map keyed by player in it that holds something owned, so that owners differ
    /// further down.
    const NESTED_OWNERS: bool;
    /// In a tree, `null` is one of its values.
    const NULLABLE: bool = false;
    /// It is a map keyed by player: as an `owner` field, each player sees their own entry.
    const KEYED_BY_PLAYER: bool = false;
    /// It is a map, of which a view is seen entry by entry.
    const IS_MAP: bool = false;
    /// A change of it can be written in a column, together with the same change of other entries of
    /// a map.
    const COLUMN: bool = false;
    /// Its values take few bytes, so that in a column those that did not change may be sent with
    /// those that did.
    const FIXED: bool = false;
    /// A patch of it says nothing of what was before the version at which it begins. A map's does:
    /// its slots are older.
    const PLAIN: bool = false;

    /// Its shape.
    fn schema() -> Type;

    /// Makes a shadow of it as it is, everything stamped `now`.
    fn bind(&mut self, now: u64) -> Self::Shadow;

    /// Brings the shadow up to date, and stamps what changed.
    fn diff(&mut self, shadow: &mut Self::Shadow, step: Step) -> Changed;

    /// Whether what everyone sees of it is as last synced.
    fn same_shared(&self, shadow: &Self::Shadow, tracking: Tracking) -> bool;

    /// What everyone sees of it, as a number: that of [`shadow_digest`](Self::shadow_digest) of
    /// [`Part::Shared`] if it is as last synced.
    fn look(&self) -> u64;

    /// When it last changed.
    fn stamps(shadow: &Self::Shadow) -> Stamps;

    /// Appends the whole of it (packed), of [`Part::Shared`] or [`Part::All`].
    fn write_full(shadow: &Self::Shadow, lens: Lens, out: &mut Vec<u8>);

    /// Appends what changed after `lens.since` (packed). The caller has looked at
    /// [`stamps`](Self::stamps). Says whether there was anything; if not, the caller truncates what
    /// was appended.
    fn write_patch(shadow: &Self::Shadow, lens: Lens, out: &mut Vec<u8>) -> bool;

    /// What changed after `lens.since`, if all of it can be written in columns: a number, equal for
    /// two of them if they changed in the same fields. What an owner alone sees never can.
    fn column_key(_: &Self::Shadow, _: Lens) -> Option<u64> {
        None
    }

    /// Appends the changes of several, which have the same key, as columns (packed).
    fn write_columns<'a>(
        count: usize,
        at: impl Fn(usize) -> &'a Self::Shadow + Copy,
        key: u64,
        lens: Lens,
        out: &mut Vec<u8>,
    ) {
        let _ = key;
        (0..count).for_each(|place| {
            Self::write_patch(at(place), lens, out);
        });
    }

    /// The same through an `owner` field; appends nothing where there is nothing.
    fn write_owner_patch(shadow: &Self::Shadow, lens: Lens, out: &mut Vec<u8>) -> bool {
        write_owner_field::<Self>(shadow, lens, out)
    }

    /// Writes the whole of it as a tree, for [`Part::All`] or [`Part::Shared`].
    fn tree_full(shadow: &Self::Shadow, lens: Lens, out: TreeWriter<'_>);

    /// Adds the operations that bring a tree up to date.
    fn tree_patch(shadow: &Self::Shadow, lens: Lens, ops: &mut Ops<'_, '_>);

    /// The same through an `owner` field.
    fn tree_owner_patch(shadow: &Self::Shadow, lens: Lens, ops: &mut Ops<'_, '_>) {
        tree_owner_field::<Self>(shadow, lens, ops);
    }

    /// Writes an `owner` field as a tree. Says whether the member is there at all: it is not, for
    /// who may not see it.
    fn tree_owner_full(shadow: &Self::Shadow, lens: Lens, out: TreeWriter<'_>) -> bool {
        let Some(lens) = lens.owner_field() else { return false };
        Self::tree_full(shadow, lens, out);
        true
    }

    /// Reads what [`write_full`](Self::write_full) wrote.
    ///
    /// # Errors
    /// Anything but what the schema says.
    fn read_full(reader: &mut Reader<'_>, part: Part) -> Result<Self, DecodeError>;

    /// Applies what [`write_patch`](Self::write_patch) wrote.
    ///
    /// # Errors
    /// Anything but what the schema says, or what this copy can't have: it is then unusable.
    fn read_patch(&mut self, reader: &mut Reader<'_>, part: Part) -> Result<(), DecodeError>;

    /// Applies what [`write_columns`](Self::write_columns) wrote.
    ///
    /// # Errors
    /// As [`read_patch`](Self::read_patch).
    fn read_columns(targets: &mut [&mut Self], reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        targets.iter_mut().try_for_each(|target| target.read_patch(reader, Part::Shared))
    }

    /// Applies what [`write_owner_patch`](Self::write_owner_patch) wrote.
    ///
    /// # Errors
    /// As [`read_patch`](Self::read_patch).
    fn read_owner_patch(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        self.read_patch(reader, Part::All)
    }

    /// Takes out of a default what a patch from nothing may not take out of it: the entries of maps
    /// and sets, and what a type has in fields that not everyone sees where those have another
    /// default.
    fn empty_maps(&mut self) {}

    /// The digest of a copy: of all that is in it.
    fn digest(&self) -> u64;

    /// The digest of what the lens sees of what was last synced. Those of [`Part::Shared`] and
    /// [`Part::Owned`] make up that of [`Part::All`], which is the digest of the viewer's copy.
    fn shadow_digest(shadow: &Self::Shadow, lens: Lens) -> u64;

    /// The same through an `owner` field.
    fn owner_digest(shadow: &Self::Shadow, lens: Lens) -> u64 {
        lens.owner_field().map_or(0, |lens| Self::shadow_digest(shadow, lens))
    }

    /// The live state as `sight` sees it, as a tree.
    fn view(&self, sight: Sight) -> Value;

    /// The same through an `owner` field; `None` where there is nothing to see.
    fn owner_view(&self, sight: Sight) -> Option<Value> {
        sight.owns().then(|| self.view(sight))
    }
}

/// An `owner` field, but for maps keyed by player: all of it, to its owner.
pub(crate) fn write_owner_field<T: State>(
    shadow: &T::Shadow,
    lens: Lens,
    out: &mut Vec<u8>,
) -> bool {
    match lens.owner_field() {
        Some(lens) if T::stamps(shadow).after(lens) => T::write_patch(shadow, lens, out),
        _ => false,
    }
}

/// Whether anything that the lens sees changed: stamps are of what any owner sees.
pub(crate) fn differs<T: State>(shadow: &T::Shadow, lens: Lens) -> bool {
    let lens = Lens { fresh: false, ..lens };
    T::stamps(shadow).after(lens) && T::write_patch(shadow, lens, &mut Vec::new())
}

/// As [`write_owner_field`], in a tree.
pub(crate) fn tree_owner_field<T: State>(shadow: &T::Shadow, lens: Lens, ops: &mut Ops<'_, '_>) {
    match lens.owner_field() {
        // The copy's object came without this member: there is nothing yet to change inside it.
        Some(lens) if lens.since == 0 => ops.set(|out| T::tree_full(shadow, lens, out)),
        Some(lens) if T::stamps(shadow).after(lens) => T::tree_patch(shadow, lens, ops),
        _ => {}
    }
}

/// What a copy has where nothing was said of a value: its default, in which all maps and sets are
/// empty.
pub fn copy_default<T: State + Default>() -> T {
    let mut copy_default = T::default();
    copy_default.empty_maps();
    copy_default
}

/// The first that is there. For generated code.
pub const fn first(all: &[Option<&'static str>]) -> Option<&'static str> {
    let mut place = 0;
    while place < all.len() {
        if all[place].is_some() {
            return all[place];
        }
        place += 1;
    }
    None
}

/// Refuses, while it is compiled, a root in which an `owner` field is nobody's.
pub const fn check_root<T: State>() {
    if let Some(what) = T::UNOWNED {
        panic!("{}", what);
    }
}

/// The live state as `viewer` may see it (`None`: what everyone sees), in the form of its JSON.
///
/// It goes another way than patches do, and so is the measure that copies are held to.
pub fn view<T: State>(state: &T, viewer: Option<PlayerId>) -> Value {
    view_in(TreeFormat::Json, state, viewer)
}

/// The same, in the form that a copy in this format has: what MessagePack carries as a number or as
/// bytes, JSON may carry as text.
pub fn view_in<T: State>(format: TreeFormat, state: &T, viewer: Option<PlayerId>) -> Value {
    state.view(Sight { viewer, owner: None, format })
}
