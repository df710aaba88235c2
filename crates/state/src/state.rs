//! The traits of everything that can be synced.
//!
//! [`State`] is what applications name. Generated code and the collections implement the traits
//! under it, one for each user: [`Describe`] for schemas, [`Compare`] for the server's comparison,
//! [`Write`] for bodies made from the shadow, [`Read`] for a client's copy.

use playfield_wire::reader::Reader;
use playfield_wire::schema::Type;
use playfield_wire::tree::TreeWriter;
use playfield_wire::{DecodeError, TreeFormat};
use serde_json::Value;

use crate::change::Watch;
use crate::lens::{Changed, Lens, Sight, Stamps, Step, Tracking};
use crate::ops::Ops;
use crate::save::Save;
use crate::slots::Bind;
use crate::{Key, Part, PlayerId};

/// A tree of plain data that is synced to clients. Derive it: `#[derive(State)]`.
///
/// A field's attribute says who sees it:
///
/// - `#[sync(owner)]`: the owner alone. That is the player whose key leads here in the nearest
///   enclosing map keyed by player. On such a map itself, each player sees their own entry.
/// - `#[sync(hidden)]`: no player.
/// - `#[sync(skip)]`: no player, and it is no state at all; see [below](#skipped-fields).
/// - `#[sync(mask = f)]`: everyone sees what `f: fn(&T) -> T` returns. The result must depend only
///   on the value.
/// - `#[sync(view = f, viewer = map)]`: the players for whom `f: fn(&T, &Viewer) -> bool` returns
///   true. `map` is a field of the same struct, keyed by player, that holds a `Viewer` for each.
///
/// - `#[sync(near = [x, y], viewer = map, radius = 9.0)]`, on a map: those who are near an entry, by
///   fields of it and of theirs, or functions that return positions. `half_extents = [9.0, 5.0]`
///   instead of the radius, `hysteresis = 2.0`, `nearest = 64`.
/// - `#[sync(same = [team], viewer = map)]`, on a map: those whose fields, or what a function
///   returns, are equal. Both may be combined.
///
/// A float may be quantized, with an error of half a step: `#[sync(quantize = 0.01)]`,
/// `#[sync(quantize = 0.01, range = -50.0..=50.0)]`, or, in radians, `#[sync(angle = 0.01)]`.
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
/// # Skipped fields
///
/// `#[sync(skip)]` is for what can be made again from the state, or belongs to this process: a
/// spatial index, a physics world, a pool of connections. Its type needs only a `Default` (and, in
/// a room, `Send`). It has no part in the schema, in copies, digests and [saves](crate::save), and
/// a change of it costs nothing. Wherever a state is read, in a client's copy or by
/// [`load`](crate::load), a skipped field has its default.
///
/// ```
/// use playfield_state::{Map, State};
/// use std::collections::HashMap;
///
/// #[derive(State, Default)]
/// struct World {
///     ships: Map<u32, Ship>,
///     /// Ships by the square that they are in.
///     #[sync(skip)]
///     squares: HashMap<(i32, i32), Vec<u32>>,
/// }
///
/// #[derive(State, Default)]
/// struct Ship {
///     x: f32,
///     y: f32,
/// }
/// ```
///
/// There are no other policies:
///
/// ```compile_fail
/// #[derive(playfield_state::State, Default)]
/// struct Seat {
///     #[sync(secret)]
///     hand: u8,
/// }
/// ```
///
/// A type has one schema, so it has no type parameters:
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
/// In JSON an option is `null` or its value, so neither an option nor a map can hold options:
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
/// Derive it: it can't be implemented by hand.
///
/// ```compile_fail
/// struct Table;
///
/// impl playfield_state::State for Table {}
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be synced",
    note = "derive it: `#[derive(State)]`; collections are `playfield::Map`, `playfield::Set` and `playfield::List`, an enum is `#[derive(State, Data, Clone)]`"
)]
pub trait State: Write + Read + Save {
    /// The schema of its type.
    fn schema() -> Type {
        Self::shape()
    }
}

#[diagnostic::do_not_recommend]
impl<T: Write + Read + Save> State for T {}

/// Requires of a type that it can be synced. For generated code, which names the field.
pub const fn check_state<T: State>() {}

/// Requires of a type that it can be the key of a map. For generated code, which names the field.
pub const fn check_key<K: Key>() {}

/// Requires of the type of a skipped field what is needed to read the struct. For generated code,
/// which names the field.
pub const fn check_skipped<T: Skipped>() {}

/// A type that a skipped field can have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no default, so a field of it can't be skipped",
    note = "a state that is read has the default in its skipped fields: implement `Default`, or write `Option<{Self}>`"
)]
pub trait Skipped: Default {}

#[diagnostic::do_not_recommend]
impl<T: Default> Skipped for T {}

/// Facts about a state's type. For generated code.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be synced",
    note = "derive `State`; keys of maps implement `Key`; elements and values implement `State`"
)]
pub trait Describe: Sized + 'static {
    /// The error, if there is no enclosing map, for an `owner` field whose owner must be the key of
    /// one; `None` if it has no such field.
    const UNOWNED: Option<&'static str> = None;
    /// Part of it is not visible to everyone.
    const HAS_OWNED: bool = false;
    /// Whether it has a map keyed by player that holds something owned, so owners differ further
    /// down.
    const NESTED_OWNERS: bool = false;
    /// In a tree, `null` is one of its values.
    const NULLABLE: bool = false;
    /// Whether it is a map keyed by player: as an `owner` field, each player sees their own entry.
    const KEYED_BY_PLAYER: bool = false;
    /// Whether it is a map: a view on it decides entry by entry.
    const IS_MAP: bool = false;
    /// A change of it can be written in a column, together with the same change of other entries of
    /// a map.
    const COLUMN: bool = false;
    /// Its values take few bytes, so a column may also send those that did not change.
    const FIXED: bool = false;
    /// Whether the visibility of a part of it depends on who saw it before.
    const HYSTERESIS: bool = false;
    /// Whether it has a view by place, whose cap may leave entries out.
    const PLACED: bool = false;
    /// A patch of it reveals nothing older than the version at which it begins. A map's does: its
    /// slots are older.
    const PLAIN: bool = false;
    /// A typed copy of it is enough to report its changes: what the viewer sees of it depends on
    /// nothing else.
    const REPORTS: bool = false;

    /// The schema.
    fn shape() -> Type;
}

/// The server compares the live state with its shadow. For generated code.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be synced",
    note = "derive `State`; keys of maps implement `Key`; elements and values implement `State`"
)]
pub trait Compare: Describe {
    /// The values at the last sync, stamped with versions.
    type Shadow: 'static;

    /// Makes a shadow of it as it is, everything stamped `bind.now()`.
    fn bind<B: Bind>(&mut self, bind: B) -> Self::Shadow;

    /// Appends what [`bind`](Self::bind) must know to make this shadow again: the slots of maps.
    fn put_slots(_: &Self::Shadow, _: &mut Vec<u8>) {}

    /// Brings the shadow up to date, and stamps what changed.
    fn diff(&mut self, shadow: &mut Self::Shadow, step: Step) -> Changed;

    /// Returns whether what everyone sees of it is as last synced.
    fn same_shared(&self, shadow: &Self::Shadow, tracking: Tracking) -> bool;

    /// When it last changed.
    fn stamps(shadow: &Self::Shadow) -> Stamps;

    /// Returns the number of further entries that the viewer would see if no view had a cap.
    fn left_out(_: &Self::Shadow, _: PlayerId) -> u64 {
        0
    }

    /// The digest of a copy ([`Part::All`]), or of what everyone sees of the live state
    /// ([`Part::Shared`]). Either equals [`Write::shadow_digest`] if the copy is right or the state
    /// is as last synced.
    fn digest(&self, part: Part) -> u64;

    /// The live state as `sight` sees it, as a tree.
    fn view(&self, sight: Sight<'_>) -> Value;

    /// The same through an `owner` field; `None` where there is nothing to see.
    fn owner_view(&self, sight: Sight<'_>) -> Option<Value> {
        sight.owns().then(|| self.view(sight))
    }
}

/// The server writes bodies from the shadow alone. For generated code.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be synced",
    note = "derive `State`; keys of maps implement `Key`; elements and values implement `State`"
)]
pub trait Write: Compare {
    /// Appends the whole of it (packed), of [`Part::Shared`] or [`Part::All`].
    fn write_full(shadow: &Self::Shadow, lens: Lens, out: &mut Vec<u8>);

    /// Appends what changed after `lens.since` (packed). The caller has looked at
    /// [`stamps`](Compare::stamps). Returns whether there was anything; if not, the caller
    /// truncates what was appended.
    fn write_patch(shadow: &Self::Shadow, lens: Lens, out: &mut Vec<u8>) -> bool;

    /// Returns a number for what changed after `lens.since`, if all of it can be written in
    /// columns. It is equal for values that changed in the same fields. What only an owner sees
    /// can't be written in columns.
    fn column_key(_: &Self::Shadow, _: Lens) -> Option<u64> {
        None
    }

    /// Appends the changes of several values with the same key, as columns (packed).
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

    /// Writes an `owner` field as a tree. Returns false, and writes nothing, if the viewer may not
    /// see it.
    fn tree_owner_full(shadow: &Self::Shadow, lens: Lens, out: TreeWriter<'_>) -> bool {
        let Some(lens) = lens.owner_field() else { return false };
        Self::tree_full(shadow, lens, out);
        true
    }

    /// The digest of what the lens sees of the shadow. The digests of [`Part::Shared`] and
    /// [`Part::Owned`] add up to that of [`Part::All`], the digest of the viewer's copy.
    fn shadow_digest(shadow: &Self::Shadow, lens: Lens) -> u64;

    /// The same through an `owner` field.
    fn owner_digest(shadow: &Self::Shadow, lens: Lens) -> u64 {
        lens.owner_field().map_or(0, |lens| Self::shadow_digest(shadow, lens))
    }
}

/// A client reads its copy. For generated code.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be synced",
    note = "derive `State`; keys of maps implement `Key`; elements and values implement `State`"
)]
pub trait Read: Describe {
    /// Reads what [`write_full`](Write::write_full) wrote.
    ///
    /// # Errors
    /// Anything that doesn't match the schema.
    fn read_full(reader: &mut Reader<'_>, part: Part) -> Result<Self, DecodeError>;

    /// Applies what [`write_patch`](Write::write_patch) wrote, and reports what changes.
    ///
    /// # Errors
    /// Anything that doesn't match the schema or this copy. The copy is then unusable.
    fn read_patch(
        &mut self,
        reader: &mut Reader<'_>,
        part: Part,
        watch: &mut Watch<'_>,
    ) -> Result<(), DecodeError>;

    /// Applies what [`write_columns`](Write::write_columns) wrote.
    ///
    /// # Errors
    /// As [`read_patch`](Self::read_patch).
    fn read_columns(
        targets: &mut [&mut Self],
        reader: &mut Reader<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<(), DecodeError> {
        targets.iter_mut().enumerate().try_for_each(|(place, target)| {
            watch.select(place);
            target.read_patch(reader, Part::Shared, watch)
        })
    }

    /// Applies what [`write_owner_patch`](Write::write_owner_patch) wrote.
    ///
    /// # Errors
    /// As [`read_patch`](Self::read_patch).
    fn read_owner_patch(
        &mut self,
        reader: &mut Reader<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<(), DecodeError> {
        self.read_patch(reader, Part::All, watch)
    }

    /// Removes from a default what a patch from nothing may not replace: the entries of maps and
    /// sets, and in fields that not everyone sees, values other than the default of the field's
    /// type.
    fn empty_maps(&mut self) {}
}

/// Writes the patch of an `owner` field that is not a map keyed by player: all of it, to its owner.
pub(crate) fn write_owner_field<T: Write>(
    shadow: &T::Shadow,
    lens: Lens,
    out: &mut Vec<u8>,
) -> bool {
    match lens.owner_field() {
        Some(lens) if T::stamps(shadow).after(lens) => T::write_patch(shadow, lens, out),
        _ => false,
    }
}

/// Compares an entry or an element, and notes for a probe when that begins and ends.
#[inline]
pub(crate) fn diff_inside<T: Compare>(
    value: &mut T,
    shadow: &mut T::Shadow,
    step: Step,
) -> Changed {
    /// Apart, so that without a probe no field asks for it.
    #[cold]
    #[inline(never)]
    fn probed<T: Compare>(value: &mut T, shadow: &mut T::Shadow, step: Step) -> Changed {
        let changed = value.diff(shadow, step.each());
        step.here();
        changed
    }
    match step.plain() {
        Some(step) => value.diff(shadow, step),
        None => probed(value, shadow, step),
    }
}

/// Returns whether anything that the lens sees changed. Stamps alone also cover what only other
/// owners see.
pub(crate) fn differs<T: State>(shadow: &T::Shadow, lens: Lens) -> bool {
    let lens = Lens { fresh: false, ..lens };
    T::stamps(shadow).after(lens) && T::write_patch(shadow, lens, &mut Vec::new())
}

/// Writes the same as [`write_owner_field`], in a tree.
pub(crate) fn tree_owner_field<T: Write>(shadow: &T::Shadow, lens: Lens, ops: &mut Ops<'_, '_>) {
    match lens.owner_field() {
        // The copy's object has no such member yet, so there is nothing to change inside it.
        Some(lens) if lens.since == 0 => ops.set(|out| T::tree_full(shadow, lens, out)),
        Some(lens) if T::stamps(shadow).after(lens) => T::tree_patch(shadow, lens, ops),
        _ => {}
    }
}

/// The value in the copy of a player to whom it was not sent: its default, with all maps and sets
/// empty.
pub fn copy_default<T: State + Default>() -> T {
    let mut value = T::default();
    value.empty_maps();
    value
}

/// The digest of that value.
pub fn default_digest<T: State + Default>() -> u64 {
    copy_default::<T>().digest(Part::All)
}

/// The first that is `Some`. For generated code.
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

/// Refuses, at compile time, a root with an `owner` field that has no owner.
pub const fn check_root<T: State>() {
    if let Some(what) = T::UNOWNED {
        panic!("{}", what);
    }
}

/// The live state as `viewer` may see it (`None`: what everyone sees), as JSON.
///
/// It shares no code with patches, so copies can be tested against it. Where the state has a view
/// with `hysteresis`, it is what a viewer sees who saw nothing before: see [`view_after`].
pub fn view<T: State>(state: &T, viewer: Option<PlayerId>) -> Value {
    view_in(TreeFormat::Json, state, viewer)
}

/// The same, as a copy in this format has it: some numbers and bytes of MessagePack are texts in
/// JSON.
pub fn view_in<T: State>(format: TreeFormat, state: &T, viewer: Option<PlayerId>) -> Value {
    state.view(Sight { viewer, owner: None, format, before: None, is_copy: false })
}

/// The same for a viewer who saw `before` at the last sync, as such a copy. It matters where the
/// state has a view with `hysteresis`; elsewhere it equals [`view_in`].
///
/// What the viewer sees now is what a viewer who sees that already sees. So a copy is right if it
/// equals what this returns for itself.
pub fn view_after<T: State>(
    format: TreeFormat,
    state: &T,
    viewer: PlayerId,
    before: &Value,
) -> Value {
    let (viewer, before) = (Some(viewer), Some(before));
    state.view(Sight { viewer, owner: None, format, before, is_copy: false })
}
